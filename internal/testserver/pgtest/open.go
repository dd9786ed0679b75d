package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Open starts a cluster for a program that is no test, such as the benchmarks. Close must be called;
// the server also ends when the process does.
func Open(o Options) (*Cluster, error) { return start(o) }

// Close stops the server and removes its files.
func (c *Cluster) Close() error { return c.keeper.Close() }

// CreateDatabase makes a fresh, empty database and returns its connection string.
func (c *Cluster) CreateDatabase() (dsn string, err error) {
	name, err := c.createDatabase()
	if err != nil {
		return "", err
	}
	return c.url(name), nil
}

// Addr returns where the server listens.
func (c *Cluster) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(c.port)) }

// Version returns what the server says of itself, such as "PostgreSQL 15.18".
func (c *Cluster) Version() (version string, err error) {
	err = c.connected(func(ctx context.Context, conn *pgx.Conn) error {
		return conn.QueryRow(ctx, `SELECT 'PostgreSQL ' || split_part(current_setting('server_version'), ' ', 1)`).Scan(&version)
	})
	return version, err
}

// KillBackend kills a client's process, if there is one, as kill -9 does, after which the server ends all others and recovers.
// It returns when the server takes connections again.
func (c *Cluster) KillBackend() error {
	pid, err := c.count(`SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`)
	if err != nil || pid == 0 {
		return err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("pgtest: backend %d: %w", pid, err)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err = c.count(`SELECT 1`); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
