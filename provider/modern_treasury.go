package provider

import "github.com/hookonce/hookonce/provider/spec"

// ModernTreasury returns the provider for Modern Treasury's webhooks. The secrets are webhook keys of the organization. It
// panics if a secret is missing or empty.
//
// The key is the X-Webhook-ID header, which the signature does not cover. No time is signed.
func ModernTreasury(secrets ...string) *spec.Provider {
	return must(spec.New(modernTreasurySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func modernTreasurySpec() spec.Spec {
	return spec.Spec{
		Name:   "modern-treasury",
		Title:  "Modern Treasury",
		Secret: "the webhook key, in the developer settings",
		Verify: []spec.Verify{bodyMAC("X-Signature", "", spec.Hex)},
		Event: spec.Extract{
			Key: [][]spec.Value{{"header:X-Webhook-ID"}},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Answer:  spec.Answer{Deadline: 5 * second},
		Headers: []string{"X-Webhook-ID", "X-Signature"},
		Example: spec.Template{
			ID:     "5a0e1a2b-0000-4000-8000-000000001001",
			Header: map[string]string{"X-Webhook-ID": "{{id}}"},
			Body:   modernTreasuryExample,
		},
		Sources: []spec.Source{
			stated("signature", "Modern-Treasury/modern-treasury-node: src/resources/webhooks.ts"),
			stated("key recognises copies, deadline, any 2xx accepts", "docs.moderntreasury.com/reference/webhooks"),
			notSourced("fields of the body"),
			notSourced("how long it retries"),
			notSourced("whether the key is the same when an event is sent again by hand"),
		},
		Traps: []string{
			"the id of a payment order as the key loses every later state of it",
			"the key is not signed: whoever replays a captured request can change it",
			"the sender waits five seconds only",
			"many senders have a header X-Signature: it says nothing about who sends",
		},
	}
}

const modernTreasuryExample = `{
  "event": "completed",
  "data": {
    "id": "6b1f2b3c-0000-4000-8000-000000001001",
    "object": "payment_order",
    "live_mode": false,
    "created_at": "{{time}}",
    "updated_at": "{{time}}",
    "type": "ach",
    "amount": 4200,
    "direction": "credit",
    "currency": "USD",
    "status": "completed",
    "description": "Order 1001"
  }
}`
