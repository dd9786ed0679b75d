// Package memstore keeps claims in memory. It is the reference model of [hookonce.Store] and
// [hookonce.TxStore]: short enough to be read in one sitting, and the other stores are tested
// against it. Programs use it in their own tests; nothing survives the process.
//
// Its transactions stage effects, so that tests can show atomicity: what [Tx.OnCommit] is given runs
// when the transaction commits, together with the claim, or not at all.
package memstore
