package pg

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/hookonce/hookonce/internal/journal"
)

var _ journal.Notifier = (*Store)(nil)

// Notify implements [journal.Notifier] with NOTIFY, on the channel that has the name of the schema. NOTIFY takes
// one lock of the whole server from before the commit to after it, so it has a transaction of its own, and
// those that store events never wait for it.
func (s *Store) Notify(ctx context.Context) error {
	_, err := s.pool.Exec(ctx, `SELECT pg_notify($1, '')`, s.channel)
	return err
}

const (
	minReconnect = 100 * time.Millisecond
	maxReconnect = 15 * time.Second
)

// errPooled says that the connection is not ours alone, so that what it listens to may reach somebody else.
var errPooled = errors.New("a pooler stands between this process and the server")

// Listen implements [journal.Notifier] with LISTEN, on a connection of its own beside the pool. A connection that
// breaks is opened again, sooner at first. It returns behind a pooler.
func (s *Store) Listen(ctx context.Context, heard func()) {
	for wait := minReconnect; ; wait = min(2*wait, maxReconnect) {
		began := time.Now()
		err := s.listen(ctx, heard)
		switch {
		case ctx.Err() != nil:
			return
		case errors.Is(err, errPooled):
			s.log.InfoContext(ctx, "journal/pg: other processes' work is found by polling alone", "because", err)
			return
		case time.Since(began) > maxReconnect:
			wait = minReconnect
		}
		s.log.DebugContext(ctx, "journal/pg: listening again soon; until then work is found by polling", "error", err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// listen listens on one connection until it breaks.
func (s *Store) listen(ctx context.Context, heard func()) error {
	cfg := s.pool.Config()
	if cfg.BeforeConnect != nil { // which leads to the primary
		if err := cfg.BeforeConnect(ctx, cfg.ConnConfig); err != nil {
			return err
		}
	}
	conn, err := pgx.ConnectConfig(ctx, cfg.ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx)
	}()
	if err := direct(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel}.Sanitize()); err != nil {
		return err
	}
	for {
		heard() // the first time for what was missed
		if _, err := conn.WaitForNotification(ctx); err != nil {
			return err
		}
	}
}

// direct reports as an error that the server's process is not the one that the connection was told of:
// poolers make that up.
func direct(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	err := conn.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	if err == nil && pid != conn.PgConn().PID() {
		err = errPooled
	}
	return err
}
