// Package storetest is the conformance suite of claim stores. It checks every promise that the
// comments of [hookonce.Store] and [hookonce.TxStore] make, and of what a store may have besides, over a
// fresh database for every case.
//
// A store's own test says how to open it, and calls:
//
//   - [Run] and [RunConcurrent] for the lease mode,
//   - [RunTx] and [RunTxConcurrent] for the in-transaction mode,
//   - [RunResponses], or [RunTxResponses], if it keeps responses,
//   - [RunGuards] if it has guards,
//   - [RunOutbox] if it has an outbox,
//   - [RunInspector] if it lists what it holds, and [RunTallier] if it keeps what processes counted,
//   - [RunHistory] for the order of everything that happens at once, under faults,
//   - [RunFaults] for commits and writes that fail before and after they became durable,
//   - [Bench] for its speed.
//
// Run them once for every way in which users connect. A store that has an ability implements its
// interface, and the suite finds it there: the same configuration serves all of them.
// What cannot be found, the configuration says: that the store decides at the commit who wins, and so nobody waits for
// another's transaction (AtCommit of [TxConfig]), and that it refuses responses above a size (MaxResponse).
package storetest
