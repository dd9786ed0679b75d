package provider

import (
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Bird returns the provider for the webhook subscriptions of Bird's notifications. The URL is the one of the
// subscription exactly as registered, because the signature covers it; empty means the URL of the request, which is
// right only where no proxy changes it. The secrets are the signing keys of the subscriptions. It panics if a secret is
// missing or empty, or the URL is not one. For the older products see [MessageBird].
//
// There is no id: the key is the event, the id and state of what it is about, and a hash of that. The signature covers
// the body.
func Bird(url string, secrets ...string) *spec.Provider {
	return must(spec.New(birdSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

func birdSpec() spec.Spec {
	return spec.Spec{
		Name:      "bird",
		Title:     "Bird",
		Secret:    "the signing key of the webhook subscription",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Code, Scheme: scheme.Bird()}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event", "json:$.payload.id", "hash:json:$.payload"}},
			Type:     []spec.Value{"json:$.event"},
			Action:   []spec.Value{"json:$.payload.status"},
			Time:     []spec.Moment{at("json:$.payload.updatedAt", spec.RFC3339), at("json:$.payload.createdAt", spec.RFC3339)},
			Resource: []spec.Value{"json:$.payload.id"},
			Tenant:   []spec.Value{"json:$.payload.channelId"},
		},
		Limits:  spec.Limits{Retry: 8 * hour},
		Headers: []string{"MessageBird-Signature", "MessageBird-Request-Timestamp", "MessageBird-*"},
		Example: spec.Template{ID: "b5c1e4d2-3f6a-4b8e-9c0d-1a2b3c4d5e6f", Type: "sms.outbound", Body: birdExample},
		Sources: []spec.Source{
			stated("signature", "docs.bird.com/api/notifications-api/api-reference/webhooks/verifying-a-webhook"),
			stated("retries", "docs.bird.com/api/notifications-api/retries"),
			reported("fields", "an example of Bird's own that checks a signature: pastebin.com/1giD0qKk"),
			reported("key", "inferred: states of one message share its id"),
			notSourced("deadline"),
			notSourced("how old the signed time may be"),
		},
		Traps: []string{
			"the signature covers the URL: behind a proxy the request's URL differs from the registered one, and everything is rejected",
			"the digest of the body is signed in raw bytes: written in hexadecimal it makes another signature",
			"the message's id is shared by all its states: as the key it loses all but the first",
			"how old a signed time may be is not stated, so that a captured request can be sent again for as long as its key is remembered, and longer",
		},
	}
}

const birdExample = `{
  "service": "channels",
  "event": "{{type}}",
  "payload": {
    "id": "{{id}}",
    "channelId": "7c9e6679-0000-4000-8000-00000000b001",
    "sender": {"connector": {"identifierValue": "15550100002"}},
    "receiver": {"contacts": [{"identifierKey": "phonenumber", "identifierValue": "+15550100001"}]},
    "body": {"type": "text", "text": {"text": "Order 1001 is on its way"}},
    "status": "delivered",
    "direction": "outgoing",
    "createdAt": "{{time}}",
    "updatedAt": "{{time}}"
  }
}`
