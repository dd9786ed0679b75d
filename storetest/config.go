package storetest

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// Options is what a store under test is opened with.
type Options struct {
	// Clock is where the store takes its time from.
	Clock func() time.Time
	// Wait is the store's bounded wait for another transaction; zero means the store's default.
	Wait time.Duration
}

// Config says how to open a store in lease mode.
type Config struct {
	// Open makes a fresh, empty database and returns a function that opens stores on it. Stores
	// opened by several calls share nothing but the database, like processes. Open registers the
	// cleanup with t.
	Open func(t testing.TB) func(Options) hookonce.Store
}

// TxConfig says how to open a store whose database also holds the effect.
type TxConfig[Tx any] struct {
	// Open makes a fresh, empty database. It registers the cleanup with t.
	Open func(t testing.TB) Database[Tx]
}

// Lease returns the configuration that tests the same store in lease mode.
func (cfg TxConfig[Tx]) Lease() Config {
	return Config{Open: func(t testing.TB) func(Options) hookonce.Store {
		db := cfg.Open(t)
		return func(o Options) hookonce.Store { return db.Store(o) }
	}}
}

// Database is a fresh database together with what the suite does to it besides claiming.
type Database[Tx any] struct {
	// Store opens a store. Stores opened by several calls share nothing but the database.
	Store func(Options) hookonce.TxStore[Tx]
	// Begin, Commit and Rollback are the driver's transaction, for ClaimTx.
	Begin    func(ctx context.Context) (Tx, error)
	Commit   func(ctx context.Context, tx Tx) error
	Rollback func(ctx context.Context, tx Tx) error
	// Effect records, inside tx, that the effect named id happened once more.
	Effect func(ctx context.Context, tx Tx, id string) error
	// Effects returns how often each effect happened, as another connection sees it.
	Effects func(ctx context.Context) (map[string]int, error)

	// FailCommit makes the next commit of a transaction fail as if the connection were lost: after
	// the commit took effect if persisted, and before it reached the database otherwise. Only
	// [RunFaults] needs it.
	FailCommit func(persisted bool)
	// FailWrite does the same to the next statement outside a transaction that inserts, updates or
	// deletes a claim or an effect. If it is nil, [RunFaults] checks commits only.
	FailWrite func(persisted bool)
}

// Clock is a clock that moves when it is told to. It is safe for concurrent use.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

// NewClock returns a clock that stands at a fixed time.
func NewClock() *Clock {
	return &Clock{now: time.Date(2026, 1, 2, 3, 4, 5, 678_901_000, time.UTC)}
}

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}
