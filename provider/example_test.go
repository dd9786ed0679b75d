package provider_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// sample returns a request as the provider would send it.
func sample(p *spec.Provider, id, eventType string) *hookonce.Request {
	now := time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)
	header, body := p.Spec().Sample(spec.Sample{ID: id, Type: eventType, Time: now})
	req := &hookonce.Request{Method: http.MethodPost, Header: header, Body: body, Now: now}
	if err := p.Sign(req); err != nil {
		panic(err)
	}
	return req
}

// show opens a request and prints what it carries.
func show(p *spec.Provider, req *hookonce.Request) {
	d, err := p.Open(req)
	if err != nil {
		fmt.Println("rejected:", err)
		return
	}
	for _, ev := range d.Events {
		fmt.Println(ev.Type, ev.Key, ev.KeyOrigin, ev.KeySigned)
	}
}

func ExampleStripe() {
	p := provider.Stripe("whsec_new", "whsec_old") // both, while the secret is being rotated
	show(p, sample(provider.Stripe("whsec_old"), "evt_1", "charge.refunded"))
	// Output: charge.refunded evt_1 json:$.id true
}

func ExampleGitHub() {
	p := provider.GitHub("It's a Secret to Everybody")
	show(p, sample(p, "72d3162e-cc78-11e3-81ab-4c9367dc0958", "issues.opened"))
	// Output: issues.opened 72d3162e-cc78-11e3-81ab-4c9367dc0958 header:X-GitHub-Delivery false
}

func ExampleStandard() {
	p := provider.Standard("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
	show(p, sample(p, "msg_1", "invoice.paid"))
	// Output: invoice.paid msg_1 header:webhook-id true
}

// An application behind the gateway, which delivers with these secrets.
func ExampleHookonce() {
	p := provider.Hookonce("whsec_ZmFrZSBzZWNyZXQ=")
	req := &hookonce.Request{Method: http.MethodPost, Now: time.Now(), Body: []byte(`{"id": "evt_1", "type": "invoice.paid"}`), Header: http.Header{
		"Idempotency-Key":     {"billing:evt_1"},
		"Hookonce-Source":     {"billing"},
		"Hookonce-Key":        {"evt_1"},
		"Hookonce-Event-Type": {"invoice.paid"},
		"Hookonce-Attempt":    {"2"},
	}}
	if err := p.Sign(req); err != nil {
		fmt.Println(err)
	}
	d, err := p.Open(req)
	if err != nil {
		fmt.Println("rejected:", err)
		return
	}
	ev := d.Events[0]
	fmt.Println(ev.Source, ev.Key, ev.Type, ev.Gateway.Attempt)
	// Output: billing evt_1 invoice.paid 2
}

// An application that has the public key of its gateway, and no secret. A test signs with a private key of its own.
func ExampleHookonceHTTP() {
	const private = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF\n-----END PRIVATE KEY-----\n"
	const public = "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=\n-----END PUBLIC KEY-----\n"
	gateway := provider.HookonceHTTP(provider.HookonceHTTPConfig{Keys: []string{private}, AsSender: true})
	req := &hookonce.Request{Method: http.MethodPost, URL: "https://shop.example/hooks", Now: time.Now(), Body: []byte(`{"id": "evt_1"}`), Header: http.Header{
		"Idempotency-Key": {"billing:evt_1"},
		"Hookonce-Source": {"billing"},
		"Hookonce-Key":    {"evt_1"},
	}}
	if err := gateway.Sign(req); err != nil {
		panic(err)
	}
	p := provider.HookonceHTTP(provider.HookonceHTTPConfig{Keys: []string{public}})
	d, err := p.Open(req)
	if err != nil {
		panic(err)
	}
	fmt.Println(d.Events[0].Source, d.Events[0].Key)
	req.Header.Set("Hookonce-Key", "evt_2")
	_, err = p.Open(req)
	fmt.Println(errors.Is(err, hookonce.ErrUnverified))
	// Output:
	// billing evt_1
	// true
}

func ExampleSquare() {
	p := provider.Square("https://shop.example/webhooks/square", "signature-key")
	show(p, sample(p, "ac3ac95b", "payment.updated"))
	// Output: payment.updated ac3ac95b json:$.event_id true
}

func ExampleSlack() {
	p := provider.Slack("signing-secret")
	req := &hookonce.Request{Body: []byte(`{"type":"url_verification","challenge":"3eZbrw1a"}`), Now: time.Now()}
	if err := p.Sign(req); err != nil {
		panic(err)
	}
	d, _ := p.Open(req)
	fmt.Println(d.Handshake.Status, d.Handshake.ContentType, string(d.Handshake.Body))
	// Output: 200 text/plain; charset=utf-8 3eZbrw1a
}

func ExampleHMAC() {
	p := provider.HMAC(provider.HMACConfig{
		Secrets: []string{"shared-secret"},
		Header:  "X-Shop-Signature",
		Prefix:  "sha256=",
		Key:     []spec.Value{"json:$.shop", "json:$.order.id"},
		Type:    "json:$.kind",
	})
	req := &hookonce.Request{Body: []byte(`{"shop":"a","order":{"id":17},"kind":"order.paid"}`)}
	if err := p.Sign(req); err != nil {
		panic(err)
	}
	show(p, req)
	// Output: order.paid 1:a2:17 json:$.shop + json:$.order.id true
}

// A rejection says what is wrong with the request, in a form for metrics and a form for people.
func Example_rejection() {
	p := provider.Stripe("whsec_ours")
	_, err := p.Open(sample(provider.Stripe("whsec_theirs"), "evt_1", ""))
	var rejected *hookonce.RejectError
	fmt.Println(errors.As(err, &rejected), rejected.Reason)
	// Output: true signature_mismatch
}

func ExampleBuild() {
	_, err := provider.Build("strpe", spec.Settings{Secrets: spec.Secrets("whsec_example")})
	fmt.Println(err)
	// Output: no such provider: "strpe"; did you mean "stripe"?
}

func ExampleLookup() {
	stripe, err := provider.Lookup("stripe")
	fmt.Println(stripe.Title, spec.FormatDuration(stripe.Limits.Retry), err)
	// Output: Stripe 3d <nil>
}

func ExampleNames() {
	fmt.Println(provider.Names()[:3])
	// Output: [adyen adyen-platform airtable]
}
