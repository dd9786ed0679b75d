package api_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/refusals"
)

// fail stores an event and has its delivery fail so.
func (r *rig) fail(key string, state journal.State, kind journal.ErrorKind, status int, excerpt string) {
	r.Helper()
	r.accept(key, journal.Processing)
	w := journal.Held{EventID: r.find(key), Destination: "app", Token: 1}
	o := journal.Outcome{Held: w, State: state, Kind: kind, Status: status, Error: fmt.Sprint("why ", kind), Started: now, Due: now.Add(time.Hour), Excerpt: []byte(excerpt)}
	if applied, err := r.model.Finish(r.Context(), []journal.Outcome{o}); err != nil || !applied[0] {
		r.Fatal(applied, err)
	}
}

func (r *rig) find(key string) int64 {
	r.Helper()
	id, err := r.model.Find(r.Context(), "billing", key)
	if err != nil {
		r.Fatal(err)
	}
	return id
}

// Failures come in groups, each of which a filter of a list and of a replay chooses as a whole.
func TestFailures(t *testing.T) {
	r := newRig(t)
	if got := r.get("/api/v1/failures"); len(got["open"].([]any)) != 0 || len(got["resolved"].([]any)) != 0 {
		t.Errorf("without any: %v", got)
	}
	for i := range 4 {
		r.fail(fmt.Sprint("s", i), journal.Failed, journal.ErrorStatus, 500, strings.Repeat("\x1b\xff<script>", 200))
	}
	r.fail("other", journal.Dead, journal.ErrorStatus, 404, "")
	r.fail("late", journal.Dead, journal.ErrorTimeout, 0, "")
	list := r.get("/api/v1/failures")
	var got []string
	for _, g := range list["open"].([]any) {
		g := g.(map[string]any)
		q := url.Values{"destination": {g["destination"].(string)}, "error": {g["error"].(string)}}
		filter := map[string]any{"destination": g["destination"], "error": g["error"]}
		if status, ok := g["status"]; ok {
			q.Set("status", fmt.Sprint(status))
			filter["status"] = status
		}
		events := r.get("/api/v1/events?" + q.Encode())["events"].([]any)
		counted := r.post("/api/v1/replay", map[string]any{"reason": "x", "dry_run": true, "filter": filter}, 200)
		got = append(got, fmt.Sprintf("%s: %v, %v dead, %d samples, %d listed, %v counted", q.Encode(), g["count"], g["dead"], len(g["samples"].([]any)), len(events), counted["deliveries"]))
		for _, s := range g["samples"].([]any) {
			if answer, _ := s.(map[string]any)["answer"].(string); len(answer) > 3*journal.MaxExcerpt {
				t.Errorf("an answer has %d bytes", len(answer))
			}
		}
	}
	want := []string{
		"destination=app&error=status&status=404: 1, 1 dead, 1 samples, 1 listed, 1 counted",
		"destination=app&error=status&status=500: 4, 0 dead, 3 samples, 4 listed, 4 counted",
		"destination=app&error=timeout: 1, 1 dead, 1 samples, 1 listed, 1 counted",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("groups\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	done := r.post("/api/v1/replay", `{"reason":"mended","filter":{"destination":"app","error":"status","status":500}}`, 200)
	if done["deliveries"] != 4.0 {
		t.Errorf("the replay did %v", done)
	}
	list = r.get("/api/v1/failures")
	if open, resolved := list["open"].([]any), list["resolved"].([]any); len(open) != 2 || len(resolved) != 1 || resolved[0].(map[string]any)["count"] != 4.0 {
		t.Errorf("after it: %v", list)
	}
	audit := fmt.Sprint(r.get("/api/v1/audit"))
	if !strings.Contains(audit, `"error":"status","status":500`) {
		t.Errorf("the record does not say which: %s", audit)
	}
}

func TestFailureFiltersThatMeanNothing(t *testing.T) {
	r := newRig(t)
	for _, query := range []string{"error=bad", "status=99", "status=x", "error=timeout&state=done", "status=500&state=pending"} {
		r.expect(request("GET", "/api/v1/events?"+query, nil), 422)
	}
	r.post("/api/v1/replay", `{"reason":"x","force":true,"filter":{"error":"timeout"}}`, 422)
	r.post("/api/v1/replay", `{"reason":"x","filter":{"error":"lost"}}`, 422)
}

// Every kind of error is one that a filter takes.
func TestEveryErrorKindIsAFilter(t *testing.T) {
	r := newRig(t)
	for _, kind := range journal.ErrorKinds() {
		r.get("/api/v1/events?error=" + string(kind))
	}
}

// What was refused is told with the command that says more, to whoever may ask.
func TestRefusals(t *testing.T) {
	r := newRig(t)
	if got := r.get("/api/v1/sources/billing/refusals"); len(got["refusals"].([]any)) != 0 {
		t.Errorf("without any: %v", got)
	}
	r.refused.Add(refusals.Refusal{At: now, Source: "billing", Address: "192.0.2.1", Method: "POST", Path: "/in/billing", Status: 401, Reason: "signature_missing",
		Words: "the header Stripe-Signature is absent", Header: "Stripe-Signature", Unverified: true, Headers: []string{"Content-Type"}, Body: refusals.BodyOf([]byte("{}")), UnverifiedKey: "evt_1"})
	r.refused.Add(refusals.Refusal{At: now, Method: "GET", Path: "/wp-admin", Status: 404, Reason: "unknown_source"})
	got := r.get("/api/v1/sources/billing/refusals")["refusals"].([]any)[0].(map[string]any)
	if got["verify"] != fmt.Sprintf("hookonce verify --provider stripe --secret env:BILLING_SECRET --now %d --body FILE -H 'Content-Type: VALUE'", now.Unix()) ||
		got["missing_header"] != "Stripe-Signature" || got["unverified_key"] != "evt_1" || fmt.Sprint(got["body"]) != "map[bytes:2 sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a]" {
		t.Errorf("it tells %v", got)
	}
	unknown := r.get("/api/v1/sources/-/refusals")["refusals"].([]any)
	if len(unknown) != 1 || unknown[0].(map[string]any)["body"] != nil || unknown[0].(map[string]any)["verify"] != nil || unknown[0].(map[string]any)["unverified_key"] != nil {
		t.Errorf("of unknown paths it tells %v", unknown)
	}
	r.expect(request("GET", "/api/v1/sources/nobody/refusals", nil), 404)
	if got := fmt.Sprint(r.get("/api/v1/refusals")["sources"]); got != "[map[source:billing total:1] map[source:- total:1]]" {
		t.Errorf("it counts %s", got)
	}
}
