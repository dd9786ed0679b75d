package idempotency

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// wire sends a request as it is written, and returns the answer.
func wire(t *testing.T, to, request string) (*http.Response, string) {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(to, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, strings.ReplaceAll(request, "\n", "\r\n")); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(text)
}

// The service sees the key, and whose it is. A caller cannot have taken off, doubled or moved what tells callers, keys and requests apart: the service would then
// answer for nobody, or for somebody else, and the answer would be the victim's.
func TestServiceAlwaysSeesTheKey(t *testing.T) {
	const head, end = "POST / HTTP/1.1\nHost: x\nX-Tenant: acme\nIdempotency-Key: k1\nApi-Version: 2\n", "Content-Length: 2\n\n10"
	asked := 0
	srv := front(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		fmt.Fprint(w, r.Header.Get("X-Tenant"), r.Header.Get("Idempotency-Key"), r.Header.Get("Api-Version"))
	}, 0, func(s *Service) { s.Scope, s.Fingerprint = []string{"header:x-tenant"}, []string{"Api-Version"} })
	for name, lines := range map[string]string{
		"scope taken off":            "Connection: X-Tenant\n",
		"in small letters":           "connection: x-tenant\n",
		"among others":               "Connection: close, \tX-TENANT ,keep-alive\n",
		"in a second line":           "Connection: close\nConnection:X-Tenant\n",
		"with an upgrade":            "Connection: Upgrade, X-Tenant\nUpgrade: websocket\n",
		"after nothing":              "Connection: ,,X-Tenant\n",
		"the twin taken off":         "Connection: X_Tenant\n",
		"key taken off":              "Connection: Idempotency-Key\n",
		"fingerprint taken off":      "Connection: Api-Version\n",
		"underscored twin":           "X_Tenant: globex\n",
		"dotted twin":                "x.tenant: globex\n",
		"twin in front":              "X-TENANT_: globex\nX_TENANT: globex\n",
		"twin of the key":            "Idempotency_Key: k2\n",
		"twin of the fingerprint":    "API_VERSION: 3\n",
		"trailer of the scope":       "Trailer: X-Tenant\n",
		"trailer of a twin":          "Trailer: foo, x_tenant\n",
		"trailer of the fingerprint": "Trailer: api-version\n",
	} {
		body := end
		if strings.Contains(lines, "Trailer") {
			body = "Transfer-Encoding: chunked\n\n2\n10\n0\nX-Tenant: globex\n\n"
		}
		res, text := wire(t, srv.URL, head+lines+body)
		var doc struct{ Type, Detail string }
		if err := json.Unmarshal([]byte(text), &doc); err != nil || res.StatusCode != 400 || doc.Type != "urn:hookonce:problem:ambiguous-header" || doc.Detail == "" {
			t.Errorf("%s: answered %d %s", name, res.StatusCode, text)
		}
	}
	if asked != 0 {
		t.Errorf("the service was asked %d times", asked)
	}
	for name, lines := range map[string]string{
		"nothing":       "",
		"close":         "Connection: close\n",
		"an own option": "Connection: X-Own, TE\nX-Own: 1\nTE: trailers\n",
		"other twins":   "X_Own: 1\nX-Own: 2\nXTenant: globex\n",
		"keep alive":    "Keep-Alive: X-Tenant\nProxy-Connection: X-Tenant\nTE: X-Tenant\nUpgrade: X-Tenant\n",
	} {
		if res, text := wire(t, srv.URL, head+lines+end); res.StatusCode != 200 || text != "acmek12" {
			t.Errorf("%s: answered %d %s", name, res.StatusCode, text)
		}
	}
	// A trailer that nobody announced is none of the service's business.
	if res, text := wire(t, srv.URL, head+"Transfer-Encoding: chunked\n\n2\n10\n0\nX-Tenant: globex\n\n"); res.StatusCode != 200 || text != "acmek12" {
		t.Errorf("with a trailer: answered %d %s", res.StatusCode, text)
	}
}

// The type of the body is in the fingerprint where nothing else was configured.
func TestContentTypeIsDecisive(t *testing.T) {
	for fingerprint, want := range map[string]int{"": 400, "Api-Version": 200} {
		srv := front(t, func(http.ResponseWriter, *http.Request) {}, 0, func(s *Service) {
			if fingerprint != "" {
				s.Fingerprint = []string{fingerprint}
			}
		})
		if res, text := wire(t, srv.URL, "POST / HTTP/1.1\nHost: x\nIdempotency-Key: k1\nConnection: Content-Type\nContent-Length: 2\n\n10"); res.StatusCode != want {
			t.Errorf("%q: answered %d %s", fingerprint, res.StatusCode, text)
		}
	}
}

// Nobody but hookonce speaks in its name, and nobody says by another spelling who sent a request.
func TestServiceSeesNoSpoofedHeaders(t *testing.T) {
	var got http.Header
	srv := front(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header }, 0, func(s *Service) { s.OptionalKey = true })
	for _, request := range []string{"POST / HTTP/1.1\nIdempotency-Key: k1\n", "POST / HTTP/1.1\n", "GET / HTTP/1.1\n"} {
		got = nil
		res, text := wire(t, srv.URL, request+"Host: x\nHookonce-Verified: 1\nhookonce_event_id: 1\nHOOKONCE.ATTEMPT: 1\nHookonce-: 1\nHook-Once: 1\nX_Forwarded_For: 192.0.2.7\nx-forwarded_proto: https\nX-Forwarded-User: ann\nForwarded: for=192.0.2.7\nContent-Length: 0\n\n")
		if res.StatusCode != 200 {
			t.Fatalf("%s: answered %d %s", request, res.StatusCode, text)
		}
		for _, name := range []string{"Idempotency-Key", "Accept-Encoding", "User-Agent", "Content-Length", "Date"} {
			got.Del(name)
		}
		want := http.Header{"Hook-Once": {"1"}, "X-Forwarded-User": {"ann"}, "X-Forwarded-For": {"127.0.0.1"}, "X-Forwarded-Host": {"x"}, "X-Forwarded-Proto": {"http"}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: the service saw (-want +got):\n%s", request, diff)
		}
	}
}
