package main

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/lru"
)

// A tail that loses its connection goes on behind what it has shown, repeats no line, says what was left out, and ends when a
// gateway refuses it. It shows nothing that moves the cursor.
func TestTail(t *testing.T) {
	message := func(id, kind, key, state string) string {
		return fmt.Sprintf("id: %s\nevent: %s\ndata: {\"id\":%q,\"source\":\"billing\",\"key\":%q,\"type\":\"a\\u001b[2J\",\"state\":%q,\"received_at\":\"2026-11-21T12:00:00Z\",\"deliveries\":[]}\n\n", id, kind, key, key, state)
	}
	answers := []string{
		": messages follow\nretry: 1000\n\n" + message("a", "event", "evt_1", "processing") + "event: left_out\ndata: {\"count\":7}\n\nevent: store_away\ndata: {}\n\n" + ":\nid: b\n\n" + "event: event\ndata: {\"cut",
		message("c", "state", "evt_1", "processing") + message("d", "state", "evt_1", "done") + message("e", "event", "evt_2", "done"),
		"403",
	}
	var after []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after = append(after, r.Header.Get("Last-Event-ID"))
		if len(after) == 1 && r.URL.RawQuery != "source=billing" {
			t.Errorf("asked for %s", r.URL)
		}
		if len(after) == 3 {
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `{"title":"x","status":403,"detail":"not any more"}`)
			return
		}
		fmt.Fprint(w, answers[len(after)-1])
	}))
	defer server.Close()
	var out, err bytes.Buffer
	tail := &tailing{w: &env{out: &out, err: &err}, client: newAdminClient(server.URL, ""), query: url.Values{"source": {"billing"}}, told: lru.New[string, string](tailMemory)}
	refused := tail.run(t.Context())
	const line = "2026-11-21 12:00:00Z  %-10s  billing  a\uFFFD[2J  %s\n"
	want := fmt.Sprintf(line, "processing", "evt_1") + fmt.Sprintf(line, "done", "evt_1") + fmt.Sprintf(line, "done", "evt_2")
	if got := out.String(); got != want || refused == nil || refused.Error() != "not any more" || strings.Join(after, ",") != ",b,e" {
		t.Errorf("%v, asked after %q, wrote\n%swant\n%s", refused, after, got, want)
	}
	for _, text := range []string{"7 were left out", "The store does not answer", "The connection is lost"} {
		if !strings.Contains(err.String(), text) {
			t.Errorf("%q does not say %q", err.String(), text)
		}
	}
}
