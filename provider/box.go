package provider

import "github.com/hookonce/hookonce/provider/spec"

// Box returns the provider for Box's webhooks of version 2. The secrets are the application's signature keys, primary
// and secondary in any order. It panics if a secret is missing or empty.
//
// The key is the event's id in the body, which stays the same when Box sends it again. The signature covers it. The
// signed time may be ten minutes off.
func Box(secrets ...string) *spec.Provider {
	return must(spec.New(boxSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func boxSpec() spec.Spec {
	// While one of the keys is being replaced the other one still fits.
	verify := func(header string) spec.Verify {
		return timed(headerMAC(header, "", spec.Base64, "body", "ts"), "header:Box-Delivery-Timestamp", spec.RFC3339, 10*minute)
	}
	return spec.Spec{
		Name:   "box",
		Title:  "Box",
		Secret: "the application's primary or secondary signature key",
		Verify: []spec.Verify{verify("Box-Signature-Primary"), verify("Box-Signature-Secondary")},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.id"}},
			AttemptID:    []spec.Value{"header:Box-Delivery-Id"},
			Subscription: []spec.Value{"json:$.webhook.id"},
			Type:         []spec.Value{"json:$.trigger"},
			Time:         []spec.Moment{at("json:$.created_at", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.source.id"},
			Tenant:       []spec.Value{"json:$.created_by.id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Answer:  spec.Answer{Deadline: 30 * second},
		Headers: []string{"Box-Signature-Version", "Box-Signature-Algorithm", "Box-*"},
		Example: spec.Template{
			ID: "eb0c4e06-751f-442c-86f8-fd5bb404dbec", Type: "FILE.UPLOADED", Object: "73835521473",
			Header: map[string]string{"Box-Delivery-Id": "673a081b-0000-4000-8000-000000001001", "Box-Signature-Version": "1", "Box-Signature-Algorithm": "HmacSHA256"},
			Body:   boxExample,
		},
		Sources: []spec.Source{
			stated("headers, key and attempt, deadline, ten retries of which the first is after five minutes", "box/developer.box.com: content/guides/webhooks/v2/index.md"),
			stated("signature, ten minutes, two keys", "box/developer.box.com: content/guides/webhooks/v2/signatures-v2.md; box/box-node-sdk: WebhooksManager.validateMessage"),
			reported("a retry is signed anew", "inferred: the signed time is when the payload was sent, and each retry is a delivery with an id of its own: developer.box.com/guides/webhooks/v2"),
			notSourced("how long the retries take together"),
		},
		Traps: []string{
			"BOX-DELIVERY-ID is another one in each retry: as the key it lets all of them through",
			"signatures are optional at Box: without keys of the application nothing is signed, and everything is rejected here",
			"the schedule of the ten retries is not stated, and each doubles the wait: keep keys for weeks",
			"webhooks of a folder and of a file in it report one change as two events: one source for each webhook",
		},
	}
}

const boxExample = `{
  "type": "webhook_event",
  "id": "{{id}}",
  "created_at": "{{time}}",
  "trigger": "{{type}}",
  "webhook": {"id": "53", "type": "webhook"},
  "created_by": {"type": "user", "id": "226067247", "name": "Example", "login": "example@example.com"},
  "source": {
    "id": "{{object}}",
    "type": "file",
    "sequence_id": "0",
    "etag": "0",
    "name": "order-1001.pdf",
    "size": 26458,
    "created_at": "{{time}}",
    "modified_at": "{{time}}",
    "item_status": "active"
  },
  "additional_info": []
}`
