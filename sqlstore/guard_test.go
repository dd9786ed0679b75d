package sqlstore_test

import "testing"

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
			state, moved, err := f.Transition(t.Context(), tx, move.entity, move.from, move.to)
			must(t, err)
			if state != move.want || moved != (move.to == move.want) {
				t.Errorf("%q from %q to %q: in %q, moved: %v; want %q", move.entity, move.from, move.to, state, moved, move.want)
			}
		}
		must(t, tx.Commit())
	})
}
