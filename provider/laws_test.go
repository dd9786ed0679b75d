package provider

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// every calls f for each provider of the catalogue.
func every(t *testing.T, f func(*testing.T, spec.Spec, *spec.Provider)) {
	for _, name := range Names() {
		t.Run(name, func(t *testing.T) {
			s, _ := Lookup(name)
			f(t, s, fake(t, name))
		})
	}
}

func TestEveryProviderIsDocumented(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		if s.Title == "" || s.Secret == "" || len(s.Traps) == 0 {
			t.Error("title, secret or traps are missing")
		}
		if s.Example.Body == "" && s.Example.Form == "" {
			t.Error("the example is missing")
		}
		if strings.ToLower(s.Name) != s.Name || strings.ContainsAny(s.Name, "_. ") {
			t.Errorf("the name %q is not lower case joined by hyphens", s.Name)
		}
		for _, trap := range s.Traps {
			if strings.TrimSpace(trap) != trap || len(trap) < 20 || strings.HasSuffix(trap, ".") {
				t.Errorf("trap %q is not a phrase", trap)
			}
		}
	})
}

// TestEverySourceIsWellFormed: what is sourced says where, and what is not says so.
func TestEverySourceIsWellFormed(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		if len(s.Sources) == 0 && s.Name != "hmac" {
			t.Error("no sources")
		}
		for _, src := range s.Sources {
			known := slices.Contains([]spec.Confidence{spec.Stated, spec.Reported, spec.NotSourced}, src.Confidence)
			if !known || src.Fact == "" || (src.Where == "") != (src.Confidence == spec.NotSourced) {
				t.Errorf("%+v", src)
			}
		}
	})
}

// TestEveryGapIsAdmitted: a provider without a key, or whose retries are unknown, says so in its
// sources.
func TestEveryGapIsAdmitted(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		admits := func(what string) bool {
			return slices.ContainsFunc(s.Sources, func(src spec.Source) bool {
				return src.Confidence == spec.NotSourced && strings.Contains(src.Fact, what)
			})
		}
		if len(s.Event.Key) == 0 && s.Dedup.OnRepeat != spec.Off && !admits("key") {
			t.Error("it has no key, and does not say that none is known")
		}
		if s.Name != "hmac" && s.Limits.Retry == 0 && s.Dedup.Retry != spec.NotSent && !admits("retr") && !admits("sent again") {
			t.Error("it has no window of retries, and does not say that none is known")
		}
	})
}

// TestEveryProviderAsksAgain: when we are at fault nobody is told that the request was wrong. Many
// senders drop the event then, or disable the webhook. Secrets that nobody renewed are our fault.
func TestEveryProviderAsksAgain(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: http.Header{}, Body: []byte(s.Example.Body), Now: now}
		if s.Imitable() {
			req = sent(t, p, "101", "")
		}
		out := fakeWith(t, s, spec.Secret{Text: secretFor(s), Until: now})
		if _, err := out.Open(req); err == nil || errors.Is(err, hookonce.ErrUnverified) {
			t.Errorf("a secret that has run out: %v", err)
		}
	})
}

// TestRetriesAreNotTooOld: a tolerance that is shorter than the sender retries refuses the retries of whoever signs once, and
// the event is lost. It covers them, or a source says that a retry is signed anew, or why that is assumed.
func TestRetriesAreNotTooOld(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		anew := slices.ContainsFunc(s.Sources, func(src spec.Source) bool {
			return strings.Contains(src.Fact, "a retry is signed anew") && (src.Confidence != spec.NotSourced || strings.Contains(src.Fact, assumed))
		})
		for i, v := range s.Verify {
			if v.Time == nil || v.Time.Past == 0 || anew {
				continue
			}
			switch retry := s.Limits.Retry; {
			case retry > v.Time.Past:
				t.Errorf("way %d: it retries for %v, and what was signed %v ago is refused", i+1, retry, v.Time.Past)
			case retry == 0 && s.Dedup.Retry == spec.Stable:
				t.Errorf("way %d: it retries, nobody knows for how long, and what was signed %v ago is refused", i+1, v.Time.Past)
			}
		}
	})
}

// TestEveryKeyCanBeKept: the retention that is the default covers every sender.
func TestEveryKeyCanBeKept(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, _ *spec.Provider) {
		if keep := s.Limits.Keep(); keep > 90*day {
			t.Errorf("keys must be kept for %v", keep)
		}
	})
}

func TestEverySampleRoundTrips(t *testing.T) {
	testskip.Race(t)
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		if !s.Imitable() {
			header, body := s.Sample(spec.Sample{ID: "a", Time: now})
			if err := p.Sign(&hookonce.Request{URL: "https://shop.example/in", Header: header, Body: body, Now: now}); err == nil {
				t.Error("it signs without the sender's private key")
			}
			return
		}
		keys := map[string]int{}
		for _, id := range []string{"101", "102", "101"} {
			ev := one(t, p, sent(t, p, id, ""))
			keys[ev.Key]++
			if len(s.Event.Type) > 0 && ev.Type == "" && s.Name != "x" || // posts of X have no type of their own
				ev.Provider != s.Name {
				t.Errorf("type %q of %s", ev.Type, ev.Provider)
			}
			if !ev.Time.IsZero() && ev.Time.Sub(now).Abs() >= time.Second {
				t.Errorf("time %v, want %v", ev.Time, now)
			}
		}
		switch keyed := len(s.Event.Key) > 0; {
		case keyed && (len(keys) != 2 || keys[""] > 0):
			t.Errorf("two ids, one of them twice, are the keys %v", keys)
		case !keyed && keys[""] != 3:
			t.Errorf("it has no key, and makes %v", keys)
		}
	})
}

// TestEveryProviderRefusesForgeries changes the presence of the signature, the secret and the body.
func TestEveryProviderRefusesForgeries(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		bare := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: http.Header{}, Body: []byte(`{"id":"1"}`), Now: now}
		if d, err := p.Open(bare); err == nil {
			t.Errorf("a request without a signature is accepted: %+v", d)
		}
		if !s.Imitable() {
			return
		}
		reason(t, p, sent(t, fakeWith(t, s, spec.Secrets(otherSecretFor(s))...), "101", ""))
		req := sent(t, p, "101", "")
		d, err := p.Open(req)
		if err != nil {
			t.Fatal(err)
		}
		if d.Proof.Covers == string(spec.CoversBody) {
			req.Body = bytes.Replace(req.Body, []byte("101"), []byte("102"), 1)
			if bytes.Contains(req.Body, []byte("102")) {
				reason(t, p, req)
			}
			req.Body = append(req.Body, ' ')
			reason(t, p, req)
		}
	})
}

// sent returns a sample of the provider's event with that id and type, signed at now.
func sent(t testing.TB, p *spec.Provider, id, kind string) *hookonce.Request {
	t.Helper()
	return sentAs(t, p, spec.Sample{ID: id, Type: kind, Time: now})
}

// sentAs returns that sample, signed at now.
func sentAs(t testing.TB, p *spec.Provider, of spec.Sample) *hookonce.Request {
	t.Helper()
	header, body := p.Spec().Sample(of)
	req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: header, Body: body, Now: now}
	if p.Name() == "twilio-events" { // whoever calls puts the hash of the body into the URL
		sum := sha256.Sum256(body)
		req.URL += "?bodySHA256=" + hex.EncodeToString(sum[:])
	}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// TestGuess: what has to be guessed is what is secret in a secret; of public keys nothing is.
func TestGuess(t *testing.T) {
	const public = "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----\n"
	for _, c := range []struct {
		provider, secret string
		want             int
	}{
		{"github", "a", 1}, {"github", "twelve-chars", 12},
		{"stripe", "whsec_ab", 8},   // all of the text is the key
		{"standard", "whsec_YQ", 2}, // only what follows is
		{"standard", "YWI", 3}, {"standard", "not base64!", -1}, {"standard", "whpk_YWI=", -1},
		{"adyen", "00ff", 4},
		{"chargebee", "a-long-user:1", 1}, {"chargebee", "none", 0},
		{"gitlab", "token", 5}, {"auth0", "Bearer x", 8}, {"twilio", "a", 1},
		{"hubspot", "a", 1}, {"mailgun", "abc", 3}, {"shippo", "abc", 3},
		{"discord", "00", -1}, {"telnyx", "YQ==", -1}, {"wise", public, -1}, {"sendgrid", "YQ==", -1},
	} {
		s, err := Lookup(c.provider)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Guess(c.secret); got != c.want {
			t.Errorf("%s: %q has %d characters to guess, want %d", c.provider, c.secret, got, c.want)
		}
	}
}

// TestWhoSignsTheURL: those behind a proxy have to be told it, and nobody else.
func TestWhoSignsTheURL(t *testing.T) {
	var signing []string
	every(t, func(_ *testing.T, s spec.Spec, _ *spec.Provider) {
		if s.SignsURL() {
			signing = append(signing, s.Name)
		}
	})
	if want := []string{"bird", "contentful", "http-signature", "hubspot", "hubspot-legacy", "mandrill", "messagebird", "plivo", "square", "trello", "twilio", "twilio-events"}; !slices.Equal(signing, want) {
		t.Errorf("%v, want %v", signing, want)
	}
}

// TestOnlyTheDocumentedStatus: some senders send again what is answered with another success.
func TestOnlyTheDocumentedStatus(t *testing.T) {
	for _, name := range []string{"coinbase-commerce", "lemon-squeezy", "mailgun", "paddle", "postmark", "quickbooks", "xero"} {
		if ok := fake(t, name).Profile().Acknowledgement; ok.Status != 200 || len(ok.Body) > 0 {
			t.Errorf("%s: %+v", name, ok)
		}
	}
}

// TestTheLargestEventsFit: of senders that send large bodies, and never again what was refused for its size.
func TestTheLargestEventsFit(t *testing.T) {
	for _, name := range []string{"github", "gitlab", "jira", "gitea", "forgejo"} {
		if most := fake(t, name).Profile().MaxBody; most != 25<<20 {
			t.Errorf("%s: bodies of up to %d bytes", name, most)
		}
	}
}

// TestRejectionsCostNoSubscription: a secret that was changed on one side only is answered with a status
// after which the sender comes again; and whatever is our own fault with one that all of them retry.
func TestRejectionsCostNoSubscription(t *testing.T) {
	mild := map[string]int{
		"aws-sns":    503, // a status of the 400s is a success for it
		"bitbucket":  503, // after which alone it sends again
		"brevo":      429,
		"datadog":    503,
		"elevenlabs": 503,
		"gumroad":    503,
		"jira":       503,
		"logto":      503,
		"segment":    503,
		"zendesk":    503,
		"gitlab":     503, // older versions disable the webhook for good after four of the 400s
		"pagerduty":  429, // any other of the 400s drops the event
		"sanity":     429,
		"sentry":     503, // each of the 400s ends its attempts
		"sinch":      503, // so do those of the callbacks of its SMS API, but 429
		"discord":    401, // which is what its probes want
		"xero":       401,
	}
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		rejected, notReady := p.Profile().Rejected, p.Profile().NotReady
		if want, ok := mild[s.Name]; ok && rejected != want {
			t.Errorf("rejects with %d, want %d", rejected, want)
		}
		if want := mild[s.Name]; want == 429 || want == 503 { // then it is the answer to whatever is wrong
			for _, usual := range []int{400, 408, 413, 429, 431} {
				if got := p.Profile().Refusal(usual, nil); got != want {
					t.Errorf("answers %d where HTTP has %d, want %d", got, usual, want)
				}
			}
		}
		ours := 503
		if s.Name == "brevo" {
			ours = 429 // which is all that is surely sent again after
		}
		if rejected == 403 || rejected == 404 || rejected == 406 || rejected == 410 || notReady != ours {
			t.Errorf("%d and %d end the retries, or the webhook, of some senders", rejected, notReady)
		}
	})
}

// TestAMemoryOfMinutesIsShort: a cache of five minutes lets through every retry that comes later.
// The configuration refuses to forget keys sooner than Keep says.
func TestAMemoryOfMinutesIsShort(t *testing.T) {
	longer := 0
	every(t, func(_ *testing.T, s spec.Spec, _ *spec.Provider) {
		if s.Limits.Keep() > 5*time.Minute {
			longer++
		}
	})
	if longer < 30 {
		t.Errorf("keys of %d senders only must be kept for longer: their windows are gone", longer)
	}
}
