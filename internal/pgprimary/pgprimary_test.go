package pgprimary

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

func TestMain(m *testing.M) {
	throwaway.TestsAtOnce(4)
	code := m.Run()
	err := goleak.Find(pgtest.Kept())
	for late := time.Now().Add(enoughTime); err != nil && time.Now().Before(late); { // pgx closes what it gave up in the background
		err = goleak.Find(pgtest.Kept())
	}
	if code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// patience of the tests, which may run on a busy machine.
const enoughTime = time.Minute

// following returns a pool that follows the primary.
func following(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return poolOf(t, cfg)
}

// poolOf returns a pool that is made of cfg and follows the primary.
func poolOf(t *testing.T, cfg *pgxpool.Config) *pgxpool.Pool {
	t.Helper()
	cfg.MaxConns = 4
	Follow(cfg)
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// port returns that of the server that a pool leads to.
func port(t *testing.T, pool *pgxpool.Pool) string {
	t.Helper()
	var port string
	if err := pool.QueryRow(t.Context(), `SELECT current_setting('port')`).Scan(&port); err != nil {
		t.Fatal(err)
	}
	return port
}

func portOf(t *testing.T, dsn string) string {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	return u.Port()
}

// A standby is promoted while its primary lives on and says that it takes writes: what waits there is cut, as an unknown
// outcome, everybody goes to the new primary, and whoever begins afresh as well.
func TestAFormerPrimaryIsLeft(t *testing.T) {
	t.Parallel()
	old := pgtest.Start(t, pgtest.Options{})
	dsn := old.DSN(t)
	standby := old.Standby(t)
	both := old.Either(dsn, standby)
	pool := following(t, both)
	if _, err := pool.Exec(t.Context(), `CREATE TABLE t (id int)`); err != nil {
		t.Fatal(err)
	}
	if got := port(t, pool); got != portOf(t, dsn) {
		t.Fatalf("the pool leads to %s", got)
	}
	if err := standby.Promote(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), enoughTime)
	defer cancel()
	_, err := pool.Exec(ctx, `INSERT INTO t VALUES (1)`) // which waits for a standby that there is no more
	if err == nil || ctx.Err() != nil {
		t.Fatalf("a commit that nobody has but the former primary: %v", err)
	}
	if _, err := pool.Exec(t.Context(), `INSERT INTO t VALUES (2)`); err != nil {
		t.Fatal(err)
	}
	want := portOf(t, standby.Alone(dsn))
	for _, p := range []*pgxpool.Pool{pool, following(t, both)} {
		if got := port(t, p); got != want {
			t.Errorf("a pool leads to %s, want %s", got, want)
		}
	}
}

// A server that takes connections and answers nothing holds nobody up who can go to another.
func TestAFrozenServerIsPassedBy(t *testing.T) {
	t.Parallel()
	frozen, err := net.Listen("tcp", "127.0.0.1:0") // whose connections are in the system's queue
	if err != nil {
		t.Fatal(err)
	}
	defer frozen.Close()
	dsn := pgtest.DSN(t)
	for late := time.Now().Add(enoughTime); ; { // whoever waits for the frozen one does so each time, and a busy machine takes long once in a while
		pool := following(t, strings.Replace(dsn, "@", "@"+frozen.Addr().String()+",", 1))
		began := time.Now()
		port(t, pool)
		took := time.Since(began)
		if took < askTimeout {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("it took %v", took)
		}
	}
}

// Behind one address a connection that takes no writes is given up, and the next may lead elsewhere.
func TestAReadOnlyConnectionIsLeft(t *testing.T) {
	t.Parallel()
	pool := following(t, pgtest.DSN(t))
	pid := func() (pid int) {
		if err := pool.QueryRow(t.Context(), `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	before := pid()
	if _, err := pool.Exec(t.Context(), `SELECT set_config('default_transaction_read_only', 'on', false)`); err != nil {
		t.Fatal(err)
	}
	_, err := pool.Exec(t.Context(), `CREATE TABLE t ()`)
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "25006" {
		t.Fatalf("a connection that is read-only: %v", err)
	}
	if pid() == before {
		t.Error("the connection is still used")
	}
	if _, err := pool.Exec(t.Context(), `CREATE TABLE t ()`); err != nil {
		t.Error(err)
	}
}

// Who leads is decided by what servers say: whoever takes writes on the highest timeline that was ever seen.
func TestWhoLeads(t *testing.T) {
	const down, standby = "down", "standby"
	for _, c := range []struct {
		name  string
		first map[string]string // what each server says when it is first asked: a timeline, or one of the above
		then  map[string]string // what it says later
		want  string            // empty: nobody
		says  string
	}{
		{name: "one takes writes", first: map[string]string{"a": standby, "b": "00000001", "c": down}, want: "b"},
		{name: "two take writes", first: map[string]string{"a": "00000001", "b": "00000002", "c": standby}, want: "b"},
		{name: "timelines are hexadecimal", first: map[string]string{"a": "0000000A", "b": "00000009"}, want: "a"},
		{name: "a former primary is all there is", first: map[string]string{"a": "00000001", "b": "00000002"},
			then: map[string]string{"a": "00000001", "b": down}, says: "a takes writes on timeline 00000001, and this process has seen a primary on 00000002"},
		{name: "and then the new one is back", first: map[string]string{"a": "00000001", "b": "00000002"},
			then: map[string]string{"a": "00000001", "b": "00000003"}, want: "b"},
		{name: "the cluster is made anew", first: map[string]string{"a": "00000004", "b": down},
			then: map[string]string{"a": "00000001 another", "b": down}, want: "a"},
		{name: "nobody", first: map[string]string{"a": standby, "b": down}, says: "a is a standby"},
	} {
		t.Run(c.name, func(t *testing.T) {
			says := c.first
			f := &finder{conns: map[*conn]bool{}, ask: func(_ context.Context, s server) (standing, error) {
				switch said := says[s.name]; said {
				case down:
					return standing{}, errors.New("connection refused")
				case standby:
					return standing{}, nil
				default:
					timeline, system, _ := strings.Cut(said, " ")
					return standing{Writes: true, Timeline: timeline, System: system}, nil
				}
			}}
			for name := range c.first {
				f.servers = append(f.servers, server{name: name, ways: []*pgconn.FallbackConfig{{}}})
			}
			leader, err := f.find(t.Context())
			if c.then != nil {
				says = c.then
				leader, err = f.find(t.Context())
			}
			switch {
			case c.want == "" && (err == nil || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%s leads, %v; want nobody, because %s", leader.name, err, c.says)
			case c.want != "" && (err != nil || leader.name != c.want):
				t.Errorf("%s leads, %v; want %s", leader.name, err, c.want)
			}
		})
	}
}

// Whoever gives up while servers are asked holds nobody else up.
func TestGivingUpLeavesNothingBehind(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := &finder{conns: map[*conn]bool{}, servers: []server{{name: "a", ways: []*pgconn.FallbackConfig{{}}}, {name: "b", ways: []*pgconn.FallbackConfig{{}}}}}
	var answering atomic.Bool
	f.ask = func(ctx context.Context, s server) (standing, error) {
		if answering.Load() {
			return standing{Writes: s.name == "b"}, nil
		}
		cancel()
		<-ctx.Done()
		return standing{}, ctx.Err()
	}
	if _, err := f.primary(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("whoever gave up was told %v", err)
	}
	answering.Store(true)
	if leader, err := f.primary(t.Context()); err != nil || leader.name != "b" {
		t.Errorf("the next one is led to %s, %v", leader.name, err)
	}
}

// Whoever sets the user, or a password that expires and is for one server, when a connection is made, has them on the connections
// on which the servers are asked as well, and is told the server first.
func TestAskingLogsInAsThePoolDoes(t *testing.T) {
	t.Parallel()
	cfg := besides(t, pgtest.DSN(t))
	user, server := cfg.ConnConfig.User, cfg.ConnConfig.Fallbacks[len(cfg.ConnConfig.Fallbacks)-1].Port
	cfg.ConnConfig.User = "nobody"
	cfg.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
		if c.Port == server {
			c.User = user
		}
		return nil
	}
	if got, want := port(t, poolOf(t, cfg)), strconv.Itoa(int(server)); got != want {
		t.Errorf("the pool leads to %s, want %s", got, want)
	}
}

// Hooks of the program are called as before, and several ways to one server are one server.
func TestFollowKeepsWhatIsSet(t *testing.T) {
	t.Parallel()
	cfg, err := pgxpool.ParseConfig("postgres://a@h1:1,h2:2/db?sslmode=prefer")
	if err != nil {
		t.Fatal(err)
	}
	called, stop := "", errors.New("stop")
	cfg.BeforeConnect = func(context.Context, *pgx.ConnConfig) error { return stop }
	cfg.ConnConfig.OnPgError = func(*pgconn.PgConn, *pgconn.PgError) bool { called += "error"; return true }
	Follow(cfg)
	if err := cfg.BeforeConnect(t.Context(), cfg.ConnConfig); !errors.Is(err, stop) {
		t.Errorf("BeforeConnect: %v", err)
	}
	if !cfg.ConnConfig.OnPgError(nil, &pgconn.PgError{Code: "23505"}) || called != "error" {
		t.Errorf("called: %s", called)
	}
	if all := serversOf(cfg.ConnConfig); len(all) != 2 || len(all[0].ways) != 2 || all[1].name != "h2:2" {
		t.Errorf("servers: %+v", all)
	}
}
