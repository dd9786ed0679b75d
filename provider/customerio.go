package provider

import "github.com/hookonce/hookonce/provider/spec"

// CustomerIO returns the provider for Customer.io's reporting webhooks. The secrets are the signing keys of the webhook. It
// panics if a secret is missing or empty.
//
// The key is the event_id, which the signature covers. A time is signed, but not checked against a tolerance unless
// [spec.Settings.Tolerance] says so: Customer.io states none.
func CustomerIO(secrets ...string) *spec.Provider {
	return must(spec.New(customerIOSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func customerIOSpec() spec.Spec {
	return spec.Spec{
		Name:   "customerio",
		Title:  "Customer.io",
		Secret: "the webhook's signing key",
		Verify: []spec.Verify{timed(headerMAC("X-CIO-Signature", "", spec.Hex, "const:v0:", "ts", "const::", "body"), "header:X-CIO-Timestamp", spec.Seconds, 0)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event_id"}},
			Type:     []spec.Value{"json:$.object_type"},
			Action:   []spec.Value{"json:$.metric"},
			Time:     []spec.Moment{at("json:$.timestamp", spec.Seconds)},
			Resource: []spec.Value{"json:$.data.delivery_id", "json:$.data.customer_id"},
		},
		Answer:  spec.Answer{Deadline: 4 * second},
		Headers: []string{"X-CIO-*"},
		Example: spec.Template{ID: "01E4C4CT6YDC7Y5M7FE1GWWPQJ", Type: "email.delivered", Object: "ZAIAAVTJVG0QcCok0-0ZKj6yiQ==", Body: customerIOExample},
		Sources: []spec.Source{
			stated("deadline", "docs.customer.io/api/webhooks"),
			reported("signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts; hookdeck/webhook-skills: customerio-webhooks"),
			reported("object_type and metric are the type", "hookdeck/webhook-skills: customerio-webhooks"),
			reported("key, fields", "integrations that take them apart; inferred: event_id is that of the event"),
			notSourced("how long it retries"),
			notSourced("whether the key is the same in a retry"),
		},
		Traps: []string{
			"the delivery_id is that of the message: as the key it loses delivered after sent, and opened after delivered",
			"the sender waits four seconds only",
		},
	}
}

const customerIOExample = `{
  "event_id": "{{id}}",
  "object_type": "{{event}}",
  "metric": "{{action}}",
  "timestamp": {{unix}},
  "data": {
    "customer_id": "customer-1001",
    "delivery_id": "{{object}}",
    "identifiers": {"id": "customer-1001"},
    "recipient": "customer@example.com",
    "subject": "Order 1001"
  }
}`
