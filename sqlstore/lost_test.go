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
	"github.com/hookonce/hookonce/sqlstore"
)

// A connection that is lost between the claim and the handler is an error, and nothing that Within waits for.
func TestMySQLConnectionIsLostAfterTheClaim(t *testing.T) {
	p := goMySQL.places(t)(t)
	goMySQL.create(t, goMySQL.open(t, p.dsn, new(faults)), p)
	inner, err := goMySQL.connector(p.dsn)
	must(t, err)
	db := sql.OpenDB(losing{connector{inner, new(faults)}})
	t.Cleanup(func() { must(t, db.Close()) })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := make(chan error, 1)
	go func() {
		_, err := sqlstore.New(db, sqlstore.MySQL, sqlstore.WithSchema(p.schema)).Within(ctx, request, func(*sql.Tx, hookonce.Claim) error {
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
type losing struct{ connector }

func (l losing) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := l.connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return lost{inner.(*conn)}, nil
}

type lost struct{ *conn }

func (l lost) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if strings.HasPrefix(query, "SET SESSION innodb_lock_wait_timeout = @") {
		return nil, driver.ErrBadConn
	}
	return l.conn.ExecContext(ctx, query, args)
}
