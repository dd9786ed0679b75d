package provider

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// batchCase is a sender that puts several events into one request.
type batchCase struct {
	provider string
	// wrap is the request around the items; %s is where they are, joined by commas.
	wrap string
	// Three events that share what a naive rule would take for the key.
	first, second, third string
	// again is the second as it comes in a retry, with everything changed that the sender changes.
	again string
}

var batchCases = []batchCase{
	{"adyen", `{"live":"false","notificationItems":[%s]}`,
		`{"NotificationRequestItem":{"additionalData":{"x":"1"},"pspReference":"P","eventCode":"AUTHORISATION","success":"false"}}`,
		`{"NotificationRequestItem":{"additionalData":{"x":"1"},"pspReference":"P","eventCode":"AUTHORISATION","success":"true"}}`,
		`{"NotificationRequestItem":{"additionalData":{"x":"1"},"pspReference":"P","eventCode":"CAPTURE","success":"true"}}`,
		`{"NotificationRequestItem":{"additionalData":{"x":"1"},"pspReference":"P","eventCode":"AUTHORISATION","success":"true"}}`},
	{"auth0", `[%s]`,
		`{"log_id":"1","data":{"type":"s","user_id":"u"}}`,
		`{"log_id":"2","data":{"type":"s","user_id":"u"}}`,
		`{"log_id":"3","data":{"type":"s","user_id":"u"}}`,
		`{"log_id":"2","data":{"type":"s","user_id":"u"}}`},
	{"gocardless", `{"events":[%s],"meta":{"webhook_id":"WB1"}}`,
		`{"id":"EV1","resource_type":"payments","action":"confirmed","links":{"payment":"PM1"}}`,
		`{"id":"EV2","resource_type":"payments","action":"failed","links":{"payment":"PM1"}}`,
		`{"id":"EV3","resource_type":"payments","action":"failed","links":{"payment":"PM1"}}`,
		`{"id":"EV2","resource_type":"payments","action":"failed","links":{"payment":"PM1"}}`},
	{"hubspot", `[%s]`,
		`{"portalId":1,"subscriptionId":7,"eventId":9,"objectId":1,"occurredAt":1770091506000,"propertyName":"email","attemptNumber":0}`,
		`{"portalId":1,"subscriptionId":7,"eventId":9,"objectId":2,"occurredAt":1770091506000,"propertyName":"email","attemptNumber":0}`,
		`{"portalId":1,"subscriptionId":7,"eventId":9,"objectId":2,"occurredAt":1770091506000,"propertyName":"phone","attemptNumber":0}`,
		`{"portalId":1,"subscriptionId":7,"eventId":9,"objectId":2,"occurredAt":1770091506000,"propertyName":"email","attemptNumber":1}`},
	{"line", `{"destination":"U1","events":[%s]}`,
		`{"type":"message","webhookEventId":"W1","timestamp":1,"source":{"userId":"u"},"deliveryContext":{"isRedelivery":false}}`,
		`{"type":"message","webhookEventId":"W2","timestamp":1,"source":{"userId":"u"},"deliveryContext":{"isRedelivery":false}}`,
		`{"type":"message","webhookEventId":"W3","timestamp":1,"source":{"userId":"u"},"deliveryContext":{"isRedelivery":false}}`,
		`{"type":"message","webhookEventId":"W2","timestamp":1,"source":{"userId":"u"},"deliveryContext":{"isRedelivery":true}}`},
	{"meta", `{"object":"page","entry":[{"id":"1","time":1,"messaging":[%s]}]}`,
		`{"sender":{"id":"2"},"timestamp":1,"message":{"mid":"m","text":"a"}}`,
		`{"sender":{"id":"2"},"timestamp":2,"message":{"mid":"m","text":"b","is_edited":true}}`,
		`{"sender":{"id":"2"},"timestamp":3,"message":{"mid":"m","is_deleted":true}}`,
		`{"sender":{"id":"2"},"timestamp":2,"message":{"mid":"m","text":"b","is_edited":true}}`},
	{"ms-graph", `{"value":[%s]}`,
		`{"id":"1","subscriptionId":"s","changeType":"updated","resource":"r","clientState":""}`,
		`{"id":"2","subscriptionId":"s","changeType":"updated","resource":"r","clientState":""}`,
		`{"id":"3","subscriptionId":"s","changeType":"updated","resource":"r","clientState":""}`,
		`{"id":"2","subscriptionId":"s","changeType":"updated","resource":"r","clientState":""}`},
	{"quickbooks", `[%s]`,
		`{"id":"1","source":"a","type":"qbo.customer.updated.v1","intuitentityid":"5"}`,
		`{"id":"2","source":"a","type":"qbo.customer.updated.v1","intuitentityid":"5"}`,
		`{"id":"1","source":"b","type":"qbo.customer.updated.v1","intuitentityid":"5"}`, // a CloudEvent is known by both
		`{"id":"2","source":"a","type":"qbo.customer.updated.v1","intuitentityid":"5"}`},
	{"quickbooks", `{"eventNotifications":[{"realmId":"1","dataChangeEvent":{"entities":[%s]}}]}`,
		`{"name":"Customer","id":"5","operation":"Create","lastUpdated":"2026-02-03T04:05:06Z"}`,
		`{"name":"Customer","id":"5","operation":"Update","lastUpdated":"2026-02-03T04:05:06Z"}`,
		`{"name":"Customer","id":"5","operation":"Update","lastUpdated":"2026-02-03T04:05:07Z"}`,
		`{"name":"Customer","id":"5","operation":"Update","lastUpdated":"2026-02-03T04:05:06Z"}`},
	{"sendgrid", "[%s]\r\n",
		`{"sg_event_id":"e1","sg_message_id":"m","event":"delivered","timestamp":1}`,
		`{"sg_event_id":"e2","sg_message_id":"m","event":"open","timestamp":2}`,
		`{"sg_event_id":"e3","sg_message_id":"m","event":"open","timestamp":2}`,
		`{"sg_event_id":"e2","sg_message_id":"m","event":"open","timestamp":2}`},
	{"twilio-events", `[%s]`,
		`{"id":"EZ1","source":"/a","type":"com.twilio.messaging.message.sent","data":{"messageSid":"SM1"}}`,
		`{"id":"EZ2","source":"/a","type":"com.twilio.messaging.message.delivered","data":{"messageSid":"SM1"}}`,
		`{"id":"EZ3","source":"/a","type":"com.twilio.messaging.message.read","data":{"messageSid":"SM1"}}`,
		`{"id":"EZ2","source":"/a","type":"com.twilio.messaging.message.delivered","data":{"messageSid":"SM1"}}`},
	{"whatsapp", `{"object":"o","entry":[{"id":"1","changes":[{"field":"messages","value":{"messages":[%s]}}]}]}`,
		`{"id":"wamid.1","timestamp":"1","type":"text","text":{"body":"a"}}`,
		`{"id":"wamid.2","timestamp":"1","type":"text","text":{"body":"a"}}`,
		`{"id":"wamid.3","timestamp":"1","type":"text","text":{"body":"a"}}`,
		`{"id":"wamid.2","timestamp":"1","type":"text","text":{"body":"a"}}`},
	{"whatsapp", `{"object":"o","entry":[{"id":"1","changes":[{"field":"messages","value":{"statuses":[%s]}}]}]}`,
		`{"id":"wamid.1","status":"sent","timestamp":"1"}`,
		`{"id":"wamid.1","status":"delivered","timestamp":"1"}`,
		`{"id":"wamid.1","status":"read","timestamp":"1"}`,
		`{"id":"wamid.1","status":"delivered","timestamp":"1"}`},
	{"x", `{"for_user_id":"1","follow_events":[%s]}`,
		`{"type":"follow","created_timestamp":"1","source":{"id":"5"},"target":{"id":"1"}}`,
		`{"type":"follow","created_timestamp":"2","source":{"id":"5"},"target":{"id":"1"}}`,
		`{"type":"unfollow","created_timestamp":"2","source":{"id":"5"},"target":{"id":"1"}}`,
		`{"type":"follow","created_timestamp":"2","source":{"id":"5"},"target":{"id":"1"}}`},
	{"xero", `{"events":[%s],"firstEventSequence":1,"lastEventSequence":2}`,
		`{"tenantId":"t","eventCategory":"INVOICE","resourceId":"r","eventType":"CREATE","eventDateUtc":"2026-02-03T04:05:06.100"}`,
		`{"tenantId":"t","eventCategory":"INVOICE","resourceId":"r","eventType":"UPDATE","eventDateUtc":"2026-02-03T04:05:06.100"}`,
		`{"tenantId":"t","eventCategory":"INVOICE","resourceId":"r","eventType":"UPDATE","eventDateUtc":"2026-02-03T04:05:07.100"}`,
		`{"tenantId":"t","eventCategory":"INVOICE","resourceId":"r","eventType":"UPDATE","eventDateUtc":"2026-02-03T04:05:06.100"}`},
}

// TestBatchesAreTakenApart sends two events in one request, and the second again beside a third: three
// keys, of which the second comes twice, with the same content.
func TestBatchesAreTakenApart(t *testing.T) {
	for _, c := range batchCases {
		t.Run(c.provider, func(t *testing.T) {
			w := newBatchWorld(t, c.provider)
			request := w.events(t, c.wrap, c.first, c.second)
			retry := w.events(t, c.wrap, c.again, c.third)
			if len(request) != 2 || len(retry) != 2 {
				t.Fatalf("%d and %d events, want two of two", len(request), len(retry))
			}
			first, second, again, third := request[0], request[1], retry[0], retry[1]
			keys := map[string]bool{first.Key: true, second.Key: true, third.Key: true}
			if len(keys) != 3 || keys[""] {
				t.Errorf("three events have the keys %q, %q and %q", first.Key, second.Key, third.Key)
			}
			if again.Key != second.Key || !bytes.Equal(again.Digest, second.Digest) {
				t.Errorf("the copy has the key %q and not %q, or counts as a conflict", again.Key, second.Key)
			}
		})
	}
}

// TestEmptyBatchesAreAcknowledged: they check the connection. There is nothing to store or to reject.
func TestEmptyBatchesAreAcknowledged(t *testing.T) {
	for _, c := range batchCases {
		if s, _ := Lookup(c.provider); s.Verify[0].PerItem {
			continue // items carry the proof: without items there is none
		}
		if events := newBatchWorld(t, c.provider).events(t, c.wrap); len(events) != 0 {
			t.Errorf("%s: %d events", c.provider, len(events))
		}
	}
}

// TestBatchesOfOneForgeryAreRejected: where items carry the proof, one that has none condemns the
// request, and so does the lack of items.
func TestBatchesOfOneForgeryAreRejected(t *testing.T) {
	for _, c := range batchCases {
		if s, _ := Lookup(c.provider); !s.Verify[0].PerItem {
			continue
		}
		w := newBatchWorld(t, c.provider)
		genuine := w.item(t, c.wrap, c.first)
		for _, items := range []string{"", genuine + "," + c.second, c.second + "," + genuine} {
			reason(t, w.Provider, post(strings.Replace(c.wrap, "%s", items, 1)))
		}
	}
}

// TestAuth0LinesArraysAndObjects: the three forms of one stream are the same events.
func TestAuth0LinesArraysAndObjects(t *testing.T) {
	const a, b = `{"log_id":"1","data":{"type":"s"}}`, `{"log_id":"2","data":{"type":"f"}}`
	p := fake(t, "auth0")
	for body, want := range map[string][]string{
		a + "\n" + b + "\n":     {"1", "2"},
		"[" + a + "," + b + "]": {"1", "2"},
		b:                       {"2"},
	} {
		events := all(t, p, signed(t, p, body))
		if len(events) != len(want) {
			t.Fatalf("%s: %d events", body, len(events))
		}
		for i, ev := range events {
			if ev.Key != want[i] {
				t.Errorf("%s: key %q, want %q", body, ev.Key, want[i])
			}
		}
	}
}

// TestWhatsAppMessageAndItsStatuses: they share the message's id. What is neither of them has none.
func TestWhatsAppMessageAndItsStatuses(t *testing.T) {
	p := fake(t, "whatsapp")
	events := all(t, p, signed(t, p, `{"object":"o","entry":[{"id":"1","changes":[
		{"field":"messages","value":{"messages":[{"id":"wamid.1","type":"text","timestamp":"1"}],
			"statuses":[{"id":"wamid.1","status":"sent","timestamp":"1"},{"id":"wamid.1","status":"read","timestamp":"1"}]}},
		{"field":"account_update","value":{"event":"VERIFIED_ACCOUNT"}}]}]}`))
	want := []string{"messages.text", "messages.sent", "messages.read", "account_update"}
	keys := map[string]bool{}
	for i, ev := range events {
		keys[ev.Key] = true
		if ev.Type != want[i] || (ev.Key == "") != (i == 3) {
			t.Errorf("event %d is a %s with the key %q, want a %s", i, ev.Type, ev.Key, want[i])
		}
	}
	if len(events) != 4 || len(keys) != 4 {
		t.Errorf("%d events under %d keys", len(events), len(keys))
	}
}

// batchWorld is a provider of batches whose requests can be signed.
type batchWorld struct {
	*spec.Provider
	sign func(t *testing.T, req *hookonce.Request)
}

func newBatchWorld(t *testing.T, name string) batchWorld {
	t.Helper()
	if name == "sendgrid" {
		return sendGridWorld(t)
	}
	p := fake(t, name)
	return batchWorld{p, func(t *testing.T, req *hookonce.Request) {
		if name == "twilio-events" {
			sum := sha256.Sum256(req.Body)
			req.URL += "?bodySHA256=" + hex.EncodeToString(sum[:])
		}
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
	}}
}

// sendGridWorld has a key pair of its own: only SendGrid can sign with SendGrid's.
func sendGridWorld(t *testing.T) batchWorld {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := x509.MarshalPKIXPublicKey(&key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	return batchWorld{SendGrid(base64.StdEncoding.EncodeToString(public)), func(t *testing.T, req *hookonce.Request) {
		sent := strconv.FormatInt(now.Unix(), 10)
		sum := sha256.Sum256(append([]byte(sent), req.Body...))
		sig, err := ecdsa.SignASN1(rand.Reader, key, sum[:])
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Twilio-Email-Event-Webhook-Timestamp", sent)
		req.Header.Set("X-Twilio-Email-Event-Webhook-Signature", base64.StdEncoding.EncodeToString(sig))
	}}
}

// events opens a signed request with those items.
func (w batchWorld) events(t *testing.T, wrap string, items ...string) []hookonce.Event {
	t.Helper()
	perItem := w.Spec().Verify[0].PerItem
	if perItem {
		for i := range items {
			items[i] = w.item(t, wrap, items[i])
		}
	}
	req := post(strings.Replace(wrap, "%s", strings.Join(items, ","), 1))
	if !perItem {
		w.sign(t, req)
	}
	return all(t, w.Provider, req)
}

// item returns an item with the proof that it carries.
func (w batchWorld) item(t *testing.T, wrap, item string) string {
	t.Helper()
	req := post(strings.Replace(wrap, "%s", item, 1))
	w.sign(t, req)
	before, after, _ := strings.Cut(wrap, "%s")
	return strings.TrimSuffix(strings.TrimPrefix(string(req.Body), before), after)
}

// post is a request that nobody has signed yet.
func post(body string) *hookonce.Request {
	return &hookonce.Request{Method: "POST", URL: "https://shop.example/in", Header: http.Header{}, Body: []byte(body), Now: now}
}
