package sqlstore

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"time"
)

// bounded is where the store claims, and where the transaction of a handler runs.
type bounded struct {
	session
	conn *sql.Conn // nil: any connection of the pool will do
	wait setting   // so that statements wait for locks no longer than the store's bounded wait; until lifted
	hold setting   // for as long as the handler's transaction runs
	veto *veto     // of commits that are not the store's; nil: none, or not yet
	lost bool      // the transaction could not be rolled back
}

// session is a database, or a connection to it.
type session interface {
	querier
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// bounded returns where to claim under a lease. Its end must be called when everything that ran there is over.
//
// It is a connection, on which database/sql sends a statement once. On a pool it sends one again where a driver says that the
// connection was bad, and lib/pq says so also of one that broke after the statement was sent: the claim would find itself, and be
// told that somebody else has the key.
func (s *Store) bounded(ctx context.Context) (*bounded, error) {
	b := new(bounded)
	if s.dialect.limit != nil {
		b.wait = s.dialect.limit(s.wait)
	}
	return s.connect(ctx, b)
}

// once returns a connection for what must not be sent twice, as [Store.bounded] does, where nothing waits for locks. Its end
// must be called.
func (s *Store) once(ctx context.Context) (*bounded, error) { return s.connect(ctx, new(bounded)) }

// alone returns where a handler's transaction runs: it has the connection for itself where something has to be
// set on it. Its end must be called.
func (s *Store) alone(ctx context.Context, claims bool) (*bounded, error) {
	if !s.dialect.alone {
		return &bounded{session: s.db}, nil
	}
	b := &bounded{hold: s.dialect.hold}
	if claims && s.dialect.limit != nil {
		b.wait = s.dialect.limit(s.wait)
	}
	return s.connect(ctx, b)
}

// connect takes a connection for b, and imposes its settings.
func (s *Store) connect(ctx context.Context, b *bounded) (*bounded, error) {
	conn, err := s.alive(ctx, b.wait == setting{} && b.hold == setting{})
	if err != nil {
		return nil, err
	}
	b.session, b.conn = conn, conn
	if err := set(ctx, conn, b.wait.impose, b.hold.impose); err != nil {
		b.end()
		return nil, err
	}
	return b, nil
}

// alive returns a connection of the pool. If asked, and none was asked for a second, it is one that answers: what was idle for
// long may have been closed by the server, which lib/pq finds out with the next statement alone. After one that did not is none
// trusted: see [Store.broke].
func (s *Store) alive(ctx context.Context, ask bool) (*sql.Conn, error) {
	asked := s.asked.Load()
	ask = ask && (asked == nil || time.Since(*asked) > time.Second)
	for tries := s.db.Stats().Idle; ; tries-- {
		conn, err := s.db.Conn(ctx)
		if err != nil || !ask {
			return conn, err
		}
		if _, err = conn.ExecContext(ctx, "SELECT 1"); err == nil { // a ping may be one of the wrapper's of a driver, which asks nobody
			s.asked.Store(new(time.Now()))
			return conn, nil
		}
		_ = conn.Close()
		if tries <= 0 || ctx.Err() != nil {
			return nil, err
		}
	}
}

// broke returns the error of a statement that is sent once. If its connection was dead, which drivers say in different ways, the
// others of the pool may be.
func (s *Store) broke(err error) error {
	if err != nil {
		s.asked.Store(nil)
	}
	return err
}

// set makes the assignments that are not empty, in one statement.
func set(ctx context.Context, on querier, assignments ...string) error {
	text := strings.Trim(strings.Join(assignments, ", "), ", ")
	if text == "" {
		return nil
	}
	_, err := on.ExecContext(ctx, "SET "+text)
	return err
}

// lift ends the limit, so that the handler's statements wait as long as its program has set. It does so in the
// transaction: a statement beside it that finds the connection lost closes b.conn, and database/sql waits with that
// for the end of the transaction, which waits for the statement.
func (b *bounded) lift(ctx context.Context, tx *sql.Tx) error {
	err := set(ctx, tx, b.wait.lift)
	if err == nil {
		b.wait = setting{}
	}
	return err
}

// refuse has the connection refuse every commit until allow is called, where its driver has a way to.
func (b *bounded) refuse() {
	if b.conn == nil {
		return
	}
	_ = b.conn.Raw(func(conn any) error {
		if b.veto = vetoOf(conn); b.veto != nil {
			b.veto.begin()
		}
		return nil
	})
}

// allow ends refuse. It waits for the statement that is under way.
func (b *bounded) allow() {
	if b.conn != nil && b.veto != nil {
		_ = b.conn.Raw(func(any) error { b.veto.on.Store(false); return nil })
	}
}

// end gives the connection back to the pool as it was found, or closes it where that fails. It does so
// under a deadline of its own, because the caller's context may have ended.
func (b *bounded) end() {
	if b == nil || b.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), liftDeadline)
	defer cancel()
	b.allow()
	if b.lost && b.hold != (setting{}) || set(ctx, b.conn, b.wait.lift, b.hold.lift) != nil {
		_ = b.conn.Raw(func(any) error { return driver.ErrBadConn }) // which makes database/sql close it
	}
	_ = b.conn.Close()
	b.conn = nil
}

// Deadlines of the store's own, for work that outlives the caller's context.
const (
	commitDeadline = 10 * time.Second
	traceDeadline  = 5 * time.Second
	liftDeadline   = 5 * time.Second
)
