package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// endless always has more to replay.
type endless struct{ journal.Store }

func (e *endless) Replay(_ context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	return journal.Replayed{Events: limit, Looked: make([]journal.Named, limit), Deliveries: limit, Next: r.After + int64(limit), Audit: 7}, nil
}

// lost carries out a replay, or not: nobody knows.
type lost struct{ journal.Store }

func (l *lost) Replay(_ context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	return journal.Replayed{}, context.DeadlineExceeded
}

// Whoever asked is told that nobody knows, and not to try again what may have been done by force; what comes again without force
// is idle.
func TestReplayOfUnknownOutcome(t *testing.T) {
	r := newRig(t)
	r.accept("done", journal.Done)
	r.records = &lost{r.model}
	r.serve()
	for path, body := range map[string]map[string]any{
		"/api/v1/events/billing/done/replay": {"reason": "x"}, "/api/v1/replay": filtered(map[string]any{"source": "billing"}),
	} {
		for _, force := range []bool{false, true} {
			body["force"] = force
			w, answer := r.send(request("POST", path, body))
			got, again := fmt.Sprint(answer["detail"]), w.Header().Get("Retry-After") != ""
			if w.Code != http.StatusServiceUnavailable || !strings.Contains(got, "not known whether") || strings.Contains(got, "try again") == force || again == force {
				t.Errorf("%s, force %t: %d, to be tried again: %t, %s", path, force, w.Code, again, got)
			}
		}
	}
}

// lostPiece carries out the second piece of a replay as the first one, and delivers what it began; but its answer is lost.
type lostPiece struct {
	*journaltest.Memory
	rig    *rig
	pieces int
}

func (l *lostPiece) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	done, err := l.Memory.Replay(ctx, r, limit)
	if l.pieces++; l.pieces != 2 {
		return done, err
	}
	for l.rig.finish(journal.Done, now.Add(time.Second)) > 0 {
	}
	return journal.Replayed{}, context.DeadlineExceeded
}

// A piece of a forced replay whose answer is lost is asked for again with the cursor of the one before, and delivers once.
func TestReplayOfUnknownPiece(t *testing.T) {
	r := newRig(t)
	const events = 700
	for i := range events {
		r.accept(fmt.Sprint("done-", i), journal.Done)
	}
	r.records = &lostPiece{Memory: r.model, rig: r}
	r.serve()
	body := filtered(map[string]any{"source": "billing", "state": "done"}, "force", true)
	first := r.post("/api/v1/replay", body, http.StatusOK)
	if first["deliveries"] != 500.0 || first["cursor"] == nil {
		t.Fatalf("up to the piece that is lost: %v", first)
	}
	body["cursor"] = first["cursor"]
	r.later = time.Minute
	rest := r.post("/api/v1/replay", body, http.StatusOK)
	if rest["deliveries"] != 0.0 || rest["later"] != events-500.0 || rest["cursor"] != nil {
		t.Errorf("the piece that is asked for again: %v", rest)
	}
}

// filtered is the body of a replay of many.
func filtered(filter map[string]any, more ...any) map[string]any {
	body := map[string]any{"filter": filter, "reason": "mended"}
	for i := 0; i < len(more); i += 2 {
		body[more[i].(string)] = more[i+1]
	}
	return body
}

// One event: what can be replayed is, and if nothing can the answer says why.
func TestReplayOne(t *testing.T) {
	r := newRig(t, tokens...)
	ask := func(key string, body map[string]any, status int) map[string]any {
		t.Helper()
		req := request("POST", "/api/v1/events/billing/"+key+"/replay", body)
		req.Header.Set("Authorization", "Bearer a-fake-token-for-operators")
		return r.expect(req, status)
	}
	reason := map[string]any{"reason": "mended"}
	r.accept("failed", journal.Failed)
	r.accept("done", journal.Done)
	r.accept("processing", journal.Processing)
	if got := ask("failed", map[string]any{"reason": "mended", "dry_run": true}, 200); got["deliveries"] != 1.0 || got["dry_run"] != true || got["audit"] != nil {
		t.Errorf("a dry run: %v", got)
	}
	if got := ask("failed", reason, 200); got["deliveries"] != 1.0 || got["audit"] != "1" || got["forced"] != 0.0 {
		t.Errorf("failed: %v", got)
	}
	for key, want := range map[string]string{"failed": "already", "processing": "already", "done": "force"} {
		if got := ask(key, reason, http.StatusConflict); !strings.Contains(got["detail"].(string), want) {
			t.Errorf("%s: %v", key, got)
		}
	}
	if got := ask("done", map[string]any{"reason": "again", "force": true, "done_before": now.Add(-time.Second)}, http.StatusConflict); !strings.Contains(got["detail"].(string), "not delivered twice") {
		t.Errorf("done since: %v", got)
	}
	if got := ask("done", map[string]any{"reason": "again", "force": true, "done_before": now.Add(time.Second)}, 200); got["forced"] != 1.0 {
		t.Errorf("by force: %v", got)
	}
	if got := ask("done", map[string]any{"reason": "there, too", "force": true, "destination": "audit"}, 200); got["deliveries"] != 1.0 || got["forced"] != 0.0 {
		t.Errorf("where it never was: %v", got)
	}
	ask("nothing", reason, http.StatusNotFound)
	ask("done", map[string]any{"reason": "x", "destination": "nowhere"}, 422)
	req := request("POST", "/api/v1/events/12345/replay", reason)
	req.Header.Set("Authorization", "Bearer a-fake-token-for-operators")
	r.expect(req, http.StatusNotFound)
	audits, err := r.model.Audits(t.Context(), 0, 1)
	if err != nil || audits[0].By != "oncall" || audits[0].Reason != "there, too" {
		t.Errorf("on record: %+v, %v", audits, err)
	}
}

// What went to a destination that was removed is left alone, and told: nobody would deliver it.
func TestReplayToNobody(t *testing.T) {
	r := newRig(t)
	there := func(names ...string) func(*journal.Record) {
		return func(e *journal.Record) { e.Destinations = names }
	}
	r.accept("moved", journal.Dead, there("old"))
	r.accept("done", journal.Done, there("old"))
	r.accept("both", journal.Dead, there("app", "old"))
	r.said("dead", fleet.Gone+time.Millisecond, fleet.Target{Name: "old"}) // it was killed before its destination was removed
	for _, c := range []struct {
		key, also string
		force     bool
	}{{key: "moved"}, {key: "moved", force: true}, {key: "done", force: true}, {key: "done"}} {
		got := r.post("/api/v1/events/billing/"+c.key+"/replay", map[string]any{"reason": "x", "force": c.force}, http.StatusConflict)
		want := "no gateway delivers to old any more; name the destination"
		if c.key == "done" && !c.force {
			want = "nothing of this event is failed or dead"
		}
		if text := got["detail"].(string); !strings.Contains(text, want) {
			t.Errorf("%+v: %s", c, text)
		}
	}
	for _, dry := range []bool{true, false} {
		got := r.post("/api/v1/replay", filtered(map[string]any{"source": "billing"}, "force", true, "dry_run", dry), 200)
		if got["deliveries"] != 1.0 || fmt.Sprint(got["destinations"], got["nowhere"]) != "map[app:1] map[old:3]" {
			t.Errorf("many: %v", got)
		}
	}
	both := func(want string) {
		t.Helper()
		again := map[string]any{"reason": "x", "force": true, "done_before": now}
		got := r.post("/api/v1/events/billing/both/replay", again, http.StatusConflict)["detail"].(string)
		if !strings.Contains(got, "delivers to old any more; elsewhere this "+want) || strings.Contains(got, "with force") {
			t.Errorf("it is told as %q, want %s", got, want)
		}
	}
	both("is pending")
	r.finish(journal.Done, now.Add(time.Second))
	both("was delivered already")
	if got := r.post("/api/v1/events/billing/moved/replay", map[string]any{"reason": "x", "force": true, "destination": "audit"}, 200); got["deliveries"] != 1.0 {
		t.Errorf("to another destination: %v", got)
	}
}

// Where a gateway of another version is not understood, it may deliver to anything that is not known here.
func TestReplayBesideAnotherVersion(t *testing.T) {
	r := newRig(t)
	r.accept("evt_1", journal.Dead, func(e *journal.Record) { e.Destinations = []string{"theirs"} })
	if err := r.model.Announce(t.Context(), journal.Gateway{ID: "5", Since: now, Seen: now, View: []byte("from the future")}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	if got := r.post("/api/v1/replay", filtered(map[string]any{"source": "billing"}), 200); got["deliveries"] != 1.0 || got["nowhere"] != nil {
		t.Errorf("replayed: %v", got)
	}
}

// Nothing begins while it is not known who delivers where.
func TestReplayWithoutTheFleet(t *testing.T) {
	r := newRig(t)
	r.accept("evt_1", journal.Dead)
	r.records = lonely{r.model}
	r.serve()
	r.post("/api/v1/events/billing/evt_1/replay", map[string]any{"reason": "x"}, http.StatusServiceUnavailable)
	r.post("/api/v1/replay", filtered(map[string]any{"source": "billing"}), http.StatusServiceUnavailable)
	if audits, err := r.model.Audits(t.Context(), 0, 10); err != nil || len(audits) != 0 {
		t.Errorf("on record: %+v, %v", audits, err)
	}
}

// lonely cannot say who else there is.
type lonely struct{ journal.Store }

func (lonely) Gateways(context.Context) ([]journal.Gateway, error) { return nil, errBroken }

// A destination that another gateway on the store delivers to is as good as one of this, and in order if that says so.
func TestReplayToAnotherGateway(t *testing.T) {
	r := newRig(t)
	r.said("other", time.Second, fleet.Target{Name: "mail", Ordered: true})
	r.said("dead", fleet.Gone+time.Second, fleet.Target{Name: "app", Ordered: true})
	r.accept("evt_1", journal.Done, func(e *journal.Record) { e.Destinations, e.Resource = []string{"mail"}, "customer 1" })
	asked := &askedReplay{Store: r.model}
	r.records = asked
	r.serve()
	if got := r.post("/api/v1/events/billing/evt_1/replay", map[string]any{"reason": "x", "force": true, "destination": "mail"}, 200); got["deliveries"] != 1.0 {
		t.Errorf("replayed: %v", got)
	}
	if !slices.Contains(asked.replay.Ordered, "mail") || slices.Contains(asked.replay.Ordered, "app") {
		t.Errorf("those in order are %v", asked.replay.Ordered)
	}
}

// askedReplay notes what is asked of it.
type askedReplay struct {
	journal.Store
	replay journal.Replay
}

func (a *askedReplay) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	a.replay = r
	return a.Store.Replay(ctx, r, limit)
}

// The body of an old event is gone, and so is the chance to deliver it.
func TestReplayWithoutBody(t *testing.T) {
	r := newRig(t)
	r.accept("old", journal.Done)
	old := journal.Purge{Kind: journal.KindBodies, Before: now.Add(time.Hour), Others: true, Limit: 10}
	if _, err := r.model.Purge(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	r.post("/api/v1/events/billing/old/replay", map[string]any{"reason": "x", "force": true}, http.StatusGone)
	got := r.post("/api/v1/replay", filtered(map[string]any{"source": "billing"}, "force", true), 200)
	if got["gone"] != 1.0 || got["deliveries"] != 0.0 || !strings.Contains(fmt.Sprint(got["gone_events"]), "key:old") {
		t.Errorf("many: %v", got)
	}
}

// Where an old event went is no longer known: then it goes where one says.
func TestReplayWithoutAttempts(t *testing.T) {
	r := newRig(t)
	r.accept("old", journal.Done)
	old := journal.Purge{Kind: journal.KindAttempts, Before: now.Add(time.Hour), Others: true, Limit: 10}
	if _, err := r.model.Purge(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	got := r.post("/api/v1/events/billing/old/replay", map[string]any{"reason": "x", "force": true}, http.StatusConflict)
	if text := got["detail"].(string); !strings.Contains(text, "retention.attempts") || strings.Contains(text, "with force") {
		t.Errorf("by force: %s", text)
	}
	if got := r.post("/api/v1/events/billing/old/replay", map[string]any{"reason": "x", "force": true, "destination": "audit"}, 200); got["deliveries"] != 1.0 || got["forced"] != 0.0 {
		t.Errorf("to a destination: %v", got)
	}
}

// A dry run counts what the replay then does, in one request.
func TestReplayMany(t *testing.T) {
	r := newRig(t)
	for i := range 1200 { // more than one transaction takes
		r.accept(fmt.Sprint("evt_", i), journal.Dead)
	}
	for _, dry := range []bool{true, false} {
		got := r.post("/api/v1/replay", filtered(map[string]any{"state": "dead", "destination": "app"}, "dry_run", dry), 200)
		if got["deliveries"] != 1200.0 || got["events"] != 1200.0 || got["cursor"] != nil {
			t.Errorf("dry run %v: %v", dry, got)
		}
	}
	audits, err := r.model.Audits(t.Context(), 0, 10)
	if err != nil || len(audits) != 1 || audits[0].Count != 1200 || audits[0].By != "local" {
		t.Errorf("on record: %+v, %v", audits, err)
	}
}

// What no route wanted is found, and delivered to the destination that is named, once.
func TestReplayUnrouted(t *testing.T) {
	r := newRig(t)
	r.accept("delivered", journal.Done)
	r.accept("nowhere", journal.Pending, func(e *journal.Record) { e.Destinations = nil })
	if got, _ := keys(r.get("/api/v1/events?unrouted=true")); !slices.Equal(got, []string{"nowhere"}) {
		t.Errorf("listed: %v", got)
	}
	body := filtered(map[string]any{"unrouted": true, "destination": "app"}, "force", true)
	for _, want := range []float64{1, 0} {
		if got := r.post("/api/v1/replay", body, 200); got["deliveries"] != want || got["events"] != 1.0 {
			t.Errorf("replayed: %v, want %v", got, want)
		}
	}
	audits, err := r.model.Audits(t.Context(), 0, 10)
	if err != nil || len(audits) != 1 || audits[0].Filter != `{"destination":"app","unrouted":true,"force":true}` {
		t.Errorf("on record: %+v, %v", audits, err)
	}
}

// What one request does not get through is gone on with, by a cursor that fits no other replay.
func TestReplayGoesOn(t *testing.T) {
	r := newRig(t)
	r.records = &endless{Store: r.model}
	r.serve()
	body := filtered(map[string]any{"state": "failed"})
	first := r.post("/api/v1/replay", body, 200)
	cursor, _ := first["cursor"].(string)
	if first["deliveries"] != 20000.0 || cursor == "" {
		t.Fatalf("the first request: %v", first)
	}
	body["cursor"] = cursor
	if second := r.post("/api/v1/replay", body, 200); second["cursor"] == cursor || second["audit"] != first["audit"] {
		t.Errorf("the second request: %v", second)
	}
	for name, value := range map[string]any{"filter": map[string]any{"state": "dead"}, "force": true, "rate": 5, "dry_run": true} {
		other := filtered(map[string]any{"state": "failed"}, "cursor", cursor, name, value)
		if got := r.post("/api/v1/replay", other, 422); !strings.Contains(fmt.Sprint(got), "body.cursor") {
			t.Errorf("with another %s: %v", name, got)
		}
	}
}

// Every field of a body is refused by its name.
func TestBadReplays(t *testing.T) {
	r := newRig(t)
	for body, location := range map[string]string{
		`{"filter":{}}`:                     "body",
		`{"reason":"x"}`:                    "body",
		`{"reason":"","filter":{}}`:         "body.reason",
		`{"reason":"a\u0000b","filter":{}}`: "body.reason",
		`{"reason":"` + strings.Repeat("x", 501) + `","filter":{}}`:                                    "body.reason",
		`{"reason":"x","filter":{"state":"lost"}}`:                                                     "body.filter.state",
		`{"reason":"x","filter":{"state":"pending"}}`:                                                  "body.filter.state",
		`{"reason":"x","filter":{"state":"done"}}`:                                                     "body.force",
		`{"reason":"x","filter":{"unrouted":true,"destination":"app"}}`:                                "body.force",
		`{"reason":"x","filter":{"unrouted":true},"force":true}`:                                       "body.filter.destination",
		`{"reason":"x","filter":{"unrouted":true,"state":"done","destination":"app"},"force":true}`:    "body.filter.state",
		`{"reason":"x","filter":{"unrouted":"yes","destination":"app"},"force":true}`:                  "body.filter.unrouted",
		`{"reason":"x","filter":{"since":"yesterday"}}`:                                                "body.filter.since",
		`{"reason":"x","filter":{"since":"0000-01-01T00:00:00+01:00"}}`:                                "body.filter.since",
		`{"reason":"x","filter":{"since":"0000-06-01T00:00:00Z"}}`:                                     "body.filter.since",
		`{"reason":"x","filter":{"until":"9999-12-31T23:59:59-01:00"}}`:                                "body.filter.until",
		`{"reason":"x","dry_run":true,"filter":{"until":"9999-12-31T23:59:59-01:00"}}`:                 "body.filter.until",
		`{"reason":"x","filter":{"since":"9999-12-31T23:59:59-01:00","until":"2026-11-21T12:00:00Z"}}`: "body.filter.since",
		`{"reason":"x","filter":{"destination":"nowhere"}}`:                                            "body.filter.destination",
		`{"reason":"x","filter":{"sauce":"a"}}`:                                                        "body.filter",
		`{"reason":"x","filter":{},"rate":-1}`:                                                         "body.rate",
		`{"reason":"x","filter":{},"rate":1e-9}`:                                                       "body.rate",
		`{"reason":"x","filter":{},"rate":"fast"}`:                                                     "body.rate",
		`{"reason":"x","filter":{},"cursor":"x"}`:                                                      "body.cursor",
		`{"reason":"x","filter":{"type":"\u0000"}}`:                                                    "body.filter.type",
	} {
		if got := r.post("/api/v1/replay", body, 422); !strings.Contains(fmt.Sprint(got["errors"]), location) {
			t.Errorf("%s: %v does not name %s", body, got, location)
		}
	}
	for body, status := range map[string]int{
		``: 400, `{`: 400, `[]`: 422, `null`: 422, `{"reason":"` + strings.Repeat("x", 100_000) + `"}`: 413,
	} {
		r.post("/api/v1/replay", body, status)
	}
	plain := request("POST", "/api/v1/replay", `{"reason":"x","filter":{}}`)
	plain.Header.Set("Content-Type", "text/plain") // which a page of another site may send without asking
	r.expect(plain, http.StatusUnsupportedMediaType)
	if audits, _ := r.model.Audits(t.Context(), 0, 10); len(audits) != 0 {
		t.Errorf("on record: %+v", audits)
	}
}

// A destination is paused once, and what is not configured any more can still be resumed.
func TestPauseAndResume(t *testing.T) {
	r := newRig(t)
	r.accept("a", journal.Dead)
	r.accept("b", journal.Pending, func(e *journal.Record) { e.Destinations = []string{"old"} })
	reason := map[string]string{"reason": "upgrade"}
	for _, changed := range []bool{true, false} {
		if got := r.post("/api/v1/destinations/app/pause", reason, 200); got["paused"] != true || got["changed"] != changed {
			t.Errorf("pausing: %v", got)
		}
	}
	r.post("/api/v1/destinations/nowhere/pause", reason, 404)
	r.post("/api/v1/destinations/app/pause", map[string]string{}, 422)
	r.post("/api/v1/destinations/nowhere/resume", reason, 404)
	if got := r.post("/api/v1/destinations/audit/resume", reason, 200); got["changed"] != false {
		t.Errorf("resuming what is not paused: %v", got)
	}
	want := `{"destinations":[` +
		`{"name":"app","configured":true,"url":"http://127.0.0.1:3000/","order":"none","health":{"state":"ill","since":"2026-11-21T12:00:00Z","error":"connection refused","probe":"2026-11-21T12:00:04Z","limit":1},` +
		`"pause":{"at":"2026-11-21T12:00:00Z","by":"local","reason":"upgrade"},"waiting":0,"underway":0,` +
		`"gateways":[{"gateway":"self","health":{"state":"ill","since":"2026-11-21T12:00:00Z","error":"connection refused","probe":"2026-11-21T12:00:04Z","limit":1},"waiting":0,"underway":0}],` +
		`"open":[{"state":"dead","count":1,"oldest":"2026-11-21T12:00:00Z","since":"2026-11-21T12:00:00Z"}]},` +
		`{"name":"audit","configured":true,"url":"http://127.0.0.1:4000/","order":"by_resource","health":{"state":"healthy","limit":64},"waiting":0,"underway":0,` +
		`"gateways":[{"gateway":"self","health":{"state":"healthy","limit":64},"waiting":0,"underway":0}],"open":[]},` +
		`{"name":"old","configured":false,"waiting":0,"underway":0,"gateways":[],"open":[{"state":"pending","count":1,"oldest":"2026-11-21T12:00:00Z","since":"2026-11-21T12:00:00Z"}]}],` +
		`"gateways":[{"id":"self","host":"web-1","pid":7,"version":"test","since":"2026-11-21T12:00:00Z","seen":"2026-11-21T12:00:00Z","answers":true}]}`
	var wanted map[string]any
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if got := r.get("/api/v1/destinations"); fmt.Sprint(got) != fmt.Sprint(wanted) {
		t.Errorf("destinations\n%v, want\n%v", got, wanted)
	}
	r.post("/api/v1/destinations/app/resume", reason, 200)
	if got := fmt.Sprint(r.get("/api/v1/destinations")); strings.Contains(got, "upgrade") {
		t.Errorf("after the resumption: %s", got)
	}
	list := r.get("/api/v1/audit?limit=1")
	next := r.get("/api/v1/audit?limit=1&cursor=" + list["cursor"].(string))
	if first := fmt.Sprint(list["audit"]); !strings.Contains(first, "action:resume") || !strings.Contains(first, "what:app") {
		t.Errorf("the last record: %s", first)
	}
	if second := fmt.Sprint(next["audit"]); !strings.Contains(second, "action:pause") || next["cursor"] != nil {
		t.Errorf("the one before: %s", second)
	}
}

// half is a store whose first change fails: before it did anything, or after it did everything.
type half struct {
	journal.Store
	persists bool
	failed   bool
}

func (h *half) Replay(ctx context.Context, r journal.Replay, limit int) (journal.Replayed, error) {
	if h.failed {
		return h.Store.Replay(ctx, r, limit)
	}
	h.failed = true
	if h.persists {
		if _, err := h.Store.Replay(ctx, r, limit); err != nil {
			return journal.Replayed{}, err
		}
	}
	return journal.Replayed{}, errBroken
}

// A replay whose commit failed is answered 503, and asked for again it does what is left to do: all, or
// nothing.
func TestReplayWhoseOutcomeIsUnknown(t *testing.T) {
	for _, persists := range []bool{false, true} {
		r := newRig(t)
		r.records = &half{Store: r.model, persists: persists}
		r.serve()
		for i := range 3 {
			r.accept(fmt.Sprint("evt_", i), journal.Dead)
		}
		body := filtered(map[string]any{"state": "dead"})
		r.post("/api/v1/replay", body, http.StatusServiceUnavailable)
		again := r.post("/api/v1/replay", body, 200)
		if want := map[bool]float64{false: 3, true: 0}[persists]; again["deliveries"] != want {
			t.Errorf("persisted %v: the second request %v", persists, again)
		}
		if got := fmt.Sprint(r.get("/api/v1/stats")); !strings.Contains(got, "dead:0 events:3 failed:0 pending:3") {
			t.Errorf("persisted %v: %s", persists, got)
		}
		audits, err := r.model.Audits(t.Context(), 0, 10)
		if err != nil || len(audits) != 1 || audits[0].Count != 3 {
			t.Errorf("persisted %v: on record %+v, %v", persists, audits, err)
		}
	}
}
