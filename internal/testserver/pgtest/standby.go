package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Standby starts a second server that follows c, and has c's commits wait for it from now on. It takes no
// writes before Promote. It ends with the test. With programs that scripts/install-servers versions brought the test is
// skipped: there is no pg_basebackup among them.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
	if strings.HasPrefix(c.programs, cache()) {
		t.Skip("makes a standby, and pg_basebackup is not among the programs in ", c.programs)
	}
	s, err := c.follow()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.keeper.Close() })
	if err := c.waitFor(s); err != nil {
		t.Fatal(err)
	}
	return s
}

// follow starts a server on a copy of c's data.
func (c *Cluster) follow() (*Cluster, error) {
	s, err := place(c.fsync, c.programs)
	if err != nil {
		return nil, err
	}
	err = s.run("pg_basebackup", "--pgdata", s.data(), "--host", "127.0.0.1", "--port", strconv.Itoa(c.port),
		"--username", "postgres", "--write-recovery-conf", "--checkpoint", "fast", "--no-sync")
	if err == nil {
		err = s.configure("port = "+strconv.Itoa(s.port), "unix_socket_directories = '"+s.dir+"'", "cluster_name = 'standby'")
	}
	if err == nil {
		err = s.Restart()
	}
	if err != nil {
		s.keeper.Close()
		return nil, err
	}
	return s, nil
}

// waitFor makes commits wait until s has them on its disk, and returns when s is so far.
func (c *Cluster) waitFor(s *Cluster) error {
	const follows = `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'`
	if err := c.change(`synchronous_standby_names = 'standby'`, follows, 1); err != nil {
		text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return fmt.Errorf("pgtest: the standby does not follow: %w\n%s", err, text)
	}
	return nil
}

// change changes a setting while the server runs, and returns when the query counts as many as that leads to.
func (c *Cluster) change(setting, query string, want int) error {
	for _, sql := range []string{`ALTER SYSTEM SET ` + setting, `SELECT pg_reload_conf()`} {
		if err := c.exec(sql); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if n, err := c.count(query); err != nil || n == want {
			return err
		}
	}
	return fmt.Errorf("pgtest: waited %v after %s", patience, setting)
}

// Deafen has a standby hear nothing of its primary any more, whose commits wait from now on.
func (c *Cluster) Deafen() error {
	return c.change(`primary_conninfo = ''`, `SELECT count(*) FROM pg_stat_wal_receiver`, 0)
}

// Promote makes a standby a server of its own that takes writes, and returns when it does.
func (c *Cluster) Promote() error {
	return c.run("pg_ctl", "promote", "--wait", "--silent", "--pgdata", c.data())
}

// Alone returns the connection string that leads to this server, for a database of the server that it follows.
func (c *Cluster) Alone(dsn string) string {
	return c.url(filepath.Base(dsn[:len(dsn)-len(noTLS)]))
}

// HoldReplay has a standby apply nothing of what it receives, which its primary's commits do not wait for, or go on.
func (c *Cluster) HoldReplay(hold bool) error {
	if hold {
		return c.exec(`SELECT pg_wal_replay_pause()`)
	}
	return c.exec(`SELECT pg_wal_replay_resume()`)
}

// Either returns the connection string that leads to whichever of c and the other takes writes, for a
// database of c's.
func (c *Cluster) Either(dsn string, other *Cluster) string {
	database := filepath.Base(dsn[:len(dsn)-len(noTLS)])
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s%s&target_session_attrs=read-write",
		c.port, other.port, database, noTLS)
}
