package ddl

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/hookonce/hookonce/internal/pgerror"
)

// Sound returns an error that says what to do if a server that speaks PostgreSQL's protocol does not do, on connections
// like those of db, what claims rest on. It goes by what the server does, and not by what it says that it is.
//
// There may be no transactions: PgBouncer in statement mode refuses BEGIN, and carries out everything else
// (https://www.pgbouncer.org/features.html).
//
// Advisory locks may lock nothing: CockroachDB had none for transactions, and for sessions those that succeed and do
// nothing, until a change of April 2026 (https://github.com/cockroachdb/cockroach/pull/168353). One is taken, and pg_locks
// is asked for it, which takes two statements. Where it does not stand there, a second connection tries to take it as well.
//
// It writes nothing, holds that lock for a moment, and works on a standby, behind a pooler, and for every role.
func Sound(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return noTransactions(ctx, db, err)
	}
	defer tx.Rollback()
	switch mine, err := tryProbe(ctx, db, tx); {
	case err != nil:
		return err
	case !mine: // somebody else holds it, so it locks
		return nil
	}
	var listed bool
	err = tx.QueryRowContext(ctx, `SELECT EXISTS (SELECT FROM pg_locks
		WHERE locktype = 'advisory' AND granted AND pid = pg_backend_pid())`).Scan(&listed)
	if listed || ctx.Err() != nil {
		return ctx.Err()
	}
	_ = tx.Rollback() // its lock is gone with a statement that failed
	return lockedTwice(ctx, db, err == nil)
}

// noTransactions returns err, with which BEGIN failed, and the reason if everything else works. Not every driver passes
// the server's on.
func noTransactions(ctx context.Context, db *sql.DB, err error) error {
	if _, alone := db.ExecContext(ctx, "SELECT 1"); alone != nil {
		return err
	}
	return fmt.Errorf("hookonce: transactions are refused, which claim and effect need, and single statements are not: is there a pooler in "+
		"statement mode? set its pool_mode to transaction or session: %w", err)
}

// probe is the number of the advisory lock that is tried.
const probe int64 = 0x686f6f6b6c6f636b // "hooklock"

func tryProbe(ctx context.Context, db *sql.DB, tx *sql.Tx) (mine bool, err error) {
	err = tx.QueryRowContext(ctx, `SELECT pg_try_advisory_xact_lock($1)`, probe).Scan(&mine)
	switch pgerror.State(err) {
	case "42883", "0A000": // undefined_function, feature_not_supported
		return false, unsound(ctx, db, "this server has no advisory locks of transactions", err, tx)
	}
	if err != nil {
		return false, fmt.Errorf("hookonce: trying an advisory lock: %w", err)
	}
	return mine, nil
}

// secondConnection bounds how long is waited for one: a pool may have no other.
const secondConnection = 2 * time.Second

// lockedTwice returns an error if two transactions are given the same advisory lock at once. Where there is no second
// connection it is an error as well if the server keeps a list of locks, and the first was not on it.
func lockedTwice(ctx context.Context, db *sql.DB, lists bool) error {
	one, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer one.Rollback()
	if mine, err := tryProbe(ctx, db, one); err != nil || !mine {
		return err
	}
	short, cancel := context.WithTimeout(ctx, secondConnection)
	defer cancel()
	two, err := db.BeginTx(short, nil)
	if err != nil {
		if ctx.Err() != nil || !lists {
			return ctx.Err()
		}
		return unsound(ctx, db, "advisory locks of this server may lock nothing: pg_locks has none that is held, "+
			"and there was no second connection to try it with: give the pool two", err, one)
	}
	defer two.Rollback()
	if mine, err := tryProbe(short, db, two); err != nil || !mine {
		return err
	}
	return unsound(ctx, db, "advisory locks of this server lock nothing: two transactions were given the same one at once", nil, one, two)
}

// unsound says what is wrong, of which server, what it would lead to and what to do. It ends the transactions, because there
// may be no other connection.
func unsound(ctx context.Context, db *sql.DB, what string, because error, open ...*sql.Tx) error {
	for _, tx := range open {
		_ = tx.Rollback()
	}
	version := "its version is not known"
	_ = db.QueryRowContext(ctx, `SELECT version()`).Scan(&version)
	if because != nil {
		what = fmt.Sprintf("%s: %v", what, because)
	}
	return fmt.Errorf("hookonce: %s (%s). Events would be lost: a purge deletes what a replay is about to deliver; "+
		"and a claim that is purged is won twice. Use PostgreSQL, or a version of the engine whose advisory locks hold, as CockroachDB's do "+
		"since a change of April 2026; `hookonce doctor --conformance` tries them", what, version)
}
