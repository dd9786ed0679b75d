package sqlstore_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/mariadbtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// silent is a connection that is cut without a word when the statement comes.
type silent struct {
	net.Conn
	at  []byte
	cut atomic.Bool
}

func (c *silent) Write(b []byte) (int, error) {
	if c.cut.Load() || bytes.Contains(b, c.at) {
		c.cut.Store(true)
		return len(b), nil
	}
	return c.Conn.Write(b)
}

// A network that goes silent before the commit holds nobody up for longer than the commit's deadline, and the
// work is rolled back.
func TestASilentNetworkIsNotWaitedFor(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	dsn := mariadbtest.DSN(t)
	mysql.RegisterDialContext("silent", func(ctx context.Context, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		return &silent{Conn: conn, at: []byte("RELEASE SAVEPOINT")}, err
	})
	t.Cleanup(func() { mysql.DeregisterDialContext("silent") })
	cfg, err := mysql.ParseDSN(dsn)
	must(t, err)
	cfg.Net = "silent"
	connector, err := mysql.NewConnector(cfg)
	must(t, err)
	db := sql.OpenDB(connector)
	t.Cleanup(func() { db.Close() })
	s := sqlstore.New(db, sqlstore.MySQL)
	_, err = schema.Migrate(t.Context(), db, schema.MySQL, schema.DefaultName)
	must(t, err)
	_, err = s.Within(t.Context(), request, func(*sql.Tx, hookonce.Claim) error { return nil })
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, hookonce.ErrUnknownOutcome) {
		t.Errorf("error is %v, want an ended deadline", err)
	}
	c, err := s.Lookup(t.Context(), request.Ref)
	must(t, err)
	if c.State != hookonce.StateFailed {
		t.Errorf("the claim is %s", c.State)
	}
}
