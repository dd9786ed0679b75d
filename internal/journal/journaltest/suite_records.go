package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/internal/journal"
)

// RunRecords checks every sentence of the parts of the contract that are for people: [journal.Reader],
// [journal.Operator], [journal.Registry], [journal.Tallier], and the receipts of copies.
func RunRecords(t *testing.T, factory Factory) {
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"list", listCases}, {"contents", contentCases}, {"history", historyCases}, {"failures", failureCases}, {"receipts", receiptCases},
		{"replay", replayCases}, {"force", forceCases}, {"ordering groups", orderingGroupCases}, {"races", raceCases}, {"pause", pauseCases}, {"gateways", gatewayCases}, {"tallies", tallyCases},
	} {
		t.Run(group.name, func(t *testing.T) { runCases(t, factory, group.cases) })
	}
}

// list returns the keys of a page.
func (c *suite) list(f journal.Filter, before int64, limit int) (keys []string, next int64) {
	c.Helper()
	page, err := c.store.List(c.Context(), f, before, limit)
	c.ok(fmt.Sprintf("List(%+v)", f), err)
	for _, e := range page.Events {
		keys = append(keys, e.Key)
	}
	return keys, page.Next
}

// lists expects these keys from the filter, newest first, in pages of every size.
func (c *suite) lists(f journal.Filter, want ...string) {
	c.Helper()
	for _, limit := range []int{1, 2, 100} {
		var got []string
		for before, more := int64(0), true; more; more = before != 0 {
			keys, next := c.list(f, before, limit)
			if len(keys) > limit {
				c.Fatalf("List(%+v) returned %d events, the limit is %d", f, len(keys), limit)
			}
			got, before = append(got, keys...), next
		}
		if diff := cmp.Diff(want, got); diff != "" {
			c.Errorf("List(%+v) by %d: -want +got\n%s", f, limit, diff)
		}
	}
}

func (c *suite) history(id int64) *journal.History {
	c.Helper()
	h, err := c.store.History(c.Context(), id)
	c.ok("History", err)
	return h
}

// counts expects these counts of open deliveries.
func (c *suite) counts(want ...journal.OpenCount) {
	c.Helper()
	got, err := c.store.Open(c.Context())
	c.ok("Open", err)
	c.same("open", got, want)
}

// sameTime makes cmp compare instants.
var sameTime = cmp.Comparer(func(a, b time.Time) bool { return a.Equal(b) })

// same compares without telling nil from empty.
func (c *suite) same(what string, got, want any) {
	c.Helper()
	if diff := cmp.Diff(want, got, sameTime, cmp.Comparer(bytes.Equal)); diff != "" {
		c.Errorf("%s: -want +got\n%s", what, diff)
	}
}

// inEveryState stores an event named after each state, one per millisecond, and brings it there.
func (c *suite) inEveryState() map[string]*journal.Record {
	c.Helper()
	entries := map[string]*journal.Record{}
	for _, key := range []string{"processing", "failed", "dead", "done", "pending"} {
		entries[key] = c.entry(key)
		c.fresh(entries[key])
		if key != "pending" {
			w := c.take1(key)
			if key != "processing" {
				c.finish1(c.outcome(w, journal.State(key)), true)
			}
		}
		c.pass(time.Millisecond)
	}
	return entries
}

var listCases = []testCase{
	{"an empty journal", func(c *suite) { c.lists(journal.Filter{}) }},
	{"newest first, in pages", func(c *suite) {
		for i := range 5 {
			c.fresh(c.entry(fmt.Sprint("evt_", i)))
		}
		c.lists(journal.Filter{}, "evt_4", "evt_3", "evt_2", "evt_1", "evt_0")
	}},
	{"what came from an identifier on, oldest first, and each summed up as in a list", func(c *suite) {
		a, b, d := c.entry("a", func(r *journal.Record) { r.Vouched = 7 }), c.entry("b", to("app", "audit")), c.entry("c", to())
		c.fresh(a, b, d)
		of := func(e *journal.Record) journal.Arrival {
			return journal.Arrival{ID: e.ID, Source: e.Source, Type: e.Type}
		}
		for _, w := range c.take(1) {
			c.finish1(c.outcome(w, journal.Failed), true)
		}
		for _, one := range []struct {
			first int64
			limit int
			want  []journal.Arrival
		}{{0, 10, []journal.Arrival{of(a), of(b), of(d)}}, {b.ID, 10, []journal.Arrival{of(b), of(d)}}, {0, 2, []journal.Arrival{of(a), of(b)}}, {d.ID + 1, 10, nil}} {
			got, err := c.store.Arrivals(c.Context(), one.first, one.limit)
			c.ok("Arrivals", err)
			c.same(fmt.Sprintf("arrivals from %d on, %d at most", one.first, one.limit), got, one.want)
		}
		page, err := c.store.List(c.Context(), journal.Filter{}, 0, 10)
		c.ok("List", err)
		slices.Reverse(page.Events)
		got, err := c.store.Summaries(c.Context(), []int64{d.ID, 1, a.ID, b.ID})
		c.ok("Summaries", err)
		c.same("summaries", got, page.Events)
		if got[0].Vouched != 7 || got[1].Vouched != 0 {
			c.Errorf("vouched for by %d and %d", got[0].Vouched, got[1].Vouched)
		}
		if got, err = c.store.Summaries(c.Context(), nil); err != nil || len(got) != 0 {
			c.Errorf("of none there are %v, %v", got, err)
		}
	}},
	{"what is accepted meanwhile neither repeats nor hides an event", func(c *suite) {
		c.fresh(c.entry("a"), c.entry("b"), c.entry("c"))
		keys, next := c.list(journal.Filter{}, 0, 2)
		c.same("first page", keys, []string{"c", "b"})
		c.pass(time.Second)
		c.fresh(c.entry("d"), c.entry("e"))
		keys, next = c.list(journal.Filter{}, next, 2)
		c.same("second page", keys, []string{"a"})
		if next != 0 {
			c.Errorf("the list goes on at %d", next)
		}
	}},
	{"by source and type", func(c *suite) {
		kind := func(kind string) func(*journal.Record) { return func(e *journal.Record) { e.Type = kind } }
		c.fresh(
			c.entry("a", kind("invoice.paid")), c.entry("b", kind("invoice.created")), c.entry("c", kind("charge.refunded")),
			c.entry("d", kind("invoice.paid"), func(e *journal.Record) { e.Source = "other" }),
			c.entry("e", kind("Invoice.paid")), c.entry("f", kind("a_b%c[d]?e\\f")), c.entry("g", kind("axb")), c.entry("h", kind("")),
		)
		c.lists(journal.Filter{Type: "invoice.*"}, "d", "b", "a")
		c.lists(journal.Filter{Type: "invoice.*", Source: "billing"}, "b", "a")
		c.lists(journal.Filter{Type: "*.paid"}, "e", "d", "a")
		c.lists(journal.Filter{Type: "*v*pa*"}, "e", "d", "a")
		c.lists(journal.Filter{Type: "invoice"})
		c.lists(journal.Filter{Type: "a_b*"}, "f")
		c.lists(journal.Filter{Type: `a_b%c[d]?e\f`}, "f")
		c.lists(journal.Filter{Type: "a?b"})
		c.lists(journal.Filter{Source: `o'"ther`})
	}},
	{"by resource, whole or a part of it", func(c *suite) {
		about := func(resource string) func(*journal.Record) { return func(e *journal.Record) { e.Resource = resource } }
		c.fresh(c.entry("a", about("pi_1")), c.entry("b", about("7:acct_774:pi_1")), c.entry("c", about("pi_11")),
			c.entry("d", about("7:acct_775:pi_11")), c.entry("e", about("")), c.entry("f", about("4:PI_14:pi%1")), c.entry("g", about("pi_1x")))
		c.lists(journal.Filter{Resource: "pi_1"}, "b", "a")
		c.lists(journal.Filter{Resource: "pi_11"}, "d", "c")
		c.lists(journal.Filter{Resource: "acct_77"}, "d", "b")
		c.lists(journal.Filter{Resource: "7:acct_774:pi_1"}, "b")
		c.lists(journal.Filter{Resource: "pi%1"}, "f")
		c.lists(journal.Filter{Resource: "pi_1", Source: "other"})
		c.lists(journal.Filter{Resource: "pi_"})
	}},
	{"by state", func(c *suite) {
		c.inEveryState()
		for _, s := range []journal.State{journal.Pending, journal.Processing, journal.Failed, journal.Dead, journal.Done} {
			c.lists(journal.Filter{State: s}, string(s))
		}
	}},
	{"by destination, and its state alone", func(c *suite) {
		c.fresh(c.entry("both", to("app", "audit")), c.entry("app", to("app")), c.entry("audit", to("audit")))
		for _, w := range c.take(10) {
			state := journal.Failed
			if w.Destination == "audit" {
				state = journal.Done
			}
			c.finish1(c.outcome(w, state), true)
		}
		c.lists(journal.Filter{Destination: "app"}, "app", "both")
		c.lists(journal.Filter{Destination: "audit"}, "audit", "both")
		c.lists(journal.Filter{Destination: "audit", State: journal.Done}, "audit", "both")
		c.lists(journal.Filter{State: journal.Done}, "audit")
		c.lists(journal.Filter{Destination: "app", State: journal.Failed}, "app", "both")
		c.lists(journal.Filter{Destination: "app", State: journal.Done})
		c.lists(journal.Filter{Destination: "nobody"})
	}},
	{"by time, from since on and before until", func(c *suite) {
		for _, key := range []string{"a", "b", "c"} {
			c.fresh(c.entry(key))
			c.pass(time.Millisecond)
		}
		c.lists(journal.Filter{Since: start.Add(time.Millisecond)}, "c", "b")
		c.lists(journal.Filter{Until: start.Add(time.Millisecond)}, "a")
		c.lists(journal.Filter{Since: start.Add(time.Millisecond), Until: start.Add(2 * time.Millisecond)}, "b")
		c.lists(journal.Filter{Since: start.Add(time.Hour)})
		late, early := time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 2, 0, 0, 0, 0, time.UTC)
		c.lists(journal.Filter{Since: late})
		c.lists(journal.Filter{Since: start.Add(1 << 42 * time.Millisecond)}) // identifiers end before
		c.lists(journal.Filter{Until: early})
		c.lists(journal.Filter{Since: early, Until: late}, "c", "b", "a")
	}},
	{"by what copies of it were", func(c *suite) {
		a, b := c.entry("a"), c.entry("b")
		c.fresh(a, b)
		c.recordDuplicates(journal.DuplicateReceipt{EventID: a.ID, Kind: journal.ReceiptConflict, First: c.now, Last: c.now, Copies: 1},
			journal.DuplicateReceipt{EventID: b.ID, Kind: journal.ReceiptDuplicate, First: c.now, Last: c.now, Copies: 1})
		c.lists(journal.Filter{Seen: journal.ReceiptConflict}, "a")
		c.lists(journal.Filter{Seen: journal.ReceiptDuplicate}, "b")
		c.lists(journal.Filter{Seen: journal.ReceiptRedriven})
	}},
	{"an event is summed up", func(c *suite) {
		e := c.stored("evt_1", to("b", "a"))
		w := c.take(1)[0]
		c.finish1(c.outcome(w, journal.Failed), true)
		page, err := c.store.List(c.Context(), journal.Filter{}, 0, 10)
		if err != nil || len(page.Events) != 1 {
			c.Fatalf("List = %+v, %v", page, err)
		}
		c.same("summary", page.Events[0], journal.Summary{
			ID: e.ID, Source: "billing", Key: "evt_1", Type: "invoice.paid", ReceivedAt: e.ReceivedAt, HasBody: true,
			Deliveries: []journal.Delivery{
				{EventID: e.ID, Destination: "a", State: journal.Failed, Token: 1, Tries: 1,
					Due: c.now.Add(time.Minute), LastError: "the app answered 500", Status: 500},
				{EventID: e.ID, Destination: "b", State: journal.Pending, Due: c.now},
			},
		})
		if s := page.Events[0].State(); s != journal.Failed {
			c.Errorf("the event is %s", s)
		}
	}},
	{"an event that no route wanted is told from one that was delivered", func(c *suite) {
		inGroup := func(e *journal.Record) { e.Resource, e.Ordered = "invoice_1", e.Destinations }
		bypassed := func(e *journal.Record) { e.Bypassed = true } // which all have taken that it was for
		batches := [][]*journal.Record{
			{c.entry("a"), c.entry("b", to()), c.entry("c"), c.entry("d", to()), c.entry("g", to(), bypassed)},
			{c.entry("e", inGroup), c.entry("f", to())}, // by the statement for ordering groups
		}
		for _, batch := range batches {
			c.fresh(batch...)
			c.finishAll(c.take(10), journal.Done)
		}
		page, err := c.store.List(c.Context(), journal.Filter{}, 0, 10)
		if err != nil || len(page.Events) != 7 {
			c.Fatalf("List = %+v, %v", page, err)
		}
		for _, s := range page.Events {
			h, err := c.store.History(c.Context(), s.ID)
			if want := strings.Contains("bdf", s.Key); err != nil || s.Unrouted != want || h.Unrouted != want || s.State() != journal.Done {
				c.Errorf("%s: unrouted %t in the list, and %+v, %v", s.Key, s.Unrouted, h, err)
			}
		}
		c.lists(journal.Filter{Unrouted: true}, "f", "d", "b")
		c.lists(journal.Filter{Unrouted: true, State: journal.Done}, "f", "d", "b")
		c.lists(journal.Filter{Unrouted: true, Destination: "app"})
	}},
	{"with a context that has ended", func(c *suite) {
		if _, err := c.store.List(canceled(c), journal.Filter{}, 0, 10); err == nil {
			c.Error("List went on")
		}
	}},
}

// contents returns the bodies of events, by identifier.
func (c *suite) contents(ids ...int64) map[int64]string {
	c.Helper()
	got := map[int64]string{}
	err := c.store.Contents(c.Context(), ids, func(id int64, header, body []byte) error {
		got[id] = string(header) + string(body)
		return nil
	})
	c.ok(fmt.Sprintf("Contents(%v)", ids), err)
	return got
}

var errEnough = errors.New("enough")

var contentCases = []testCase{
	{"the header and the body of each, as far as they are kept", func(c *suite) {
		a, b, gone, other := c.entry("a"), c.entry("b"), c.entry("gone"), c.entry("other")
		b.Body = []byte{0, 0xff, 'b'}
		c.fresh(a, b, gone, other)
		c.f.DropBody(c, gone.ID)
		c.same("contents", c.contents(b.ID, a.ID, gone.ID, a.ID+1<<40), map[int64]string{
			a.ID: string(a.Lines()) + `{"id":"a"}`, b.ID: string(b.Lines()) + "\x00\xffb"})
		c.same("contents of none", c.contents(), map[int64]string{})
	}},
	{"it stops at an error", func(c *suite) {
		a, b := c.entry("a"), c.entry("b")
		c.fresh(a, b)
		seen := 0
		err := c.store.Contents(c.Context(), []int64{a.ID, b.ID}, func(int64, []byte, []byte) error { seen++; return errEnough })
		if !errors.Is(err, errEnough) || seen != 1 {
			c.Errorf("Contents = %v after %d", err, seen)
		}
		if err := c.store.Contents(canceled(c), []int64{a.ID}, func(int64, []byte, []byte) error { return nil }); err == nil {
			c.Error("Contents went on")
		}
	}},
}

var historyCases = []testCase{
	{"an event is found by its key", func(c *suite) {
		e := c.entry("evt_1")
		c.fresh(e, c.entry(""))
		if id, err := c.store.Find(c.Context(), "billing", "evt_1"); err != nil || id != e.ID {
			c.Errorf("Find = %d, %v; want %d", id, err, e.ID)
		}
		for _, r := range [][2]string{{"other", "evt_1"}, {"billing", "evt"}, {"billing", ""}} {
			if _, err := c.store.Find(c.Context(), r[0], r[1]); !errors.Is(err, journal.ErrNoEvent) {
				c.Errorf("Find(%q) = %v", r, err)
			}
		}
		if _, err := c.store.History(c.Context(), c.ids.Next(c.now)); !errors.Is(err, journal.ErrNoEvent) {
			c.Errorf("History of another = %v", err)
		}
	}},
	{"events are found by their key alone, whatever their source, the newest first", func(c *suite) {
		at := func(key, source string) *journal.Record {
			return c.entry(key, func(e *journal.Record) { e.Source = source })
		}
		old, other, unkeyed := at("evt_1", "z"), at("evt_2", "b"), at("", "y")
		c.fresh(old, other, unkeyed, at("", "z"))
		c.pass(time.Minute)
		last := at("evt_1", "a")
		c.fresh(last)
		for key, want := range map[string][]int64{"evt_1": {last.ID, old.ID}, "evt_2": {other.ID}, "evt": nil, "": nil} {
			all, err := c.store.FindAnywhere(c.Context(), key)
			var found []int64
			for _, s := range all {
				found = append(found, s.ID)
				if s.Key != key || len(s.Deliveries) != 1 {
					c.Errorf("FindAnywhere(%q) has %+v", key, s)
				}
			}
			if !slices.Equal(found, want) || (want == nil) != errors.Is(err, journal.ErrNoEvent) || want != nil && err != nil {
				c.Errorf("FindAnywhere(%q) = %v, %v; want %v", key, found, err, want)
			}
		}
	}},
	{"attempts, oldest first, with the answers", func(c *suite) {
		e := c.stored("evt_1", to("app", "audit"))
		var want []journal.Attempt
		for i, state := range []journal.State{journal.Failed, journal.Failed, journal.Done} {
			work := c.take(10)
			for _, w := range work {
				if w.Destination == "audit" && i == 0 {
					c.finish1(journal.Outcome{Held: w.Held, State: journal.Pending, Due: c.now.Add(time.Hour)}, true)
					continue
				}
				o := c.outcome(w, state)
				o.Excerpt = []byte{'b', 'u', 's', 'y', 0, 0xff}
				c.finish1(o, true)
				want = append(want, journal.Attempt{Destination: "app", Token: int64(i + 1), State: state, Status: o.Status,
					Error: o.Error, Started: c.now, Duration: o.Duration, Excerpt: o.Excerpt})
			}
			c.pass(time.Minute)
		}
		h := c.history(e.ID)
		c.same("attempts", h.Attempts, want)
		var ended time.Time
		for _, a := range want {
			if a.State == journal.Done {
				ended = a.Started.Add(a.Duration)
			}
		}
		c.same("finished", h.Finished, []journal.Delivery{{EventID: e.ID, Destination: "app", State: journal.Done, Token: 3, Ended: ended}})
		c.same("open", h.Deliveries, []journal.Delivery{{EventID: e.ID, Destination: "audit", State: journal.Pending, Token: 1,
			Due: start.Add(time.Hour)}})
		if !h.HasBody || h.Size != int64(len(e.Body)) {
			c.Errorf("has a body: %v, of %d bytes", h.HasBody, h.Size)
		}
	}},
	{"the latest attempts, when there are too many", func(c *suite) {
		e := c.stored("evt_1")
		for range journal.MaxAttempts + 3 {
			c.finish1(c.outcome(c.take1("evt_1"), journal.Failed), true)
			c.pass(time.Minute)
		}
		h := c.history(e.ID)
		if n := len(h.Attempts); n != journal.MaxAttempts || h.Attempts[0].Token != 4 || h.Attempts[n-1].Token != int64(n+3) {
			c.Errorf("%d attempts, from %d", n, h.Attempts[0].Token)
		}
	}},
	{"what was purged is said to be gone", func(c *suite) {
		e := c.done("evt_1")
		c.pass(time.Hour)
		c.purge(journal.KindBodies, 1)
		if h := c.history(e.ID); h.HasBody || h.Size != 0 || len(h.Attempts) != 1 || len(h.Finished) != 1 {
			c.Errorf("without its body: %+v", h)
		}
		c.purge(journal.KindAttempts, 1)
		h := c.history(e.ID)
		if h.HasBody || len(h.Attempts)+len(h.Finished) != 0 {
			c.Errorf("History = %+v", h)
		}
	}},
	{"open deliveries are counted by destination and state", func(c *suite) {
		first := c.inEveryState()
		c.fresh(c.entry("more", to("app", "audit")))
		since := func(destination string, state journal.State, n int64, at time.Time) journal.OpenCount {
			return journal.OpenCount{Destination: destination, State: state, Count: n, Oldest: at, Since: at}
		}
		at := func(key string) time.Time { return journal.IDTime(first[key].ID) }
		c.counts(since("app", journal.Dead, 1, at("dead")), since("app", journal.Failed, 1, at("failed")), since("app", journal.Pending, 2, at("pending")),
			since("app", journal.Processing, 1, at("processing")), since("audit", journal.Pending, 1, c.now))
	}},
	{"what a replay begins again waits since it was due then, and not since its event came", func(c *suite) {
		came := start
		first := c.stored("a")
		second := c.stored("b")
		again := func() {
			c.Helper()
			c.accept1(c.entry("a"), journal.Result{Status: journal.Duplicate, ID: first.ID, Redriven: true})
		}
		c.finishAll(c.takeKeys(2, "a", "b"), journal.Dead)
		waits := func(state journal.State, n int64, since time.Time) journal.OpenCount {
			return journal.OpenCount{Destination: "app", State: state, Count: n, Oldest: came, Since: since}
		}
		c.counts(waits(journal.Dead, 2, came))
		c.pass(3 * 24 * time.Hour)
		began := c.now
		c.replay(c.asked(journal.Filter{State: journal.Dead}, func(r *journal.Replay) { r.Rate = 1. / 60 / 60 }), 100)
		later := began.Add(time.Hour)
		c.counts(waits(journal.Pending, 2, began))

		// However often it is put off, handed back without a try, or asked for while it fails.
		c.pass(time.Minute)
		w := c.take1("a")
		c.counts(waits(journal.Pending, 1, later), waits(journal.Processing, 1, began))
		c.finish1(c.outcome(w, journal.Pending), true)
		c.counts(waits(journal.Pending, 2, began))
		for range 2 {
			c.pass(time.Minute)
			c.finish1(c.outcome(c.take1("a"), journal.Failed), true)
			c.counts(waits(journal.Failed, 1, began), waits(journal.Pending, 1, later))
			c.replay(c.asked(journal.Filter{State: journal.Failed}), 100)
			c.counts(waits(journal.Pending, 2, began))
		}
		c.pass(time.Minute)
		c.finish1(c.outcome(c.take1("a"), journal.Failed), true)
		again()
		c.counts(waits(journal.Pending, 2, began))
		c.finish1(c.outcome(c.take1("a"), journal.Dead), true)
		c.counts(waits(journal.Dead, 1, came), waits(journal.Pending, 1, later))
		again()
		c.counts(waits(journal.Pending, 2, began))
		c.finish1(c.outcome(c.take1("a"), journal.Dead), true)
		c.pass(time.Minute)
		c.replay(c.asked(journal.Filter{State: journal.Dead}), 100)
		c.counts(waits(journal.Pending, 2, c.now))
		c.finishAll(c.takeKeys(1, "a"), journal.Dead)

		// What never died waits since it came, replayed with a rate or not, and so does what comes meanwhile.
		other := c.now
		c.fresh(c.entry("other"))
		c.counts(waits(journal.Dead, 1, came), waits(journal.Pending, 2, other))
		c.finish1(c.outcome(c.take1("other"), journal.Failed), true)
		c.pass(time.Second)
		c.replay(c.asked(journal.Filter{State: journal.Failed}, func(r *journal.Replay) { r.Rate = 100 }), 100)
		c.counts(waits(journal.Dead, 1, came), waits(journal.Pending, 2, other))
		c.pass(time.Hour)
		c.finishAll(c.takeKeys(10, "other", "b"), journal.Done)
		c.replay(c.asked(journal.Filter{State: journal.Done}, only(second.ID), force), 100)
		c.counts(waits(journal.Dead, 1, came), waits(journal.Pending, 1, c.now))
	}},
	{"a replay that goes on later waits since it was asked to", func(c *suite) {
		came := c.now
		c.stored("a")
		c.stored("b")
		c.finishAll(c.takeKeys(2, "a", "b"), journal.Dead)
		c.pass(24 * time.Hour)
		began := c.now
		dead := c.asked(journal.Filter{State: journal.Dead})
		got := c.replay(dead, 1)
		c.pass(time.Hour)
		since := func(at time.Time, n int64) journal.OpenCount {
			return journal.OpenCount{Destination: "app", State: journal.Pending, Count: n, Oldest: came, Since: at}
		}
		dead.Start, dead.Audit, dead.After = c.now, got.Audit, got.Next
		c.replay(dead, 1)
		c.counts(since(began, 2))
		c.finishAll(c.takeKeys(1, "a"), journal.Done)
		c.counts(since(c.now, 1))
		c.finishAll(c.takeKeys(1, "b"), journal.Done)

		// With a rate it waits since it is due by that, if that is later; and what is done is begun again likewise.
		done := c.asked(journal.Filter{State: journal.Done}, force, func(r *journal.Replay) { r.Rate = 1. / 60 / 60 / 3 })
		got = c.replay(done, 1)
		began = c.now
		c.pass(time.Hour)
		done.Start, done.Audit, done.After = c.now, got.Audit, got.Next
		c.replay(done, 1)
		c.finish1(c.outcome(c.take1("a"), journal.Done), true)
		c.counts(since(began.Add(3*time.Hour), 1))
	}},
}
