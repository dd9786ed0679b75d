package api_test

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/journal"
)

// An API that nobody asks takes little memory: its routes and schemas are made with the first request.
func TestMadeWhenAsked(t *testing.T) {
	if n := testing.AllocsPerRun(1, func() { api.New(api.Options{}) }); n > 100 {
		t.Errorf("%.0f allocations before anybody asks; want at most 100", n)
	}
}

// The document beside the API has every path, and says that a token is needed.
func TestDocument(t *testing.T) {
	r := newRig(t)
	_, doc := r.send(request("GET", "/api/v1/openapi.json", nil))
	if doc["openapi"] != "3.1.0" || doc["security"] == nil {
		t.Errorf("it is %v with security %v", doc["openapi"], doc["security"])
	}
	var got []string
	for path, methods := range doc["paths"].(map[string]any) {
		for method, operation := range methods.(map[string]any) {
			got = append(got, method+" "+path)
			if operation.(map[string]any)["summary"] == "" {
				t.Errorf("%s %s has no summary", method, path)
			}
		}
	}
	slices.Sort(got)
	want := []string{
		"get /api/v1/alerts", "get /api/v1/alerts/history", "get /api/v1/alerts/rules", "get /api/v1/audit", "get /api/v1/destinations", "get /api/v1/events", "get /api/v1/events/{id}",
		"get /api/v1/events/{source}/{key}", "get /api/v1/failures", "get /api/v1/history", "get /api/v1/keys/{key}", "get /api/v1/overview", "get /api/v1/refusals", "get /api/v1/sources", "get /api/v1/sources/{name}/missing", "get /api/v1/sources/{name}/refusals", "get /api/v1/stats", "get /api/v1/tail",
		"post /api/v1/alerts/acknowledge", "post /api/v1/alerts/channels/{name}/test", "post /api/v1/alerts/silences", "post /api/v1/alerts/silences/{id}/end",
		"post /api/v1/destinations/{name}/pause", "post /api/v1/destinations/{name}/resume",
		"post /api/v1/events/{id}/payload", "post /api/v1/events/{id}/replay", "post /api/v1/events/{source}/{key}/replay", "post /api/v1/reload", "post /api/v1/replay",
		"post /api/v1/sources/{name}/missing/dismiss", "post /api/v1/sources/{name}/reconcile",
	}
	if !slices.Equal(got, want) {
		t.Errorf("paths %q, want %q", got, want)
	}
}

// Many ask for the document at once, before it was made, in all its forms: each gets the same, and all of it.
func TestDocumentAskedForAtOnce(t *testing.T) {
	h := api.New(api.Options{})
	var mu sync.Mutex
	texts := map[string]string{}
	var askers sync.WaitGroup
	for range 8 {
		for form, begin := range map[string]string{".json": `{"components"`, "-3.0.json": `{"components"`, ".yaml": "components:", "-3.0.yaml": "components:"} {
			askers.Go(func() {
				w := httptest.NewRecorder()
				h.ServeHTTP(w, httptest.NewRequest("GET", "/api/v1/openapi"+form, nil))
				got, kind := w.Body.String(), "application/openapi+"+form[strings.LastIndex(form, ".")+1:]
				if w.Code != 200 || w.Header().Get("Content-Type") != kind || !strings.HasPrefix(got, begin) {
					t.Errorf("%s: %d, %s, %.60q", form, w.Code, w.Header().Get("Content-Type"), got)
				}
				mu.Lock()
				defer mu.Unlock()
				if first, ok := texts[form]; ok && first != got {
					t.Errorf("%s: two askers got two texts", form)
				}
				texts[form] = got
			})
		}
	}
	askers.Wait()
}

// Counts and sources are told as they are.
func TestStatsAndSources(t *testing.T) {
	r := newRig(t)
	for _, s := range []journal.State{journal.Dead, journal.Dead, journal.Failed, journal.Done} {
		r.accept(fmt.Sprint(s, r.ids.Next(now)), s)
	}
	if got := fmt.Sprint(r.get("/api/v1/stats")); got != "map[dead:2 events:4 failed:1 pending:0 processing:0]" {
		t.Errorf("stats %s", got)
	}
	if got := fmt.Sprint(r.get("/api/v1/sources")["sources"]); got != "[map[destinations:[app] name:billing path:/in/billing provider:stripe]]" {
		t.Errorf("sources %s", got)
	}
	r.expect(request("GET", "/api/v1/nothing", nil), 404)
	r.expect(request("DELETE", "/api/v1/events", nil), 404)
}
