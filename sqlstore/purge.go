package sqlstore

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
)

// Purge implements [hookonce.Purger]. It deletes the claims' responses with them. On Postgres several purges
// at once share the work; elsewhere they take turns. A limit of a few thousand keeps each transaction short. Versions
// and states have no index by age, which would cost every guard: of these each call reads all that there is.
func (s *Store) Purge(ctx context.Context, req hookonce.PurgeRequest) (n int, err error) {
	if err := req.Validate(s.now()); err != nil {
		return 0, err
	}
	from, to := req.Span()
	span := []any{s.dialect.time(from), s.dialect.time(to)}
	d := s.dialect.dooms[claimsql.Doomed(req.Kind)]
	next := func(after string) (string, error) {
		var source sql.NullString
		err := s.insist(ctx, func() error {
			_, err := one(ctx, s.db, d.next, []any{after}, &source)
			return err
		})
		return source.String, err
	}
	if d.next.text == "" {
		next = nil
	}
	err = claimsql.EachSource(ctx, req, next, func(source ...any) (more bool, err error) {
		err = s.insist(ctx, func() error {
			gone, err := s.purge(ctx, d, append(source, span...), req.Limit-n, req.Dry)
			n += int(gone) // also with an error: on MySQL a part may be gone before it, and what is tried again is the rest
			return err
		})
		return n < req.Limit, err
	})
	if err != nil {
		return n, fmt.Errorf("sqlstore: purge: %w", s.explain(ctx, s.db, err))
	}
	return n, nil
}

// purge deletes, or counts, what one step may.
func (s *Store) purge(ctx context.Context, d doom, args []any, limit int, dry bool) (n int64, err error) {
	if limit <= 0 {
		return 0, nil
	}
	if dry {
		_, err = one(ctx, s.db, d.count, append(args, limit), &n)
		return n, err
	}
	return s.dialect.purge(ctx, s.db, d, args, limit)
}
