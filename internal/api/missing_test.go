package api_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/journal"
)

// lose has a gateway find events that never arrived.
func (r *rig) lose(source string, beyond int64, all ...journal.MissingEvent) {
	r.Helper()
	m, _, err := r.model.TakeMark(r.Context(), source, "gateway", now, now.Add(time.Minute))
	if err != nil {
		r.Fatal(err)
	}
	for i := range all {
		all[i].Found, all[i].Expires = now.Add(-time.Hour), now.Add(time.Hour)
	}
	f := &journal.Finding{At: now, Missing: all, Beyond: beyond, From: now.Add(-time.Hour), Expires: now.Add(time.Hour)}
	if _, err := r.model.AdvanceMark(r.Context(), source, m.Token, journal.MarkAdvance{Lease: now, Found: f}); err != nil {
		r.Fatal(err)
	}
}

// What never arrived is listed until it is on record or dismissed, also of a source that is not configured any more.
func TestMissing(t *testing.T) {
	r := newRig(t)
	const path = "/api/v1/sources/billing/missing"
	if got := fmt.Sprint(r.get(path)); got != "map[events:[] found_before:2026-11-21T11:59:00Z]" {
		t.Errorf("nothing is missing: %s", got)
	}
	r.lose("billing", 7, journal.MissingEvent{Key: "evt_1", Type: "invoice.paid", Happened: now.Add(-2 * time.Hour), Why: "its signature is wrong"},
		journal.MissingEvent{Key: "evt_2", Asked: now.Add(-time.Hour)}, journal.MissingEvent{Entry: "delivery 9"}, journal.MissingEvent{Key: "evt_here"})
	r.accept("evt_here", journal.Done)
	const want = "map[beyond:7 events:[map[entry:delivery 9 expires_at:2026-11-21T13:00:00Z found_at:2026-11-21T11:00:00Z]" +
		" map[asked_at:2026-11-21T11:00:00Z expires_at:2026-11-21T13:00:00Z found_at:2026-11-21T11:00:00Z key:evt_2]" +
		" map[expires_at:2026-11-21T13:00:00Z found_at:2026-11-21T11:00:00Z happened_at:2026-11-21T10:00:00Z key:evt_1 type:invoice.paid why:its signature is wrong]] found_before:2026-11-21T11:59:00Z]"
	if got := fmt.Sprint(r.get(path)); got != want {
		t.Errorf("missing are\n%s, want\n%s", got, want)
	}
	r.expect(request("GET", "/api/v1/sources/bling/missing", nil), 404)
	m, _, err := r.model.TakeMark(t.Context(), "billing", "gateway", now, now.Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.model.AdvanceMark(t.Context(), "billing", m.Token, journal.MarkAdvance{Lease: now, Through: now.Add(-time.Hour)}); err != nil {
		t.Fatal(err)
	}
	if got := r.get(path)["compared_through"]; got != nil { // the mark lies ahead, and no run has ended
		t.Errorf("before a run has ended it is compared through %v", got)
	}
	if _, err := r.model.ReleaseMark(t.Context(), "billing", m.Token, journal.MarkResult{Ended: now}); err != nil {
		t.Fatal(err)
	}
	if got := r.get(path)["compared_through"]; got != "2026-11-21T11:00:00Z" {
		t.Errorf("it is compared through %v", got)
	}
	r.lose("of yesterday", 0, journal.MissingEvent{Key: "evt_1"})
	if all := r.get("/api/v1/sources/of%20yesterday/missing"); len(all["events"].([]any)) != 1 || all["not_compared"] != "it is not configured any more" {
		t.Errorf("of a source that is not configured: %v", all)
	}
}

// Operators dismiss what is missing, by key or all of it, with a reason that is on the audit log.
func TestDismiss(t *testing.T) {
	r := newRig(t, api.Token{Name: "ann", Secret: "a-fake-token-for-operators", Role: api.Operator}, api.Token{Name: "bob", Secret: "a-fake-token-for-reading", Role: api.Read})
	r.lose("billing", 7, journal.MissingEvent{Key: "evt_1"}, journal.MissingEvent{Key: "evt_2"})
	dismiss := func(token string, body any, status int) map[string]any {
		t.Helper()
		req := request("POST", "/api/v1/sources/billing/missing/dismiss", body)
		req.Header.Set("Authorization", "Bearer "+token)
		return r.expect(req, status)
	}
	dismiss("a-fake-token-for-reading", api.Dismiss{Keys: []string{"evt_1"}, Reason: "it was a test"}, 403)
	for name, wrong := range map[string]api.Dismiss{
		"no reason": {Keys: []string{"evt_1"}}, "nothing": {Reason: "why"}, "both": {Keys: []string{"evt_1"}, All: true, FoundBefore: now, Reason: "why"},
		"all, whatever was seen": {All: true, Reason: "why"}, "a moment with keys": {Keys: []string{"evt_1"}, FoundBefore: now, Reason: "why"},
		"no text": {Keys: []string{"evt_1"}, Reason: "a\nb"}, "no key": {Keys: []string{""}, Reason: "why"}, "a key that none can be": {Keys: []string{"a\x00"}, Reason: "why"},
	} {
		if got := dismiss("a-fake-token-for-operators", wrong, 422); got == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := dismiss("a-fake-token-for-operators", api.Dismiss{Keys: []string{"evt_1", "evt_9"}, Reason: "it was a test"}, 200); got["dismissed"] != 1.0 {
		t.Errorf("dismissed: %v", got)
	}
	for i, want := range []float64{0, 1, 7} { // evt_2 was found an hour ago, and the others were counted now
		before := now.Add([]time.Duration{-time.Hour, -time.Minute, time.Minute}[i])
		if got := dismiss("a-fake-token-for-operators", api.Dismiss{All: true, FoundBefore: before, Reason: "all are"}, 200); got["dismissed"] != want {
			t.Errorf("of what was found before %v were dismissed: %v", before, got)
		}
	}
	req := request("GET", "/api/v1/audit", nil)
	req.Header.Set("Authorization", "Bearer a-fake-token-for-reading")
	_, answer := r.send(req)
	var got []string
	for _, a := range answer["audit"].([]any) {
		got = append(got, fmt.Sprint(a.(map[string]any)["action"], a.(map[string]any)["by"], a.(map[string]any)["count"], a.(map[string]any)["what"], a.(map[string]any)["reason"]))
	}
	if fmt.Sprint(got) != "[dismissann7billingall are dismissann1billing evt_2all are dismissann1billing evt_1it was a test]" {
		t.Errorf("on record are %q", got)
	}
}
