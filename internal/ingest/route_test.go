package ingest_test

import (
	"context"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// recorder is a journal that keeps what it is given, and says that all of it is new.
type recorder struct {
	entries            []*journal.Event
	logicalDuplicateOf int64
}

func (r *recorder) Accept(_ context.Context, entries []*journal.Event) ([]journal.Result, error) {
	r.entries = append(r.entries, entries...)
	results := make([]journal.Result, len(entries))
	for i := range results {
		results[i] = journal.Result{Status: journal.Accepted, ID: int64(i + 1), LogicalDuplicateOf: r.logicalDuplicateOf}
	}
	return results, nil
}

// headers reads headers of events.
type headers []string

func (h headers) Read(ev *hookonce.Event) []string {
	var texts []string
	for _, name := range h {
		texts = append(texts, ev.Header.Get(name))
	}
	return texts
}

// live matches events of one account that are no tests.
var live = ingest.Where{Fields: headers{"X-Live", "X-Account"}, Texts: []string{"true", "a"}}

// Every route that an event matches applies, and no destination gets an event twice.
func TestRoutes(t *testing.T) {
	routes := []ingest.Route{
		{To: []string{"ledger", "mailer"}, Types: []string{"invoice.*", "charge.refunded"}},
		{To: []string{"mailer", "audit"}, Where: live},
		{To: []string{"audit"}, Types: []string{"customer.*"}, Where: live},
		{To: []string{"all"}, Types: []string{"*.created"}},
	}
	for _, c := range []struct {
		name, eventType string
		live, account   string
		want            []string
	}{
		{"by a pattern", "invoice.paid", "", "", []string{"ledger", "mailer"}},
		{"by its name", "charge.refunded", "", "", []string{"ledger", "mailer"}},
		{"by all fields", "x", "true", "a", []string{"mailer", "audit"}},
		{"not by some of them", "x", "true", "b", nil},
		{"by several routes", "invoice.created", "true", "a", []string{"ledger", "mailer", "audit", "all"}},
		{"by type and fields", "customer.x", "true", "a", []string{"mailer", "audit"}},
		{"by type alone where fields are asked for", "customer.x", "false", "a", nil},
		{"by none", "charge.refunded.x", "", "", nil},
		{"without a type", "", "", "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var to recorder
			counted := tally.NewRegistry(time.Now)
			g := newGate(t, func(o *ingest.Options) { o.Journal, o.Sources[0].Routes, o.Tally = &to, routes, counted })
			r := request("billing", `{"id":"a","type":"`+c.eventType+`"}`)
			r.Header.Set("X-Live", c.live)
			r.Header.Set("X-Account", c.account)
			wantAnswer(t, serve(g, r), http.StatusOK, "accepted", `{"status":"accepted","key":"a"}`+"\n")
			if diff := cmp.Diff(c.want, to.entries[0].Destinations); diff != "" {
				t.Error(diff)
			}
			unrouted := gather(t, g, "hookonce_unrouted_total")["unmatched,billing"]
			if want, told := len(c.want) == 0, counts(counted)["billing unrouted"]; want != (unrouted == 1) || want != (told == 1) {
				t.Errorf("%v events are counted as going nowhere, and %d for people", unrouted, told)
			}
		})
	}
}

// An event of a source without routes goes nowhere as it was meant to, and is told apart from one that no route wanted.
func TestSourceWithoutRoutes(t *testing.T) {
	var to recorder
	g := newGate(t, func(o *ingest.Options) { o.Journal, o.Sources[0].Routes = &to, nil })
	wantAnswer(t, serve(g, request("billing", `{"id":"a","type":"x"}`)), http.StatusOK, "accepted", `{"status":"accepted","key":"a"}`+"\n")
	counted := gather(t, g, "hookonce_unrouted_total")
	if _, unmatched := counted["unmatched,billing"]; unmatched || counted["no_routes,billing"] != 1 {
		t.Errorf("counted %v", counted)
	}
}

// What one event is given must not change for the next.
func TestRoutesShareNothing(t *testing.T) {
	var to recorder
	routes := []ingest.Route{
		{To: []string{"a", "d", "e"}, Types: []string{"*x*"}}, // three names leave room behind them
		{To: []string{"b"}, Types: []string{"*y*"}},
		{To: []string{"c"}, Types: []string{"*z*"}},
	}
	g := newGate(t, func(o *ingest.Options) { o.Journal, o.Sources[0].Routes = &to, routes })
	g.send("billing", `[{"id":"1","type":"xy"},{"id":"2","type":"xz"},{"id":"3","type":"x"},{"id":"4","type":"xyz"}]`)
	var got []string
	for _, e := range to.entries {
		got = append(got, strings.Join(e.Destinations, ""))
	}
	if diff := cmp.Diff([]string{"adeb", "adec", "ade", "adebc"}, got); diff != "" {
		t.Error(diff)
	}
}

// A source without conditions sends everything everywhere, and each destination is named once.
func TestRoutesWithoutConditions(t *testing.T) {
	var to recorder
	g := newGate(t, func(o *ingest.Options) {
		o.Journal, o.Sources[0].Routes = &to, []ingest.Route{{To: []string{"a", "b", "a"}}, {To: []string{"b", "c"}}}
	})
	g.send("billing", `{"id":"1"}`)
	if diff := cmp.Diff([]string{"a", "b", "c"}, to.entries[0].Destinations); diff != "" {
		t.Error(diff)
	}
}

// FuzzPattern holds patterns to what a regular expression says.
func FuzzPattern(f *testing.F) {
	f.Add("invoice.*", "invoice.paid")
	f.Add("*.paid", "invoice.paid")
	f.Add("a*b*a", "aba")
	f.Add("a*a", "a")
	f.Add("**", "")
	f.Add("", "")
	f.Add("*", "x")
	f.Fuzz(func(t *testing.T, pattern, eventType string) {
		pattern, eventType = strings.ToValidUTF8(pattern, "?"), strings.ToValidUTF8(eventType, "?") // as regular expressions need it
		parts := strings.Split(pattern, "*")
		for i := range parts {
			parts[i] = regexp.QuoteMeta(parts[i])
		}
		re, err := regexp.Compile(`(?s)^` + strings.Join(parts, ".*") + `$`)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := ingest.PatternMatches(pattern, eventType), re.MatchString(eventType); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, eventType, got, want)
		}
	})
}

// What the provider says about order and logical duplicates reaches the journal.
func TestOrderAndLogicalDuplicates(t *testing.T) {
	to := recorder{logicalDuplicateOf: 7}
	g := newGate(t, func(o *ingest.Options) { o.Journal, o.Sources[0].DropLogicalDuplicates = &to, []string{"dropped"} })
	g.send("billing", `[{"id":"a","type":"x","scope":"r","rank":3,"logical":"l"},{"id":"b","type":"dropped","logical":"l"},{"id":"c","type":"dropped"}]`)
	var got []journal.Event
	for _, e := range to.entries {
		got = append(got, journal.Event{Key: e.Key, Resource: e.Resource, Rank: e.Rank, LogicalKey: e.LogicalKey, DropLogicalDuplicate: e.DropLogicalDuplicate})
	}
	same := to.entries[0].LogicalKey
	want := []journal.Event{
		{Key: "a", Resource: "r", Rank: hookonce.Version(3), LogicalKey: same},
		{Key: "b", LogicalKey: same, DropLogicalDuplicate: true},
		{Key: "c"}, // nothing tells of which it would be the logical duplicate
	}
	if diff := cmp.Diff(want, got); diff != "" || same == "" {
		t.Error(same, diff)
	}
	if n := gather(t, g, "hookonce_logical_duplicates_total")["billing"]; n != 3 {
		t.Errorf("%v logical duplicates are counted, want 3", n)
	}
}

// Where logical duplicates are dropped, only events for the same destinations are logical duplicates: nothing is dropped for a
// destination that did not get the first. Where none is dropped, they are told in any case.
func TestLogicalDuplicatesHaveTheSameDestinations(t *testing.T) {
	routes := []ingest.Route{
		{To: []string{"a"}, Types: []string{"*a*"}},
		{To: []string{"b"}, Types: []string{"*b*"}},
		{To: []string{"b", "a"}, Types: []string{"both"}},
	}
	for _, c := range []struct {
		first, second string
		together      bool
	}{
		{"a", "a", true},
		{"xa", "ax", true},
		{"ab", "both", true}, // in another order
		{"a", "b", false},
		{"ab", "b", false},
		{"a", "ab", false},
		{"none", "a", false},
		{"none", "nowhere", true},
	} {
		for _, drop := range [][]string{nil, {"other"}} {
			for _, window := range []time.Duration{0, 24 * time.Hour} {
				var to recorder
				g := newGate(t, func(o *ingest.Options) {
					o.Journal, o.Sources[0].Routes, o.Sources[0].DropLogicalDuplicates, o.Sources[0].LogicalDuplicateWindow = &to, routes, drop, window
				})
				g.send("billing", `[{"id":"1","type":"`+c.first+`","logical":"l"},{"id":"2","type":"`+c.second+`","logical":"l"},{"id":"3","type":"`+c.first+`","logical":"m"}]`)
				first, second, other := to.entries[0].LogicalKey, to.entries[1].LogicalKey, to.entries[2].LogicalKey
				if want := c.together || drop == nil; want != (first == second) || first == other || first == "" {
					t.Errorf("%s and %s, dropping %q within %v, have %q and %q in common; another change %q", c.first, c.second, drop, window, first, second, other)
				}
			}
		}
	}
}

// What a destination's name looks like is no matter for what logical duplicates have in common.
func TestLogicalDuplicatesOfCuriousDestinations(t *testing.T) {
	var to recorder
	g := newGate(t, func(o *ingest.Options) {
		o.Journal, o.Sources[0].DropLogicalDuplicates = &to, []string{"other"}
		o.Sources[0].Routes = []ingest.Route{{To: []string{"a"}, Types: []string{"a"}}}
	})
	g.send("billing", `[{"id":"1","type":"a","logical":"l"},{"id":"2","type":"b","logical":"1:a1:l"}]`)
	if to.entries[0].LogicalKey == to.entries[1].LogicalKey {
		t.Errorf("both are %q", to.entries[0].LogicalKey)
	}
}

// Who waits for an answer gets one to each event: nothing is dropped.
func TestLogicalDuplicatesAreNotDroppedInModeSync(t *testing.T) {
	var to recorder
	g := newGate(t, func(o *ingest.Options) {
		o.Journal, o.Sources[0].Sync, o.Sources[0].DropLogicalDuplicates = &to, true, []string{"dropped"}
	})
	g.send("billing", `[{"id":"a","type":"dropped","logical":"l"},{"id":"b","type":"dropped","logical":"l"}]`)
	for _, e := range to.entries {
		if e.DropLogicalDuplicate || e.LogicalKey != "l" {
			t.Errorf("%s: dropped as a logical duplicate: %t, in common: %q", e.Key, e.DropLogicalDuplicate, e.LogicalKey)
		}
	}
}

// Logical duplicates are looked for in one window of time at a time.
func TestLogicalDuplicatesAreNotFarApart(t *testing.T) {
	var to recorder
	now := time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	g := newGate(t, func(o *ingest.Options) {
		o.Journal, o.Sources[0].LogicalDuplicateWindow = &to, 24*time.Hour
		o.Now = func() time.Time { return now }
	})
	for _, after := range []time.Duration{0, 23*time.Hour + 59*time.Minute, time.Minute} {
		now = now.Add(after)
		g.send("billing", `[{"id":"a","logical":"l"},{"id":"b","logical":"m"},{"id":"c"}]`)
	}
	var got []string
	for _, e := range to.entries {
		got = append(got, e.LogicalKey)
	}
	if got[0] == "" || got[0] == got[1] || got[2] != "" || !slices.Equal(got[:3], got[3:6]) || got[6] == got[0] || got[7] == got[1] || got[8] != "" {
		t.Errorf("what logical duplicates have in common: %q", got)
	}
}
