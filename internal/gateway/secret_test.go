package gateway

import (
	"net/http"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/settings"
)

// An event says which of its source's secrets its signature was made with, as long as that is configured, and the overview how often each was used.
func TestEventTellsItsSecret(t *testing.T) {
	t.Parallel()
	cfg := configured(sqliteStore(t), newSink(t).URL)
	s := &cfg.Sources[0]
	s.Secrets = []settings.Secret{settings.Literal("a-fake-secret-to-retire"), settings.Literal("a-fake-secret-of-today")}
	ends := time.Now().Add(time.Hour).Truncate(time.Second)
	s.Secrets[0].Until = ends
	g, c := start(t, cfg), client(t)
	signer := *s
	signer.Secrets = s.Secrets[1:]
	if r, err := post(t, c, g, signer, event("evt_1")); err != nil || r.status != 200 {
		t.Fatalf("%+v %v", r, err)
	}
	var e api.Detail
	call{method: http.MethodGet, path: "/api/v1/events/orders/evt_1"}.do(t, g, &e)
	if !e.Vouched || e.Secret != 2 {
		t.Errorf("vouched %v, by secret %d", e.Vouched, e.Secret)
	}
	var o api.Overview
	call{method: http.MethodGet, path: "/api/v1/overview"}.do(t, g, &o)
	if got := o.Sources[0].Secrets; len(got) != 2 || got[0].Week != 0 || got[0].Until == nil || !got[0].Until.Equal(ends) || got[1].Hour != 1 || got[1].Week != 1 || got[1].Until != nil {
		t.Errorf("used were %+v", got)
	}
	if n := g.secretOf("orders", 12345); n != 0 {
		t.Errorf("a secret that is not configured is number %d", n)
	}
}
