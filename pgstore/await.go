package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/jackc/pgx/v5"
)

// Await implements [hookonce.Awaiter]: it returns nil once the claim under ref is not processing, or can be
// taken over. With [WithNotify] it listens on one connection per store, beside the pool, which the first
// caller opens and which is closed a while after the last one left, or by [Store.Close]. While that
// connection is lost, or leads through a pooler, it asks again and again, as it does without the option.
// It returns ctx's error when that ends first, and what [Store.Lookup] returns if the store fails.
func (s *Store) Await(ctx context.Context, ref hookonce.Ref) error {
	if err := ref.Validate(); err != nil {
		return err
	}
	told, leave := s.listenFor(ref)
	defer leave()
	for look := s.looks.shortest; ; look = min(2*look, s.looks.longest) {
		if over, err := s.isOver(ctx, ref); over || err != nil {
			return err
		}
		if s.listener.open() {
			look = s.looks.longest
		}
		timer := time.NewTimer(look)
		select {
		case <-told:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

// isOver reports whether there is nobody to wait for.
func (s *Store) isOver(ctx context.Context, ref hookonce.Ref) (bool, error) {
	c, err := s.Lookup(ctx, ref)
	if errors.Is(err, hookonce.ErrNotFound) {
		return true, nil
	}
	return err == nil && c.VerdictFor(hookonce.ClaimRequest{}, s.now()) != hookonce.Busy, err
}

// listenFor returns a channel that has an element when it is time to look at ref, and starts to listen.
func (s *Store) listenFor(ref hookonce.Ref) (told <-chan struct{}, leave func()) {
	if !s.notify {
		return nil, func() {}
	}
	told, leave = s.listener.join(payload(ref))
	s.listener.start(s.listen)
	return told, leave
}

// payload is what is told of a claim; see "stands" in postgres.sql of package claimsql.
func payload(ref hookonce.Ref) string { return ref.Source + "\n" + ref.Key }

// listen listens until ctx ends, on one connection after the other, or until it meets a pooler.
func (s *Store) listen(ctx context.Context) {
	for pause := minReconnect; ; pause = min(2*pause, maxReconnect) {
		began := time.Now()
		err := s.listenOnce(ctx)
		if errors.Is(err, errPooled) {
			<-ctx.Done() // there is no point in trying again
		}
		if time.Since(began) > maxReconnect {
			pause = minReconnect
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// The pauses before a connection that broke is opened again.
const (
	minReconnect = 100 * time.Millisecond
	maxReconnect = 15 * time.Second
)

// listenOnce listens on one connection until it breaks.
func (s *Store) listenOnce(ctx context.Context) error {
	conn, err := connect(ctx, s.pool.Config())
	if err != nil {
		return err
	}
	defer hangUp(conn)
	if err := direct(ctx, conn); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.channel()}.Sanitize()); err != nil {
		return err
	}
	s.listener.count(1)
	defer s.listener.count(-1)
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		s.listener.hear(n.Payload)
	}
}

// errPooled says that the connection is not ours alone, so that what it listens to may reach somebody else.
var errPooled = errors.New("a pooler stands between this process and the server")

// direct returns errPooled if the server's process is not the one that the connection was told of at its
// start: poolers make that up.
func direct(ctx context.Context, conn *pgx.Conn) error {
	var pid uint32
	err := conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	if err == nil && pid != conn.PgConn().PID() {
		err = errPooled
	}
	return err
}
