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

// TestStripeLogicalDuplicatesAreFlagged: two events about one change share the logical key, two changes do not.
func TestStripeLogicalDuplicatesAreFlagged(t *testing.T) {
	p := fake(t, "stripe")
	event := func(id, object string) hookonce.Event {
		return one(t, p, signed(t, p, `{"id":"`+id+`","type":"customer.subscription.updated","data":{"object":`+object+`}}`))
	}
	first, second := event("evt_1", `{"id":"sub_1","status":"active"}`), event("evt_2", `{"id":"sub_1","status":"active"}`)
	next := event("evt_3", `{"id":"sub_1","status":"past_due"}`)
	if first.Logical == "" || first.Logical != second.Logical || first.Logical == next.Logical || first.Key == second.Key {
		t.Errorf("logical keys %q, %q, %q", first.Logical, second.Logical, next.Logical)
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
	header, body := p.Spec().Sample(spec.Sample{ID: "e1", Time: now})
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
		header, body := p.Spec().Sample(spec.Sample{ID: "111", Time: now})
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
	if a.Key == "" || a.Key != b.Key || !a.KeySigned || !bytes.Equal(a.Digest, b.Digest) || a.AttemptID != "d1" {
		t.Errorf("%+v\n%+v", a, b)
	}
	reason(t, fake(t, "wise"), send("d1", ""))
	changed := send("d1", "")
	changed.Body[10] ^= 1
	reason(t, p, changed)
}
