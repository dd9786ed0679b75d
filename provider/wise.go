package provider

import "github.com/hookonce/hookonce/provider/spec"

// Wise returns the provider for Wise webhooks. The secrets are the public keys that Wise publishes, in
// PEM or the base64 alone: one for production, another for the sandbox. It panics if one is missing or not a key.
//
// Events have no id, and X-Delivery-Id is that of the delivery. The key is made of the event's type, the
// time at which it happened and a digest of its data, all of which the signature covers. No time of the
// attempt is checked.
func Wise(publicKeys ...string) *spec.Provider {
	return must(spec.New(wiseSpec(), spec.Settings{Secrets: spec.Secrets(publicKeys...)}))
}

func wiseSpec() spec.Spec {
	return spec.Spec{
		Name:   "wise",
		Title:  "Wise",
		Secret: "Wise's public key, in PEM or as its page shows it, without the lines around it: one for production, another for the sandbox",
		Verify: []spec.Verify{{
			Kind:      spec.RSA,
			Hash:      spec.SHA256,
			Key:       spec.KeyPEM,
			Encoding:  spec.Base64,
			Signature: spec.Signature{In: "header:X-Signature-SHA256"},
			Sign:      []spec.Value{"body"},
		}},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.event_type", "json:$.data.occurred_at", "hash:json:$.data"}},
			AttemptID:    []spec.Value{"header:X-Delivery-Id"},
			Subscription: []spec.Value{"json:$.subscription_id"},
			Type:         []spec.Value{"json:$.event_type"},
			Time:         []spec.Moment{at("json:$.data.occurred_at", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.data.resource.id"},
			Tenant:       []spec.Value{"json:$.data.resource.profile_id"},
		},
		// sent_at is that of the attempt.
		Dedup: spec.Dedup{Same: []spec.Value{"json:$.event_type", "json:$.data"}},
		Order: &spec.Order{
			By:       "json:$.data.occurred_at",
			Unit:     spec.RFC3339,
			Scope:    []spec.Value{"json:$.data.resource.type", "json:$.data.resource.id"},
			Advisory: true,
		},
		Answer: spec.Answer{Deadline: 5 * second},
		Limits: spec.Limits{Retry: 14 * day}, // 25 attempts at the most
		// https://docs.wise.com/guides/developer/webhooks/event-handling
		Headers: []string{"X-Signature", "X-Test-Notification", "X-Delivery-Id"},
		Example: spec.Template{
			ID:     "16521632",
			Type:   "transfers#state-change",
			Header: map[string]string{"X-Delivery-Id": "d6f3e2a0-0000-4000-8000-00000000d001"},
			Body:   wiseExample,
		},
		Sources: []spec.Source{
			stated("signature, X-Delivery-Id, deadline, retries", "docs.wise.com/guides/developer/webhooks/event-handling"),
			stated("reference implementation of the signature", "transferwise/digital-signatures-examples: verify-webhook-signature"),
			stated("fields", "transferwise/api-docs: source/includes/reference/_webhook_events.md"),
			reported("key", "inferred: of two with one type, moment and data the second says nothing new"),
			notSourced("whether a retry keeps X-Delivery-Id"),
		},
		Traps: []string{
			"Wise signs for all of its customers with one key: that an event is authentic does not say that it is yours; take only those of your subscription_id, in a route's where or in the handler",
			"X-Delivery-Id is that of the delivery, and not signed: it is not the key",
			"subscription_id is the same for all events of a subscription",
			"retries go on for two weeks: keys have to be kept for four",
			"the sandbox signs with another key than production",
		},
	}
}

const wiseExample = `{
  "data": {
    "resource": {
      "type": "transfer",
      "id": "{{id}}",
      "profile_id": 222,
      "account_id": 333
    },
    "current_state": "outgoing_payment_sent",
    "previous_state": "processing",
    "occurred_at": "{{time}}"
  },
  "subscription_id": "01234567-0000-4000-8000-00000000f001",
  "event_type": "{{type}}",
  "schema_version": "2.0.0",
  "sent_at": "{{time}}"
}`
