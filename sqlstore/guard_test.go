package sqlstore_test

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/sqlstore"
)

// Some databases take texts for equal that differ in the spaces at their ends, or in case.
func TestStatesAreComparedByteByByte(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		tx, err := f.db.BeginTx(t.Context(), nil)
		must(t, err)
		for _, move := range []struct {
			entity, from, to string
			want             string
		}{
			{"order-1", " ", "open", ""},
			{"order-1", "", "open", "open"},
			{"order-1", "open ", "paid", "open"},
			{"order-1", "Open", "paid", "open"},
			{"order-1", "open", "paid ", "paid "},
			{"order-1 ", "", "open", "open"},
			{"Order-1", "", "open", "open"},
		} {
			state, came, err := f.Transition(t.Context(), tx, move.entity, move.from, move.to)
			must(t, err)
			if state != move.want || (came == hookonce.Moved) != (move.to == move.want) {
				t.Errorf("%q from %q to %q: %s, in %q; want %q", move.entity, move.from, move.to, came, state, move.want)
			}
		}
		must(t, tx.Commit())
	})
}

// What a guard of MySQL reports in passing is no time, which can be zero.
func TestMySQLGuardsAtTheEpoch(t *testing.T) {
	every(t, mysqlConnections(), func(t *testing.T, f fixture) {
		s := sqlstore.New(f.db, sqlstore.MySQL, sqlstore.WithSchema("case_1"), sqlstore.WithClock(func() time.Time { return time.Unix(0, 0) }))
		tx, err := f.db.BeginTx(t.Context(), nil)
		must(t, err)
		for _, first := range []bool{true, false} {
			newer, err := s.Newer(t.Context(), tx, "order-1", hookonce.Version(5))
			must(t, err)
			_, move, err := s.Transition(t.Context(), tx, "order-1", "", "paid")
			must(t, err)
			if newer != first || (move == hookonce.Moved) != first {
				t.Errorf("newer: %v, %s; want %v", newer, move, first)
			}
		}
		must(t, tx.Commit())
	})
}
