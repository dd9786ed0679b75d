package config

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// Without a file and a name the source is one for development; nobody gets one by forgetting a secret.
func TestDevelopment(t *testing.T) {
	const settings = "listen: 127.0.0.1:1\n"
	for _, c := range []struct {
		name string
		file string
		args []string
		want string // name provider secrets to; or a part of the error
	}{
		{"nothing at all", "", nil, "development"},
		{"a destination", "", []string{"--to", "http://h/"}, "development: dev standard [] http://h/"},
		{"a destination beside a file without sources", settings, []string{"--to", "http://h/"}, "development: dev standard [] http://h/"},
		{"a destination beside a file with sources", oneSource, []string{"--to", "http://h/"}, "--to: this describes a source, but not which of those in hookonce.yaml"},
		{"a provider", "", []string{"--to", "http://h/", "--provider", "github"}, "development: github github [] http://h/"},
		{"a provider with its secret", "", []string{"--to", "http://h/", "--provider", "stripe", "--secret", "env:STRIPE"}, "development: stripe stripe [env:STRIPE] http://h/"},
		{"a provider whose secret cannot be made up", "", []string{"--to", "http://h/", "--provider", "discord"}, `source "discord" lacks its secrets: the application's public key, in hexadecimal; add --secret env:NAME`},
		{"a provider that needs a url", "", []string{"--to", "http://h/", "--provider", "twilio"}, `has none; add --url and the URL exactly as registered there`},
		{"a name", "", []string{"--to", "http://h/", "--source", "shop"}, "development: shop standard [] http://h/"},
		{"a name and a provider", "", []string{"--to", "http://h/", "--source", "shop", "--provider", "github"}, `source "shop" lacks its secrets`},
		{"a name and a secret", "", []string{"--to", "http://h/", "--source", "shop", "--secret", "env:STRIPE"}, "a source lacks its provider"},
		{"all of it", "", []string{"--to", "http://h/", "--source", "shop", "--provider", "stripe", "--secret", "env:STRIPE"}, "shop stripe [env:STRIPE] http://h/"},
		{"a service", "", []string{"--to", "http://h/", "--mode", "idempotency", "--idempotency-scope", "none"}, "development: dev  [] http://h/"},
		{"a service with a name", "", []string{"--to", "http://h/", "--mode", "idempotency", "--idempotency-scope", "none", "--source", "shop"}, "shop  [] http://h/"},
		{"no full address", "", []string{"--to", "localhost:3000/hooks"}, "--to: this is not a full HTTP address; write one like http://127.0.0.1:3000/webhooks"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg, err := Load(input(t, c.file, nil, c.args...))
			got := ""
			if err != nil {
				got = err.Error()
			} else if cfg.Development {
				got = "development"
			}
			if err == nil && len(cfg.Sources) == 1 {
				s := &cfg.Sources[0]
				got = strings.TrimPrefix(got+": ", ": ") + fmt.Sprint(s.Name, " ", s.Provider, " ", s.Secrets, " ", s.To)
			}
			if got != c.want && (err == nil || !strings.Contains(got, c.want)) {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

// In development the next try comes soon, unless somebody says otherwise.
func TestDevelopmentTriesSoon(t *testing.T) {
	for _, c := range []struct {
		args    []string
		backoff time.Duration
	}{
		{[]string{"--to", "http://h/"}, time.Second},
		{[]string{"--to", "http://h/", "--delivery-backoff", "3s"}, 3 * time.Second},
		{[]string{"--to", "http://h/", "--source", "a", "--provider", "stripe", "--secret", "env:STRIPE"}, 5 * time.Second},
	} {
		cfg, err := Load(input(t, "", nil, c.args...))
		if err != nil {
			t.Fatal(err)
		}
		if got := cfg.AllDestinations()[0].Backoff; got != c.backoff {
			t.Errorf("%v: backoff %v, want %v", c.args, got, c.backoff)
		}
	}
}

// In development the challenge of a provider is answered if that takes no more than the secret.
func TestDevelopmentAnswersChallenges(t *testing.T) {
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"--provider", "slack"}, true},
		{[]string{"--provider", "slack", "--handshakes=false"}, false},
		{[]string{"--provider", "meta"}, false}, // asks for a token
		{[]string{"--provider", "meta", "--token", "fake-token"}, true},
		{[]string{"--provider", "github"}, false}, // has none
		{[]string{"--provider", "slack", "--source", "a", "--secret", "env:STRIPE"}, false},
	} {
		cfg, err := Load(input(t, "", nil, append(c.args, "--to", "http://h/")...))
		if err != nil || cfg.Sources[0].Handshakes != c.want {
			t.Errorf("%v: %v, %v", c.args, cfg, err)
		}
	}
}

// A secret that is made up is one that its provider takes, another one each time.
func TestMakeSecret(t *testing.T) {
	for _, name := range []string{"standard", "stripe", "github", "slack", "shopify", "adyen", "hmac", "gitlab"} {
		s := Source{Name: "x", Provider: name}
		one, err := s.MakeSecret()
		other, _ := s.MakeSecret()
		if err != nil || one == other || len(one) < 32 {
			t.Errorf("%s: %q and %q, %v", name, one, other, err)
		}
		s.Secrets = []settings.Secret{settings.Literal(one)}
		if _, err := s.NewProvider(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Where a secret is made up, send can sign with it: the event is taken, and recognised when it comes again.
func TestMadeUpSecretsSign(t *testing.T) {
	made := 0
	for _, name := range provider.Names() {
		s := Source{Name: "x", Provider: name, URL: "https://shop.example/in"}
		secret, err := s.MakeSecret()
		if err != nil {
			continue
		}
		made++
		s.Secrets = []settings.Secret{settings.Literal(secret)}
		p, err := s.NewProvider()
		if err != nil {
			t.Fatal(name, err)
		}
		known, now := p.Spec(), time.Now()
		header, body := known.Sample(spec.Sample{ID: known.Example.NewID(), Time: now})
		req := &hookonce.Request{Method: "POST", URL: s.URL, Header: header, Body: body, Now: now}
		if err := p.Sign(req); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d, err := p.Open(req); err != nil || len(d.Events) == 0 || d.Unreadable != nil || d.Events[0].Key == "" && len(known.Event.Key) > 0 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	if made < 40 {
		t.Errorf("only %d providers have a secret that can be made up", made)
	}
}

func TestLoop(t *testing.T) {
	for _, c := range []struct {
		listen, to string
		loops      bool
	}{
		{"127.0.0.1:8080", "http://127.0.0.1:8080/x", true},
		{"127.0.0.1:8080", "http://localhost:8080/x", true},
		{"127.0.0.1:8080", "http://LOCALHOST:8080/x", true},
		{"127.0.0.1:8080", "http://127.0.0.1:8082/x", false},
		{"127.0.0.1:8080", "http://127.0.0.1:8081/x", true}, // admin
		{"127.0.0.1:80", "http://localhost/x", true},
		{"127.0.0.1:8080", "http://127.0.0.2:8080/x", false},
		{"0.0.0.0:8080", "http://127.0.0.2:8080/x", true},
		{":8080", "http://[::1]:8080/x", true},
		{":8080", "http://app:8080/x", false},
		{"gateway:8080", "http://gateway:8080/x", true},
		{"127.0.0.1:0", "http://127.0.0.1:8080/x", false},
	} {
		_, err := Load(input(t, "", nil, "--listen", c.listen, "--to", c.to))
		if got := err != nil && strings.Contains(err.Error(), "of the gateway itself"); got != c.loops {
			t.Errorf("listen %s, to %s: %v", c.listen, c.to, err)
		}
	}
}
