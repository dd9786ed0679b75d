package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/conformance"
	"github.com/hookonce/hookonce/internal/testserver/pgproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

func postgres(dsn, name string) conformance.Target {
	return conformance.Target{Kind: conformance.Postgres, URL: dsn, Name: conformance.Prefix + "_" + name, Cases: "^engine$"}
}

// schemas are those whose names begin so.
func schemas(t testing.TB, dsn, name string) string {
	t.Helper()
	return query[string](t, dsn, `SELECT coalesce(string_agg(nspname, ' ' ORDER BY nspname), '') FROM pg_namespace WHERE nspname LIKE '`+conformance.Prefix+"_"+name+`%'`)
}

// What the suites made is removed also when they are ended in the middle, with transactions open.
func TestInterruptedSuitesLeaveNothing(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	target := postgres(dsn, "stopped")
	target.Cases = "^(engine|library|journal|gateways|history)$"
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	report, err := examine(t, ctx, target, func(c conformance.Case) {
		if strings.HasPrefix(c.Name, "library/") { // by then there are tables
			cancel(errors.New("received interrupt"))
		}
	})
	if err != nil || report.Conforms() || report.Aborted != "received interrupt" {
		t.Errorf("%v, %+v", err, report)
	}
	if left := schemas(t, dsn, "stopped"); left != "" {
		t.Errorf("%s are left", left)
	}
}

// What somebody else makes while the suites run is never touched, whatever its name: it may be a gateway's, with events.
func TestWhatIsMadeMeanwhileStays(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	mine := conformance.Prefix + "_mine"
	var want string
	report, err := examine(t, t.Context(), postgres(dsn, "mine"), func(conformance.Case) {
		if want != "" {
			return
		}
		place := query[string](t, dsn, `SELECT nspname FROM pg_namespace WHERE nspname ~ '^`+mine+`_[a-z0-9]+$'`)
		for _, name := range []string{mine, mine + "_library_1", mine + "_shop_1", place + "_shop_1"} {
			exec(t, dsn, `CREATE SCHEMA `+name, `CREATE TABLE `+name+`.events ()`)
			want += name + " "
		}
	})
	if err != nil || !report.Conforms() {
		t.Fatalf("%v, %+v", err, report)
	}
	got := strings.Fields(schemas(t, dsn, "mine"))
	if strings.Join(got, " ") != strings.Join(slices.Sorted(slices.Values(strings.Fields(want))), " ") {
		t.Errorf("%q are left, want %q", got, want)
	}
}

// A name under which there may be something in use is refused before anything is asked of the engine.
func TestNamesInUseAreRefused(t *testing.T) {
	for _, name := range []string{"hookonce", "mine", "Mine", "pg_mine", conformance.Prefix, conformance.Prefix + "_" + strings.Repeat("m", 8), conformance.Prefix + `_m"; DROP`} {
		report, err := examine(t, t.Context(), conformance.Target{Kind: conformance.Postgres, URL: "postgres://127.0.0.1:1/x", Name: name}, nil)
		if report != nil || err == nil || !strings.Contains(err.Error(), "leave --schema out, or let it be hookonce_conformance_") {
			t.Errorf("%q: %+v, %v", name, report, err)
		}
	}
}

// A role that may not make schemas is told which right is missing.
func TestTheMissingRightIsNamed(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn := pgtest.DSN(t)
	exec(t, dsn, `CREATE ROLE conformance_guest LOGIN`)
	t.Cleanup(func() {
		exec(noContext{t}, dsn, `DROP ROLE conformance_guest`)
	})
	guest := strings.Replace(dsn, "postgres@", "conformance_guest@", 1)
	report, err := examine(t, t.Context(), postgres(guest, "guest"), nil)
	if report != nil || err == nil || !strings.Contains(err.Error(), "GRANT CREATE ON DATABASE ") || !strings.Contains(err.Error(), `TO "conformance_guest"`) {
		t.Errorf("%+v, %v", report, err)
	}
	// With that right, and no other, all can be run.
	exec(t, dsn, `DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO conformance_guest', current_database()); END $$`)
	t.Cleanup(func() { exec(noContext{t}, dsn, `DROP OWNED BY conformance_guest`) })
	target := postgres(guest, "guest")
	target.Cases = "^(engine|journal)$/^(accept|an?|clock|names|purge|.*lock.*)"
	if report := examined(t, target); !report.Conforms() {
		t.Errorf("%+v", report)
	}
}

// noContext is a test whose own context may have ended, in a cleanup.
type noContext struct{ testing.TB }

func (noContext) Context() context.Context { return context.Background() }

// Reports are sent to strangers.
func TestReportsNameNoServer(t *testing.T) {
	t.Parallel()
	dsn := strings.Replace(pgtest.DSN(t), "postgres@", "postgres:not-a-real-password@", 1)
	dsn = strings.Replace(dsn, "127.0.0.1", "localhost", 1)
	broken := pgproxy.New(t, dsn, rewrite(`^SAVEPOINT here$`, `SELECT pg_terminate_backend(pg_backend_pid())`))
	broken = strings.Replace(broken, "127.0.0.1", "localhost", 1) // drivers also say what a name stands for
	report := examined(t, postgres(broken, "quiet"))
	text, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if report.Failed == 0 || !strings.Contains(string(text), `"engine":"PostgreSQL `) {
		t.Errorf("%s", text)
	}
	for _, secret := range secrets {
		if strings.Contains(string(text), secret) {
			t.Errorf("the report says %q: %s", secret, text)
		}
	}
	for _, url := range []string{
		"postgres://postgres:not-a-real-password@localhost:1/x?sslmode=disable",
		"postgres:///x?host=localhost&port=1&user=somebody&password=not-a-real-password&sslmode=disable",
		"redis://:not-a-real-password@localhost:1",
		"mysql://somebody:not-a-real-password@localhost:1/",
	} {
		target, err := conformance.Parse(url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = examine(t, t.Context(), target, nil)
		if err == nil {
			t.Fatalf("%s: there is a server", url)
		}
		for _, secret := range secrets {
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%q is said: %v", secret, err)
			}
		}
	}
}

// secrets are what no report says.
var secrets = []string{"not-a-real-password", "127.0.0.1", "::1", "localhost"}

// A process that dies, or hangs, is a finding that says so.
func TestSuitesThatDoNotEnd(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	const begun = `cat >/dev/null & printf '\026=== RUN   engine\n\026=== RUN   engine/it_waits\n    x.go:1: for something\n'; `
	for name, tt := range map[string]struct{ script, aborted, failed string }{
		"dies":   {begun + `echo 'panic: of that' >&2; exit 3`, "the suites ended too soon (exit status 3): panic: of that", "engine/it waits"},
		"hangs":  {begun + `exec sleep 60`, "nothing happened for 300ms", "engine/it waits"},
		"begins": {`exit 2`, "the suites ended too soon (exit status 2): ", ""},
		"no":     {`exit 0`, "", ""},
		"lies": {`cat >/dev/null & printf '\026=== RUN   engine\n\026=== RUN   engine/it\n\026    --- PASS: engine/it (0.00s)\n\026--- PASS: engine (0.00s)\n'; exit 1`,
			"the suites ended too soon (exit status 1): ", ""},
	} {
		report, err := conformance.Examine(t.Context(), postgres(dsn, "odd"), conformance.Options{
			Command: []string{"sh", "-c", tt.script}, Stall: 300 * time.Millisecond,
		})
		if err != nil || report.Conforms() || report.Aborted != tt.aborted {
			t.Errorf("%s: %v, %+v", name, err, report)
			continue
		}
		if tt.failed != "" && (report.Failed != 1 || report.Cases[0].Name != tt.failed) {
			t.Errorf("%s: %+v", name, report.Cases)
		}
	}
}
