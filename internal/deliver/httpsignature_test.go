package deliver

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/httpsig/httpsigtest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/retry"
)

// httpSigner returns a destination that signs with HTTP message signatures.
func httpSigner(t *testing.T, s Destination, kinds ...httpsig.Algorithm) *destination {
	t.Helper()
	s.URL, s.Timeout, s.Concurrency, s.Stale, s.Schedule = "https://user:fake@app.internal/hooks?a=1", time.Second, 1, StaleDeliver, retry.Default()
	for _, a := range kinds {
		key, err := outgoing.NewHTTPKey("of "+string(a), httpsigtest.Of(a).Private)
		if err != nil {
			t.Fatal(err)
		}
		s.HTTPKeys = append(s.HTTPKeys, key)
	}
	d, err := newDestination("app", s, nil, http.DefaultTransport, nil)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// attemptAt returns the request of an attempt.
func attemptAt(t *testing.T, d *destination, w *journal.Work, at time.Time) *http.Request {
	t.Helper()
	r, err := newRequest(t.Context(), d, w, d.passed(w, at))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// inputs returns the signatures of a request, which must verify as seen at the address.
func inputs(t *testing.T, d *destination, r *http.Request, seen string) []httpsig.Signature {
	t.Helper()
	found, err := httpsig.Parse(r.Header[httpsig.InputHeader], r.Header[httpsig.SignatureHeader])
	if err != nil || len(found) != len(d.HTTPKeys) {
		t.Fatal(found, err)
	}
	for i := range found {
		base, err := found[i].Base(&httpsig.Request{Method: r.Method, URL: seen, Header: r.Header})
		if err != nil || !d.HTTPKeys[i].Verify(base, found[i].Value) || found[i].Texts["keyid"] != d.HTTPKeys[i].ID {
			t.Errorf("signature %d does not verify: %v\n%s", i+1, err, base)
		}
	}
	return found
}

// Each attempt is signed anew, with each key, over what the request is about.
func TestHTTPSignatureOfEachAttempt(t *testing.T) {
	d := httpSigner(t, Destination{}, httpsig.Ed25519, httpsig.HMACSHA256)
	w := work("billing", "evt_1", 7)
	w.Header = []byte("Content-Type: application/json\r\nSignature: sig1=:AAAA:\r\nSignature-Input: sig1=()\r\nContent-Digest: md5=:AAAA:\r\n")
	first := time.Unix(1767323046, 0)
	for attempt := range 2 {
		at := first.Add(time.Duration(attempt) * time.Hour)
		w.Token = int64(attempt + 1)
		r := attemptAt(t, d, w, at)
		for _, s := range inputs(t, d, r, "https://app.internal/hooks?a=1") {
			if *s.Created != at.Unix() || *s.Expires != at.Unix()+300 {
				t.Errorf("attempt %d was created at %d and expires at %d", attempt+1, *s.Created, *s.Expires)
			}
			for _, name := range []string{"@method", "content-digest", "content-type", "idempotency-key", "hookonce-attempt", "hookonce-key"} {
				if !s.Covers(name) {
					t.Errorf("it does not cover %s", name)
				}
			}
		}
		if err := httpsig.CheckDigest(r.Header[httpsig.DigestHeader], w.Body); err != nil || strings.Contains(r.Header.Get(httpsig.DigestHeader), "md5") {
			t.Error(err, r.Header[httpsig.DigestHeader])
		}
	}
}

// An application behind a proxy of its own verifies the address that it believes to be called at.
func TestHTTPSignatureOfAnotherAddress(t *testing.T) {
	d := httpSigner(t, Destination{AppURL: "https://shop.example/in?b=2"}, httpsig.Ed25519)
	w := work("billing", "evt_1", 7)
	inputs(t, d, attemptAt(t, d, w, time.Now()), "https://shop.example/in?a=1")
	d = httpSigner(t, Destination{AppURL: "https://shop.example/in"}, httpsig.Ed25519)
	sent := d.passed(w, time.Now())
	sent.URL = "https://app.internal/hooks" // signing took the query away
	r, err := newRequest(t.Context(), d, w, sent)
	if err != nil {
		t.Fatal(err)
	}
	inputs(t, d, r, "https://shop.example/in")
}

// The other signature may stand beside it, and a delivery that cannot be signed is nobody's failure but ours.
func TestHTTPSignatureBesideTheOther(t *testing.T) {
	d := httpSigner(t, Destination{Secrets: []string{"whsec_ZmFrZQ=="}}, httpsig.Ed25519)
	w := work("billing", "evt_1", 7)
	at := time.Unix(1767323046, 0)
	r := attemptAt(t, d, w, at)
	inputs(t, d, r, "https://app.internal/hooks?a=1")
	if outgoing.VerifyFacts(d.secrets, r.Header.Get(header.WebhookID), "1767323046", r.Header, r.Header.Get(header.HookonceSignature)) != 1 {
		t.Error("the other signature does not verify")
	}
	d.HTTPKeys = make([]outgoing.HTTPKey, 1)
	_, err := newRequest(t.Context(), d, w, d.passed(w, at))
	if v := retry.JudgeError(err, time.Second); err == nil || v.Result != retry.Uncounted {
		t.Errorf("%v counts: %+v", err, v)
	}
}

func TestHTTPSignatureSettings(t *testing.T) {
	key, err := outgoing.NewHTTPKey("k1", httpsigtest.Secret)
	if err != nil {
		t.Fatal(err)
	}
	good := Destination{URL: "https://app.internal/", Timeout: time.Second, Concurrency: 1, Stale: StaleDeliver, Schedule: retry.Default()}
	many, odd, oddApp := good, good, good
	many.HTTPKeys = []outgoing.HTTPKey{key, key, key, key, key}
	odd.URL, odd.HTTPKeys = "https://bücher.example/", many.HTTPKeys[:1]
	oddApp.AppURL, oddApp.HTTPKeys = "https://bücher.example/", many.HTTPKeys[:1]
	for want, s := range map[string]Destination{"at most 4": many, "begins with xn--": odd, "one that begins with xn--": oddApp} {
		if _, err := newDestination("app", s, nil, http.DefaultTransport, nil); err == nil || !strings.Contains(err.Error(), want) || bytes.Contains([]byte(err.Error()), []byte("bücher")) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
