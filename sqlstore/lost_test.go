package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/sqlstore"
)

// A connection that is lost between the claim and the handler is an error, and nothing that Within waits for.
func TestMySQLConnectionIsLostAfterTheClaim(t *testing.T) {
	p := goMySQL.places(t)(t)
	goMySQL.Create(t, goMySQL.Open(t, p.DSN, new(testdb.Faults)), p)
	inner, err := goMySQL.Connector(p.DSN)
	must(t, err)
	db := sql.OpenDB(losing{testdb.Connector{Connector: inner, Faults: new(testdb.Faults)}})
	t.Cleanup(func() { must(t, db.Close()) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := sqlstore.New(db, sqlstore.MySQL, sqlstore.WithSchema(p.Schema)).Within(ctx, request, func(*sql.Tx, hookonce.Claim) error {
			t.Error("the handler was called")
			return nil
		})
		answered <- err
	}()
	select {
	case err := <-answered:
		if !errors.Is(err, driver.ErrBadConn) {
			t.Errorf("the error is %v", err)
		}
	case <-time.After(time.Minute):
		cancel()
		t.Errorf("it waits until its context ends: %v", <-answered)
	}
}

// losing makes connections that are lost when the bounded wait is lifted, which is after the claim.
type losing struct{ testdb.Connector }

func (l losing) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := l.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return lost{inner.(*testdb.Conn)}, nil
}

type lost struct{ *testdb.Conn }

func (l lost) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "SET SESSION innodb_lock_wait_timeout = @") {
		return nil, driver.ErrBadConn
	}
	return l.Conn.ExecContext(ctx, query, args)
}

// A driver may say of a connection that broke after a claim was sent that it was bad, as lib/pq does: database/sql would send it
// again, and the claim find itself, so that somebody else seemed to have the key. So may the effects of an outbox.
func TestWhatTakesIsSentOnce(t *testing.T) {
	for name, c := range map[string]connection{"pgx": pgxStdlib, "pq": libpq, "modernc": modernc} {
		t.Run(name, func(t *testing.T) {
			p := c.places(t)(t)
			inner, err := c.Connector(p.DSN)
			must(t, err)
			broken := &bad{Connector: testdb.Connector{Connector: inner, Faults: new(testdb.Faults)}}
			db := sql.OpenDB(broken)
			t.Cleanup(func() { must(t, db.Close()) })
			c.Create(t, db, p)
			s := sqlstore.New(db, c.Dialect, sqlstore.WithSchema(p.Schema))
			_, err = s.Within(t.Context(), request, func(tx *sql.Tx, c hookonce.Claim) error {
				return s.Enqueue(t.Context(), tx, hookonce.Effect{Ref: c.Ref, Name: "mail"})
			})
			must(t, err)
			other := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "other"}, Lease: time.Minute}
			broken.after.Store("claims")
			if c, err := s.Claim(t.Context(), other); !errors.Is(err, driver.ErrBadConn) {
				t.Errorf("the claim that was sent is told as %v, %v", c.Verdict, err)
			}
			broken.after.Store("effects")
			if taken, err := s.TakeEffects(t.Context(), hookonce.TakeRequest{Names: []string{"mail"}, Limit: 1, Lease: time.Minute}); !errors.Is(err, driver.ErrBadConn) {
				t.Errorf("the effects that were asked for are told as %v, %v", taken, err)
			}
		})
	}
}

// What the server closed while it was idle is found out before anything is sent over it, also by those who come at once; what it
// closes under steady work costs one claim.
func TestClaimsPassOverDeadConnections(t *testing.T) {
	const idle = 4
	for name, c := range map[string]connection{"pgx": pgxStdlib, "pq": libpq} {
		t.Run(name, func(t *testing.T) {
			p := c.places(t)(t)
			db := c.Open(t, p.DSN, new(testdb.Faults))
			db.SetMaxIdleConns(idle)
			c.Create(t, db, p)
			connector, err := c.Connector(p.DSN)
			must(t, err)
			killer := sql.OpenDB(connector)
			defer killer.Close()
			// killed leaves connections idle whose sessions have ended.
			killed := func() {
				t.Helper()
				var conns []*sql.Conn
				var pids []int
				for range idle {
					conn, err := db.Conn(t.Context())
					must(t, err)
					var pid int
					must(t, conn.QueryRowContext(t.Context(), "SELECT pg_backend_pid()").Scan(&pid))
					conns, pids = append(conns, conn), append(pids, pid)
				}
				for i, conn := range conns {
					must(t, conn.Close())
					_, err := killer.ExecContext(t.Context(), "SELECT pg_terminate_backend($1, 60000)", pids[i])
					must(t, err)
				}
			}
			s := sqlstore.New(db, c.Dialect, sqlstore.WithSchema(p.Schema))
			claim := func(key string) error {
				c, err := s.Claim(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}, Lease: time.Minute})
				if err == nil && c.Verdict != hookonce.Acquired {
					err = fmt.Errorf("%s is %v", key, c.Verdict)
				}
				return err
			}
			killed()
			var at sync.WaitGroup
			begin := make(chan struct{})
			for i := range idle {
				at.Go(func() {
					<-begin
					if err := claim(fmt.Sprint("at once ", i)); err != nil {
						t.Error(err)
					}
				})
			}
			close(begin)
			at.Wait()
			killed()
			failed := 0
			for i := range idle {
				if claim(fmt.Sprint("one by one ", i)) != nil {
					failed++
				}
			}
			if failed > 1 {
				t.Errorf("%d claims failed", failed)
			}
		})
	}
}

// bad makes connections that are said to be bad once, after a statement that changes a table.
type bad struct {
	testdb.Connector
	after atomic.Value // the table; "": none
}

func (b *bad) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := b.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return badConn{inner.(*testdb.Conn), b}, nil
}

type badConn struct {
	*testdb.Conn
	of *bad
}

// broke has the connection break after a statement, if it is the one.
func (c badConn) broke(query string) bool {
	table, _ := c.of.after.Load().(string)
	writes := strings.Contains(query, "INSERT INTO") || strings.Contains(query, "UPDATE ")
	return table != "" && writes && strings.Contains(query, table) && c.of.after.CompareAndSwap(table, "")
}

func (c badConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.Conn.QueryContext(ctx, query, args)
	if err != nil || !c.broke(query) {
		return rows, err
	}
	values := make([]driver.Value, len(rows.Columns()))
	for err == nil {
		err = rows.Next(values)
	}
	_ = rows.Close()
	return nil, driver.ErrBadConn
}

func (c badConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.ExecContext(ctx, query, args)
	if err == nil && c.broke(query) {
		return nil, driver.ErrBadConn
	}
	return result, err
}

// A purge that loses to others half way through, and is tried again, deletes no more than it may, and counts all of it.
func TestMySQLPurgeIsTriedAgain(t *testing.T) {
	p := goMySQL.places(t)(t)
	goMySQL.Create(t, goMySQL.Open(t, p.DSN, new(testdb.Faults)), p)
	inner, err := goMySQL.Connector(p.DSN)
	must(t, err)
	steps := &deadlocks{Connector: testdb.Connector{Connector: inner, Faults: new(testdb.Faults)}, at: 2}
	db := sql.OpenDB(steps)
	t.Cleanup(func() { must(t, db.Close()) })
	s := sqlstore.New(db, sqlstore.MySQL, sqlstore.WithSchema(p.Schema))
	claim, err := s.Claim(t.Context(), request)
	must(t, err)
	must(t, s.Complete(t.Context(), claim))
	table := p.Schema + "_claims"
	var columns string
	must(t, db.QueryRowContext(t.Context(), "SELECT GROUP_CONCAT(column_name) FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? AND column_name <> 'key'", table).Scan(&columns))
	for i := range 11 {
		_, err := db.ExecContext(t.Context(), "INSERT INTO "+table+" (`key`, "+columns+") SELECT CONCAT(`key`, ?), "+columns+" FROM "+table, string(rune('a'+i)))
		must(t, err)
	}
	const limit = 1500
	n, err := s.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: limit})
	must(t, err)
	var left int
	must(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&left))
	if n != limit || left != 1<<11-limit || steps.n <= steps.at {
		t.Errorf("%d deleted, it says, and %d are left after %d steps", n, left, steps.n)
	}
}

// deadlocks makes connections on which one of the statements that purge claims meets a deadlock.
type deadlocks struct {
	testdb.Connector
	n, at int
}

func (d *deadlocks) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := d.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return victim{inner.(*testdb.Conn), d}, nil
}

type victim struct {
	*testdb.Conn
	of *deadlocks
}

func (v victim) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "DELETE FROM") && strings.Contains(query, "claims WHERE") {
		if v.of.n++; v.of.n == v.of.at {
			return nil, &mysql.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock; try restarting transaction"}
		}
	}
	return v.Conn.ExecContext(ctx, query, args)
}
