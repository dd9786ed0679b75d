package sqlstore_test

import (
	"fmt"
	"testing"

	"github.com/hookonce/hookonce"
)

// What people ask for while something is wrong, and relays every minute, does not cost what is
// done.
func TestListingReadsNotWhatIsDone(t *testing.T) {
	t.Run("Postgres", func(t *testing.T) {
		every(t, postgresConnections(), func(t *testing.T, f fixture) {
			f.lists(t, readings{
				now: `now()`, numbers: `SELECT i::text AS n FROM generate_series(1, %d) AS i`,
				analyze: `ANALYZE ` + f.tables + `effects`, note: `SELECT pg_stat_force_next_flush()`,
				read: `SELECT seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables WHERE relid = '` + f.tables + `effects'::regclass`,
			})
		})
	})
	t.Run("MySQL", func(t *testing.T) {
		const digits = `(SELECT 0 AS d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
			UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9)`
		every(t, mysqlConnections(), func(t *testing.T, f fixture) {
			f.lists(t, readings{
				now: `0`, numbers: `SELECT ones.d + 10 * tens.d + 100 * hundreds.d + 1000 * thousands.d AS n
					FROM ` + digits + ` AS ones, ` + digits + ` AS tens, ` + digits + ` AS hundreds, ` + digits + ` AS thousands HAVING n < %d`,
				analyze: `ANALYZE TABLE ` + f.tables + `effects`, note: `DO 0`,
				read: `SELECT CAST(sum(variable_value) AS SIGNED) FROM information_schema.session_status WHERE variable_name LIKE 'HANDLER_READ%'`,
			})
		})
	})
}

// readings are how a server is asked how many rows a connection has read, and what it takes to fill
// a table.
type readings struct{ now, numbers, analyze, note, read string }

// lists holds what it costs to list a few effects of each other state against how many are done.
func (f fixture) lists(t *testing.T, r readings) {
	t.Helper()
	f.db.SetMaxOpenConns(1)
	fill := func(state hookonce.State, due string, n int) {
		t.Helper()
		exec(t, f.db, fmt.Sprintf(`INSERT INTO `+f.tables+`effects (source, step, name, payload, state, due_at, enqueued_at, updated_at, last_error)
			SELECT 'billing', n, '%s', '', '%s', %s, %s, %s, '' FROM (%s) AS numbers`,
			state, state, due, r.now, r.now, fmt.Sprintf(r.numbers, n)))
	}
	const done, few, times = 10000, 3, 10
	fill(hookonce.StateDone, "NULL", done)
	fill(hookonce.StateDead, "NULL", few)
	open := []hookonce.State{hookonce.StatePending, hookonce.StateProcessing, hookonce.StateFailed}
	for _, state := range open {
		fill(state, r.now, few)
	}
	exec(t, f.db, r.analyze)
	for _, state := range append(open, hookonce.StateDead) {
		exec(t, f.db, r.note)
		before := queryRow[int](t, f.db, r.read)
		for range times { // long enough for the server to settle on a plan
			if found, err := f.Effects(t.Context(), state, 0, 100); err != nil || len(found) != few {
				t.Fatalf("%d effects are %s, %v", len(found), state, err)
			}
		}
		exec(t, f.db, r.note)
		if n := queryRow[int](t, f.db, r.read) - before; n > done {
			t.Errorf("read %d rows to find %d effects that are %s, %d times, beside %d that are done", n, few, state, times, done)
		}
	}
	if found, err := f.Effects(t.Context(), "no such state", 0, 100); err != nil || len(found) != 0 {
		t.Errorf("found %+v, %v", found, err)
	}
}
