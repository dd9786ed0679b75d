package storetest

import (
	"testing"

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
	if cfg.AtCommit {
		cfg.cases(t, "overlap", overlapCases[Tx]())
	} else {
		cfg.cases(t, "wait", waitCases[Tx]())
	}
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
