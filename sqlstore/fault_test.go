package sqlstore_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
)

var errLost = errors.New("connection reset by peer")

// faults makes one operation of a database fail as if the connection were lost, before or after it
// took effect.
type faults struct {
	mu            sync.Mutex
	commit, write *bool // persisted; nil: no fault
}

func (f *faults) failCommit(persisted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commit = &persisted
}

func (f *faults) failWrite(persisted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write = &persisted
}

// take returns the first fault that is armed, and disarms it.
func (f *faults) take(faults ...**bool) (persisted, armed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, fault := range faults {
		if *fault != nil {
			persisted, *fault = **fault, nil
			return persisted, true
		}
	}
	return false, false
}

// connector makes the connections of a driver subject to faults.
type connector struct {
	driver.Connector
	faults *faults
}

func (c connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: inner, faults: c.faults}, nil
}

// dsnConnector is a connector for a driver that has none.
type dsnConnector struct {
	driver driver.Driver
	dsn    string
}

func (c dsnConnector) Connect(context.Context) (driver.Conn, error) { return c.driver.Open(c.dsn) }
func (c dsnConnector) Driver() driver.Driver                        { return c.driver }

// conn forwards everything that the drivers under test have besides [driver.Conn].
type conn struct {
	driver.Conn
	faults *faults
	inTx   bool
}

// Raw is what wrappers of connections have, so that their drivers' own methods can be reached.
func (c *conn) Raw() driver.Conn { return c.Conn }

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	inner, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return &tx{Tx: inner, conn: c}, nil
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(query, func() (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	})
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(query, func() (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	})
}

// PrepareContext is what drivers are asked for that skip a query with parameters.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	inner, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	return stmt{inner, c, query}, err
}

type stmt struct {
	driver.Stmt
	conn *conn
	text string
}

func (s stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(s.text, func() (driver.Rows, error) {
		return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args)
	})
}

func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(s.text, func() (driver.Result, error) {
		return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args)
	})
}

func (c *conn) query(text string, run func() (driver.Rows, error)) (driver.Rows, error) {
	persisted, armed := c.takeWrite(text)
	if armed && !persisted {
		return nil, errLost
	}
	rows, err := run()
	switch {
	case !armed:
	case errors.Is(err, driver.ErrSkip):
		c.faults.failWrite(persisted) // for the statement that is prepared instead
	case err == nil:
		err = errors.Join(drain(rows), errLost)
	}
	return rows, err
}

func (c *conn) exec(text string, run func() (driver.Result, error)) (driver.Result, error) {
	persisted, armed := c.takeWrite(text)
	if armed && !persisted {
		return nil, errLost
	}
	result, err := run()
	switch {
	case !armed:
	case errors.Is(err, driver.ErrSkip):
		c.faults.failWrite(persisted)
	case err == nil:
		err = errLost
	}
	return result, err
}

// takeWrite returns the fault of writes if the statement is one outside a transaction.
func (c *conn) takeWrite(query string) (persisted, armed bool) {
	if c.inTx || !strings.Contains(query, "INSERT") && !strings.Contains(query, "UPDATE") && !strings.Contains(query, "DELETE") {
		return false, false
	}
	return c.faults.take(&c.faults.write)
}

func (c *conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *conn) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

// drain reads a statement to its end, so that it takes effect.
func drain(rows driver.Rows) error {
	values := make([]driver.Value, len(rows.Columns()))
	for {
		if err := rows.Next(values); errors.Is(err, io.EOF) {
			return rows.Close()
		} else if err != nil {
			return errors.Join(err, rows.Close())
		}
	}
}

type tx struct {
	driver.Tx
	conn *conn
}

func (t *tx) Commit() error {
	t.conn.inTx = false
	// A fault of writes hits the commit where the store writes in a transaction of its own.
	persisted, armed := t.conn.faults.take(&t.conn.faults.commit, &t.conn.faults.write)
	switch {
	case armed && persisted:
		return errors.Join(t.Tx.Commit(), errLost)
	case armed:
		return errors.Join(t.Tx.Rollback(), errLost)
	}
	return t.Tx.Commit()
}

func (t *tx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}
