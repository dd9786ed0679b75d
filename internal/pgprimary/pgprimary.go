// Package pgprimary keeps the connections of a pool on the primary among several PostgreSQL servers, and has them leave
// one that no longer is the primary, whether it knows that or not.
//
// A connection string with several hosts and target_session_attrs=read-write takes the first that says that it takes
// writes. That is not enough when the primary changes:
//
//   - A former primary that was cut off goes on saying so until somebody stops it. Its commits wait for a standby that
//     follows another, for ever. Here the servers' timelines are compared: whoever was promoted last has the highest.
//   - A server that froze takes connections and does not answer. Here all servers are asked at the same time.
//   - What waits for an answer of either waits until its deadline. Here the connection is cut as soon as another
//     server leads; the outcome of what was asked is unknown, as with any connection that breaks.
//
// Behind one address (a proxy, a name that moves) nothing is compared; there a connection is given up that was answered
// with read_only_sql_transaction, so that the next one may lead elsewhere.
package pgprimary

import (
	"context"
	"crypto/tls"
	"net"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce/internal/pgerror"
)

// Follow has the connections of the pool that is made of cfg lead to the primary. It is called once, after everything
// else is set; hooks that are set already are called as well. BeforeConnect is called with what leads to one server, and also for
// the connections on which the servers are asked who leads.
func Follow(cfg *pgxpool.Config) {
	leaveReadOnly(cfg.ConnConfig)
	servers := serversOf(cfg.ConnConfig)
	if len(servers) < 2 {
		return
	}
	before, prepare := hook(cfg.BeforeConnect), cfg.PrepareConn
	if before == nil {
		before = func(context.Context, *pgx.ConnConfig) error { return nil }
	}
	f := &finder{ask: asker(cfg.ConnConfig.Copy(), before), servers: servers, conns: map[*conn]bool{}}
	acquire := cfg.BeforeAcquire //lint:ignore SA1019 a program may have set it, and what is set here would silence it
	cfg.BeforeConnect = func(ctx context.Context, c *pgx.ConnConfig) error { return f.aim(ctx, c, before) }
	cfg.PrepareConn = func(ctx context.Context, c *pgx.Conn) (bool, error) {
		switch {
		case left(c):
			return false, nil // which makes another one
		case prepare != nil:
			return prepare(ctx, c)
		}
		return acquire == nil || acquire(ctx, c), nil
	}
}

// leaveReadOnly has a connection closed that leads to a server which takes no writes.
func leaveReadOnly(c *pgx.ConnConfig) {
	before := c.OnPgError
	c.OnPgError = func(conn *pgconn.PgConn, err *pgconn.PgError) bool {
		return !pgerror.ReadOnly(err) && (before == nil || before(conn, err))
	}
}

// server is one of the servers of a connection string, with the ways to it: with TLS and without, say.
type server struct {
	name string // host and port
	ways []*pgconn.FallbackConfig
}

// serversOf returns the servers of a configuration, in its order.
func serversOf(c *pgx.ConnConfig) (all []server) {
	ways := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	index := map[string]int{}
	for _, w := range ways {
		name := net.JoinHostPort(w.Host, strconv.Itoa(int(w.Port)))
		i, known := index[name]
		if !known {
			i = len(all)
			index[name] = i
			all = append(all, server{name: name})
		}
		all[i].ways = append(all[i].ways, w)
	}
	return all
}

// lead makes c lead to the server alone.
func (s server) lead(c *pgx.ConnConfig) {
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = s.ways[0].Host, s.ways[0].Port, s.ways[0].TLSConfig, s.ways[1:]
}

// left reports whether a connection was cut because its server no longer leads.
func left(c *pgx.Conn) bool {
	raw := c.PgConn().Conn()
	if secured, ok := raw.(*tls.Conn); ok {
		raw = secured.NetConn()
	}
	ours, ok := raw.(*conn)
	return ok && ours.cut.Load()
}
