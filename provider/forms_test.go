package provider

import (
	"bytes"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// The forms in which senders show their secrets, and sign, besides the one that is usual.

// standardKey is the key in whsecFake.
const (
	standardKey = "fake secret for tests"
	whsecFake   = "whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
)

// built returns the provider of that name with those secrets.
func built(t testing.TB, name string, secrets ...string) *spec.Provider {
	t.Helper()
	p, err := Build(name, spec.Settings{Secrets: spec.Secrets(secrets...)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// standardSignature returns a signature of Standard Webhooks made with the bytes of the key.
func standardSignature(key, id, body string) string {
	h := hmac.New(sha256.New, []byte(key))
	fmt.Fprintf(h, "%s.%d.%s", id, now.Unix(), body)
	return "v1," + base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// standardRequest returns a request with that line of signatures.
func standardRequest(id, signatures, body string) *hookonce.Request {
	return &hookonce.Request{Method: "POST", Body: []byte(body), Now: now, Header: http.Header{
		"Webhook-Id": {id}, "Webhook-Timestamp": {fmt.Sprint(now.Unix())}, "Webhook-Signature": {signatures},
	}}
}

// TestSecretsOfTwoForms: a text that begins with whsec_ may be what is decoded, or the key itself. Nothing says which.
func TestSecretsOfTwoForms(t *testing.T) {
	for _, name := range []string{"polar", "openai"} {
		for _, secrets := range [][]string{{whsecFake}, {whsecFake, "an-older-secret"}, {"an-older-secret", whsecFake}} {
			p := built(t, name, secrets...)
			for _, key := range []string{standardKey, whsecFake} {
				req := standardRequest("msg_1", standardSignature(key, "msg_1", `{}`), `{}`)
				if ev := one(t, p, req); ev.Key != "msg_1" || !ev.KeySigned {
					t.Errorf("%s: %+v", name, ev)
				}
			}
			reason(t, p, standardRequest("msg_1", standardSignature("ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz", "msg_1", `{}`), `{}`)) // neither
		}
		for _, older := range []string{"polar_whs_fake", "whsec_no base64", "whsec_", "ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"} {
			one(t, built(t, name, older), standardRequest("msg_1", standardSignature(older, "msg_1", `{}`), `{}`))
		}
		reason(t, built(t, name, "ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"), standardRequest("msg_1", standardSignature(standardKey, "msg_1", `{}`), `{}`))
	}
}

// TestSecretsOfTwoFormsAreSignedAnew: with the key that the sender used, whichever that was.
func TestSecretsOfTwoFormsAreSignedAnew(t *testing.T) {
	p := built(t, "polar", whsecFake)
	again, err := p.Resigner(spec.Receiver{})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{standardKey, whsecFake} {
		req := standardRequest("msg_1", standardSignature(key, "msg_1", `{}`), `{}`)
		d, err := p.Open(req)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Webhook-Signature", "v1,old")
		if err := again.Sign(req, d.Proof.Vouched); err != nil {
			t.Fatal(err)
		}
		if got, want := req.Header.Get("Webhook-Signature"), standardSignature(key, "msg_1", `{}`); got != want {
			t.Errorf("signed %s, want %s", got, want)
		}
	}
}

// TestSupabaseHooks: the secret as its dashboard shows it, both ways to join signatures, no key, an answer that its hook
// reads.
func TestSupabaseHooks(t *testing.T) {
	const body = `{"user":{"id":"u-1"}}`
	other := standardSignature("another key", "id-1", body)
	good := standardSignature(standardKey, "id-1", body)
	for _, secret := range []string{"v1," + whsecFake, whsecFake} {
		p := built(t, "supabase", secret)
		for _, line := range []string{good, other + ", " + good, good + ", " + other, other + " " + good, good + " " + other, good + ","} {
			ev := one(t, p, standardRequest("id-1", line, body))
			if ev.Key != "" || ev.AttemptID != "id-1" || ev.Resource != "u-1" {
				t.Errorf("%s: %+v", line, ev)
			}
		}
		for _, line := range []string{other, other + ", " + other, strings.TrimPrefix(good, "v1,"), "v1, " + good[3:]} {
			reason(t, p, standardRequest("id-1", line, body))
		}
		if ok := p.Profile().Acknowledgement; ok.Status != 200 || ok.ContentType != "application/json" || !json.Valid(ok.Body) {
			t.Errorf("it is answered %+v", ok)
		}
	}
	if s, _ := Lookup("supabase"); s.Dedup.Retry != spec.Unstable || s.Answer.Deadline != 5*time.Second {
		t.Errorf("%+v %v", s.Dedup, s.Answer.Deadline)
	}
}

// TestWiseKeyWithoutArmour: the page that shows the key shows no lines around it.
func TestWiseKeyWithoutArmour(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	armoured := string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der}))
	lines := strings.Split(strings.TrimSpace(armoured), "\n")
	body := []byte(`{"event_type":"transfers#state-change","data":{"occurred_at":"2026-02-03T04:05:06Z"}}`)
	sum := sha256.Sum256(body)
	sig, err := rsa.SignPKCS1v15(nil, private, crypto.SHA256, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{
		armoured, strings.Join(lines[1:len(lines)-1], "\n"), strings.Join(lines[1:len(lines)-1], ""), "  " + strings.Join(lines[1:len(lines)-1], " \r\n ") + "\n",
	} {
		req := &hookonce.Request{Method: "POST", Body: body, Now: now, Header: http.Header{"X-Signature-Sha256": {base64.StdEncoding.EncodeToString(sig)}}}
		one(t, Wise(secret), req)
	}
	for _, secret := range []string{"", "no key", "ZmFrZQ==", lines[1]} {
		if _, err := Build("wise", spec.Settings{Secrets: spec.Secrets(secret)}); err == nil || secret != "" && strings.Contains(err.Error(), secret) {
			t.Errorf("%.20q: %v", secret, err)
		}
	}
}

// TestGitLabSigns: a request is good by the signature or by the token, each with its own secret, and has one key.
func TestGitLabSigns(t *testing.T) {
	const token, body = "fake-secret-token", `{"object_kind":"push"}`
	request := func(signature, token string) *hookonce.Request {
		req := standardRequest("uuid-1", signature, body)
		req.Header["Idempotency-Key"] = []string{"uuid-1"}
		if signature == "" {
			for _, name := range []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"} {
				delete(req.Header, name)
			}
		}
		if token != "" {
			req.Header.Set("X-Gitlab-Token", token)
		}
		return req
	}
	good, bad := standardSignature(standardKey, "uuid-1", body), standardSignature("another key", "uuid-1", body)
	for _, c := range []struct {
		secrets          []string
		signature, token string
		covers           spec.Coverage // empty: refused
	}{
		{[]string{token}, "", token, spec.CoversNothing},
		{[]string{token}, good, token, spec.CoversNothing}, // signed, for whoever knows the signing token
		{[]string{token}, "", "another", ""},
		{[]string{whsecFake}, good, "", spec.CoversBody},
		{[]string{whsecFake}, good, "whatever it is", spec.CoversBody},
		{[]string{whsecFake}, bad, "", ""},
		{[]string{whsecFake}, "", "", ""},
		{[]string{whsecFake}, "", whsecFake, ""}, // the signing token is never sent along
		{[]string{token, whsecFake}, "", whsecFake, ""},
		{[]string{token, whsecFake}, good, token, spec.CoversBody},
		{[]string{token, whsecFake}, good, "", spec.CoversBody},
		{[]string{whsecFake, token}, "", token, spec.CoversNothing},
		{[]string{whsecFake, token}, bad, "another", ""},
	} {
		p := GitLab(c.secrets...)
		d, err := p.Open(request(c.signature, c.token))
		if c.covers == "" {
			if err == nil {
				t.Errorf("%v with %q and %q is accepted", c.secrets, c.signature, c.token)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v with %q and %q: %v", c.secrets, c.signature, c.token, err)
			continue
		}
		signed := c.covers == spec.CoversBody
		if ev := d.Events[0]; ev.Key != "uuid-1" || ev.KeySigned != signed || d.Proof.Covers != string(c.covers) {
			t.Errorf("%v with %q and %q: %+v, covers %s", c.secrets, c.signature, c.token, ev, d.Proof.Covers)
		}
	}
	old := request(good, "")
	old.Now = now.Add(6 * time.Minute)
	reason(t, GitLab(whsecFake), old)
	changed := request(good, "")
	changed.Body[2] ^= 1
	reason(t, GitLab(whsecFake), changed)
}

// TestSentryComesAgain: with another Request-ID. Errors are recognised; other resources have nothing to recognise.
func TestSentryComesAgain(t *testing.T) {
	p := Sentry("fake-secret")
	attempt := func(resource, body, request string) hookonce.Event {
		return one(t, p, signed(t, p, body, "Sentry-Hook-Resource", resource, "Request-ID", request))
	}
	const failure = `{"action":"created","installation":{"uuid":"i-1"},"data":{"error":{"event_id":"e-1","project":7,"issue_id":"5"}}}`
	first, again := attempt("error", failure, "r-1"), attempt("error", failure, "r-2")
	if first.Key == "" || first.Key != again.Key || !first.KeySigned || first.AttemptID != "r-1" || again.AttemptID != "r-2" {
		t.Errorf("%+v\n%+v", first, again)
	}
	for _, other := range []string{
		strings.Replace(failure, "i-1", "i-2", 1), strings.Replace(failure, "e-1", "e-2", 1), strings.Replace(failure, ":7", ":8", 1),
	} {
		if ev := attempt("error", other, "r-1"); ev.Key == first.Key || ev.Key == "" {
			t.Errorf("%s has the key %q", other, ev.Key)
		}
	}
	for resource, body := range map[string]string{
		"issue":        `{"action":"resolved","installation":{"uuid":"i-1"},"data":{"issue":{"id":"5"}}}`,
		"event_alert":  `{"action":"triggered","installation":{"uuid":"i-1"},"data":{"event":{"event_id":"e-1"},"triggered_rule":"a"}}`,
		"comment":      `{"action":"updated","installation":{"uuid":"i-1"},"data":{"comment_id":"c-1","issue_id":5}}`,
		"installation": `{"action":"created","installation":{"uuid":"i-1"},"data":{"installation":{"uuid":"i-1"}}}`,
	} {
		if ev := attempt(resource, body, "r-1"); ev.Key != "" || ev.AttemptID != "r-1" {
			t.Errorf("%s: key %q, attempt %q", resource, ev.Key, ev.AttemptID)
		}
	}
}

// TestHubSpotUndoesEscapes: those in its table, and no others; lower-case ones are not in it.
func TestHubSpotUndoesEscapes(t *testing.T) {
	const base = "https://shop.example/in"
	sign := func(url string) string {
		h := hmac.New(sha256.New, []byte("fake-secret"))
		fmt.Fprintf(h, "POST%s[]%d", url, now.UnixMilli())
		return base64.StdEncoding.EncodeToString(h.Sum(nil))
	}
	for called, plain := range map[string]string{
		"?a=%3A%2F%3F%40%21%24%27%28%29%2A%2C%3B": "?a=:/?@!$'()*,;",
		"?a=%20%26%3D%25%2B%23":                   "?a=%20%26%3D%25%2B%23",
		"?a=%3a%2f":                               "?a=%3a%2f",
		"?a=%253A":                                "?a=%253A",
		"?a=1":                                    "?a=1",
		"":                                        "",
	} {
		for _, registered := range []string{"", base} {
			p := HubSpot(registered, "fake-secret")
			req := &hookonce.Request{Method: "POST", URL: base + called, Body: []byte(`[]`), Now: now, Header: http.Header{
				"X-Hubspot-Signature-V3": {sign(base + plain)}, "X-Hubspot-Request-Timestamp": {fmt.Sprint(now.UnixMilli())},
			}}
			if _, err := p.Open(req); err != nil {
				t.Errorf("%s: %v", called, err)
			}
			if called != plain {
				req.Header.Set("X-Hubspot-Signature-V3", sign(base+called))
				reason(t, p, req)
			}
		}
	}
	p := HubSpot(base+"?to=crm%3Aall", "fake-secret") // what signs for others undoes them, too
	req := &hookonce.Request{URL: base + "?to=crm%3Aall", Body: []byte(`[]`), Now: now}
	if err := p.Sign(req); err != nil || req.Header.Get("X-HubSpot-Signature-v3") != sign(base+"?to=crm:all") {
		t.Error(err, req.Header)
	}
}

// TestTwilioWithGET: what a GET says becomes the form of a POST, with the same key and type.
func TestTwilioWithGET(t *testing.T) {
	const base, fields = "https://shop.example/in", "AccountSid=AC1&Body=a%26b+c&MessageSid=SM1&MessageStatus=sent"
	for _, c := range []struct{ registered, called string }{
		{base, base + "?" + fields}, {"", base + "?" + fields}, {base + "?shop=1", base + "?shop=1&" + fields},
	} {
		p := Twilio(c.registered, "token")
		get := &hookonce.Request{Method: "GET", URL: c.called, Now: now, Header: http.Header{"X-Twilio-Signature": {twilioSignature(c.called)}}}
		ev := one(t, p, get)
		if string(ev.Body) != fields || ev.Header.Get("Content-Type") != "application/x-www-form-urlencoded" || ev.Type != "sent" || ev.Resource != "SM1" || ev.Tenant != "AC1" {
			t.Errorf("%+v %s", ev, ev.Body)
		}
		if get.Header.Get("Content-Type") != "" || get.Body != nil {
			t.Error("the request was changed")
		}
		post := signed(t, p, fields, "Content-Type", "application/x-www-form-urlencoded")
		if same := one(t, p, post); same.Key != ev.Key || same.Key == "" || !bytes.Equal(same.Digest, ev.Digest) {
			t.Errorf("keys %q and %q", same.Key, ev.Key)
		}
		for _, url := range []string{
			c.called + "&MessageStatus=read", strings.Replace(c.called, "sent", "read", 1), strings.Replace(c.called, "+c", "%20c", 1)[:len(c.called)-1], c.called + "%",
		} {
			changed := *get
			changed.URL = url
			reason(t, p, &changed)
		}
	}
	p := Twilio(base, "token")
	if !slices.Contains(p.Profile().Methods, "GET") {
		t.Error("nobody lets a GET through")
	}
	// A signature of a POST is none of a GET, nor the other way round, whatever is moved between them.
	for _, c := range []hookonce.Request{
		{Method: "GET", URL: base + "?AccountSidAC1", Header: http.Header{"X-Twilio-Signature": {twilioSignature(base + "AccountSidAC1")}}},
		{Method: "POST", URL: base, Body: []byte("%3FMessageSid%3DSM1=&"), Header: http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"}, "X-Twilio-Signature": {twilioSignature(base + "?MessageSid=SM1")},
		}},
		{Method: "GET", URL: base, Body: []byte("MessageSid=SM1"), Header: http.Header{
			"Content-Type": {"application/x-www-form-urlencoded"}, "X-Twilio-Signature": {twilioSignature(base + "MessageSidSM1")},
		}},
		{Method: "PUT", URL: base, Header: http.Header{"X-Twilio-Signature": {twilioSignature(base)}}},
		{Method: "HEAD", URL: base, Header: http.Header{"X-Twilio-Signature": {twilioSignature(base)}}},
	} {
		c.Now = now
		reason(t, p, &c)
	}
}

// TestOnlyTwilioMayGET: elsewhere the query of a GET is not what was signed.
func TestOnlyTwilioMayGET(t *testing.T) {
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		if s.Name == "twilio" || !s.Imitable() {
			return
		}
		req := sent(t, p, "101", "")
		req.Method, req.Body = "GET", nil
		if rej := reason(t, p, req); rej.Status != http.StatusMethodNotAllowed {
			t.Errorf("%+v", rej)
		}
	})
}

// TestCoinbaseSignatures: v0, v1 or both, and each that is there is right.
func TestCoinbaseSignatures(t *testing.T) {
	const secret, body = "fake-secret", `{"eventId":"e-1","eventType":"a.b","n":0.5}`
	p := Coinbase(secret)
	mac := func(text string) string {
		h := hmac.New(sha256.New, []byte(secret))
		h.Write([]byte(text))
		return hex.EncodeToString(h.Sum(nil))
	}
	ts := fmt.Sprint(now.Unix())
	v0 := mac(ts + "." + body)
	v1 := mac(ts + ".content-type x-event-id.application/json.e-1." + body)
	wrong := mac("another text")
	request := func(line string) *hookonce.Request {
		return &hookonce.Request{Method: "POST", Body: []byte(body), Now: now, Header: http.Header{
			"X-Hook0-Signature": {line}, "Content-Type": {"application/json"}, "X-Event-Id": {"e-1"},
		}}
	}
	const mismatch, malformed, missing = hookonce.ReasonSignatureMismatch, hookonce.ReasonSignatureMalformed, hookonce.ReasonSignatureMissing
	const names = ",h=content-type x-event-id"
	for line, want := range map[string]string{
		"t=" + ts + ",v0=" + v0:                                    "",
		"t=" + ts + names + ",v1=" + v1:                            "",
		"t=" + ts + ",v0=" + v0 + names + ",v1=" + v1:              "",
		"t=" + ts + ", v0=" + v0 + " ,v7=x":                        "",
		"t=" + ts + ",v0=" + wrong + names + ",v1=" + v1:           mismatch,
		"t=" + ts + ",v0=" + v0 + names + ",v1=" + wrong:           mismatch,
		"t=" + ts + ",v0=" + wrong:                                 mismatch,
		"t=" + ts + ",v0=" + strings.ToUpper(v0):                   mismatch,
		"t=" + ts + ",h=content-type,v1=" + v1:                     mismatch,
		"t=" + ts + ",h=content-type x-none,v1=" + v1:              mismatch,
		"t=" + ts + ",h=content-type.x-event-id,v1=" + v1:          mismatch,
		"t=" + ts + ",h=" + strings.Repeat("a ", 99) + ",v1=" + v1: mismatch,
		"t=" + ts + ",v1=" + v0:                                    mismatch,
		"t=" + ts:                                                  malformed,
		"v0=" + v0:                                                 malformed,
		"t=0" + ts + ",v0=" + v0:                                   malformed,
		"t=-1,v0=" + v0:                                            malformed,
		"t=" + ts + ",t=" + ts + ",v0=" + v0:                       malformed,
		"t=" + ts + ",v0=" + wrong + ",v0=" + v0:                   malformed,
		"garbage":                                                  malformed,
		"":                                                         missing,
	} {
		req := request(line)
		if want == "" {
			if ev := one(t, p, req); ev.Key != "e-1" || !ev.KeySigned {
				t.Errorf("%s: %+v", line, ev)
			}
			req.Body[2] ^= 1
			reason(t, p, req)
		} else if rej := reason(t, p, req); rej.Reason != want {
			t.Errorf("%s: %s", line, rej.Reason)
		}
	}
	for age, want := range map[time.Duration]string{
		5 * time.Minute: "", -5 * time.Minute: "", 301 * time.Second: hookonce.ReasonTimestampOld, -301 * time.Second: hookonce.ReasonTimestampFuture,
	} {
		req := request("t=" + ts + ",v0=" + v0)
		if req.Now = now.Add(age); want == "" {
			one(t, p, req)
		} else if rej := reason(t, p, req); rej.Reason != want {
			t.Errorf("%v: %s", age, rej.Reason)
		}
	}
	// What v1 signs is one text: a piece of the body cannot become a piece of a header, nor the other way round.
	for _, split := range []struct{ id, body string }{
		{`e-1.{"eventId":"e-1","eventType":"a`, `b","n":0.5}`}, {`e-1.` + body[:len(body)-2], `5}`}, {"e", `1.` + body},
	} {
		req := request("t=" + ts + names + ",v1=" + v1)
		req.Header.Set("X-Event-Id", split.id)
		req.Body = []byte(split.body)
		reason(t, p, req)
	}
	// Nor does what v1 signs pass for v0 of a body that begins with headers.
	req := request("t=" + ts + ",v0=" + v1)
	req.Body = []byte("content-type x-event-id.application/json.e-1." + body)
	reason(t, p, req)
	anew, err := p.Resigner(spec.Receiver{})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"t=" + ts + ",v0=" + v0, "t=" + ts + names + ",v1=" + v1} {
		req := request(line)
		d, err := p.Open(req)
		if err != nil {
			t.Fatal(err)
		}
		req.Now = now.Add(time.Hour)
		reason(t, p, req)
		if err := anew.Sign(req, d.Proof.Vouched); err != nil {
			t.Fatal(err)
		}
		one(t, p, req)
	}
}

// TestCompactSamples: some libraries verify JSON that they wrote anew.
func TestCompactSamples(t *testing.T) {
	for _, name := range []string{"sentry", "workos", "zoom"} {
		s, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		_, body := s.Sample(spec.Sample{ID: `a "quoted" id`, Time: now})
		var compact bytes.Buffer
		if err := json.Compact(&compact, body); err != nil || !bytes.Equal(body, compact.Bytes()) {
			t.Errorf("%s: %v %s", name, err, body)
		}
	}
}

// TestWindows: the schedules that were counted.
func TestWindows(t *testing.T) {
	recurly := 0 * time.Second
	for x := range 10 {
		recurly += time.Duration(10+x<<(x+5)) * time.Second
	}
	for name, last := range map[string]time.Duration{
		"recurly": recurly,
		"sanity":  2 * (30 + 30) * time.Second, // it waits for an answer, and before it comes again
		"sentry":  3 * 5 * time.Minute,
		"polar":   9 * 20 * time.Minute,
	} {
		s, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if window := s.Limits.Retry; window < last || window > last+last/10 {
			t.Errorf("%s: %v, and the last copy comes after %v", name, window, last)
		}
	}
}

// TestWindowsOfSenders: for how long an event may come again, by itself or when a person wants it.
func TestWindowsOfSenders(t *testing.T) {
	for name, want := range map[string]time.Duration{
		"google-pubsub": 31 * day, // of retention, through which a seek goes back
		"google-play":   31 * day,
		"paypal":        30 * day, // in the dashboard
		"razorpay":      7 * day,  // of replay
		"sendgrid":      day,
		"linear":        8 * hour, // the last try is 7 h 1 min after the first
		"stripe":        30 * day,
	} {
		s, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if window := s.Limits.Window(); window != want {
			t.Errorf("%s: %v, want %v", name, window, want)
		}
	}
	// Twice the 90 days of this one is more than keys are kept by default, so that people are told.
	checkout, err := Lookup("checkout")
	if err != nil || !slices.ContainsFunc(checkout.Traps, func(trap string) bool { return strings.Contains(trap, "last 90 days") }) {
		t.Errorf("checkout: %q, %v", checkout.Traps, err)
	}
}

// TestStabilityIsTheSendersOwn: that an alias's id stays the same has a source about that sender, or is not claimed.
func TestStabilityIsTheSendersOwn(t *testing.T) {
	for _, a := range aliases {
		s := a.spec()
		sourced := slices.ContainsFunc(s.Sources, func(src spec.Source) bool {
			return src.Confidence != spec.NotSourced && (strings.Contains(src.Fact, "same id") || strings.Contains(src.Fact, "the id is") || strings.Contains(src.Fact, "id of each") || strings.Contains(src.Fact, "webhook-id for") || strings.Contains(src.Fact, "copies come"))
		})
		admitted := slices.ContainsFunc(s.Sources, func(src spec.Source) bool { return src.Confidence == spec.NotSourced && src.Fact == sameID })
		if claims := s.Dedup.Retry != ""; claims != sourced || claims == admitted {
			t.Errorf("%s: claims %q, sourced %v, admitted %v", a.name, s.Dedup.Retry, sourced, admitted)
		}
	}
}
