package conformance

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/pgerror"
)

// engine is a schema on the engine with one table, rows, and connections to try on it what the stores rest on.
type engine struct {
	*testing.T
	pool *pgxpool.Pool
	name string // of the schema
}

// engineCases are what the stores ask of the engine, one sentence each.
var engineCases = []struct {
	name string
	run  func(e *engine)
}{
	{"an advisory lock that is held is nobody else's", (*engine).advisoryLocks},
	{"an advisory lock of a transaction ends with it", (*engine).advisoryLocksEnd},
	{"what is committed is there", (*engine).commits},
	{"what is rolled back is not", (*engine).rollbacks},
	{"nobody sees what is not committed", (*engine).dirtyReads},
	{"a statement sees what was committed before it", (*engine).freshReads},
	{"rolling back to a savepoint undoes what came after it", (*engine).savepoints},
	{"a second insert waits for the first, and sees it", (*engine).secondInsert},
	{"a key is unique", (*engine).unique},
	{"counters that many raise at once lose nothing", (*engine).lostUpdates},
	{"an update that waited judges the new row", (*engine).recheck},
	{"rows that somebody has locked are skipped", (*engine).skipLocked},
	{"statements count the rows that they change", (*engine).counts},
	{"a sequence only goes up", (*engine).sequences},
	{"a bounded wait ends", (*engine).lockTimeout},
	{"a deadlock is ended", (*engine).deadlock},
	{"the clock is right, and goes forward", (*engine).clock},
	{"a notification comes after the commit", (*engine).notifications},
	{"text and bytes are kept as they are", (*engine).values},
	{"names that differ are different", (*engine).names},
}

// checkEngine tries all of it, in a schema of its own.
func (p postgresPlace) checkEngine(t *testing.T) {
	pool := testdb.Pool(t, p.pool(t))
	name := p.Name + "_engine_1"
	for _, statement := range []string{`CREATE SCHEMA ` + name, `CREATE TABLE ` + name + `.things (
		name text COLLATE "C" PRIMARY KEY, n bigint NOT NULL DEFAULT 0, body bytea)`} {
		if _, err := pool.Exec(t.Context(), statement); err != nil {
			t.Fatal(p.hide(err))
		}
	}
	for _, c := range engineCases {
		t.Run(c.name, func(t *testing.T) {
			e := &engine{t, pool, name}
			e.do(pool, `DELETE FROM `+name+`.things`)
			c.run(e)
		})
	}
}

// querier is a pool, a connection or a transaction.
type querier interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// try runs a statement and returns how many rows it says that it changed.
func (e *engine) try(q querier, sql string, args ...any) (int64, error) {
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		return 0, err
	}
	rows.Close()
	return rows.CommandTag().RowsAffected(), rows.Err()
}

func (e *engine) do(q querier, sql string, args ...any) int64 {
	e.Helper()
	n, err := e.try(q, sql, args...)
	if err != nil {
		e.Fatalf("%s: %v", sql, err)
	}
	return n
}

// ask returns the only value of a query.
func ask[V any](e *engine, q querier, sql string, args ...any) V {
	e.Helper()
	ctx, cancel := context.WithTimeout(e.Context(), patience)
	defer cancel()
	rows, err := q.Query(ctx, sql, args...)
	if err != nil {
		e.Fatalf("%s: %v", sql, err)
	}
	v, err := pgx.CollectExactlyOneRow(rows, pgx.RowTo[V])
	if err != nil {
		e.Fatalf("%s: %v", sql, err)
	}
	return v
}

// begin begins a transaction that ends with the case at the latest.
func (e *engine) begin() pgx.Tx {
	e.Helper()
	tx, err := e.pool.Begin(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

func (e *engine) commit(tx pgx.Tx) {
	e.Helper()
	if err := tx.Commit(e.Context()); err != nil {
		e.Fatal("COMMIT: ", err)
	}
}

func (e *engine) rollback(tx pgx.Tx) {
	e.Helper()
	if err := tx.Rollback(e.Context()); err != nil {
		e.Fatal("ROLLBACK: ", err)
	}
}

func (e *engine) things() string { return e.name + ".things" }

func (e *engine) insert(q querier, name string) {
	e.Helper()
	e.do(q, `INSERT INTO `+e.things()+` (name) VALUES ($1)`, name)
}

// has checks how many rows of that name are committed.
func (e *engine) has(name string, want int64, meaning string) {
	e.Helper()
	if got := ask[int64](e, e.pool, `SELECT count(*) FROM `+e.things()+` WHERE name = $1`, name); got != want {
		e.Fatalf("%d rows, want %d: %s", got, want, meaning)
	}
}

func (e *engine) advisoryLocks() {
	holder, other := e.begin(), e.begin()
	e.do(holder, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))`, e.name)
	if ask[bool](e, other, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))`, e.name) {
		e.Fatal("two transactions hold the same advisory lock: the engine takes these calls and locks nothing. " +
			"A purge may then delete what a replay is about to deliver, and a purged claim may be won twice")
	}
	session, err := e.pool.Acquire(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	defer session.Release()
	if ask[bool](e, session, `SELECT pg_try_advisory_lock(hashtextextended($1, 0))`, e.name) {
		e.do(session, `SELECT pg_advisory_unlock_all()`)
		e.Fatal("a session got the advisory lock that a transaction holds")
	}
}

func (e *engine) advisoryLocksEnd() {
	for how, end := range map[string]func(pgx.Tx){"COMMIT": e.commit, "ROLLBACK": e.rollback} {
		holder := e.begin()
		if !ask[bool](e, holder, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 1))`, e.name) {
			e.Fatal("the advisory lock is still held, although the transactions that held it are over")
		}
		end(holder)
		other := e.begin()
		if !ask[bool](e, other, `SELECT pg_try_advisory_xact_lock(hashtextextended($1, 1))`, e.name) {
			e.Fatalf("%s did not release the advisory lock of the transaction", how)
		}
		e.rollback(other)
	}
}

func (e *engine) commits() {
	tx := e.begin()
	e.insert(tx, "one")
	e.commit(tx)
	e.has("one", 1, "a COMMIT was answered, and what it committed is not there")
}

func (e *engine) rollbacks() {
	tx := e.begin()
	e.insert(tx, "one")
	e.rollback(tx)
	e.has("one", 0, "what was rolled back is there")
}

func (e *engine) dirtyReads() {
	tx := e.begin()
	e.insert(tx, "one")
	e.has("one", 0, "another connection sees what is not committed")
}

func (e *engine) freshReads() {
	tx := e.begin()
	e.do(tx, `SELECT count(*) FROM `+e.things())
	e.insert(e.pool, "one")
	if ask[int64](e, tx, `SELECT count(*) FROM `+e.things()) != 1 {
		e.Fatal("a statement does not see what was committed before it began: the isolation level is stricter than READ COMMITTED. " +
			"Copies that waited fail with 40001, or are told how things were")
	}
}

func (e *engine) savepoints() {
	tx := e.begin()
	e.insert(tx, "before")
	e.do(tx, `SAVEPOINT here`)
	e.insert(tx, "after")
	e.do(tx, `ROLLBACK TO SAVEPOINT here`)
	e.commit(tx)
	e.has("before", 1, "ROLLBACK TO SAVEPOINT took with it what came before")
	e.has("after", 0, "ROLLBACK TO SAVEPOINT did nothing: half of an attempt that failed stays")
}

// later runs f beside the case and returns what tells that it is over.
func (e *engine) later(f func() error) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- f() }()
	return ended
}

// waits checks that what was begun is not over yet, and ends it with release.
func (e *engine) waits(ended <-chan error, release func(), meaning string) error {
	e.Helper()
	select {
	case err := <-ended:
		e.Fatalf("it did not wait (%v): %s", err, meaning)
	case <-time.After(200 * time.Millisecond):
	}
	release()
	select {
	case err := <-ended:
		return err
	case <-time.After(patience):
		e.Fatal("it still waits, although nobody holds it up")
	}
	return nil
}

func (e *engine) secondInsert() {
	first, second := e.begin(), e.begin()
	e.insert(first, "one")
	var inserted int64
	ended := e.later(func() (err error) {
		inserted, err = e.try(second, `INSERT INTO `+e.things()+` (name) VALUES ('one') ON CONFLICT (name) DO NOTHING`)
		return err
	})
	if err := e.waits(ended, func() { e.commit(first) }, "two transactions insert one key at once"); err != nil {
		e.Fatalf("the second insert failed instead of finding the first: %v", err)
	}
	if inserted != 0 {
		e.Fatal("both transactions inserted the key")
	}
	if ask[int64](e, second, `SELECT count(*) FROM `+e.things()+` WHERE name = 'one'`) != 1 {
		e.Fatal("the second transaction waited for the first, and does not see what it committed")
	}
}

func (e *engine) unique() {
	e.insert(e.pool, "one")
	_, err := e.try(e.pool, `INSERT INTO `+e.things()+` (name) VALUES ('one')`)
	if err == nil {
		e.Fatal("a second row with the same primary key was inserted: every event would be new")
	}
	if state := pgerror.State(err); state != "23505" {
		e.Fatalf("a second row with the same primary key was refused with %q, want 23505: %v", state, err)
	}
}

func (e *engine) lostUpdates() {
	const workers, each = 4, 25
	e.insert(e.pool, "one")
	add := func() error {
		for range each {
			tx, err := e.pool.Begin(e.Context())
			if err != nil {
				return err
			}
			var n int64
			err = tx.QueryRow(e.Context(), `SELECT n FROM `+e.things()+` WHERE name = 'one' FOR UPDATE`).Scan(&n)
			if err == nil {
				_, err = tx.Exec(e.Context(), `UPDATE `+e.things()+` SET n = $1 WHERE name = 'one'`, n+1)
			}
			if err == nil {
				err = tx.Commit(e.Context())
			}
			if err != nil {
				_ = tx.Rollback(context.Background())
				return err
			}
		}
		return nil
	}
	var all []<-chan error
	for range workers {
		all = append(all, e.later(add))
	}
	for _, ended := range all {
		if err := <-ended; err != nil {
			e.Fatal(err)
		}
	}
	if n := ask[int64](e, e.pool, `SELECT n FROM `+e.things()); n != workers*each {
		e.Fatalf("%d transactions read a row FOR UPDATE and raised it by one, and it is at %d: updates are lost", workers*each, n)
	}
}

func (e *engine) recheck() {
	e.insert(e.pool, "one")
	first, second := e.begin(), e.begin()
	e.do(first, `UPDATE `+e.things()+` SET n = 1 WHERE name = 'one' AND n = 0`)
	var changed int64
	ended := e.later(func() (err error) {
		changed, err = e.try(second, `UPDATE `+e.things()+` SET n = 2 WHERE name = 'one' AND n = 0`)
		return err
	})
	if err := e.waits(ended, func() { e.commit(first) }, "two transactions change one row at once"); err != nil {
		e.Fatalf("the second update failed instead of judging the new row: %v", err)
	}
	if changed != 0 {
		e.Fatal("an update that waited judged the row as it was before: fences do not hold")
	}
}

func (e *engine) skipLocked() {
	e.insert(e.pool, "one")
	e.insert(e.pool, "two")
	const take = `SELECT name FROM ` // by name, one of them
	query := take + e.things() + ` ORDER BY name LIMIT 1 FOR UPDATE SKIP LOCKED`
	one, other := e.begin(), e.begin()
	a, b := ask[string](e, one, query), ask[string](e, other, query)
	if a != "one" || b != "two" {
		e.Fatalf("two who take the next row each took %s and %s: a delivery would go out twice at once", a, b)
	}
}

func (e *engine) counts() {
	e.insert(e.pool, "one")
	for sql, want := range map[string]int64{
		`INSERT INTO ` + e.things() + ` (name) VALUES ('one') ON CONFLICT DO NOTHING`: 0,
		`UPDATE ` + e.things() + ` SET n = 7 WHERE name = 'two'`:                      0,
		`UPDATE ` + e.things() + ` SET n = 7 WHERE name = 'one'`:                      1,
		`UPDATE ` + e.things() + ` SET n = 7 WHERE name = 'one' RETURNING name`:       1,
		`DELETE FROM ` + e.things() + ` WHERE name = 'two' RETURNING name`:            0,
	} {
		if got := e.do(e.pool, sql); got != want {
			e.Fatalf("%q says that it changed %d rows, and changed %d", sql, got, want)
		}
	}
}

func (e *engine) sequences() {
	e.do(e.pool, `CREATE SEQUENCE `+e.name+`.numbers`)
	one, other := e.begin(), e.begin()
	last := int64(0)
	for i := range 20 {
		q := []querier{one, other}[i%2]
		n := ask[int64](e, q, `SELECT nextval('`+e.name+`.numbers')`)
		if n <= last && i%2 == 0 || n == last {
			e.Fatalf("a sequence gave %d after %d: numbers come again", n, last)
		}
		last = n
	}
	e.rollback(one)
	if n := ask[int64](e, other, `SELECT nextval('`+e.name+`.numbers')`); n <= last {
		e.Fatalf("a sequence gave %d after %d when a transaction was rolled back", n, last)
	}
}

func (e *engine) lockTimeout() {
	e.insert(e.pool, "one")
	holder, other := e.begin(), e.begin()
	e.do(holder, `UPDATE `+e.things()+` SET n = 1`)
	e.do(other, `SET LOCAL lock_timeout = '100ms'`)
	if _, err := e.try(other, `UPDATE `+e.things()+` SET n = 2`); !pgerror.LockTimeout(err) {
		e.Fatalf("after lock_timeout the answer is %v, want SQLSTATE 55P03", err)
	}
}

func (e *engine) deadlock() {
	e.insert(e.pool, "one")
	e.insert(e.pool, "two")
	one, other := e.begin(), e.begin()
	change := func(q querier, name string) error {
		_, err := e.try(q, `UPDATE `+e.things()+` SET n = 1 WHERE name = $1`, name)
		return err
	}
	if err := errors.Join(change(one, "one"), change(other, "two")); err != nil {
		e.Fatal(err)
	}
	ended := e.later(func() error { return change(one, "two") })
	err := change(other, "one")
	if err != nil {
		e.rollback(other)
	}
	if err = errors.Join(err, <-ended); !pgerror.LostRace(err) {
		e.Fatalf("two transactions that wait for each other were answered %v, want SQLSTATE 40P01 or 40001 for one", err)
	}
}

// maxSkew is how far the clocks of engine and program may be apart: doctor takes more for a fault.
const maxSkew = 10 * time.Second

func (e *engine) clock() {
	var last time.Time
	for range 10 {
		before := time.Now()
		there := ask[time.Time](e, e.pool, `SELECT clock_timestamp()`)
		after := time.Now()
		if there.Before(before.Add(-maxSkew)) || there.After(after.Add(maxSkew)) {
			e.Fatalf("the engine's clock and this machine's are %v apart: leases end too early, or too late. Run NTP on both", there.Sub(before).Round(time.Second))
		}
		if there.Before(last) {
			e.Fatalf("the engine's clock went back by %v", last.Sub(there))
		}
		last = there
	}
}

// notifications may be missing: then the stores poll. What comes too soon is worse.
func (e *engine) notifications() {
	listener, err := e.pool.Acquire(e.Context())
	if err != nil {
		e.Fatal(err)
	}
	defer listener.Release()
	if _, err := e.try(listener, `LISTEN `+e.name); err != nil {
		e.Skipf("the engine has no LISTEN (%v): stores and gateways poll, which costs some latency and loses nothing", err)
	}
	defer e.do(listener, `UNLISTEN *`)
	tx := e.begin()
	e.insert(tx, "one")
	e.do(tx, `SELECT pg_notify($1, 'done')`, e.name)
	wait := func(d time.Duration) error {
		ctx, cancel := context.WithTimeout(e.Context(), d)
		defer cancel()
		_, err := listener.Conn().WaitForNotification(ctx)
		return err
	}
	if wait(200*time.Millisecond) == nil {
		e.Fatal("a notification came before its transaction was committed")
	}
	e.commit(tx)
	if err := wait(5 * time.Second); err != nil {
		e.Fatalf("the engine takes LISTEN and NOTIFY, and no notification came: who waits for one waits until it polls (%v)", err)
	}
}

func (e *engine) values() {
	bytes := make([]byte, 70_000)
	for i := range bytes {
		bytes[i] = byte(i)
	}
	text := "evt_Ä\u0308 ß \u2028 '\\ \U0001F512 end "
	e.do(e.pool, `INSERT INTO `+e.things()+` (name, body) VALUES ($1, $2)`, text, bytes)
	if got := ask[string](e, e.pool, `SELECT name FROM `+e.things()); got != text {
		e.Fatalf("the text %q came back as %q", text, got)
	}
	if got := ask[[]byte](e, e.pool, `SELECT body FROM `+e.things()); string(got) != string(bytes) {
		e.Fatalf("%d bytes came back as %d others", len(bytes), len(got))
	}
}

func (e *engine) names() {
	names := []string{"evt_a", "evt_A", "evt_a ", "evt_ä", "evt_a\u0308"}
	for _, name := range names {
		if _, err := e.try(e.pool, `INSERT INTO `+e.things()+` (name) VALUES ($1)`, name); err != nil {
			e.Fatalf("%q is taken for a name that is there already: two events would be one, and the second lost: %v", name, err)
		}
	}
	for _, name := range names {
		e.has(name, 1, fmt.Sprintf("so many are found under %q", name))
	}
}
