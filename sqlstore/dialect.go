package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ddl"
)

// dialect is what differs between databases: texts, the form of times, and the meaning of answers.
type dialect struct {
	statements
	schema ddl.Dialect
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
	// that is done it gives way, but for what the attempt itself stored as done: then opened is true, where the database
	// tells what became of a transaction by its number.
	trace func(d dialect, ctx context.Context, q querier, failed hookonce.Claim, own torn) (recorded, opened bool, err error)
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
	take func(d dialect, ctx context.Context, on session, seen due, now, lease time.Time) ([]hookonce.QueuedEffect, error)
	// purge deletes at most limit rows, with what goes with them, and returns how many.
	purge func(ctx context.Context, db *sql.DB, d doom, args []any, limit int) (int64, error)
	// contended tells an error that means "not now".
	contended func(error) contention
	// sound returns an error that says what to change if no claim would hold on connections like these.
	sound func(ctx context.Context, db *sql.DB) error
	// writable returns an error that says what to change if this user may read claims, and nothing can be written. Nil: the
	// tables' own check tells.
	writable func(ctx context.Context, db *sql.DB) error
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

// statements are what a dialect says.
type statements struct {
	// Claims. The statement that claims and the one that leaves a trace have texts of each dialect's own.
	claim, takeOver, leave, lookup, complete, fail, forget, extend statement
	// Responses.
	keep, response statement
	// Guards.
	newest, transition, state statement
	// Effects.
	enqueue, due, suspects, takeEffects, effect, completeEffect, failEffect, extendEffect, redrive statement
	// Lists of effects, by state. It stands in the text, so that the server can tell which index
	// knows all such.
	effects map[hookonce.State]statement
	// Reads under locks, where statements that write return nothing.
	lockClaim, lockEffects statement
	// Purges.
	dooms map[string]doom // by [claimsql.Doomed]
}

// common are the statements that are the same in all dialects but for a word.
func common(sql func(string) statement) statements {
	return statements{
		lookup: sql(`SELECT {{columns ""}} FROM {{.}}claims WHERE source = @1 AND {{.Key}} = @2`),
		complete: sql(`
			UPDATE {{.}}claims SET state = 'done', lease_until = NULL, updated_at = @4{{.Passed}}
			WHERE source = @1 AND {{.Key}} = @2 AND token = @3 AND state = 'processing'
			{{.ReturningClaim}}`),
		fail: sql(`
			UPDATE {{.}}claims SET state = @5, lease_until = NULL, updated_at = @4, last_error = @6,
				pinned = {{pinned "" "@7"}}{{.Passed}}
			WHERE source = @1 AND {{.Key}} = @2 AND token = @3 AND state = 'processing'
			{{.ReturningClaim}}`),
		forget: sql(`DELETE FROM {{.}}claims WHERE source = @1 AND {{.Key}} = @2 AND token = @3 AND state = 'processing' AND first_seen = @4`),
		extend: sql(`
			UPDATE {{.}}claims SET lease_until = @5, updated_at = @4{{.Passed}}
			WHERE source = @1 AND {{.Key}} = @2 AND token = @3 AND state = 'processing'
			{{.ReturningClaim}}`),

		response: sql(`SELECT status, header, body FROM {{.}}responses WHERE source = @1 AND {{.Key}} = @2`),

		state: sql(`SELECT state FROM {{.}}states WHERE entity = @1{{.Locked}}`),

		due: sql(`
			SELECT id, due_at FROM {{.}}effects WHERE name = @1 AND due_at <= @2 AND state <> 'processing'
			ORDER BY due_at, id LIMIT @3`),
		suspects: sql(`
			SELECT id, due_at FROM {{.}}effects WHERE name = @1 AND due_at <= @2 AND state = 'processing'
			ORDER BY due_at, id LIMIT @3`),
		effect: sql(`SELECT {{.Effect}} FROM {{.}}effects WHERE id = @1`),
		completeEffect: sql(`
			UPDATE {{.}}effects SET state = 'done', deaths = 0, due_at = NULL, updated_at = @3{{.Passed}}
			WHERE id = @1 AND token = @2 AND state = 'processing'
			{{.ReturningEffect}}`),
		failEffect: sql(`
			UPDATE {{.}}effects SET state = @4, deaths = 0, due_at = @5, updated_at = @3, last_error = @6{{.Passed}}
			WHERE id = @1 AND token = @2 AND state = 'processing'
			{{.ReturningEffect}}`),
		extendEffect: sql(`
			UPDATE {{.}}effects SET due_at = @4, updated_at = @3{{.Passed}}
			WHERE id = @1 AND token = @2 AND state = 'processing'
			{{.ReturningEffect}}`),
		redrive: sql(`
			UPDATE {{.}}effects SET state = 'failed', tries = 0, deaths = 0, due_at = @2, updated_at = @2{{.Passed}}
			WHERE id = @1 AND state = 'dead'
			{{.ReturningEffect}}`),
		effects: effectsBy(func(state hookonce.State) statement {
			return sql(`SELECT {{.Effect}} FROM {{.}}effects WHERE state = '` + string(state) + `' AND id > @1 ORDER BY id LIMIT @2`)
		}),
	}
}

// effectsBy returns the list of effects in each state.
func effectsBy(list func(hookonce.State) statement) map[hookonce.State]statement {
	all := map[hookonce.State]statement{}
	for _, state := range []hookonce.State{
		hookonce.StatePending, hookonce.StateProcessing, hookonce.StateFailed, hookonce.StateDead, hookonce.StateDone,
	} {
		all[state] = list(state)
	}
	return all
}

// change is a statement that changes one row, and the query that reads this row.
type change struct {
	statement, read statement
	args, readArgs  []any
}

// changeReturning is for databases where the statement returns the row.
func changeReturning(ctx context.Context, q querier, c change, dest ...any) (applied bool, err error) {
	return one(ctx, q, c.statement, c.args, dest...)
}

// wrote is for databases that count the rows that a statement changed or made.
func wrote(result sql.Result) (bool, error) {
	n, err := result.RowsAffected()
	return n > 0, err
}

// setting is an assignment to settings of a connection, and the one that puts back what was there.
type setting struct{ impose, lift string }

// oversize is how a database says that it takes no response as large as one.
type oversize struct {
	// fits returns an error that wraps [hookonce.ErrResponseTooLarge] if that is known before r is sent.
	fits func(ctx context.Context, q querier, r hookonce.Response) error
	// told reports whether an error says so afterwards.
	told func(error) bool
}

func tooLarge(n, most int64) error {
	return fmt.Errorf("%w: the database takes at most %d bytes, and this needs %d", hookonce.ErrResponseTooLarge, most, n)
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

// errOvertaken says that other workers changed the row in every round of the claiming statement.
var errOvertaken = errors.New("sqlstore: other workers kept changing the claim")

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

// fresh is the claim under a key that was never seen.
func (p proposal) fresh() hookonce.Claim {
	return hookonce.Claim{
		Ref: p.Ref, State: p.state, Token: 1, Lease: p.lease, Type: p.Type, Digest: p.Digest, FirstSeen: p.now, UpdatedAt: p.now,
		Pinned: p.pinned(1),
	}
}

// over is the claim that takes over the one that was seen. It keeps what a later copy does not say.
func (p proposal) over(seen hookonce.Claim) hookonce.Claim {
	c := seen
	c.State, c.Token, c.Lease, c.UpdatedAt = p.state, seen.Token+1, p.lease, p.now
	c.Pinned = cmp.Or(seen.Pinned, p.pinned(c.Token))
	if p.Type != "" {
		c.Type = p.Type
	}
	if len(p.Digest) > 0 {
		c.Digest = p.Digest
	}
	return c
}

// ruling is the claiming statement's answer.
type ruling struct {
	claim  hookonce.Claim
	won    bool
	before []byte // digest that was stored before
	number int64  // of the transaction, where the database gives it one
}

// maxRounds bounds how often a statement is run again because another worker changed the row at the same
// moment. Each round means that another attempt began or ended meanwhile.
const maxRounds = 20

// due are the numbers of effects that are due, the longest due first, and those of the suspects among them.
type due struct{ ids, suspects []int64 }

// takeAtOnce is for databases where one statement does it.
func takeAtOnce(d dialect, ctx context.Context, on session, seen due, now, lease time.Time) ([]hookonce.QueuedEffect, error) {
	return effects(ctx, on, d.takeEffects, list(seen.ids), list(seen.suspects), d.time(now), d.time(lease))
}

// list returns numbers with commas between them.
func list(ids []int64) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	return strings.Join(texts, ",")
}

// torn is what a failed attempt may have stored without what came after it.
type torn struct {
	made   time.Time // when the claim was made that is the attempt's own; zero: whatever is done stays so
	number int64     // of the transaction, on databases that give it one
	error  string    // what is on record if the claim is opened again, where the database tells that
}

// traceAtOnce is for databases where one statement does it.
func traceAtOnce(d dialect, ctx context.Context, q querier, failed hookonce.Claim, own torn) (recorded, opened bool, err error) {
	n, err := affected(run(ctx, q, d.leave, append(d.row(failed), d.nullable(own.made))...))
	return n > 0, false, err
}

// doom is how rows of one table are purged. The parameters of all statements but the first are the source, if rows
// have one, the span, and the limit.
type doom struct {
	next statement // the first source after the one that is the parameter; empty: rows have none
	count,
	look, // the keys of the rows, as they are written in a statement; only where the next ones need them
	along, // deletes what goes with the rows, before them
	rows statement
}

// purged is a table that can be purged.
type purged struct {
	table, key string // key: its columns
	over       string // which rows are over and done with, besides their age
	sourced    bool
}

// withDooms adds how each table is purged, with what is different in each dialect filled in by own.
func (s statements) withDooms(sql func(string) statement, own func(d *doom, p purged, chosen string)) statements {
	fill := func(p purged) (d doom) {
		chosen := `FROM ` + p.table + ` WHERE updated_at >= @1 AND updated_at < @2 LIMIT @3`
		if p.sourced {
			d.next = sql(`SELECT min(source) FROM ` + p.table + ` WHERE source > @1`)
			chosen = `FROM ` + p.table + ` WHERE source = @1 AND ` + p.over + ` AND updated_at >= @2 AND updated_at < @3 ORDER BY updated_at LIMIT @4`
		}
		d.count = sql(`SELECT count(*) FROM (SELECT 1 AS one ` + chosen + `) AS old`)
		own(&d, p, chosen)
		return d
	}
	s.dooms = map[string]doom{
		"done":     fill(purged{`{{.}}claims`, `source, {{.Key}}`, `state = 'done'`, true}),
		"failed":   fill(purged{`{{.}}claims`, `source, {{.Key}}`, `state IN ('failed', 'dead')`, true}),
		"effects":  fill(purged{`{{.}}effects`, `id`, `state = 'done'`, true}),
		"versions": fill(purged{table: `{{.}}versions`, key: `resource`}),
		"states":   fill(purged{table: `{{.}}states`, key: `entity`}),
	}
	return s
}

// claims reports whether p is the table of claims, with which responses go.
func (p purged) claims() bool { return p.table == `{{.}}claims` }

// savepoint returns what leaves a mark that is gone when the transaction is, and what looks for it. Its name is one
// that no handler gives to a savepoint of its own, and stays the same, because servers keep figures for each text.
func savepoint() (mark func(context.Context, *sql.Tx, int64) (int64, error), unmark func(context.Context, *sql.Tx, int64) (bool, error)) {
	name := fmt.Sprintf("hookonce_%016x", rand.Uint64())
	mark = func(ctx context.Context, tx *sql.Tx, number int64) (int64, error) {
		_, err := tx.ExecContext(ctx, "SAVEPOINT "+name)
		return number, err
	}
	unmark = func(ctx context.Context, tx *sql.Tx, _ int64) (intact bool, err error) {
		_, err = tx.ExecContext(ctx, "RELEASE SAVEPOINT "+name)
		if err != nil && (mysqlNumber(err) == 1305 || strings.Contains(err.Error(), "no such savepoint")) { // ER_SP_DOES_NOT_EXIST
			return false, nil
		}
		return err == nil, err
	}
	return mark, unmark
}

// committedClaim looks for the claim as the attempt made it, to the microsecond. Another attempt's has another
// token, or was made later.
func committedClaim(d dialect, ctx context.Context, q querier, c hookonce.Claim, _ int64) (bool, error) {
	if c.Key == "" {
		return false, errors.New("the event has no key to look it up by")
	}
	var stored hookonce.Claim
	found, err := one(ctx, q, d.lookup, []any{c.Source, c.Key}, fields(&stored)...)
	return found && stored.State == hookonce.StateDone && stored.Token == c.Token &&
		stored.FirstSeen.Equal(c.FirstSeen) && stored.UpdatedAt.Equal(c.UpdatedAt), err
}

// numberIn returns the integer in a driver's error under the name of a field, or 0. It is how to read the
// code of drivers that have no method for it, without importing them. Handlers join errors, so it goes into
// those as well, and the first number counts.
func numberIn(err error, field string) int {
	if v := reflect.Indirect(reflect.ValueOf(err)); v.Kind() == reflect.Struct {
		switch number := v.FieldByName(field); {
		case !number.IsValid():
		case number.CanInt():
			return int(number.Int())
		case number.CanUint():
			return int(number.Uint())
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return numberIn(e.Unwrap(), field)
	case interface{ Unwrap() []error }:
		for _, err := range e.Unwrap() {
			if n := numberIn(err, field); n != 0 {
				return n
			}
		}
	}
	return 0
}

// mysqlNumber returns the number of the error that the server answered with, or 0 if it did not. The driver
// of MySQL has no method for it, only a field.
func mysqlNumber(err error) int { return numberIn(err, "Number") }

// never is for databases that have no such error.
func never(error) bool { return false }
