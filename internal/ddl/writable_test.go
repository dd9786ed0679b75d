package ddl_test

import (
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/schema"
)

// with returns a connection string with one parameter more.
func with(t *testing.T, dsn, name, value string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	q := u.Query()
	q.Set(name, value)
	u.RawQuery = q.Encode()
	return u.String()
}

// Where nothing can be written a program hears it from its check, and not from its first event.
func TestCheckRefusesWhereNothingCanBeWritten(t *testing.T) {
	dsn := pgtest.DSN(t)
	check := func(name, value string) error {
		return ddl.CheckProgram(t.Context(), connect(t, with(t, dsn, name, value), 1), ddl.Postgres, "")
	}
	if err := check("default_transaction_read_only", "on"); !errors.Is(err, hookonce.ErrSchemaMissing) {
		t.Errorf("without tables: %v", err)
	}
	if _, err := schema.Migrate(t.Context(), connect(t, dsn, 1), schema.Postgres, ""); err != nil {
		t.Fatal(err)
	}
	if err := check("default_transaction_read_only", "on"); err == nil || !strings.Contains(err.Error(), "default_transaction_read_only to off") {
		t.Errorf("read-only: %v", err)
	}
	if err := check("default_transaction_read_only", "off"); err != nil {
		t.Errorf("as it is: %v", err)
	}
	run(t, dsn, "CREATE ROLE writable_app", "GRANT USAGE ON SCHEMA hookonce TO writable_app")
	t.Cleanup(func() {
		if _, err := connect(t, dsn, 1).Exec("DROP OWNED BY writable_app; DROP ROLE writable_app"); err != nil {
			t.Error(err)
		}
	})
	for _, step := range []struct{ grant, says string }{
		{"SELECT ON hookonce.goose_db_version", ""}, // for nothing but the check
		{"SELECT ON ALL TABLES IN SCHEMA hookonce", "this role may read the tables in the schema hookonce and write to none"},
		{"UPDATE (state) ON hookonce.effects", ""}, // for a relay, as its owner has it
	} {
		run(t, dsn, "GRANT "+step.grant+" TO writable_app")
		err := check("role", "writable_app")
		if (err != nil) != (step.says != "") || err != nil && !strings.Contains(err.Error(), step.says) {
			t.Errorf("with %s: %v", step.grant, err)
		}
	}
}

func TestCheckRefusesAStandby(t *testing.T) {
	c := pgtest.Start(t, pgtest.Options{})
	dsn := c.DSN(t)
	if _, err := schema.Migrate(t.Context(), connect(t, dsn, 1), schema.Postgres, ""); err != nil {
		t.Fatal(err)
	}
	standby := connect(t, c.Standby(t).Alone(dsn), 1) // has what the primary had
	if err := ddl.CheckProgram(t.Context(), standby, ddl.Postgres, ""); err == nil || !strings.Contains(err.Error(), "is a standby") {
		t.Error(err)
	}
}
