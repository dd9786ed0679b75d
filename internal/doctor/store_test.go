package doctor

import (
	"cmp"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/schema"
)

// onEach runs a test on a new store of each kind.
func onEach(t *testing.T, test func(t *testing.T, s *store)) {
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
			test(t, &store{db: db, dialect: o.dialect, prefix: prefix, now: time.Now, at: o.at, placeholder: o.placeholder})
		})
	}
}

// What is open for a name that the configuration does not have is told before anybody waits for it.
func TestDestinationsThatAreGone(t *testing.T) {
	onEach(t, func(t *testing.T, s *store) {
		s.serves, s.names = true, map[string]bool{"ledger": true}
		look := func(level Level, text string) {
			t.Helper()
			found := check[*store]{"destinations", destinations}.run(t.Context(), s)
			expect(t, found, map[string]Level{"destinations": level})
			if got := texts(found, "destinations"); !strings.Contains(got, text) || strings.Contains(got, "ledger") {
				t.Errorf("found %s, want %q", got, text)
			}
		}
		look(OK, "all that is open")
		for i, row := range []string{"'ledger', 'pending'", "'mailer', 'failed'", "'mailer', 'pending'", "'gone', 'dead'"} {
			if _, err := s.db.ExecContext(t.Context(), s.fill(fmt.Sprintf("INSERT INTO {tables}deliveries (event_id, destination, state, token, tries) VALUES (%d, %s, 0, 0)", i+1, row))); err != nil {
				t.Fatal(err)
			}
		}
		look(Warning, "2 deliveries: open for mailer, which is no destination")
		s.serves = false
		if found, err := destinations(t.Context(), s); found != nil || err != nil {
			t.Errorf("a program with the library has no destinations, and is told of %+v (%v)", found, err)
		}
	})
}

// A name that the configuration has instead of another is told of, because the keys of its copies count as new.
func TestSourcesThatWereRenamed(t *testing.T) {
	now := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	onEach(t, func(t *testing.T, s *store) {
		s.serves, s.now = true, func() time.Time { return now }
		count := func(what, source string, ago time.Duration) {
			t.Helper()
			row := strings.NewReplacer("$1::timestamptz", "$1").Replace(s.fill("INSERT INTO {tables}tally_hours (hour, source, destination, what, n) VALUES ({time}, '" + source + "', '', '" + what + "', 7)"))
			if _, err := s.db.ExecContext(t.Context(), row, s.at(now.Add(-ago).Truncate(time.Hour))); err != nil {
				t.Fatal(err)
			}
		}
		look := func(level Level, text string, names ...string) {
			t.Helper()
			s.sources = map[string]string{}
			for _, name := range names {
				name, mode, _ := strings.Cut(name, " in mode ")
				s.sources[name] = cmp.Or(mode, config.Async)
			}
			found := check[*store]{"sources", sources}.run(t.Context(), s)
			expect(t, found, map[string]Level{"sources": level})
			if got := texts(found, "sources"); !strings.Contains(got, text) {
				t.Errorf("found %s, want %q", got, text)
			}
		}
		look(OK, "none looks", "shop", "hub") // a first start
		count("accepted", "shop", 29*day)
		count("accepted", "shop", day)
		count("accepted", "hub", 29*day)
		count("accepted", "old", 40*day)
		count("app:accepted", "library", day)
		count("rejected:signature", "attacked", day)
		look(OK, "none looks", "shop", "hub")
		look(OK, "none looks", "shop")                // one was removed
		look(OK, "none looks", "shop", "hub", "paid") // one was added
		look(Warning, "hub had events in the last 30 days, and no source has this name; paid had none in the last 100 days", "shop", "paid")
		look(Warning, "hub, shop had events in the last 30 days, and no source has this name; library, paid had none in the last 100 days", "paid", "library")
		look(Warning, "; attacked, paid had none in", "shop", "attacked", "paid in mode sync")
		look(OK, "none looks", "shop", "old", "hub")
		// These never have events under keys, whatever they are called.
		look(OK, "none looks", "shop", "charges in mode idempotency", "watched in mode observe")
		look(OK, "none looks", "shop", "hub in mode observe", "paid")
		// One that got something has had its name for long, even if none of it was new under a key.
		for _, what := range []string{"received", "unkeyed", "unprotected", "copies", "conflicts"} {
			count(what, what, day)
			look(OK, "none looks", "shop", what)
			look(OK, "none looks", "shop", "hub", "paid") // and has no keys that could be lost
		}
		// What the sender's list has, and nothing brought, is what a new name misses.
		count("missing", "listed", day)
		look(Warning, "; listed had none", "shop", "listed")
		// Programs with the library have no sources.
		s.serves = false
		if found, err := sources(t.Context(), s); found != nil || err != nil {
			t.Errorf("a program with the library is told of %+v (%v)", found, err)
		}
	})
}

// Tables that are newer than the program are well where a gateway would start on them, and a fault where it would not.
func TestTablesOfANewerProgram(t *testing.T) {
	db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := schema.Migrate(t.Context(), db, schema.SQLite, ""); err != nil {
		t.Fatal(err)
	}
	s := &store{db: db, dialect: ddl.SQLite}
	for i, tt := range []struct {
		oldest int64
		level  Level
		text   string
	}{
		{ddl.Version(), OK, "beside which this program"},
		{ddl.Version() + 2, Fault, "use a newer hookonce"},
	} {
		record := fmt.Sprintf("INSERT INTO hookonce_goose_db_version (version_id, is_applied, oldest) VALUES (%d, true, %d)", ddl.Version()+1+int64(i), tt.oldest)
		if _, err := db.ExecContext(t.Context(), record); err != nil {
			t.Fatal(err)
		}
		found := check[*store]{"schema", version}.run(t.Context(), s)
		expect(t, found, map[string]Level{"schema": tt.level})
		if text := texts(found, "schema"); !strings.Contains(text, tt.text) {
			t.Errorf("oldest %d: %s", tt.oldest, text)
		}
	}
}
