package year

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/tally"
	"github.com/hookonce/hookonce/schema"
)

// book is the store beneath all processes, and what the ledger reads of it.
type book interface {
	// open gives the store to a process, which is the only one if the store is.
	open(ctx context.Context) (s journal.Store, lastID int64, err error)
	// Deliveries returns those that are open. Of those that have an order resource says of what.
	Deliveries() []journaltest.Delivery
	// Lookup returns the event that has a key.
	Lookup(source, key string) (id int64, ok bool)
	// Stored returns what was counted of events that were stored.
	Stored() []tally.Point
	// close takes the store from the process that has it.
	close(s journal.Store)
}

// memoryBook is the model in memory, which several processes share.
type memoryBook struct{ *journaltest.Memory }

func (b memoryBook) open(context.Context) (journal.Store, int64, error) { return b.Memory, 0, nil }
func (b memoryBook) close(journal.Store)                                {}

// Stored implements book.
func (b memoryBook) Stored() []tally.Point { return stored(b.Memory) }

// stored asks for all that was counted.
func stored(s journal.Store) []tally.Point {
	points, err := s.Tallies(context.Background(), tally.Query{From: time.Unix(0, 0), Until: time.Now().AddDate(1, 0, 0), Step: time.Hour, Whats: []tally.What{tally.Stored}, Total: true})
	if err != nil {
		panic(fmt.Sprintf("what was counted cannot be read: %v", err))
	}
	return points
}

// fileBook is a file of SQLite. Whoever opens it takes it from the process before, as one does that comes after a crash.
type fileBook struct {
	path string

	mu    sync.Mutex
	store *sqlite.Store
	db    *sql.DB
}

func newFileBook(dir string) *fileBook { return &fileBook{path: filepath.Join(dir, "hookonce.db")} }

func (b *fileBook) open(ctx context.Context) (journal.Store, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reopen(ctx)
}

func (b *fileBook) reopen(ctx context.Context) (journal.Store, int64, error) {
	b.shut()
	s, err := sqlite.Open(ctx, b.path, sqlite.Options{})
	if err != nil {
		return nil, 0, err
	}
	db, err := s.DB()
	if err != nil {
		return nil, 0, errors.Join(err, s.Close())
	}
	b.store, b.db = s, db
	last, err := s.LastID(ctx)
	return s, last, err
}

func (b *fileBook) shut() {
	if b.store != nil {
		if err := errors.Join(b.db.Close(), b.store.Close()); err != nil {
			panic(fmt.Sprintf("the file cannot be closed: %v", err))
		}
		b.store, b.db = nil, nil
	}
}

func (b *fileBook) close(s journal.Store) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if s == journal.Store(b.store) {
		b.shut()
	}
}

// query reads rows. The file is opened if nobody has it.
func (b *fileBook) query(each func(*sql.Rows) error, text string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.store == nil { // while no process runs, and no longer: an open file is looked after all the time
		if _, _, err := b.reopen(context.Background()); err != nil {
			panic(fmt.Sprintf("the file cannot be opened: %v", err))
		}
		defer b.shut()
	}
	rows, err := b.db.Query(text, args...)
	if err == nil {
		for err == nil && rows.Next() {
			err = each(rows)
		}
		err = errors.Join(err, rows.Err(), rows.Close())
	}
	if err != nil {
		panic(fmt.Sprintf("the file cannot be read: %v", err))
	}
}

// Deliveries implements book.
func (b *fileBook) Deliveries() (all []journaltest.Delivery) {
	b.query(func(rows *sql.Rows) error {
		var d journaltest.Delivery
		var due sql.NullInt64
		err := rows.Scan(&d.EventID, &d.Destination, &d.State, &d.Token, &d.Tries, &due, &d.LastError, &d.Origin)
		if due.Valid {
			d.Due = time.UnixMicro(due.Int64)
		}
		all = append(all, d)
		return err
	}, `SELECT event_id, destination, state, token, tries, due_at, last_error, origin FROM `+schema.DefaultName+`_deliveries ORDER BY event_id, destination`)
	return all
}

// Lookup implements book.
func (b *fileBook) Lookup(source, key string) (id int64, ok bool) {
	b.query(func(rows *sql.Rows) error {
		ok = true
		return rows.Scan(&id)
	}, `SELECT id FROM `+schema.DefaultName+`_events WHERE source = ? AND key = ?`, source, key)
	return id, ok
}

// Stored implements book.
func (b *fileBook) Stored() []tally.Point {
	s, _, err := b.open(context.Background())
	if err != nil {
		panic(fmt.Sprintf("the file cannot be opened: %v", err))
	}
	defer b.close(s)
	return stored(s)
}
