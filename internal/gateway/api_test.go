package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/config"
)

// call is one request to the API.
type call struct {
	method, path string
	body         any
	token        string
	header       http.Header
	host         string
}

// do sends a call and reads a JSON answer into out, unless that is nil.
func (c call) do(t *testing.T, g *Gateway, out any) *http.Response {
	t.Helper()
	var body io.Reader
	if c.body != nil {
		text, err := json.Marshal(c.body)
		if err != nil {
			t.Fatal(err)
		}
		body = bytes.NewReader(text)
	}
	req, err := http.NewRequest(c.method, "http://"+g.AdminAddr().String()+c.path, body)
	if err != nil {
		t.Fatal(err)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	if c.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	req.Host = c.host
	res, err := client(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if out != nil {
		if err := json.Unmarshal(text, out); err != nil {
			t.Fatalf("%s %s answered %d %s: %v", c.method, c.path, res.StatusCode, text, err)
		}
	}
	return res
}

// answers expects a status and returns the answer.
func (c call) answers(t *testing.T, g *Gateway, status int) map[string]any {
	t.Helper()
	var out map[string]any
	if res := c.do(t, g, &out); res.StatusCode != status {
		t.Fatalf("%s %s answered %d %v, want %d", c.method, c.path, res.StatusCode, out, status)
	}
	return out
}

// awaitState asks until the event is in the state.
func awaitState(t *testing.T, g *Gateway, key, state string) map[string]any {
	t.Helper()
	var last map[string]any
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); <-time.After(5 * time.Millisecond) {
		last = call{method: "GET", path: "/api/v1/events/orders/" + key}.answers(t, g, 200)
		if last["state"] == state {
			return last
		}
	}
	t.Fatalf("%s is not %s: %v", key, state, last)
	return nil
}

// An event is found, read, and replayed: failed, then dead, then done by force.
func TestOperatorsFindAndReplay(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		answer := make(chan int, 1)
		sink := newSink(t)
		sink.answer = func(string, int) int { return <-answer }
		cfg := configured(store, sink.URL)
		cfg.Delivery.Attempts = 1
		g, c := start(t, cfg), client(t)
		answer <- http.StatusTeapot
		insist(t, c, g, cfg.Sources[0], event("a/b"))
		dead := awaitState(t, g, "a%2Fb", "dead")
		attempt := dead["attempts"].([]any)[0].(map[string]any)
		if attempt["status"] != 418.0 || attempt["outcome"] != "dead" || attempt["error"] == "" {
			t.Errorf("the attempt is told as %v", attempt)
		}
		insist(t, c, g, cfg.Sources[0], event("other"))
		answer <- http.StatusOK
		awaitState(t, g, "other", "done")
		for _, key := range []string{"nothing", "%00", "%ff", "%2E%2E"} { // which not every database takes
			call{method: "GET", path: "/api/v1/events/orders/" + key}.answers(t, g, 404)
		}
		list := call{method: "GET", path: "/api/v1/events?state=dead&type=order.*"}.answers(t, g, 200)
		if events := list["events"].([]any); len(events) != 1 || events[0].(map[string]any)["key"] != "a/b" {
			t.Errorf("dead are %v", list)
		}
		replay := call{method: "POST", path: "/api/v1/events/orders/a%2Fb/replay", body: map[string]any{"reason": "mended"}}
		answer <- http.StatusOK
		if done := replay.answers(t, g, 200); done["deliveries"] != 1.0 || done["audit"] == "" {
			t.Errorf("replayed %v", done)
		}
		awaitState(t, g, "a%2Fb", "done")
		if refused := replay.answers(t, g, 409); !strings.Contains(fmt.Sprint(refused["detail"]), "force") {
			t.Errorf("replaying what is done: %v", refused)
		}
		replay.body = map[string]any{"reason": "again", "force": true}
		answer <- http.StatusOK
		replay.answers(t, g, 200)
		sink.await(t, "the forced delivery", func() bool { return sink.seen["a/b"] == 3 })
		if len(sink.keys["a/b"]) != 1 {
			t.Errorf("it came under the keys %v", sink.keys["a/b"])
		}
	})
}
