// Package memstore keeps claims in memory. It is the reference model of [hookonce.Store] and
// [hookonce.TxStore]: short enough to be read in one sitting, and the other stores are tested
// against it. Programs use it in their own tests; nothing survives the process.
//
// It has everything that a store can have: responses ([hookonce.TxResponseStore]), guards
// ([hookonce.Guards]) and an outbox ([hookonce.Outbox]).
//
// Its transactions stage what they are to store, so that tests can show atomicity: what [Tx.OnCommit] is
// given runs when the transaction commits, together with the claim, or not at all. Two transactions that
// wait for each other's rows wait until a context ends; a database would refuse one of them.
package memstore
