package endtoend

import (
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A function that is billed by the second stands behind the gateway: it hangs while it starts, says that too much comes, when
// to come again, and breaks once. The event takes effect once, under one key, and not before the function said.
func TestInFrontOfAFunction(t *testing.T) {
	testskip.Long(t)
	if testing.Short() {
		t.Skip("waits for a second that the function asks for")
	}
	type call struct {
		key string
		at  time.Time
	}
	calls := make(chan call, 16)
	var attempts atomic.Int64 // of one event, which follow each other
	function := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then is it told that nobody waits for it any more
		calls <- call{r.Header.Get("Idempotency-Key"), time.Now()}
		switch attempts.Add(1) {
		case 1:
			<-r.Context().Done()
		case 2:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case 3:
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer function.Close()
	dir := t.TempDir()
	file := filepath.Join(dir, "hookonce.yaml")
	config := `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
destinations:
  - {name: function, url: %q, timeout: 250ms, backoff: 20ms, concurrency: 8}
sources:
  - {name: billing, provider: stripe, secrets: [` + proxySecret + `], routes: [{to: function}]}
`
	if err := os.WriteFile(file, fmt.Appendf(nil, config, function.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	gateway := mustLaunch(t, dir, "serve", "--config", file)
	if status, out := command(append(os.Environ(), "SECRET="+proxySecret), "send", "--provider", "stripe", "--secret", "env:SECRET", "--id", "evt_cold", "--to", "http://"+gateway.addr+"/in/billing"); status != 0 {
		t.Fatal(out)
	}
	var got []call
	for len(got) < 4 {
		select {
		case c := <-calls:
			got = append(got, c)
		case <-time.After(patience):
			t.Fatalf("the function was called %d times", len(got))
		}
	}
	if wait := got[2].at.Sub(got[1].at); wait < time.Second {
		t.Errorf("it was called again after %v, and had asked for 1s", wait)
	}
	for _, c := range got {
		if c.key == "" || c.key != got[0].key {
			t.Errorf("an attempt has the key %q, and the first %q", c.key, got[0].key)
		}
	}
	await(t, func() bool {
		_, out := command(append(os.Environ(), "HOOKONCE_ADMIN_URL=http://"+gateway.admin), "events", "list", "--state", "done", "--json")
		return strings.Contains(out, "evt_cold")
	})
	if len(calls) > 0 {
		t.Error("the function was called again after it had answered")
	}
}
