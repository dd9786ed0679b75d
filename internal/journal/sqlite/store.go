// Package sqlite keeps the journal in a SQLite file that one process owns.
//
// All writes go through one connection, one transaction after the other; each commit is synced to
// the disk. Copying the write-ahead log back into the file is the business of another goroutine, so
// that commits do not wait for it.
package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"modernc.org/sqlite"

	"github.com/hookonce/hookonce/internal/ddl"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/sqlitefile"
	"github.com/hookonce/hookonce/schema"
)

// Options configure [Open]. The zero value of every field means its default.
type Options struct {
	// Prefix is what the names of the tables begin with. Default [schema.DefaultName].
	Prefix string
	// LogSize is how large the write-ahead log beside the file grows before it is copied into the
	// file, in bytes. Writers wait when it has four times that size. Default 4 MiB.
	LogSize int64
	// Logger receives what goes wrong in the background. Default: nothing is logged.
	Logger *slog.Logger
	// Registerer receives the metrics of the file, until Close. Default: there are none.
	Registerer prometheus.Registerer
}

// Store is a [journal.Store] in a SQLite file. It is safe for concurrent use. Once a transaction has
// begun it runs to its end: contexts bound the wait for it.
type Store struct {
	journal.Roster // of this process alone

	path     string
	log      *slog.Logger
	lock     *os.File // beside the database
	file     *os.File // the database, locked
	standing standing
	metrics  func() // takes them back

	turn   chan struct{} // holds one token: who has it may use w, and what whole knows
	w      *writer
	size   int64 // of the database's file at the last commit, bytes
	logEnd int64 // where the last page of the log ends, bytes

	passengers chan *passenger // see ride
	alerting   sync.Mutex      // whose turn it is to change alerts, before that to write

	readers *sql.DB // answer what people and other parts ask
	inner   *sql.DB // one for who has the turn to write and one for the checkpointer, which must not wait for those who ask
	prefix  string
	events  struct {
		added atomic.Int64 // since the store was opened, purged ones subtracted
		sync.Mutex
		counted bool
		base    int64 // those that were there before, once counted
	}
	migrated    schema.Change // what Open did to the tables
	checkpoints *checkpointer
	logSize     int64 // bytes
	pageSize    int64 // of this file, bytes
}

var _ journal.Store = (*Store)(nil)

// Open opens the journal in the file at path, creating the file and its tables or upgrading them as
// needed, and locks it: a second Open of the same file fails with an error that wraps [ErrInUse], in
// this process and in others, by whatever name, until Close or the end of the process. A file that must not
// be used as it is reached fails with one that wraps [sqlitefile.ErrUnsafe]. Close must be called.
func Open(ctx context.Context, path string, o Options) (_ *Store, err error) {
	prefix, err := ddl.Prefix(schema.SQLite, o.Prefix)
	if err != nil {
		return nil, err
	}
	s := &Store{log: o.Logger, turn: make(chan struct{}, 1), passengers: make(chan *passenger), prefix: prefix,
		logSize: cmp.Or(o.LogSize, defaultLogSize)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.release(func(f *os.File) error { return retained.put(s.path, f) }))
		}
	}()
	if path, err = resolve(path); err != nil {
		return nil, err
	}
	s.path = path
	if s.lock, err = lock(path); err != nil {
		return nil, err
	}
	if err := errors.Join(sqlitefile.Check(path), sqlitefile.Local(path)); err != nil {
		return nil, fmt.Errorf("journal/sqlite: %w", err)
	}
	if s.file, err = openLocked(path); err != nil {
		return nil, err
	}
	s.missLog()
	connector, err := s.openFile(ctx, o)
	if err != nil {
		return nil, explain(path, err)
	}
	if s.w, err = newWriter(ctx, connector, prefix); err != nil {
		return nil, explain(path, err)
	}
	if err := s.standing.note(path, s.file); err != nil {
		return nil, explain(path, err)
	}
	sqlitefile.Sign(s.lock, s.standing.files[0].info)
	mark(s.file)
	if err := s.measure(o.Registerer); err != nil {
		return nil, fmt.Errorf("journal/sqlite: %w", err)
	}
	s.checkpoints = startCheckpointer(s, connector)
	s.turn <- struct{}{}
	return s, nil
}

// openFile opens the connections for reading, and makes sure of the file's format and tables.
func (s *Store) openFile(ctx context.Context, o Options) (driver.Connector, error) {
	plain, err := newConnector(s.path)
	if err != nil {
		return nil, err
	}
	connector := rooted{plain, s}
	if s.pageSize, err = format(ctx, connector); err != nil {
		return nil, err
	}
	s.readers, s.inner = pool(connector, 4), pool(connector, 2)
	s.migrated, err = schema.Migrate(ctx, s.readers, schema.SQLite, o.Prefix)
	return connector, err
}

// pool keeps as many connections as it may have.
func pool(connector driver.Connector, n int) *sql.DB {
	db := sql.OpenDB(connector)
	db.SetMaxIdleConns(n)
	db.SetMaxOpenConns(n)
	return db
}

// Migrated returns the versions of the tables before and after [Open]; a new file begins at 0.
func (s *Store) Migrated() (from, to int64) { return s.migrated.From, s.migrated.To }

// DB opens a further connection to the file, for what else is kept in it. Whoever uses it waits for its turn in this
// process: of several connections each would ask SQLite again and again whether it may write, and be let in by chance
// (beside a flood of claims some waited for seconds). It writes between the journal's transactions, and copies the log
// back by itself where the journal has nothing to write for long. Whoever relies on what they commit asks [Store.Standing] after the commit. Close it before the store.
func (s *Store) DB() (*sql.DB, error) {
	q := url.Values{"_pragma": {"busy_timeout(5000)", "synchronous(FULL)"}}
	connector, err := sqlite.NewConnector("file:" + url.PathEscape(s.path) + "?" + q.Encode())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(rooted{connector, s})
	db.SetMaxOpenConns(1)
	return db, nil
}

// Close implements [journal.Store]. It waits for the transaction that is under way.
func (s *Store) Close() error {
	if _, open := <-s.turn; !open {
		return nil
	}
	close(s.turn)
	s.checkpoints.stop()
	return s.release((*os.File).Close)
}

// release gives back whatever Open has got hold of. drop does that with the database.
func (s *Store) release(drop func(*os.File) error) error {
	var errs []error
	if s.metrics != nil {
		s.metrics()
	}
	for _, db := range []*sql.DB{s.readers, s.inner} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if s.standing.files != nil {
		unmark(s.file) // before the log goes
	}
	if s.w != nil {
		errs = append(errs, s.closeWriter())
	}
	if s.file != nil {
		errs = append(errs, drop(s.file)) // after the connections: see openLocked
	}
	if s.lock != nil {
		errs = append(errs, s.lock.Close())
	}
	return errors.Join(errs...)
}

// errClosed is what every method answers after Close.
var errClosed = errors.New("journal/sqlite: the store is closed")

// write runs f in a transaction of the writing connection. It is durable when write returns nil: committed, and after
// that in a file that was in its place.
func (s *Store) write(ctx context.Context, what string, f func(w *writer) error) error {
	err := s.exclusive(ctx, func() error {
		var p *passenger
		err := errPanicked
		defer func() { p.arrive(err) }()
		err = s.durably(ctx, func(w *writer) error {
			if err := f(w); err != nil {
				return err
			}
			if p = s.passenger(); p != nil {
				p.err = w.guarded(func() error { return p.f(w) })
			}
			return nil
		})
		return err
	})
	return failed(what, err)
}

// durably is [Store.write] for whoever has the turn.
func (s *Store) durably(ctx context.Context, f func(w *writer) error) error {
	if gone := s.standing.gone.Load(); gone != nil {
		return *gone
	}
	if err := s.wholeLog(); err != nil {
		return err
	}
	if err := s.w.transaction(f); err != nil {
		return err
	}
	if err := s.lasts(); err != nil {
		return err
	}
	if err := s.wholeFile(); err != nil {
		return err
	}
	if err := s.boundLog(ctx); err != nil {
		s.log.ErrorContext(ctx, "journal/sqlite: the write-ahead log cannot be bounded", "file", s.path, "error", err)
	}
	return nil
}

// rideWait is how long a passenger waits for a transaction: under load there is one.
const rideWait = 50 * time.Millisecond

// passenger is a write that nobody waits for, in the transaction of another one.
type passenger struct {
	f    func(w *writer) error
	err  error
	done chan error
}

// ride is [Store.write] for what can wait: it goes along with the next transaction, which costs the disk nothing, or has one
// of its own when none comes. That f fails is nothing to the other, unless SQLite takes back the whole transaction for it,
// as it may where the disk is full: then both fail, and neither is stored.
func (s *Store) ride(ctx context.Context, what string, f func(w *writer) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p := &passenger{f: f, done: make(chan error, 1)}
	timer := time.NewTimer(rideWait)
	defer timer.Stop()
	select {
	case s.passengers <- p:
	case <-timer.C:
		return s.write(ctx, what, f)
	}
	select {
	case err := <-p.done:
		if err != nil {
			return fmt.Errorf("journal/sqlite: %s: %w", what, err)
		}
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errPanicked is what becomes of a passenger whose transaction panicked.
var errPanicked = errors.New("the transaction came to no end")

// passenger returns one that waits, or nil.
func (s *Store) passenger() *passenger {
	select {
	case p := <-s.passengers:
		return p
	default:
		return nil
	}
}

// arrive tells a passenger, if there is one, what came of the transaction.
func (p *passenger) arrive(err error) {
	if p != nil {
		p.done <- cmp.Or(err, p.err)
	}
}

// exclusive runs f while nobody else writes.
func (s *Store) exclusive(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case _, open := <-s.turn:
		if !open {
			return errClosed
		}
		defer func() { s.turn <- struct{}{} }()
		return f()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// probeSize is how many bytes Ping asks room for: more than most bodies have.
const probeSize = 64 << 10

// Ping implements [journal.Store]. It writes a body and takes it back in one transaction, because an
// empty one would write nothing and so not notice a full disk.
func (s *Store) Ping(ctx context.Context) error {
	return s.write(ctx, "checking that the file can be written to", func(w *writer) error {
		_, err := w.probe.exec(int64(probeSize))
		if err == nil {
			_, err = w.unprobe.exec()
		}
		return err
	})
}

// LastID returns the largest identifier of an event in the journal, 0 if it is empty, for
// [journal.NewIDs].
func (s *Store) LastID(ctx context.Context) (id int64, err error) {
	err = s.write(ctx, "reading the last identifier", func(w *writer) error {
		return w.lastID.query(func(row []driver.Value) error { id = row[0].(int64); return nil })
	})
	return id, err
}
