package provider

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

const twilioURL = "https://shop.example/in?shop=a%20b"

// twilioRequest returns a form as Twilio would sign it for that URL.
func twilioRequest(t *testing.T, address, form string, headers ...string) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Method: "POST", URL: address, Header: http.Header{}, Body: []byte(form), Now: now}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	c, err := scheme.Twilio().Compile("token")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(spec.Sealer).Seal(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// twilioSignature is that of a text under the secret "token".
func twilioSignature(text string) string {
	h := hmac.New(sha1.New, []byte("token"))
	h.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(h.Sum(nil))
}

// The message's SID as the key would lose every status after the first.
func TestTwilioStatusesOfOneMessage(t *testing.T) {
	p := Twilio(twilioURL, "token")
	seen := map[string]bool{}
	for _, form := range []string{
		"MessageSid=SM1&MessageStatus=sent", "MessageSid=SM1&MessageStatus=delivered", "MessageSid=SM1&MessageStatus=failed",
		"MessageSid=SM1&MessageStatus=failed&ErrorCode=30003", "MessageSid=SM1&SmsStatus=received",
		"CallSid=CA1&CallStatus=ringing&SequenceNumber=0", "CallSid=CA1&CallStatus=completed&SequenceNumber=1",
	} {
		ev := one(t, p, twilioRequest(t, twilioURL, form))
		if ev.Key == "" || seen[ev.Key] || ev.KeySigned {
			t.Errorf("%s: key %q, signed %v", form, ev.Key, ev.KeySigned)
		}
		if again := one(t, p, twilioRequest(t, twilioURL, form)); again.Key != ev.Key {
			t.Errorf("%s: a retry has the key %q", form, again.Key)
		}
		seen[ev.Key] = true
	}
}

func TestTwilioTokenIsTheKey(t *testing.T) {
	p := Twilio(twilioURL, "token")
	ev := one(t, p, twilioRequest(t, twilioURL, "MessageSid=SM1&MessageStatus=sent", "I-Twilio-Idempotency-Token", "T-1"))
	if ev.Key != "T-1" || ev.KeySigned {
		t.Errorf("key %q, signed %v", ev.Key, ev.KeySigned)
	}
}

// Two inputs of one call carry the same status.
func TestTwilioCallWithoutSequenceIsUnkeyed(t *testing.T) {
	p := Twilio(twilioURL, "token")
	for _, form := range []string{"CallSid=CA1&CallStatus=in-progress&Digits=1", "CallSid=CA1&CallStatus=in-progress&Digits=2", "MessageSid=SM1&EventType=onMessageUpdated"} {
		if ev := one(t, p, twilioRequest(t, twilioURL, form)); ev.Key != "" {
			t.Errorf("%s: key %q", form, ev.Key)
		}
	}
}

// Twilio's servers are inconsistent about the port and the spelling of the query.
func TestTwilioSpellingsOfTheURL(t *testing.T) {
	p := Twilio("https://shop.example/in?shop=a+b%21", "token")
	for address, ok := range map[string]bool{
		"https://shop.example/in?shop=a+b%21":       true,
		"https://shop.example:443/in?shop=a+b%21":   true,
		"https://shop.example/in?shop=a%20b!":       true,
		"https://shop.example:443/in?shop=a%20b!":   true,
		"https://shop.example:8443/in?shop=a+b%21":  false,
		"http://shop.example/in?shop=a+b%21":        false,
		"https://shop.example/other?shop=a+b%21":    false,
		"https://shop.example.evil/in?shop=a+b%21":  false,
		"https://shop.example/in?shop=a+b%21&more=": false,
	} {
		req := twilioRequest(t, address, "MessageSid=SM1&MessageStatus=sent")
		req.URL = ""
		if _, err := p.Open(req); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if p := Twilio("https://shop.example:8443/in", "token"); len(all(t, p, twilioRequest(t, "https://shop.example/in", "a=1"))) != 1 {
		t.Error("a port that Twilio leaves out")
	}
}

func TestTwilioRepeatedFields(t *testing.T) {
	p := Twilio("https://shop.example/in", "token")
	for signed, ok := range map[string]bool{"MessageSidSM1MessageSidSM2": true, "MessageSidSM2": false, "MessageSidSM1": false, "MessageSidSM2MessageSidSM1": false} {
		req := twilioRequest(t, "https://shop.example/in", "MessageSid=SM2&MessageSid=SM1&MessageSid=SM2&MessageStatus=sent")
		req.Header.Set("X-Twilio-Signature", twilioSignature("https://shop.example/in"+signed+"MessageStatussent"))
		d, err := p.Open(req)
		if (err == nil) != ok {
			t.Errorf("%s: %v", signed, err)
		}
		if d != nil && d.Events[0].Key != "" {
			t.Errorf("%s: an ambiguous key %q", signed, d.Events[0].Key)
		}
	}
}

func TestTwilioBodyIsBound(t *testing.T) {
	body := `{"a":1}`
	sum := sha256.Sum256([]byte(body))
	address := "https://shop.example/in?bodySHA256=" + hex.EncodeToString(sum[:])
	request := func(body string) *hookonce.Request {
		req := &hookonce.Request{Method: "POST", URL: address, Header: http.Header{"Content-Type": {"application/json"}}, Body: []byte(body), Now: now}
		req.Header.Set("X-Twilio-Signature", twilioSignature(address))
		return req
	}
	p := Twilio("", "token")
	one(t, p, request(body))
	for name, req := range map[string]*hookonce.Request{"another body": request(`{"a":2}`), "no hash": request(body)} {
		if name == "no hash" {
			req.URL = "https://shop.example/in"
			req.Header.Set("X-Twilio-Signature", twilioSignature(req.URL))
		}
		if why := reason(t, p, req); why.Reason != hookonce.ReasonSignatureMismatch {
			t.Errorf("%s: %v", name, why)
		}
	}
	reason(t, Twilio("", "other"), request(body))
}

// braintreePayload is a signed form of that notification.
func braintreePayload(t *testing.T, c spec.Checker, xml string) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Method: "POST", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Now: now}
	req.Body = []byte(url.Values{"bt_payload": {xml}}.Encode())
	if err := c.(spec.Sealer).Seal(req); err != nil {
		t.Fatal(err)
	}
	return req
}

func TestBraintreeNotifications(t *testing.T) {
	c, err := scheme.Braintree().Compile("pub:priv")
	if err != nil {
		t.Fatal(err)
	}
	p := Braintree("pub:priv")
	const xml = "<notification><kind>disbursement</kind><timestamp type=\"datetime\">2026-02-03T04:05:06Z</timestamp><subject><disbursement><id>D-1</id></disbursement></subject></notification>"
	first := one(t, p, braintreePayload(t, c, xml))
	if first.Key == "" || !first.KeySigned || first.Type != "disbursement" || !first.Time.Equal(now) || first.Resource != "D-1" {
		t.Errorf("got %+v", first)
	}
	if again := one(t, p, braintreePayload(t, c, xml)); again.Key != first.Key {
		t.Error("a retry has another key")
	}
	// Kind and time alone would lose one of two notifications of the same second.
	if other := one(t, p, braintreePayload(t, c, strings.Replace(xml, "D-1", "D-2", 1))); other.Key == first.Key {
		t.Error("two notifications of one second have one key")
	}
	if d, err := p.Open(braintreePayload(t, c, "<notification>")); err != nil || d.Unreadable == nil || d.Events[0].Key != "" {
		t.Errorf("broken XML: %+v, %v", d, err)
	}
	reason(t, Braintree("pub:other"), braintreePayload(t, c, xml))
	reason(t, Braintree("other:priv"), braintreePayload(t, c, xml))
}

const (
	snsTopic = "arn:aws:sns:eu-central-1:123456789012:orders"
	snsCert  = "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-1.pem"
)

// snsWorld returns the provider with a certificate of its own, and a function that signs messages.
func snsWorld(t *testing.T) (*spec.Provider, *net, func(version string, members map[string]any) *hookonce.Request) {
	t.Helper()
	root, key := newAuthority(t), newRSA(t)
	cert := root.issue(t, "sns.amazonaws.com", &key.PublicKey, now.Add(day))
	n := &net{serve: func(*http.Request) (int, string) { return http.StatusOK, inPEM(cert) }}
	return withScheme(t, "aws-sns", scheme.AmazonSNS(n), snsTopic), n, func(version string, members map[string]any) *hookonce.Request {
		return snsRequest(t, key, version, members)
	}
}

// snsRequest signs the members, in the order in which they are signed, as Amazon would.
func snsRequest(t *testing.T, key *rsa.PrivateKey, version string, members map[string]any) *hookonce.Request {
	t.Helper()
	m := map[string]any{"MessageId": "M-1", "TopicArn": snsTopic, "Message": "a\nb", "Timestamp": "2026-02-03T04:05:06.000Z", "SigningCertURL": snsCert, "SignatureVersion": version}
	for name, text := range members {
		m[name] = text
	}
	var message strings.Builder
	for _, name := range []string{"Message", "MessageId", "SubscribeURL", "Subject", "Timestamp", "Token", "TopicArn", "Type"} {
		if text, ok := m[name].(string); ok {
			message.WriteString(name + "\n" + text + "\n")
		}
	}
	m["Signature"] = rsaSigned(t, key, map[string]crypto.Hash{"1": crypto.SHA1, "2": crypto.SHA256}[version], message.String())
	body, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return &hookonce.Request{Method: "POST", Header: http.Header{}, Body: body, Now: now}
}

func TestSNSMessages(t *testing.T) {
	p, n, request := snsWorld(t)
	for name, req := range map[string]*hookonce.Request{
		"version 1":       request("1", map[string]any{"Type": "Notification", "Subject": "s"}),
		"version 2":       request("2", map[string]any{"Type": "Notification"}),
		"to be confirmed": request("2", map[string]any{"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": "https://sns.eu-central-1.amazonaws.com/?Action=ConfirmSubscription"}),
	} {
		if ev := one(t, p, req); ev.Key != "M-1" || !ev.KeySigned || ev.Tenant != snsTopic {
			t.Errorf("%s: %+v", name, ev)
		}
	}
	if asked := n.asked.Load(); asked != 1 {
		t.Errorf("the certificate was fetched %d times, and nothing else is to be fetched", asked)
	}
}

func TestSNSRejects(t *testing.T) {
	p, n, request := snsWorld(t)
	edit := func(old, new string) *hookonce.Request {
		req := request("2", map[string]any{"Type": "Notification"})
		if !strings.Contains(string(req.Body), old) {
			t.Fatalf("the body has no %s", old)
		}
		req.Body = []byte(strings.Replace(string(req.Body), old, new, 1))
		return req
	}
	for name, req := range map[string]*hookonce.Request{
		"another message":      edit(`a\nb`, `a\nc`),
		"another id":           edit("M-1", "M-2"),
		"another time":         edit("04:05", "04:06"),
		"another version":      edit(`"SignatureVersion":"2"`, `"SignatureVersion":"1"`),
		"an unknown version":   edit(`"SignatureVersion":"2"`, `"SignatureVersion":"3"`),
		"a subject":            edit(`{`, `{"Subject":"s",`),
		"a member twice":       edit(`{`, `{"MessageId":"M-2",`),
		"a member twice, null": edit(`{`, `{"MessageId":null,`),
		"another type":         edit(`"Type":"Notification"`, `"Type":"Something"`),
		"no message":           edit(`"Message":`, `"message":`),
		"no signature":         edit(`"Signature":`, `"signature":`),
		"a null subject":       edit(`{`, `{"Subject":null,`),
		"an object as subject": edit(`{`, `{"Subject":{"a":1},`),
		"another spelling":     edit(`{`, `{"message":"{}",`),
		"a spelling beside it": edit(`{`, `{"\u017fubject":"s",`), // a long s, which folds to s
		"what is not signed":   edit(`{`, `{"SubscribeURL":"https://evil.example/",`),
		"raw delivery":         {Method: "POST", Header: http.Header{}, Body: []byte("hello"), Now: now},
		"another topic":        request("2", map[string]any{"Type": "Notification", "TopicArn": snsTopic + "2"}),
	} {
		if _, err := p.Open(req); !errors.Is(err, hookonce.ErrUnverified) {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := n.asked.Load()
	for _, address := range []string{
		"https://evil.example/x.pem", "http://sns.eu-central-1.amazonaws.com/x.pem", "https://sns.eu-central-1.amazonaws.com.evil.example/x.pem",
		"https://s3.eu-central-1.amazonaws.com/x.pem", "https://sns.evil.example/.amazonaws.com/x.pem", "https://sns.eu-central-1.amazonaws.com/?Action=x.pem",
		"https://sns.a.b.amazonaws.com/x.pem", "https://sns.eu-central-1.amazonaws.com/x",
		// the bucket of that name
		"https://sns.s3.amazonaws.com/x.pem", "https://sns.s3-us-west-2.amazonaws.com/x.pem", "https://sns.s3-accelerate.amazonaws.com/x.pem",
		"https://sns.s3-us-gov-west-1.amazonaws.com/x.pem", "https://sns.s3.cn-north-1.amazonaws.com.cn/x.pem",
	} {
		if why := reason(t, p, request("2", map[string]any{"Type": "Notification", "SigningCertURL": address})); why.Reason != hookonce.ReasonSignatureMalformed {
			t.Errorf("%s: %v", address, why)
		}
	}
	if n.asked.Load() != before {
		t.Error("a foreign host was asked")
	}
}

// plaidWorld is a provider whose key is served by the test.
type plaidWorld struct {
	*net
	*spec.Provider
	key *ecdsa.PrivateKey
}

func newPlaidWorld(t *testing.T, expired *int64) *plaidWorld {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	text, err := jose.JSONWebKey{Key: &key.PublicKey, KeyID: "K-1", Algorithm: "ES256", Use: "sig"}.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]any
	if err := json.Unmarshal(text, &members); err != nil {
		t.Fatal(err)
	}
	members["expired_at"] = expired
	answer, err := json.Marshal(map[string]any{"key": members, "request_id": "r"})
	if err != nil {
		t.Fatal(err)
	}
	n := &net{serve: func(req *http.Request) (int, string) {
		var asked map[string]string
		if json.NewDecoder(req.Body).Decode(&asked) != nil || req.URL.String() != "https://sandbox.plaid.com/webhook_verification_key/get" ||
			asked["client_id"] != "client" || asked["secret"] != "secret" || asked["key_id"] != "K-1" {
			return http.StatusBadRequest, "{}"
		}
		return http.StatusOK, string(answer)
	}}
	return &plaidWorld{n, withScheme(t, "plaid", scheme.Plaid(n), "sandbox:client:secret"), key}
}

const plaidBody = `{"webhook_type":"ITEM","webhook_code":"ERROR","item_id":"I-1"}`

// request returns a webhook with a token of that age.
func (w *plaidWorld) request(t *testing.T, kid string, key jose.SigningKey, age time.Duration) *hookonce.Request {
	t.Helper()
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithHeader("kid", kid))
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(plaidBody))
	claims, err := json.Marshal(map[string]any{"iat": now.Add(-age).Unix(), "request_body_sha256": hex.EncodeToString(sum[:])})
	if err != nil {
		t.Fatal(err)
	}
	jws, err := signer.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	token, err := jws.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return &hookonce.Request{Method: "POST", Header: http.Header{"Plaid-Verification": {token}}, Body: []byte(plaidBody), Now: now}
}

func (w *plaidWorld) signing() jose.SigningKey {
	return jose.SigningKey{Algorithm: jose.ES256, Key: w.key}
}

// Item, type and code are the same in distinct events.
func TestPlaidIsUnkeyed(t *testing.T) {
	w := newPlaidWorld(t, nil)
	for range 3 {
		if ev := one(t, w.Provider, w.request(t, "K-1", w.signing(), time.Minute)); ev.Key != "" || ev.Type != "ITEM.ERROR" || ev.Resource != "I-1" {
			t.Errorf("got %+v", ev)
		}
	}
	if n := w.asked.Load(); n != 1 {
		t.Errorf("the key was fetched %d times", n)
	}
}

func TestPlaidRejects(t *testing.T) {
	w, stranger := newPlaidWorld(t, nil), newPlaidWorld(t, nil)
	expiredAt := now.Add(-2 * time.Minute).Unix()
	retired := newPlaidWorld(t, &expiredAt)
	changed := w.request(t, "K-1", w.signing(), 0)
	changed.Body[5] ^= 1
	cases := map[string]struct {
		*plaidWorld
		req    *hookonce.Request
		reason string
	}{
		"another key":       {w, w.request(t, "K-1", stranger.signing(), 0), hookonce.ReasonSignatureMismatch},
		"another algorithm": {w, w.request(t, "K-1", jose.SigningKey{Algorithm: jose.HS256, Key: []byte("0123456789abcdef0123456789abcdef")}, 0), hookonce.ReasonSignatureMalformed},
		"another body":      {w, changed, hookonce.ReasonSignatureMismatch},
		"an old token":      {w, w.request(t, "K-1", w.signing(), 5*time.Minute+time.Second), hookonce.ReasonTimestampOld},
		"a future token":    {w, w.request(t, "K-1", w.signing(), -5*time.Minute-time.Second), hookonce.ReasonTimestampFuture},
		"a retired key":     {retired, retired.request(t, "K-1", retired.signing(), time.Minute), hookonce.ReasonSignatureMismatch},
		"a strange name":    {w, w.request(t, "../K", w.signing(), 0), hookonce.ReasonSignatureMalformed},
		"no token":          {w, &hookonce.Request{Body: []byte(plaidBody), Now: now}, hookonce.ReasonSignatureMissing},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if why := reason(t, c.Provider, c.req); why.Reason != c.reason {
				t.Error(why)
			}
		})
	}
	one(t, retired.Provider, retired.request(t, "K-1", retired.signing(), 3*time.Minute))
	if _, err := w.Open(w.request(t, "K-2", w.signing(), 0)); err == nil || errors.Is(err, hookonce.ErrUnverified) {
		t.Errorf("a key that cannot be had: %v", err)
	}
}

// What one secret cannot decide is not rejected because another one does.
func TestUndecidedOutranksRejected(t *testing.T) {
	w := newPlaidWorld(t, nil)
	stranger := newPlaidWorld(t, nil)
	p := withScheme(t, "plaid", scheme.Plaid(w), "production:client:secret", "sandbox:client:secret")
	one(t, p, w.request(t, "K-1", w.signing(), 0))
	if _, err := p.Open(w.request(t, "K-1", stranger.signing(), 0)); err == nil || errors.Is(err, hookonce.ErrUnverified) {
		t.Errorf("got %v", err)
	}
}

// The vector of eBay's own SDK: eBay/event-notification-nodejs-sdk, test/test.json.
const (
	ebaySignature = "eyJhbGciOiJlY2RzYSIsImtpZCI6Ijk5MzYyNjFhLTdkN2ItNDYyMS1hMGYxLTk2Y2NiNDI4YWY0OSIsInNpZ25hdHVyZSI6Ik1FWUNJUUNmeGZJV3V4bVdjSUJRSjljNS9YN2lHREpxczJSQ0dzQkVhQWppbnlycmZBSWhBSVY2d0djVGlCdVY1S0pVaWYyaG9reXJMK1E5c3NIa2FkK214Mm5FRTI1dyIsImRpZ2VzdCI6IlNIQTEifQ=="
	ebayMismatch  = "eyJhbGciOiJlY2RzYSIsImtpZCI6Ijk5MzYyNjFhLTdkN2ItNDYyMS1hMGYxLTk2Y2NiNDI4YWY0OSIsInNpZ25hdHVyZSI6Ik1FVUNJUUNHY1NubUFrVGZyK1paMlZnMGJXRW9zOGEvdGVCcWk3UGU2OCtoR21MTUNRSWdlRnZrcnRvKzhkczhSVndJM0dnbjFtTUdDck5NRVpKM1NSbE8yZngveHFJPSIsImRpZ2VzdCI6IlNIQTEifQ=="
	ebayBody      = `{"metadata":{"topic":"MARKETPLACE_ACCOUNT_DELETION","schemaVersion":"1.0","deprecated":false},"notification":{"notificationId":"49feeaeb-4982-42d9-a377-9645b8479411_33f7e043-fed8-442b-9d44-791923bd9a6d","eventDate":"2021-03-19T20:43:59.462Z","publishDate":"2021-03-19T20:43:59.679Z","publishAttemptCount":1,"data":{"username":"test_user","userId":"ma8vp1jySJC","eiasToken":"nY+sHZ2PrBmdj6wVnY+sEZ2PrA2dj6wJnY+gAZGEpwmdj6x9nY+seQ=="}}}`
	ebayAnswer    = `{"key":"-----BEGIN PUBLIC KEY-----MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEZhhxXKtR+TOvtDbgTPCkSof02qgBB7IsYOyf76ilExJ/upAa/vKIKheOoCyOpcLmi4t0b4uepb7LLjmMr90FUg==-----END PUBLIC KEY-----","algorithm":"ECDSA","digest":"SHA1"}`
)

// ebayNet answers as eBay's API does.
func ebayNet() *net {
	return &net{serve: func(req *http.Request) (int, string) {
		user, password, _ := req.BasicAuth()
		switch {
		case req.URL.String() == "https://api.sandbox.ebay.com/identity/v1/oauth2/token" && user == "client" && password == "secret":
			return http.StatusOK, `{"access_token":"T-1","expires_in":7200}`
		case req.URL.String() == "https://api.sandbox.ebay.com/commerce/notification/v1/public_key/9936261a-7d7b-4621-a0f1-96ccb428af49" && req.Header.Get("Authorization") == "Bearer T-1":
			return http.StatusOK, ebayAnswer
		}
		return http.StatusUnauthorized, "{}"
	}}
}

func TestEBayVector(t *testing.T) {
	n := ebayNet()
	p := withScheme(t, "ebay", scheme.EBay(n), "sandbox:client:secret")
	request := func(signature, body string) *hookonce.Request {
		return &hookonce.Request{Method: "POST", Header: http.Header{"X-Ebay-Signature": {signature}}, Body: []byte(body), Now: now}
	}
	ev := one(t, p, request(ebaySignature, ebayBody))
	if ev.Key != "49feeaeb-4982-42d9-a377-9645b8479411_33f7e043-fed8-442b-9d44-791923bd9a6d" || !ev.KeySigned || ev.SenderAttempt != "1" || ev.Type != "MARKETPLACE_ACCOUNT_DELETION" {
		t.Errorf("got %+v", ev)
	}
	other := base64.StdEncoding.EncodeToString([]byte(`{"kid":"../../x","signature":"AAAA"}`))
	for name, req := range map[string]*hookonce.Request{
		"another signature": request(ebayMismatch, ebayBody),
		"another body":      request(ebaySignature, strings.Replace(ebayBody, "test_user", "best_user", 1)),
		"a strange name":    request(other, ebayBody),
		"no JSON":           request("AAAA", ebayBody),
	} {
		if _, err := p.Open(req); !errors.Is(err, hookonce.ErrUnverified) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked := n.asked.Load(); asked != 2 {
		t.Errorf("%d requests, want one for the token and one for the key", asked)
	}
	named := func(kid string) string {
		return base64.StdEncoding.EncodeToString([]byte(`{"kid":"` + kid + `","signature":"AAAA"}`))
	}
	if _, err := p.Open(request(named("made-up"), ebayBody)); err == nil || n.asked.Load() != 3 {
		t.Errorf("%v after %d requests, want one more for another key and none for a token", err, n.asked.Load())
	}
	if _, err := p.Open(request(named("made-up-2"), ebayBody)); err == nil || n.asked.Load() != 5 {
		t.Errorf("%v after %d requests, want a new token after one that was not taken", err, n.asked.Load())
	}
	wrong := withScheme(t, "ebay", scheme.EBay(n), "sandbox:client:wrong")
	if _, err := wrong.Open(request(ebaySignature, ebayBody)); err == nil || errors.Is(err, hookonce.ErrUnverified) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("credentials of ours that are wrong: %v", err)
	}
}

// TestEBayTokensSayNothingOfKeys: that eBay does not take a token any more, or gives none for a moment, neither keeps a key out
// that is there nor gives up one that was good.
func TestEBayTokensSayNothingOfKeys(t *testing.T) {
	n := ebayNet()
	serve, away := n.serve, "token"
	n.serve = func(req *http.Request) (int, string) {
		switch token := strings.HasSuffix(req.URL.Path, "/token"); {
		case away == "token" && token:
			return http.StatusNotFound, ""
		case away == "key" && !token:
			return http.StatusUnauthorized, ""
		}
		return serve(req)
	}
	p := withScheme(t, "ebay", scheme.EBay(n), "sandbox:client:secret")
	open := func(after time.Duration) error {
		_, err := p.Open(&hookonce.Request{Method: "POST", Header: http.Header{"X-Ebay-Signature": {ebaySignature}}, Body: []byte(ebayBody), Now: now.Add(after)})
		return err
	}
	at := time.Duration(0)
	for _, away = range []string{"token", "key"} {
		if err := open(at); err == nil || errors.Is(err, hookonce.ErrUnverified) {
			t.Errorf("no %s: %v", away, err)
		}
		at += 2 * time.Second // when it is asked again
	}
	away = ""
	if err := open(at); err != nil {
		t.Errorf("the key is kept out: %v", err)
	}
	away = "token"
	for range 2 { // the second comes after the failure of the first
		at += 2 * time.Hour // the token is over, the key is to be renewed
		asked := n.asked.Load()
		if err := open(at); err != nil {
			t.Errorf("a key that was good, while there is no token: %v", err)
		}
		for deadline := time.Now().Add(time.Minute); n.asked.Load() == asked && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		}
	}
}

func TestSecretsOfTheWrongForm(t *testing.T) {
	for name, secrets := range map[string][]string{
		"twilio": {"", " x"}, "paypal": {"", "a|b"}, "braintree": {"", "a", "a:", ":b"}, "aws-sns": {"", "topic-orders", "arn:aws:sns x"},
		"plaid": {"", "a:b:c", "production:a", "sandbox::b"}, "ebay": {"", "a:b:c", "production:a", "sandbox:a: b"},
		"circle": {"", "TEST_API_KEY", "wallets:", "mint:TEST_API_KEY", "wallets: spaced"},
	} {
		for _, secret := range secrets {
			_, err := Build(name, spec.Settings{Secrets: spec.Secrets(secret)})
			if err == nil || secret != "" && strings.Contains(err.Error(), secret) && len(secret) > 2 {
				t.Errorf("%s with %q: %v", name, secret, err)
			}
		}
	}
}
