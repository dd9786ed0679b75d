// Package pgstore keeps claims in PostgreSQL through pgx, so that a claim and the effect that the
// handler writes commit together, or not at all.
//
//	pool, err := pgxpool.New(ctx, dsn)
//	store := pgstore.New(pool)
//	err = store.Check(ctx) // the tables are made by: hookonce migrate, or by package schema
//	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", provider.Stripe(secret), handle))
//
// An attempt costs what a transaction written by hand costs: BEGIN and the claim travel in one round
// trip, then come the handler's own statements, then COMMIT. A copy of finished work is recognised
// without a row lock and without writing anything.
//
// A handler that only writes can queue its statements instead of running them, and then all of it is one round trip: see
// [Store.Batches].
//
// # Besides claims
//
// A store keeps the responses of finished work with the claim ([Store.KeepResponse], [Store.CompleteWith]);
// [hookonce.Idempotent] uses that. It keeps effects that are to happen after the commit ([Store.Enqueue]) until
// a relay carries them out ([Store.TakeEffects]). And it tells newer from older, and one state from another,
// in the handler's transaction ([Store.Newer], [Store.Transition]; handlers of [hookonce.Webhook] use
// [hookonce.Newer] and [hookonce.Transition]):
//
//	func handle(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
//		newer, err := hookonce.Newer(ctx, tx, ev)
//		if err != nil || !newer {
//			return err // nil: a later event was applied before
//		}
//		if err := update(ctx, tx, ev); err != nil {
//			return err
//		}
//		return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail.receipt", Payload: receipt(ev)})
//	}
//
// Each of these is one round trip.
//
// Transactions that ask a guard about the same thing wait until the first
// one ends, as long as their lock_timeout lets them; ask several guards in the same order everywhere, or the
// server refuses one of two transactions that wait for each other (SQLSTATE 40P01), which is a failed
// attempt like any other.
//
// Whoever wants to know when another process is done calls [Store.Await], which looks again and again, or,
// with [WithNotify], is told.
//
// # The end of the transaction
//
// The store ends the transaction when the handler returns: Commit and Rollback of the [pgx.Tx] that a handler has
// refuse. A handler that calls Rollback, a deferred one as well, and not Commit before, and returns nil has failed: nothing is
// stored. So has one that returns nil after a statement outside of savepoints had failed, also one that did not come to the server,
// because the rows of another one were open, say. Refused are also batches of several statements unless each is known to leave the transaction open: a name of a prepared
// statement is not, nor a text of several statements; send these by themselves. A handler that ends it with a statement by
// itself (ROLLBACK AND CHAIN, COMMIT; BEGIN) is noticed by the number of the transaction, which travels with the COMMIT in one
// round trip:
//
//   - after a rollback nothing of the transaction is stored, further statements through the [pgx.Tx] are refused, and the attempt
//     failed. But where a text may be several statements, in simple_protocol, the server stores what follows a ROLLBACK in the
//     same text, whatever the error says: give each statement a text of its own;
//   - after a commit the rest is committed as well, so that nothing gets lost, the copy that comes next is a duplicate,
//     and the error says that a crash in between would have torn the two apart;
//   - a handler that commits by itself and then fails (an error, a panic, the end of its time) has failed: the claim is opened
//     again, and the next copy runs the handler, which repeats what was committed. What came after that may be lost, and to lose
//     is worse than to repeat. Copies that come before that is on record are told that the work is done, and a cache in front of
//     the store ([hookonce.Cached]) goes on to say so. So it stays if the process or the database dies meanwhile.
//
// The store does not see what is sent through [pgx.Tx].Conn until the end. Nothing of the transaction is to be used after
// the handler returned, its Conn included: the connection goes back to the pool, and what a goroutine sends through it
// then is stored by whoever has the connection next, as with the claim of another event.
//
// # Poolers
//
// Every [pgx.QueryExecMode] works. Behind a pooler in transaction mode, such as PgBouncer, set a mode
// that keeps no prepared statements on the server (default_query_exec_mode=cache_describe, exec or
// simple_protocol), as for any other use of pgx there. In statement mode there are no transactions: Migrate and
// Check refuse it.
//
// # Connections
//
// A handler has one connection of the pool, for as long as it runs. One that takes another, instead of the
// transaction that it was given, waits for itself once handlers hold them all; the error of a time that ran out
// then says so.
//
// Heartbeats of leases, and what came of work, do not wait for that: they share one connection beside
// the pool, which [Store.Close] closes.
//
// # Isolation
//
// A transaction runs at the database's default isolation level. Under READ COMMITTED, PostgreSQL's
// own default, copies of an event wait for each other.
//
// Under REPEATABLE READ and SERIALIZABLE the
// loser of a race for the claim is told so by the server, and the store tries again by itself a few
// times; a serialization failure in the handler's statements, guards and Enqueue among them, or at the
// commit is a failed attempt like any other.
package pgstore
