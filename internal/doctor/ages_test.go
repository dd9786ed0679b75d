package doctor

import (
	"fmt"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"
)

// Rows that a process with a wrong clock wrote are named, whatever they are and wherever they stand.
func TestClocksThatWroteNonsense(t *testing.T) {
	onEach(t, func(t *testing.T, s *store) {
		write := func(name string, at time.Time) {
			t.Helper()
			for _, insert := range []string{
				`INSERT INTO {tables}claims (source, key, state, token, first_seen, updated_at) VALUES ('a', '%s', 'done', 1, $1, $1), ('b', '%s', 'processing', 1, $1, $1), ('once:c', '%s', 'done', 1, $1, $1)`,
				`INSERT INTO {tables}effects (source, key, step, name, payload, state, due_at, enqueued_at, updated_at) VALUES ('a', '%s', 'm', 'm', '', 'done', NULL, $1, $1), ('b', '%s', 'm', 'm', '', 'processing', $1, $1, $1)`,
				`INSERT INTO {tables}versions (resource, version, updated_at) VALUES ('%s', 1, $1)`,
				`INSERT INTO {tables}states (entity, state, updated_at) VALUES ('%s', 'paid', $1)`,
			} {
				if _, err := s.db.ExecContext(t.Context(), s.fill(strings.ReplaceAll(insert, "%s", name)), s.at(at)); err != nil {
					t.Fatal(err)
				}
			}
		}
		look := func(level Level, text string) {
			t.Helper()
			found := check[*store]{"ages", ages}.run(t.Context(), s)
			expect(t, found, map[string]Level{"ages": level})
			if len(found) != 1 || !strings.Contains(found[0].Text, text) {
				t.Errorf("found %+v, want %q", found, text)
			}
		}
		look(OK, "no row")
		write("right", time.Now())
		write("old", time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC))
		look(OK, "no row")
		for i, at := range []time.Time{time.Unix(0, 0), time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), time.Now().Add(time.Hour)} {
			write(fmt.Sprint("wrong ", i), at)
			look(Warning, fmt.Sprintf("%s, %s, %s, %s", plural(int64(3*i+3), "claim"), plural(int64(2*i+2), "effect"), plural(int64(i+1), "version"), plural(int64(i+1), "state")))
		}
	})
}
