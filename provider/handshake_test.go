package provider

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// greeting returns the provider of that name with a secret, with its handshakes enabled or not.
func greeting(t *testing.T, name, secret string, enabled bool) *spec.Provider {
	t.Helper()
	p, err := Build(name, spec.Settings{Secrets: spec.Secrets(secret), URL: "https://shop.example/in", Handshakes: enabled, Token: "fake-token"})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// unsigned returns a request without a body.
func unsigned(method, query string) *hookonce.Request {
	return &hookonce.Request{Method: method, URL: "https://shop.example/in?" + query, Header: http.Header{}, Now: now}
}

// worldlineAsks returns the GET by which Worldline verifies an endpoint, with that text in a header.
func worldlineAsks(text string) *hookonce.Request {
	req := unsigned("GET", "")
	req.Header.Set("X-GCS-Webhooks-Endpoint-Verification", text)
	return req
}

func mac(key, text string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(text))
	return h.Sum(nil)
}

func TestHandshakes(t *testing.T) {
	public, key := newEd25519(t)
	sum := sha256.Sum256([]byte("a7f3" + "fake-token" + "https://shop.example/in"))
	ping := unsigned("POST", "")
	ping.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	ping.Body = []byte("webhook_id=5")
	cases := map[string]struct {
		name, secret string
		req          func(p *spec.Provider) *hookonce.Request
		status       int
		contentType  string
		body         string
	}{
		"x": {"x", "s", func(*spec.Provider) *hookonce.Request { return unsigned("GET", "crc_token=abc123") },
			200, "application/json", `{"response_token":"sha256=` + base64.StdEncoding.EncodeToString(mac("s", "abc123")) + `"}`},
		"dropbox": {"dropbox", "s", func(*spec.Provider) *hookonce.Request { return unsigned("GET", "challenge=%3Cb%3E") },
			200, "text/plain; charset=utf-8", "<b>"},
		"trello":   {"trello", "s", func(*spec.Provider) *hookonce.Request { return unsigned("HEAD", "") }, 200, "", ""},
		"intercom": {"intercom", "s", func(*spec.Provider) *hookonce.Request { return unsigned("HEAD", "") }, 200, "", ""},
		"worldline": {"worldline-connect", "s", func(*spec.Provider) *hookonce.Request { return worldlineAsks("<b>e8c1</b>") },
			200, "text/plain; charset=utf-8", "<b>e8c1</b>"},
		"monday": {"monday", "fake-secret-of-at-least-32-characters", func(*spec.Provider) *hookonce.Request {
			req := unsigned("POST", "")
			req.Body = []byte(`{"challenge":"3eZbrw1a\"B"}`)
			return req
		}, 200, "application/json", `{"challenge":"3eZbrw1a\"B"}`},
		"notion": {"notion", "s", func(*spec.Provider) *hookonce.Request {
			req := unsigned("POST", "")
			req.Body = []byte(`{"verification_token":"secret_fake"}`)
			return req
		}, 200, "", ""},
		"woocommerce": {"woocommerce", "s", func(*spec.Provider) *hookonce.Request { return ping }, 200, "", ""},
		"ebay": {"ebay", "sandbox:client:secret", func(*spec.Provider) *hookonce.Request { return unsigned("GET", "challenge_code=a7f3") },
			200, "application/json", `{"challengeResponse":"` + hex.EncodeToString(sum[:]) + `"}`},
		"braintree": {"braintree", "pub:priv", func(*spec.Provider) *hookonce.Request {
			return unsigned("GET", "bt_challenge=20f9f8ed05f77439fe955c977e4c8a53")
		}, 200, "text/plain; charset=utf-8", "pub|" + braintreeAnswer("20f9f8ed05f77439fe955c977e4c8a53")},
		"zoom": {"zoom", "s", func(p *spec.Provider) *hookonce.Request {
			return signed(t, p, `{"event":"endpoint.url_validation","payload":{"plainToken":"q\"x"},"event_ts":1}`)
		}, 200, "application/json", `{"plainToken":"q\"x","encryptedToken":"` + hex.EncodeToString(mac("s", `q"x`)) + `"}`},
		"twitch": {"twitch", "s", func(p *spec.Provider) *hookonce.Request {
			return signed(t, p, `{"challenge":"pogchamp","subscription":{}}`, "Twitch-Eventsub-Message-Type", "webhook_callback_verification")
		}, 200, "text/plain; charset=utf-8", "pogchamp"},
		"azure": {"azure-event-grid", "s", func(*spec.Provider) *hookonce.Request {
			req := unsigned("POST", "code=s")
			req.Header.Set("Aeg-Event-Type", "SubscriptionValidation")
			req.Body = []byte(`[{"id":"1","topic":"t","eventType":"Microsoft.EventGrid.SubscriptionValidationEvent","data":{"validationCode":"512d38b6"}}]`)
			return req
		}, 200, "application/json", `{"validationResponse":"512d38b6"}`},
		"okta": {"okta", "s", func(*spec.Provider) *hookonce.Request {
			req := unsigned("GET", "")
			req.Header.Set("X-Okta-Verification-Challenge", `v"1`)
			return req
		}, 200, "application/json", `{"verification":"v\"1"}`},
		"discord": {"discord", public, func(*spec.Provider) *hookonce.Request { return discordRequest(key, `{"version":1,"type":0}`) },
			204, "application/json", ""},
		"discord interactions": {"discord-interactions", public, func(*spec.Provider) *hookonce.Request { return discordRequest(key, `{"type":1}`) },
			200, "application/json", `{"type":1}`},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			p := greeting(t, c.name, c.secret, true)
			d, err := p.Open(c.req(p))
			if err != nil || d.Handshake == nil {
				t.Fatalf("not answered: %+v, %v", d, err)
			}
			if a := d.Handshake; a.Status != c.status || a.ContentType != c.contentType || string(a.Body) != c.body {
				t.Errorf("got %d %s %s", a.Status, a.ContentType, a.Body)
			}
			silent := greeting(t, c.name, c.secret, false)
			if d, err := silent.Open(c.req(silent)); err == nil && d.Handshake != nil {
				t.Errorf("answered although it is not enabled: %s", d.Handshake.Body)
			}
		})
	}
}

func braintreeAnswer(challenge string) string {
	c, err := scheme.Braintree().Compile("pub:priv")
	if err != nil {
		return err.Error()
	}
	return strings.TrimPrefix(c.(spec.Responder).Respond(challenge), "pub|")
}

// A signed handshake that somebody else sends is answered with a rejection.
func TestHandshakesOfStrangers(t *testing.T) {
	_, stranger := newEd25519(t)
	public, _ := newEd25519(t)
	zoom, twitch := greeting(t, "zoom", "ours", true), greeting(t, "twitch", "ours", true)
	for name, c := range map[string]struct {
		p   *spec.Provider
		req *hookonce.Request
	}{
		"zoom":                 {zoom, signed(t, greeting(t, "zoom", "theirs", true), `{"event":"endpoint.url_validation","payload":{"plainToken":"v0:1:{}"}}`)},
		"twitch":               {twitch, signed(t, greeting(t, "twitch", "theirs", true), `{"challenge":"c"}`, "Twitch-Eventsub-Message-Type", "webhook_callback_verification")},
		"discord":              {greeting(t, "discord", public, true), discordRequest(stranger, `{"type":0}`)},
		"discord interactions": {greeting(t, "discord-interactions", public, true), discordRequest(stranger, `{"type":1}`)},
	} {
		t.Run(name, func(t *testing.T) { reason(t, c.p, c.req) })
	}
}

// Whoever asks for the answer to a challenge must not get the signature of a body.
func TestChallengesAreNoSigningOracle(t *testing.T) {
	x, braintree := greeting(t, "x", "s", true), greeting(t, "braintree", "pub:priv", true)
	for _, text := range []string{`{}`, `{"for_user_id":"1"}`, `[]`, ` `, `"a"`, "a\nb", strings.Repeat("a", 257), ""} {
		if d, err := x.Open(unsigned("GET", "crc_token="+url.QueryEscape(text))); err == nil {
			t.Errorf("x answers %q: %+v", text, d)
		}
	}
	payload := base64.StdEncoding.EncodeToString([]byte("<notification><kind>check</kind></notification>"))
	for _, text := range []string{payload, "PD94bWwgdmVyc2lvbj0iMS4w", "20F9F8ED05F77439FE955C977E4C8A53", "20f9", strings.Repeat("a", 33), "", strings.Repeat("a", 20) + "\n"} {
		if d, err := braintree.Open(unsigned("GET", "bt_challenge="+url.QueryEscape(text))); err == nil {
			t.Errorf("braintree answers %q: %+v", text, d)
		}
	}
}

// What was obtained as the answer to a challenge does not verify as the signature of a body.
func TestAnswersToChallengesAreNoSignatures(t *testing.T) {
	x := greeting(t, "x", "s", true)
	req := &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte("abc123"), Now: now}
	req.Header.Set("X-Twitter-Webhooks-Signature", "sha256="+base64.StdEncoding.EncodeToString(mac("s", "abc123")))
	if d, err := x.Open(req); !errors.Is(err, hookonce.ErrUnverified) {
		t.Errorf("x: %+v, %v", d, err)
	}
	const challenge = "20f9f8ed05f77439fe955c977e4c8a53"
	req = unsigned("POST", "")
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Body = []byte(url.Values{"bt_signature": {"pub|" + braintreeAnswer(challenge)}, "bt_payload": {challenge}}.Encode())
	if d, err := greeting(t, "braintree", "pub:priv", true).Open(req); !errors.Is(err, hookonce.ErrUnverified) {
		t.Errorf("braintree: %+v, %v", d, err)
	}
}

// WooCommerce's ping is not signed; an event that is sent like one is not swallowed.
func TestWooCommercePingSwallowsNoEvent(t *testing.T) {
	p := greeting(t, "woocommerce", "s", true)
	req := signed(t, p, `{"id":1,"webhook_id":5,"date_modified_gmt":"2026-02-03T04:05:06"}`, "X-WC-Webhook-Topic", "order.updated", "X-WC-Webhook-Source", "https://shop.example/")
	if ev := one(t, p, req); ev.Key == "" {
		t.Error("unkeyed")
	}
	forged := unsigned("POST", "")
	forged.Body = []byte(`{"webhook_id":5}`)
	reason(t, p, forged)
}

// TestHandshakeInAHeader: Asana wants its secret back, whoever asks; nothing else of the request matters.
func TestHandshakeInAHeader(t *testing.T) {
	p := Asana("another-secret")
	req := unsigned("POST", "")
	req.Header.Set("X-Hook-Secret", "b537207f20cbfa02357cf448134da559")
	req.Body = []byte("{}")
	d, err := p.Open(req)
	if err != nil || d.Handshake == nil || d.Handshake.Header["X-Hook-Secret"] != "b537207f20cbfa02357cf448134da559" || len(d.Handshake.Body) > 0 {
		t.Fatalf("%+v, %v", d, err)
	}
	events := signed(t, Asana("b537207f20cbfa02357cf448134da559"), `{"events":[]}`)
	reason(t, p, events) // a handshake makes no secret known
	options := unsigned("OPTIONS", "code=s")
	options.Header.Set("WebHook-Request-Origin", "eventgrid.azure.net")
	d, err = AzureEventGrid("s").Open(options)
	if err != nil || d.Handshake == nil || d.Handshake.Header["WebHook-Allowed-Origin"] != "eventgrid.azure.net" || d.Handshake.Header["WebHook-Allowed-Rate"] != "*" {
		t.Fatalf("%+v, %v", d, err)
	}
	options.Header.Set("WebHook-Request-Origin", "elsewhere.example")
	reason(t, AzureEventGrid("s"), options)
}
