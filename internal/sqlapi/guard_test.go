package sqlapi

import (
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

func TestNewer(t *testing.T) {
	d := newCaller(t)
	for _, step := range []struct {
		version int64
		newer   bool
	}{{-5, true}, {3, true}, {3, false}, {2, false}, {4, true}} {
		is(d, d, step.newer, "SELECT hookonce.newer('order 1', $1)", step.version)
	}
	is(d, d, true, "SELECT hookonce.newer('order 2', 1)")
	for _, step := range []struct {
		args  string
		newer bool
	}{
		{"3, 'time'", true}, {"3, 'time'", true}, {"2, 'time'", false}, {"4, kind => 'time'", true}, {"3, 'version'", true}, {"3", false},
		{"NULL", true}, {"NULL, 'time'", true}, {"3", false},
	} {
		is(d, d, step.newer, "SELECT hookonce.newer('order 3', "+step.args+")")
	}
	is(d, d, true, "SELECT hookonce.newer(NULL, NULL)")
	tx := d.begin()
	is(d, tx, true, "SELECT hookonce.newer('order 1', 9)")
	d.end(tx.Rollback)
	is(d, d, true, "SELECT hookonce.newer('order 1', 5)")
}

// Of many versions at once every one that is applied is higher than the one before, and the highest is in
// the end.
func TestNewerAtOnce(t *testing.T) {
	d := newCaller(t)
	mustExec(t, d.Pool, "CREATE TABLE applied (n bigint GENERATED ALWAYS AS IDENTITY, version bigint)")
	var g errgroup.Group
	for worker := range 8 {
		g.Go(func() error {
			for i := range 10 {
				_, err := d.Exec(t.Context(), `WITH v AS MATERIALIZED (SELECT $1::bigint AS version)
					INSERT INTO applied (version) SELECT version FROM v WHERE hookonce.newer('order', version)`, (i*8+worker*7)%80)
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	is(d, d, int64(79), "SELECT version FROM hookonce.versions WHERE resource = 'order'")
	is(d, d, true, "SELECT bool_and(version > before) FROM (SELECT version, lag(version, 1, -1) OVER (ORDER BY n) AS before FROM applied) AS a")
}

func TestTransition(t *testing.T) {
	d := newCaller(t)
	const move = "SELECT outcome || ' ' || state FROM hookonce.transition('order 1', $1, $2)"
	for _, step := range []struct{ from, to, want string }{
		{"paid", "shipped", "impossible "}, {"", "paid", "moved paid"}, {"", "paid", "already paid"},
		{"paid", "shipped", "moved shipped"}, {"paid", "refunded", "impossible shipped"}, {"paid", "shipped", "already shipped"},
	} {
		is(d, d, step.want, move, step.from, step.to)
	}
	tx := d.begin()
	is(d, tx, "moved closed", move, "shipped", "closed")
	d.end(tx.Rollback)
	is(d, d, "moved closed", move, "shipped", "closed")
}

// Of many who move an entity at once, from a state or from nothing, one does.
func TestTransitionAtOnce(t *testing.T) {
	d := newCaller(t)
	for _, from := range []string{"", "paid"} {
		moved := make(chan bool, 16)
		var g errgroup.Group
		for range cap(moved) {
			g.Go(func() error {
				m, err := ask[bool](d, d, "SELECT outcome = 'moved' FROM hookonce.transition('order', $1, $2)", from, map[string]string{"": "paid", "paid": "shipped"}[from])
				moved <- m
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		close(moved)
		n := 0
		for m := range moved {
			if m {
				n++
			}
		}
		if n != 1 {
			t.Errorf("from %q: %d moved, want one", from, n)
		}
	}
}

func TestOnce(t *testing.T) {
	d := newCaller(t)
	tx := d.begin()
	is(d, tx, true, "SELECT hookonce.once('fee', E'pay\\nout')")
	is(d, tx, false, "SELECT hookonce.once('fee', E'pay\\nout')")
	d.end(tx.Rollback)
	is(d, d, true, "SELECT hookonce.once('fee', E'pay\\nout')")
	is(d, d, false, "SELECT hookonce.once('fee', E'pay\\nout')")
	is(d, d, true, "SELECT hookonce.once('tax', E'pay\\nout')")
	is(d, d, true, "SELECT key = hookonce.normal_key(E'pay\\nout') FROM hookonce.claims WHERE source = 'once:fee'")
}

func TestEnqueue(t *testing.T) {
	d := newCaller(t)
	tx := d.begin()
	is(d, tx, int64(1), "SELECT hookonce.enqueue('mail', '{}', 'shop', 'evt_1')")
	d.end(tx.Rollback)
	is(d, d, true, "SELECT hookonce.enqueue('mail', '{\"a\": \"\\\\\"}', 'shop', 'evt_1') > 0")
	is(d, d, true, "SELECT hookonce.enqueue('mail', '\\x00ff'::bytea, 'shop', 'evt_1', 'second', '2100-01-01') > 0")
	is(d, d, `mail {"a": "\\"} pending 0 0 t`, "SELECT concat_ws(' ', step, convert_from(payload, 'UTF8'), state, token, tries, due_at = enqueued_at) FROM hookonce.effects WHERE step = name")
	is(d, d, "second 00ff 2100", "SELECT concat_ws(' ', step, encode(payload, 'hex'), extract(year FROM due_at)) FROM hookonce.effects WHERE step <> name")
	for _, args := range []string{"'mail', '{}', 'shop', 'evt_1'", "'mail', '{}', 'shop', 'evt_1', 'second'", "'text', '{}', 'shop', 'evt_1', 'mail'"} {
		if e := refuses(d, d, "WH004", "SELECT hookonce.enqueue("+args+")"); !strings.Contains(e.Hint, "step of its own") {
			t.Errorf("hint %q", e.Hint)
		}
	}
	for _, due := range []string{"infinity", "-infinity", "10000-01-01", "0001-12-31 BC"} { // a listing could not show it
		refuses(d, d, "WH003", "SELECT hookonce.enqueue('mail', '{}', 'shop', due => $1::text::timestamptz)", due)
	}
	for range 2 { // without a key nothing tells them apart, and none may get lost
		is(d, d, true, "SELECT hookonce.enqueue('mail', '{}', 'shop') > 0")
		is(d, d, true, "SELECT hookonce.enqueue('mail', '{}', 'shop', '') > 0")
	}
	is(d, d, int64(6), "SELECT count(*) FROM hookonce.effects")
}

// A trace has a time that every program can read, whatever it is told of the beginning.
func TestTracesBeginSometime(t *testing.T) {
	d := newCaller(t)
	for _, began := range []string{"infinity", "-infinity"} {
		is(d, d, true, "SELECT hookonce.failed('shop', $1, began => $1::text::timestamptz)", began)
	}
	is(d, d, true, "SELECT bool_and(first_seen = updated_at) FROM hookonce.claims")
}
