package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/cmd/hookonce/internal/hammer"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// Every provider whose signature can be imitated can be hammered with: what it signs is verified,
// recognised, and accepted once in each round.
func TestHammerProviders(t *testing.T) {
	for _, name := range provider.Names() {
		known, _ := provider.Lookup(name)
		if !known.Imitable() {
			continue
		}
		t.Run(name, func(t *testing.T) {
			secret := secretFor(known)
			p, err := spec.New(known, spec.Settings{Secrets: spec.Secrets(secret), URL: "https://shop.example/hooks"})
			if err != nil {
				t.Fatal(err)
			}
			url := endpoint(t, hookonce.Webhook(memstore.New(), p.Name(), p,
				func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
					if known.Example.NumberedID(1) != "" && (bytes.Contains(ev.Body, []byte("evt_")) || strings.Contains(ev.Key, "evt_")) {
						t.Errorf("the sender's ids are numbers, and this event has another: %s", ev.Body)
					}
					return nil
				},
				hookonce.WithLogger(slog.New(slog.DiscardHandler))))
			status, out, errs := hammered(t, url, "--provider", name, "--secret", secret, "--copies", "3", "--rounds", "2", "--json",
				"--signed-url", "https://shop.example/hooks")
			var report hammer.Report
			if err := json.Unmarshal([]byte(out), &report); err != nil || status != exitOK {
				t.Fatalf("status %d, %v\n%s%s", status, err, out, errs)
			}
			want, result := map[string]int{"accepted": 1, "duplicate": 2}, hammer.Once
			switch {
			case len(known.Event.Key) == 0:
				want, result = map[string]int{"unkeyed": 3}, hammer.Repeated
			case known.Dedup.OnRepeat == spec.Coalesce:
				want, result = map[string]int{"accepted": 3}, hammer.Repeated
			}
			for i, r := range report.Rounds {
				if !maps.Equal(r.Statuses, want) || r.Result != result {
					t.Errorf("round %d: %v, want %v; judged %q, want %q", i+1, r.Statuses, want, r.Result, result)
				}
			}
			if strings.Contains(out, secret) {
				t.Error("the report shows the secret")
			}
		})
	}
}

// secretFor returns an obviously fake secret in the form that the specification wants.
func secretFor(known spec.Spec) string {
	switch v := known.Verify[0]; {
	case known.Name == "braintree", v.Kind == spec.Basic:
		return "fake-public:fake-private"
	case known.Name == "contentful":
		return strings.Repeat("fake", 16)
	case v.Key == spec.KeyWhsec:
		return fakeSecret
	case v.Key == spec.KeyHex:
		return "00112233445566778899aabbccddeeff"
	case v.Key == spec.KeyBase64:
		return "bm90IGEgcmVhbCBzZWNyZXQ="
	}
	return "fake-secret-that-is-long-enough-for-any"
}

// Copies that nothing tells from other events may take effect each, and the report says why that is right.
// The token that such a provider has in its URL is not shown.
func TestHammerRepeats(t *testing.T) {
	p := provider.MollieClassic("fake-token")
	url := endpoint(t, hookonce.Webhook(memstore.New(), p.Name(), p, func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil },
		hookonce.WithLogger(slog.New(slog.DiscardHandler))))
	status, out, errs := hammered(t, url+"?token=fake-token", "--provider", "mollie-classic", "--secret", "fake-token", "--copies", "2", "--rounds", "1")
	if status != exitOK || !strings.Contains(out, "REPEATED: 1 of 1 event took effect more than once") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if strings.Contains(out+errs, "fake-token") {
		t.Errorf("the token is shown:\n%s%s", out, errs)
	}
}

// An endpoint that has seen the event before proves nothing by recognising it.
func TestHammerKnowsOldEvents(t *testing.T) {
	url := careful(t, func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil })
	for _, tt := range []struct{ body, want string }{
		{`{"type":"a"}`, "ONCE"},
		{`{"type":"a"}`, "which the endpoint knew already"},
		{`{"type":"b"}`, "which the endpoint knew already"}, // as when the event says when it was made
	} {
		status, out, errs := hammered(t, url, "--secret", fakeSecret, "--copies", "2", "--rounds", "1", "--seed", "7", "--body", writeFile(t, tt.body))
		if status != exitOK || !strings.Contains(strings.Join(strings.Fields(out), " "), tt.want) {
			t.Errorf("%s: status %d\n%s%s", tt.body, status, out, errs)
		}
	}
}

// A specification of one's own can be hammered with, and private keys cannot be imitated.
func TestHammerOwnSpecification(t *testing.T) {
	text := "verify: [{signature: {in: header:X-Acme-Signature}, sign: [body]}]\nevent: {key: [[json:$.id]]}\n"
	known, err := specyaml.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	known.Name = "acme"
	p, err := spec.New(known, spec.Settings{Secrets: spec.Secrets("fake")})
	if err != nil {
		t.Fatal(err)
	}
	url := endpoint(t, hookonce.Webhook(memstore.New(), p.Name(), p, func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil },
		hookonce.WithLogger(slog.New(slog.DiscardHandler))))
	args := []string{url, "--spec", writeFile(t, text), "--secret", "fake", "--copies", "2", "--rounds", "2"}
	if status, out, errs := hammered(t, append(args, "--body", writeFile(t, `{"id":"{{id}}"}`))...); status != exitOK || !strings.Contains(out, "ONCE") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if status, _, errs := hammered(t, args...); status != exitUsage || !strings.Contains(errs, "has no example to send; give one with --body") {
		t.Errorf("status %d: %s", status, errs)
	}
	if status, _, errs := hammered(t, url, "--provider", "wise", "--secret", "fake"); status != exitUsage || !strings.Contains(errs, "Wise signs with a private key that only it has") {
		t.Errorf("status %d: %s", status, errs)
	}
}

func TestHammerOwnBodyAndHeaders(t *testing.T) {
	p := provider.HMAC(provider.HMACConfig{Secrets: []string{"not a secret"}, Header: "X-Sig", Prefix: "sha1=", Hash: spec.SHA1, Key: []spec.Value{"header:X-Id"}})
	var mu sync.Mutex
	var keys, bodies, extra []string
	url := endpoint(t, hookonce.Webhook(memstore.New(), p.Name(), p, func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
		mu.Lock()
		defer mu.Unlock()
		keys, bodies, extra = append(keys, ev.Key), append(bodies, string(ev.Body)), append(extra, ev.Header.Get("X-Extra"))
		return nil
	}, hookonce.WithLogger(slog.New(slog.DiscardHandler))))
	status, out, errs := hammered(t, url, "--provider", "hmac", "--secret", "not a secret", "--copies", "3", "--rounds", "2",
		"--hmac-header", "X-Sig", "--hmac-prefix", "sha1=", "--hmac-digest", "sha1", "--hmac-key", "header:X-Id",
		"--body", writeFile(t, `{"n": "{{id}}"}`), "-H", "X-Extra: a: b", "-H", "x-id: mine-{{id}}")
	if status != exitOK || !strings.Contains(out, "ONCE") || len(keys) != 2 || keys[0] == keys[1] {
		t.Fatalf("status %d, keys %q\n%s%s", status, keys, out, errs)
	}
	for i, key := range keys {
		id, ok := strings.CutPrefix(key, "mine-")
		if !ok || bodies[i] != fmt.Sprintf(`{"n": %q}`, id) || extra[i] != "a: b" {
			t.Errorf("key %q, body %s, header %q", key, bodies[i], extra[i])
		}
	}
}
