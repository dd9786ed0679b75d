package sqlstore_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

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
