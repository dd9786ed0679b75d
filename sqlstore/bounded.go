package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"time"
)

// limit is how the wait for locks is bounded as a setting of a connection.
type limit struct {
	impose func(wait time.Duration) string
	lift   string // puts back what was set before
}

// session is a database, or a connection to it.
type session interface {
	querier
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// bounded is where a claim runs. Statements there wait for locks no longer than the store's bounded wait,
// until that is lifted.
type bounded struct {
	session
	conn    *sql.Conn // nil: the claiming statement bounds its own wait
	lifting string    // empty: lifted
}

// bounded returns where to claim. Its end must be called when everything that ran there is over.
func (s *Store) bounded(ctx context.Context) (*bounded, error) {
	if s.dialect.limit == nil {
		return &bounded{session: s.db}, nil
	}
	conn, err := s.db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	b := &bounded{session: conn, conn: conn, lifting: s.dialect.limit.lift}
	if _, err := conn.ExecContext(ctx, s.dialect.limit.impose(s.wait)); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// lift ends the limit, so that the handler's statements wait as long as its program has set.
func (b *bounded) lift(ctx context.Context) error {
	if b.lifting == "" {
		return nil
	}
	_, err := b.conn.ExecContext(ctx, b.lifting)
	if err == nil {
		b.lifting = ""
	}
	return err
}

// end gives the connection back to the pool as it was found, or closes it where that fails. It does so
// under a deadline of its own, because the caller's context may have ended.
func (b *bounded) end() {
	if b == nil || b.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), liftDeadline)
	defer cancel()
	if b.lift(ctx) != nil {
		_ = b.conn.Raw(func(any) error { return driver.ErrBadConn }) // which makes database/sql close it
	}
	_ = b.conn.Close()
	b.conn = nil
}
