package pgprimary

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// besides returns a configuration of two servers: nobody, and the one of dsn.
func besides(t *testing.T, dsn string) *pgxpool.Config {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(strings.Replace(dsn, "@", "@127.0.0.1:1,", 1))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// A connection is handed out if the program's own hook says so, in either form; none that was cut
// is, and no hook is asked of it.
func TestConnectionsAreHandedOutAsTheProgramSays(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	for name, set := range map[string]func(cfg *pgxpool.Config, says func() bool){
		"no hook": func(*pgxpool.Config, func() bool) {},
		"PrepareConn": func(cfg *pgxpool.Config, says func() bool) {
			cfg.PrepareConn = func(context.Context, *pgx.Conn) (bool, error) { return says(), nil }
		},
		"BeforeAcquire": func(cfg *pgxpool.Config, says func() bool) {
			//lint:ignore SA1019 programs may still set it
			cfg.BeforeAcquire = func(context.Context, *pgx.Conn) bool { return says() }
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked, yes := 0, true
			cfg := besides(t, dsn)
			set(cfg, func() bool { asked++; return yes })
			Follow(cfg)
			if err := cfg.BeforeConnect(t.Context(), cfg.ConnConfig); err != nil {
				t.Fatal(err)
			}
			c, err := pgx.ConnectConfig(t.Context(), cfg.ConnConfig)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close(context.WithoutCancel(t.Context())) }()
			hands := func(what string, want bool, times int) {
				t.Helper()
				if name == "no hook" {
					times = 0
				}
				if got, err := cfg.PrepareConn(t.Context(), c); got != want || err != nil || asked != times {
					t.Errorf("%s: %v, %v, the hook was asked %d times; want %v, and %d times", what, got, err, asked, want, times)
				}
			}
			hands("a connection", true, 1)
			yes = false
			hands("one that the program refuses", name == "no hook", 2)
			yes = true
			c.PgConn().Conn().(*conn).leave()
			hands("one that was cut", false, 2)
		})
	}
}

// A primary that takes no writes, because its database or its role says so, leads nobody.
func TestAReadOnlyPrimaryDoesNotLead(t *testing.T) {
	t.Parallel()
	dsn := pgtest.DSN(t)
	admin, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = admin.Close(context.WithoutCancel(t.Context())) }()
	const readOnly = `DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$`
	if _, err := admin.Exec(t.Context(), readOnly); err != nil {
		t.Fatal(err)
	}
	cfg := besides(t, dsn)
	Follow(cfg)
	if err := cfg.BeforeConnect(t.Context(), cfg.ConnConfig); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("a primary that takes no writes leads: %v", err)
	}
}

// What is tried first at a server, and what then, is tried at that one alone.
func TestServersAreReachedInAllTheirWays(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig("postgres://a@h1:1,h2:2/db?sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range serversOf(cfg.ConnConfig) {
		c := cfg.ConnConfig.Copy()
		s.lead(c)
		if c.TLSConfig == nil || len(c.Fallbacks) != 1 || c.Fallbacks[0].TLSConfig != nil || c.Host != c.Fallbacks[0].Host {
			t.Errorf("%s is reached at %s, with TLS: %v, and then by %+v", s.name, c.Host, c.TLSConfig != nil, c.Fallbacks)
		}
	}
}

// Who goes on asking waits since the first question, until something is answered.
func TestWaitBeginsWithTheFirstQuestion(t *testing.T) {
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := &conn{Conn: ours}
	buffer := make([]byte, 1)
	ask := func() {
		t.Helper()
		go func() { _, _ = c.Write([]byte{1}) }()
		if _, err := io.ReadFull(theirs, buffer); err != nil {
			t.Fatal(err)
		}
	}
	ask()
	first := c.asked.Load()
	for time.Now().UnixNano() == first {
	}
	ask()
	if again := c.asked.Load(); again != first || c.waits() <= 0 {
		t.Errorf("it waits since %d, and after another question since %d", first, again)
	}
	go func() { _, _ = theirs.Write([]byte{1}) }()
	if _, err := c.Read(buffer); err != nil || c.waits() != 0 {
		t.Errorf("after an answer it waits for %v, %v", c.waits(), err)
	}
}
