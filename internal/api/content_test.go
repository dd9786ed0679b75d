package api_test

import (
	"cmp"
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

	"github.com/hookonce/hookonce/internal/journal"
)

// customer makes the body of an event name a customer.
func customer(name string) func(*journal.Record) {
	return func(e *journal.Record) { e.Body = []byte(`{"customer":"` + name + `"}`) }
}

// listAll returns the keys of all pages.
func (r *rig) listAll(query string) (all []string) {
	r.Helper()
	for cursor := ""; ; {
		var page []string
		page, cursor = keys(r.get("/api/v1/events?" + query + "&cursor=" + cursor))
		if all = append(all, page...); cursor == "" {
			return all
		}
	}
}

// Events are found by what they are about and by a field of their bodies, in pages of every size, among more events
// than one look reads; those of sources that have no such field, and those without a body, are none of them.
func TestSearch(t *testing.T) {
	r := newRig(t)
	about := func(e *journal.Record) { e.Resource = "9:acct_1xyz6:pi_123" }
	from := func(source string) func(*journal.Record) { return func(e *journal.Record) { e.Source = source } }
	var want []string
	for i := range 700 {
		key := fmt.Sprint("evt_", i)
		switch {
		case i%100 == 7:
			want = append([]string{key}, want...)
			r.accept(key, journal.Pending, customer("cus_1"), about)
		case i%100 == 8:
			r.accept(key, journal.Pending, customer("cus_1"), from("opaque"))
		default:
			r.accept(key, journal.Pending, customer("cus_11"))
		}
	}
	r.accept("broken", journal.Pending, func(e *journal.Record) { e.Body = []byte("{") })
	field := "field=" + url.QueryEscape("json:$.customer=cus_1")
	for _, limit := range []int{1, 3, 200} {
		for _, query := range []string{field, "resource=pi_123", "source=billing&" + field} {
			if got := r.listAll(fmt.Sprintf("%s&limit=%d", query, limit)); !slices.Equal(got, want) {
				t.Errorf("%s by %d: %v, want %v", query, limit, got, want)
			}
		}
	}
	if got := r.listAll("type=other&" + field); got != nil {
		t.Errorf("of another type: %v", got)
	}
	_, cursor := keys(r.get("/api/v1/events?limit=1&" + field))
	for _, query := range []string{
		"field=" + url.QueryEscape("json:$.customer=cus_11") + "&cursor=" + cursor, // belongs to another question
		"field=json:$.customer", "field=" + url.QueryEscape("json:$.customer="), "field=" + url.QueryEscape("xml:/a=cus_1"),
		"source=opaque&" + field, "field=" + strings.Repeat("x", 2049), "resource=%00", "resource=" + strings.Repeat("x", 513),
	} {
		if problem := r.expect(request("GET", "/api/v1/events?"+query, nil), http.StatusUnprocessableEntity); strings.Contains(fmt.Sprint(problem), "cus_1") && !strings.Contains(fmt.Sprint(problem), "such as") {
			t.Errorf("%s repeats the text: %v", query, problem)
		}
	}
}

// A replay by a field does what its dry run counted, and neither the log nor the record has the text.
func TestReplayByField(t *testing.T) {
	r := newRig(t)
	for i := range 450 {
		name := "ada@example.com"
		if i%3 > 0 {
			name = "bob@example.com"
		}
		r.accept(fmt.Sprint("evt_", i), journal.Dead, customer(name))
	}
	body := filtered(map[string]any{"field": "json:$.customer=ada@example.com"}, "dry_run", true)
	for range 2 {
		got := r.post("/api/v1/replay", body, 200)
		if got["deliveries"] != 150.0 || got["events"] != 150.0 || got["cursor"] != nil {
			t.Errorf("dry run %v: %v", body["dry_run"], got)
		}
		body["dry_run"] = false
	}
	if got := r.post("/api/v1/replay", body, 200); got["deliveries"] != 0.0 {
		t.Errorf("again: %v", got)
	}
	audits, err := r.model.Audits(t.Context(), 0, 10)
	if err != nil || len(audits) != 1 || audits[0].Count != 150 || !strings.Contains(audits[0].Filter, "json:$.customer has the text with SHA-256 ") {
		t.Errorf("on record: %+v, %v", audits, err)
	}
	if text := fmt.Sprint(audits) + r.log.String(); strings.Contains(text, "ada@") || !strings.Contains(text, "150") {
		t.Errorf("on record, and logged: %s", text)
	}
	if got := r.listAll("state=pending&limit=200"); len(got) != 150 {
		t.Errorf("%d begin again", len(got))
	}
	r.post("/api/v1/replay", filtered(map[string]any{"field": "customer"}), 422)
}

// A search that stops before it has looked at everything says so, and how far it came; so does one that the store
// fails after it has found something.
func TestSearchThatStops(t *testing.T) {
	for name, records := range map[string]journal.Store{"time is up": slow{}, "the store fails": failing{}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.records = records
			r.serve()
			list := r.get("/api/v1/events?limit=30")
			if len(list["events"].([]any)) == 0 || list["incomplete"] != true || list["cursor"] == nil || list["looked_to"] == nil {
				t.Errorf("%s: %v", name, list)
			}
			if failed := strings.Contains(r.log.String(), "the connection is gone"); failed != (name == "the store fails") {
				t.Errorf("%s: logged %s", name, r.log)
			}
		})
	}
	r := newRig(t)
	for i := range 3 {
		r.accept(fmt.Sprint(i), journal.Pending)
	}
	if list := r.get("/api/v1/events?limit=2"); list["incomplete"] != nil || list["looked_to"] != "2026-11-21T12:00:00Z" {
		t.Errorf("a full page: %v", list)
	}
	if list := r.get("/api/v1/events?limit=3"); list["incomplete"] != nil || list["cursor"] != nil || list["looked_to"] != nil {
		t.Errorf("all of them: %v", list)
	}
}

// slow finds something every second.
type slow struct{ journal.Store }

func (slow) List(_ context.Context, _ journal.Filter, before int64, _ int) (journal.Page, error) {
	time.Sleep(time.Second)
	next := cmp.Or(before, 1000) - 1
	return journal.Page{Events: []journal.Summary{{ID: next, ReceivedAt: now}}, Next: next}, nil
}

// failing finds something once.
type failing struct{ journal.Store }

func (failing) List(_ context.Context, _ journal.Filter, before int64, _ int) (journal.Page, error) {
	if before != 0 {
		return journal.Page{}, errors.New("the connection is gone")
	}
	return journal.Page{Events: []journal.Summary{{ID: 9, ReceivedAt: now}}, Next: 5}, nil
}
