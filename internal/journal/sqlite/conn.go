package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
)

// conn is one connection to the file, without the pool of database/sql around it: the writer has one
// connection anyway, and a transaction of hundreds of small statements notices the difference.
type conn struct {
	driver.Conn
	stmts []*stmt
}

func connect(ctx context.Context, connector driver.Connector) (*conn, error) {
	c, err := connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &conn{Conn: c}, nil
}

func (c *conn) close() error {
	var errs []error
	for _, s := range c.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, c.Conn.Close())...)
}

// prepare returns a statement that lives as long as the connection.
func (c *conn) prepare(text string) (*stmt, error) {
	p, err := c.Conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := &stmt{Stmt: p}
	c.stmts = append(c.stmts, s)
	return s, nil
}

// run executes a statement that is not needed again.
func (c *conn) run(text string) error {
	p, err := c.Conn.Prepare(text)
	if err != nil {
		return err
	}
	s := &stmt{Stmt: p}
	_, err = s.exec()
	return errors.Join(err, s.Close())
}

// value runs a statement that is not needed again and returns the first column of its last row.
func (c *conn) value(text string) (v driver.Value, err error) {
	p, err := c.Conn.Prepare(text)
	if err != nil {
		return nil, err
	}
	s := &stmt{Stmt: p}
	err = s.query(func(row []driver.Value) error { v = row[0]; return nil })
	return v, errors.Join(err, s.Close())
}

// stmt is a prepared statement. It runs without a context, which would cost a goroutine each time.
type stmt struct {
	driver.Stmt
	args []driver.NamedValue // reused
}

// bind returns the arguments as the driver wants them: int64, string, []byte or nil.
func (s *stmt) bind(args []any) []driver.NamedValue {
	s.args = s.args[:0]
	for i, a := range args {
		s.args = append(s.args, driver.NamedValue{Ordinal: i + 1, Value: a})
	}
	return s.args
}

// exec runs the statement and returns how many rows it changed.
func (s *stmt) exec(args ...any) (int64, error) {
	res, err := s.Stmt.(driver.StmtExecContext).ExecContext(context.Background(), s.bind(args))
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// query calls each for every row of the result. The slice is reused, what it holds is not.
func (s *stmt) query(each func(row []driver.Value) error, args ...any) (err error) {
	rows, err := s.Stmt.(driver.StmtQueryContext).QueryContext(context.Background(), s.bind(args))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	row := make([]driver.Value, len(rows.Columns()))
	for {
		switch err := rows.Next(row); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
		if err := each(row); err != nil {
			return err
		}
	}
}
