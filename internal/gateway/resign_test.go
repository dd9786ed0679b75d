package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/settings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// verifier is an application that verifies the provider of each source, and was written for that alone.
type verifier struct {
	*httptest.Server
	board
	as     map[string]hookonce.Provider // by the destination, which is the last part of the path
	events map[string]int               // that were accepted, by destination
	errors map[string]error             // why the last was rejected
}

func newVerifier(t *testing.T) *verifier {
	v := &verifier{board: newBoard(), as: map[string]hookonce.Provider{}, events: map[string]int{}, errors: map[string]error{}}
	v.Server = httptest.NewServer(v)
	t.Cleanup(v.Close)
	return v
}

func (v *verifier) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	name := r.URL.Path[1:]
	d, err := v.as[name].Open(&hookonce.Request{Method: r.Method, URL: "http://" + r.Host + r.RequestURI, Header: r.Header, Body: body, Now: time.Now()})
	v.mu.Lock()
	defer v.mu.Unlock()
	defer v.changed()
	if err != nil {
		v.errors[name] = err
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	v.events[name] += len(d.Events)
	w.WriteHeader(http.StatusNoContent)
}

// TestLateEventsAreSignedAnew: events that waited for a week behind a destination that was away are accepted by an
// application that verifies the provider's signatures, whatever is signed: the time, the URL, a batch of several, or
// nothing but a token. So they are with the application's own secret, after the provider's was replaced, and through a
// destination with a name; and not where the signature is left alone.
func TestLateEventsAreSignedAnew(t *testing.T) {
	onEveryStore(t, signLate)
}

func signLate(t *testing.T, store config.Store) {
	const registered, believed = "https://hooks.example/in/source", "https://shop.example/hooks?team=shop"
	app := newVerifier(t)
	build := func(name, secret, url string) *spec.Provider {
		p, err := provider.Build(name, spec.Settings{Secrets: spec.Secrets(secret), URL: url})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	const first, second, apps = "fake-first-secret", "fake-second-secret", "fake-secret-of-the-app"
	cases := []struct {
		name, provider string
		body           string // of the request; empty: the sample's
		replaced       bool   // the provider's secret, while the event waits
		change         func(*config.Source)
		as             *spec.Provider
		events         int // that are accepted
	}{
		{"time", "slack", "", false, nil, build("slack", first, ""), 1},
		{"original", "slack", "", false, func(s *config.Source) { s.SignAs = config.SignNone }, build("slack", first, ""), 0},
		{"batch", "gocardless", string(batch("a", "b")), false, nil, build("gocardless", first, ""), 2},
		{"token", "gitlab", "", false, nil, build("gitlab", first, ""), 1},
		{"url", "square", "", false, nil, build("square", first, ""), 1},
		{"proxy", "square", "", false, func(s *config.Source) { s.AppURL = believed }, build("square", first, believed), 1},
		{"replaced", "stripe", "", true, nil, build("stripe", second, ""), 1},
		{"own", "github", "", false, func(s *config.Source) { s.AppSecret = settings.Literal(apps) }, build("github", apps, ""), 1},
		{"lasting", "github", "", false, nil, build("github", first, ""), 1},
		{"body", "linear", "", false, nil, build("linear", first, ""), 1},
		{"synchronous", "stripe", "", false, func(s *config.Source) { s.Mode = config.Sync; s.Deadline = time.Second }, build("stripe", first, ""), 1},
		{"named", "calendly", "", false, func(s *config.Source) {
			s.To, s.Routes = "", []config.Route{{To: []string{"ledger"}}}
		}, nil, 0},
	}
	app.as["ledger"] = build("calendly", first, "")
	configure := func(to string, later bool) *config.Config {
		cfg := configured(store, to)
		cfg.Retention.Bodies = 30 * 24 * time.Hour // for the replay
		ledger := cfg.NewDestination("ledger", to+"ledger")
		ledger.SignAs = config.SignProvider
		cfg.Destinations, cfg.Sources = []config.Destination{ledger}, nil
		for _, c := range cases {
			s := source(c.name, to+c.name)
			s.Provider, s.URL, s.Secrets = c.provider, registered, []settings.Secret{settings.Literal(first)}
			if later && c.replaced {
				s.Secrets = []settings.Secret{settings.Literal(second)}
			}
			if c.change != nil {
				c.change(&s)
			}
			cfg.Sources = append(cfg.Sources, s)
		}
		return cfg
	}

	then := time.Now().Add(-7 * 24 * time.Hour)
	away, err := Start(t.Context(), configure("http://127.0.0.1:9/", false), Options{Now: func() time.Time { return then }})
	if err != nil {
		t.Fatal(err)
	}
	c := client(t)
	for _, tt := range cases {
		p := build(tt.provider, first, registered)
		header, body := p.Spec().Sample(spec.Sample{ID: "101", Time: then})
		if tt.body != "" {
			body = []byte(tt.body)
		}
		req := &hookonce.Request{Method: http.MethodPost, URL: registered, Header: header, Body: body, Now: then}
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		r, err := postSigned(c, away, tt.name, req.Header, req.Body)
		if sync := tt.name == "synchronous"; err != nil || (r.status/100 == 2) == sync {
			t.Fatalf("%s: answered %+v, %v", tt.name, r, err)
		}
		if tt.as != nil {
			app.as[tt.name] = tt.as
		}
	}
	closeNow(t, away)

	g := start(t, configure(app.URL+"/", true))
	app.await(t, "all verdicts", func() bool {
		for _, tt := range cases {
			if tt.events > 0 && app.events[tt.name] != tt.events {
				return false
			}
		}
		return app.events["ledger"] == 1 && app.errors["original"] != nil
	})
	for _, tt := range cases {
		app.mu.Lock()
		if n := app.events[tt.name]; n != tt.events || tt.events > 0 && app.errors[tt.name] != nil {
			t.Errorf("%s: %d events accepted, want %d; %v", tt.name, n, tt.events, app.errors[tt.name])
		}
		app.mu.Unlock()
	}

	// What is replayed is signed like anything else.
	again := journal.Replay{Filter: journal.Filter{Source: "time"}, Force: true, By: "a test", Start: time.Now()}
	for deadline := time.Now().Add(patience); ; <-time.After(10 * time.Millisecond) { // until it is on record as done
		if done, err := g.journal.Replay(t.Context(), again, 10); done.Forced == 1 {
			break
		} else if err != nil || time.Now().After(deadline) {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	app.await(t, "the replay", func() bool { return app.events["time"] == 2 })
}
