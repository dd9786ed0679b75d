package year

import (
	"net/http"
	"strconv"
	"testing"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// account is a ledger with one event in it, which goes to the application that claims.
type account struct {
	*ledger
	f *fact
}

func newAccount(keyed bool) *account {
	l := newLedger(newSites(&Plan{}, ""))
	f := &fact{Event: Event{N: 1, Source: "orders", Keyed: keyed}, called: "e1", effects: map[string]int{}, attempts: map[string][]attempt{}}
	l.events["e1"] = f
	return &account{l, f}
}

// stores has the event stored under a number.
func (a *account) stores(number int64) {
	e, status := &journal.Event{Source: "orders", Body: []byte(`{"simulation":"e1"}`), Destinations: []string{claiming}}, journal.Unkeyed
	if a.f.Keyed {
		e.Key, status = "evt_1", journal.Accepted
	}
	a.accepted("gw0/1", []*journal.Record{{Event: e, ID: number}}, []journal.Result{{Status: status, ID: number}})
}

// delivers has the application take it under a number and a key, with so many effects.
func (a *account) delivers(number int64, key string, effects int) {
	h := http.Header{header.IdempotencyKey: {key}, header.HookonceEventID: {strconv.FormatInt(number, 10)}}
	f, n := a.arrived(claiming, "gw0/1", "e1", h)
	for range effects {
		a.effect(claiming, "e1")
	}
	a.answered(claiming, f, n, http.StatusOK, "")
}

// purges has ids forgotten as a purge does.
func (a *account) purges() {
	for _, rec := range a.stored {
		rec.purged = true
	}
}

// What is on record is asked for one by one, and so is what is answered: a law that is broken for one of several is told of.
func TestLedger(t *testing.T) {
	const lost, notDurable, ours = "losing is worse", "nothing is acknowledged before it is durable", "when we are at fault, 503"
	for _, c := range []struct {
		name, law string
		keyed     bool
		play      func(a *account)
	}{
		{"each of two without a key is taken", "", false, func(a *account) {
			a.stores(1)
			a.delivers(1, "orders#1", 1)
			a.stores(2)
			a.delivers(2, "orders#2", 1)
			a.delivers(2, "orders#2", 0)
		}},
		{"one of two without a key is taken", lost, false, func(a *account) {
			a.stores(1)
			a.stores(2)
			a.delivers(1, "orders#1", 1)
		}},
		{"two without a key share one", lost, false, func(a *account) {
			a.stores(1)
			a.stores(2)
			a.delivers(1, "orders#5f2b", 1)
			a.delivers(2, "orders#5f2b", 0)
		}},
		{"one without a key has another at each attempt", "a stable key", false, func(a *account) {
			a.stores(1)
			a.delivers(1, "orders#1", 1)
			a.delivers(1, "orders#2", 0)
		}},
		{"one of two without a key is taken without its effect", notDurable, false, func(a *account) {
			a.stores(1)
			a.stores(2)
			a.delivers(1, "orders#1", 1)
			a.delivers(2, "orders#2", 0)
		}},
		{"what was forgotten is stored and taken anew", "", true, func(a *account) {
			a.stores(1)
			a.delivers(1, "orders:evt_1", 1)
			a.purges()
			a.stores(2)
			a.delivers(2, "orders:evt_1", 0)
		}},
		{"what was forgotten is stored anew and not taken", lost, true, func(a *account) {
			a.stores(1)
			a.delivers(1, "orders:evt_1", 1)
			a.purges()
			a.stores(2)
		}},
		{"it is told when to come again", "", true, func(a *account) { a.refused(a.f, "e1", reply{status: 503, retryAfter: "5"}) }},
		{"it is not told when to come again", ours, true, func(a *account) { a.refused(a.f, "e1", reply{status: 503}) }},
		{"it is told to come again at once", ours, true, func(a *account) { a.refused(a.f, "e1", reply{status: 503, retryAfter: "0"}) }},
		{"a store that is away is a 500", ours, true, func(a *account) { a.refused(a.f, "e1", reply{status: 500, retryAfter: "5"}) }},
		{"a clock that is wrong refuses signatures", "", true, func(a *account) {
			a.skewed = true
			a.refused(a.f, "e1", reply{status: 401})
		}},
		{"and not those that an application verifies", ours, true, func(a *account) {
			a.skewed, a.f.Direct = true, true
			a.refused(a.f, "e1", reply{status: 401})
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := newAccount(c.keyed)
			c.play(a)
			a.settle()
			if law := lawOf(&Verdict{Broken: a.broken}); law != c.law {
				t.Errorf("%q is broken, want %q: %q", law, c.law, a.broken)
			}
		})
	}
}
