package pgstore

import (
	"context"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/claimsql"
)

// Purge implements [hookonce.Purger]. Several purges at once share the work. A limit of a few thousand keeps each
// statement short. Versions and states have no index by age, which would cost every guard: of these each call reads
// all that there is.
func (s *Store) Purge(ctx context.Context, req hookonce.PurgeRequest) (n int, err error) {
	if err := req.Validate(s.now()); err != nil {
		return 0, err
	}
	from, to := req.Span()
	texts := s.sql.Purge[claimsql.Doomed(req.Kind)]
	text := texts.Delete
	if req.Dry {
		text = texts.Count
	}
	next := func(after string) (string, error) {
		var source *string
		err := s.again(ctx, func() error { return s.pool.QueryRow(ctx, texts.Next, after).Scan(&source) })
		if err != nil || source == nil {
			return "", err
		}
		return *source, nil
	}
	if texts.Next == "" {
		next = nil
	}
	err = claimsql.EachSource(ctx, req, next, func(source ...any) (more bool, err error) {
		var gone int
		args := append(source, from, to, req.Limit-n)
		if err := s.again(ctx, func() error { return s.pool.QueryRow(ctx, text, args...).Scan(&gone) }); err != nil {
			return false, err
		}
		n += gone
		return n < req.Limit, nil
	})
	if err != nil {
		return n, fmt.Errorf("pgstore: purge: %w", explain(err))
	}
	return n, nil
}
