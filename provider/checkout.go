package provider

import "github.com/hookonce/hookonce/provider/spec"

// Checkout returns the provider for Checkout.com's webhooks. The secrets are the signature keys of the webhook or of the
// workflow's action. It panics if a secret is missing or empty.
//
// The key is the event's id, which the signature covers. No time is signed.
func Checkout(secrets ...string) *spec.Provider {
	return must(spec.New(checkoutSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func checkoutSpec() spec.Spec {
	return spec.Spec{
		Name:      "checkout",
		Title:     "Checkout.com",
		Secret:    "the signature key of the webhook",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("Cko-Signature", "", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.created_on", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.id"},
		},
		Answer:  spec.Answer{Deadline: 10 * second},
		Limits:  spec.Limits{Retry: 30 * hour}, // after 5, 10, 15, 30 and 60 minutes, 4, 12 and 12 hours
		Headers: []string{"Cko-*"},
		Example: spec.Template{ID: "evt_az5sblvku4ge3dwpztvyizgcau", Type: "payment_captured", Object: "pay_example1001example1001ex", Body: checkoutExample},
		Sources: []spec.Source{
			stated("signature over the raw body, retries, delivery at least once, no order", "checkout.com/docs/workflows; checkout.com/docs/workflows/set-up-your-webhook-receiver"),
			stated("deadline, the secret is the receiver's choice", "checkout.com/docs/business-operations/use-the-dashboard/developers/webhooks"),
			reported("fields", "juspay/hyperswitch: crates/hyperswitch_connectors/src/connectors/checkout/transformers.rs"),
			reported("key", "inferred: id is that of the event, under which the API has it"),
			stated("authentication_failed may be no JSON", "checkout/checkout-sdk-node: src/services/webhook-utils.js"),
			stated("a person can have each event of the last 90 days sent again", "checkout.com/docs/workflows/retrigger-events"),
			notSourced("whether the key is the same in a retry"),
		},
		Traps: []string{
			"the id in data is that of the payment: as the key it loses every later event about it",
			"events arrive in any order",
			"a person can have each event of the last 90 days sent again, which is for how long ids are remembered by default: set retention.ids of the source to 100d or more",
			"the body of authentication_failed is not always JSON: it passes through unkeyed then",
			"Checkout.com can also send a fixed text in the header Authorization, which binds nothing; it is the signature that counts here",
		},
	}
}

const checkoutExample = `{
  "id": "{{id}}",
  "type": "{{type}}",
  "version": "1.0.12",
  "created_on": "{{time}}",
  "data": {
    "id": "{{object}}",
    "action_id": "act_example1001example1001ex",
    "reference": "order-1001",
    "amount": 4200,
    "currency": "EUR",
    "processed_on": "{{time}}",
    "response_code": "10000",
    "response_summary": "Approved",
    "metadata": {"order": "1001"}
  }
}`
