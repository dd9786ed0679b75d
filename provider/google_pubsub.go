package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// GooglePubSub returns the provider for push subscriptions of Google Cloud Pub/Sub with authentication. Each secret says
// whose tokens are accepted, as service_account_email:audience, with the audience of the subscription, which is the push
// endpoint's URL by default. It panics if a secret is missing or has another form. Verification fetches Google's keys,
// from one address, and keeps them.
//
// The key is the messageId, which Pub/Sub gives a message when it is published. The token says who sends and covers
// nothing of the message.
func GooglePubSub(secrets ...string) *spec.Provider {
	return must(spec.New(googlePubSubSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func googlePubSubSpec() spec.Spec {
	return spec.Spec{
		Name:   "google-pubsub",
		Title:  "Google Cloud Pub/Sub",
		Secret: "whose tokens are accepted, as service_account_email:audience",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.GooglePubSub(http.DefaultTransport)}},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.message.messageId"}, {"json:$.message.message_id"}},
			Subscription: []spec.Value{"json:$.subscription"},
			Type:         []spec.Value{"json:$.message.attributes.eventType", "json:$.message.attributes.ce-type"},
			Time:         []spec.Moment{at("json:$.message.publishTime", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.message.orderingKey"},
			Tenant:       []spec.Value{"json:$.subscription"},
			Attempt:      []spec.Value{"json:$.deliveryAttempt"},
		},
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.message.messageId", "hash:json:$.message.data", "hash:json:$.message.attributes"}, Retry: spec.Stable, Manual: spec.Stable},
		Answer:  spec.Answer{Status: 204, Deadline: 10 * second},
		Limits:  spec.Limits{MaxBody: 15 << 20, Retry: 31 * day, Manual: 31 * day}, // at the most; 7 days by default
		Headers: []string{"X-Goog-*"},
		Example: spec.Template{ID: "136969346945", Type: "OBJECT_FINALIZE", Body: googlePubSubExample},
		Sources: []spec.Source{
			stated("token, its claims, service account, audience", "docs.cloud.google.com/pubsub/docs/authenticate-push-subscriptions"),
			stated("address of the keys", "google-auth-library: build/src/auth/oauth2client.js"),
			stated("at least once, no order, deadline of ten seconds unless set otherwise", "cloud.google.com/pubsub/docs/subscriber; cloud.google.com/pubsub/docs/subscription-properties"),
			stated("retention of 7 days unless set otherwise, of 31 days at most; a seek has acknowledged messages sent again", "cloud.google.com/pubsub/docs/subscription-properties; cloud.google.com/pubsub/docs/replay-overview"),
			stated("messageId is given when a message is published, and is unique within the topic", "google.golang.org/api: pubsub/v1, PubsubMessage"),
			reported("attempt", "Pub/Sub documentation of dead-letter topics: deliveryAttempt is there where one is set up"),
			reported("a message may be 10 MB, which base64 makes a third longer", "Pub/Sub documentation of quotas"),
		},
		Traps: []string{
			"without authentication of the push subscription there is no token, and everything is rejected",
			"the token covers nothing of the message: whoever sees one can send others with it for an hour",
			"a message that is published twice has two messageIds: put an id of your own into its attributes, and let the handler go by it",
			"a subscription, or its topic, can keep messages for 31 days, acknowledged ones too, and one seek sends all of them again",
			"data is base64 in message.data; what it holds is the publisher's",
			"the audience is the push endpoint's URL as it is configured, unless another one is set",
			"payload unwrapping sends the data alone, which has no messageId: those messages pass through unkeyed",
			"messages to one endpoint of two subscriptions are two sources: each has all of them",
		},
	}
}

const googlePubSubExample = `{
  "message": {
    "attributes": {"eventType": "{{type}}", "bucketId": "example", "objectId": "order-1001.pdf"},
    "data": "eyJvcmRlciI6IjEwMDEiLCJzdGF0ZSI6InBhaWQifQ==",
    "messageId": "{{id}}",
    "message_id": "{{id}}",
    "publishTime": "{{time}}",
    "publish_time": "{{time}}"
  },
  "subscription": "projects/example/subscriptions/example"
}`
