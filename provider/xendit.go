package provider

import "github.com/hookonce/hookonce/provider/spec"

// Xendit returns the provider for Xendit's webhooks. The secrets are webhook verification tokens of the account. It panics if
// a secret is missing or empty.
//
// Events have no id. The key is made of the event's name, its time and a digest of its data; without a name, as invoices
// are, of the id, the status and a digest of the body. Nothing is signed: the token says who sends, and not what.
func Xendit(secrets ...string) *spec.Provider {
	return must(spec.New(xenditSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func xenditSpec() spec.Spec {
	return spec.Spec{
		Name:   "xendit",
		Title:  "Xendit",
		Secret: "the webhook verification token, in the webhook settings",
		Verify: []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:X-Callback-Token"}}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"const:event", "json:$.event", "json:$.created", "hash:json:$.data"},
				{"const:object", "json:$.id", "json:$.status", "hash:json:$"},
			},
			Type:     []spec.Value{"json:$.event", "json:$.status"},
			Time:     []spec.Moment{at("json:$.created", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.reference_id", "json:$.data.id", "json:$.external_id", "json:$.id"},
			Tenant:   []spec.Value{"json:$.business_id", "json:$.user_id"},
		},
		Answer:  spec.Answer{Deadline: 30 * second},
		Limits:  spec.Limits{Retry: day}, // after 15 and 45 minutes, 2, 3, 6 and 12 hours
		Headers: []string{"X-Callback-*", "Webhook-Id"},
		Example: spec.Template{ID: "ewc_bb8c3po-c3po-r2d2-c3po-r2d2c3por2d2", Type: "ewallet.capture", Object: "order-1001", Body: xenditExample},
		Sources: []spec.Source{
			stated("token, duplicates occur, no order", "help.xendit.co, How to validate if the webhook is sent from Xendit; What kind of handling has to be prepared"),
			stated("retries, any 2xx accepts", "docs.xendit.co/apidocs/webhook-behavior"),
			stated("deadline, fields of an event", "docs.xendit.co/api-integration/callback/setup"),
			reported("key", "inferred: products have bodies of their own, and none states an id of the event"),
			notSourced("whether a retry has the same body"),
		},
		Traps: []string{
			"nothing is signed: whoever sees one request can send others, so ask Xendit for the payment before money moves",
			"every product has another body: what has neither event and created nor id and status passes through unkeyed",
			"the id of an invoice or a payment as the key loses every state after the first",
			"events arrive in any order",
		},
	}
}

const xenditExample = `{
  "event": "{{type}}",
  "created": "{{time}}",
  "business_id": "59e0daf704100100100000a1",
  "data": {
    "id": "{{id}}",
    "reference_id": "{{object}}",
    "status": "SUCCEEDED",
    "currency": "PHP",
    "charge_amount": 4200,
    "channel_code": "PH_GCASH",
    "created": "{{time}}",
    "updated": "{{time}}"
  }
}`
