// Package pgtest runs throwaway PostgreSQL servers for tests.
//
// [DSN] is what most tests need: a fresh, empty database on a server that all tests of the process
// share. [Start] gives a test a server of its own, to stop and kill. Servers listen on a free port
// of the loopback interface, trust everybody there, keep their files in a temporary folder, and end
// with the test process, however that ends. The system's own cluster is never touched.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"
)

// patience bounds everything that waits for a server.
const patience = time.Minute

// shared is the server behind DSN, started by the first test that needs it.
var shared = sync.OnceValues(func() (*Cluster, error) { return start(Options{}) })

// kept are connections to the shared server, by which databases are made and dropped: it takes longer to begin one than
// for much that tests ask.
var kept = make(chan *pgx.Conn, 4)

// Kept has goleak look past what pgx leaves running on a connection that rests: a goroutine that reads until the next answer,
// where one came before a slow write had ended, as on a busy machine. The connections by which databases are made and dropped
// last as long as the process.
func Kept() goleak.Option {
	return goleak.IgnoreAnyFunction("github.com/jackc/pgx/v5/pgconn/internal/bgreader.(*BGReader).bgRead")
}

// onShared runs one statement on the shared server.
func onShared(c *Cluster, sql string) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var conn *pgx.Conn
	select {
	case conn = <-kept:
	default:
	}
	if conn == nil || conn.Ping(ctx) != nil { // a test may have ended it
		if conn, err = pgx.Connect(ctx, c.url("postgres")); err != nil {
			return fmt.Errorf("pgtest: %w", err)
		}
	}
	_, err = conn.Exec(ctx, sql, pgx.QueryExecModeSimpleProtocol)
	if err == nil {
		select {
		case kept <- conn:
			return nil
		default:
		}
	} else {
		err = fmt.Errorf("pgtest: %s: %w", sql, err)
	}
	_ = conn.Close(ctx)
	return err
}

// DSN returns the connection string of a fresh, empty database on the server that the tests of this
// process share. The database is dropped when the test ends. The server does not sync to disk.
//
// Under -short the test is skipped; a missing PostgreSQL fails it.
func DSN(t testing.TB) string {
	t.Helper()
	skipShort(t)
	c, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	name, create := c.nextDatabase()
	if err := onShared(c, create); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := onShared(c, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return c.url(name)
}

func skipShort(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs PostgreSQL: run without -short")
	}
}

// DSN returns the connection string of a fresh, empty database on the cluster, which must run.
func (c *Cluster) DSN(t testing.TB) string {
	t.Helper()
	name, err := c.createDatabase()
	if err != nil {
		t.Fatal(err)
	}
	return c.url(name)
}

func (c *Cluster) url(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s%s", c.port, database, noTLS)
}

const noTLS = "?sslmode=disable"

func (c *Cluster) createDatabase() (string, error) {
	name, create := c.nextDatabase()
	return name, c.exec(create)
}

// nextDatabase names a database, and the statement that makes it.
func (c *Cluster) nextDatabase() (name, create string) {
	name = fmt.Sprintf("test_%d", c.databases.Add(1))
	create = "CREATE DATABASE " + name + " TEMPLATE template0"
	if !c.fsync {
		create += " STRATEGY FILE_COPY" // a third of the work of writing it to the log, where no file has to reach the disk
	}
	return name, create
}

// exec runs one statement as the superuser on a connection of its own.
func (c *Cluster) exec(sql string) error {
	return c.connected(func(ctx context.Context, conn *pgx.Conn) error {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("pgtest: %s: %w", sql, err)
		}
		return nil
	})
}

// count asks for one number as exec does.
func (c *Cluster) count(sql string) (n int, err error) {
	err = c.connected(func(ctx context.Context, conn *pgx.Conn) error { return conn.QueryRow(ctx, sql).Scan(&n) })
	return n, err
}

// connected runs work on a connection of the superuser's.
func (c *Cluster) connected(work func(context.Context, *pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.connectedWithin(ctx, work)
}

// connectedWithin is connected for as long as ctx is good.
func (c *Cluster) connectedWithin(ctx context.Context, work func(context.Context, *pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, c.url("postgres"))
	if err != nil {
		return fmt.Errorf("pgtest: %w", err)
	}
	defer conn.Close(ctx)
	return work(ctx, conn)
}

// tempDir makes a folder that the server's user can write to, by one of the functions that make folders.
func tempDir(makeDir func(prefix string) (string, error)) (string, error) {
	dir, err := makeDir("hookonce-pg-")
	if err != nil {
		return "", err
	}
	if err := errors.Join(serverUser.Own(dir), reachable(dir)); err != nil {
		return "", errors.Join(err, os.Remove(dir))
	}
	return dir, nil
}

// reachable reports whether the server's user can come to its folder, which depends on those that it is in.
func reachable(dir string) error {
	test := exec.Command("/bin/sh", "-c", `test -w "$1"`, "sh", dir)
	if err := serverUser.Run(test); err != nil {
		return err
	}
	if err := test.Run(); err != nil {
		return fmt.Errorf("the user %s, as whom the server runs, cannot enter %s: set TMPDIR to a folder that everybody can enter, as /tmp is", serverUser, filepath.Dir(dir))
	}
	return nil
}
