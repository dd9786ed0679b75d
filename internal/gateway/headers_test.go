package gateway

import (
	"errors"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/provider/spec"
)

// reader is an application that notes the headers of what it gets, and takes no more of them than 12 KiB: 8 KiB, and what
// net/http adds to that.
type reader struct {
	board
	address string
	got     []http.Header
}

func newReader(t *testing.T) *reader {
	r := &reader{board: newBoard()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{MaxHeaderBytes: 8 << 10, Handler: http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, req.Header)
		r.changed()
	})}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(l) }()
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := <-ended; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	r.address = "http://" + l.Addr().String() + "/hooks"
	return r
}

// next waits for the n-th delivery, from 1, and returns its headers.
func (r *reader) next(t *testing.T, n int) http.Header {
	t.Helper()
	r.await(t, "a delivery", func() bool { return len(r.got) >= n })
	return r.got[n-1]
}

// evil is what a stranger puts beside a captured request: nothing of it may reach an application.
func evil() http.Header {
	h := http.Header{}
	for _, name := range []string{
		"Proxy", "X-Original-Url", "X-Rewrite-Url", "X-Original-Host", "X-Http-Method-Override", "X-Method-Override", "X-Real-Ip", "X-Client-Ip", "True-Client-Ip",
		"Cf-Connecting-Ip", "Remote-User", "X-Remote-User", "X-Authenticated-User", "Ssl-Client-Verify", "X-Ssl-Client-Verify", "X-Client-Cert", "Range", "If-None-Match",
		"X-Forwarded-For", "Forwarded", "Via", "Cookie", "Authorization", "Idempotency-Key", "Webhook-Id", "Webhook-Signature", "Hookonce-Key", "Hookonce-Forced",
		"Hookonce_Key", "Hookonce.Key", "hookonce_attempt", "Idempotency_Key", "X_GitHub_Event", "X.GitHub.Event", "x-github.event", "X-Github_Delivery",
		"Traceparent", "Tracestate",
	} {
		h[name] = []string{"evil"}
	}
	h["Traceparent"] = []string{"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	return h
}

// custom is a sender of which nothing is known but how it signs.
func custom(to string) config.Source {
	s := source("custom", to)
	s.Provider = "custom"
	s.Spec = &spec.Spec{
		Name: "acme", Verify: []spec.Verify{{Signature: spec.Signature{In: "header:X-Acme-Signature"}, Sign: []spec.Value{"body"}}},
		Event: spec.Extract{Key: [][]spec.Value{{"json:$.id"}}, Type: []spec.Value{"header:X-Acme-Event"}},
	}
	return s
}

// sourcesOf are a sender of the catalogue and one that nothing is known of, in both modes of delivery.
func sourcesOf(to string) []config.Source {
	github := source("github", to)
	github.Provider = "github"
	all := []config.Source{github, custom(to)}
	for _, s := range slices.Clone(all) {
		s.Name, s.Mode = s.Name+"-sync", config.Sync
		s.Secrets = []settings.Secret{settings.Literal("secret-of-" + s.Name)}
		all = append(all, s)
	}
	return all
}

// genuine is a signed request of a source, with what its sender sends.
func genuine(t *testing.T, s config.Source, id string) *hookonce.Request {
	t.Helper()
	h := http.Header{"Content-Type": {"application/json"}, "User-Agent": {"Sender/1"}, "X-Acme-Event": {"order.paid"}}
	if s.Provider == "github" {
		h = http.Header{
			"Content-Type": {"application/json"}, "User-Agent": {"GitHub-Hookshot/0000000"},
			"X-Github-Event": {"push"}, "X-Github-Delivery": {id}, "X-Github-Hook-Id": {"1"}, "X-Hub-Signature": {"sha1=00"},
		}
	}
	return signWith(t, s, h, event(id))
}

func signWith(t *testing.T, s config.Source, h http.Header, body []byte) *hookonce.Request {
	t.Helper()
	p, err := s.NewProvider()
	if err != nil {
		t.Fatal(err)
	}
	req := &hookonce.Request{Method: http.MethodPost, Header: h, Body: body, Now: time.Now()}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// Whoever posts a captured request first chooses no header that an application acts on, and takes none away.
func TestStrangersHeadersReachNoApplication(t *testing.T) {
	t.Parallel()
	app := newReader(t)
	cfg := configured(sqliteStore(t), "")
	cfg.Sources = sourcesOf(app.address)
	g, c := start(t, cfg), client(t)
	for i, s := range cfg.Sources {
		req := genuine(t, s, "evt_"+s.Name)
		want := maps.Clone(req.Header)
		maps.Copy(req.Header, evil())
		req.Header["Connection"] = []string{"X-GitHub-Event, Content-Type, X-Acme-Event", "x-acme-signature, x-github-hook-id"}
		req.Header["X-Github-Junk"] = []string{strings.Repeat("j", 13_000)}
		req.Header["X-Junk"] = []string{strings.Repeat("j", 13_000)}
		if r, err := postSigned(c, g, s.Name, req.Header, req.Body); err != nil || r.status != http.StatusOK {
			t.Fatalf("%s: %+v, %v", s.Name, r, err)
		}
		got := app.next(t, i+1)
		for name, values := range got {
			if strings.Contains(strings.Join(values, ""), "evil") || strings.Contains(values[0], "4bf92f35") || strings.HasSuffix(name, "Junk") {
				t.Errorf("%s: %s: %.20q reaches the application", s.Name, name, values)
			}
		}
		for name := range evil() {
			_, ours := map[string]bool{"Idempotency-Key": true, "Hookonce-Key": true, "Traceparent": true}[name]
			if _, there := got[name]; there && !ours {
				t.Errorf("%s: there is a %s", s.Name, name)
			}
		}
		for name, values := range want {
			if !slices.Equal(got[name], values) {
				t.Errorf("%s: %s is %q, want %q", s.Name, name, got[name], values)
			}
		}
		if key := got.Get("Idempotency-Key"); key != s.Name+":evt_"+s.Name {
			t.Errorf("%s: the key is %q", s.Name, key)
		}
		// The genuine one is a copy of what was delivered.
		if r, err := postSigned(c, g, s.Name, genuine(t, s, "evt_"+s.Name).Header, req.Body); err != nil || r.status != http.StatusOK {
			t.Errorf("%s: the genuine one: %+v, %v", s.Name, r, err)
		}
	}
}

// Junk in what an application needs is refused, and the genuine request that comes later is delivered.
func TestJunkInWhatIsNeededIsRefused(t *testing.T) {
	t.Parallel()
	app := newReader(t)
	cfg := configured(sqliteStore(t), "")
	cfg.Sources = sourcesOf(app.address)
	g, c := start(t, cfg), client(t)
	junk := strings.Repeat("j", 20_000)
	for i, s := range cfg.Sources {
		id := "evt_" + s.Name
		for _, name := range []string{"User-Agent", "Content-Type", "X-Github-Event", "X-Acme-Event"} {
			if strings.HasPrefix(name, "X-") && strings.HasPrefix(name, "X-Github") != (s.Provider == "github") {
				continue
			}
			req := genuine(t, s, id)
			req.Header.Set(name, junk)
			if r, err := postSigned(c, g, s.Name, req.Header, req.Body); err != nil || r.status != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s with junk in %s: %+v, %v", s.Name, name, r, err)
			}
		}
		req := genuine(t, s, id)
		if r, err := postSigned(c, g, s.Name, req.Header, req.Body); err != nil || r.status != http.StatusOK {
			t.Fatalf("%s: the genuine one: %+v, %v", s.Name, r, err)
		}
		if got := app.next(t, i+1); got.Get("Idempotency-Key") != s.Name+":"+id {
			t.Errorf("%s: %q", s.Name, got)
		}
	}
}

// What a destination asks for is kept for it, and passes to no other.
func TestAlsoPass(t *testing.T) {
	t.Parallel()
	edge, plain := newReader(t), newReader(t)
	cfg := configured(sqliteStore(t), "")
	to := cfg.NewDestination("edge", edge.address)
	to.AlsoPass = []string{"X-Real-IP", "X-Edge-*"}
	only := cfg.NewDestination("plain", plain.address)
	cfg.Destinations = []config.Destination{to, only}
	s := source("github", "")
	s.Provider, s.Routes = "github", []config.Route{{To: []string{"edge", "plain"}}}
	cfg.Sources = []config.Source{s}
	g := start(t, cfg)
	req := genuine(t, s, "evt_1")
	maps.Copy(req.Header, http.Header{"X-Real-Ip": {"192.0.2.1"}, "X-Edge-Region": {"eu"}, "X-Else": {"1"}, "Remote-User": {"root"}})
	if r, err := postSigned(client(t), g, "github", req.Header, req.Body); err != nil || r.status != http.StatusOK {
		t.Fatalf("%+v, %v", r, err)
	}
	if got := edge.next(t, 1); got.Get("X-Real-Ip") != "192.0.2.1" || got.Get("X-Edge-Region") != "eu" || got.Get("X-Else")+got.Get("Remote-User") != "" || got.Get("X-Github-Event") != "push" {
		t.Errorf("to the one that asks: %q", got)
	}
	if got := plain.next(t, 1); got.Get("X-Real-Ip")+got.Get("X-Edge-Region")+got.Get("X-Else") != "" || got.Get("X-Github-Event") != "push" {
		t.Errorf("to the other: %q", got)
	}
}
