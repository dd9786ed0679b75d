package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/schema"
)

// Dialect is the kind of database that a store speaks to.
type Dialect = schema.Dialect

// The dialects.
const (
	// SQLite is SQLite 3.35 or later.
	SQLite = schema.SQLite
	// Postgres is PostgreSQL 13 or later.
	Postgres = schema.Postgres
	// MySQL is MySQL 8.0 or later, or MariaDB 10.6 or later.
	MySQL = schema.MySQL
)

// dialects make what the store needs to know about each, from what stands before the names of tables.
var dialects = map[Dialect]func(prefix string) dialect{SQLite: sqlite, Postgres: postgres, MySQL: mysql}

// named returns what the store needs to know about d, with the tables under name.
func named(d Dialect, name string) (dialect, error) {
	prefix, err := schema.Prefix(d, name)
	if err != nil {
		return dialect{}, err
	}
	own := dialects[d](prefix)
	own.schema = d
	return own, nil
}

// dialect is what differs between databases: texts, the form of times, and the meaning of answers.
type dialect struct {
	statements
	schema schema.Dialect
	// time is the form in which a time is stored.
	time func(time.Time) any
	// peeks says that reading before writing is cheap, and spares others from waiting for a writer
	// that has nothing to write.
	peeks bool
	// limit is how the bounded wait is imposed where it is a setting of the connection; nil where the
	// claiming statement bounds its own wait.
	limit func(wait time.Duration) setting
	// alone says that a handler's transaction has a connection for itself, with hold set there meanwhile.
	alone bool
	hold  setting
	// decide runs the claiming statement until its answer is certain.
	decide func(d dialect, ctx context.Context, q querier, p proposal) (ruling, error)
	// trace leaves the trace of a failed attempt, unless it has to give way, and reports whether it did. To work
	// that is done it gives way, but for what the attempt itself stored as done at the time made; zero: nothing.
	trace func(d dialect, ctx context.Context, q querier, failed hookonce.Claim, made time.Time) (recorded bool, err error)
	// change runs a statement that changes one row, and reads that row as it is then. It reports whether
	// the statement applied.
	change func(ctx context.Context, q querier, c change, dest ...any) (applied bool, err error)
	// mark and unmark stand around what the handler does: unmark reports whether the transaction is still the
	// one with the mark. It is known by its number where the database gives it one.
	mark   func(ctx context.Context, tx *sql.Tx, number int64) (int64, error)
	unmark func(ctx context.Context, tx *sql.Tx, number int64) (intact bool, err error)
	// committed reports whether the transaction with that number, which made the claim, and is over, was
	// committed.
	committed func(d dialect, ctx context.Context, q querier, c hookonce.Claim, number int64) (bool, error)
	// applied reads from the answer to a guard's statement whether it changed or made the row.
	applied func(sql.Result) (bool, error)
	// take leases those of the effects that were seen to be due and still are, and returns them.
	take func(d dialect, ctx context.Context, db *sql.DB, seen due, now, lease time.Time) ([]hookonce.QueuedEffect, error)
	// purge deletes at most limit rows, with what goes with them, and returns how many.
	purge func(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (int64, error)
	// contended tells an error that means "not now".
	contended func(error) contention
	// sound returns an error that says what to change if no claim would hold on connections like these.
	sound func(ctx context.Context, db *sql.DB) error
	// oversize tells responses that are larger than the database takes.
	oversize oversize
	// exists reports whether an error means that there is such a row already.
	exists func(error) bool
	// refused reports whether the error of a commit means that the database answered, and that
	// nothing was committed.
	refused func(error) bool
	// unmigrated reports whether the error of one of the store's own statements, which q ran, means
	// that the tables under name are missing or too old.
	unmigrated func(ctx context.Context, q querier, name string, err error) bool
}

// nullable is a time in the dialect's form; zero is null.
func (d dialect) nullable(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return d.time(t)
}

// row is a claim as the columns of the table have it.
func (d dialect) row(c hookonce.Claim) []any {
	return []any{
		c.Source, c.Key, string(c.State), c.Token, d.nullable(c.Lease), c.Type, digest(c.Digest),
		d.time(c.FirstSeen), d.time(c.UpdatedAt), c.LastError, c.Pinned,
	}
}

// micros is the form of times in databases that have none that is good enough.
func micros(t time.Time) any { return t.UnixMicro() }

// change is a statement that changes one row, and the query that reads this row.
type change struct {
	statement, read statement
	args, readArgs  []any
}

// changeReturning is for databases where the statement returns the row.
func changeReturning(ctx context.Context, q querier, c change, dest ...any) (applied bool, err error) {
	return one(ctx, q, c.statement, c.args, dest...)
}

// traceAtOnce is for databases where one statement does it.
func traceAtOnce(d dialect, ctx context.Context, q querier, failed hookonce.Claim, made time.Time) (recorded bool, err error) {
	n, err := affected(run(ctx, q, d.leave, append(d.row(failed), d.nullable(made))...))
	return n > 0, err
}

// wrote is for databases that count the rows that a statement changed or made.
func wrote(result sql.Result) (bool, error) {
	n, err := result.RowsAffected()
	return n > 0, err
}

// contention is why a statement did not get its turn.
type contention int

const (
	// uncontended errors are about something else.
	uncontended contention = iota
	// held: the bounded wait for another transaction is over.
	held
	// again: the same may succeed when it is tried again.
	again
)

// proposal is a row that would own its key.
type proposal struct {
	hookonce.ClaimRequest
	state hookonce.State
	now   time.Time
	lease time.Time      // zero: none
	wait  *time.Duration // nil: as long as the database lets it
}

// pinned is the column of that name in a row with the token: see [hookonce.Claim.Pinned].
func (p proposal) pinned(token int64) int64 {
	if p.Pin {
		return token
	}
	return 0
}

// ruling is the claiming statement's answer.
type ruling struct {
	claim  hookonce.Claim
	won    bool
	before []byte // digest that was stored before
	number int64  // of the transaction, where the database gives it one
}

// digest is a digest in the form of every dialect: none is null.
func digest(d []byte) any {
	if len(d) == 0 {
		return nil
	}
	return d
}

// maxRounds bounds how often a statement is run again because another worker changed the row at the same
// moment. Each round means that another attempt began or ended meanwhile.
const maxRounds = 20
