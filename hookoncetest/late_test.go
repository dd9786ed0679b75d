package hookoncetest_test

import (
	"cmp"
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/provider/spec"
)

// The handlers of docs/outbox.md, "Late, twice, out of order", leave their effects in a table.
const (
	createEffects = `CREATE TABLE effects (what text, event text, object text)`
	insertEffect  = `INSERT INTO effects (what, event, object) VALUES ($1, $2, $3)`
	countEffects  = `SELECT count(*) FROM effects WHERE what = $1 AND $2 IN (event, '') AND $3 IN (object, '')`
)

// late is endpoints with the handlers of the page, and others that bring orders into the states that they are
// about.
type late struct {
	keep, ship, arrived  door
	pay, cancel, deliver door
	shipElsewhere        door // of another sender
	payAndShip           door // in one transaction
	lookup               func(context.Context, hookonce.Ref) (hookonce.Claim, error)
	count                func(what, event, object string) (int, error)
}

// door is an endpoint.
type door struct {
	http.Handler
	source string
}

func newLate[Tx any](store hookonce.TxStore[Tx], keep, ship, arrived func(context.Context, Tx, *hookonce.Event) error, count func(what, event, object string) (int, error)) late {
	endpoint := func(source string, handle func(context.Context, Tx, *hookonce.Event) error) door {
		return door{hookonce.Webhook(store, source, stripe, handle, quiet), source}
	}
	move := func(from, to string) func(context.Context, Tx, *hookonce.Event) error {
		return func(ctx context.Context, tx Tx, ev *hookonce.Event) error {
			_, _, err := hookonce.Transition(ctx, tx, hookonce.NormalKey(hookonce.JoinKey("order", ev.Source, ev.Scope)), from, to)
			return err
		}
	}
	return late{
		keep: endpoint("keep", keep), ship: endpoint("orders", ship), arrived: endpoint("arrived", arrived),
		pay: endpoint("orders", move("", "paid")), cancel: endpoint("orders", move("paid", "cancelled")), deliver: endpoint("orders", move("shipped", "delivered")),
		shipElsewhere: endpoint("elsewhere", ship),
		payAndShip: endpoint("storm", func(ctx context.Context, tx Tx, ev *hookonce.Event) error {
			if err := move("", "paid")(ctx, tx, ev); err != nil {
				return err
			}
			return ship(ctx, tx, ev)
		}),
		lookup: store.Lookup, count: count,
	}
}

// happened returns a count for [hookoncetest.Report.Once].
func (l late) happened(t *testing.T, what string) func(key string) int {
	return func(key string) int {
		n, err := l.count(what, key, "")
		if err != nil {
			t.Error(err)
		}
		return n
	}
}

// delivery is an event on its way, and what must come of it.
type delivery struct {
	to    door
	id    string
	opts  []hookoncetest.Option
	state hookonce.State // default: done
}

// testLate goes through what the page is about, and through storms.
func testLate(t *testing.T, l late) {
	start := time.Now()
	event := func(to door, id, object string, opts ...hookoncetest.Option) delivery {
		return delivery{to: to, id: id, opts: append(opts, hookoncetest.Object(object))}
	}
	at := func(seconds int) hookoncetest.Option {
		return hookoncetest.Now(func() time.Time { return start.Add(time.Duration(seconds) * time.Second) })
	}
	in := func(state hookonce.State, d delivery) delivery { d.state = state; return d }
	balance := hookoncetest.Body(func(of spec.Sample) []byte {
		return []byte(`{"id":"` + of.ID + `","object":"event","type":"balance.available","created":1770091506,"data":{"object":{"object":"balance"}}}`)
	})
	type effects struct {
		what, event, object string
		n                   int
	}
	for _, tt := range []struct {
		name string
		sent []delivery
		want []effects
	}{
		{
			"late", []delivery{event(l.keep, "evt_1", "sub_1", at(2)), event(l.keep, "evt_2", "sub_1", at(1)), event(l.keep, "evt_3", "sub_1", at(3))},
			[]effects{{"save", "evt_1", "sub_1", 1}, {"save", "evt_2", "sub_1", 0}, {"save", "evt_3", "sub_1", 1}},
		},
		{
			"of one second", []delivery{event(l.keep, "evt_11", "sub_2", at(2)), event(l.keep, "evt_12", "sub_2", at(2))},
			[]effects{{"save", "evt_11", "sub_2", 1}, {"save", "evt_12", "sub_2", 1}},
		},
		{
			"about no object", []delivery{{to: l.keep, id: "evt_21", opts: []hookoncetest.Option{balance}}, {to: l.keep, id: "evt_22", opts: []hookoncetest.Option{balance}}},
			[]effects{{"save", "evt_21", "", 1}, {"save", "evt_22", "", 1}},
		},
		{
			"shipped, said twice", []delivery{event(l.pay, "evt_31", "o1"), event(l.ship, "evt_32", "o1"), event(l.ship, "evt_33", "o1")},
			[]effects{{"pack", "", "o1", 1}, {"pack", "evt_32", "o1", 1}},
		},
		{
			"shipped, after it was delivered", []delivery{event(l.pay, "evt_41", "o2"), event(l.ship, "evt_42", "o2"), event(l.deliver, "evt_43", "o2"), event(l.ship, "evt_44", "o2"), event(l.ship, "evt_45", "o2")},
			[]effects{{"pack", "", "o2", 1}},
		},
		{
			"shipped, before it is paid", []delivery{in(hookonce.StateFailed, event(l.ship, "evt_51", "o3")), in(hookonce.StateFailed, event(l.ship, "evt_51", "o3")), event(l.pay, "evt_52", "o3"), event(l.ship, "evt_51", "o3"), event(l.ship, "evt_51", "o3")},
			[]effects{{"pack", "evt_51", "o3", 1}, {"pack", "", "o3", 1}},
		},
		{
			"shipped, after it was cancelled", []delivery{event(l.pay, "evt_61", "o4"), event(l.cancel, "evt_62", "o4"), in(hookonce.StateDead, event(l.ship, "evt_63", "o4"))},
			[]effects{{"pack", "", "o4", 0}},
		},
		{
			"two kinds of events for one payout", []delivery{
				event(l.arrived, "evt_71", "po_1", hookoncetest.Type("payout.paid")), event(l.arrived, "evt_72", "po_1", hookoncetest.Type("payout.reconciliation_completed")),
				event(l.arrived, "evt_73", "po_2", hookoncetest.Type("payout.paid")),
			},
			[]effects{{"fee", "", "po_1", 1}, {"fee", "", "po_2", 1}},
		},
		{
			"shipped, about no order", []delivery{
				in(hookonce.StateDead, delivery{to: l.ship, id: "evt_81", opts: []hookoncetest.Option{balance}}), in(hookonce.StateDead, delivery{to: l.ship, id: "evt_82", opts: []hookoncetest.Option{balance}}),
			},
			[]effects{{"pack", "evt_81", "", 0}, {"pack", "evt_82", "", 0}},
		},
		{
			"shipped, by another sender", []delivery{event(l.pay, "evt_91", "o5"), in(hookonce.StateFailed, event(l.shipElsewhere, "evt_92", "o5")), event(l.ship, "evt_93", "o5")},
			[]effects{{"pack", "evt_93", "o5", 1}, {"pack", "", "o5", 1}},
		},
		{
			"arrived, about no payout", []delivery{in(hookonce.StateDead, delivery{to: l.arrived, id: "evt_101", opts: []hookoncetest.Option{balance}})},
			[]effects{{"fee", "evt_101", "", 0}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, d := range tt.sent {
				state, status := cmp.Or(d.state, hookonce.StateDone), http.StatusOK
				if state == hookonce.StateFailed {
					status = http.StatusServiceUnavailable
				}
				answer := hookoncetest.Deliver(t, d.to, stripe, d.id, d.opts...)
				c, err := l.lookup(t.Context(), hookonce.Ref{Source: d.to.source, Key: d.id})
				if answer.StatusCode != status || c.State != state || err != nil {
					t.Errorf("%s is answered %d and %s, %v; want %d and %s", d.id, answer.StatusCode, c.State, err, status, state)
				}
			}
			for _, e := range tt.want {
				if n, err := l.count(e.what, e.event, e.object); n != e.n || err != nil {
					t.Errorf("%s by %q for %q: %d times, %v; want %d", e.what, e.event, e.object, n, err, e.n)
				}
			}
		})
	}
	t.Run("storms", func(t *testing.T) {
		hookoncetest.Storm(t, l.keep, stripe).Once(t, l.happened(t, "save"))
		hookoncetest.Storm(t, l.payAndShip, stripe, hookoncetest.PerObject(1)).Once(t, l.happened(t, "pack"))
		hookoncetest.Storm(t, l.arrived, stripe, hookoncetest.PerObject(1)).Once(t, l.happened(t, "fee"))
	})
}
