package provider

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCatalogue(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || len(names) != 9 {
		t.Error(names)
	}
	for _, name := range names {
		spec, ok := Lookup(name)
		if !ok || spec.Name != name {
			t.Fatalf("%s: %v, %v", name, spec.Name, ok)
		}
		p := buildFake(t, name)
		answer := p.OK()
		if p.Name() != name || answer.Status != 200 || p.Limits().MaxBody < DefaultMaxBody || p.MaxBody() != p.Limits().MaxBody {
			t.Errorf("%s: %v, %v, %v", name, p, answer, p.Limits())
		}
		if name != "hmac" && (len(spec.Sources) == 0 || p.Limits().Window() == 0) {
			t.Errorf("%s: no sources or no window", name)
		}
		if len(spec.Traps) == 0 || spec.Title == "" || spec.Secret == "" || spec.Example.Type == "" {
			t.Errorf("%s: undocumented", name)
		}
	}
	if _, ok := Lookup("Stripe"); ok {
		t.Error("names are exact")
	}
}

// TestLookupReturnsACopy: changing a specification must not change the catalogue.
func TestLookupReturnsACopy(t *testing.T) {
	spec, _ := Lookup("stripe")
	spec.Verify[0].Sign[0] = "body"
	spec.Event.Key[0][0] = "json:$.type"
	spec.Verify[0].Time.Past = 0
	again, _ := Lookup("stripe")
	if again.Verify[0].Sign[0] != "ts" || again.Event.Key[0][0] != "json:$.id" || again.Verify[0].Time.Past != 5*time.Minute {
		t.Error("the catalogue can be changed from outside")
	}
}

func TestSuggest(t *testing.T) {
	for name, want := range map[string]string{
		"strpe": "stripe", "Stripe": "stripe", "stripe-webhooks": "stripe", "githb": "github", "gihtub": "github",
		"standard-webhooks": "standard", "shopfy": "shopify", "slak": "slack", "hmca": "hmac", " padle": "paddle",
		"": "", "twilio": "", "x": "", "completely-different": "",
	} {
		if got := Suggest(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
	_, err := Build("strpe", Settings{})
	if !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), `did you mean "stripe"`) {
		t.Error(err)
	}
	if _, err = Build("twilio", Settings{}); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "known are github, hmac") {
		t.Error(err)
	}
}

func TestSettingsAreChecked(t *testing.T) {
	for _, c := range []struct {
		provider string
		settings Settings
		want     string
	}{
		{"stripe", Settings{}, "no secret is given; it needs the endpoint's signing secret, which begins with whsec_"},
		{"stripe", Settings{Secrets: []string{"fake", ""}}, "secret 2 of 2 is empty"},
		{"stripe", Settings{Secrets: []string{"hidden\n"}}, "secret 1 of 1 begins or ends with white space"},
		{"standard", Settings{Secrets: []string{"whsec_"}}, "secret 1 of 1 is empty"},
		{"standard", Settings{Secrets: []string{"hidden!"}}, "is not base64 after whsec_"},
		{"standard", Settings{Secrets: []string{"whsec_hid den"}}, "is not base64 after whsec_"},
		{"square", Settings{Secrets: []string{"fake"}, URL: "/hooks"}, "not an absolute http or https URL"},
		{"square", Settings{Secrets: []string{"fake"}, URL: "ftp://x/hooks"}, "not an absolute http or https URL"},
		{"github", Settings{Secrets: []string{"fake"}, Tolerance: time.Minute}, "signs no time"},
		{"stripe", Settings{Secrets: []string{"fake"}, Tolerance: -time.Minute}, "is negative"},
	} {
		_, err := Build(c.provider, c.settings)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), c.provider) || strings.Contains(err.Error(), "hid") {
			t.Errorf("%s %+v: %v", c.provider, c.settings, err)
		}
	}
	for _, secret := range []string{"whsec_AAAAAA==", "whsec_AAAAAA", "AAAAAA==", "whsec_AAAA"} {
		if _, err := Build("standard", Settings{Secrets: []string{secret}}); err != nil {
			t.Errorf("%s: %v", secret, err)
		}
	}
	if _, err := New(HMACConfig{KeyForm: KeyHex}.Spec(), Settings{Secrets: []string{"xyz"}}); err == nil || !strings.Contains(err.Error(), "not hexadecimal") {
		t.Error(err)
	}
	if _, err := New(HMACConfig{KeyForm: KeyBase64}.Spec(), Settings{Secrets: []string{"???"}}); err == nil || !strings.Contains(err.Error(), "not base64") {
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

// TestUnsafeSpecificationsAreRefused changes one thing at a time in a good specification.
func TestUnsafeSpecificationsAreRefused(t *testing.T) {
	for _, c := range []struct {
		change func(*Spec)
		want   string
	}{
		{func(s *Spec) { s.Name = "" }, "no Name"},
		{func(s *Spec) { s.Verify = nil }, "no Verify"},
		{func(s *Spec) { s.Verify[0].Hash = "md5" }, "Verify[0]: Hash"},
		{func(s *Spec) { s.Verify[0].Encoding = "rot13" }, "Verify[0]: Encoding"},
		{func(s *Spec) { s.Verify[0].Key = "raw" }, `no form of key is called "raw"`},
		{func(s *Spec) { s.Verify[0].Signature.In = "json:$.signature" }, "Verify[0]: Signature.In"},
		{func(s *Spec) { s.Verify[0].Signature.In = "" }, "Verify[0]: Signature.In"},
		{func(s *Spec) { s.Verify[0].Signature.In = "header:X-Sig?" }, "only the last part of a key"},
		{func(s *Spec) { s.Verify[0].Sign = []Value{"ts"} }, "does not contain body"},
		{func(s *Spec) { s.Verify[0].Sign = []Value{"body"} }, "not signed protects nobody"},
		{func(s *Spec) { s.Verify[0].Time = nil }, "not signed protects nobody"},
		{func(s *Spec) { s.Verify[0].Sign = []Value{"ts", "body", "id"} }, "Sign and ID"},
		{func(s *Spec) { s.Verify[0].ID = "header:X-Id" }, "Sign and ID"},
		{func(s *Spec) { s.Verify[0].ID = "const:x" }, "ID"},
		{func(s *Spec) { s.Verify[0].Sign = append(s.Verify[0].Sign, "heder:X") }, "Sign[3]"},
		{func(s *Spec) { s.Verify[0].Time.In = "const:1" }, "Time"},
		{func(s *Spec) { s.Verify[0].Time.Unit = "h" }, "Time: Unit"},
		{func(s *Spec) { s.Verify[0].Time.Past = -1 }, "negative"},
		{func(s *Spec) { s.Verify[0].Signature.Split = "" }, "needs Signature.Split"},
		{func(s *Spec) { s.Event.Key = [][]Value{{}} }, "Event.Key[0]"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"const:x"}} }, "all events are taken for one"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"json:$.id?"}} }, "all events are taken for one"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"json:$.a?", "json:$.b"}} }, "only the last part"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"ts"}} }, "can not be part of a key"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"body"}} }, "can not be part of a key"},
		{func(s *Spec) { s.Event.Key = [][]Value{{"id"}} }, "has no ID"},
		{func(s *Spec) { s.Event.Key = [][]Value{slices.Repeat([]Value{"json:$.id"}, 9)} }, "at most 8 parts"},
		{func(s *Spec) { s.Event.Type = []Value{"json:$.a[0]"} }, "Event.Type[0]"},
		{func(s *Spec) { s.Event.Tenant = []Value{"json:$.a?"} }, "Event.Tenant[0]"},
		{func(s *Spec) { s.Event.Time = []Moment{{"json:$.a", "h"}} }, "Event.Time[0]"},
		{func(s *Spec) { s.Event.Time = []Moment{{"body", Seconds}} }, "Event.Time[0]"},
		{func(s *Spec) { s.Same = []Value{"header:X"} }, "Same[0]"},
		{func(s *Spec) { s.Handshakes = []Handshake{{When: "json:$.t", Echo: "json:$.c"}} }, "Handshakes[0].Is"},
		{func(s *Spec) { s.Handshakes = []Handshake{{When: "x", Is: "y", Echo: "json:$.c"}} }, "Handshakes[0].When"},
		{func(s *Spec) { s.Handshakes = []Handshake{{When: "json:$.t", Is: "y", Echo: "body"}} }, "Handshakes[0].Echo"},
		{func(s *Spec) { s.Limits.MaxBody = -1 }, "Limits"},
		{func(s *Spec) { s.Answer.Status = 302 }, "Answer.Status"},
	} {
		spec, _ := Lookup("stripe")
		c.change(&spec)
		if _, err := New(spec, Settings{Secrets: []string{"fake"}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func TestValues(t *testing.T) {
	for text, want := range map[Value]string{
		"header:x-github-delivery": "header|X-Github-Delivery||false",
		"header:X-Name?":           "header|X-Name||true",
		"json:$.a.b-c.d":           "json||a/b-c/d|false",
		"json:$.a?":                "json||a|true",
		"const::":                  "const|:||false",
		"const:a?":                 "const|a?||false",
		"part:t=":                  "part|t=||false",
		"body":                     "body|||false",
		"ts":                       "ts|||false",
	} {
		v, err := parseValue(text)
		if got := fmt.Sprintf("%s|%s|%s|%v", v.kind, v.text, strings.Join(v.path, "/"), v.optional); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []Value{"", "x", "header", "header:", "header:?", "header:a b", "header:é", "json:", "json:$", "json:$.", "json:a",
		"json:$.a..b", "json:$.a.", "json:$.a[0]", "json:$.*", "const:", "part:", "body:x", "body?", "ts:", "form:x"} {
		if v, err := parseValue(text); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", text)) {
			t.Errorf("%q: %+v, %v", text, v, err)
		}
	}
}

// TestSecretsAreNotPrinted formats everything that holds a secret with every common verb.
func TestSecretsAreNotPrinted(t *testing.T) {
	const secret = "hidden-in-plain-sight"
	for _, v := range []any{
		Stripe(secret),
		GitHub(secret).Spec(),
		Settings{Secrets: []string{secret}},
		HMACConfig{Secrets: []string{secret}},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			if text := fmt.Sprintf(verb, v); strings.Contains(text, "hidden") || strings.Contains(text, fmt.Sprintf("%x", secret)) {
				t.Errorf("%T with %s: %s", v, verb, text)
			}
		}
	}
}
