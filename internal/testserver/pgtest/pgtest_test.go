package pgtest

import (
	"context"
	"errors"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

func query(t *testing.T, dsn, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	var answer string
	if err := conn.QueryRow(t.Context(), sql).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return answer
}

func TestEveryDSNIsAFreshDatabase(t *testing.T) {
	one, two := DSN(t), DSN(t)
	if a, b := query(t, one, "SELECT current_database()::text"), query(t, two, "SELECT current_database()::text"); a == b {
		t.Errorf("both are %s", a)
	}
}

func TestClusterSurvivesKillAndStop(t *testing.T) {
	testskip.Long(t)
	c := Start(t, Options{Fsync: true})
	dsn := c.DSN(t)
	if got := query(t, dsn, "SHOW fsync"); got != "on" {
		t.Fatalf("fsync = %s", got)
	}
	down := map[string]func() error{
		"kill":      c.Kill,
		"immediate": func() error { return c.Stop(true) },
		"fast":      func() error { return c.Stop(false) },
	}
	for name, stop := range down {
		if err := stop(); err != nil {
			t.Fatal(name, err)
		}
		if conn, err := pgx.Connect(t.Context(), dsn); err == nil {
			conn.Close(t.Context())
			t.Fatalf("%s: the server still answers", name)
		}
		if err := c.Restart(); err != nil {
			t.Fatal(name, err)
		}
		query(t, dsn, "SELECT current_database()::text")
	}
}

// What was committed before the first server died is there when the second takes its place, and a
// connection string that names both leads there.
func TestStandbyTakesOver(t *testing.T) {
	c := Start(t, Options{})
	dsn := c.DSN(t)
	s := c.Standby(t)
	either := c.Either(dsn, s)
	conn, err := pgx.Connect(t.Context(), either)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), `CREATE TABLE kept ()`); err != nil {
		t.Fatal(err)
	}
	if err := c.Kill(); err != nil {
		t.Fatal(err)
	}
	if conn, err := pgx.Connect(t.Context(), either); err == nil {
		conn.Close(t.Context())
		t.Fatal("somebody takes writes although nobody was promoted")
	}
	if err := s.Promote(); err != nil {
		t.Fatal(err)
	}
	if got := query(t, either, `SELECT coalesce(to_regclass('kept')::text, 'lost')`); got != "kept" {
		t.Error(got)
	}
}

// Commits wait for one of two standbys. The one that has more of the log is promoted, and the other follows it: what was
// committed is there, and commits wait for that one from then on.
func TestOneOfTwoStandbysTakesOver(t *testing.T) {
	c := Start(t, Options{Settings: []string{"wal_retrieve_retry_interval = 100ms"}})
	standbys := []*Cluster{newStandby(t, c), newStandby(t, c)}
	if err := c.Quorum(standbys...); err != nil {
		t.Fatal(err)
	}
	next, other := standbys[1], standbys[0]
	if err := other.Deafen(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.exec(`CREATE TABLE kept ()`), c.Kill()); err != nil {
		t.Fatal(err)
	}
	most, errMost := next.Received()
	less, errLess := other.Received()
	if most <= less || errMost != nil || errLess != nil {
		t.Fatalf("the standby that heard all has %d bytes of the log, the deaf one %d; %v, %v", most, less, errMost, errLess)
	}
	if err := errors.Join(other.Follow(next), next.Promote()); err != nil {
		t.Fatal(err)
	}
	if got := query(t, next.url("postgres"), `SELECT coalesce(to_regclass('kept')::text, 'lost')`); got != "kept" {
		t.Error(got)
	}
	if err := next.Commit(patience); err != nil { // for which other has to follow
		t.Error(err)
	}
	if err := other.Deafen(); err != nil {
		t.Fatal(err)
	}
	if next.Commit(100*time.Millisecond) == nil {
		t.Error("a commit waited for nobody")
	}
}

func newStandby(t *testing.T, c *Cluster) *Cluster {
	t.Helper()
	s, err := c.NewStandby()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// A server's process serves one connection after the other, of which none finds what another one left.
func TestSessionsServeOneAfterTheOther(t *testing.T) {
	dsn := Sessions(t, DSN(t))
	backends := map[string]bool{}
	for range 2 {
		var held []*pgx.Conn
		for range 20 {
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(context.Background())
			held = append(held, conn)
			var pid, found string
			if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()::text, coalesce(current_setting('test.kept', true), '')").Scan(&pid, &found); err != nil {
				t.Fatal(err)
			}
			if found != "" {
				t.Errorf("a connection finds %q, which another one left", found)
			}
			backends[pid] = true
			if _, err := conn.Exec(t.Context(), "SET test.kept = 'something'"); err != nil {
				t.Fatal(err)
			}
		}
		for _, conn := range held {
			conn.Close(t.Context())
		}
	}
	// The pooler takes note of an end in its own time, so that a few more may have begun.
	if n := len(backends); n < 20 || n > 30 {
		t.Errorf("40 connections, 20 at once, met %d backends", n)
	}
}

func TestPgBouncerPoolsTransactions(t *testing.T) {
	dsn := PgBouncer(t, DSN(t))
	conn, err := pgx.Connect(t.Context(), dsn+"&default_query_exec_mode=exec")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	backends := map[int]bool{}
	for range 8 {
		// Two at a time, so that the pooler opens more than one connection.
		other, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		tx, err := other.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var pid int
		if err := conn.QueryRow(t.Context(), "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		backends[pid] = true
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		other.Close(t.Context())
	}
	if len(backends) < 2 {
		t.Errorf("8 statements on one connection met %d backend: that is not transaction pooling", len(backends))
	}
}

// A killed test process leaves no server behind.
func TestServerEndsWithItsProcess(t *testing.T) {
	const env = "PGTEST_DIE"
	if os.Getenv(env) != "" {
		fmt.Printf("dir %s \n", Start(t, Options{}).dir)
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		t.Fatal("still alive ", err)
	}
	skipShort(t)
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.Output()
	if err == nil {
		t.Fatalf("the process was not killed: %s", out)
	}
	_, rest, _ := strings.Cut(string(out), "dir ")
	dir, _, found := strings.Cut(rest, " ")
	if !found {
		t.Fatalf("no folder in %q", out)
	}
	awaitGone(t, dir)
}

func awaitGone(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	t.Errorf("%s is still there", dir)
}

// The server that tests share is the one that the variable asks for.
func TestSharedMajor(t *testing.T) {
	major, err := strconv.Atoi(os.Getenv(Variable))
	if err != nil {
		t.Skip("no version is asked for")
	}
	if got := query(t, DSN(t), "SHOW server_version_num"); got[:len(got)-4] != strconv.Itoa(major) {
		t.Errorf("asked for %d, and it is %s", major, got)
	}
}

// A server of the version that is asked for runs, and one that is not there is a reason to install it.
func TestMajor(t *testing.T) {
	for _, major := range Majors {
		if !Has(major) {
			t.Logf("PostgreSQL %d is not on this machine", major)
			continue
		}
		t.Run(fmt.Sprint(major), func(t *testing.T) {
			got := query(t, Start(t, Options{Major: major}).DSN(t), "SHOW server_version_num")
			if !strings.HasPrefix(got, fmt.Sprint(major)) || len(got) != 6 {
				t.Errorf("asked for %d, and it is %s", major, got)
			}
		})
	}
	if _, err := programs(9); err == nil || !strings.Contains(err.Error(), "install-servers versions") {
		t.Error(err)
	}
}

// The variable chooses the servers that no test asks a version of, by number or by folder.
func TestVariable(t *testing.T) {
	dir := t.TempDir()
	t.Setenv(Variable, dir)
	if got, err := programs(0); err != nil || got != dir {
		t.Error(got, err)
	}
	for _, major := range Majors {
		t.Setenv(Variable, fmt.Sprint(major))
		if got, err := programs(0); err == nil != Has(major) || got != programsOf(major) {
			t.Error(major, got, err)
		}
	}
}

// A folder that the server's user cannot enter is refused at once, and nothing is left there; from one where it can make
// nothing, its files are removed at the end.
func TestFolderOfTheServersUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the server runs as this user, who made the folder")
	}
	for _, mode := range []os.FileMode{0o700, 0o755} {
		within, err := os.MkdirTemp("/tmp", "hookonce-folder-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(within) })
		if err := os.Chmod(within, mode); err != nil {
			t.Fatal(err)
		}
		t.Setenv("TMPDIR", within)
		dir, err := tempDir(throwaway.DiskDir)
		if enters := mode == 0o755; enters {
			if err != nil {
				t.Fatalf("mode %o: %v", mode, err)
			}
			k, err := (&Cluster{dir: dir}).keep()
			if err != nil {
				t.Fatal(err)
			}
			if err := k.Close(); err != nil {
				t.Errorf("mode %o: %v", mode, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), "set TMPDIR") || !strings.Contains(err.Error(), within) {
			t.Errorf("mode %o: %v", mode, err)
		}
		if left, err := os.ReadDir(within); err != nil || len(left) > 0 {
			t.Errorf("mode %o: left %v, %v", mode, left, err)
		}
	}
}

// slowWriter is a connection on which a write ends when its answer has been read, and the next is waited for.
type slowWriter struct {
	net.Conn
	slow  atomic.Bool
	reads chan struct{} // that have begun, while it is slow
}

func (c *slowWriter) Read(p []byte) (int, error) {
	if c.slow.Load() {
		c.reads <- struct{}{}
	}
	return c.Conn.Read(p)
}

func (c *slowWriter) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	if c.slow.Load() {
		<-c.reads
		<-c.reads
		c.slow.Store(false)
	}
	return n, err
}

// What pgx leaves on a connection that rests is what [Kept] looks past, and nothing else hides it.
func TestKeptConnectionsAreNoLeaks(t *testing.T) {
	cfg, err := pgx.ParseConfig(DSN(t))
	if err != nil {
		t.Fatal(err)
	}
	var raw *slowWriter
	dial := cfg.DialFunc
	cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		raw = &slowWriter{Conn: conn, reads: make(chan struct{}, 2)}
		return raw, err
	}
	conn, err := pgx.ConnectConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	before := goleak.IgnoreCurrent()
	raw.slow.Store(true)
	if _, err := conn.Exec(t.Context(), "SELECT 1", pgx.QueryExecModeSimpleProtocol); err != nil {
		t.Fatal(err)
	}
	if err := goleak.Find(before); err == nil {
		t.Error("pgx leaves nothing: Kept is for nothing")
	}
	if err := goleak.Find(before, Kept()); err != nil {
		t.Error(err)
	}
}
