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
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// delivery is a request by its body and its headers, names and texts in turn.
type delivery struct {
	body    string
	headers []string
}

// TestTwoEventsAreTwo sends two events that share what a naive rule would take for the key.
func TestTwoEventsAreTwo(t *testing.T) {
	testskip.Race(t)
	for _, c := range []struct {
		provider, shared string
		a, b             delivery
	}{
		{"linear", "webhookId is that of the subscription",
			delivery{`{"type":"Issue","action":"create","webhookId":"w1","webhookTimestamp":1}`, []string{"Linear-Delivery", "d1"}},
			delivery{`{"type":"Issue","action":"update","webhookId":"w1","webhookTimestamp":1}`, []string{"Linear-Delivery", "d2"}}},
		{"zendesk", "the webhook, and an id in the body of a trigger, which is the ticket's",
			delivery{`{"id":1001}`, []string{"X-Zendesk-Webhook-Id", "w1", "X-Zendesk-Webhook-Invocation-Id", "i1"}},
			delivery{`{"id":1001}`, []string{"X-Zendesk-Webhook-Id", "w1", "X-Zendesk-Webhook-Invocation-Id", "i2"}}},
		{"notion", "the page",
			delivery{`{"id":"1","type":"page.created","entity":{"id":"p"}}`, nil},
			delivery{`{"id":"2","type":"page.deleted","entity":{"id":"p"}}`, nil}},
		{"clickup", "the history item, in two events that one change makes",
			delivery{`{"webhook_id":"w","event":"taskCreated","task_id":"t","history_items":[{"id":"h"}]}`, nil},
			delivery{`{"webhook_id":"w","event":"taskStatusUpdated","task_id":"t","history_items":[{"id":"h"}]}`, nil}},
		{"heroku", "the release",
			delivery{`{"resource":"release","action":"create","data":{"id":"r"},"webhook_metadata":{"event":{"id":"1"}}}`, nil},
			delivery{`{"resource":"release","action":"update","data":{"id":"r"},"webhook_metadata":{"event":{"id":"2"}}}`, nil}},
		{"gitea", "the content, in two deliveries of a test",
			delivery{`{"ref":"refs/heads/main"}`, []string{"X-Gitea-Event", "push", "X-Gitea-Delivery", "d1"}},
			delivery{`{"ref":"refs/heads/main"}`, []string{"X-Gitea-Event", "push", "X-Gitea-Delivery", "d2"}}},
		{"webflow", "the item",
			delivery{`{"triggerType":"collection_item_changed","payload":{"id":"i","lastUpdated":"2026-02-03T04:05:06Z"}}`, nil},
			delivery{`{"triggerType":"collection_item_changed","payload":{"id":"i","lastUpdated":"2026-02-03T04:05:07Z"}}`, nil}},
		{"webflow", "item and time, of an item that is published when it is changed",
			delivery{`{"triggerType":"collection_item_changed","payload":{"id":"i","lastUpdated":"2026-02-03T04:05:06Z"}}`, nil},
			delivery{`{"triggerType":"collection_item_published","payload":{"id":"i","lastUpdated":"2026-02-03T04:05:06Z"}}`, nil}},
		{"azure-devops", "the number of the notification, of two subscriptions",
			delivery{`{"subscriptionId":"s1","notificationId":1,"id":"e1","eventType":"git.push"}`, nil},
			delivery{`{"subscriptionId":"s2","notificationId":1,"id":"e2","eventType":"git.push"}`, nil}},
		{"launchdarkly", "the flag",
			delivery{`{"_id":"1","kind":"flag","accesses":[{"action":"updateOn","resource":"f"}]}`, nil},
			delivery{`{"_id":"2","kind":"flag","accesses":[{"action":"updateOn","resource":"f"}]}`, nil}},
		{"todoist", "the task",
			delivery{`{"event_name":"item:updated","event_data":{"id":"t"}}`, []string{"X-Todoist-Delivery-ID", "d1"}},
			delivery{`{"event_name":"item:updated","event_data":{"id":"t"}}`, []string{"X-Todoist-Delivery-ID", "d2"}}},
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
		{"cal-com", "the booking",
			delivery{`{"triggerEvent":"BOOKING_CREATED","createdAt":"2026-02-03T04:05:06.1Z","payload":{"uid":"b"}}`, nil},
			delivery{`{"triggerEvent":"BOOKING_CANCELLED","createdAt":"2026-02-03T04:05:06.1Z","payload":{"uid":"b"}}`, nil}},
		{"logto", "user and moment",
			delivery{`{"hookId":"h","event":"User.Created","createdAt":"2026-02-03T04:05:06.1Z","data":{"id":"u"}}`, nil},
			delivery{`{"hookId":"h","event":"User.Data.Updated","createdAt":"2026-02-03T04:05:06.1Z","data":{"id":"u"}}`, nil}},
		{"discourse", "the number of the event, of two sites",
			delivery{`{"ping":"OK"}`, []string{"X-Discourse-Instance", "https://a.example", "X-Discourse-Event-Id", "1"}},
			delivery{`{"ping":"OK"}`, []string{"X-Discourse-Instance", "https://b.example", "X-Discourse-Event-Id", "1"}}},
		{"discourse", "the content, of a topic that is closed, opened and closed",
			delivery{`{"topic":{"id":1,"closed":true}}`, []string{"X-Discourse-Instance", "https://a.example", "X-Discourse-Event-Id", "1"}},
			delivery{`{"topic":{"id":1,"closed":true}}`, []string{"X-Discourse-Instance", "https://a.example", "X-Discourse-Event-Id", "3"}}},
		{"sonarqube", "the revision",
			delivery{`{"taskId":"1","revision":"r","project":{"key":"p"}}`, nil},
			delivery{`{"taskId":"2","revision":"r","project":{"key":"p"}}`, nil}},
		{"hcp-terraform", "the run",
			delivery{`{"notification_configuration_id":"n","run_id":"r","notifications":[{"trigger":"run:planning","run_status":"planning","run_updated_at":"2026-02-03T04:05:06Z"}]}`, nil},
			delivery{`{"notification_configuration_id":"n","run_id":"r","notifications":[{"trigger":"run:completed","run_status":"applied","run_updated_at":"2026-02-03T04:05:06Z"}]}`, nil}},
		{"hcp-terraform", "the workspace, of two health assessments",
			delivery{`{"notification_configuration_id":"n","trigger":"assessment:drifted","details":{"workspace_id":"w","new_assessment_result":{"id":"1"}}}`, nil},
			delivery{`{"notification_configuration_id":"n","trigger":"assessment:drifted","details":{"workspace_id":"w","new_assessment_result":{"id":"2"}}}`, nil}},
		{"plane", "object and moment, of two fields that change together",
			delivery{`{"event":"issue","action":"update","webhook_id":"w","data":{"id":"i","updated_at":"x"},"activity":{"field":"state"}}`, nil},
			delivery{`{"event":"issue","action":"update","webhook_id":"w","data":{"id":"i","updated_at":"x"},"activity":{"field":"priority"}}`, nil}},
		{"outline", "the document",
			delivery{`{"id":"1","event":"documents.update","payload":{"id":"d"}}`, nil},
			delivery{`{"id":"2","event":"documents.update","payload":{"id":"d"}}`, nil}},
		{"cloudflare", "the correlation id, of an alert that begins and ends",
			delivery{`{"policy_id":"p","alert_correlation_id":"c","alert_event":"ALERT_STATE_EVENT_START","ts":1,"data":{"n":1}}`, nil},
			delivery{`{"policy_id":"p","alert_correlation_id":"c","alert_event":"ALERT_STATE_EVENT_END","ts":1,"data":{"n":1}}`, nil}},
		{"figma", "the file",
			delivery{`{"webhook_id":"w","event_type":"FILE_COMMENT","timestamp":"x","file_key":"f","comment_id":"1","passcode":""}`, nil},
			delivery{`{"webhook_id":"w","event_type":"FILE_COMMENT","timestamp":"x","file_key":"f","comment_id":"2","passcode":""}`, nil}},
		{"segment", "the user",
			delivery{`{"type":"track","messageId":"1","userId":"u","event":"e"}`, nil},
			delivery{`{"type":"track","messageId":"2","userId":"u","event":"e"}`, nil}},
		{"typeform", "the token of the submission",
			delivery{`{"event_id":"e1","event_type":"form_response_partial","form_response":{"token":"t"}}`, nil},
			delivery{`{"event_id":"e2","event_type":"form_response","form_response":{"token":"t"}}`, nil}},
		{"datadog", "the event, which is updated, and what joins those of one alert",
			delivery{`{"id":"1","last_updated":"1","alert_cycle_key":"c","alert_transition":"Triggered"}`, nil},
			delivery{`{"id":"1","last_updated":"2","alert_cycle_key":"c","alert_transition":"Recovered"}`, nil}},
		{"pandadoc", "the document",
			delivery{`[{"event":"document_state_changed","data":{"id":"d"}}]`, []string{"X-PandaDoc-Webhook-Event-Id", "1"}},
			delivery{`[{"event":"document_state_changed","data":{"id":"d"}}]`, []string{"X-PandaDoc-Webhook-Event-Id", "2"}}},
		{"greenhouse", "the application",
			delivery{`{"action":"hire_candidate","payload":{"application":{"id":1}}}`, []string{"Greenhouse-Event-ID", "1"}},
			delivery{`{"action":"unhire_candidate","payload":{"application":{"id":1}}}`, []string{"Greenhouse-Event-ID", "2"}}},
		{"pusher", "the events, of another moment",
			delivery{`{"time_ms":1,"events":[{"name":"channel_occupied","channel":"c"}]}`, nil},
			delivery{`{"time_ms":2,"events":[{"name":"channel_occupied","channel":"c"}]}`, nil}},
		{"hasura", "the row",
			delivery{`{"id":"1","trigger":{"name":"t"},"event":{"op":"UPDATE","data":{"new":{"id":7}}}}`, nil},
			delivery{`{"id":"2","trigger":{"name":"t"},"event":{"op":"UPDATE","data":{"new":{"id":7}}}}`, nil}},
		{"snyk", "the project",
			delivery{`{"project":{"id":"p"}}`, []string{"X-Snyk-Transport-ID", "1"}},
			delivery{`{"project":{"id":"p"}}`, []string{"X-Snyk-Transport-ID", "2"}}},
		{"monday", "the trigger, of two columns that change at once",
			delivery{`{"event":{"subscriptionId":1,"triggerUuid":"u","type":"update_column_value","pulseId":2,"columnId":"a"}}`, nil},
			delivery{`{"event":{"subscriptionId":1,"triggerUuid":"u","type":"update_column_value","pulseId":2,"columnId":"b"}}`, nil}},
		{"razorpay", "the payment",
			delivery{`{"event":"payment.authorized","payload":{"payment":{"entity":{"id":"pay_1"}}}}`, []string{"X-Razorpay-Event-Id", "e1"}},
			delivery{`{"event":"payment.captured","payload":{"payment":{"entity":{"id":"pay_1"}}}}`, []string{"X-Razorpay-Event-Id", "e2"}}},
		{"shopify", "the event id, in two topics",
			delivery{`{"id":1}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "orders/create", "X-Shopify-Event-Id", "e1"}},
			delivery{`{"id":1}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "orders/paid", "X-Shopify-Event-Id", "e1"}}},
		{"shopify", "topic and event id, of two objects that one action of the merchant changes",
			delivery{`{"id":1}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "products/update", "X-Shopify-Event-Id", "e1", "X-Shopify-Webhook-Id", "w1"}},
			delivery{`{"id":2}`, []string{"X-Shopify-Shop-Domain", "s", "X-Shopify-Topic", "products/update", "X-Shopify-Event-Id", "e1", "X-Shopify-Webhook-Id", "w2"}}},
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
		{"zendesk", "the invocation, of an event that is in the body",
			delivery{`{"id":"e1","zendesk_event_version":"2022-11-06"}`, []string{"X-Zendesk-Webhook-Invocation-Id", "i1"}},
			delivery{`{"id":"e1","zendesk_event_version":"2022-11-06"}`, []string{"X-Zendesk-Webhook-Invocation-Id", "i2"}}},
		{"notion", "what may be that of the attempt",
			delivery{`{"id":"1","type":"page.created","attempt_number":1,"entity":{"id":"p"}}`, nil},
			delivery{`{"id":"1","type":"page.created","attempt_number":2,"entity":{"id":"p"}}`, nil}},
		{"heroku", "the attempt, published_at and updated_at",
			delivery{`{"id":"1","action":"create","data":{},"published_at":null,"updated_at":"x","webhook_metadata":{"attempt":{"id":"a1"},"event":{"id":"1"}}}`, nil},
			delivery{`{"id":"1","action":"create","data":{},"published_at":"y","updated_at":"y","webhook_metadata":{"attempt":{"id":"a2"},"event":{"id":"1"}}}`, nil}},
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
		{"plane", "X-Plane-Delivery",
			delivery{`{"event":"issue","webhook_id":"w","data":{"id":"i","updated_at":"x"}}`, []string{"X-Plane-Delivery", "1"}},
			delivery{`{"event":"issue","webhook_id":"w","data":{"id":"i","updated_at":"x"}}`, []string{"X-Plane-Delivery", "2"}}},
		{"segment", "sentAt and receivedAt",
			delivery{`{"type":"track","messageId":"1","event":"e","sentAt":"x","receivedAt":"x"}`, nil},
			delivery{`{"type":"track","messageId":"1","event":"e","sentAt":"y","receivedAt":"y"}`, nil}},
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
}

// TestARetryMayBeSignedOnce: nobody says that these sign their retries anew, and Linear is said not to. The last retry is taken
// although the sender's clock is behind, and nothing is that is older.
func TestARetryMayBeSignedOnce(t *testing.T) {
	for name, clocks := range map[string]time.Duration{
		"calendly": 3 * minute, "elevenlabs": 30 * minute, "linear": minute, "recurly": 5 * minute, "webflow": 5 * minute, "workos": 3 * minute,
	} {
		p := fake(t, name)
		req := sent(t, p, "101", "")
		first := one(t, p, req)
		oldest := p.Spec().Limits.Retry + clocks
		req.Now = now.Add(oldest)
		if last := one(t, p, req); first.Key == "" || last.Key != first.Key {
			t.Errorf("%s: keys %q and %q", name, first.Key, last.Key)
		}
		req.Now = req.Now.Add(time.Second)
		if why := reason(t, p, req); why.Reason != hookonce.ReasonTimestampOld {
			t.Errorf("%s, signed %v ago: %v", name, oldest+time.Second, why)
		}
		early := sent(t, p, "101", "")
		early.Now = now.Add(-clocks - time.Second)
		if why := reason(t, p, early); why.Reason != hookonce.ReasonTimestampFuture {
			t.Errorf("%s, signed %v ahead: %v", name, clocks+time.Second, why)
		}
	}
}

// TestNoRetryOfFintocIsTooOld: it retries 17 times, and nobody knows for how long.
func TestNoRetryOfFintocIsTooOld(t *testing.T) {
	p := fake(t, "fintoc")
	req := sent(t, p, "101", "")
	first := one(t, p, req)
	req.Now = now.Add(30 * day)
	if last := one(t, p, req); last.Key != first.Key {
		t.Errorf("keys %q and %q", first.Key, last.Key)
	}
}

// TestEventsWithoutAnIDPass: an empty id is no key that all of them share.
func TestEventsWithoutAnIDPass(t *testing.T) {
	for name, body := range map[string]string{
		"slack": `{"type":"event_callback"}`, "gitlab": `{"object_kind":"push"}`, "linear": `{"webhookId":"w1","webhookTimestamp":1}`,
		"clickup": `{"webhook_id":"w","event":"taskDeleted","task_id":"t"}`, "todoist": `{}`, "notion": `{"entity":{"id":"p"}}`, "zendesk": `{"id":1001}`,
		"webflow": `{"triggerType":"ecomm_inventory_changed","payload":{"id":"i","quantity":5}}`, "buildkite": `{"event":"build.running","build":{"id":"b"}}`,
		"bitbucket": `{}`, "jira": `{}`, "sentry": `{}`, "razorpay": `{}`, "intercom": `{"id":""}`, "mollie": `{"id":null}`,
		"plane": `{"event":"issue","action":"delete","webhook_id":"w","data":{"id":"i"}}`, "sonarqube": `{"project":{"key":"p"}}`, "tally": `{"data":{"formId":"f"}}`,
		"cloudflare": `{"text":"Hello World!"}`, "figma": `{"event_type":"LIBRARY_PUBLISH","webhook_id":"w","timestamp":"x","file_key":"f","passcode":""}`,
		"grafana": `{"status":"firing","groupKey":"g"}`, "ghost": `{"post":{"current":{"id":"p"}}}`, "segment": `{"type":"delete","userId":"u"}`,
		"hcp-terraform": `{"notification_configuration_id":"n","notifications":[{"trigger":"verification"}]}`,
		"easypost":      `{}`, "workos": `{}`, "typeform": `{"event_id":""}`, "mux": `{}`, "coinbase-commerce": `{"id":1,"event":{}}`,
		"pandadoc": `[{"event":"document_state_changed","data":{"id":"d"}}]`, "greenhouse": `{"action":"ping"}`, "snyk": `{"project":{"id":"p"}}`,
		"hasura": `{"event":{"data":{"new":{"id":1}}}}`, "monday": `{"event":{"subscriptionId":1,"pulseId":2}}`, "datadog": `{"title":"t"}`, "pusher": `{"events":[{"name":"n"}]}`,
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

// distinct opens every body and expects a key of its own for each; the same body again has the same.
func distinct(t *testing.T, open func(body string) hookonce.Event, bodies ...string) {
	t.Helper()
	seen := map[string]string{}
	for _, body := range bodies {
		ev := open(body)
		if before, ok := seen[ev.Key]; ok || ev.Key == "" {
			t.Errorf("%s\nhas the key %q of\n%s", body, ev.Key, before)
		}
		if again := open(body); again.Key != ev.Key {
			t.Errorf("%s: the copy has the key %q and not %q", body, again.Key, ev.Key)
		}
		seen[ev.Key] = body
	}
}

// Two subscribed users get the same post, and both copies are genuine; a deletion has the post's id.
func TestXActivities(t *testing.T) {
	p := fake(t, "x")
	open := func(body string) hookonce.Event { return one(t, p, signed(t, p, body)) }
	distinct(t, open,
		`{"for_user_id":"1","tweet_create_events":[{"id_str":"9","text":"hi"}]}`,
		`{"for_user_id":"2","tweet_create_events":[{"id_str":"9","text":"hi"}]}`,
		`{"for_user_id":"1","tweet_delete_events":[{"status":{"id":"9","user_id":"1"},"timestamp_ms":"1770091506000"}]}`,
		`{"for_user_id":"1","favorite_events":[{"id":"a1","favorited_status":{"id_str":"9"},"timestamp_ms":1770091506000}]}`,
		`{"for_user_id":"1","direct_message_events":[{"type":"message_create","id":"9","created_timestamp":"1770091506000"}]}`,
		`{"for_user_id":"1","follow_events":[{"type":"follow","created_timestamp":"1770091506000","source":{"id":"5"},"target":{"id":"1"}}]}`,
		`{"for_user_id":"1","follow_events":[{"type":"follow","created_timestamp":"1770091507000","source":{"id":"5"},"target":{"id":"1"}}]}`,
	)
	for _, body := range []string{
		`{"tweet_create_events":[{"id_str":"9"}]}`, // nobody's copy
		`{"data":{"event_uuid":"1","event_type":"post.create","filter":{"user_id":"1"},"payload":{}}}`,
		`{"for_user_id":"1","direct_message_indicate_typing_events":[{"created_timestamp":"1","sender_id":"5"}]}`,
	} {
		if ev := open(body); ev.Key != "" {
			t.Errorf("%s has the key %q", body, ev.Key)
		}
	}
	if events := all(t, p, signed(t, p, `{"for_user_id":"1","tweet_create_events":[{"id_str":"8"},{"id_str":"9"}]}`)); len(events) != 2 {
		t.Errorf("%d events", len(events))
	}
}

// The body lists accounts only: the next change of the same accounts looks the same.
func TestDropboxIsNeverACopy(t *testing.T) {
	p := fake(t, "dropbox")
	for range 2 {
		if ev := one(t, p, signed(t, p, `{"list_folder":{"accounts":["dbid:1"]}}`)); ev.Key != "" {
			t.Errorf("key %q", ev.Key)
		}
	}
}

func TestTrelloActionOfTwoModels(t *testing.T) {
	p := fake(t, "trello")
	open := func(body string) hookonce.Event { return one(t, p, signed(t, p, body)) }
	distinct(t, open,
		`{"action":{"id":"a","type":"updateCard"},"model":{"id":"board"}}`,
		`{"action":{"id":"a","type":"updateCard"},"model":{"id":"list"}}`,
		`{"action":{"id":"b","type":"updateCard"},"model":{"id":"board"}}`,
	)
	req := signed(t, p, `{"action":{"id":"a"},"model":{"id":"board"}}`)
	if why := reason(t, Trello("https://shop.example/other", secretFor(p.Spec())), req); why.Reason != hookonce.ReasonSignatureMismatch {
		t.Errorf("another URL: %v", why)
	}
}

func TestZoomEventsOfOneMeeting(t *testing.T) {
	p := fake(t, "zoom")
	open := func(body string) hookonce.Event { return one(t, p, signed(t, p, body)) }
	distinct(t, open,
		`{"event":"meeting.started","event_ts":1770091506000,"payload":{"object":{"id":"1"}}}`,
		`{"event":"meeting.ended","event_ts":1770091506000,"payload":{"object":{"id":"1"}}}`,
		`{"event":"meeting.started","event_ts":1770091506001,"payload":{"object":{"id":"1"}}}`,
		`{"event":"meeting.started","event_ts":1770091506000,"payload":{"object":{"id":"2"}}}`,
	)
}

// discordRequest signs a body as Discord does.
func discordRequest(key ed25519.PrivateKey, body string) *hookonce.Request {
	const sent = "1770091506"
	return &hookonce.Request{Method: "POST", Body: []byte(body), Now: now, Header: http.Header{
		"X-Signature-Timestamp": {sent},
		"X-Signature-Ed25519":   {hex.EncodeToString(ed25519.Sign(key, []byte(sent+body)))},
	}}
}

func newEd25519(t testing.TB) (public string, private ed25519.PrivateKey) {
	t.Helper()
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(pub), key
}

func TestDiscordEventsOfOneMoment(t *testing.T) {
	public, key := newEd25519(t)
	p := Discord(public)
	open := func(body string) hookonce.Event { return one(t, p, discordRequest(key, body)) }
	distinct(t, open,
		`{"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2026-02-03T04:05:06.1","data":{"id":"1"}}}`,
		`{"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2026-02-03T04:05:06.1","data":{"id":"2"}}}`,
		`{"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_DELETE","timestamp":"2026-02-03T04:05:06.1","data":{"id":"1"}}}`,
		`{"application_id":"1","type":1,"event":{"type":"ENTITLEMENT_CREATE","timestamp":"2026-02-03T04:05:06.1"}}`,
	)
}

// otherHex returns s with another first digit.
func otherHex(s string) string {
	if s[0] == '0' {
		return "1" + s[1:]
	}
	return "0" + s[1:]
}

// Discord sends wrong signatures on purpose and wants 401.
func TestDiscordProbesGet401(t *testing.T) {
	public, key := newEd25519(t)
	for _, p := range []interface {
		Open(*hookonce.Request) (*hookonce.Verified, error)
		Profile() hookonce.Profile
	}{Discord(public), DiscordInteractions(public)} {
		for _, body := range []string{`{"type":0}`, `{"type":1}`, `{"type":1,"event":{}}`} {
			genuine := discordRequest(key, body)
			if _, err := p.Open(genuine); err != nil {
				t.Fatal(err)
			}
			for _, name := range []string{"X-Signature-Timestamp", "X-Signature-Ed25519"} {
				probe := *genuine
				probe.Header = genuine.Header.Clone()
				probe.Header.Set(name, otherHex(genuine.Header.Get(name)))
				if d, err := p.Open(&probe); err == nil {
					t.Errorf("%s: accepted with another %s: %+v", body, name, d)
				}
				probe.Header.Del(name)
				if d, err := p.Open(&probe); err == nil {
					t.Errorf("%s: accepted without %s: %+v", body, name, d)
				}
			}
		}
		if rejected := p.Profile().Rejected; rejected != http.StatusUnauthorized {
			t.Errorf("a wrong signature is answered with %d", rejected)
		}
	}
}

// The id of the subscription is the same for all of its events.
func TestTwitchEventsOfOneSubscription(t *testing.T) {
	p := fake(t, "twitch")
	body := `{"subscription":{"id":"s","type":"stream.online"},"event":{}}`
	keys := map[string]bool{}
	for _, id := range []string{"m1", "m2"} {
		req := signed(t, p, body, "Twitch-Eventsub-Message-Type", "notification")
		req.Header.Set("Twitch-Eventsub-Message-Id", id)
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		ev := one(t, p, req)
		keys[ev.Key] = true
		if !ev.KeySigned || ev.Type != "stream.online" {
			t.Errorf("got %+v", ev)
		}
	}
	if len(keys) != 2 {
		t.Errorf("keys %v", keys)
	}
	req := signed(t, p, body)
	req.Header.Set("Twitch-Eventsub-Message-Id", "m3")
	reason(t, p, req)
	revoked := signed(t, p, `{"subscription":{"id":"s","status":"authorization_revoked","type":"stream.online"}}`, "Twitch-Eventsub-Message-Type", "revocation")
	if ev := one(t, p, revoked); ev.Key == "" {
		t.Error("a revocation is an event like any other")
	}
}

// The delivery id is made of the webhook and the second.
func TestWooCommerceOrdersOfOneSecond(t *testing.T) {
	p := fake(t, "woocommerce")
	send := func(topic, delivery, body string) hookonce.Event {
		return one(t, p, signed(t, p, body, "X-WC-Webhook-Topic", topic, "X-WC-Webhook-Source", "https://shop.example/", "X-WC-Webhook-Delivery-ID", delivery, "X-WC-Webhook-ID", "1"))
	}
	open := func(body string) hookonce.Event { return send("order.updated", "d", body) }
	distinct(t, open,
		`{"id":1,"status":"processing","date_modified_gmt":"2026-02-03T04:05:06"}`,
		`{"id":2,"status":"processing","date_modified_gmt":"2026-02-03T04:05:06"}`,
		`{"id":1,"status":"completed","date_modified_gmt":"2026-02-03T04:05:06"}`, // twice in one second
		`{"id":1,"status":"completed","date_modified_gmt":"2026-02-03T04:05:07"}`,
	)
	body := `{"id":1,"date_modified_gmt":"2026-02-03T04:05:06"}`
	if send("order.updated", "d1", body).Key != send("order.updated", "d2", body).Key {
		t.Error("a second run has another key")
	}
	if send("order.updated", "d", body).Key == send("order.restored", "d", body).Key {
		t.Error("two topics have one key")
	}
	// Deleted, restored and deleted again.
	if ev := send("order.deleted", "d", `{"id":1}`); ev.Key != "" {
		t.Errorf("a deletion has the key %q", ev.Key)
	}
}

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
