package ingest_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// fromList is an event as the provider's list has it.
func fromList(source, key string) *hookonce.Event {
	return &hookonce.Event{
		Source: source, Provider: "test", Key: key, KeySigned: true, Type: "invoice.paid", Digest: []byte("of the list"), Scope: "acct_1",
		Rank: hookonce.Version(7), Body: []byte(`{"listed":true}`), Header: http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer fake"}},
	}
}

// An event from a list is delivered as a webhook's would be, and the webhook that comes late is a duplicate and no conflict.
func TestIngest(t *testing.T) {
	g := newGate(t, nil)
	res, err := g.Ingest(t.Context(), fromList("billing", "a"))
	if err != nil || res.Status != journal.Accepted {
		t.Fatalf("Ingest = %+v, %v", res, err)
	}
	w := g.receive(t)
	lines := string(w.Header)
	if w.EventID != res.ID || w.Destination != "app" || w.Origin != journal.OriginReconciled || w.Vouched != 0 || string(w.Body) != `{"listed":true}` ||
		!strings.Contains(lines, "Content-Type: application/json") || !strings.Contains(lines, "Hookonce-Key-Signed: false") ||
		strings.Contains(lines, "Hookonce-Digest") || strings.Contains(lines, "Bearer") {
		t.Errorf("the work is %+v with %q", w, lines)
	}
	for _, want := range []string{"duplicate", "duplicate"} {
		wantAnswer(t, g.send("billing", `{"id":"a"}`), 200, want, `{"status":"`+want+`","key":"a"}`+"\n")
	}
	wantAnswer(t, g.send("billing", `{"id":"a","type":"other"}`), 200, "conflict", `{"status":"conflict","key":"a"}`+"\n")
	wantAnswer(t, g.send("billing", `{"id":"b"}`), 200, "accepted", `{"status":"accepted","key":"b"}`+"\n")
	for key, want := range map[string]journal.Status{"a": journal.Duplicate, "b": journal.Duplicate, "c": journal.Accepted} {
		if res, err := g.Ingest(t.Context(), fromList("billing", key)); err != nil || res.Status != want {
			t.Errorf("%s: %+v, %v, want %s", key, res, err, want)
		}
	}
}

// What could not be recognised when its webhook comes is not stored, and a failure is one that can be tried again.
func TestIngest_refuses(t *testing.T) {
	g := newGate(t, nil)
	unkeyed, changed, large := fromList("billing", ""), fromList("billing", "a"), fromList("billing", "a")
	changed.Coalesce = true
	large.Header = http.Header{"X-Large": {strings.Repeat("x", 1<<20)}, "Content-Type": {strings.Repeat("x", 64<<10)}}
	for name, c := range map[string]struct {
		ev   *hookonce.Event
		want error
	}{
		"no key": {unkeyed, hookonce.ErrInvalidRef}, "what coalesces": {changed, hookonce.ErrInvalidRef}, "headers": {large, hookonce.ErrInvalidRef},
		"no source": {fromList("nobody", "a"), ingest.ErrNoSource},
	} {
		if res, err := g.Ingest(t.Context(), c.ev); !errors.Is(err, c.want) {
			t.Errorf("%s: %+v, %v", name, res, err)
		}
	}
	g.faulty.Fail(journaltest.OpAccept, 1, journaltest.Persisted)
	if res, err := g.Ingest(t.Context(), fromList("billing", "a")); !errors.Is(err, journal.ErrUnavailable) {
		t.Errorf("the store fails: %+v, %v", res, err)
	}
	if res, err := g.Ingest(t.Context(), fromList("billing", "a")); err != nil || res.Status != journal.Duplicate || g.model.Events() != 1 {
		t.Errorf("again: %+v, %v", res, err)
	}
}

// Routes hold for what comes from a list.
func TestLister(t *testing.T) {
	s := sourceTo("billing", testProvider{})
	s.Routes = []ingest.Route{{Types: []string{"invoice.*"}, To: []string{"ledger"}}}
	l, now := ingest.NewLister(s), time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	other := fromList("billing", "b")
	other.Type = "customer.created"
	for _, c := range []struct {
		ev   *hookonce.Event
		want string
	}{{fromList("billing", "a"), "ledger"}, {other, ""}} {
		e, err := l.Event(c.ev, now)
		if err != nil || strings.Join(e.Destinations, " ") != c.want || !e.Listed || len(e.Digest) != 0 || !e.ReceivedAt.Equal(now) || e.Validate() != nil ||
			e.Source != "billing" || e.Resource != "acct_1" || e.Rank.N != 7 {
			t.Errorf("%s: %+v, %v", c.ev.Key, e, err)
		}
	}
}
