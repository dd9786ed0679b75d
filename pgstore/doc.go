// Package pgstore keeps claims in PostgreSQL through pgx, so that a claim and the effect that the
// handler writes commit together, or not at all.
//
//	pool, err := pgxpool.New(ctx, dsn)
//	store := pgstore.New(pool)
//	err = store.Migrate(ctx) // or: hookonce migrate
//	http.Handle("POST /webhooks/stripe", hookonce.Webhook(store, provider.Stripe(secret), handle))
//
// An attempt costs what a transaction written by hand costs: BEGIN and the claim travel in one round
// trip, then come the handler's own statements, then COMMIT. A copy of finished work is recognised
// without a row lock and without writing anything.
//
// # Connections
//
// Every [pgx.QueryExecMode] works. Behind a pooler in transaction mode, such as PgBouncer, set a mode
// that keeps no prepared statements on the server (default_query_exec_mode=cache_describe, exec or
// simple_protocol), as for any other use of pgx there.
//
// A transaction runs at the database's default isolation level. Under READ COMMITTED, PostgreSQL's
// own default, copies of an event wait for each other. Under REPEATABLE READ and SERIALIZABLE the
// loser of a race for the claim is told so by the server, and the store tries again by itself a few
// times; a serialization failure in the handler's statements or at the commit is a failed attempt
// like any other.
package pgstore
