package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a second server that follows c, and has c's commits wait for it from now on. It takes no
// writes before Promote. It ends with the test.
func (c *Cluster) Standby(t testing.TB) *Cluster {
	t.Helper()
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

// NewStandby starts a server that follows c. c's commits wait for it if [Cluster.Quorum] says so. Close must be called.
func (c *Cluster) NewStandby() (*Cluster, error) {
	s, err := c.follow()
	if err != nil {
		return nil, fmt.Errorf("pgtest: a new standby: %w", err)
	}
	return s, nil
}

// Quorum has commits wait until any one standby has them on its disk: those of c, and, once they are promoted, those of
// its standbys. Standbys that are made afterwards do likewise.
func (c *Cluster) Quorum(standbys ...*Cluster) error {
	for _, s := range append(standbys, c) {
		if err := s.reload("synchronous_standby_names = 'ANY 1 (*)'"); err != nil {
			return err
		}
	}
	return c.Followed(len(standbys))
}

// Followed returns when so many standbys follow c.
func (c *Cluster) Followed(standbys int) error {
	return c.await(`SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming'`, standbys)
}

// Follow has a standby follow another server from now on, which need not be promoted yet.
func (c *Cluster) Follow(leader *Cluster) error { return c.reload(leader.conninfo()) }

// Received returns how much of its primary's log a standby has on its disk, once that is gone. Whatever was committed while a
// quorum of standbys was waited for, the one that has most has it.
func (c *Cluster) Received() (bytes int, err error) {
	if err := c.await(`SELECT count(*) FROM pg_stat_wal_receiver WHERE status = 'streaming'`, 0); err != nil {
		return 0, err
	}
	return c.count(`SELECT (greatest(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) - '0/0')::bigint`)
}

// conninfo is the setting by which a standby follows c.
func (c *Cluster) conninfo() string {
	return fmt.Sprintf("primary_conninfo = 'host=127.0.0.1 port=%d user=postgres'", c.port)
}

// reload changes a setting while the server runs.
func (c *Cluster) reload(setting string) error {
	if err := c.configure(setting); err != nil {
		return err
	}
	return c.exec(`SELECT pg_reload_conf()`)
}

// follow starts a server on a copy of c's data.
func (c *Cluster) follow() (*Cluster, error) {
	s, err := place(c.fsync, c.programs)
	if err != nil {
		return nil, err
	}
	if err = c.connected(s.copyFrom(c)); err == nil {
		err = s.configure("port = "+strconv.Itoa(s.port), "unix_socket_directories = '"+s.dir+"'", "cluster_name = 'standby'", c.conninfo())
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

// copyFrom copies the data of a running server as a base backup does (PostgreSQL's documentation, "Making a Base Backup
// Using the Low Level API"), for pg_basebackup does not come with every server. A slot keeps the log that the copy needs.
func (c *Cluster) copyFrom(other *Cluster) func(context.Context, *pgx.Conn) error {
	return func(ctx context.Context, conn *pgx.Conn) error {
		slot := "copy" + strconv.Itoa(c.port)
		_, err := conn.Exec(ctx, `SELECT pg_create_physical_replication_slot($1, true, true)`, slot)
		if err == nil {
			_, err = conn.Exec(ctx, `SELECT pg_backup_start($1, true)`, slot)
		}
		if err == nil {
			err = copyTree(c.data(), other.data(), func(path string) bool {
				return path != "postmaster.pid" && path != "postmaster.opts" && filepath.Dir(path) != "pg_replslot" && filepath.Dir(path) != "pg_wal"
			})
		}
		var label string
		if ctx = context.WithoutCancel(ctx); err == nil { // for the copy may have taken long
			err = conn.QueryRow(ctx, `SELECT labelfile FROM pg_backup_stop(false)`).Scan(&label)
		}
		if err == nil {
			err = copyTree(c.data(), other.data(), func(path string) bool { return filepath.Dir(path) == "pg_wal" })
		}
		for name, text := range map[string]string{"backup_label": label, "standby.signal": ""} {
			if err == nil {
				err = write(filepath.Join(c.data(), name), strings.NewReader(text))
			}
		}
		if err != nil {
			return fmt.Errorf("pgtest: a copy of %s: %w", other.data(), err)
		}
		return nil
	}
}

// copyTree copies the folders of another one, and the files that are wanted, for the server's user. What vanishes
// meanwhile is left out.
func copyTree(to, from string, want func(path string) bool) error {
	return fs.WalkDir(os.DirFS(from), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case d.IsDir():
			dir := filepath.Join(to, path)
			return errors.Join(os.MkdirAll(dir, 0o700), serverUser.Own(dir))
		case !want(path):
			return nil
		}
		f, err := os.Open(filepath.Join(from, path))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		} else if err != nil {
			return err
		}
		defer f.Close()
		return write(filepath.Join(to, path), f)
	})
}

// write makes a file of the server's user.
func write(file string, from io.Reader) error {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Close(), serverUser.Own(file))
}

// waitFor makes commits wait until s has them on its disk, and returns when s is so far.
func (c *Cluster) waitFor(s *Cluster) error {
	const follows = `SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync' AND state = 'streaming'`
	err := c.reload("synchronous_standby_names = 'standby'")
	if err == nil {
		err = c.await(follows, 1)
	}
	if err != nil {
		text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
		return fmt.Errorf("pgtest: the standby does not follow: %w\n%s", err, text)
	}
	return nil
}

// await returns when a query counts so many.
func (c *Cluster) await(query string, want int) error {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if n, err := c.count(query); err != nil || n == want {
			return err
		}
	}
	return fmt.Errorf("pgtest: waited %v for %d: %s", patience, want, query)
}

// Deafen has a standby hear nothing of its primary any more, whose commits wait from now on unless another one hears of them.
func (c *Cluster) Deafen() error {
	if err := c.reload(`primary_conninfo = ''`); err != nil {
		return err
	}
	return c.await(`SELECT count(*) FROM pg_stat_wal_receiver`, 0)
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
