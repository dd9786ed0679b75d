package provider

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/jose"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

func TestCatalogue(t *testing.T) {
	known := Names()
	if !slices.IsSorted(known) || len(known) < 9 {
		t.Error(known)
	}
	for _, name := range known {
		s, err := Lookup(name)
		if err != nil || s.Name != name {
			t.Fatalf("%s: %v, %v", name, s.Name, err)
		}
		if name != "hmac" && len(s.Sources) == 0 {
			t.Errorf("%s: no sources", name)
		}
		if len(s.Traps) == 0 || s.Title == "" || s.Secret == "" {
			t.Errorf("%s: undocumented", name)
		}
	}
	for _, name := range usual {
		p := fake(t, name)
		if p.Name() != name || p.Profile().Acknowledgement.Status != 200 || p.Profile().MaxBody < spec.DefaultMaxBody {
			t.Errorf("%s: %v, %v, %v", name, p, p.Profile().Acknowledgement, p.Profile().MaxBody)
		}
		if name != "hmac" && p.Spec().Limits.Window() == 0 {
			t.Errorf("%s: no window", name)
		}
	}
	if _, err := Lookup("Stripe"); !errors.Is(err, ErrUnknown) {
		t.Errorf("names are exact: %v", err)
	}
}

// TestLookupReturnsACopy: changing a specification must not change the catalogue.
func TestLookupReturnsACopy(t *testing.T) {
	changed, _ := Lookup("stripe")
	changed.Verify[0].Sign[0] = "body"
	changed.Event.Key[0][0] = "json:$.type"
	changed.Verify[0].Time.Past = 0
	again, _ := Lookup("stripe")
	if again.Verify[0].Sign[0] != "ts" || again.Event.Key[0][0] != "json:$.id" || again.Verify[0].Time.Past != 5*time.Minute {
		t.Error("the catalogue can be changed from outside")
	}
}

func TestSuggest(t *testing.T) {
	for name, want := range map[string]string{
		"strpe": "stripe", "Stripe": "stripe", "stripe-webhooks": "stripe", "githb": "github", "gihtub": "github",
		"standard-webhooks": "standard", "shopfy": "shopify", "slak": "slack", "hmca": "hmac", " padle": "paddle",
		"": "", "nobody": "", "q": "", "completely-different": "",
	} {
		if got := suggest(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	_, err := Build("strpe", spec.Settings{})
	if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `did you mean "stripe"`) {
		t.Error(err)
	}
	if _, err = Build("nobody-at-all", spec.Settings{}); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "known are ") {
		t.Error(err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		provider string
		settings spec.Settings
		want     string
	}{
		{"stripe", spec.Settings{}, "no secret is given; it needs the endpoint's signing secret, which begins with whsec_"},
		{"stripe", spec.Settings{Secrets: spec.Secrets("fake", "")}, "secret 2 of 2 is empty"},
		{"stripe", spec.Settings{Secrets: spec.Secrets("hidden\n")}, "secret 1 of 1 begins or ends with white space"},
		{"standard", spec.Settings{Secrets: spec.Secrets("whsec_")}, "secret 1 of 1 is empty"},
		{"standard", spec.Settings{Secrets: spec.Secrets("hidden!")}, "is not base64 after whsec_"},
		{"standard", spec.Settings{Secrets: spec.Secrets("whsec_hid den")}, "is not base64 after whsec_"},
		{"square", spec.Settings{Secrets: spec.Secrets("fake"), URL: "/hooks"}, "not an absolute http or https URL"},
		{"square", spec.Settings{Secrets: spec.Secrets("fake"), URL: "ftp://x/hooks"}, "not an absolute http or https URL"},
		{"github", spec.Settings{Secrets: spec.Secrets("fake"), Tolerance: time.Minute}, "signs no time"},
		{"stripe", spec.Settings{Secrets: spec.Secrets("fake"), Tolerance: -time.Minute}, "is negative"},
	} {
		_, err := Build(c.provider, c.settings)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.provider) || strings.Contains(err.Error(), "hid") {
			t.Errorf("%s %+v: %v", c.provider, c.settings, err)
		}
	}
	for _, secret := range []string{"whsec_AAAAAA==", "whsec_AAAAAA", "AAAAAA==", "whsec_AAAA"} {
		if _, err := Build("standard", spec.Settings{Secrets: spec.Secrets(secret)}); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
	}
	if _, err := spec.New(HMACConfig{KeyForm: spec.KeyHex}.Spec(), spec.Settings{Secrets: spec.Secrets("xyz")}); err == nil || !strings.Contains(err.Error(), "not hexadecimal") {
		t.Error(err)
	}
	if _, err := spec.New(HMACConfig{KeyForm: spec.KeyBase64}.Spec(), spec.Settings{Secrets: spec.Secrets("???")}); err == nil || !strings.Contains(err.Error(), "not base64") {
		t.Error(err)
	}
}

func TestConstructorsPanicOnMistakes(t *testing.T) {
	for name, construct := range map[string]func(){
		"no secret":       func() { Stripe() },
		"empty secret":    func() { GitHub("") },
		"one of two":      func() { Slack("fake", "") },
		"not base64":      func() { Standard("???") },
		"wrong URL":       func() { Square("here", "fake") },
		"no such hash":    func() { HMAC(HMACConfig{Secrets: []string{"fake"}, Hash: "md5"}) },
		"no shopify":      func() { Shopify() },
		"no svix":         func() { Svix() },
		"no paddle":       func() { Paddle() },
		"no hmac secrets": func() { HMAC(HMACConfig{}) },
	} {
		func() {
			defer func() {
				if err, ok := recover().(error); !ok || !strings.HasPrefix(err.Error(), "provider ") {
					t.Errorf("%s: %v", name, err)
				}
			}()
			construct()
		}()
	}
}

// TestSecretsAreNotPrinted formats everything that holds a secret with every common verb.
func TestSecretsAreNotPrinted(t *testing.T) {
	const secret = "hidden-in-plain-sight"
	for _, v := range []any{
		Stripe(secret),
		GitHub(secret).Spec(),
		spec.Settings{Secrets: spec.Secrets(secret)},
		HMACConfig{Secrets: []string{secret}},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "hidden") || strings.Contains(text, fmt.Sprintf("%x", secret)) {
				t.Errorf("%T with %s: %s", v, verb, text)
			}
		}
		if text, err := json.Marshal(v); strings.Contains(string(text), "hidden") {
			t.Errorf("%T in JSON: %s, %v", v, text, err)
		}
	}
}

// TestFilesAreNamedAfterProviders: whoever looks for a sender finds its file.
func TestFilesAreNamedAfterProviders(t *testing.T) {
	for _, name := range Names() {
		if name == "svix" || slices.ContainsFunc(aliases, func(a alias) bool { return a.name == name }) {
			continue // in standard.go and aliases.go
		}
		if _, err := os.Stat(strings.ReplaceAll(name, "-", "_") + ".go"); err != nil {
			t.Error(err)
		}
	}
}

// TestAliasesAreTheScheme sends every alias what the scheme it stands for would sign.
func TestAliasesAreTheScheme(t *testing.T) {
	for _, a := range aliases {
		if a.name == "finch" { // other headers: see below
			continue
		}
		for _, base := range []*spec.Provider{fake(t, "standard"), fake(t, "svix")} {
			if base.Name() == "svix" && (a.name == "openai" || a.name == "polar" || a.name == "increase") { // they state their headers
				continue
			}
			req := signed(t, base, `{"any":"body"}`)
			keyed := a.name != "supabase"
			if ev := one(t, fake(t, a.name), req); keyed && (ev.Key != "msg_1" || !ev.KeySigned) || !keyed && ev.Key != "" || ev.Provider != a.name {
				t.Errorf("%s from %s: %+v", a.name, base.Name(), ev)
			}
			req.Body[1] ^= 1
			reason(t, fake(t, a.name), req)
		}
	}
}

// TestAliasesUseTheirHeaders: what is sent for demonstrations has the headers that the sender uses.
func TestAliasesUseTheirHeaders(t *testing.T) {
	for name, header := range map[string]string{
		"clerk": "Svix-Signature", "resend": "Svix-Signature", "openai": "Webhook-Signature",
		"polar": "Webhook-Signature", "finch": "Finch-Signature",
	} {
		req := sent(t, fake(t, name), "msg_7", "")
		if req.Header.Get(header) == "" || one(t, fake(t, name), req).Key != "msg_7" {
			t.Errorf("%s: %v", name, req.Header)
		}
	}
}

// TestAliasesHaveTheirOwnCopies: one alias must not change another, nor its base.
func TestAliasesHaveTheirOwnCopies(t *testing.T) {
	for _, a := range aliases {
		s := a.spec()
		s.Verify[0].Sign[0], s.Traps[0] = "body", ""
		for _, rule := range s.Event.Key {
			rule[0] = "json:$.type"
		}
	}
	for _, name := range []string{"standard", "svix", "clerk", "openai"} {
		s, _ := Lookup(name)
		if s.Verify[0].Sign[0] != "id" || s.Event.Key[0][0] != "id" || slices.Contains(s.Traps, "") {
			t.Errorf("%s was changed", name)
		}
	}
}

// TestAliasesPromiseNoSchedule: the standard's example of a schedule is nobody's promise.
func TestAliasesPromiseNoSchedule(t *testing.T) {
	for _, a := range aliases {
		s := a.spec()
		admitted := slices.ContainsFunc(s.Sources, func(src spec.Source) bool {
			return src.Confidence == spec.NotSourced && src.Fact == "how long it retries"
		})
		if admitted != (s.Limits.Window() == 0) {
			t.Errorf("%s: window %v, admitted as unknown: %v", a.name, s.Limits.Window(), admitted)
		}
	}
}

// uncode takes out what names code, which can be shown, and not be copied.
func uncode(s *spec.Spec) {
	for i := range s.Verify {
		v := &s.Verify[i]
		if v.Kind == spec.Code {
			v.Kind, v.Scheme = "", nil
		}
		if v.Tokens != nil {
			v.Tokens = jose.Tokens{} // as a specification in YAML has it
		}
	}
	for i := range s.Handshakes {
		if h := &s.Handshakes[i]; h.Code != nil && h.Code.Kind == spec.Code {
			h.Code = nil
		}
	}
}

// TestCatalogueInYAML prints every specification and reads it again. Nothing may be lost on the way,
// or what somebody copies would be another specification.
func TestCatalogueInYAML(t *testing.T) {
	testskip.Race(t)
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			want, _ := Lookup(name)
			uncode(&want)
			text, err := specyaml.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := specyaml.Parse(text)
			if err != nil {
				t.Fatalf("%v\n%s", err, text)
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s\n%s", diff, text)
			}
		})
	}
}
