package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/hookonce/hookonce/internal/config"
)

func pauseCall(name, verb string) call {
	return call{method: "POST", path: "/api/v1/destinations/" + name + "/" + verb, body: map[string]string{"reason": "test"}}
}

// awaitPaused waits until a gateway knows whether a destination is paused.
func awaitPaused(t *testing.T, g *Gateway, name string, paused bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); g.journal.Paused(name) != paused; <-time.After(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s paused: %v", name, !paused)
		}
	}
}

// A pause in one gateway holds in the others on the same database, and in one that starts later; what is
// sent meanwhile waits in the store, and comes when somebody resumes, in whichever gateway.
func TestPauseHoldsInEveryGateway(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	cfg := configured(postgresStore(t), sink.URL)
	first, second, c := start(t, cfg), start(t, cfg), client(t)
	pauseCall("orders", "pause").answers(t, first, 200)
	awaitPaused(t, second, "orders", true)
	third := start(t, cfg)
	for i, g := range []*Gateway{first, second, third} {
		insist(t, c, g, cfg.Sources[0], event(ids("evt", 3)[i]))
	}
	var list struct {
		Destinations []struct {
			Pause *struct{ By, Reason string }
			Open  []struct {
				State string
				Count int
			}
		}
	}
	call{method: "GET", path: "/api/v1/destinations"}.do(t, third, &list)
	d := list.Destinations[0]
	if d.Pause == nil || d.Pause.By != "local" || len(d.Open) != 1 || d.Open[0].State != "pending" || d.Open[0].Count != 3 {
		t.Errorf("the destination is told as %+v", d)
	}
	if n := sink.count(); n != 0 {
		t.Errorf("%d deliveries to a paused destination", n)
	}
	pauseCall("orders", "resume").answers(t, second, 200)
	sink.awaitIDs(t, ids("evt", 3))
	for _, g := range []*Gateway{first, second, third} {
		closeNow(t, g)
	}
	sink.eachOnce(t, ids("evt", 3))
}

// A pause outlives the process, and touches no other destination.
func TestPauseOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		cfg := configured(store, sink.URL)
		cfg.Sources = append(cfg.Sources, source("refunds", sink.URL))
		g := start(t, cfg)
		pauseCall("orders", "pause").answers(t, g, 200)
		closeNow(t, g)
		g, c := start(t, cfg), client(t)
		insist(t, c, g, cfg.Sources[0], event("a"))
		insist(t, c, g, cfg.Sources[1], event("b"))
		sink.awaitIDs(t, []string{"b"})
		if !g.journal.Paused("orders") || sink.seenTimes("a") != 0 {
			t.Errorf("paused: %v, delivered %d times", g.journal.Paused("orders"), sink.seenTimes("a"))
		}
		pauseCall("orders", "resume").answers(t, g, 200)
		sink.awaitIDs(t, []string{"a"})
	})
}

// seenTimes returns how often an id was delivered.
func (s *sink) seenTimes(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[id]
}

// A replay of what is being delivered changes nothing: it comes once.
func TestReplayWhileItIsDelivered(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		began, release := make(chan struct{}, 10), make(chan struct{})
		slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			began <- struct{}{}
			<-release
			sink.ServeHTTP(w, r)
		})
		sink.Server.Config.Handler = slow
		cfg := configured(store, sink.URL)
		g, c := start(t, cfg), client(t)
		insist(t, c, g, cfg.Sources[0], event("a"))
		<-began
		replay := call{method: "POST", path: "/api/v1/events/orders/a/replay", body: map[string]any{"reason": "impatience", "force": true}}
		for range 5 {
			replay.answers(t, g, http.StatusConflict)
		}
		close(release)
		awaitState(t, g, "a", "done")
		closeNow(t, g)
		sink.eachOnce(t, []string{"a"})
	})
}

// With tokens nothing but health is answered without one, on whatever address; and the log and the
// answers never repeat one.
func TestAdminTokens(t *testing.T) {
	t.Parallel()
	cfg := configured(sqliteStore(t), "")
	cfg.Admin = "0.0.0.0:0"
	cfg.AdminTokens = []config.AdminToken{
		{Name: "prometheus", Token: settings.Literal("a-fake-token-for-reading"), Role: config.RoleRead},
		{Name: "oncall", Token: settings.Literal("a-fake-token-for-operators"), Role: config.RoleOperator},
	}
	g := start(t, cfg)
	for path, without := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/metrics": 401, "/api/v1/stats": 401, "/api/v1/openapi.json": 401, "/api/v1/nothing": 401,
	} {
		if res := (call{method: "GET", path: path}).do(t, g, nil); res.StatusCode != without {
			t.Errorf("%s without a token answered %d, want %d", path, res.StatusCode, without)
		}
		if res := (call{method: "GET", path: path, token: "forged"}).do(t, g, nil); res.StatusCode != without {
			t.Errorf("%s with a forged token answered %d, want %d", path, res.StatusCode, without)
		}
		want := 200
		if path == "/api/v1/nothing" {
			want = 404
		}
		if res := (call{method: "GET", path: path, token: "a-fake-token-for-reading"}).do(t, g, nil); res.StatusCode != want {
			t.Errorf("%s with a token answered %d, want %d", path, res.StatusCode, want)
		}
	}
	replay := call{method: "POST", path: "/api/v1/replay", body: map[string]any{"reason": "x", "filter": map[string]any{}}}
	replay.token = "a-fake-token-for-reading"
	replay.answers(t, g, http.StatusForbidden)
	replay.token = "a-fake-token-for-operators"
	replay.answers(t, g, http.StatusOK)
	for path, operator := range map[string]int{
		"/api/v1/reload": http.StatusConflict, "/api/v1/destinations/orders/pause": http.StatusNotFound, "/api/v1/destinations/orders/resume": http.StatusNotFound,
	} {
		change := call{method: "POST", path: path, body: map[string]any{"reason": "x"}}
		if path == "/api/v1/reload" {
			change.body = nil
		}
		for token, want := range map[string]int{"": http.StatusUnauthorized, "a-fake-token-for-reading": http.StatusForbidden, "a-fake-token-for-operators": operator} {
			change.token = token
			if res := change.do(t, g, nil); res.StatusCode != want {
				t.Errorf("%s with the token %q answered %d, want %d", path, token, res.StatusCode, want)
			}
		}
	}
}

// Without tokens a page that was made to look like this machine learns nothing, metrics included.
func TestAdminWithoutTokens(t *testing.T) {
	t.Parallel()
	g := start(t, configured(sqliteStore(t), ""))
	rebound := call{method: "GET", path: "/api/v1/events", host: "evil.example"}
	rebound.answers(t, g, http.StatusForbidden)
	forged := call{method: "POST", path: "/api/v1/replay", body: map[string]any{"reason": "x", "filter": map[string]any{}},
		header: http.Header{"Origin": {"https://evil.example"}}}
	forged.answers(t, g, http.StatusForbidden)
	for name, c := range map[string]struct {
		call
		want int
	}{
		"a program here":          {call{}, 200},
		"by name":                 {call{host: "localhost:8081"}, 200},
		"a rebound name":          {call{host: "evil.example"}, 403},
		"through a proxy":         {call{header: http.Header{"X-Forwarded-For": {"192.0.2.1"}}}, 403},
		"a script of a page":      {call{header: http.Header{"Origin": {"https://evil.example"}}}, 403},
		"an image of a page":      {call{header: http.Header{"Sec-Fetch-Site": {"cross-site"}}}, 403},
		"health, by whatever way": {call{path: "/healthz", host: "evil.example"}, 200},
	} {
		c.method = "GET"
		if c.path == "" {
			c.path = "/metrics"
		}
		if res := c.do(t, g, nil); res.StatusCode != c.want {
			t.Errorf("%s: %s answered %d, want %d", name, c.path, res.StatusCode, c.want)
		}
	}
}
