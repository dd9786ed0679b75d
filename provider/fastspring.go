package provider

import "github.com/hookonce/hookonce/provider/spec"

// FastSpring returns the provider for FastSpring's server webhooks. The secrets are the HMAC SHA256 secrets of the webhook.
// It panics if a secret is missing or empty.
//
// A request holds several events. The key of each is its id, which the signature covers. No time is signed.
func FastSpring(secrets ...string) *spec.Provider {
	return must(spec.New(fastSpringSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func fastSpringSpec() spec.Spec {
	return spec.Spec{
		Name:      "fastspring",
		Title:     "FastSpring",
		Secret:    "the HMAC SHA256 secret of the webhook",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-FS-Signature", "", spec.Base64)},
		Split:     &spec.Split{Items: []spec.Value{"json:$.events[*]"}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"item:$.id"}},
			Type:     []spec.Value{"item:$.type"},
			Time:     []spec.Moment{at("item:$.created", spec.Millis)},
			Resource: []spec.Value{"item:$.data.id"},
		},
		Dedup: spec.Dedup{
			// A later copy may say more.
			Same:   []spec.Value{"item:$.id", "item:$.type", "item:$.created"},
			Retry:  spec.Stable,
			Manual: spec.Unstable,
		},
		Headers: []string{"X-FS-*"},
		Example: spec.Template{ID: "jazYJQPQRPqoQL1pWf4Kxw", Type: "order.completed", Object: "VyV0NXNJRuGKUHn7Hi0uPw", Body: fastSpringExample},
		Sources: []spec.Source{
			stated("signature", "developer.fastspring.com/docs/message-security"),
			stated("batches, key is the same in retries and another when sent again by hand, a copy may be updated", "developer.fastspring.com/docs/webhooks-overview"),
			reported("fields", "integrations that log what they receive; hookdeck/webhook-skills: fastspring-webhooks"),
			reported("the secret is the receiver's choice", "inferred: it is entered in a field of the webhook"),
			notSourced("how long it retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"without a secret in the webhook nothing is signed, and every request is refused here",
			"an event that is sent again by hand has a new id: it passes as new, so let the work look at the order's own id",
			"the id in data is that of the order or subscription: as the key it loses all later events about it",
			"one request holds many events",
		},
	}
}

const fastSpringExample = `{
  "events": [
    {
      "id": "{{id}}",
      "processed": false,
      "created": {{millis}},
      "type": "{{type}}",
      "live": false,
      "data": {
        "id": "{{object}}",
        "order": "{{object}}",
        "reference": "EXA200203-1001-01101",
        "completed": true,
        "currency": "EUR",
        "total": 42.0,
        "customer": {"first": "Example", "email": "customer@example.com"}
      }
    }
  ]
}`
