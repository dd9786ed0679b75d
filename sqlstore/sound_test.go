package sqlstore_test

import (
	"database/sql"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// Settings of connections under which a claim is not what it says are refused before there is one.
func TestCheckRefusesUnsoundConnections(t *testing.T) {
	mo, ma, my := modernc, mattn, goMySQL
	for name, tt := range map[string]struct {
		connection
		places func(testing.TB) func(testing.TB) testdb.Place
		says   string
	}{
		"modernc":          {mo, files("?cache=shared&_pragma=read_uncommitted(1)"), "read_uncommitted"},
		"READ UNCOMMITTED": {my, prefixes("?tx_isolation=%27READ-UNCOMMITTED%27"), "READ UNCOMMITTED"},
		"no autocommit":    {my, prefixes("?autocommit=0"), "autocommit off"},
		"read-only":        {my, prefixes("?tx_read_only=1"), "set tx_read_only to OFF"},
	} {
		t.Run(name, func(t *testing.T) {
			db := tt.Open(t, tt.places(t)(t).DSN, new(testdb.Faults))
			if err := sqlstore.New(db, tt.Dialect).Check(t.Context()); err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Check: %v, want a refusal that names %q", err, tt.says)
			}
		})
	}
	t.Run("mattn", func(t *testing.T) {
		db := ma.Open(t, files("?cache=shared")(t)(t).DSN, new(testdb.Faults))
		db.SetMaxOpenConns(1)
		exec(t, db, `PRAGMA read_uncommitted = 1`)
		if err := sqlstore.New(db, sqlstore.SQLite).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "read_uncommitted") {
			t.Errorf("Check: %v", err)
		}
	})
}

// A server that follows another takes no writes but those of users who may do everything, and a user may have too few rights.
// One that shows what its replica does not have would tell copies what can be lost.
func TestCheckRefusesUnsoundMySQL(t *testing.T) {
	dsn := mariadbtest.Durable(t) // the settings are the whole server's
	open := func(user string) *sql.DB {
		db, err := sql.Open("mysql", strings.Replace(dsn, "root@", user+"@", 1))
		must(t, err)
		t.Cleanup(func() { db.Close() })
		return db
	}
	admin := open("root")
	_, err := schema.Migrate(t.Context(), admin, schema.MySQL, schema.DefaultName)
	must(t, err)
	exec(t, admin, `CREATE USER app@'%'`, `GRANT SELECT ON hookonce_goose_db_version TO app@'%'`)
	app := open("app")
	for _, step := range []struct{ change, says string }{
		{`SET GLOBAL read_only = OFF`, ""}, // as it is: this user has nothing to do with claims
		{`GRANT SELECT ON hookonce_claims TO app@'%'`, "this user may read the tables and write to none"},
		{`GRANT UPDATE (state) ON hookonce_effects TO app@'%'`, ""}, // for a relay, as its owner has it
		{`REVOKE UPDATE (state) ON hookonce_effects FROM app@'%'`, "this user may read the tables and write to none"},
		{`GRANT DELETE ON hookonce_states TO app@'%'`, ""}, // for a janitor
		{`GRANT INSERT, UPDATE ON hookonce_claims TO app@'%'`, ""},
		{`SET GLOBAL rpl_semi_sync_master_enabled = ON`, "set rpl_semi_sync_master_wait_point to AFTER_SYNC"},
		{`SET GLOBAL rpl_semi_sync_master_wait_point = AFTER_SYNC`, ""},
		{`SET GLOBAL rpl_semi_sync_master_enabled = OFF, rpl_semi_sync_master_wait_point = AFTER_COMMIT`, ""},
		{`SET GLOBAL read_only = ON`, "read_only is off there"},
	} {
		exec(t, admin, step.change)
		err := sqlstore.New(app, sqlstore.MySQL).Check(t.Context())
		if (err != nil) != (step.says != "") || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("after %s: %v", step.change, err)
		}
	}
	must(t, sqlstore.New(admin, sqlstore.MySQL).Check(t.Context())) // it may write wherever it is
}

// Connections each of which has a memory of its own are found out by the tables that one of them has; no others are refused.
func TestCheckRefusesAMemoryForEachConnection(t *testing.T) {
	for name, c := range sqliteConnections() {
		for memory, tt := range map[string]struct {
			dsn         string
			connections int
			refused     bool
		}{
			"each its own":   {"file::memory:", 0, true},
			"two at most":    {"file::memory:", 2, true},
			"one connection": {"file::memory:", 1, false},
			"one for all":    {"file:" + name + "?mode=memory&cache=shared", 0, false},
			"a file":         {"file:" + t.TempDir() + "/app.db", 0, false},
		} {
			t.Run(name+", "+memory, func(t *testing.T) {
				db := c.Open(t, tt.dsn, new(testdb.Faults))
				db.SetMaxOpenConns(tt.connections)
				_, err := schema.Migrate(t.Context(), db, schema.SQLite, schema.DefaultName)
				must(t, err)
				err = sqlstore.New(db, sqlstore.SQLite).Check(t.Context())
				if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "SetMaxOpenConns(1)") {
					t.Errorf("Check: %v", err)
				}
			})
		}
	}
}

// No claim is kept where advisory locks lock nothing, nor where nobody can tell what became of a
// COMMIT, whatever the driver.
func TestCheckRefusesLocksThatLockNothing(t *testing.T) {
	for name, c := range postgresConnections() {
		dsn := c.places(t)(t).DSN
		for through, says := range map[string]string{
			pgproxy.WithoutLocks(t, dsn):          "two transactions were given the same one at once",
			pgproxy.New(t, dsn, pgproxy.Yugabyte): "cannot keep claims in YugabyteDB",
		} {
			err := sqlstore.New(c.Open(t, through, new(testdb.Faults)), sqlstore.Postgres).Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want a refusal that says %q", name, err, says)
			}
		}
	}
}
