package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
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

// TestRedeliver has each missing event sent again, the oldest first, as often as the sender permits, and nothing else.
func TestRedeliver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor})
		w.server.Add(entries(12)...)
		w.ledger.put("evt_002", "evt_007")
		w.opts.Redeliver = true
		r := w.mustRun()
		want := []string{"evt_000", "evt_001", "evt_003", "evt_004", "evt_005", "evt_006", "evt_008", "evt_009", "evt_010", "evt_011"}
		if diff := cmp.Diff(want, w.server.Resent()); diff != "" || r.Redelivered != 10 || r.Failed != 0 {
			t.Errorf("%s %+v", diff, r)
		}
		var at []time.Time
		for _, request := range w.server.Requests() {
			if request.Method == http.MethodPost {
				at = append(at, request.At)
			}
		}
		for i := 1; i < len(at); i++ {
			if d := at[i].Sub(at[i-1]); d != 12*time.Second {
				t.Errorf("request %d came %v after the one before; five a minute are permitted", i+1, d)
			}
		}
		if again := w.mustRun(); again.Redelivered != 10 {
			t.Errorf("what did not come can be sent again in the next run: %+v", again)
		}
	})
}

// resends answers requests to send an event again.
func resends(answer func(w http.ResponseWriter, n int)) func(http.ResponseWriter, *http.Request) bool {
	n := 0
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost {
			return false
		}
		n++
		answer(w, n)
		return true
	}
}

// TestRedeliverFails tells by reason what was not sent again, and goes on with the others.
func TestRedeliverFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: resends(func(w http.ResponseWriter, n int) {
			w.WriteHeader([]int{202, 422, 422, 500, 202}[n-1])
		})})
		w.server.Add(entries(5)...)
		w.opts.Redeliver = true
		r := w.mustRun()
		want := map[string]int{
			"having an event sent again: the API answered 422": 2,
			"having an event sent again: the API answered 500": 1,
		}
		if diff := cmp.Diff(want, r.Failures); diff != "" || r.Redelivered != 2 || r.Failed != 3 || r.Events[1].Outcome != reconcile.Failed || r.Events[1].Why == "" {
			t.Errorf("%s %+v", diff, r)
		}
	})
}

// TestRedeliverSuccess: what the sender answers where it does not send the event again is no success.
func TestRedeliverSuccess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: resends(func(w http.ResponseWriter, n int) {
			w.WriteHeader([]int{200, 202}[n-1])
		})}, func(s *spec.Spec) { s.Reconcile.Redeliver.Success = []int{202} })
		w.server.Add(entries(2)...)
		w.opts.Redeliver = true
		r := w.mustRun()
		if r.Redelivered != 1 || r.Failures["having an event sent again: the API answered 200: success is [202] here"] != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// TestRedeliverLimited waits where the sender asks for it.
func TestRedeliverLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: resends(func(w http.ResponseWriter, n int) {
			w.Header().Set("Retry-After", "300")
			w.WriteHeader([]int{429, 202}[n-1])
		})})
		w.server.Add(entries(1)...)
		w.opts.Redeliver = true
		began := time.Now()
		if r := w.mustRun(); r.Redelivered != 1 || time.Since(began) < 5*time.Minute {
			t.Errorf("%v, %+v", time.Since(began), r)
		}
	})
}

// TestRedeliverWithoutRight ends with the first: all others would fail as well.
func TestRedeliverWithoutRight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: resends(func(w http.ResponseWriter, n int) { w.WriteHeader(403) })})
		w.server.Add(entries(1500)...)
		w.opts.Redeliver = true
		r, err := w.run()
		if !errors.Is(err, reconcile.ErrRights) || !strings.Contains(err.Error(), "it needs events: write") || r.Missing != 1500 || r.Failed != 1 {
			t.Errorf("%v, %+v", err, r)
		}
	})
}

// A sender that says to come again later than a run waits is asked for nothing more: what went on would be asked too often as well.
func TestRedeliverTooOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := newWorld(t, &reconciletest.Server{Intercept: resends(func(w http.ResponseWriter, n int) {
			asked++
			w.Header().Set("Retry-After", "7200")
			w.WriteHeader(429)
		})})
		w.server.Add(entries(1500)...)
		w.opts.Redeliver = true
		r, err := w.run()
		if answer, _ := errors.AsType[*reconcile.AnswerError](err); answer == nil || answer.After != 2*time.Hour || r.Missing != 1500 || r.Failed != 1 || asked != 1 {
			t.Errorf("%v, %d missing and %d failed, asked %d times", err, r.Missing, r.Failed, asked)
		}
	})
}

// TestAskedBeforeCounts: what was asked for before counts as such, whatever stops a run, so that nothing is counted off.
func TestAskedBeforeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: resends(func(w http.ResponseWriter, n int) {
			w.Header().Set("Retry-After", "7200")
			w.WriteHeader(429)
		})}, func(s *spec.Spec) { s.Reconcile.List.Event.Body = "$.event.none" })
		w.server.Add(entries(3)...)
		w.opts.Redeliver = true
		w.opts.Asked = func(m reconcile.Missing) bool { return m.Entry != "evt_000" }
		r, err := w.run()
		if answer, _ := errors.AsType[*reconcile.AnswerError](err); answer == nil {
			t.Fatalf("the run ended with %v", err)
		}
		outcomes := map[reconcile.Outcome]int{}
		for _, m := range r.Undelivered {
			outcomes[m.Outcome]++
		}
		if outcomes[reconcile.Redelivered] != 2 || r.Redelivered != 2 || outcomes[reconcile.Failed] != r.Failed {
			t.Errorf("counted are %d redelivered and %d failed, named %v", r.Redelivered, r.Failed, outcomes)
		}
	})
}

// TestRedeliverOnce: a request of which nobody knows whether it was carried out is not repeated.
func TestRedeliverOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		w.server.Add(entries(2)...)
		w.opts.Redeliver = true
		w.opts.Transport = failing{w.server, func(r *http.Request) error {
			if strings.Contains(r.URL.Path, "evt_000") {
				return io.ErrUnexpectedEOF
			}
			return nil
		}}
		r := w.mustRun()
		if !slices.Equal(w.server.Resent(), []string{"evt_000", "evt_001"}) || r.Failed != 1 || r.Redelivered != 1 {
			t.Errorf("%q %+v", w.server.Resent(), r)
		}
	})
}

// batch makes each entry a webhook with two events.
func batch(s *spec.Spec) {
	s.Split = &spec.Split{Items: []spec.Value{"json:$.events[*]"}}
	s.Event = spec.Extract{Key: [][]spec.Value{{"item:$.id"}}, Type: []spec.Value{"item:$.type"}}
	s.Reconcile.List.Event = &spec.Recorded{Body: "$.body", Headers: "$.headers"}
}

// listOf answers with one page.
func listOf(page string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/events" {
			return false
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(page, "AT", time.Now().Add(-time.Hour).Format(time.RFC3339)))
		return true
	}
}

const batchPage = `{"data": [{"id": "wh_1", "at": "AT", "ok": false,
	"headers": {"Content-Type": "application/json", "X-Acme-Signature": ["00ff"], "Bad Name": "x", "X-Bad": "a\nb"},
	"body": "{\"events\": [{\"id\": \"a\", \"type\": \"paid\"}, {\"id\": \"b\", \"type\": \"paid\"}], \"meta\": 1}"}]}`

// TestBatch: an entry with several missing events is sent again once.
func TestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: listOf(batchPage)}, batch)
		w.opts.Redeliver = true
		r := w.mustRun()
		if !slices.Equal(w.server.Resent(), []string{"wh_1"}) || r.Listed != 2 || r.Redelivered != 2 {
			t.Errorf("%q %+v", w.server.Resent(), r)
		}
	})
}

// TestBatchFails: an entry that is not sent again is not asked for a second time.
func TestBatchFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		list := listOf(batchPage)
		w := newWorld(t, &reconciletest.Server{Intercept: func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPost {
				asked++
				w.WriteHeader(422)
				return true
			}
			return list(w, r)
		}}, batch)
		w.opts.Redeliver = true
		if r := w.mustRun(); asked != 1 || r.Failed != 2 {
			t.Errorf("%d requests, %+v", asked, r)
		}
	})
}

// TestReasons tells a bounded number of reasons apart.
func TestReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Size: 200, Kind: spec.PageCursor})
		w.server.Add(entries(200)...)
		w.opts.Ingest = func(_ context.Context, event hookonce.Event) (bool, error) {
			return false, errors.New("no room for " + event.Key)
		}
		if r := w.mustRun(); r.Failed != 200 || len(r.Failures) != 51 || r.Failures["other reasons"] != 150 {
			t.Errorf("%d reasons, %d others", len(r.Failures), r.Failures["other reasons"])
		}
	})
}

// TestIngestBatch stores each event with its own body, and the headers of the webhook.
func TestIngestBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Intercept: listOf(batchPage)}, batch)
		w.ledger.put("b")
		var got []hookonce.Event
		w.opts.Ingest = func(_ context.Context, event hookonce.Event) (bool, error) {
			got = append(got, event)
			return true, nil
		}
		r := w.mustRun()
		if r.Stored != 1 || len(got) != 1 || got[0].Key != "a" || string(got[0].Body) != `{"events": [{"id": "a", "type": "paid"}], "meta": 1}` {
			t.Fatalf("%+v %+v", r, got)
		}
		if diff := cmp.Diff(http.Header{"Content-Type": {"application/json"}, "X-Acme-Signature": {"00ff"}}, got[0].Header); diff != "" {
			t.Error(diff)
		}
	})
}

// TestIngestWholeEntry: an event has several entries, of which the newest is cut, and is stored as the one that has all of it has it.
func TestIngestWholeEntry(t *testing.T) {
	for name, page := range map[string]string{
		"the older one is whole": `{"data": [{"id": "d2", "at": "AT", "cut": true, "event": {"id": "a"}}, {"id": "d1", "at": "AT", "event": {"id": "a", "order": "7"}}]}`,
		"the newer one is whole": `{"data": [{"id": "d2", "at": "AT", "event": {"id": "a", "order": "7"}}, {"id": "d1", "at": "AT", "cut": true, "event": {"id": "a"}}]}`,
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Intercept: listOf(page)}, func(s *spec.Spec) {
				s.Reconcile.List.Event.Cut = &spec.Condition{In: "$.cut", Is: []string{"true"}}
			})
			var got []string
			w.opts.Ingest = func(_ context.Context, event hookonce.Event) (bool, error) {
				got = append(got, string(event.Body))
				return true, nil
			}
			if r := w.mustRun(); r.Stored != 1 || !slices.Equal(got, []string{`{"id": "a", "order": "7"}`}) {
				t.Errorf("%q, %+v", got, r)
			}
		})
	}
}

// TestIngest hands over what the provider's own rules find in the body: the same as in a webhook, but without a digest.
func TestIngest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{Kind: spec.PageCursor})
		all := entries(12)
		w.server.Add(all...)
		var got []hookonce.Event
		w.opts.Ingest = func(ctx context.Context, event hookonce.Event) (bool, error) {
			got = append(got, event)
			if event.Key == "evt_005" {
				w.ledger.put("evt_005") // it comes at this moment
			}
			return w.ledger.ingest(ctx, event)
		}
		r := w.mustRun()
		if r.Stored != 11 || r.Arrived != 1 || r.Events[5].Outcome != reconcile.Arrived || len(got) != 12 {
			t.Fatalf("%+v", r)
		}
		want := hookonce.Event{
			Source: "billing", Provider: "acme", Key: "evt_003", KeyOrigin: "json:$.id", Type: "order.paid", Resource: "o-evt_003", Tenant: "shop-1",
			Scope: "6:shop-19:o-evt_003", Body: all[3].Body(), Header: http.Header{"Content-Type": {"application/json"}},
		}
		if diff := cmp.Diff(want, got[3]); diff != "" {
			t.Error(diff)
		}
	})
}

// What belongs to another cell is neither stored, nor on record, nor failed.
func TestIngestElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		w.server.Add(entries(3)...)
		w.opts.Ingest = func(ctx context.Context, event hookonce.Event) (bool, error) {
			if event.Key == "evt_001" {
				return false, fmt.Errorf("%w: us", reconcile.ErrElsewhere)
			}
			return w.ledger.ingest(ctx, event)
		}
		r := w.mustRun()
		if r.Stored != 2 || r.Elsewhere != 1 || r.Arrived+r.Failed != 0 || r.Events[1].Outcome != reconcile.Elsewhere || !strings.HasSuffix(r.Events[1].Why, "us") {
			t.Errorf("%+v", r)
		}
	})
}

// Nothing is done about what is held, whatever was asked for, and the rest is recovered.
func TestHeld(t *testing.T) {
	for _, redeliver := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{})
			w.server.Add(entries(3)...)
			if w.opts.Redeliver = redeliver; !redeliver {
				w.opts.Ingest = w.ledger.ingest
			}
			w.opts.Hold = func(context.Context, []reconcile.Missing) (map[string]string, error) {
				return map[string]string{"evt_001": "on record under another name"}, nil
			}
			r := w.mustRun()
			if r.Missing != 3 || r.Held != 1 || r.Stored+r.Redelivered != 2 || r.Events[1].Outcome != reconcile.Held || r.Events[1].Why != "on record under another name" {
				t.Errorf("%+v", r)
			}
			if n := len(w.server.Resent()); redeliver && n != 2 {
				t.Errorf("%d were asked for again", n)
			}
		})
	}
}

// TestHoldUnanswered: where nobody can say what has to be held nothing is done, and the run has failed.
func TestHoldUnanswered(t *testing.T) {
	for _, redeliver := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{})
			w.server.Add(entries(1500)...)
			if w.opts.Redeliver = redeliver; !redeliver {
				w.opts.Ingest = w.ledger.ingest
			}
			away, asked := errors.New("the other names cannot be asked for"), 0
			w.opts.Hold = func(context.Context, []reconcile.Missing) (map[string]string, error) {
				asked++
				return nil, away
			}
			r, err := w.run()
			if !errors.Is(err, away) || asked != 1 || r.Missing != 1500 || !r.Settled.Equal(r.Since) {
				t.Errorf("%v, asked %d times, %+v", err, asked, r)
			}
			if len(w.server.Resent()) > 0 || len(w.ledger.known) > 0 {
				t.Errorf("%d were sent again, and %d stored", len(w.server.Resent()), len(w.ledger.known))
			}
		})
	}
}

// TestIngestFails goes on with the others.
func TestIngestFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		w.server.Add(entries(3)...)
		w.opts.Ingest = func(ctx context.Context, event hookonce.Event) (bool, error) {
			if event.Key == "evt_001" {
				return false, errors.New("the store is full")
			}
			return w.ledger.ingest(ctx, event)
		}
		r := w.mustRun()
		if r.Stored != 2 || r.Failed != 1 || r.Failures["storing it: the store is full"] != 1 {
			t.Errorf("%+v", r)
		}
	})
}

// detailed has the event in the details of an entry alone.
func detailed(s *spec.Spec) {
	s.Event.Key = [][]spec.Value{{"header:X-Acme-Id"}}
	s.Reconcile.List.Event = &spec.Recorded{Header: map[string]spec.Path{"X-Acme-Id": "$.id"}}
	s.Reconcile.Detail = &spec.Detail{Path: "/entries/{id}?full=1", Event: spec.Recorded{
		Body: "$.request.body", Headers: "$.request.headers", Cut: &spec.Condition{In: "$.request.cut", Is: []string{"true"}},
	}}
}

// TestDetail asks for the details of what is missing, and of nothing else.
func TestDetail(t *testing.T) {
	for name, c := range map[string]struct{ answer, why, body string }{
		"whole":         {answer: `{"request": {"headers": {"x-acme-id": "KEY"}, "body": {"type": "order.paid"}}}`, body: `{"type": "order.paid"}`},
		"a text":        {answer: `{"request": {"headers": {"x-acme-id": "KEY"}, "body": "{\"type\":\"order.paid\"}"}}`, body: `{"type":"order.paid"}`},
		"cut":           {answer: `{"request": {"headers": {"x-acme-id": "KEY"}, "body": {}, "cut": true}}`, why: "the sender has not recorded the whole body"},
		"without one":   {answer: `{"request": {"headers": {"x-acme-id": "KEY"}}}`, why: "the sender has not recorded the whole body"},
		"another event": {answer: `{"request": {"headers": {"x-acme-id": "other"}, "body": {}}}`, why: "the list cannot be right: the details of an entry are those of another event"},
		"no JSON":       {answer: `<html>`, why: "the list cannot be right: the answer is no JSON"},
	} {
		bubble(t, name, func(t *testing.T) {
			w := newWorld(t, &reconciletest.Server{Intercept: func(w http.ResponseWriter, r *http.Request) bool {
				key, is := strings.CutPrefix(r.URL.Path, "/entries/")
				if is {
					_, _ = io.WriteString(w, strings.ReplaceAll(c.answer, "KEY", key))
				}
				return is
			}}, detailed)
			w.server.Add(entries(3)...)
			w.ledger.put("evt_000", "evt_002")
			var got []hookonce.Event
			w.opts.Ingest = func(_ context.Context, event hookonce.Event) (bool, error) {
				got = append(got, event)
				return true, nil
			}
			r := w.mustRun()
			if c.why != "" {
				if r.Failures[c.why] != 1 || len(got) != 0 {
					t.Errorf("%+v", r)
				}
				return
			}
			if r.Stored != 1 || len(got) != 1 || got[0].Key != "evt_001" || string(got[0].Body) != c.body || got[0].Type != "order.paid" || got[0].Digest != nil {
				t.Errorf("%+v %+v", r, got)
			}
			if n := len(w.server.Requests()); n != 2 {
				t.Errorf("%d requests", n)
			}
		})
	}
}

// TestCannotAct says so before anything is asked.
func TestCannotAct(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{}, func(s *spec.Spec) { s.Reconcile.Redeliver = nil })
		w.opts.Redeliver = true
		if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "acme documents no API that sends an event again") {
			t.Error(err)
		}
		w = newWorld(t, &reconciletest.Server{}, detailed, func(s *spec.Spec) { s.Reconcile.Detail = nil })
		w.opts.Ingest = w.ledger.ingest
		if _, err := w.run(); err == nil || !strings.Contains(err.Error(), "does not have the events themselves") {
			t.Error(err)
		}
	})
}

// TestNotAgain tells which entries the sender does not send again.
func TestNotAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{}, func(s *spec.Spec) {
			s.Reconcile.Redeliver.When = &spec.Condition{In: "$.event.type", Is: []string{"order.*"}}
		})
		all := entries(2)
		all[0].Type = "shop.made"
		w.server.Add(all...)
		w.opts.Redeliver = true
		if r := w.mustRun(); r.Failures["the sender does not send this entry again"] != 1 || !slices.Equal(w.server.Resent(), []string{"evt_001"}) {
			t.Errorf("%+v", r)
		}
	})
}

// TestIDs: an id that the server made up is escaped where it stands in a path, and leads nowhere else.
func TestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &reconciletest.Server{})
		at := time.Now().Add(-time.Hour)
		for i, id := range []string{"..", ".", "a/../../admin", "a?x=1#y", "a\nb", strings.Repeat("x", 600), "a%2e%2e", "é"} {
			w.server.Add(reconciletest.Entry{ID: id, Key: fmt.Sprint("key_", i), At: at.Add(time.Duration(i) * time.Second)})
		}
		w.opts.Redeliver = true
		r := w.mustRun()
		if diff := cmp.Diff([]string{"a/../../admin", "a?x=1#y", "a%2e%2e", "é"}, w.server.Resent()); diff != "" || r.Missing != 8 || r.Failed != 4 {
			t.Errorf("%s %+v", diff, r)
		}
	})
}
