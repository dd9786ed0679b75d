package provider

import (
	"bytes"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
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
		{"postmark", "MessageID is that of the message",
			delivery{`{"RecordType":"Delivery","MessageID":"m","DeliveredAt":"2026-02-03T04:05:06Z"}`, nil},
			delivery{`{"RecordType":"Open","MessageID":"m","ReceivedAt":"2026-02-03T04:05:06Z"}`, nil}},
		{"postmark", "RecordType and MessageID, of a message that is opened twice",
			delivery{`{"RecordType":"Open","MessageID":"m","ReceivedAt":"2026-02-03T04:05:06Z"}`, nil},
			delivery{`{"RecordType":"Open","MessageID":"m","ReceivedAt":"2026-02-03T04:05:07Z"}`, nil}},
		{"mailgun", "the id, which is unique within a day only",
			delivery{`{"signature":{},"event-data":{"id":"a","timestamp":1770091506.1,"event":"opened"}}`, nil},
			delivery{`{"signature":{},"event-data":{"id":"a","timestamp":1770191506.1,"event":"opened"}}`, nil}},
		{"pagerduty", "the incident",
			delivery{`{"event":{"id":"e1","event_type":"incident.triggered","data":{"id":"i"}}}`, nil},
			delivery{`{"event":{"id":"e2","event_type":"incident.resolved","data":{"id":"i"}}}`, nil}},
		{"docusign", "the envelope",
			delivery{`{"event":"envelope-sent","generatedDateTime":"2026-02-03T04:05:06Z","data":{"envelopeId":"v"}}`, nil},
			delivery{`{"event":"envelope-completed","generatedDateTime":"2026-02-03T04:05:06Z","data":{"envelopeId":"v"}}`, nil}},
		{"recurly", "the id in the body is that of the resource",
			delivery{`{"id":"r","object_type":"charge"}`, []string{"Recurly-Notification-Id", "n1"}},
			delivery{`{"id":"r","object_type":"charge"}`, []string{"Recurly-Notification-Id", "n2"}}},
		{"sanity", "the document",
			delivery{`{"_id":"d"}`, []string{"Sanity-Document-Id", "d", "Idempotency-Key", "k1"}},
			delivery{`{"_id":"d"}`, []string{"Sanity-Document-Id", "d", "Idempotency-Key", "k2"}}},
		{"circleci", "the workflow",
			delivery{`{"id":"1","type":"job-completed","workflow":{"id":"w"}}`, nil},
			delivery{`{"id":"2","type":"workflow-completed","workflow":{"id":"w"}}`, nil}},
		{"adyen-platform", "the transfer",
			delivery{`{"type":"balancePlatform.transfer.updated","data":{"id":"t","sequenceNumber":1}}`, nil},
			delivery{`{"type":"balancePlatform.transfer.updated","data":{"id":"t","sequenceNumber":2}}`, nil}},
		{"github", "the content, in two deliveries of a ping",
			delivery{`{"zen":"z"}`, []string{"X-GitHub-Event", "ping", "X-GitHub-Delivery", "g1"}},
			delivery{`{"zen":"z"}`, []string{"X-GitHub-Event", "ping", "X-GitHub-Delivery", "g2"}}},
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
		{"chargebee", "how its webhooks fared",
			delivery{`{"id":"ev_1","event_type":"t","occurred_at":1,"content":{},"webhook_status":"scheduled","webhooks":[]}`, nil},
			delivery{`{"id":"ev_1","event_type":"t","occurred_at":1,"content":{},"webhook_status":"re_scheduled","webhooks":[{"id":"w"}]}`, nil}},
		{"mailgun", "what it signs",
			delivery{`{"signature":{"token":"a"},"event-data":{"id":"a","timestamp":1770091506.1,"event":"opened"}}`, nil},
			delivery{`{"signature":{"token":"b"},"event-data":{"id":"a","timestamp":1770091506.1,"event":"opened"}}`, nil}},
		{"docusign", "retryCount",
			delivery{`{"event":"envelope-sent","generatedDateTime":"x","retryCount":0,"data":{"envelopeId":"v"}}`, nil},
			delivery{`{"event":"envelope-sent","generatedDateTime":"x","retryCount":1,"data":{"envelopeId":"v"}}`, nil}},
		{"trello", "how the model has fared since",
			delivery{`{"action":{"id":"a","type":"updateCard"},"model":{"id":"board","name":"old"}}`, nil},
			delivery{`{"action":{"id":"a","type":"updateCard"},"model":{"id":"board","name":"new"}}`, nil}},
		{"slack", "X-Slack-Retry-Num",
			delivery{`{"type":"event_callback","event_id":"Ev1"}`, nil},
			delivery{`{"type":"event_callback","event_id":"Ev1"}`, []string{"X-Slack-Retry-Num", "1", "X-Slack-Retry-Reason", "http_timeout"}}},
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

// TestCorrectionsPass: Adyen sends an event again with what it has learned since. The first as the one
// that counts keeps stale data; the content as the whole key lets plain copies through.
func TestCorrectionsPass(t *testing.T) {
	p := fake(t, "adyen")
	open := func(date, why string) hookonce.Event {
		return one(t, p, signed(t, p, `{"notificationItems":[{"NotificationRequestItem":{"additionalData":{},
			"pspReference":"P","eventCode":"AUTHORISATION","success":"true","eventDate":"`+date+`","reason":"`+why+`"}}]}`))
	}
	first, again := open("2026-02-03T04:05:06+01:00", "a"), open("2026-02-03T04:05:06+01:00", "a")
	later := open("2026-02-03T04:05:09+01:00", "b")
	if first.Key == "" || again.Key != first.Key {
		t.Errorf("a plain copy has the key %q and not %q", again.Key, first.Key)
	}
	if later.Key == first.Key || !later.Time.After(first.Time) || later.Resource != first.Resource {
		t.Errorf("the later edition is dropped, or cannot be told from the first:\n%+v\n%+v", first, later)
	}
}
