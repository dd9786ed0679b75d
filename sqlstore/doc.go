// Package sqlstore keeps claims in a database behind database/sql: SQLite, PostgreSQL, or MySQL and MariaDB,
// with whatever driver the program already uses (tested with modernc.org/sqlite, github.com/mattn/go-sqlite3,
// github.com/jackc/pgx/v5/stdlib, github.com/lib/pq and github.com/go-sql-driver/mysql). It implements
// [hookonce.TxStore], so that a handler's effect commits together with the claim, or not at all, and besides
// [hookonce.TxResponseStore], [hookonce.Guards] and [hookonce.Outbox].
//
//	store := sqlstore.New(db, sqlstore.Postgres)
//	if err := store.Check(ctx); err != nil { ... } // the tables are made by: hookonce migrate, or by package schema
//	claim, err := store.Within(ctx, request, func(tx *sql.Tx, c hookonce.Claim) error {
//		_, err := tx.ExecContext(ctx, "UPDATE invoices SET paid = true WHERE id = $1", id)
//		return err
//	})
//
// Programs that use pgx directly are better served by package pgstore, which saves round trips.
//
// # The end of the transaction
//
// The store ends the transaction when the handler returns. A handler must not: neither with tx.Commit
// or tx.Rollback, nor with a statement of its own such as ROLLBACK. What the handler did before such an
// end stands or falls with it, and what it does afterwards is no longer bound to the claim.
//
// The store notices before it commits, by a mark that is gone when the transaction is (its number on
// Postgres, a savepoint elsewhere), and answers with an error that says what to change:
//
//   - the transaction was rolled back, by the handler (a deferred Rollback as well) or by a statement whose
//     error it hid: nothing is stored with the claim, the attempt failed, and the next copy runs the handler;
//   - the transaction was committed by the handler, or in passing by a statement such as MySQL's CREATE TABLE:
//     the store commits what came after it as well, so that nothing gets lost, and the next copy is a duplicate.
//     A crash in between would have torn the two apart;
//   - a statement had failed and the handler hid it (Postgres): the transaction is rolled back, the attempt failed. That holds of
//     what came to the server, and not of what the driver refused, because the rows of another statement were open, say; elsewhere
//     a statement that failed undoes nothing but itself. Return every error. Nor does it hold of the end of a savepoint that
//     database/sql refuses, because its context has ended: begin and end a part with the handler's own context, and give a
//     shorter one only to what is called within.
//
// On MySQL and Postgres a handler that returns an error after a statement that committed has failed: what was not
// committed is rolled back, the claim is failed again, and the next copy runs the handler, which repeats what was
// committed. Copies that come in between are told that the work is done, and a cache in front of the store
// ([hookonce.Cached]) goes on to say so. So it stays if the process or the database dies meanwhile, and on MySQL also
// after tx.Commit, and after the end of the handler's context: then the rest is lost. On Postgres these two make no difference,
// because the row of the claim says which transaction wrote it.
//
// Only what cannot be told is [hookonce.ErrUnknownOutcome], as for an event without a key, whose claim could
// be looked up.
//
// What a handler does after a rollback that it hides would be stored statement by statement, and
// again at the next attempt. On SQLite the store refuses these commits, and those of the handler's own; on
// MySQL autocommit is off meanwhile, so that nothing is stored unless the handler commits that as well (ROLLBACK,
// INSERT, COMMIT), which nothing prevents. On Postgres nothing prevents either: a handler must not send ROLLBACK there.
//
// # PostgreSQL
//
// Claims live in the schema hookonce (see [WithSchema]). A claim is one statement. A duplicate of
// finished work takes no row lock and writes nothing. The isolation level is the database's default;
// READ COMMITTED is best. Under a stricter level a lost race is a serialization failure, which the
// store answers by trying again and then with Busy.
//
// # SQLite
//
// Claims live in tables with the prefix hookonce_. A SQLite database has one writer at a time, so a
// handler that runs long holds up every other claim, not only copies of its own event. Open it with
// write-ahead logging, a busy timeout and full synchronisation:
//
//	sql.Open("sqlite", "file:app.db?_pragma=journal_mode(WAL)&_pragma=busy_timeout(1000)&_pragma=synchronous(FULL)") // modernc
//	sql.Open("sqlite3", "file:app.db?_journal_mode=WAL&_busy_timeout=1000&_synchronous=FULL")                       // mattn
//
// In memory (:memory:) each connection has a database of its own: call SetMaxOpenConns(1), or open a file or
// file::memory:?cache=shared. Check refuses the rest.
//
// With synchronous=NORMAL a power failure can lose a claim, and its effect, after the provider was
// told that all is well. Without write-ahead logging a reader can make a commit fail, which is a
// failed attempt like any other.
//
// The busy timeout serves the handler's own statements; while it lasts a
// statement does not notice that its context has ended, so keep it short. The store itself tries
// again until its bounded wait is over (see [WithWait]). A handler must use the transaction that it
// is given: any other connection waits for it in vain.
//
// # SQLite: statements that are interrupted
//
// An interrupted statement, as of a context with a timeout that the handler made for it, ends the whole
// transaction. While the handler runs the store therefore refuses every commit on its connection, through
// SQLite's commit hook.
//
// Modernc, mattn and ncruces have a method for that, which is found by its name, also
// behind wrappers with a method Raw. The hook stays on the connection, in place of one that the program has
// registered, and consents to everything while no handler runs. With a driver that has no such method the
// store notices the end of the transaction, but does not prevent what is stored after it.
//
// Never use the shared cache with PRAGMA read_uncommitted: a copy is then told that work is done which may
// still be rolled back. Migrate and Check refuse it.
//
// # MySQL and MariaDB
//
// Claims live in tables with the prefix hookonce_. Text is kept there as bytes, so that keys which differ in
// case or in a space at the end stay different, whatever the collation: CONVERT(last_error USING utf8mb4)
// makes it readable in clients that show bytes as hexadecimal digits.
//
// The tests run on MariaDB 10.11, under
// REPEATABLE READ, the default, under SERIALIZABLE, and under READ COMMITTED, which locks the least. MySQL 8.0
// documents the same of everything that is used here, and was not tested. READ UNCOMMITTED must not be used: a
// copy is then told that work is done which may still be rolled back, and nobody sends the event again. Migrate
// and Check refuse it.
//
// # MySQL: connections
//
//	sql.Open("mysql", "app@tcp(db:3306)/shop?interpolateParams=true&tx_isolation=%27READ-COMMITTED%27") // MySQL: transaction_isolation
//
// Without interpolateParams the driver prepares every statement anew, for a round trip more. Leave autocommit
// on, the default, which Migrate and Check insist on: without it whatever is outside a transaction, claims under
// a lease and the traces of failures, is gone with its connection. The store turns it off on a handler's
// connection, for as long as the handler runs.
//
// The driver waits for the answer to COMMIT and ROLLBACK without a limit:
// readTimeout, longer than any statement of yours waits, bounds that where the network goes silent just then. No
// other parameter matters to the store, neither parseTime nor multiStatements nor clientFoundRows.
//
// # MySQL: tables without transactions
//
// The handler's tables must be of an engine with transactions, as InnoDB is and the store's tables are. No rollback
// undoes what is written to a table of MyISAM, Aria or MEMORY: a handler that fails once and then succeeds has
// written there twice, and nothing says so.
//
// # MySQL: claims and locks
//
// A claim in a transaction costs eight statements around the handler's own. The bounded wait is a setting of
// the connection, innodb_lock_wait_timeout, in whole seconds: it is made for the claim alone, and put back
// before the handler runs.
//
// The claim is decided by statements that lock, before anything is read, so that what
// the handler reads under REPEATABLE READ is as new as its claim. A duplicate of finished work is answered
// from a plain read outside the transaction, and waits for no lock.
//
// A deadlock (error 1213) of claims, as where copies of an event arrive while the first one fails, is tried
// again. One in the handler ends the whole transaction on the server, and many statements (CREATE TABLE,
// TRUNCATE, LOCK TABLES) commit it in passing: see The end of the transaction. A connection on which the transaction
// was over before the store ended it is closed, and with it go the locks of LOCK TABLES, which no ROLLBACK ends.
//
// # MySQL: durability
//
// With innodb_flush_log_at_trx_commit other than 1 a crash can lose a claim, and its effect, after the provider
// was told that all is well. Nobody is told when another process finishes, because MySQL has nothing like LISTEN.
package sqlstore
