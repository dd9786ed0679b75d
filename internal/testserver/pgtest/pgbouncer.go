package pgtest

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// PgBouncer starts a connection pooler in transaction pooling mode in front of the database that dsn
// names, and returns the connection string that leads through it. Settings are further lines of
// pgbouncer.ini, such as "pool_mode = session", which win over the ones that this package sets. It ends
// with the test. A missing pgbouncer fails the test.
func PgBouncer(t testing.TB, dsn string, settings ...string) string {
	t.Helper()
	server, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	port, err := startBouncer(t, server, settings)
	if err != nil {
		t.Fatal("pgtest: pgbouncer: ", err)
	}
	through := *server
	through.Host = fmt.Sprintf("127.0.0.1:%d", port)
	return through.String()
}

// Sessions returns a connection string by which the database that dsn names is reached through a pooler in session mode, until the
// test ends. A connection has a session to itself, as without the pooler, and what it leaves in it is discarded. The server's
// process goes on and serves the next connection: where cases connect anew all the time, to start processes takes longer
// than what they ask for. Tests that look at the server's processes, or end them, connect without it.
func Sessions(t testing.TB, dsn string) string {
	t.Helper()
	return PgBouncer(t, dsn, "pool_mode = session", "default_pool_size = 150", "server_round_robin = 0", "server_idle_timeout = 5")
}

// Three servers' connections for any number of clients: consecutive transactions of a client meet
// different backends, which is what a pooler breaks programs with.
const bouncerConfig = `
[databases]
* = host=%s port=%s user=%s
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 500
server_round_robin = 1
logfile = %s
`

func startBouncer(t testing.TB, server *url.URL, settings []string) (port int, err error) {
	path, err := throwaway.Program("PgBouncer", "/usr/sbin/pgbouncer", "pgbouncer") // the first is not in everybody's PATH
	if err != nil {
		return 0, err
	}
	dir, err := tempDir(throwaway.MemoryDir)
	if err != nil {
		return 0, err
	}
	if port, err = throwaway.FreePort(); err != nil {
		return 0, err
	}
	ini := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf(bouncerConfig, server.Hostname(), server.Port(), server.User.Username(), port, filepath.Join(dir, "log"))
	text += strings.Join(settings, "\n") + "\n"
	if err := os.WriteFile(ini, []byte(text), 0o644); err != nil {
		return 0, err
	}
	end, err := attend(`"$1" -q "$2/pgbouncer.ini" </dev/null >/dev/null 2>&1 & cat >/dev/null; kill -9 $!; rm -rf "$2"`, path, dir)
	if err != nil {
		return 0, err
	}
	t.Cleanup(func() { end.Close() })
	return port, awaitPort(port, true)
}
