package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// offline is a network that nobody answers on.
type offline struct{}

var errOffline = errors.New("there is no network")

func (offline) RoundTrip(*http.Request) (*http.Response, error) { return nil, errOffline }

// everywhere returns every provider of the catalogue. Those that fetch keys find none.
func everywhere(t testing.TB) []*spec.Provider {
	t.Helper()
	fetching := map[string]spec.Scheme{
		"aws-sns": scheme.AmazonSNS(offline{}), "circle": scheme.Circle(offline{}), "ebay": scheme.EBay(offline{}), "paypal": scheme.PayPal(offline{}, nil), "plaid": scheme.Plaid(offline{}),
		"azure-event-grid-entra": scheme.AzureEventGrid(offline{}), "google-play": scheme.GooglePlay(offline{}), "google-pubsub": scheme.GooglePubSub(offline{}), "kinde": scheme.Kinde(offline{}),
	}
	var all []*spec.Provider
	for _, name := range Names() {
		if code, ok := fetching[name]; ok {
			s, _ := Lookup(name)
			all = append(all, withScheme(t, name, code, secretFor(s)))
		} else {
			all = append(all, fake(t, name))
		}
	}
	return all
}

// FuzzOpen sends arbitrary bodies and headers to every provider: as they are, signed, and signed and
// then changed in one byte. It never panics, a rejection says why, what is accepted can be stored, and
// what was changed is not accepted where the signature covers it.
func FuzzOpen(f *testing.F) {
	testskip.Race(f)
	for _, v := range published(f) {
		for name, text := range v.Headers {
			f.Add(name, text, v.Headers["Content-Type"], v.Body, uint16(len(v.Body)/2))
		}
	}
	all := everywhere(f)
	for i, p := range all {
		header, body := p.Spec().Sample(spec.Sample{ID: "id_1", Time: now})
		f.Add("X-Fuzz", "x", header.Get("Content-Type"), body, uint16(i))
	}
	for _, body := range []string{
		"", "{}", "[]", `{"id":"a","id":"b"}`, `{"id":"\ud800"}`, `{"data":{"object":{"id":1}},"data":7}`, `{"id":{"id":`, "{}\n{}",
		`{"type":"url_verification","challenge":"c"}`, "payload=%7B%22event_id%22%3A1%7D", strings.Repeat("[", 3000),
	} {
		f.Add("X-GitHub-Delivery", "guid", "application/x-www-form-urlencoded", []byte(body), uint16(1))
	}
	f.Fuzz(func(t *testing.T, name, text, contentType string, body []byte, at uint16) {
		for _, p := range all {
			req := &hookonce.Request{URL: "https://shop.example/in", Header: http.Header{"Content-Type": {contentType}}, Body: slices.Clone(body), Now: now}
			req.Header.Set(name, text)
			if !refused(t, p, req) {
				t.Fatalf("%s: accepted without a signature", p.Name())
			}
			if key := p.UnverifiedKey(req); key != hookonce.NormalKey(key) {
				t.Fatalf("%s: the key %q of what is not verified", p.Name(), key)
			}
			if id, ok := strings.CutPrefix(string(p.Spec().Verify[0].ID), "header:"); ok {
				req.Header.Set(id, "msg_1")
			}
			if p.Sign(req) != nil || refused(t, p, req) && (asksAnswers(p) || slices.Contains(unbounded, p.Name()) && !readable(req.Body)) {
				continue
			}
			d, err := p.Open(req)
			if err != nil {
				t.Fatalf("%s: signed, but %v", p.Name(), err)
			}
			checkDelivery(t, p, d)
			if key := p.UnverifiedKey(req); len(p.Spec().Verify) == 1 && len(d.Events) > 0 && len(req.Body) <= 64<<10 && key != d.Events[0].Key {
				t.Fatalf("%s: the key is %q, and was %q before it was verified", p.Name(), d.Events[0].Key, key)
			}
			if d.Proof.Covers == string(spec.CoversBody) && len(req.Body) > 0 {
				req.Body[int(at)%len(req.Body)] ^= 1
				if !refused(t, p, req) {
					t.Fatalf("%s: accepted with another body", p.Name())
				}
			}
		}
	})
}

// asksAnswers reports whether the provider has challenges that are answered with a signature: a body that
// looks like one is refused.
func asksAnswers(p *spec.Provider) bool {
	return slices.ContainsFunc(p.Spec().Handshakes, func(h spec.Handshake) bool { return h.Code != nil })
}

// unbounded lists who signs something of any length right beside the body: what is no JSON may be a piece
// of a body, and is refused.
var unbounded = []string{"airwallex", "cashfree", "cloudinary", "hubspot", "hubspot-legacy", "klaviyo", "square", "trello", "twitch"}

// readable reports whether a body is JSON, and certainly not nested too deep.
func readable(body []byte) bool { return len(body) < 1000 && json.Valid(body) }

// refused opens a request and reports whether that failed, as it should.
func refused(t *testing.T, p *spec.Provider, req *hookonce.Request) bool {
	t.Helper()
	_, err := p.Open(req)
	var rej *hookonce.RejectError
	if err != nil && !errors.Is(err, errOffline) && (!errors.As(err, &rej) || rej.Reason == "" || rej.Detail == "") {
		t.Fatalf("%s: %v", p.Name(), err)
	}
	return err != nil
}

// checkDelivery checks what holds for every delivery.
func checkDelivery(t *testing.T, p *spec.Provider, d *hookonce.Verified) {
	t.Helper()
	if d.Handshake != nil || d.Unreadable != nil && len(d.Events) != 1 {
		t.Fatalf("%s: %+v", p.Name(), d)
	}
	for i := range d.Events {
		ev := d.Events[i]
		ev.Source = "source"
		if err := ev.Ref().Validate(); err != nil {
			t.Fatalf("%s: %v", p.Name(), err)
		}
		if d.Unreadable != nil && strings.Contains(ev.KeyOrigin, "json:") || len(ev.Digest) != 16 || (ev.Key == "") != (ev.KeyOrigin == "") {
			t.Fatalf("%s: %v, %+v", p.Name(), d.Unreadable, ev)
		}
		if p.Spec().Split != nil && p.Spec().Form == "" && d.Unreadable == nil && !json.Valid(bytes.TrimSpace(ev.Body)) {
			t.Fatalf("%s: an item with the body %q", p.Name(), ev.Body)
		}
	}
}
