package api_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/journal"
)

// keys returns the keys of a list, and its cursor.
func keys(list map[string]any) (keys []string, cursor string) {
	for _, e := range list["events"].([]any) {
		key, _ := e.(map[string]any)["key"].(string)
		keys = append(keys, key)
	}
	cursor, _ = list["cursor"].(string)
	return keys, cursor
}

// Pages follow each other whatever comes in meanwhile, and an empty list is a list.
func TestPages(t *testing.T) {
	r := newRig(t)
	if list := r.get("/api/v1/events"); len(list["events"].([]any)) != 0 || list["cursor"] != nil {
		t.Errorf("an empty journal: %v", list)
	}
	for i := range 5 {
		r.accept(fmt.Sprint("evt_", i), journal.Pending)
	}
	got, cursor := keys(r.get("/api/v1/events?limit=2"))
	r.accept("meanwhile", journal.Pending)
	for cursor != "" {
		var page []string
		page, cursor = keys(r.get("/api/v1/events?limit=2&cursor=" + cursor))
		got = append(got, page...)
	}
	if want := []string{"evt_4", "evt_3", "evt_2", "evt_1", "evt_0"}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}
}

// Each field is refused by its name, and what is wrong with it is said.
func TestBadQuestions(t *testing.T) {
	r := newRig(t)
	r.accept("a", journal.Pending)
	r.accept("b", journal.Pending)
	_, cursor := keys(r.get("/api/v1/events?limit=1"))
	for path, location := range map[string]string{
		"/api/v1/events?state=lost":                                            "query.state",
		"/api/v1/events?seen=unkeyed":                                          "query.seen",
		"/api/v1/events?unrouted=yes":                                          "query.unrouted",
		"/api/v1/events?limit=0":                                               "query.limit",
		"/api/v1/events?limit=201":                                             "query.limit",
		"/api/v1/events?limit=x":                                               "query.limit",
		"/api/v1/events?limit=99999999999999999999":                            "query.limit",
		"/api/v1/events?since=yesterday":                                       "query.since",
		"/api/v1/events?until=2026-13-01T00:00:00Z":                            "query.until",
		"/api/v1/events?since=2026-11-21T12:00:00Z&until=2026-11-21T12:00:00Z": "query.until",
		"/api/v1/events?source=" + strings.Repeat("a", 65):                     "query.source",
		"/api/v1/events?type=" + strings.Repeat("a", 256):                      "query.type",
		"/api/v1/events?type=%00":                                              "query.type",
		"/api/v1/events?source=%ff":                                            "query.source",
		"/api/v1/events?destination=a%0Ab":                                     "query.destination",
		"/api/v1/events?sauce=billing":                                         "query.sauce",
		"/api/v1/events?cursor=x":                                              "query.cursor",
		"/api/v1/events?cursor=" + cursor[:len(cursor)-2]:                      "query.cursor",
		"/api/v1/events?cursor=" + swap(cursor):                                "query.cursor",
		"/api/v1/events?source=billing&cursor=" + cursor:                       "query.cursor",
		"/api/v1/events?cursor=" + strings.Repeat("A", 65):                     "query.cursor",
		"/api/v1/events?cursor=" + url.QueryEscape("'; DROP TABLE events"):     "query.cursor",
		"/api/v1/audit?cursor=" + cursor:                                       "query.cursor",
		"/api/v1/events/0":                                                     "path.id",
		"/api/v1/events/x":                                                     "path.id",
	} {
		problem := r.expect(request("GET", path, nil), http.StatusUnprocessableEntity)
		if text := fmt.Sprint(problem["errors"]); !strings.Contains(text, location) {
			t.Errorf("%s: %v does not name %s", path, problem, location)
		}
	}
	// Whoever bounds a list by "7d" means another time with each page.
	for _, times := range []string{"", "&since=2000-01-01T00:00:00Z", "&since=2000-01-01T00:00:01Z&until=2999-01-01T00:00:00Z"} {
		if got, _ := keys(r.get("/api/v1/events?cursor=" + cursor + times)); !slices.Equal(got, []string{"a"}) {
			t.Errorf("the cursor itself%s lists %v", times, got)
		}
	}
}

// swap changes one bit inside a cursor.
func swap(cursor string) string {
	b, _ := base64.RawURLEncoding.DecodeString(cursor)
	b[8] ^= 1
	return base64.RawURLEncoding.EncodeToString(b)
}

// A cursor is read whatever it is made of, and never panics.
func FuzzCursor(f *testing.F) {
	for _, seed := range []string{"", "x", "AQAAAAAAAAABAAAAAAAAAAAAAAAAAAAAAAA", strings.Repeat("_", 34)} {
		f.Add(seed)
	}
	r := newRig(&testing.T{})
	f.Fuzz(func(t *testing.T, cursor string) {
		w, answer := r.in(t).send(request("GET", "/api/v1/events?cursor="+url.QueryEscape(cursor), nil))
		if w.Code != 200 && w.Code != 422 {
			t.Errorf("%q answered %d %v", cursor, w.Code, answer)
		}
	})
}

// An event is found by its key, whatever characters that has, and by its identifier.
func TestDetail(t *testing.T) {
	r := newRig(t)
	for _, key := range []string{"evt_1", "a/b", "..", ".", "ä ö?x=1&y#z", "100%", `"<>\`} {
		id := r.accept(key, journal.Failed)
		path := url.PathEscape(key)
		if strings.Trim(key, ".") == "" {
			path = strings.ReplaceAll(key, ".", "%2E")
		}
		byKey := r.get("/api/v1/events/billing/" + path)
		byID := r.get(fmt.Sprint("/api/v1/events/", id))
		if byKey["key"] != key || byKey["id"] != fmt.Sprint(id) || fmt.Sprint(byKey) != fmt.Sprint(byID) {
			t.Errorf("%q: by key %v, by id %v", key, byKey, byID)
		}
	}
	e := r.get("/api/v1/events/billing/evt_1")
	attempt := e["attempts"].([]any)[0].(map[string]any)
	for field, want := range map[string]any{
		"destination": "app", "number": 1.0, "outcome": "failed", "status": 500.0, "error": "status 500",
		"answer": "oh\uFFFD", "latency_ms": 1.5, "started_at": "2026-11-21T11:59:59Z",
	} {
		if attempt[field] != want {
			t.Errorf("attempt.%s = %v, want %v", field, attempt[field], want)
		}
	}
	delivery := e["deliveries"].([]any)[0].(map[string]any)
	if delivery["next_try"] != "2026-11-21T13:00:00Z" || delivery["held_until"] != nil || e["state"] != "failed" {
		t.Errorf("event %v", e)
	}
	for _, path := range []string{"/api/v1/events/billing/nothing", "/api/v1/events/other/evt_1", "/api/v1/events/billing/%00",
		"/api/v1/events/billing/%ff", "/api/v1/events/7"} {
		r.expect(request("GET", path, nil), http.StatusNotFound)
	}
}

// While the store fails or hangs the answer is a retryable 503 that repeats nothing of its error, and
// questions that wait for their turn do not wait for ever.
func TestStoreFails(t *testing.T) {
	r := newRig(t)
	r.records = broken{r.model}
	r.serve()
	for _, path := range []string{"/api/v1/events", "/api/v1/events/1", "/api/v1/events/billing/a", "/api/v1/keys/a", "/api/v1/destinations", "/api/v1/audit"} {
		w, answer := r.send(request("GET", path, nil))
		if w.Code != 503 || w.Header().Get("Retry-After") == "" || strings.Contains(fmt.Sprint(answer), "hunter2") {
			t.Errorf("%s answered %d %v", path, w.Code, answer)
		}
	}
	r.post("/api/v1/replay", map[string]any{"reason": "x", "filter": map[string]any{}}, 503)
}

// broken is a store whose errors hold a password.
type broken struct{ journal.Store }

var errBroken = errors.New("postgres://u:hunter2@db: connection refused")

func (broken) List(context.Context, journal.Filter, int64, int) (journal.Page, error) {
	return journal.Page{}, errBroken
}
func (broken) Find(context.Context, string, string) (int64, error) { return 0, errBroken }
func (broken) FindAnywhere(context.Context, string) ([]journal.Summary, error) {
	return nil, errBroken
}
func (broken) History(context.Context, int64) (*journal.History, error)    { return nil, errBroken }
func (broken) Open(context.Context) ([]journal.OpenCount, error)           { return nil, errBroken }
func (broken) Pauses(context.Context) ([]journal.Pause, error)             { return nil, errBroken }
func (broken) Audits(context.Context, int64, int) ([]journal.Audit, error) { return nil, errBroken }
func (broken) Replay(context.Context, journal.Replay, int) (journal.Replayed, error) {
	return journal.Replayed{}, errBroken
}

// Where nothing matches in one look the API looks on, and where that takes too long it says where to go on.
func TestSparseMatches(t *testing.T) {
	r := newRig(t)
	r.records = &sparse{Store: r.model}
	r.serve()
	list := r.get("/api/v1/events?limit=2")
	if got, cursor := keys(list); !slices.Equal(got, []string{"9", "4"}) || cursor == "" {
		t.Errorf("listed %v, cursor %q", got, cursor)
	}
}

// sparse has an event in every fifth look.
type sparse struct{ journal.Store }

func (s *sparse) List(_ context.Context, _ journal.Filter, before int64, _ int) (journal.Page, error) {
	if before == 0 {
		before = 12
	}
	page := journal.Page{Next: before - 1}
	if page.Next%5 == 4 {
		page.Events = []journal.Summary{{ID: page.Next, Key: fmt.Sprint(page.Next), ReceivedAt: time.Now()}}
	}
	return page, nil
}

// Why no delivery of an event is on record is said, and nothing of one that has some, also if all are done. Where attempts are kept for
// a shorter time than bodies, nobody knows any more where it was delivered: it is not said to have been delivered nowhere.
func TestNowhere(t *testing.T) {
	r := newRig(t)
	same := func(e *journal.Record) { e.LogicalKey, e.DropLogicalDuplicate = "payment-1", true }
	first := r.accept("first", journal.Done, same)
	r.accept("second", journal.Pending, same)
	r.accept("unrouted", journal.Pending, func(e *journal.Record) { e.Destinations = nil })
	for key, want := range map[string]string{
		"first":    "",
		"second":   "the same change had come as event " + journal.IDText(first),
		"unrouted": "no route wanted it, so it was delivered nowhere",
	} {
		var e api.Detail
		text, _ := json.Marshal(r.get("/api/v1/events/billing/" + key))
		if err := json.Unmarshal(text, &e); err != nil {
			t.Fatal(err)
		}
		if got := e.Nowhere(); got != want {
			t.Errorf("%s: %q, want %q", key, got, want)
		}
		if e.Deliveries = nil; key == "first" && e.Nowhere() != "where it was delivered is not kept any more" {
			t.Errorf("%s, without its attempts: %q", key, e.Nowhere())
		}
	}
}
