package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// said returns what a check found, and how bad it is.
func said(t *testing.T, found []Finding, check string) Finding {
	t.Helper()
	for _, f := range found {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("nothing is said of %s: %v", check, found)
	return Finding{}
}

// Whoever follows the server, and whether commits wait for it, is what a takeover costs.
func TestTopology(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{})
	dsn := c.DSN(t)
	look := func(what, dsn string, level Level, text string) {
		t.Helper()
		if f := said(t, examine(t, dsn, nil), "topology"); f.Level != level || !strings.Contains(f.Text, text) {
			t.Errorf("%s: %s %s; want %s, %q", what, f.Level, f.Text, level, text)
		}
	}
	look("alone", dsn, OK, "no standby follows it")
	s := c.Standby(t)
	look("a synchronous standby", dsn, OK, "commits wait for standby, of 1 standby: nothing that was acknowledged is lost")
	look("and a URL that names both", c.Either(dsn, s), OK, "names 2 servers")
	look("for which this role does not wait", dsn+"&synchronous_commit=remote_write", Warning, "synchronous_commit is remote_write")
	exec(t, dsn, "CREATE ROLE blind LOGIN")
	look("which this role may not see", strings.Replace(dsn, "postgres@", "blind@", 1), Warning, "may not see")
	exec(t, dsn, "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
	await(t, func() bool { return said(t, examine(t, dsn, nil), "topology").Level == Warning })
	look("an asynchronous standby", dsn, Warning, "commits wait for none")
	exec(t, dsn, "ALTER SYSTEM SET synchronous_standby_names = 'another'", "SELECT pg_reload_conf()")
	await(t, func() bool { return said(t, examine(t, dsn, nil), "topology").Level == Fault })
	look("a standby that is away", dsn, Fault, "nothing can be accepted")
}

func TestStandbyForReading(t *testing.T) {
	t.Parallel()
	c := pgtest.Start(t, pgtest.Options{})
	dsn := c.DSN(t)
	s := c.Standby(t)
	look := func(what, at string, level Level, text string) {
		t.Helper()
		var f Finding
		ok := func() bool {
			f = said(t, examine(t, dsn, func(p *Patient) { p.Config.StoreRead = config.Store{Driver: config.Postgres, DSN: at} }), "store_read")
			return f.Level == level && strings.Contains(f.Text, text)
		}
		if !await(t, ok) {
			t.Errorf("%s: %s %s; want %s, %q", what, f.Level, f.Text, level, text)
		}
	}
	look("a standby", s.Alone(dsn), OK, "has everything")
	if err := s.HoldReplay(true); err != nil {
		t.Fatal(err)
	}
	exec(t, dsn, "CREATE TABLE more ()")
	look("one that is behind", s.Alone(dsn), OK, "bytes of log behind")
	look("the primary itself", dsn, Warning, "is no standby")
	look("another database", pgtest.DSN(t), Fault, "no copy of it")
	if err := s.Promote(); err != nil {
		t.Fatal(err)
	}
	look("one that went another way", s.Alone(dsn), Fault, "diverged from the primary's")
	if err := s.Stop(true); err != nil {
		t.Fatal(err)
	}
	look("one that is away", s.Alone(dsn), Warning, "cannot be asked")
}

// await waits until done reports true, and reports false when that takes too long.
func await(t *testing.T, done func() bool) bool {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); <-time.After(50 * time.Millisecond) {
		if done() {
			return true
		}
	}
	return false
}
