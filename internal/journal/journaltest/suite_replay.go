package journaltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// asked returns a replay by Ada, now.
func (c *suite) asked(f journal.Filter, edit ...func(*journal.Replay)) journal.Replay {
	r := journal.Replay{Filter: f, Start: c.now, By: "ada", Reason: "it's fixed"}
	for _, e := range edit {
		e(&r)
	}
	return r
}

func force(r *journal.Replay)  { r.Force = true }
func dryRun(r *journal.Replay) { r.DryRun = true }

func only(id int64) func(*journal.Replay) {
	return func(r *journal.Replay) { r.EventID = id }
}

func (c *suite) replay(r journal.Replay, limit int) journal.Replayed {
	c.Helper()
	done, err := c.store.Replay(c.Context(), r, limit)
	c.ok(fmt.Sprintf("Replay(%+v)", r), err)
	return done
}

// replays expects what comes of a replay in one piece, its record apart.
func (c *suite) replays(r journal.Replay, want journal.Replayed) {
	c.Helper()
	got := c.replay(r, 100)
	if (got.Audit == 0) != (r.DryRun || got.Deliveries == 0) {
		c.Errorf("Replay(%+v): the record is %d", r, got.Audit)
	}
	if len(got.Looked) != got.Events || !slices.IsSortedFunc(got.Looked, func(a, b journal.Named) int { return cmp.Compare(a.EventID, b.EventID) }) {
		c.Errorf("Replay(%+v) looked at %d events, and names %v", r, got.Events, got.Looked)
	}
	gets := 0
	for _, n := range got.Destinations {
		gets += n
	}
	if gets != got.Deliveries {
		c.Errorf("Replay(%+v): %d deliveries begin again, and destinations get %v", r, got.Deliveries, got.Destinations)
	}
	if want.Destinations == nil {
		got.Destinations = nil
	}
	got.Audit, got.Looked = 0, nil
	c.same("replayed", got, want)
}

// states expects these deliveries to be open, as destination of the event's key: state.
func (c *suite) states(want ...string) {
	c.Helper()
	page, err := c.store.List(c.Context(), journal.Filter{}, 0, 100)
	c.ok("List", err)
	var got []string
	for _, e := range page.Events {
		for _, d := range e.Deliveries {
			got = append(got, fmt.Sprintf("%s of %s: %s", d.Destination, e.Key, d.State))
		}
	}
	c.same("open", got, want)
}

var replayCases = []testCase{
	{"failed and dead begin again, nothing else changes", func(c *suite) {
		c.inEveryState()
		c.replays(c.asked(journal.Filter{}), journal.Replayed{Events: 2, Deliveries: 2})
		c.states("app of pending: pending", "app of dead: pending", "app of failed: pending", "app of processing: processing")
		for _, w := range c.takeKeys(10, "pending", "failed", "dead") {
			want := map[string]journal.Work{"pending": {}, "failed": {Origin: journal.OriginReplayed}, "dead": {Origin: journal.OriginReplayed}}[w.Key]
			if token := 1 + int64(min(want.Origin, 1)); w.Token != token || w.Origin != want.Origin || w.Tries != 1 || w.Forced {
				c.Errorf("%s comes back under token %d, %v, try %d, forced %v", w.Key, w.Token, w.Origin, w.Tries, w.Forced)
			}
		}
	}},
	{"a state chooses deliveries", func(c *suite) {
		c.inEveryState()
		c.replays(c.asked(journal.Filter{State: journal.Dead}), journal.Replayed{Events: 1, Deliveries: 1})
		c.states("app of pending: pending", "app of dead: pending", "app of failed: failed", "app of processing: processing")
		c.replays(c.asked(journal.Filter{State: journal.Done}), journal.Replayed{})
	}},
	{"a destination chooses deliveries", func(c *suite) {
		c.fresh(c.entry("evt_1", to("app", "audit")), c.entry("evt_2", to("audit")))
		c.finishAll(c.take(10), journal.Failed)
		c.replays(c.asked(journal.Filter{}, dryRun), journal.Replayed{Events: 2, Deliveries: 3, Destinations: map[string]int{"app": 1, "audit": 2}})
		c.replays(c.asked(journal.Filter{Destination: "app"}), journal.Replayed{Events: 1, Deliveries: 1, Destinations: map[string]int{"app": 1}})
		c.states("audit of evt_2: failed", "app of evt_1: pending", "audit of evt_1: failed")
	}},
	{"what no gateway delivers to is left alone", func(c *suite) {
		c.fresh(c.entry("evt_1", to("app", "old")), c.entry("evt_2", to("app", "old")))
		for _, w := range c.take(10) {
			c.finish1(c.outcome(w, map[string]journal.State{"evt_1": journal.Done, "evt_2": journal.Dead}[w.Key]), true)
		}
		known := func(names ...string) func(*journal.Replay) {
			return func(r *journal.Replay) { r.Delivers = append([]string{}, names...) }
		}
		c.replays(c.asked(journal.Filter{}, force, known()), journal.Replayed{Events: 2, Nowhere: map[string]int{"app": 2, "old": 2}})
		for _, r := range []journal.Replay{c.asked(journal.Filter{}, force, known("app"), dryRun), c.asked(journal.Filter{}, force, known("app"))} {
			c.replays(r, journal.Replayed{Events: 2, Deliveries: 2, Forced: 1, Destinations: map[string]int{"app": 2}, Nowhere: map[string]int{"old": 2}})
		}
		c.states("app of evt_2: pending", "old of evt_2: dead", "app of evt_1: pending")
	}},
	{"only those of the events that are named", func(c *suite) {
		var ids []int64
		for _, key := range []string{"a", "b", "c", "d"} {
			e := c.stored(key)
			ids = append(ids, e.ID)
			c.finish1(c.outcome(c.take1(key), journal.Dead), true)
			c.pass(time.Second)
		}
		only := func(ids ...int64) func(*journal.Replay) {
			return func(r *journal.Replay) { r.Only, r.Chosen = append([]int64{}, ids...), "json:$.id" }
		}
		looked := c.replay(c.asked(journal.Filter{}, dryRun), 3)
		c.same("looked at", looked.Looked, []journal.Named{{EventID: ids[0], Source: "billing", Key: "a"}, {EventID: ids[1], Source: "billing", Key: "b"}, {EventID: ids[2], Source: "billing", Key: "c"}})
		c.replays(c.asked(journal.Filter{}, only()), journal.Replayed{})
		c.replays(c.asked(journal.Filter{State: journal.Failed}, only(ids...)), journal.Replayed{})
		c.replays(c.asked(journal.Filter{}, only(ids[1], ids[3], ids[3]+1), dryRun), journal.Replayed{Events: 2, Deliveries: 2})
		c.replays(c.asked(journal.Filter{}, only(ids[1], ids[3])), journal.Replayed{Events: 2, Deliveries: 2})
		c.states("app of d: pending", "app of c: dead", "app of b: pending", "app of a: dead")
		c.replays(c.asked(journal.Filter{}, only(ids[0]), force), journal.Replayed{Events: 1, Deliveries: 1})
	}},
	{"the other fields choose events", func(c *suite) {
		for _, key := range []string{"a", "b", "c"} {
			c.fresh(c.entry(key, func(e *journal.Record) { e.Source, e.Type, e.Resource = "from_"+key, "type."+key, "in_"+key }))
			c.finish1(c.outcome(c.take1(key), journal.Dead), true)
			c.pass(time.Second)
		}
		one := journal.Replayed{Events: 1, Deliveries: 1}
		c.replays(c.asked(journal.Filter{Source: "from_a"}, dryRun), one)
		c.replays(c.asked(journal.Filter{Type: "*.b"}, dryRun), one)
		c.replays(c.asked(journal.Filter{Resource: "in_b"}, dryRun), one)
		c.replays(c.asked(journal.Filter{Since: start.Add(2 * time.Second)}, dryRun), one)
		c.replays(c.asked(journal.Filter{Until: start.Add(2 * time.Second)}, dryRun), journal.Replayed{Events: 2, Deliveries: 2})
		c.replays(c.asked(journal.Filter{Source: "nobody"}), journal.Replayed{})
		c.states("app of c: dead", "app of b: dead", "app of a: dead")
	}},
	{"one event alone", func(c *suite) {
		entries := c.inEveryState()
		c.replays(c.asked(journal.Filter{}, only(entries["failed"].ID)), journal.Replayed{Events: 1, Deliveries: 1})
		c.replays(c.asked(journal.Filter{}, only(entries["processing"].ID)), journal.Replayed{Events: 1, Open: 1})
		c.replays(c.asked(journal.Filter{}, only(entries["done"].ID)), journal.Replayed{Events: 1})
		c.replays(c.asked(journal.Filter{}, only(c.ids.Next(c.now))), journal.Replayed{})
		c.states("app of pending: pending", "app of dead: dead", "app of failed: pending", "app of processing: processing")
	}},
	{"a dry run counts and changes nothing", func(c *suite) {
		c.inEveryState()
		c.replays(c.asked(journal.Filter{}, force, dryRun), journal.Replayed{Events: 5, Deliveries: 3, Forced: 1, Open: 2})
		c.states("app of pending: pending", "app of dead: dead", "app of failed: failed", "app of processing: processing")
		c.audited(0, 10)
	}},
	{"an event without its body is reported", func(c *suite) {
		lost, kept := c.entry("lost"), c.entry("kept")
		c.fresh(lost, kept)
		c.finishAll(c.take(10), journal.Dead)
		purged := c.done("purged")
		c.f.DropBody(c, lost.ID)
		c.replays(c.asked(journal.Filter{}), journal.Replayed{Events: 2, Deliveries: 1,
			Gone: []journal.Named{{EventID: lost.ID, Source: "billing", Key: "lost"}}})
		c.states("app of kept: pending", "app of lost: dead")
		c.pass(time.Hour)
		c.purge(journal.KindAttempts, 1)
		c.purge(journal.KindBodies, 1)
		c.replays(c.asked(journal.Filter{}, only(purged.ID), force), journal.Replayed{Events: 1,
			Gone: []journal.Named{{EventID: purged.ID, Source: "billing", Key: "purged"}}})
	}},
	{"a rate spreads them, over all pieces", func(c *suite) {
		for i := range 5 {
			c.fresh(c.entry(fmt.Sprint("evt_", i)))
		}
		c.finishAll(c.take(10), journal.Dead)
		r := c.asked(journal.Filter{}, func(r *journal.Replay) { r.Rate = 2 })
		for _, want := range []int{2, 2, 1} {
			done := c.replay(r, 2)
			if done.Deliveries != want {
				c.Fatalf("a piece has %d deliveries, want %d", done.Deliveries, want)
			}
			r.After, r.Audit, r.Start = done.Next, done.Audit, r.Start.Add(time.Hour)
		}
		if r.After != 0 {
			c.Errorf("there is more after %d", r.After)
		}
		for i := range 5 {
			c.takeKeys(10, fmt.Sprint("evt_", i))
			c.pass(500*time.Millisecond - time.Microsecond)
			c.takeKeys(10)
			c.pass(time.Microsecond)
		}
		c.audited(0, 10, journal.Audit{ID: 1, At: start, By: "ada", Reason: "it's fixed", Action: journal.ActionReplay,
			Filter: `{}`, Count: 5})
	}},
	{"the record says what was asked for", func(c *suite) {
		e := c.done("evt_1")
		f := journal.Filter{Source: "billing", Type: "inv*", Destination: "app", State: journal.Done, Seen: journal.ReceiptDuplicate,
			Since: start, Until: start.Add(time.Second)}
		c.recordDuplicates(c.receipt(e.ID, journal.ReceiptDuplicate))
		c.replays(c.asked(f, force), journal.Replayed{Events: 1, Deliveries: 1, Forced: 1})
		c.audited(0, 1, journal.Audit{ID: 1, At: c.now, By: "ada", Reason: "it's fixed", Action: journal.ActionReplay, Count: 1,
			Filter: `{"source":"billing","type":"inv*","state":"done","destination":"app","seen":"duplicate",` +
				`"since":"2026-03-14T15:09:26.535Z","until":"2026-03-14T15:09:27.535Z","force":true}`})
	}},
	{"a replay is continued by the same person with the same filter", func(c *suite) {
		c.inEveryState()
		r := c.asked(journal.Filter{})
		done := c.replay(r, 1)
		for what, edit := range map[string]func(*journal.Replay){
			"another filter": func(r *journal.Replay) { r.Source = "billing" },
			"another person": func(r *journal.Replay) { r.By = "eve" },
			"another number": func(r *journal.Replay) { r.Audit += 100 },
			"a pause":        func(r *journal.Replay) { r.Audit++ },
		} {
			if what == "a pause" {
				c.setPaused(journal.Pause{Destination: "x", At: c.now, By: "ada"}, true, true)
			}
			next := r
			next.After, next.Audit = done.Next, done.Audit
			edit(&next)
			if _, err := c.store.Replay(c.Context(), next, 1); !errors.Is(err, journal.ErrNoReplay) {
				c.Errorf("continued by %s: %v", what, err)
			}
		}
		c.states("app of pending: pending", "app of dead: dead", "app of failed: pending", "app of processing: processing")
		r.After, r.Audit = done.Next, done.Audit
		if again := c.replay(r, 1); again.Deliveries != 1 || again.Audit != done.Audit {
			c.Errorf("continued: %+v", again)
		}
	}},
	{"a filter may name any time", func(c *suite) {
		c.inEveryState()
		f := journal.Filter{State: journal.Dead, Since: time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC), Until: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}
		c.replays(c.asked(f), journal.Replayed{Events: 1, Deliveries: 1})
		c.audited(0, 1, journal.Audit{ID: 1, At: c.now, By: "ada", Reason: "it's fixed", Action: journal.ActionReplay, Count: 1,
			Filter: `{"state":"dead","since":"-0001-01-01T00:00:00Z","until":"10000-01-01T00:00:00Z"}`})
		c.replays(c.asked(journal.Filter{}), journal.Replayed{Events: 1, Deliveries: 1})
	}},
	{"a failed call leaves nothing", func(c *suite) {
		c.inEveryState()
		if _, err := c.store.Replay(canceled(c), c.asked(journal.Filter{}), 10); err == nil {
			c.Fatal("it went on")
		}
		c.states("app of pending: pending", "app of dead: dead", "app of failed: failed", "app of processing: processing")
		c.audited(0, 10)
	}},
}

var forceCases = []testCase{
	{"done is replayed by force only, and says so", func(c *suite) {
		e := c.done("evt_1")
		c.replays(c.asked(journal.Filter{}), journal.Replayed{})
		c.replays(c.asked(journal.Filter{}, force), journal.Replayed{Events: 1, Deliveries: 1, Forced: 1})
		w := c.take1("evt_1")
		if !w.Forced || w.Origin != journal.OriginReplayed || w.Tries != 1 || w.Token <= 1 {
			c.Errorf("forced %v, %v, token %d, try %d", w.Forced, w.Origin, w.Token, w.Tries)
		}
		c.finish1(c.outcome(w, journal.Failed), true)
		c.accept1(c.entry("evt_1"), journal.Result{Status: journal.Duplicate, ID: e.ID, Redriven: true})
		if w = c.take1("evt_1"); !w.Forced {
			c.Error("the next attempt does not say so")
		}
		c.finish1(c.outcome(w, journal.Done), true)
		if n := len(c.history(e.ID).Attempts); n != 3 {
			c.Errorf("%d attempts, want 3", n)
		}
		c.fresh(c.entry("evt_2"))
		if w := c.take1("evt_2"); w.Forced {
			c.Error("another event says that it is forced")
		}
	}},
	{"the same request twice delivers once", func(c *suite) {
		e, other := c.done("evt_1"), c.done("evt_2")
		c.pass(time.Second)
		made := c.now
		twice := func(r *journal.Replay) { r.DoneBefore = made }
		anew := func(r *journal.Replay) { r.Destination = "elsewhere" }
		one, open, later := journal.Replayed{Events: 1, Deliveries: 1, Forced: 1}, journal.Replayed{Events: 1, Open: 1}, journal.Replayed{Events: 1, Later: 1}
		c.replays(c.asked(journal.Filter{}, only(e.ID), force, twice), one)
		c.replays(c.asked(journal.Filter{}, only(e.ID), force, twice), open)
		c.finish1(c.outcome(c.take1("evt_1"), journal.Done), true)
		c.replays(c.asked(journal.Filter{}, only(e.ID), force, twice), later)
		c.replays(c.asked(journal.Filter{}, force, twice), journal.Replayed{Events: 2, Deliveries: 1, Forced: 1, Later: 1})
		c.finish1(c.outcome(c.take1("evt_2"), journal.Done), true)
		c.replays(c.asked(journal.Filter{}, force, twice), journal.Replayed{Events: 2, Later: 2})
		c.replays(c.asked(journal.Filter{}, only(other.ID), force, twice, anew), journal.Replayed{Events: 1, Deliveries: 1})
		c.pass(time.Second)
		made = c.now
		c.replays(c.asked(journal.Filter{}, only(e.ID), force, twice), one)
	}},
	{"the token is above all earlier ones", func(c *suite) {
		c.fresh(c.entry("evt_1"))
		var held []*journal.Work
		for _, state := range []journal.State{journal.Failed, journal.Pending, journal.Done} {
			w := c.take1("evt_1")
			held = append(held, w)
			c.finish1(c.outcome(w, state), true)
			c.pass(time.Minute)
		}
		c.replays(c.asked(journal.Filter{}, force), journal.Replayed{Events: 1, Deliveries: 1, Forced: 1})
		for _, w := range held {
			c.finish1(c.outcome(w, journal.Done), false)
		}
		w := c.take1("evt_1")
		if last := held[2].Token; w.Token <= last {
			c.Errorf("token %d after %d", w.Token, last)
		}
		for _, w := range held {
			c.finish1(c.outcome(w, journal.Done), false)
		}
		c.finish1(c.outcome(w, journal.Done), true)
	}},
	{"what no route wanted, to the destination that is named, and once", func(c *suite) {
		gone, there := c.entry("gone", to()), c.entry("there", to())
		c.fresh(c.entry("a", to()), c.entry("b", to(), func(e *journal.Record) { e.Source = "orders" }), gone, there)
		c.done("delivered")
		c.replays(c.asked(journal.Filter{Destination: "app"}, only(there.ID), force), journal.Replayed{Events: 1, Deliveries: 1})
		c.finish1(c.outcome(c.take1("there"), journal.Done), true)
		c.f.DropBody(c, gone.ID)
		unrouted := journal.Filter{Unrouted: true, Destination: "app"}
		lost := []journal.Named{{EventID: gone.ID, Source: "billing", Key: "gone"}}
		c.replays(c.asked(unrouted), journal.Replayed{})
		c.replays(c.asked(journal.Filter{Unrouted: true}, force), journal.Replayed{Events: 4, Gone: lost})
		c.replays(c.asked(unrouted, force, dryRun), journal.Replayed{Events: 4, Deliveries: 2, Gone: lost})
		orders := unrouted
		orders.Source = "orders"
		c.replays(c.asked(orders, force), journal.Replayed{Events: 1, Deliveries: 1})
		c.states("app of b: pending")
		c.replays(c.asked(unrouted, force), journal.Replayed{Events: 4, Deliveries: 1, Open: 1, Gone: lost})
		for _, w := range c.takeKeys(10, "a", "b") {
			if !w.Forced || w.Destination != "app" || w.Origin != journal.OriginReplayed {
				c.Errorf("%s goes to %s, forced %v, %v", w.Key, w.Destination, w.Forced, w.Origin)
			}
			c.finish1(c.outcome(w, journal.Done), true)
		}
		c.replays(c.asked(unrouted, force), journal.Replayed{Events: 4, Gone: lost})
		done := unrouted
		done.State = journal.Done
		c.replays(c.asked(done, force), journal.Replayed{Events: 4, Gone: lost})
	}},
	{"to the destination that is named, and where it never was if the event is named as well", func(c *suite) {
		e := c.stored("evt_1", to("app", "audit"))
		c.finishAll(c.take(10), journal.Done)
		c.replays(c.asked(journal.Filter{Destination: "other"}, force), journal.Replayed{Events: 1})
		c.replays(c.asked(journal.Filter{Destination: "audit"}, force), journal.Replayed{Events: 1, Deliveries: 1, Forced: 1})
		c.states("audit of evt_1: pending")
		c.replays(c.asked(journal.Filter{Destination: "other"}, only(e.ID)), journal.Replayed{Events: 1})
		c.replays(c.asked(journal.Filter{Destination: "other"}, only(e.ID), force), journal.Replayed{Events: 1, Deliveries: 1})
		c.states("audit of evt_1: pending", "other of evt_1: pending")
	}},
	{"only done ones, if the state says so", func(c *suite) {
		c.inEveryState()
		c.replays(c.asked(journal.Filter{State: journal.Done}, force), journal.Replayed{Events: 5, Deliveries: 1, Forced: 1, Open: 2})
		c.states("app of pending: pending", "app of done: pending", "app of dead: dead", "app of failed: failed",
			"app of processing: processing")
	}},
}

var raceCases = []testCase{
	{"a replay while it is processing changes nothing", func(c *suite) {
		e := c.stored("evt_1", hold)
		c.replays(c.asked(journal.Filter{}, only(e.ID), force), journal.Replayed{Events: 1, Open: 1})
		c.takeKeys(10)
		c.finish1(journal.Outcome{Held: journal.Held{EventID: e.ID, Destination: "app", Token: 1}, State: journal.Done, Started: c.now}, true)
		c.open(nil)
	}},
	{"replays at once make each delivery once", func(c *suite) { c.race(40, 8, 3) }},
}

// race replays n finished and failed events from several sides at once, while their sender sends copies
// and others take and finish what comes of it, every other time badly. No delivery is ever held twice, and
// none begins more often than it was made due.
func (c *suite) race(n, replayers, takers int) {
	batch := c.storedMany(n)
	for i, w := range c.take(n) {
		c.finish1(c.outcome(w, []journal.State{journal.Done, journal.Failed, journal.Dead}[i%3]), true)
	}
	stores := c.stores(3)
	held := &holders{held: map[string]bool{}}
	var due, begun atomic.Int64
	var asking, taking sync.WaitGroup
	stop := make(chan struct{})
	for i := range replayers {
		asking.Go(func() { due.Add(c.replaySome(stores[i%len(stores)], n)) })
		asking.Go(func() { due.Add(c.sendSome(stores[i%len(stores)], batch)) })
	}
	for i := range takers {
		taking.Go(func() {
			for last := false; !last; {
				select {
				case <-stop:
					last = true
				default:
				}
				begun.Add(c.takeAndFinish(stores[i%len(stores)], held))
			}
		})
	}
	asking.Wait()
	close(stop)
	taking.Wait()
	begun.Add(c.takeAndFinish(c.store, held))
	if held.twice.Load() != 0 {
		c.Errorf("%d deliveries were held twice at once", held.twice.Load())
	}
	if due.Load() != begun.Load() || due.Load() < int64(n) {
		c.Errorf("%d deliveries were made due and %d begun, of %d", due.Load(), begun.Load(), n)
	}
}

// replaySome replays everything a few times, and returns how many deliveries that made due.
func (c *suite) replaySome(store journal.Store, n int) (due int64) {
	for range 5 {
		done, err := store.Replay(context.WithoutCancel(c.Context()), c.asked(journal.Filter{}, force), n)
		if err != nil {
			c.Errorf("Replay: %v", err)
		}
		due += int64(done.Deliveries)
	}
	return due
}

// sendSome sends copies, and returns how many deliveries they made due.
func (c *suite) sendSome(store journal.Store, batch []*journal.Record) (due int64) {
	for range 5 {
		results, err := store.Accept(context.WithoutCancel(c.Context()), batch, c.now, c.now.Add(lease))
		if err != nil {
			c.Errorf("Accept: %v", err)
		}
		for _, r := range results {
			if r.Redriven {
				due++
			}
		}
	}
	return due
}

// holders know which deliveries are held at the moment.
type holders struct {
	mu    sync.Mutex
	held  map[string]bool
	twice atomic.Int64
}

func (h *holders) set(w *journal.Work, held bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if held && h.held[w.Key] {
		h.twice.Add(1)
	}
	h.held[w.Key] = held
}

// takeAndFinish does what is due, and returns how much that was.
func (c *suite) takeAndFinish(store journal.Store, held *holders) (n int64) {
	ctx := context.WithoutCancel(c.Context())
	for {
		work, err := store.Take(ctx, c.now, c.now.Add(lease), journal.Wanted{Deliveries: 7})
		if err != nil {
			c.Errorf("Take: %v", err)
		}
		if len(work) == 0 {
			return n
		}
		var outcomes []journal.Outcome
		for _, w := range work {
			held.set(w, true)
			outcomes = append(outcomes, c.outcome(w, []journal.State{journal.Done, journal.Failed}[w.Token%2]))
		}
		for _, w := range work {
			held.set(w, false)
		}
		applied, err := store.Finish(ctx, outcomes)
		if err != nil || slices.Contains(applied, false) {
			c.Errorf("Finish = %v, %v", applied, err)
		}
		n += int64(len(work))
	}
}
