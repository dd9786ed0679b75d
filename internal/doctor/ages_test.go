package doctor

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/schema"
)

// Rows that a process with a wrong clock wrote are named, whatever they are and wherever they stand.
func TestClocksThatWroteNonsense(t *testing.T) {
	for driver, o := range map[string]struct {
		dsn         func() string
		dialect     schema.Dialect
		placeholder string
		at          func(time.Time) any
	}{
		"sqlite": {func() string { return filepath.Join(t.TempDir(), "app.db") }, schema.SQLite, "?1", func(t time.Time) any { return t.UnixMicro() }},
		"pgx":    {func() string { return pgtest.DSN(t) }, schema.Postgres, "$1::timestamptz", func(t time.Time) any { return t }},
	} {
		t.Run(driver, func(t *testing.T) {
			db, err := sql.Open(driver, o.dsn())
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := schema.Migrate(t.Context(), db, o.dialect, ""); err != nil {
				t.Fatal(err)
			}
			prefix, _ := ddl.Prefix(o.dialect, "")
			s := &store{db: db, dialect: o.dialect, prefix: prefix, now: time.Now, at: o.at, placeholder: o.placeholder}
			write := func(name string, at time.Time) {
				t.Helper()
				for _, insert := range []string{
					`INSERT INTO {tables}claims (source, key, state, token, first_seen, updated_at) VALUES ('a', '%s', 'done', 1, $1, $1), ('b', '%s', 'processing', 1, $1, $1), ('once:c', '%s', 'done', 1, $1, $1)`,
					`INSERT INTO {tables}effects (source, key, step, name, payload, state, due_at, enqueued_at, updated_at) VALUES ('a', '%s', 'm', 'm', '', 'done', NULL, $1, $1), ('b', '%s', 'm', 'm', '', 'processing', $1, $1, $1)`,
					`INSERT INTO {tables}versions (resource, version, updated_at) VALUES ('%s', 1, $1)`,
					`INSERT INTO {tables}states (entity, state, updated_at) VALUES ('%s', 'paid', $1)`,
				} {
					if _, err := db.ExecContext(t.Context(), s.fill(strings.ReplaceAll(insert, "%s", name)), o.at(at)); err != nil {
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
}
