package doctor

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// aged are the parts of tables that keep when they were last changed. What is done is looked for source by source,
// along an index: a table may have a hundred million rows that are as they should be.
var aged = []struct {
	noun    string
	sources string // the first source after the one that is the parameter; empty: the question has none
	count   string // rows before the first time and after the second
}{
	{"claim", `SELECT min(source) FROM {tables}claims WHERE source > $1`,
		`SELECT count(*) FROM {tables}claims WHERE (updated_at < $1 OR updated_at > $2) AND source = $3 AND state = 'done'`},
	{"claim", "", `SELECT count(*) FROM {tables}claims WHERE state <> 'done' AND (updated_at < $1 OR updated_at > $2)`},
	{"effect", `SELECT min(source) FROM {tables}effects WHERE source > $1`,
		`SELECT count(*) FROM {tables}effects WHERE (updated_at < $1 OR updated_at > $2) AND source = $3 AND state = 'done'`},
	{"effect", "", `SELECT count(*) FROM {tables}effects WHERE due_at IS NOT NULL AND (updated_at < $1 OR updated_at > $2)`},
	{"version", "", `SELECT count(*) FROM {tables}versions WHERE updated_at < $1 OR updated_at > $2`},
	{"state", "", `SELECT count(*) FROM {tables}states WHERE updated_at < $1 OR updated_at > $2`},
}

// ages looks for rows of which a purge does not believe the time: some process writes, or wrote, by a wrong clock. The
// same clock decides when a lease of the library or of a relay has run out.
func ages(ctx context.Context, s *store) (found []Finding, err error) {
	if !s.migrated(ctx) {
		return nil, nil // which is a finding of its own
	}
	now := s.now()
	from, _ := hookonce.PurgeRequest{Before: now}.Span()
	span := []any{s.at(from), s.at(now.Add(muchSkew))}
	counts := map[string]int64{}
	for _, a := range aged {
		err := s.eachSource(ctx, a.sources, func(source ...any) error {
			var n int64
			err := s.db.QueryRowContext(ctx, s.fill(a.count), append(span[:2:2], source...)...).Scan(&n)
			counts[a.noun] += n
			return err
		})
		if err != nil {
			return found, err
		}
	}
	var wrong []string
	for _, noun := range []string{"claim", "effect", "version", "state"} {
		if n := counts[noun]; n > 0 {
			wrong = append(wrong, plural(n, noun))
		}
	}
	if len(wrong) == 0 {
		return one(good("no row was changed before %s or in the future", from.Format(time.DateOnly)))
	}
	return one(doubt("run NTP where the programs run: leases of the library and of relays go by the same clocks, and end too early or too late; then set updated_at of these rows, or a purge keeps them for ever",
		"%s changed before %s, or in the future: a process has a wrong clock", strings.Join(wrong, ", "), from.Format(time.DateOnly)))
}

// eachSource calls do for each source that the query finds, one after the other; once, without one, if there is no query.
func (s *store) eachSource(ctx context.Context, query string, do func(source ...any) error) error {
	if query == "" {
		return do()
	}
	for source := (sql.NullString{Valid: true}); ; {
		if err := s.db.QueryRowContext(ctx, s.fill(query), source.String).Scan(&source); err != nil || !source.Valid {
			return err
		}
		if err := do(source.String); err != nil {
			return err
		}
	}
}
