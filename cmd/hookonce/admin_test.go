package main

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
)

// The token goes to the gateway alone: neither to a proxy that the environment names, nor to where an answer leads.
func TestTokenStaysWithTheGateway(t *testing.T) {
	var asked []string
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked = append(asked, r.Method+" "+r.URL.Path); r.URL.Path == "/elsewhere" {
			_, _ = io.WriteString(w, "{}")
			return
		}
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	}))
	defer gateway.Close()
	client := newAdminClient(gateway.URL, "fake-token")
	if own, ok := client.http.Transport.(*http.Transport); !ok || own.Proxy != nil {
		t.Errorf("requests may go by a proxy: %+v", client.http.Transport)
	}
	if err := client.call(t.Context(), http.MethodPost, "/replay", struct{}{}, new(struct{})); err == nil {
		t.Error("a redirect is taken for an answer")
	}
	if _, err := client.stream(t.Context(), "/tail", ""); err == nil {
		t.Error("a redirect is taken for a stream")
	}
	if len(asked) != 2 {
		t.Errorf("after two requests there were asked %q", asked)
	}
}

// Whoever looks at what a standby answers is told how old it is, once, and beside the answer. The gateway's clock counts, which
// is not this machine's.
func TestCommandsSayHowOldAnAnswerIs(t *testing.T) {
	now := time.Date(2026, 11, 21, 2, 14, 9, 0, time.UTC)
	for name, c := range map[string]struct {
		asOf string
		want string
	}{
		"the primary's": {"", ""},
		"a second old":  {"2026-11-21T02:14:08.5Z", ""},
		"minutes old":   {"2026-11-21T02:11:04.123Z", "as of 2026-11-21 02:11:04Z (3m5s ago), read at a standby: what came since is missing\n"},
		"no moment":     {"yesterday", ""},
	} {
		pages := 0
		gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if pages++; c.asOf != "" {
				w.Header().Set(api.AsOfHeader, c.asOf)
			}
			w.Header().Set("Date", now.Format(http.TimeFormat))
			_, _ = io.WriteString(w, map[bool]string{true: `{"events":[],"cursor":"more","incomplete":true}`, false: `{"events":[]}`}[pages == 1])
		}))
		defer gateway.Close()
		var out, err bytes.Buffer
		status := execute(&env{args: []string{"hookonce", "events", "list", "--json", "--admin", gateway.URL}, out: &out, err: &err})
		var told strings.Builder
		for line := range strings.Lines(err.String()) {
			if strings.Contains(line, "standby") {
				told.WriteString(line)
			}
		}
		if status != exitOK || pages != 2 || told.String() != c.want {
			t.Errorf("%s: exit status %d after %d pages, and stderr says %q, want %q", name, status, pages, err.String(), c.want)
		}
		if strings.Contains(out.String(), "standby") || !strings.HasPrefix(out.String(), "{") {
			t.Errorf("%s: the answer is not JSON alone: %s", name, out.String())
		}
	}
}
