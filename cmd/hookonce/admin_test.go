package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
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
