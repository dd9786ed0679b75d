package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/provider/spec"
)

var kinds = []spec.PageKind{spec.PageCursor, spec.PageLastID, spec.PageLink, spec.PageURL, spec.PageNumber, spec.PageOffset}

// TestEveryKindOfPage reads lists of every kind and order, whose last page is empty, full, and in between.
func TestEveryKindOfPage(t *testing.T) {
	for _, kind := range append(kinds, "") {
		for _, sort := range []spec.Sort{spec.Newest, spec.Oldest} {
			for _, n := range []int{0, 1, 9, 10, 11, 20, 35} {
				bubble(t, fmt.Sprintf("%s/%s/%d", kind, sort, n), func(t *testing.T) {
					w := newWorld(t, &reconciletest.Server{Kind: kind, Sort: sort})
					all := entries(n)
					w.server.Add(all...)
					for i := 0; i < n; i += 3 {
						w.ledger.put(all[i].ID)
					}
					r := w.mustRun()
					want := slices.DeleteFunc(ids(all), func(id string) bool { _, is := w.ledger.known[id]; return is })
					if diff := cmp.Diff(want, keys(r.Events), cmp.Transformer("nil", func(in []string) []string { return append([]string{}, in...) })); diff != "" {
						t.Error(diff)
					}
					if r.Listed != n || r.Known != n-len(want) || r.Missing != len(want) {
						t.Errorf("%+v", r)
					}
				})
			}
		}
	}
}

// TestShortPages: where the answer says whether there is another page, the size of this one does not.
func TestShortPages(t *testing.T) {
	for _, kind := range []spec.PageKind{spec.PageNumber, spec.PageOffset} {
		bubble(t, string(kind), func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Kind: kind}, func(s *spec.Spec) {
				s.Reconcile.List.Page.More, s.Reconcile.List.Page.Size = "$.more", 20
			})
			w.server.Add(entries(25)...)
			if r := w.mustRun(); r.Listed != 25 {
				t.Errorf("of 25 entries in pages of 10 it read %d", r.Listed)
			}
		})
	}
}

// TestPost reads a list that is asked for with a JSON body.
func TestPost(t *testing.T) {
	for _, kind := range []spec.PageKind{spec.PageCursor, spec.PageLastID, spec.PageNumber, spec.PageOffset} {
		bubble(t, string(kind), func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Kind: kind, Post: true})
			w.server.Add(entries(25)...)
			if r := w.mustRun(); r.Missing != 25 {
				t.Errorf("%+v", r)
			}
		})
	}
}

// TestPageWithout: what cannot stand beside the parameter for the next page is left out there, and nothing else is.
func TestPageWithout(t *testing.T) {
	for name, c := range map[string]struct {
		post          bool
		first, others string
	}{
		"query": {false, "/events?since={since}&until={until}", "/events?until={until}&after=%s"},
		"body":  {true, `{"since": "{since}", "until": "{until}"}`, `{"after":"%s","until":"{until}"}`},
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Sort: spec.Oldest, Post: c.post}, func(s *spec.Spec) { s.Reconcile.List.Page.Without = []string{"since"} })
			all := entries(25)
			w.server.Add(all...)
			if r := w.mustRun(); r.Missing != 25 {
				t.Errorf("%+v", r)
			}
			times := strings.NewReplacer("{since}", w.opts.Since.Add(-time.Minute).UTC().Format(time.RFC3339), "{until}", time.Now().Add(time.Minute).UTC().Format(time.RFC3339))
			want := []string{times.Replace(c.first), times.Replace(fmt.Sprintf(c.others, all[9].ID)), times.Replace(fmt.Sprintf(c.others, all[19].ID))}
			var got []string
			for _, r := range w.server.Requests() {
				asked, err := url.QueryUnescape(strings.TrimPrefix(r.URL, reconciletest.Origin))
				if err != nil {
					t.Fatal(err)
				}
				if c.post {
					asked = r.Body
				}
				got = append(got, asked)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestListWithoutRange ends where the range begins, if the newest come first: it asks for no page behind that.
func TestListWithoutRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Unfiltered: true})
		w.server.Add(entries(1000)...)
		w.opts.Since = time.Now().Add(-2 * time.Hour)
		r := w.mustRun()
		if r.Missing != 60 || len(w.server.Requests()) > 9 {
			t.Errorf("%d are missing after %d requests", r.Missing, len(w.server.Requests()))
		}
	})
}

// TestOldEntries: a list that begins with the newest is read until all of a page is before the range, and not to an entry that stands
// there out of order, as one that was sent again does.
func TestOldEntries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		page := func(next string, ages ...time.Duration) string {
			var all []string
			for _, age := range ages {
				id := fmt.Sprint("evt_", age)
				all = append(all, fmt.Sprintf(`{"id": %q, "at": %q, "event": {"id": %q}}`, id, now.Add(-age).Format(time.RFC3339), id))
			}
			return fmt.Sprintf(`{"data": [%s], "next": %q}`, strings.Join(all, ", "), next)
		}
		pages := map[string]string{
			"":  page("2", time.Hour, 90*time.Hour),
			"2": page("3", 91*time.Hour, 2*time.Hour),
			"3": page("4", 92*time.Hour, 93*time.Hour),
			"4": page("", 3*time.Hour),
		}
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Intercept: func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = fmt.Fprint(w, pages[r.URL.Query().Get("after")])
			return true
		}})
		r := w.mustRun()
		if diff := cmp.Diff([]string{"evt_1h0m0s", "evt_2h0m0s"}, keys(r.Events)); diff != "" || r.Pages != 3 {
			t.Errorf("%s after %d pages", diff, r.Pages)
		}
	})
}

// TestRange: both ends are included, whatever the sender cuts off of its times.
func TestRange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Size: 2})
		since := time.Now().Add(-2 * time.Hour).Truncate(time.Second)
		w.opts.Since, w.opts.Until = since.Add(700*time.Millisecond), since.Add(time.Hour)
		for id, at := range map[string]time.Duration{
			"before": -time.Second, "first": 0, "equal": 0, "also": 0, "last": time.Hour, "after": time.Hour + time.Second,
		} {
			w.server.Add(reconciletest.Entry{ID: id, At: since.Add(at)})
		}
		r := w.mustRun()
		if diff := cmp.Diff([]string{"also", "equal", "first", "last"}, keys(r.Events)); diff != "" || r.Listed != 4 {
			t.Errorf("%s %+v", diff, r)
		}
	})
}

// TestShifts changes the list while it is read. Nothing is lost, and nothing counts twice.
func TestShifts(t *testing.T) {
	for _, kind := range kinds {
		bubble(t, string(kind)+"/new entries at the head", func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Kind: kind, Unfiltered: true})
			all := entries(35)
			w.server.Add(all...)
			w.server.Before = func(n int) {
				if n > 1 && n < 30 {
					w.server.Add(reconciletest.Entry{ID: fmt.Sprintf("new_%d_a", n), At: time.Now()}, reconciletest.Entry{ID: fmt.Sprintf("new_%d_b", n), At: time.Now()})
				}
			}
			r := w.mustRun()
			if diff := cmp.Diff(ids(all), slices.DeleteFunc(keys(r.Events), func(key string) bool { return strings.HasPrefix(key, "new") })); diff != "" {
				t.Error(diff)
			}
			if r.Missing != 35 {
				t.Errorf("what is new is missing: %+v", r)
			}
		})
	}
	for _, kind := range []spec.PageKind{spec.PageNumber, spec.PageOffset} {
		for _, sort := range []spec.Sort{spec.Newest, spec.Oldest} {
			bubble(t, fmt.Sprintf("%s/%s/entries vanish at the head", kind, sort), func(t *testing.T) {
				w := newWorld(t, &reconciletest.Server{Kind: kind, Sort: sort})
				all := entries(35)
				w.server.Add(all...)
				head := all[:3]
				if sort == spec.Newest {
					head = all[32:]
				}
				w.server.Before = func(n int) {
					if n == 3 {
						w.server.Remove(ids(head)...)
					}
				}
				if diff := cmp.Diff(ids(all), keys(w.mustRun().Events)); diff != "" {
					t.Error(diff)
				}
			})
			bubble(t, fmt.Sprintf("%s/%s/equal times in another order each time", kind, sort), func(t *testing.T) {
				w := newWorld(t, &reconciletest.Server{Kind: kind, Sort: sort, Unstable: true})
				all := entries(35)
				for i := range all { // groups of five across the borders of pages
					all[i].At = all[max(i-(i+2)%5, 0)].At
				}
				w.server.Add(all...)
				if diff := cmp.Diff(ids(all), keys(w.mustRun().Events)); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// TestLooksAgain: a pass in which an entry came twice may have missed another, even if it brought nothing new.
func TestLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pages := [][]string{{"a", "b"}, {"b"}, {"a", "b"}, {"a"}, {"a", "c"}, {"b"}, {"a", "b"}, {"c"}}
		n := 0
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageNumber, Size: 2, Intercept: func(w http.ResponseWriter, _ *http.Request) bool {
			var page []string
			for _, id := range pages[n] {
				page = append(page, fmt.Sprintf(`{"id": %q, "at": "1999-12-31T12:00:00Z", "event": {"id": %q}}`, id, id))
			}
			n++
			_, _ = fmt.Fprintf(w, `{"data": [%s]}`, strings.Join(page, ", "))
			return true
		}})
		if diff := cmp.Diff([]string{"a", "b", "c"}, keys(w.mustRun().Events)); diff != "" || n != len(pages) {
			t.Errorf("%s after %d pages", diff, n)
		}
	})
}

// TestDeliveredMeanwhile: what comes between the two looks is not missing.
func TestDeliveredMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor})
		w.server.Add(entries(25)...)
		w.ledger.before = func(asked int) error {
			if asked == 3 { // after the last look at a page, before the second look
				w.ledger.put("evt_003", "evt_024")
			}
			return nil
		}
		r := w.mustRun()
		if r.Missing != 23 || r.Known != 2 || r.Late != 1 || slices.Contains(keys(r.Events), "evt_024") {
			t.Errorf("%+v", r)
		}
		if w.ledger.asked != 4 {
			t.Errorf("%d queries for three pages and a second look", w.ledger.asked)
		}
	})
}

// TestYoung: an event may be under way for a while.
func TestYoung(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		now := time.Now()
		w.server.Add(reconciletest.Entry{ID: "young", At: now.Add(-9 * time.Minute)}, reconciletest.Entry{ID: "old", At: now.Add(-11 * time.Minute)})
		r := w.mustRun()
		if r.Young != 1 || !slices.Equal(keys(r.Events), []string{"old"}) || !r.Settled.Equal(now.Add(-10*time.Minute)) {
			t.Errorf("%+v", r)
		}
		w.opts.Lag = -1
		if r := w.mustRun(); r.Young != 0 || r.Missing != 2 || !r.Settled.Equal(now) {
			t.Errorf("without a lag: %+v", r)
		}
	})
}

// TestTypes leaves alone what the webhook is not subscribed to.
func TestTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		all := entries(4)
		all[0].Type, all[1].Type, all[2].Type, all[3].Type = "order.paid", "order.made", "shop.made", "shop.paid"
		w.server.Add(all...)
		w.opts.Types = []string{"order.*", "shop.paid"}
		r := w.mustRun()
		if r.Other != 1 || !slices.Equal(keys(r.Events), []string{"evt_000", "evt_001", "evt_003"}) {
			t.Errorf("%+v", r)
		}
	})
}

// TestUnknownTypes: of an event whose type the list does not say nobody knows that it is not wanted.
func TestUnknownTypes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: listOf(`{"data": [{"id": "d1", "at": "AT", "event": {"id": "evt_typeless"}}]}`)})
		w.opts.Types = []string{"order.*"}
		if r := w.mustRun(); r.Other != 0 || !slices.Equal(keys(r.Events), []string{"evt_typeless"}) {
			t.Errorf("%+v", r)
		}
	})
}

// TestDeliveries: several entries about one event are one event, which the newest stands for.
func TestDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, sort := range []spec.Sort{spec.Newest, spec.Oldest} {
			w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Size: 2, Sort: sort})
			at := time.Now().Add(-time.Hour)
			w.server.Add(
				reconciletest.Entry{ID: "d1", Key: "a", At: at, Delivered: true},
				reconciletest.Entry{ID: "d2", Key: "b", At: at.Add(time.Minute)},
				reconciletest.Entry{ID: "d3", Key: "b", At: at.Add(2 * time.Minute)},
				reconciletest.Entry{ID: "d4", Key: "a", At: at.Add(3 * time.Minute)},
				reconciletest.Entry{ID: "d5", Key: "b", At: at.Add(4 * time.Minute)},
			)
			w.server.Add(reconciletest.Entry{ID: "d0", Key: "c", At: at.Add(-time.Minute)}, reconciletest.Entry{ID: "d6", Key: "c", At: at.Add(time.Hour / 2)})
			w.ledger.put("c")
			w.opts.Redeliver = true
			r := w.mustRun()
			if r.Listed != 3 || r.Known != 1 || len(r.Events) != 2 {
				t.Fatalf("%+v", r)
			}
			got := map[string]reconcile.Missing{r.Events[0].Key: r.Events[0], r.Events[1].Key: r.Events[1]}
			if a, b := got["a"], got["b"]; a.Entry != "d4" || a.Delivery != reconcile.Delivered || b.Entry != "d5" || b.Delivery != reconcile.Undelivered {
				t.Errorf("%+v", r.Events)
			}
			if !slices.Equal(w.server.Resent(), []string{"d4", "d5"}) {
				t.Errorf("sent again: %q", w.server.Resent())
			}
		}
	})
}

// TestRefused says why what is missing was refused.
func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		w.server.Add(entries(2)...)
		w.opts.Refused = func(_ context.Context, keys []string) (map[string]string, error) {
			if len(keys) != 2 {
				t.Errorf("%q", keys)
			}
			return map[string]string{"evt_001": "signature_mismatch"}, nil
		}
		r := w.mustRun()
		if r.Missing != 2 || r.Refused != 1 || r.Events[1].Refused != "signature_mismatch" || r.Events[0].Refused != "" {
			t.Errorf("%+v", r)
		}
	})
}

// TestUnkeyed reports what has no key apart, and never as missing.
func TestUnkeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{}, func(s *spec.Spec) {
			s.Reconcile.List.Event.Body = "$.event.none"
		})
		all := entries(3)
		all[1].Delivered, all[2].At = true, time.Now()
		w.server.Add(all...)
		w.opts.Redeliver = true
		r := w.mustRun()
		if r.Unkeyed != 3 || r.Missing != 0 || len(r.Undelivered) != 1 || r.Undelivered[0].Entry != "evt_000" || r.Undelivered[0].Outcome != reconcile.Redelivered {
			t.Errorf("%+v", r)
		}
		if !slices.Equal(w.server.Resent(), []string{"evt_000"}) {
			t.Errorf("what was delivered, or may be under way, was sent again: %q", w.server.Resent())
		}
	})
}

// TestUndated: what says no time, in a list that has times, may be from before the range, and so may be what only its own time says to
// be older: an object's last change, for instance, after which it was sent. It is held where something is asked before anything is
// done, and no more than counted where nobody looks. A list without times is kept to the range by its sender alone.
func TestUndated(t *testing.T) {
	asked := func(o *reconcile.Options) {
		o.Hold = func(context.Context, []reconcile.Missing) (map[string]string, error) { return nil, nil }
	}
	alone := func(o *reconcile.Options) { asked(o); o.OnlyDated = true }
	timeless := func(s *spec.Spec) { s.Reconcile.List.Time, s.Event.Time = nil, nil }
	for name, c := range map[string]struct {
		opts   func(*reconcile.Options)
		spec   func(*spec.Spec)
		resent []string
		counts string // held, undated
	}{
		"nobody is asked":   {func(*reconcile.Options) {}, nil, []string{"none", "old", "new", "unkeyed-none", "unkeyed"}, "0 0"},
		"somebody is asked": {asked, nil, []string{"new", "unkeyed"}, "3 0"},
		"nobody looks":      {alone, nil, []string{"new", "unkeyed"}, "0 3"},
		"only a range":      {alone, timeless, []string{"new", "none", "old", "unkeyed", "unkeyed-none"}, "0 0"},
		"a range, and times of their own": {alone, func(s *spec.Spec) { s.Reconcile.List.Time = nil },
			[]string{"new", "none", "unkeyed", "unkeyed-none"}, "0 0"},
		"no range, no times": {alone, func(s *spec.Spec) { timeless(s); s.Reconcile.List.Path = "/events" }, nil, "0 5"},
	} {
		bubble(t, name, func(t *testing.T) {
			page := fmt.Sprintf(`{"data": [{"id": "unkeyed", "at": "AT", "event": {}}, {"id": "unkeyed-none", "event": {}}, {"id": "old", "event": {"id": "old", "made": %q}},
				{"id": "none", "event": {"id": "none"}}, {"id": "new", "event": {"id": "new", "made": "AT"}}]}`, time.Now().Add(-72*time.Hour).Format(time.RFC3339))
			w := newWorld(t, &reconciletest.Server{Intercept: listOf(page)}, func(s *spec.Spec) {
				s.Event.Time = []spec.Moment{{In: "json:$.made", Unit: spec.RFC3339}}
				if c.spec != nil {
					c.spec(s)
				}
			})
			w.opts.Redeliver = true
			c.opts(&w.opts)
			r := w.mustRun()
			got := w.server.Resent()
			if strings.Contains(name, "a range") { // nothing tells their order
				slices.Sort(got)
			}
			if diff := cmp.Diff(c.resent, got); diff != "" || fmt.Sprint(r.Held, r.Undated) != c.counts {
				t.Errorf("%s %+v", diff, r)
			}
		})
	}
}

// TestWindow: what lies before the sender's window is told, and not asked for.
func TestWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{}, func(s *spec.Spec) { s.Reconcile.Window = 24 * time.Hour })
		r := w.mustRun()
		if !r.Cut || r.Window != 24*time.Hour || !r.Since.Equal(time.Now().Add(-24*time.Hour)) {
			t.Errorf("%+v", r)
		}
		w.opts.Since = r.Since
		if r := w.mustRun(); r.Cut {
			t.Error("the window itself counts as before it")
		}
		w.opts.Since, w.opts.Until = r.Since.Add(-2*time.Hour), r.Since.Add(-time.Hour)
		if r, err := w.run(); r != nil || err == nil || !strings.Contains(err.Error(), "does not go back further") {
			t.Errorf("a range that ends before the window: %+v, %v", r, err)
		}
	})
}

// TestInterrupted returns what was done until then, and the next run does the rest.
func TestInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor})
		w.server.Add(entries(30)...)
		ctx, cancel := context.WithCancel(t.Context())
		stored := 0
		w.opts.Ingest = func(c context.Context, event hookonce.Event) (bool, error) {
			if stored++; stored == 7 {
				cancel()
			}
			return w.ledger.ingest(c, event)
		}
		r, err := reconcile.Run(ctx, w.opts)
		if w.check(r, err); !errors.Is(err, context.Canceled) || r.Stored != 7 || r.Missing != 30 || !r.Settled.Equal(r.Since) {
			t.Fatalf("%v, %+v", err, r)
		}
		if r := w.mustRun(); r.Stored != 23 || r.Known != 7 {
			t.Errorf("%+v", r)
		}
		if r := w.mustRun(); r.Stored != 0 || r.Known != 30 || r.Missing != 0 {
			t.Errorf("a third run: %+v", r)
		}
	})
}

// TestInterruptedWhileReading ends at once, also where the pace of the sender is waited for.
func TestInterruptedWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor}, func(s *spec.Spec) { s.Reconcile.Rate = spec.Rate{Requests: 1, Per: time.Hour} })
		w.server.Add(entries(30)...)
		ctx, cancel := context.WithTimeout(t.Context(), 90*time.Minute)
		defer cancel()
		began := time.Now()
		r, err := reconcile.Run(ctx, w.opts)
		if w.check(r, err); !errors.Is(err, context.DeadlineExceeded) || r.Pages != 2 || time.Since(began) != 90*time.Minute {
			t.Errorf("%v after %v, %+v", err, time.Since(began), r)
		}
	})
}

// TestLedgerAway: without an answer nothing is missing.
func TestLedgerAway(t *testing.T) {
	for at := 1; at <= 4; at++ {
		bubble(t, fmt.Sprint(at), func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor})
			w.server.Add(entries(25)...)
			away := errors.New("the store is away")
			w.ledger.before = func(asked int) error {
				if asked >= at {
					return away
				}
				return nil
			}
			r, err := w.run()
			if !errors.Is(err, away) || r.Missing != 0 || !r.Settled.Equal(r.Since) {
				t.Errorf("%v, %+v", err, r)
			}
		})
	}
}

// TestManyMissing counts more than it keeps in memory, and lists the first of them.
func TestManyMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Size: 5000, Sort: spec.Oldest})
		const n = 25_000
		all := make([]reconciletest.Entry, n)
		for i := range all {
			all[i] = reconciletest.Entry{ID: fmt.Sprintf("evt_%05d", i), At: time.Now().Add(-time.Hour)}
		}
		w.server.Add(all...)
		asked := 0
		w.server.Before = func(page int) {
			if page == 5 {
				asked = w.ledger.asked
			}
		}
		r := w.mustRun()
		if r.Missing != n || len(r.Events) != reconcile.MaxMissing {
			t.Errorf("%d missing, %d listed", r.Missing, len(r.Events))
		}
		if asked != 2*20_000/reconcile.MaxKeys {
			t.Errorf("when 20 000 were read the ledger was asked %d times, and looks twice at each before more wait", asked)
		}
	})
}

// TestLargeBodies are not all kept until the list ends: what waits is looked at again when 64 MiB do.
func TestLargeBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const pages, size = 6, 16 << 20
		pad, n, asked := strings.Repeat("x", size), 0, 0
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor})
		w.server.Intercept = func(rw http.ResponseWriter, _ *http.Request) bool {
			if n++; n == 5 {
				asked = w.ledger.asked
			}
			next := ""
			if n < pages {
				next = fmt.Sprint("page_", n)
			}
			_, _ = fmt.Fprintf(rw, `{"next": %q, "data": [{"id": "%d", "event": {"id": "evt_%[2]d", "pad": %q}}]}`, next, n, pad)
			return true
		}
		w.opts.Ingest = func(context.Context, hookonce.Event) (bool, error) { return true, nil }
		if r := w.mustRun(); r.Stored != pages || asked != 5 {
			t.Errorf("when four were read the ledger was asked %d times, want 5: %+v", asked, r)
		}
	})
}

// TestReportsAreBounded counts all, and lists the first of them.
func TestReportsAreBounded(t *testing.T) {
	const n = reconcile.MaxMissing + 100
	many := func(t *testing.T, change ...func(*spec.Spec)) *world {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor, Size: 5000}, change...)
		w.ledger.known = map[string]reconcile.Known{}
		for i := range n {
			id := fmt.Sprintf("evt_%05d", i)
			w.server.Add(reconciletest.Entry{ID: id, At: time.Now().Add(-time.Hour)})
			w.ledger.known[id] = reconcile.Known{Status: "failed", Unfinished: true}
		}
		return w
	}
	bubble(t, "unfinished", func(t *testing.T) {
		if r := many(t).mustRun(); r.NotDone != n || len(r.Unfinished) != reconcile.MaxMissing {
			t.Errorf("%d are not done, %d listed", r.NotDone, len(r.Unfinished))
		}
	})
	bubble(t, "undelivered", func(t *testing.T) {
		r := many(t, func(s *spec.Spec) { s.Reconcile.List.Event.Body = "$.event.none" }).mustRun()
		if r.Unkeyed != n || len(r.Undelivered) != reconcile.MaxMissing {
			t.Errorf("%d have no key, %d listed", r.Unkeyed, len(r.Undelivered))
		}
	})
}

// TestOptions refuses what makes no run, before anything is asked.
func TestOptions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for want, change := range map[string]func(*reconcile.Options){
			"needs source, provider, ledger and since": func(o *reconcile.Options) { o.Since = time.Time{} },
			"until is before since":                    func(o *reconcile.Options) { o.Until = o.Since.Add(-time.Second) },
			"exclude each other": func(o *reconcile.Options) {
				o.Redeliver, o.Ingest = true, func(context.Context, hookonce.Event) (bool, error) { return true, nil }
			},
			"token: is missing; it is an API key of acme": func(o *reconcile.Options) { o.Token = "" },
			"token: has a space":                          func(o *reconcile.Options) { o.Token = "secret-with-end\n" },
			"token: has 20000 bytes":                      func(o *reconcile.Options) { o.Token = strings.Repeat("x", 20000) },
			"owner: there is no such setting":             func(o *reconcile.Options) { o.With = map[string]string{"owner": "x"} },
			`server: there is no "https://evil.example"`:  func(o *reconcile.Options) { o.With = map[string]string{"server": "https://evil.example"} },
		} {
			w := newWorld(t, &reconciletest.Server{})
			change(&w.opts)
			r, err := w.run()
			if r != nil || err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret-with-end") {
				t.Errorf("%s: %v, %v", want, r, err)
			}
			if len(w.server.Requests()) > 0 {
				t.Errorf("%s: the sender was asked", want)
			}
		}
	})
}

// TestNotListed: a sender without a list cannot be asked.
func TestNotListed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{}, func(s *spec.Spec) { s.Reconcile = nil })
		if _, err := w.run(); !errors.Is(err, spec.ErrNotListed) {
			t.Error(err)
		}
	})
}

// TestProgress tells after each page and action.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor})
		w.server.Add(entries(20)...)
		w.opts.Redeliver = true
		var told []reconcile.Progress
		w.opts.Progress = func(p reconcile.Progress) { told = append(told, p) }
		w.mustRun()
		last := told[len(told)-1]
		if len(told) != 22 || told[0].Pages != 1 || told[0].Listed != 10 || told[0].Missing != 10 || last.Done != 20 || last.Todo != 20 || last.Missing != 20 {
			t.Errorf("%d: %+v ... %+v", len(told), told[0], last)
		}
	})
}
