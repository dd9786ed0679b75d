package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"github.com/hookonce/hookonce/internal/testskip"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

const appSecret = "whsec_ZmFrZSBzZWNyZXQgb2YgdGhlIGFwcA=="

// app is an application behind the gateway, which keeps what it is told by source. It verifies what comes in both ways in
// which a gateway signs, and finds the same.
type app struct {
	*httptest.Server
	board
	events map[string][]hookonce.Event
	faults []error
}

func newApp(t *testing.T) *app {
	a := &app{board: newBoard(), events: map[string][]hookonce.Event{}}
	behind := provider.Hookonce(appSecret)
	next := httpsigtest.Of(httpsig.ECDSAP384SHA384) // the application knows the key that replaces the other
	withKeys := provider.HookonceHTTP(provider.HookonceHTTPConfig{Keys: []string{next.Public}})
	a.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var d *hookonce.Verified
		if err == nil {
			req := &hookonce.Request{Method: r.Method, URL: "http://" + r.Host + r.RequestURI, Header: r.Header, Body: body, Now: time.Now()}
			d, err = behind.Open(req)
			if other, otherwise := withKeys.Open(req); otherwise != nil || err == nil && !reflect.DeepEqual(other.Events, d.Events) {
				err = fmt.Errorf("by its HTTP message signature it is %+v: %w", other, otherwise)
			}
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		defer a.changed()
		if err != nil {
			a.faults = append(a.faults, fmt.Errorf("%s: %w", r.Header.Get("Hookonce-Source"), err))
			return
		}
		a.events[d.Events[0].Source] = append(a.events[d.Events[0].Source], d.Events...)
	}))
	t.Cleanup(a.Close)
	return a
}

// behind returns a configuration in which all of the sources deliver to the app, which verifies what comes.
func (a *app) behind(t *testing.T, store config.Store, sources ...config.Source) *config.Config {
	cfg := configured(store, "")
	to := cfg.NewDestination("app", a.URL)
	to.Secrets = []settings.Secret{settings.Literal(appSecret)}
	to.HTTPSignature = []config.HTTPKey{
		{ID: "app-2025", Key: settings.Literal(httpsigtest.Of(httpsig.Ed25519).Private)},
		{ID: "app-2026", Key: settings.Literal(httpsigtest.Of(httpsig.ECDSAP384SHA384).Private)},
	}
	cfg.Destinations = []config.Destination{to}
	for i := range sources {
		sources[i].To, sources[i].Routes = "", []config.Route{{To: []string{"app"}}}
	}
	cfg.Sources = sources
	return cfg
}

// fakeSecretOf returns a secret in the form that the provider wants.
func fakeSecretOf(s spec.Spec) string {
	switch v := s.Verify[0]; {
	case s.Name == "braintree":
		return "fake-public:fake-private"
	case v.Kind == spec.Basic:
		return "fake-user:fake-password"
	case s.Name == "contentful":
		return strings.Repeat("fake", 16)
	case v.Key == spec.KeyWhsec:
		return "whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
	case v.Key == spec.KeyHex:
		return strings.Repeat("00ff", 16)
	case v.Key == spec.KeyBase64:
		return "ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
	}
	return "fake-secret-for-tests-that-is-long-enough"
}

// TestFactsAgreeOnBothSides: for every provider of the catalogue whose deliveries can be made here, an
// application behind the gateway sees the event as it would without one.
func TestFactsAgreeOnBothSides(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	var sources []config.Source
	want := map[string]hookonce.Event{}
	requests := map[string]func() *hookonce.Request{} // signed when they are sent: senders' signatures are soon too old
	for _, name := range provider.Names() {
		description, err := provider.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if !description.Imitable() {
			continue
		}
		s := source("from-"+name, "")
		s.Provider, s.Secrets = name, []settings.Secret{settings.Literal(fakeSecretOf(description))}
		if description.SignsURL() {
			s.URL = "https://shop.example/in"
		}
		p, err := s.NewProvider()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sources = append(sources, s)
		requests[s.Name] = func() *hookonce.Request {
			header, body := p.Spec().Sample(spec.Sample{ID: "9007199254740993", Version: 7, Time: time.Now()})
			req := &hookonce.Request{Method: http.MethodPost, URL: "https://shop.example/in", Header: header, Body: body, Now: time.Now()}
			if name == "twilio-events" {
				sum := sha256.Sum256(body)
				req.URL += "?bodySHA256=" + hex.EncodeToString(sum[:])
			}
			if err := p.Sign(req); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			d, err := p.Open(req)
			if err != nil || len(d.Events) != 1 {
				t.Fatalf("%s: %+v, %v", name, d, err)
			}
			want[s.Name] = d.Events[0]
			return req
		}
	}
	g, c := start(t, a.behind(t, sqliteStore(t), sources...)), client(t)
	for name, make := range requests {
		req := make()
		_, query, _ := strings.Cut(req.URL, "?")
		path := name
		if query != "" {
			path += "?" + query
		}
		r, err := patiently(func() (reply, error) { return postSigned(c, g, path, req.Header, req.Body) })
		if err != nil || r.status/100 != 2 {
			t.Fatalf("%s: answered %+v, %v", name, r, err)
		}
	}
	a.await(t, "every source's event", func() bool { return len(a.events)+len(a.faults) == len(requests) })
	if len(a.faults) > 0 || len(requests) < 50 {
		t.Fatalf("of %d: %v", len(requests), a.faults)
	}
	for name, direct := range want {
		got := a.events[name][0]
		if !bytes.Equal(got.Body, direct.Body) {
			t.Errorf("%s: another body", name)
		}
		if direct.Key == "" || direct.Coalesce { // see TestUnkeyedBehindTheGateway
			if got.Key != got.Gateway.IdempotencyKey || !strings.HasPrefix(got.Key, name+"#") {
				t.Errorf("%s: key %q", name, got.Key)
			}
			direct.Key, direct.KeySigned, direct.Coalesce = got.Key, true, false
		}
		if !got.Time.Equal(direct.Time) || got.Source != name || got.Coalesce {
			t.Errorf("%s: source %q, at %v, want %v", name, got.Source, got.Time, direct.Time)
		}
		if x, y := comparable(got), comparable(direct); !reflect.DeepEqual(x, y) {
			t.Errorf("%s: behind the gateway\n%+v, in front of it\n%+v", name, x, y)
		}
	}
}

// comparable returns what must be equal on both sides, of what can be compared at sight.
func comparable(ev hookonce.Event) map[string]any {
	return map[string]any{
		"provider": ev.Provider, "key": ev.Key, "signed": ev.KeySigned, "delivery": ev.AttemptID, "type": ev.Type,
		"resource": ev.Resource, "tenant": ev.Tenant, "digest": hex.EncodeToString(ev.Digest), "logical": ev.Logical,
		"version": ev.Version, "scope": ev.Scope, "rank": ev.Rank,
	}
}

// Each event of a batch has facts of its own.
func TestFactsOfABatch(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	s := goCardless("")
	g, c := start(t, a.behind(t, sqliteStore(t), s)), client(t)
	body := `{"events":[{"id":"EV1","resource_type":"payments","action":"paid","created_at":"2026-01-02T03:04:05Z","links":{"payment":"PM1"}},
		{"id":"EV2","resource_type":"refunds","action":"created","created_at":"2026-01-02T03:04:06Z","links":{"refund":"RF1","organisation":"OR1"}}]}`
	if r, err := post(t, c, g, s, []byte(body)); err != nil || r.status != http.StatusOK {
		t.Fatalf("answered %+v, %v", r, err)
	}
	a.await(t, "both events", func() bool { return len(a.events[s.Name])+len(a.faults) == 2 })
	got := map[string]bool{}
	for _, ev := range a.events[s.Name] {
		got[fmt.Sprint(ev.Key, ev.Type, ev.Resource, ev.Tenant, ev.Time.Second())] = true
	}
	if want := map[string]bool{"EV1payments.paidPM15": true, "EV2refunds.createdRF1OR16": true}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, %v", got, a.faults)
	}
}

// What is delivered past the store says the same, and that it was.
func TestFactsPastTheStore(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	cluster, a := pgtest.Start(t, pgtest.Options{}), newApp(t)
	s := source("orders", "")
	s.OnStoreDown = config.Open
	g, c := start(t, a.behind(t, config.Store{Driver: config.Postgres, DSN: cluster.DSN(t)}, s)), client(t)
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	if r, err := post(t, c, g, s, event("evt_1")); err != nil || r.verdict != "unprotected" {
		t.Fatalf("answered %+v, %v", r, err)
	}
	if len(a.faults) > 0 || len(a.events["orders"]) != 1 {
		t.Fatal(a.faults)
	}
	if ev := a.events["orders"][0]; ev.Key != "evt_1" || !ev.KeySigned || ev.Type != "order.paid" || !ev.Gateway.Unprotected || ev.Gateway.Attempt != 0 {
		t.Errorf("%+v", ev)
	}
	if err := cluster.Restart(); err != nil { // for the gateway to end in peace
		t.Fatal(err)
	}
}

// Copies of the gateway's delivery have the same key, also of events that have none or whose key is taken over by the
// next; other events of theirs have another one.
func TestUnkeyedBehindTheGateway(t *testing.T) {
	t.Parallel()
	for name, repeat := range map[string]spec.Repeat{"off": spec.Off, "coalesce": spec.Coalesce} {
		t.Run(name, func(t *testing.T) {
			a := newApp(t)
			s := repeating("", repeat)
			g, c := start(t, a.behind(t, sqliteStore(t), s)), client(t)
			for n := range 2 {
				if r, err := post(t, c, g, s, []byte(`{"id":"a"}`)); err != nil || r.status != http.StatusOK {
					t.Fatalf("answered %+v, %v", r, err)
				}
				a.await(t, "the delivery", func() bool { return len(a.events[s.Name]) > n })
			}
			one, other := a.events[s.Name][0], a.events[s.Name][1]
			if len(a.faults) > 0 || one.Key == "" || one.Key == other.Key || one.Coalesce || one.Header.Get("Hookonce-Key") != "" {
				t.Errorf("%q, %q, coalesce %v, %v", one.Key, other.Key, one.Coalesce, a.faults)
			}
		})
	}
}

// What a stranger, or a sender, says under names of ours is not kept, however it is spelt, and comes to no application.
func TestNobodyElsesFacts(t *testing.T) {
	t.Parallel()
	a := newApp(t)
	s := source("orders", "")
	g, c := start(t, a.behind(t, sqliteStore(t), s)), client(t)
	p, err := s.NewProvider()
	if err != nil {
		t.Fatal(err)
	}
	req := &hookonce.Request{Method: http.MethodPost, Header: http.Header{}, Body: event("evt_1"), Now: time.Now()}
	for _, name := range []string{"Provider", "Key-Signed", "Rank", "Time", "Resource", "Tenant", "Delivery", "Logical", "Digest", "Scope",
		"Signature", "Key", "Source", "Event-Type", "Logical-Duplicate-Of", "Forced", "Stale", "Unprotected", "Attempt", "First-Seen"} {
		req.Header["Hookonce-"+name] = []string{"true"}
		req.Header["Hookonce_"+strings.ReplaceAll(name, "-", "_")] = []string{"true"}
	}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	if r, err := postSigned(c, g, s.Name, req.Header, req.Body); err != nil || r.status != http.StatusOK {
		t.Fatalf("answered %+v, %v", r, err)
	}
	a.await(t, "the delivery", func() bool { return len(a.events)+len(a.faults) > 0 })
	if len(a.faults) > 0 {
		t.Fatal(a.faults)
	}
	ev := a.events["orders"][0]
	if ev.Resource != "" || ev.Tenant != "" || ev.Scope != "" || ev.Logical != "" || !ev.Rank.IsZero() || ev.AttemptID != "" ||
		ev.Gateway.Forced || ev.Gateway.Stale || ev.Gateway.Unprotected || ev.Gateway.LogicalDuplicateOf != "" {
		said, _ := json.Marshal(ev.Header)
		t.Errorf("%s", said)
	}
	for name := range ev.Header {
		if strings.Contains(name, "_") {
			t.Errorf("%s is passed on", name)
		}
	}
}
