// Package mariadbtest runs throwaway MariaDB servers for tests, as package pgtest does PostgreSQL's.
//
// [DSN] is what tests need: a fresh, empty database on a server that all tests of the process share. The
// server listens on a free port of the loopback interface, lets root in without a password there, keeps its
// files in a temporary folder, and ends with the test process, however that ends. The system's own server
// is never touched.
package mariadbtest

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// patience bounds everything that waits for a server.
const patience = time.Minute

// shared is the server behind DSN, started by the first test that needs it.
var shared = sync.OnceValues(func() (*server, error) { return start(throwaway.MemoryDir, fast...) })

// databases counts those that DSN made.
var databases atomic.Int64

// DSN returns a fresh, empty database on the server that the tests of this process share, in the form of
// the driver github.com/go-sql-driver/mysql, without parameters. The database is dropped when the test
// ends. The server does not sync to disk.
//
// Under -short the test is skipped; a missing MariaDB fails it.
func DSN(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs MariaDB: run without -short")
	}
	s, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("test_%d", databases.Add(1))
	if err := s.exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.exec("DROP DATABASE " + name); err != nil {
			t.Error(err)
		}
	})
	return s.dsn(name)
}

// Durable returns what DSN does, on a server of its own that syncs every commit to disk, as in production.
func Durable(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs MariaDB: run without -short")
	}
	s, err := start(throwaway.DiskDir, "--innodb-flush-log-at-trx-commit=1", "--innodb-log-file-size=128M")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.keeper.Close() })
	if err := s.exec("CREATE DATABASE test_1"); err != nil {
		t.Fatal(err)
	}
	return s.dsn("test_1")
}

func (s *server) dsn(database string) string {
	return fmt.Sprintf("root@tcp(127.0.0.1:%d)/%s", s.port, database)
}

// exec runs one statement on a connection of its own.
func (s *server) exec(statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	db, err := sql.Open("mysql", s.dsn(""))
	if err != nil {
		return fmt.Errorf("mariadbtest: %w", err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("mariadbtest: %s: %w", statement, err)
	}
	return nil
}
