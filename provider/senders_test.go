package provider

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// What is particular to one sender: which of its events are copies, and which only look like it.

// keys opens requests with those bodies, which p signs, and returns the keys of their events.
func keys(t *testing.T, p *spec.Provider, bodies ...string) []string {
	t.Helper()
	var all []string
	for _, body := range bodies {
		all = append(all, one(t, p, signed(t, p, body)).Key)
	}
	return all
}

// posted returns a form that p signs.
func posted(t *testing.T, p *spec.Provider, address string, form url.Values) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Method: "POST", URL: address, Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: []byte(form.Encode()), Now: now}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// TestPersonaRotatesItsSecret: while a secret is changed, the header has two pairs, and whoever knows both secrets is served.
func TestPersonaRotatesItsSecret(t *testing.T) {
	const body = `{"data":{"type":"event","id":"evt_1"}}`
	pair := func(secret string) string {
		return signed(t, Persona(secret), body).Header.Get("Persona-Signature")
	}
	req := &hookonce.Request{Method: "POST", Header: http.Header{}, Body: []byte(body), Now: now}
	req.Header.Set("Persona-Signature", pair("fake-old")+" "+pair("fake-new"))
	if ev := one(t, Persona("fake-old", "fake-new"), req); ev.Key != "evt_1" || !ev.KeySigned {
		t.Errorf("%+v", ev)
	}
	reason(t, Persona("fake-other"), req)
	req.Body = []byte(strings.Replace(body, "evt_1", "evt_2", 1))
	reason(t, Persona("fake-old", "fake-new"), req)
}

// TestPayMongoModes: a webhook of the test mode is signed in one place of the header, one of the live mode in another.
func TestPayMongoModes(t *testing.T) {
	p := PayMongo("fake-secret")
	req := signed(t, p, `{"data":{"id":"evt_1"}}`)
	live := req.Header.Get("Paymongo-Signature")
	for _, header := range []string{live, strings.Replace(live, "li=", "te=", 1), live + ",te=", strings.Replace(live, "li=", "te=,li=", 1)} {
		req.Header.Set("Paymongo-Signature", header)
		if ev := one(t, p, req); ev.Key != "evt_1" {
			t.Errorf("%s: %+v", header, ev)
		}
	}
	req.Header.Set("Paymongo-Signature", strings.Replace(live, "li=", "v1=", 1))
	reason(t, p, req)
	if ok := p.Profile().Acknowledgement; ok.ContentType != "application/json" || string(ok.Body) != "{}" {
		t.Errorf("the answer is to be JSON: %+v", ok)
	}
}

// TestPaystackKeysHaveContent: every state of a charge is an event, and of what has no id nothing is dropped.
func TestPaystackKeysHaveContent(t *testing.T) {
	p := Paystack("sk_test_fake")
	got := keys(t, p,
		`{"event":"charge.dispute.create","data":{"id":1,"status":"pending"}}`,
		`{"event":"charge.dispute.create","data":{"id":1,"status":"pending"}}`,
		`{"event":"charge.dispute.resolve","data":{"id":1,"status":"resolved"}}`,
		`{"event":"refund.pending","data":{"transaction_reference":"t","refund_reference":null,"amount":"100"}}`,
		`{"event":"refund.processed","data":{"transaction_reference":"t","refund_reference":"r1","amount":"100"}}`,
		`{"event":"refund.processed","data":{"transaction_reference":"t","refund_reference":"r2","amount":"100"}}`)
	if got[0] != got[1] || got[0] == "" || got[1] == got[2] || got[3] != "" || got[4] == got[5] || got[4] == "" {
		t.Errorf("%q", got)
	}
}

// TestCashfreeTries: an order may be paid at the second try, and a payment has states.
func TestCashfreeTries(t *testing.T) {
	body := func(kind, payment, status string) string {
		return `{"type":"` + kind + `","data":{"order":{"order_id":"o"},"payment":{"cf_payment_id":` + payment + `,"payment_status":"` + status + `"}}}`
	}
	p := Cashfree("fake-secret")
	got := keys(t, p, body("PAYMENT_FAILED_WEBHOOK", "1", "FAILED"), body("PAYMENT_SUCCESS_WEBHOOK", "2", "SUCCESS"),
		body("PAYMENT_USER_DROPPED_WEBHOOK", "2", "USER_DROPPED"), body("PAYMENT_SUCCESS_WEBHOOK", "2", "SUCCESS"), `{"type":"SETTLEMENT","data":{}}`,
		body("PAYMENT_FAILED_WEBHOOK", "3", "FAILED"))
	if got[0] == got[1] || got[0] == got[5] || got[1] == got[2] || got[1] != got[3] || got[1] == "" || got[4] != "" {
		t.Errorf("%q", got)
	}
}

// TestGumroadCountsItsRetries: a retry has one more field, and is a copy; the refund that completes the others is none. One that
// does not complete them has no field of its own, and cannot be told from a copy of the first: the traps say so.
func TestGumroadCountsItsRetries(t *testing.T) {
	p := Gumroad("fake-token")
	ping := func(more ...string) hookonce.Event {
		form := url.Values{"sale_id": {"S1"}, "resource_name": {"refund"}, "price": {"4200"}, "refunded": {"false"}}
		for i := 0; i < len(more); i += 2 {
			form.Set(more[i], more[i+1])
		}
		return one(t, p, posted(t, p, "https://shop.example/in", form))
	}
	first, retry, second, sale := ping(), ping("retry_count", "1"), ping("refunded", "true"), ping("resource_name", "sale")
	if first.Key == "" || first.Key != retry.Key || string(first.Digest) != string(retry.Digest) || retry.SenderAttempt != "1" {
		t.Errorf("a retry: %+v, %+v", first, retry)
	}
	if partial := ping(); partial.Key != first.Key || !slices.ContainsFunc(p.Spec().Traps, func(trap string) bool { return strings.Contains(trap, "second partial refund") }) {
		t.Errorf("a second partial refund is told apart now (%q): say so in the traps", partial.Key)
	}
	if first.Key == second.Key || first.Key == sale.Key {
		t.Errorf("another state has the key %q, and another event %q", second.Key, sale.Key)
	}
	// What a plan changes to at the end of a period may change again before that ends.
	change := []string{"resource_name", "subscription_updated", "subscription_id", "U1", "type", "downgrade", "effective_as_of", "2026-03-01T00:00:00Z"}
	small, smaller := ping(append(change, "new_plan[tier][id]", "T2")...), ping(append(change, "new_plan[tier][id]", "T3")...)
	if small.Key == "" || small.Key == smaller.Key {
		t.Errorf("two changes of a plan have the keys %q and %q", small.Key, smaller.Key)
	}
}

// TestMidtransStates: the settlement after pending is no copy, and neither is a second partial refund.
func TestMidtransStates(t *testing.T) {
	p := Midtrans("fake-server-key")
	body := func(status, refunded string) string {
		return `{"order_id":"o","transaction_id":"t","status_code":"200","gross_amount":"100.00","signature_key":"","transaction_status":"` + status + `","refund_amount":"` + refunded + `"}`
	}
	got := keys(t, p, body("pending", ""), body("settlement", ""), body("partial_refund", "10.00"), body("partial_refund", "20.00"), body("partial_refund", "20.00"))
	if got[0] == got[1] || got[1] == got[2] || got[2] == got[3] || got[3] != got[4] || got[3] == "" {
		t.Errorf("%q", got)
	}
	req := signed(t, p, body("settlement", ""))
	req.Body = []byte(strings.Replace(string(req.Body), "100.00", "1.00", 1))
	reason(t, p, req)
}

// TestMercadoPagoSignsTheQuery: the id in the query is signed, in either spelling, and without it the header is.
func TestMercadoPagoSignsTheQuery(t *testing.T) {
	p := MercadoPago("fake-secret")
	sign := func(address string) *hookonce.Request {
		req := &hookonce.Request{Method: "POST", URL: address, Header: http.Header{"X-Request-Id": {"r"}}, Body: []byte(`{"id":1,"type":"payment","data":{"id":"7"}}`), Now: now}
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		return req
	}
	req := sign("https://shop.example/in?data.id=7&type=payment")
	req.Body = []byte(`{"id":1,"type":"payment","data":{"id":"8"}}`) // which nobody signs
	if ev := one(t, p, req); ev.Key != "7:payment1:1" || ev.KeySigned || ev.Resource != "7" {
		t.Errorf("%+v", ev)
	}
	for _, change := range []func(){
		func() { req.URL = "https://shop.example/in?data.id=8&type=payment" },
		func() { req.URL = "https://shop.example/in" },
		func() { req.Header.Set("X-Request-Id", "s") },
		func() { req.Header.Del("X-Request-Id") },
	} {
		req = sign("https://shop.example/in?data.id=7&type=payment")
		change()
		reason(t, p, req)
	}
}

// TestMandrillBatches: every event of a message has a key of its own, and the body of each is a form that Mandrill could have sent.
func TestMandrillBatches(t *testing.T) {
	p := Mandrill("https://shop.example/in", "fake-key")
	req := posted(t, p, "https://shop.example/in", url.Values{"mandrill_events": {
		`[{"event":"send","_id":"m","ts":1},{"event":"open","_id":"m","ts":2},{"event":"click","_id":"m","ts":3,"url":"a"},{"event":"click","_id":"m","ts":3,"url":"b"},` +
			`{"event":"inbound","ts":4,"msg":{"raw_msg":"x"}},{"type":"blacklist","action":"add","ts":5}]`,
	}})
	d, err := p.Open(req)
	if err != nil || d.Len() != 6 {
		t.Fatalf("%+v, %v", d, err)
	}
	seen := map[string]bool{}
	for ev := range d.All() {
		form, err := url.ParseQuery(string(ev.Body))
		if err != nil || !strings.HasPrefix(form.Get("mandrill_events"), "[{") || ev.Key == "" || seen[ev.Key] || ev.Type == "" {
			t.Errorf("%+v, %v", ev, err)
		}
		seen[ev.Key] = true
	}
	req.Body = []byte(strings.Replace(string(req.Body), "send", "sent", 1))
	reason(t, p, req)
}

// TestFormsAreNotMultiplied: what a form has beside the batch is in the body of every item, and is bounded as that is.
func TestFormsAreNotMultiplied(t *testing.T) {
	p := Mandrill("https://shop.example/in", "fake-key")
	form := url.Values{"mandrill_events": {"[" + strings.Repeat("{},", 1999) + "{}]"}, "more": {strings.Repeat("x", 64<<10)}}
	d, err := p.Open(posted(t, p, "https://shop.example/in", form))
	if err != nil || d.Unreadable == nil || d.Len() != 1 || d.Events[0].Key != "" {
		t.Errorf("%d events, unreadable: %v; %v", d.Len(), d.Unreadable, err)
	}
	form.Del("more")
	if d, err = p.Open(posted(t, p, "https://shop.example/in", form)); err != nil || d.Unreadable != nil || d.Len() != 2000 {
		t.Errorf("%d events, unreadable: %v; %v", d.Len(), d.Unreadable, err)
	}
}

// TestPlivoCallbacksOfOneCall: one call may be told of by several callbacks with the cause of its end.
func TestPlivoCallbacksOfOneCall(t *testing.T) {
	p := Plivo("https://shop.example/in", "fake-token")
	key := func(event string) string {
		form := url.Values{"CallUUID": {"C1"}, "HangupCause": {"NORMAL_CLEARING"}, "Event": {event}}
		return one(t, p, posted(t, p, "https://shop.example/in", form)).Key
	}
	if hangup, record := key("Hangup"), key("RecordStop"); hangup == "" || hangup == record || hangup != key("Hangup") {
		t.Errorf("%q, %q", hangup, record)
	}
}

// TestOrdersAreOfOneThing: what happens to one user, file, customer or app is no newer state of what happened to it before,
// and a build is none of the pull request with its number. A destination that drops what is older would lose it.
func TestOrdersAreOfOneThing(t *testing.T) {
	if s, err := Lookup("app-store"); err != nil || s.Order != nil {
		t.Errorf("the order of an app: %+v, %v", s.Order, err)
	}
	for name, body := range map[string]string{
		"segment":      `{"type":"track","messageId":"m","userId":"u","timestamp":"2026-02-03T04:05:06Z"}`,
		"figma":        `{"event_type":"FILE_COMMENT","passcode":"","timestamp":"2026-02-03T04:05:06Z","webhook_id":"1","file_key":"f","comment_id":"c"}`,
		"dub":          `{"id":"evt_1","event":"sale.created","createdAt":"2026-02-03T04:05:06Z","data":{"customer":{"id":"c"}}}`,
		"azure-devops": `{"subscriptionId":"s","id":"e","eventType":"build.complete","createdDate":"2026-02-03T04:05:06Z","resource":{"id":7},"resourceContainers":{"project":{"id":"p"}}}`,
	} {
		p := fake(t, name)
		if ev := one(t, p, signed(t, p, body)); ev.Key == "" || ev.Resource == "" || ev.Scope != "" && !ev.Rank.IsZero() {
			t.Errorf("%s: key %q, resource %q, scope %q, rank %v", name, ev.Key, ev.Resource, ev.Scope, ev.Rank)
		}
	}
	for name, body := range map[string]string{
		"dub":          `{"id":"evt_1","event":"link.updated","createdAt":"2026-02-03T04:05:06Z","data":{"id":"link_1"}}`,
		"azure-devops": `{"subscriptionId":"s","id":"e","eventType":"git.pullrequest.updated","createdDate":"2026-02-03T04:05:06Z","resource":{"pullRequestId":7},"resourceContainers":{"project":{"id":"p"}}}`,
	} {
		p := fake(t, name)
		if ev := one(t, p, signed(t, p, body)); ev.Scope == "" || ev.Rank.IsZero() {
			t.Errorf("%s: scope %q, rank %v", name, ev.Scope, ev.Rank)
		}
	}
}

// TestContentfulUnpublishingIsNewer: what is unpublished is newer than what was published before, and what is published again is
// newer than that, whatever the revision says, which counts neither.
func TestContentfulUnpublishingIsNewer(t *testing.T) {
	p := fake(t, "contentful")
	entity := func(topic, sys string) hookonce.Event {
		body := `{"sys":{"id":"cat","environment":{"sys":{"id":"master"}},"space":{"sys":{"id":"shop"}},` + sys + `}}`
		return one(t, p, signed(t, p, body, "X-Contentful-Topic", topic))
	}
	states := []hookonce.Event{
		entity("ContentManagement.Entry.publish", `"type":"Entry","revision":2,"updatedAt":"2026-02-03T04:05:06.101Z"`),
		entity("ContentManagement.Entry.unpublish", `"type":"DeletedEntry","revision":2,"updatedAt":"2026-02-03T04:05:06.202Z","deletedAt":"2026-02-03T04:05:06.202Z"`),
		entity("ContentManagement.Entry.publish", `"type":"Entry","revision":1,"updatedAt":"2026-02-03T04:05:06.303Z"`),
	}
	for i, ev := range states[1:] {
		before := states[i]
		if ev.Scope == "" || ev.Scope != before.Scope || !ev.Rank.Supersedes(before.Rank) || before.Rank.Supersedes(ev.Rank) {
			t.Errorf("%s with rank %v in %q after %s with %v in %q", ev.Type, ev.Rank, ev.Scope, before.Type, before.Rank, before.Scope)
		}
	}
}

// TestCircleKeysAreFetched: a key is asked for by the name that the header has, once, and nothing that a stranger writes there is.
func TestCircleKeysAreFetched(t *testing.T) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKIXPublicKey(&private.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	const kid, body = "879dc113-5ca4-4ff7-a6b7-54652083fcf8", `{"subscriptionId":"s","notificationId":"n-1","notificationType":"transactions.outbound"}`
	answer := `{"data":{"id":"` + kid + `","algorithm":"ECDSA_SHA_256","publicKey":"` + base64.StdEncoding.EncodeToString(der) + `","createDate":"2026-02-03T04:05:06Z"}}`
	n := &net{serve: func(req *http.Request) (int, string) {
		switch {
		case req.Header.Get("Authorization") != "Bearer TEST_API_KEY:a:b":
			return http.StatusUnauthorized, "{}"
		case req.URL.String() == "https://api.circle.com/v2/notifications/publicKey/"+kid:
			return http.StatusOK, answer
		case strings.HasSuffix(req.URL.Path, "/another"):
			return http.StatusOK, answer // and not the key that was asked for
		}
		return http.StatusNotFound, "{}"
	}}
	p := withScheme(t, "circle", scheme.Circle(n), "wallets:TEST_API_KEY:a:b")
	sum := sha256.Sum256([]byte(body))
	signature, err := ecdsa.SignASN1(rand.Reader, private, sum[:])
	if err != nil {
		t.Fatal(err)
	}
	request := func(kid, body string, signature []byte) *hookonce.Request {
		return &hookonce.Request{Method: "POST", Body: []byte(body), Now: now, Header: http.Header{
			"X-Circle-Signature": {base64.StdEncoding.EncodeToString(signature)}, "X-Circle-Key-Id": {kid},
		}}
	}
	for range 2 {
		if ev := one(t, p, request(kid, body, signature)); ev.Key != "n-1" || !ev.KeySigned {
			t.Errorf("%+v", ev)
		}
	}
	one(t, p, request(strings.ToUpper(kid), body, signature)) // one key, which is not fetched again
	for name, req := range map[string]*hookonce.Request{
		"another body":      request(kid, strings.Replace(body, "n-1", "n-2", 1), signature),
		"no signature":      request(kid, body, []byte("none")),
		"a path for a name": request("../../v1/keys", body, signature),
		"no name":           request("", body, signature),
	} {
		if _, err := p.Open(req); !errors.Is(err, hookonce.ErrUnverified) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked := n.asked.Load(); asked != 1 {
		t.Errorf("%d requests, want one for the key", asked)
	}
	if _, err := p.Open(request("another", body, signature)); err == nil {
		t.Error("a key under another name than the one that was asked for is taken")
	}
	wrong := withScheme(t, "circle", scheme.Circle(n), "wallets:TEST_API_KEY:a:wrong")
	if _, err := wrong.Open(request(kid, body, signature)); err == nil || errors.Is(err, hookonce.ErrUnverified) || strings.Contains(err.Error(), "wrong") {
		t.Errorf("a key of the API that is wrong: %v", err)
	}
}

// TestEndpointsAreValidated: what senders ask before they send anything is answered.
func TestEndpointsAreValidated(t *testing.T) {
	for name, c := range map[string]struct {
		p    *spec.Provider
		req  *hookonce.Request
		body string
	}{
		"mandrill":  {Mandrill("https://shop.example/in", "fake-key"), unsigned("HEAD", ""), ""},
		"intercom":  {Intercom("fake-secret"), unsigned("HEAD", ""), ""},
		"worldline": {WorldlineConnect("fake-secret"), worldlineAsks("e8c1"), "e8c1"},
		"mailchimp": {Mailchimp("fake-token"), unsigned("GET", ""), ""},
		"front":     {Front("fake-key"), signed(t, Front("fake-key"), `{"type":"sync","authorization":{"id":"cmp_abc"}}`, "X-Front-Challenge", `a"b`), `{"challenge":"a\"b"}`},
	} {
		d, err := c.p.Open(c.req)
		if err != nil || d.Handshake == nil || d.Handshake.Status != 200 || string(d.Handshake.Body) != c.body {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
	}
	reason(t, Front("fake-key"), signed(t, Front("fake-other"), `{"type":"sync"}`, "X-Front-Challenge", "a"))
	// What is no challenge is another method than that of events.
	long := strings.Repeat("a", 1025)
	for name, c := range map[string]struct {
		p   *spec.Provider
		req *hookonce.Request
	}{
		"a GET without the header":        {WorldlineConnect("fake-secret"), unsigned("GET", "")},
		"a header that is empty":          {WorldlineConnect("fake-secret"), worldlineAsks("")},
		"a header that is too long":       {WorldlineConnect("fake-secret"), worldlineAsks(long)},
		"a GET where HEAD is the request": {Intercom("fake-secret"), unsigned("GET", "")},
	} {
		if why := reason(t, c.p, c.req); why.Status != http.StatusMethodNotAllowed {
			t.Errorf("%s: %+v", name, why)
		}
	}
	// With POST the header is no challenge: an event that has it is verified like any other.
	forged := worldlineAsks("e8c1")
	forged.Method, forged.Body = "POST", []byte(`{"id":"1"}`)
	reason(t, WorldlineConnect("fake-secret"), forged)
}
