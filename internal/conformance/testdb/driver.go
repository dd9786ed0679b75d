package testdb

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"sync"
)

// ErrLost is the error of an operation that [Faults] made fail.
var ErrLost = errors.New("connection reset by peer")

// Faults makes one operation of a database fail as if the connection were lost, before or after it
// took effect. It is safe for concurrent use.
type Faults struct {
	mu            sync.Mutex
	commit, write *bool // persisted; nil: no fault
}

// FailCommit makes the next commit fail.
func (f *Faults) FailCommit(persisted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.commit = &persisted
}

// FailWrite makes the next statement outside a transaction fail that writes.
func (f *Faults) FailWrite(persisted bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write = &persisted
}

// take returns the first fault that is armed, and disarms it.
func (f *Faults) take(faults ...**bool) (persisted, armed bool) {
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

// Connector makes the connections of a driver subject to faults.
type Connector struct {
	driver.Connector
	Faults *Faults
}

func (c Connector) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: inner, Faults: c.Faults}, nil
}

// DSNConnector is a connector for a driver that has none.
type DSNConnector struct {
	Of  driver.Driver
	DSN string
}

func (c DSNConnector) Connect(context.Context) (driver.Conn, error) { return c.Of.Open(c.DSN) }
func (c DSNConnector) Driver() driver.Driver                        { return c.Of }

// Conn forwards everything that the drivers under test have besides [driver.Conn].
type Conn struct {
	driver.Conn
	Faults *Faults
	inTx   bool
}

// Raw is what wrappers of connections have, so that their drivers' own methods can be reached.
func (c *Conn) Raw() driver.Conn { return c.Conn }

func (c *Conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	inner, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return &tx{Tx: inner, conn: c}, nil
}

func (c *Conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(query, func() (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	})
}

func (c *Conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(query, func() (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	})
}

// PrepareContext is what drivers are asked for that skip a query with parameters.
func (c *Conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	inner, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	return stmt{inner, c, query}, err
}

type stmt struct {
	driver.Stmt
	conn *Conn
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

func (c *Conn) query(text string, run func() (driver.Rows, error)) (driver.Rows, error) {
	persisted, armed := c.takeWrite(text)
	if armed && !persisted {
		return nil, ErrLost
	}
	rows, err := run()
	switch {
	case !armed:
	case errors.Is(err, driver.ErrSkip):
		c.Faults.FailWrite(persisted) // for the statement that is prepared instead
	case err == nil:
		err = errors.Join(drain(rows), ErrLost)
	}
	return rows, err
}

func (c *Conn) exec(text string, run func() (driver.Result, error)) (driver.Result, error) {
	persisted, armed := c.takeWrite(text)
	if armed && !persisted {
		return nil, ErrLost
	}
	result, err := run()
	switch {
	case !armed:
	case errors.Is(err, driver.ErrSkip):
		c.Faults.FailWrite(persisted)
	case err == nil:
		err = ErrLost
	}
	return result, err
}

// takeWrite returns the fault of writes if the statement is one outside a transaction.
func (c *Conn) takeWrite(query string) (persisted, armed bool) {
	if c.inTx || !strings.Contains(query, "INSERT") && !strings.Contains(query, "UPDATE") && !strings.Contains(query, "DELETE") {
		return false, false
	}
	return c.Faults.take(&c.Faults.write)
}

func (c *Conn) CheckNamedValue(v *driver.NamedValue) error {
	if checker, ok := c.Conn.(driver.NamedValueChecker); ok {
		return checker.CheckNamedValue(v)
	}
	return driver.ErrSkip
}

func (c *Conn) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

func (c *Conn) IsValid() bool {
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
	conn *Conn
}

func (t *tx) Commit() error {
	t.conn.inTx = false
	// A fault of writes hits the commit where the store writes in a transaction of its own.
	persisted, armed := t.conn.Faults.take(&t.conn.Faults.commit, &t.conn.Faults.write)
	switch {
	case armed && persisted:
		return errors.Join(t.Tx.Commit(), ErrLost)
	case armed:
		return errors.Join(t.Tx.Rollback(), ErrLost)
	}
	return t.Tx.Commit()
}

func (t *tx) Rollback() error {
	t.conn.inTx = false
	return t.Tx.Rollback()
}
