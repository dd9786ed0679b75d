package provider

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// What somebody who got hold of one genuine request can make of it.

// TestAdyenItemsAreReadByAllAlike: Go's encoding/json, and others, take "Success" for "success".
func TestAdyenItemsAreReadByAllAlike(t *testing.T) {
	p := fake(t, "adyen")
	const before, after = `{"live":"false","notificationItems":[`, `]}`
	genuine := string(signed(t, p, before+`{"NotificationRequestItem":{"additionalData":{},"amount":{"currency":"EUR","value":1000},`+
		`"eventCode":"AUTHORISATION","merchantAccountCode":"Shop","merchantReference":"","pspReference":"8515","success":"false"}}`+after).Body)
	item := strings.TrimSuffix(strings.TrimPrefix(genuine, before), after)
	const evil = `{"NotificationRequestItem":{"pspReference":"9999","success":"true"}}`
	for name, body := range map[string]string{
		"a field":             strings.Replace(genuine, `"success":"false"`, `"success":"false","Success":"true"`, 1),
		"a field left out":    strings.Replace(genuine, `"success":"false"`, `"success":"false","OriginalReference":"9999"`, 1),
		"a part of the sum":   strings.Replace(genuine, `"value":1000`, `"value":1000,"Value":999999`, 1),
		"the whole item":      before + `{"notificationRequestItem":{"success":"true"},` + item[1:] + after,
		"all items":           strings.TrimSuffix(genuine, "}") + `,"NotificationItems":[` + evil + `]}`,
		"items in an object":  `{"notificationItems":{"0":` + evil + `},` + item[1:],
		"items of a stranger": before + evil + "," + item + after,
	} {
		if body == genuine {
			t.Fatalf("%s: nothing is changed", name)
		}
		reason(t, p, &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: now})
	}
}

// TestTheURLEndsWhereItIsRegistered: what is signed after the URL cannot be moved into its query.
func TestTheURLEndsWhereItIsRegistered(t *testing.T) {
	const registered = "https://shop.example/in?shop=1"
	for _, name := range []string{"square", "hubspot", "trello"} {
		s, _ := Lookup(name)
		p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(secretFor(s)), URL: registered})
		if err != nil {
			t.Fatal(err)
		}
		req := sent(t, p, "101", "")
		req.URL = registered
		one(t, p, req)
		genuine := req.Body
		for _, cut := range []int{1, len(genuine) / 2, len(genuine) - 1, len(genuine)} {
			req.URL, req.Body = registered+string(genuine[:cut]), genuine[cut:]
			reason(t, p, req)
		}
	}
}

// TestTwilioFormsCanNotBecomeTheURL: in a URL that held the form, the text of a message could name the
// hash of another body.
func TestTwilioFormsCanNotBecomeTheURL(t *testing.T) {
	const registered = "https://shop.example/in?t=1"
	s, _ := Lookup("twilio")
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(secretFor(s)), URL: registered})
	if err != nil {
		t.Fatal(err)
	}
	evil := []byte("From=%2B1555&MessageSid=SMevil&SmsStatus=received&Body=pay")
	sum := sha256.Sum256(evil)
	text := "&bodySHA256=" + hex.EncodeToString(sum[:]) + "&x="
	form := url.Values{"AccountSid": {"AC1"}, "Body": {text}, "From": {"+1555"}, "MessageSid": {"SM1"}, "SmsStatus": {"received"}}
	req := signed(t, p, form.Encode(), "Content-Type", "application/x-www-form-urlencoded")
	req.URL = registered
	one(t, p, req)
	req.URL, req.Body = registered+"AccountSidAC1Body"+text+"From+1555MessageSidSM1SmsStatusreceived", evil
	reason(t, p, req)
}

// TestBodiesThatBeginAnywhereAreRefused: the signature has nothing between the time, or the URL, and the
// body. A cut body has no key, and would pass through however often it is sent.
func TestBodiesThatBeginAnywhereAreRefused(t *testing.T) {
	const sent, discord, sendgrid = "1770091506", `{"id":"1","type":2,"data":{"n":7}}`, `[{"sg_event_id":"a","event":"delivered"}]` + "\r\n"
	public, key := newEd25519(t)
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(&ec.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(sent + sendgrid))
	signature, err := ecdsa.SignASN1(rand.Reader, ec, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, secret, sigHeader, signature, timeHeader, body string }{
		{"discord", public, "X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(key, []byte(sent+discord))), "X-Signature-Timestamp", discord},
		{"discord-interactions", public, "X-Signature-Ed25519", hex.EncodeToString(ed25519.Sign(key, []byte(sent+discord))), "X-Signature-Timestamp", discord},
		{"sendgrid", base64.StdEncoding.EncodeToString(spki), "X-Twilio-Email-Event-Webhook-Signature", base64.StdEncoding.EncodeToString(signature),
			"X-Twilio-Email-Event-Webhook-Timestamp", sendgrid},
	} {
		p, err := Build(c.name, spec.Settings{Secrets: spec.Secrets(c.secret)})
		if err != nil {
			t.Fatal(err)
		}
		text := sent + c.body
		for _, cut := range []int{len(sent), 0, 1, len(sent) - 1, len(sent) + 1, len(sent) + 4, len(text) - 3, len(text)} {
			req := &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(text[cut:]), Now: now}
			req.Header.Set(c.sigHeader, c.signature)
			req.Header.Set(c.timeHeader, text[:cut])
			if cut == len(sent) {
				one(t, p, req)
			} else {
				reason(t, p, req)
			}
		}
	}
	p, err := Build("square", spec.Settings{Secrets: spec.Secrets("fake")}) // with the URL of the request
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"event_id":"e","type":"payment.updated"}`
	req := signed(t, p, body)
	for cut := range len(body) + 1 {
		req.URL, req.Body = "https://shop.example/in"+body[:cut], []byte(body[cut:])
		if cut == 0 {
			one(t, p, req)
		} else {
			reason(t, p, req)
		}
	}
}

// TestTwilioFieldsAreNotAdded: a second value of a field counts for some parsers, and no key is believed
// to be signed, because names and values run into each other.
func TestTwilioFieldsAreNotAdded(t *testing.T) {
	const form = "AccountSid=AC1&Body=hello&From=%2B1555&MessageSid=SM1&MessageStatus=delivered"
	p := Twilio("https://shop.example/in", "token")
	at := func(body string) *hookonce.Request {
		req := twilioRequest(t, "https://shop.example/in", form)
		req.Body = []byte(body)
		return req
	}
	one(t, p, at(form))
	for _, body := range []string{form + "&Body=pay", form + "&MessageSid=SM2", form + "&MessageSid=SM0", form + "&To="} {
		reason(t, p, at(body))
	}
	d, err := p.Open(at("AccountSid=AC1&Body=hello&From=%2B1555&MessageSid=SM1MessageStatusdelivered&SmsStatus="))
	if err == nil {
		t.Errorf("a field is added: %+v", d)
	}
	d, err = p.Open(at("AccountSid=AC1&Body=helloFrom%2B1555&MessageSid=SM1&MessageStatus=delivered"))
	if err != nil || d.Proof.Covers != string(spec.CoversFields) || d.Events[0].KeySigned {
		t.Errorf("two fields in one are believed: %+v, %v", d, err)
	}
	// The query of a URL does not become a field.
	req := twilioRequest(t, "https://shop.example/in?order=1", "Body=hello")
	req.URL, req.Body = "https://shop.example/in", []byte("%3Forder=1Bodyhello")
	if why := reason(t, p, req); why.Reason != hookonce.ReasonSignatureMismatch && why.Reason != hookonce.ReasonSignatureMalformed {
		t.Error(why)
	}
}

// TestTwilioHashesAreAtAnEndOfTheQuery: between other parameters one could be the text of a message.
func TestTwilioHashesAreAtAnEndOfTheQuery(t *testing.T) {
	body := []byte(`{"a":1}`)
	sum := sha256.Sum256(body)
	hash := "bodySHA256=" + hex.EncodeToString(sum[:])
	for query, ok := range map[string]bool{hash: true, "a=1&" + hash: true, hash + "&a=1": true, "a=1&" + hash + "&b=2": false, "a=1": false} {
		req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in?" + query, Header: http.Header{}, Body: body, Now: now}
		req.Header.Set("X-Twilio-Signature", twilioSignature(req.URL))
		for _, p := range []*spec.Provider{Twilio("", "token"), TwilioEvents("", "token")} {
			if _, err := p.Open(req); (err == nil) != ok {
				t.Errorf("%s: %s: %v", p.Name(), query, err)
			}
		}
	}
	reason(t, TwilioEvents("https://shop.example/in", "token"), twilioRequest(t, "https://shop.example/in", "a=1"))
}

// TestHubSpotIsNotDowngraded: the older signatures, which come along, sign no time.
func TestHubSpotIsNotDowngraded(t *testing.T) {
	p, old := fake(t, "hubspot"), fake(t, "hubspot-legacy")
	both := func() *hookonce.Request {
		req := sent(t, p, "101", "")
		if err := old.Sign(req); err != nil { // adds the header of version 2
			t.Fatal(err)
		}
		return req
	}
	one(t, p, both())
	one(t, old, both())
	late, stripped, wrong := both(), both(), both()
	late.Now = now.Add(48 * time.Hour)
	stripped.Header.Del("X-HubSpot-Signature-V3")
	wrong.Header.Set("X-HubSpot-Signature-V3", strings.Repeat("A", 43)+"=")
	for req, want := range map[*hookonce.Request]string{
		late: hookonce.ReasonTimestampOld, stripped: hookonce.ReasonSignatureMissing, wrong: hookonce.ReasonSignatureMismatch,
	} {
		if why := reason(t, p, req); why.Reason != want {
			t.Errorf("%v, want %s", why, want)
		}
	}
}
