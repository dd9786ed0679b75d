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

// Commit commits something that has to reach the disk, and the standbys that commits wait for.
func (c *Cluster) Commit(patience time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.connectedWithin(ctx, func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `SELECT pg_logical_emit_message(true, 'pgtest', '')`)
		return err
	})
}

// KillBackend kills a client's process, if there is one, as kill -9 does, after which the server ends all others and recovers.
// It returns when the server takes connections again.
func (c *Cluster) KillBackend() error {
	var killed bool
	err := c.connected(func(ctx context.Context, conn *pgx.Conn) (err error) {
		killed, err = killOther(ctx, conn)
		return err
	})
	if err != nil || !killed {
		return err
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		if _, err = c.count(`SELECT 1`); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// killOther kills the process of another client, if there is one, and returns when the server has ended this one for it.
func killOther(ctx context.Context, conn *pgx.Conn) (killed bool, err error) {
	var pid int
	err = conn.QueryRow(ctx, `SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`).Scan(&pid)
	if err != nil || pid == 0 {
		return false, err
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
		return false, nil
	} else if err != nil {
		return false, fmt.Errorf("pgtest: backend %d: %w", pid, err)
	}
	if _, err := conn.WaitForNotification(ctx); ctx.Err() != nil {
		return false, fmt.Errorf("pgtest: backend %d was killed, and the server goes on: %w", pid, err)
	}
	return true, nil
}
