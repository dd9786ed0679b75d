package provider

import "github.com/hookonce/hookonce/provider/spec"

// LemonSqueezy returns the provider for Lemon Squeezy webhooks. The secrets are the signing secrets of
// the webhook. It panics if a secret is missing or empty.
//
// Events have no id. The key is made of the event's name, the kind and id of the object, and a digest of
// the object's attributes, all of which the signature covers: the same event about the same state is a
// copy. No time is signed.
func LemonSqueezy(secrets ...string) *spec.Provider {
	return must(spec.New(lemonSqueezySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func lemonSqueezySpec() spec.Spec {
	return spec.Spec{
		Name:      "lemon-squeezy",
		Title:     "Lemon Squeezy",
		Secret:    "the webhook's signing secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Signature", "", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.meta.event_name", "json:$.data.type", "json:$.data.id", "hash:json:$.data.attributes"}},
			Type:     []spec.Value{"json:$.meta.event_name", "header:X-Event-Name"},
			Resource: []spec.Value{"json:$.data.id"},
		},
		Answer: spec.Answer{Status: 200}, // everything else is retried
		Limits: spec.Limits{Retry: 155 * second},
		// https://docs.lemonsqueezy.com/help/webhooks/webhook-requests
		Headers: []string{"X-Event-Name", "X-Lemon-Squeezy-*", "X-LemonSqueezy-*"},
		Example: spec.Template{
			ID:     "1138922",
			Type:   "order_created",
			Header: map[string]string{"X-Event-Name": "{{type}}"},
			Body:   lemonSqueezyExample,
		},
		Sources: []spec.Source{
			stated("headers, answer, retries after 5, 25 and 125 seconds", "docs.lemonsqueezy.com/help/webhooks/webhook-requests"),
			stated("signature", "docs.lemonsqueezy.com/help/webhooks/signing-requests"),
			reported("key", "inferred: the body has no id of the event, and the attributes say when the object was updated"),
			stated("the secret is the receiver's choice", "docs.lemonsqueezy.com/help/webhooks/signing-requests"),
			notSourced("whether the attributes are the same in every attempt"),
		},
		Traps: []string{
			"there is no id of the event: the object's id alone as the key loses every later event about it",
			"only the status 200 counts as success",
			"many senders have a header X-Signature: it says nothing about who sends",
		},
	}
}

const lemonSqueezyExample = `{
  "meta": {
    "test_mode": true,
    "event_name": "{{type}}",
    "custom_data": {"order": "1001"}
  },
  "data": {
    "type": "orders",
    "id": "{{id}}",
    "attributes": {
      "store_id": 1,
      "identifier": "636f855c-0000-4000-8000-00000000a001",
      "order_number": 1001,
      "user_name": "Example Person",
      "user_email": "customer@example.com",
      "currency": "EUR",
      "subtotal": 3500,
      "tax": 700,
      "total": 4200,
      "status": "paid",
      "refunded": false,
      "created_at": "{{time}}",
      "updated_at": "{{time}}",
      "test_mode": true
    }
  }
}`
