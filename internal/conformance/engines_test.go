package conformance_test

import (
	"database/sql"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/redis/go-redis/v9"

	"github.com/hookonce/hookonce/internal/conformance"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// some are cases of each suite; all with -all.
func some(t conformance.Target) conformance.Target {
	t.Name = conformance.Prefix + "_case"
	if !*allSuites {
		t.Cases = "^(library|faults|history)$/^(claim|within|outbox_faults|history)$"
	}
	return t
}

// conforms checks that all that was run passed, and that more than one suite was run.
func conforms(t *testing.T, target conformance.Target, engine string) {
	t.Helper()
	report := examined(t, target)
	suites := map[string]bool{}
	for _, c := range report.Cases {
		suite, _, _ := strings.Cut(c.Name, "/")
		suites[suite] = true
		if c.Result != conformance.Passed {
			t.Errorf("%+v", c)
		}
	}
	if !report.Conforms() || len(suites) < 2 || !strings.Contains(report.Engine, engine) {
		t.Errorf("%s, %v, aborted: %q", report.Engine, suites, report.Aborted)
	}
	t.Logf("%s: %d cases in %vs", report.Engine, report.Passed, report.Seconds)
}

func TestMariaDBConforms(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	cfg, err := mysql.ParseDSN(mariadbtest.DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	target, err := conformance.Parse("mysql://" + cfg.User + ":" + cfg.Passwd + "@" + cfg.Addr + "/")
	if err != nil {
		t.Fatal(err)
	}
	conforms(t, some(target), "MariaDB")
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	defer db.Close()
	var left int
	if err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 'hookonce_conformance_case%'`).Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases are left (%v)", left, err)
	}
}

func TestRedisConforms(t *testing.T) {
	t.Parallel()
	addr := redistest.Addr(t)
	target, err := conformance.Parse("redis://" + addr)
	if err != nil {
		t.Fatal(err)
	}
	c := redis.NewClient(&redis.Options{Addr: addr})
	defer c.Close()
	if err := c.Set(t.Context(), "hookonce_conformance_case", "mine", 0).Err(); err != nil {
		t.Fatal(err)
	}
	conforms(t, some(target), "Redis")
	if keys, err := c.Keys(t.Context(), "*").Result(); err != nil || len(keys) != 1 || keys[0] != "hookonce_conformance_case" {
		t.Errorf("%q are left (%v)", keys, err)
	}
}

func TestAFolderForSQLiteConforms(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	t.Parallel()
	dir := t.TempDir()
	target, err := conformance.Parse("sqlite:" + filepath.Join(dir, "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	conforms(t, some(target), "SQLite")
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v are left (%v)", left, err)
	}
}

func TestParseRefusesWhatNamesNoEngine(t *testing.T) {
	for _, text := range []string{"", "sqlite:", "hookonce.db", "oracle://secret@host", "postgres://user:sec ret%@host/db"} {
		if target, err := conformance.Parse(text); err == nil || strings.Contains(err.Error(), "sec") {
			t.Errorf("%q: %+v, %v", text, target, err)
		}
	}
}
