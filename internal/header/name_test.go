package header

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"testing"
)

func TestNames(t *testing.T) {
	for name, want := range map[string]struct {
		fold                      string
		own, forwarded, rewritten bool
	}{
		"X-Tenant":          {"x-tenant", false, false, false},
		"x_tenant":          {"x-tenant", false, false, false},
		"X.TENANT":          {"x-tenant", false, false, false},
		"XTenant":           {"xtenant", false, false, false},
		"Authorization":     {"authorization", false, false, false},
		"X-Forwarded-User":  {"x-forwarded-user", false, false, false},
		"Hookonce-Event-Id": {"hookonce-event-id", true, false, true},
		"hookonce_attempt":  {"hookonce-attempt", true, false, true},
		"Hookonces":         {"hookonces", false, false, false},
		"X_Forwarded_For":   {"x-forwarded-for", false, true, true},
		"Connection":        {"connection", false, false, true},
		"TE":                {"te", false, false, true},
		"host":              {"host", false, false, true},
		"content_length":    {"content-length", false, false, true},
	} {
		if got := Fold(name); got != want.fold {
			t.Errorf("Fold(%q) = %q", name, got)
		}
		if own, forwarded, rewritten := Own(name), Forwarded(name), Rewritten(name); own != want.own || forwarded != want.forwarded || rewritten != want.rewritten {
			t.Errorf("%q: own %v, forwarded %v, rewritten %v", name, own, forwarded, rewritten)
		}
	}
}

// What a destination's settings may add to deliveries, and what is taken: exactly the names that hookonce and HTTP set,
// in any spelling that an application could take for one of them. The rest of Webhook- is free.
func TestCheckSet(t *testing.T) {
	for _, name := range []string{"X-Team", "Authorization", "Cookie", "User-Agent", "Webhook-Tenant", "webhook-tenant", "Webhooks", "Hookonces", "Via"} {
		if err := CheckSet(name); err != nil {
			t.Errorf("%q is refused: %v", name, err)
		}
	}
	for _, name := range []string{
		"Idempotency-Key", "idempotency_key", "Webhook-Id", "webhook.id", "Webhook-Timestamp", "WEBHOOK-SIGNATURE", "Traceparent", "tracestate",
		"Hookonce-Key", "hookonce_anything", "Connection", "host", "Te", "transfer-encoding", "", "X y", "X:y", "X\r\nY", "Caf\u00e9",
	} {
		if CheckSet(name) == nil {
			t.Errorf("%q is taken", name)
		}
	}
}

// What the standard library's proxy does not hand on counts as rewritten here.
func TestRewrittenCoversTheProxy(t *testing.T) {
	var got http.Header
	service := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer service.Close()
	to, err := url.Parse(service.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: log.New(io.Discard, "", 0)}
	sent := []string{
		"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-User", "X-Real-Ip", "Via", "Authorization", "Cookie", "Content-Type", "X-Tenant", "Http2-Settings",
	}
	for _, name := range sent {
		r := httptest.NewRequest(http.MethodPost, "/", nil)
		r.Header.Set(name, "1")
		got = nil
		proxy.ServeHTTP(httptest.NewRecorder(), r)
		if got.Get(name) != "1" && !Rewritten(name) {
			t.Errorf("%s does not reach the service, and counts as handed on", name)
		}
	}
}
