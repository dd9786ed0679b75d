package storetest

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// Run checks a store in lease mode.
func Run(t *testing.T, cfg Config) {
	cfg.cases(t, "claim", claimCases())
	cfg.cases(t, "complete", completeCases())
	cfg.cases(t, "fail", failCases())
	cfg.cases(t, "extend", extendCases())
	cfg.cases(t, "takeover", takeoverCases())
	cfg.cases(t, "pinned", pinnedCases())
	cfg.cases(t, "lookup", lookupCases())
	cfg.cases(t, "purge", purgeCases())
	t.Run("model", func(t *testing.T) { checkModel(t, cfg) })
}

// RunConcurrent checks that a store in lease mode decides races.
func RunConcurrent(t *testing.T, cfg Config) {
	cfg.cases(t, "concurrent", concurrentCases())
}

// RunTx checks the in-transaction mode of a store.
func RunTx[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	cfg.cases(t, "within", withinCases[Tx]())
	cfg.cases(t, "refused", refusedCases[Tx]())
	cfg.cases(t, "wait", waitCases[Tx]())
	cfg.cases(t, "claimtx", claimTxCases[Tx]())
	cfg.cases(t, "trace", traceCases[Tx]())
	cfg.cases(t, "late", lateCases[Tx]())
	cfg.cases(t, "tx pinned", pinnedTxCases[Tx]())
	t.Run("txmodel", func(t *testing.T) { checkTxModel(t, cfg) })
}

// RunTxConcurrent checks that effects happen once in a storm of copies and failures.
func RunTxConcurrent[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	cfg.cases(t, "storm", stormCases[Tx]())
}

// RunFaults checks what a store says, and what it left behind, when a commit or a write fails
// before or after it became durable. Config's Open must supply FailCommit. It covers responses, guards and
// the outbox if the stores that cfg opens have them.
func RunFaults[Tx any](t *testing.T, cfg TxConfig[Tx]) {
	cfg.cases(t, "faults", faultCases[Tx]())
	s := cfg.fresh(t).TxStore
	if _, ok := s.(hookonce.TxResponseStore[Tx]); ok {
		cfg.cases(t, "response faults", responseFaultCases[Tx]())
	}
	if _, ok := s.(hookonce.Guards[Tx]); ok {
		cfg.cases(t, "guard faults", guardFaultCases[Tx]())
	}
	if _, ok := s.(hookonce.Outbox[Tx]); ok {
		cfg.cases(t, "outbox faults", outboxFaultCases[Tx]())
	}
}

// fixture is a store in lease mode over a fresh database.
type fixture struct {
	hookonce.Store
	clock *Clock
	open  func(Options) hookonce.Store
}

// another opens a further store on the same database and the same clock.
func (f *fixture) another() hookonce.Store { return f.open(Options{Clock: f.clock.Now}) }

// inner returns the store without the fixture, for what it has besides being a store.
func (f *fixture) inner() hookonce.Store { return f.Store }

type leaseCase struct {
	name string
	run  func(t *testing.T, f *fixture)
}

func (cfg Config) cases(t *testing.T, noun string, cases []leaseCase) {
	t.Run(noun, func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, cfg.fresh(t)) })
		}
	})
}

func (cfg Config) fresh(t testing.TB) *fixture {
	f := &fixture{clock: NewClock(), open: cfg.Open(t)}
	f.Store = f.another()
	return f
}

// txFixture is a store in both modes over a fresh database.
type txFixture[Tx any] struct {
	hookonce.TxStore[Tx]
	db    Database[Tx]
	clock *Clock
	names int // that the case made up; see next
}

// another opens a further store on the same database and the same clock, with its own bounded wait.
func (f *txFixture[Tx]) another(wait time.Duration) hookonce.TxStore[Tx] {
	return f.db.Store(Options{Clock: f.clock.Now, Wait: wait})
}

// next returns a number that the case has not used yet. It is not for concurrent use.
func (f *txFixture[Tx]) next() int {
	f.names++
	return f.names
}

// inner returns the store without the fixture, for what it has besides being a store.
func (f *txFixture[Tx]) inner() hookonce.Store { return f.TxStore }

type txCase[Tx any] struct {
	name string
	run  func(t *testing.T, f *txFixture[Tx])
}

func (cfg TxConfig[Tx]) cases(t *testing.T, noun string, cases []txCase[Tx]) {
	t.Run(noun, func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.run(t, cfg.fresh(t)) })
		}
	})
}

func (cfg TxConfig[Tx]) fresh(t testing.TB) *txFixture[Tx] {
	f := &txFixture[Tx]{db: cfg.Open(t), clock: NewClock()}
	f.TxStore = f.another(0)
	return f
}
