package journaltest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Fixture is one fresh, empty database of the store under test, with what the suite needs to do and
// see behind the store's back.
type Fixture struct {
	// Open opens a store on the database and closes it when the test ends. Each call gives another
	// store on the same database; unless Shared, the one before is closed first.
	Open func(t testing.TB) journal.Store
	// Shared reports that several stores can be open on the database at once. Such a store has no
	// orphans that it can know of.
	Shared bool
	// Refuse makes the database refuse every event with this key.
	Refuse func(t testing.TB, key string)
	// DropBody deletes the body of an event.
	DropBody func(t testing.TB, id int64)
	// RanksOfOlder makes of the newest ranks what programs before version 17 of the schema recorded of events: neither a source nor a
	// kind.
	RanksOfOlder func(t testing.TB)
	// Attempts returns the attempts recorded for an event, by destination and token. Due is not set.
	Attempts func(t testing.TB, id int64) []journal.Outcome
	// Rows counts the rows that there are of an event, by kind.
	Rows func(t testing.TB, id int64) map[journal.Kind]int
}

// Factory makes a fixture for one case.
type Factory func(t testing.TB) *Fixture

// Run checks every sentence of the contract of [journal.Store] that one caller at a time can see; of the named groups
// of cases only, if some are named.
func Run(t *testing.T, factory Factory, groups ...string) {
	ran := 0
	for _, group := range []struct {
		name  string
		cases []testCase
	}{
		{"accept", acceptCases}, {"copies", copyCases}, {"listed", listedCases}, {"coalesce", coalesceCases}, {"take", takeCases}, {"pick", pickCases},
		{"extend", extendCases}, {"finish", finishCases}, {"answers", answerCases}, {"bypass", bypassCases}, {"order", orderCases},
		{"stale", staleCases}, {"logical duplicates", logicalDuplicateCases}, {"orphans", orphanCases}, {"purge", purgeCases},
		{"known", knownCases}, {"marks", markCases}, {"missing", missingCases}, {"alerts", alertCases}, {"faults", faultCases},
	} {
		if len(groups) == 0 || slices.Contains(groups, group.name) {
			ran++
			t.Run(group.name, func(t *testing.T) { runCases(t, factory, group.cases) })
		}
	}
	if len(groups) > 0 && ran != len(groups) {
		t.Errorf("%d of the groups %q exist", ran, groups)
	}
}

// testCase is one statement about stores; its name says which.
type testCase struct {
	name string
	run  func(c *suite)
}

func runCases(t *testing.T, factory Factory, cases []testCase) {
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			f := factory(t)
			tc.run(&suite{T: t, f: f, store: f.Open(t), now: start, ids: journal.NewIDs(1, 0)})
		})
	}
}

// start is when every case begins. Whole milliseconds are what all stores tell apart.
var start = time.Date(2026, 3, 14, 15, 9, 26, 535_000_000, time.UTC)

// lease is how long the suite leases work for.
const lease = 10 * time.Second

// suite is one case: a store, a clock and ways to talk to them that fail the test on errors.
type suite struct {
	*testing.T
	f     *Fixture
	store journal.Store
	now   time.Time
	ids   *journal.IDs
	named int // how many events got a number for a name
}

// stores returns n stores on the database where several can be open at once, else the one that is.
func (c *suite) stores(n int) []journal.Store {
	all := []journal.Store{c.store}
	for c.f.Shared && len(all) < n {
		all = append(all, c.f.Open(c))
	}
	return all
}

func (c *suite) pass(d time.Duration) { c.now = c.now.Add(d) }

// entry returns a fresh event with one destination. The content depends on the key alone.
func (c *suite) entry(key string, edit ...func(*journal.Record)) *journal.Record {
	digest := sha256.Sum256([]byte(key))
	e := &journal.Record{ID: c.ids.Next(c.now), Event: &journal.Event{
		Source: "billing", Key: key, Type: "invoice.paid",
		Digest: digest[:16], Header: []byte("Content-Type: application/json\r\n"), Facts: []byte("Hookonce-Provider: stripe\r\n"),
		Body: []byte(`{"id":"` + key + `"}`), Destinations: []string{"app"}, ReceivedAt: c.now,
	}}
	for _, f := range edit {
		f(e)
	}
	return e
}

func hold(e *journal.Record) { e.Hold = e.Destinations }

func to(destinations ...string) func(*journal.Record) {
	return func(e *journal.Record) { e.Destinations = destinations }
}

// ok expects a call to have gone well.
func (c *suite) ok(call string, err error) {
	c.Helper()
	if err != nil {
		c.Fatalf("%s: %v", call, err)
	}
}

func (c *suite) accept(batch ...*journal.Record) []journal.Result {
	c.Helper()
	results, err := c.store.Accept(c.Context(), batch, c.now, c.now.Add(lease))
	c.ok("Accept", err)
	if len(results) != len(batch) {
		c.Fatalf("Accept returned %d results for %d entries", len(results), len(batch))
	}
	return results
}

// accept1 accepts one entry and expects the result, error included.
func (c *suite) accept1(e *journal.Record, want journal.Result) {
	c.Helper()
	if got := c.accept(e)[0]; got != want {
		c.Fatalf("Accept(%q) = %+v, want %+v", e.Key, got, want)
	}
}

// fresh accepts new entries.
func (c *suite) fresh(batch ...*journal.Record) {
	c.Helper()
	for i, r := range c.accept(batch...) {
		want := journal.Accepted
		if batch[i].Key == "" {
			want = journal.Unkeyed
		}
		if r != (journal.Result{Status: want, ID: batch[i].ID}) {
			c.Fatalf("Accept(%q) = %+v, want it to be %s", batch[i].Key, r, want)
		}
	}
}

// stored accepts a new entry and returns it.
func (c *suite) stored(key string, edit ...func(*journal.Record)) *journal.Record {
	c.Helper()
	e := c.entry(key, edit...)
	c.fresh(e)
	return e
}

// storedMany accepts n new entries in one batch, evt_0 and so on.
func (c *suite) storedMany(n int, edit ...func(*journal.Record)) (batch []*journal.Record) {
	c.Helper()
	for i := range n {
		batch = append(batch, c.entry(fmt.Sprint("evt_", i), edit...))
	}
	c.fresh(batch...)
	return batch
}

func (c *suite) take(limit int) []*journal.Work {
	c.Helper()
	return c.takeSome(journal.Wanted{Deliveries: limit})
}

func (c *suite) takeSome(want journal.Wanted) []*journal.Work {
	c.Helper()
	work, err := c.store.Take(c.Context(), c.now, c.now.Add(lease), want)
	c.ok("Take", err)
	return work
}

// takeKeys takes and expects deliveries of these keys, in order.
func (c *suite) takeKeys(limit int, want ...string) []*journal.Work {
	c.Helper()
	return c.takeWanted(journal.Wanted{Deliveries: limit}, want...)
}

// takeWanted takes what is wanted and expects deliveries of these keys, in order.
func (c *suite) takeWanted(wanted journal.Wanted, want ...string) []*journal.Work {
	c.Helper()
	work := c.takeSome(wanted)
	if got := keys(work); !slices.Equal(got, want) {
		c.Fatalf("took %q, want %q", got, want)
	}
	return work
}

// takeAll takes what is wanted and expects deliveries of these keys, in any order.
func (c *suite) takeAll(wanted journal.Wanted, want ...string) []*journal.Work {
	c.Helper()
	work := c.takeSome(wanted)
	if got := slices.Sorted(slices.Values(keys(work))); !slices.Equal(got, want) {
		c.Fatalf("took %q, want %q", got, want)
	}
	return work
}

func keys(work []*journal.Work) (keys []string) {
	for _, w := range work {
		keys = append(keys, w.Key)
	}
	return keys
}

// take1 takes one delivery and expects it to be of this key.
func (c *suite) take1(key string) *journal.Work {
	c.Helper()
	return c.takeKeys(1, key)[0]
}

func (c *suite) finish(outcomes ...journal.Outcome) []bool {
	c.Helper()
	applied, err := c.store.Finish(c.Context(), outcomes)
	c.ok("Finish", err)
	if len(applied) != len(outcomes) {
		c.Fatalf("Finish returned %d answers for %d outcomes", len(applied), len(outcomes))
	}
	return applied
}

// finish1 records one outcome and expects it to apply or not.
func (c *suite) finish1(o journal.Outcome, want bool) {
	c.Helper()
	if got := c.finish(o)[0]; got != want {
		c.Fatalf("Finish(%+v) applied: %v, want %v", o, got, want)
	}
}

// finishAll records the same of all work, one call each.
func (c *suite) finishAll(work []*journal.Work, s journal.State) {
	c.Helper()
	for _, w := range work {
		c.finish1(c.outcome(w, s), true)
	}
}

// outcome returns what became of w at the present time.
func (c *suite) outcome(w *journal.Work, s journal.State) journal.Outcome {
	o := journal.Outcome{Held: w.Held, State: s, Started: c.now, Duration: 1500 * time.Microsecond, Group: w.Group()}
	switch s {
	case journal.Done:
		o.Status = 204
	case journal.Failed, journal.Dead:
		o.Status, o.Error = 500, "the app answered 500"
	}
	o.Due = c.now.Add(time.Minute)
	return o
}

func (c *suite) open(want map[journal.State]int64) {
	c.Helper()
	stats, err := c.store.Stats(c.Context())
	c.ok("Stats", err)
	for _, s := range []journal.State{journal.Pending, journal.Processing, journal.Failed, journal.Dead, journal.Done} {
		if stats.Open[s] != want[s] {
			c.Fatalf("Stats.Open = %v, want %v", stats.Open, want)
		}
	}
	if stats.Events < 0 {
		c.Fatalf("Stats.Events = %d", stats.Events)
	}
}

// matches expects w to be the delivery of e to a destination.
func (c *suite) matches(w *journal.Work, e *journal.Record, want journal.Held, tries int) {
	c.Helper()
	if w.Held != want || w.Tries != tries {
		c.Errorf("took %+v (try %d), want %+v (try %d)", w.Held, w.Tries, want, tries)
	}
	if w.Source != e.Source || w.Key != e.Key || w.Type != e.Type || !w.ReceivedAt.Equal(e.ReceivedAt) {
		c.Errorf("took %s/%s %s received at %v, want %s/%s %s at %v",
			w.Source, w.Key, w.Type, w.ReceivedAt, e.Source, e.Key, e.Type, e.ReceivedAt)
	}
	if !bytes.Equal(w.Header, e.Lines()) || !bytes.Equal(w.Body, e.Body) {
		c.Errorf("took header %q body %q, want %q and %q", w.Header, w.Body, e.Lines(), e.Body)
	}
	if !w.Lease.Equal(c.now.Add(lease)) {
		c.Errorf("leased until %v, want %v", w.Lease, c.now.Add(lease))
	}
}

// Rotate returns a store that gives each call to the next of the given stores, as a balancer in front
// of several processes does. Close closes all of them.
func Rotate(stores ...journal.Store) journal.Store {
	return &rotation{Store: stores[0], stores: stores}
}

// canceled returns a context that has ended.
func canceled(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
