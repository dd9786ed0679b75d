package provider

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// delivery is a request by its body and its headers, names and texts in turn.
type delivery struct {
	body    string
	headers []string
}

// TestTwoEventsAreTwo sends two events that share what a naive rule would take for the key.
func TestTwoEventsAreTwo(t *testing.T) {
	for _, c := range []struct {
		provider, shared string
		a, b             delivery
	}{
		{"linear", "webhookId is that of the subscription",
			delivery{`{"type":"Issue","action":"create","webhookId":"w1","webhookTimestamp":1}`, []string{"Linear-Delivery", "d1"}},
			delivery{`{"type":"Issue","action":"update","webhookId":"w1","webhookTimestamp":1}`, []string{"Linear-Delivery", "d2"}}},
		{"bitbucket", "X-Hook-UUID is the webhook",
			delivery{`{"push":1}`, []string{"X-Hook-UUID", "h1", "X-Request-UUID", "r1"}},
			delivery{`{"push":2}`, []string{"X-Hook-UUID", "h1", "X-Request-UUID", "r2"}}},
		{"gitlab", "X-Gitlab-Event-UUID is that of the request that caused them",
			delivery{`{"object_kind":"push"}`, []string{"X-Gitlab-Event-UUID", "e1", "Idempotency-Key", "k1"}},
			delivery{`{"object_kind":"push"}`, []string{"X-Gitlab-Event-UUID", "e1", "Idempotency-Key", "k2"}}},
		{"coinbase-commerce", "id is the number of the attempt",
			delivery{`{"id":1,"event":{"id":"a","type":"charge:created"}}`, nil},
			delivery{`{"id":1,"event":{"id":"b","type":"charge:confirmed"}}`, nil}},
		{"stripe", "type and object",
			delivery{`{"id":"evt_1","type":"charge.refunded","data":{"object":{"id":"ch_1","amount_refunded":1}}}`, nil},
			delivery{`{"id":"evt_2","type":"charge.refunded","data":{"object":{"id":"ch_1","amount_refunded":2}}}`, nil}},
		{"calendly", "the invitee's address",
			delivery{`{"event":"invitee.created","created_at":"2026-02-03T04:05:06Z","payload":{"uri":"i1"}}`, nil},
			delivery{`{"event":"invitee.canceled","created_at":"2026-02-03T04:05:06Z","payload":{"uri":"i1"}}`, nil}},
		{"lemon-squeezy", "the object",
			delivery{`{"meta":{"event_name":"subscription_updated"},"data":{"type":"subscriptions","id":"1","attributes":{"status":"active"}}}`, nil},
			delivery{`{"meta":{"event_name":"subscription_updated"},"data":{"type":"subscriptions","id":"1","attributes":{"status":"past_due"}}}`, nil}},
		{"vercel", "the deployment",
			delivery{`{"id":"1","type":"deployment.created","createdAt":1,"payload":{"deployment":{"id":"d"}}}`, nil},
			delivery{`{"id":"2","type":"deployment.succeeded","createdAt":1,"payload":{"deployment":{"id":"d"}}}`, nil}},
		{"typeform", "the token of the submission",
			delivery{`{"event_id":"e1","event_type":"form_response_partial","form_response":{"token":"t"}}`, nil},
			delivery{`{"event_id":"e2","event_type":"form_response","form_response":{"token":"t"}}`, nil}},
		{"razorpay", "the payment",
			delivery{`{"event":"payment.authorized","payload":{"payment":{"entity":{"id":"pay_1"}}}}`, []string{"X-Razorpay-Event-Id", "e1"}},
			delivery{`{"event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1"}}}}`, []string{"X-Razorpay-Event-Id", "e2"}}},
		{"shopify", "the event id, in two topics",
			delivery{`{"id":1}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "orders/create", "X-Shopify-Event-Id", "e1"}},
			delivery{`{"id":1}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "orders/paid", "X-Shopify-Event-Id", "e1"}}},
		{"shopify", "the event id, in two subscriptions that ask for different fields",
			delivery{`{"id":1}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "t", "X-Shopify-Event-Id", "e1", "X-Shopify-Name", "small"}},
			delivery{`{"id":1,"n":2}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "t", "X-Shopify-Event-Id", "e1", "X-Shopify-Name", "large"}}},
	} {
		p := fake(t, c.provider)
		a, b := one(t, p, signed(t, p, c.a.body, c.a.headers...)), one(t, p, signed(t, p, c.b.body, c.b.headers...))
		if a.Key == "" || b.Key == "" || a.Key == b.Key {
			t.Errorf("%s, where %s: keys %q and %q", c.provider, c.shared, a.Key, b.Key)
		}
	}
}

// TestACopyIsACopy sends one event twice, with everything changed that its sender changes between
// attempts: key and content stay the same.
func TestACopyIsACopy(t *testing.T) {
	for _, c := range []struct {
		provider, changed string
		a, b              delivery
	}{
		{"gitlab", "X-Gitlab-Webhook-UUID and X-Gitlab-Event-UUID",
			delivery{`{"object_kind":"push"}`, []string{"X-Gitlab-Webhook-UUID", "w1", "X-Gitlab-Event-UUID", "e1", "Idempotency-Key", "k1"}},
			delivery{`{"object_kind":"push"}`, []string{"X-Gitlab-Webhook-UUID", "w2", "X-Gitlab-Event-UUID", "e2", "Idempotency-Key", "k1"}}},
		{"coinbase-commerce", "id, attempt_number and scheduled_for",
			delivery{`{"id":1,"attempt_number":1,"scheduled_for":"x","event":{"id":"a","type":"charge:created"}}`, nil},
			delivery{`{"id":2,"attempt_number":2,"scheduled_for":"y","event":{"id":"a","type":"charge:created"}}`, nil}},
		{"easypost", "pending_urls, completed_urls, status and updated_at",
			delivery{`{"id":"evt_1","description":"tracker.updated","status":"pending","pending_urls":["a"],"completed_urls":[],"updated_at":"1","result":{"id":"trk_1"}}`, nil},
			delivery{`{"id":"evt_1","description":"tracker.updated","status":"completed","pending_urls":[],"completed_urls":["a"],"updated_at":"2","result":{"id":"trk_1"}}`, nil}},
		{"stripe", "pending_webhooks",
			delivery{`{"id":"evt_1","type":"charge.refunded","data":{"object":{"id":"ch_1"}},"pending_webhooks":2}`, nil},
			delivery{`{"id":"evt_1","type":"charge.refunded","data":{"object":{"id":"ch_1"}},"pending_webhooks":1}`, nil}},
		{"intercom", "delivery_attempts, delivery_status and delivered_at",
			delivery{`{"id":"notif_1","topic":"user.created","delivery_attempts":1,"delivery_status":"pending","delivered_at":0,"data":{"item":{"id":"1"}}}`, nil},
			delivery{`{"id":"notif_1","topic":"user.created","delivery_attempts":2,"delivery_status":"retry","delivered_at":9,"data":{"item":{"id":"1"}}}`, nil}},
		{"mux", "attempts",
			delivery{`{"id":"e1","type":"video.asset.ready","data":{"id":"a"},"attempts":[]}`, nil},
			delivery{`{"id":"e1","type":"video.asset.ready","data":{"id":"a"},"attempts":[{"id":"t1"}]}`, nil}},
		{"vercel", "the id of the delivery",
			delivery{`{"id":"1","type":"deployment.created","createdAt":1,"payload":{"deployment":{"id":"d"}}}`, nil},
			delivery{`{"id":"2","type":"deployment.created","createdAt":1,"payload":{"deployment":{"id":"d"}}}`, nil}},
		{"paddle", "the id of the notification",
			delivery{`{"event_id":"evt_1","event_type":"t","notification_id":"ntf_1","data":{}}`, nil},
			delivery{`{"event_id":"evt_1","event_type":"t","notification_id":"ntf_2","data":{}}`, nil}},
		{"shopify", "the webhook id, of two subscriptions",
			delivery{`{"id":1}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "t", "X-Shopify-Event-Id", "e1", "X-Shopify-Webhook-Id", "w1"}},
			delivery{`{"id":1}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "t", "X-Shopify-Event-Id", "e1", "X-Shopify-Webhook-Id", "w2"}}},
	} {
		p := fake(t, c.provider)
		a, b := one(t, p, signed(t, p, c.a.body, c.a.headers...)), one(t, p, signed(t, p, c.b.body, c.b.headers...))
		if a.Key == "" || a.Key != b.Key {
			t.Errorf("%s changes %s: keys %q and %q", c.provider, c.changed, a.Key, b.Key)
		}
		if !bytes.Equal(a.Digest, b.Digest) {
			t.Errorf("%s changes %s: that is a conflict", c.provider, c.changed)
		}
	}
}

// TestAChangedTimeOfTheAttemptIsNoConflict: Linear has it in the body.
func TestAChangedTimeOfTheAttemptIsNoConflict(t *testing.T) {
	p := fake(t, "linear")
	body := `{"type":"Issue","action":"update","createdAt":"2026-02-03T04:05:06Z","data":{"id":"i"},"webhookTimestamp":1}`
	first := signed(t, p, body, "Linear-Delivery", "d1")
	later := signed(t, p, body, "Linear-Delivery", "d1")
	later.Now = now.Add(30 * time.Second)
	if err := p.Sign(later); err != nil {
		t.Fatal(err)
	}
	a, b := one(t, p, first), one(t, p, later)
	if bytes.Equal(first.Body, later.Body) || a.Key != b.Key || !bytes.Equal(a.Digest, b.Digest) {
		t.Errorf("%+v\n%+v", a, b)
	}
	first.Now = now.Add(61 * time.Second)
	if why := reason(t, p, first); why.Reason != hookonce.ReasonTimestampOld {
		t.Error(why)
	}
}

// TestEventsWithoutAnIDPass: an empty id is no key that all of them share.
func TestEventsWithoutAnIDPass(t *testing.T) {
	for name, body := range map[string]string{
		"slack": `{"type":"event_callback"}`, "gitlab": `{"object_kind":"push"}`, "linear": `{"webhookId":"w1","webhookTimestamp":1}`,
		"bitbucket": `{}`, "jira": `{}`, "sentry": `{}`, "razorpay": `{}`, "intercom": `{"id":""}`, "mollie": `{"id":null}`,
		"easypost": `{}`, "workos": `{}`, "typeform": `{"event_id":""}`, "mux": `{}`, "coinbase-commerce": `{"id":1,"event":{}}`,
		"calendly": `{"event":"invitee.created"}`, "vercel": `{"id":"1","type":"t"}`, "lemon-squeezy": `{"meta":{"event_name":"e"},"data":{}}`,
	} {
		p := fake(t, name)
		req := signed(t, p, body, "X-Gitlab-Webhook-UUID", "w", "X-Gitlab-Event-UUID", "e", "X-Hook-UUID", "h")
		if ev := one(t, p, req); ev.Key != "" {
			t.Errorf("%s: key %q from %s", name, ev.Key, ev.KeyOrigin)
		}
	}
}

// TestStripeTwinsAreFlagged: two events about one change share the logical key, two changes do not.
func TestStripeTwinsAreFlagged(t *testing.T) {
	p := fake(t, "stripe")
	event := func(id, object string) hookonce.Event {
		return one(t, p, signed(t, p, `{"id":"`+id+`","type":"customer.subscription.updated","data":{"object":`+object+`}}`))
	}
	first, twin := event("evt_1", `{"id":"sub_1","status":"active"}`), event("evt_2", `{"id":"sub_1","status":"active"}`)
	next := event("evt_3", `{"id":"sub_1","status":"past_due"}`)
	if first.Logical == "" || first.Logical != twin.Logical || first.Logical == next.Logical || first.Key == twin.Key {
		t.Errorf("logical keys %q, %q, %q", first.Logical, twin.Logical, next.Logical)
	}
	if rule := p.Spec().Dedup.Logical[0]; rule.Mode != spec.Flag || rule.Window != day {
		t.Errorf("%+v: nobody opted into dropping", rule)
	}
}

// TestShippoPassesAndFlags: no id is known, so nothing is dropped.
func TestShippoPassesAndFlags(t *testing.T) {
	p := fake(t, "shippo")
	a, b := one(t, p, signed(t, p, `{"event":"track_updated","data":{"n":1}}`)), one(t, p, signed(t, p, `{"event":"track_updated","data":{"n":1}}`))
	c := one(t, p, signed(t, p, `{"event":"track_updated","data":{"n":2}}`))
	if a.Key+b.Key+c.Key != "" || a.Logical == "" || a.Logical != b.Logical || a.Logical == c.Logical {
		t.Errorf("%+v\n%+v\n%+v", a, b, c)
	}
	byURL := &hookonce.Request{URL: "https://shop.example/in?token=" + secretFor(p.Spec()), Header: http.Header{}, Body: []byte(`{"event":"e"}`), Now: now}
	if d, err := p.Open(byURL); err != nil || d.Proof.Covers != string(spec.CoversNothing) {
		t.Errorf("token in the URL: %+v, %v", d, err)
	}
}

// TestResendEventsOfOneEmail: email_id is shared by all of them.
func TestResendEventsOfOneEmail(t *testing.T) {
	p, keys := fake(t, "resend"), map[string]bool{}
	for i, kind := range []string{"email.sent", "email.delivered", "email.opened"} {
		ev := one(t, p, sent(t, p, "msg_"+strconv.Itoa(i), kind))
		keys[ev.Key] = true
		if ev.Resource != "56761188-0000-4000-8000-00000000e001" || ev.Type != kind {
			t.Errorf("%+v", ev)
		}
	}
	again := one(t, p, sent(t, p, "msg_1", "email.delivered"))
	if len(keys) != 3 || !keys[again.Key] {
		t.Errorf("keys %v, and %q for the copy", keys, again.Key)
	}
}

// TestMollieClassicDropsNothing: the body is the same for every change of a payment.
func TestMollieClassicDropsNothing(t *testing.T) {
	p := MollieClassic("fake-token")
	request := func(url string) *hookonce.Request {
		return &hookonce.Request{URL: url, Now: now, Body: []byte("id=tr_1"),
			Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}}
	}
	d, err := p.Open(request("https://shop.example/in?token=fake-token"))
	if err != nil {
		t.Fatal(err)
	}
	if ev := d.Events[0]; !ev.Coalesce || ev.Key != "tr_1" || ev.KeySigned || d.Proof.Covers != string(spec.CoversNothing) {
		t.Errorf("%+v, %+v", ev, d.Proof)
	}
	for _, url := range []string{"https://shop.example/in", "https://shop.example/in?token=", "https://shop.example/in?token=other",
		"https://shop.example/in?token=other&token=fake-token"} {
		reason(t, p, request(url))
	}
}

// TestMollieSignaturesMayRepeat: one for each secret; a request without any is a classic one.
func TestMollieSignaturesMayRepeat(t *testing.T) {
	p := fake(t, "mollie")
	req := signed(t, p, `{"id":"event_1","type":"payment-link.paid"}`)
	req.Header["X-Mollie-Signature"] = append([]string{"sha256=" + strings.Repeat("0", 64)}, req.Header["X-Mollie-Signature"]...)
	one(t, p, req)
	req.Header.Del("X-Mollie-Signature")
	if why := reason(t, p, req); why.Reason != hookonce.ReasonSignatureMissing {
		t.Error(why)
	}
}

// TestRazorpayRetriesKeepTheOldSecret: they arrive for a day after the secret was changed.
func TestRazorpayRetriesKeepTheOldSecret(t *testing.T) {
	changed := now.Add(-time.Hour)
	p, err := Build("razorpay", spec.Settings{Secrets: []spec.Secret{
		{Text: "new", From: changed},
		{Text: "old", Until: changed.Add(day)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	retry := signed(t, Razorpay("old"), `{"event":"payment.captured"}`, "X-Razorpay-Event-Id", "e1")
	if d, err := p.Open(retry); err != nil || d.Proof.Secret != 2 || d.Events[0].Key != "e1" {
		t.Errorf("%+v, %v", d, err)
	}
	reason(t, Razorpay("new"), retry)
	retry.Now = changed.Add(day)
	reason(t, p, retry)
}

// TestSlackRetriesAreEvents: the first attempt may never have arrived.
func TestSlackRetriesAreEvents(t *testing.T) {
	p := fake(t, "slack")
	ev := one(t, p, signed(t, p, `{"type":"event_callback","event_id":"Ev1","event":{"type":"app_mention"}}`,
		"X-Slack-Retry-Num", "2", "X-Slack-Retry-Reason", "connection_failed"))
	if ev.Key != "Ev1" || ev.SenderAttempt != "2" || ev.SenderReason != "connection_failed" {
		t.Errorf("%+v", ev)
	}
}

// TestSquareOrdersByVersion: orders count their updates, payments have an opaque token.
func TestSquareOrdersByVersion(t *testing.T) {
	p := fake(t, "square")
	order := one(t, p, signed(t, p, `{"event_id":"1","type":"order.updated","data":{"id":"o","object":{"order_updated":{"version":7}}}}`,
		"Square-Retry-Number", "3", "Square-Retry-Reason", "http_timeout"))
	payment := one(t, p, signed(t, p, `{"event_id":"2","type":"payment.updated","data":{"id":"p","object":{"payment":{"version_token":"x"}}}}`))
	if order.Version != "7" || payment.Version != "" || order.SenderAttempt != "3" || order.SenderReason != "http_timeout" {
		t.Errorf("%+v\n%+v", order, payment)
	}
}

// TestEasyPostSecretsAreNormalised: both spellings of an accent are one secret.
func TestEasyPostSecretsAreNormalised(t *testing.T) {
	one(t, EasyPost("secr\u00e9t"), signed(t, EasyPost("secre\u0301t"), `{"id":"evt_1"}`))
}

// TestRewrittenJSONIsNotWhatWasSigned: senders' own samples verify JSON that was written again.
func TestRewrittenJSONIsNotWhatWasSigned(t *testing.T) {
	p := fake(t, "sentry")
	body := `{"action": "created", "data": {"issue": {"id": "1", "title": "caf\u00e9"}}}`
	req := signed(t, p, body, "Request-ID", "r1", "Sentry-Hook-Timestamp", "1")
	if ev := one(t, p, req); ev.Key != "r1" || ev.KeySigned {
		t.Errorf("a time that is not signed must not matter: %+v", ev)
	}
	req.Body = []byte(strings.ReplaceAll(body, " ", ""))
	reason(t, p, req)
}

// TestOneHeaderManySenders: the same header with the same secret is another scheme elsewhere.
func TestOneHeaderManySenders(t *testing.T) {
	const secret = "fake"
	reason(t, Intercom(secret), signed(t, Bitbucket(secret), `{}`))
	reason(t, Bitbucket(secret), signed(t, Intercom(secret), `{}`))
	reason(t, Typeform(secret), signed(t, Mollie(secret), `{}`))
}

// TestGitLabTokens: nothing is signed, and the proof says so.
func TestGitLabTokens(t *testing.T) {
	p := GitLab("fake-token")
	req := signed(t, p, `{"object_kind":"push"}`, "Idempotency-Key", "k1")
	d, err := p.Open(req)
	if err != nil || d.Proof.Covers != string(spec.CoversNothing) || d.Events[0].KeySigned {
		t.Fatalf("%+v, %v", d, err)
	}
	for _, token := range []string{"fake-toke", "fake-tokens", "Fake-Token"} {
		req.Header.Set("X-Gitlab-Token", token)
		reason(t, p, req)
	}
}

// TestOnlyTheDocumentedStatus: some senders retry what is answered with another success.
func TestOnlyTheDocumentedStatus(t *testing.T) {
	for _, name := range []string{"coinbase-commerce", "paddle", "lemon-squeezy"} {
		if status := fake(t, name).OK().Status; status != 200 {
			t.Errorf("%s: %d", name, status)
		}
	}
}

// TestWorkOSHeader: the time is in milliseconds, with or without a space after the comma.
func TestWorkOSHeader(t *testing.T) {
	p := fake(t, "workos")
	req := signed(t, p, `{"id":"event_1","event":"user.created"}`)
	line := req.Header.Get("WorkOS-Signature")
	if !strings.HasPrefix(line, fmt.Sprintf("t=%d, v1=", now.UnixMilli())) {
		t.Error(line)
	}
	one(t, p, req)
	req.Header.Set("WorkOS-Signature", strings.Replace(line, ", ", ",", 1))
	one(t, p, req)
	req.Now = now.Add(3*time.Minute + time.Second)
	if why := reason(t, p, req); why.Reason != hookonce.ReasonTimestampOld {
		t.Error(why)
	}
}

func TestTelnyx(t *testing.T) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := Telnyx(base64.StdEncoding.EncodeToString(public))
	header, body := p.Spec().Sample("e1", "", now)
	at := strconv.FormatInt(now.Unix(), 10)
	header.Set("Telnyx-Timestamp", at)
	header.Set("Telnyx-Signature-Ed25519", base64.StdEncoding.EncodeToString(ed25519.Sign(private, []byte(at+"|"+string(body)))))
	req := &hookonce.Request{Header: header, Body: body, Now: now}
	if ev := one(t, p, req); ev.Key != "e1" || !ev.KeySigned || ev.Type != "message.received" {
		t.Errorf("%+v", ev)
	}
	reason(t, fake(t, "telnyx"), req)
	late := *req
	late.Now = now.Add(5*time.Minute + time.Second)
	reason(t, p, &late)
	header.Set("Telnyx-Timestamp", strconv.FormatInt(now.Unix()+1, 10))
	reason(t, p, req)
}

func TestWise(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	p := Wise(string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})))
	send := func(delivery, sentAt string) *hookonce.Request {
		header, body := p.Spec().Sample("111", "", now)
		body = bytes.Replace(body, []byte(`"sent_at": "`), []byte(`"sent_at": "`+sentAt), 1)
		sum := sha256.Sum256(body)
		sig, err := rsa.SignPKCS1v15(rand.Reader, private, crypto.SHA256, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		header.Set("X-Delivery-Id", delivery)
		header.Set("X-Signature-SHA256", base64.StdEncoding.EncodeToString(sig))
		return &hookonce.Request{Header: header, Body: body, Now: now}
	}
	a, b := one(t, p, send("d1", "")), one(t, p, send("d2", "again "))
	if a.Key == "" || a.Key != b.Key || !a.KeySigned || !bytes.Equal(a.Digest, b.Digest) || a.Delivery != "d1" {
		t.Errorf("%+v\n%+v", a, b)
	}
	reason(t, fake(t, "wise"), send("d1", ""))
	changed := send("d1", "")
	changed.Body[10] ^= 1
	reason(t, p, changed)
}
