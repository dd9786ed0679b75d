package provider

import "github.com/hookonce/hookonce/provider/spec"

// Chargebee returns the provider for Chargebee webhooks. Chargebee signs nothing: the webhook is
// protected with HTTP basic authentication, and the secrets are its user:password. It panics if a
// secret is missing or not of that form.
//
// The key is the event's id. Nothing is signed.
func Chargebee(secrets ...string) *spec.Provider {
	return must(spec.New(chargebeeSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func chargebeeSpec() spec.Spec {
	return spec.Spec{
		Name:   "chargebee",
		Title:  "Chargebee",
		Secret: "the user:password of the webhook's basic authentication",
		Verify: []spec.Verify{{Kind: spec.Basic}},
		Event: spec.Extract{
			Key:  [][]spec.Value{{"json:$.id"}},
			Type: []spec.Value{"json:$.event_type"},
			Time: []spec.Moment{at("json:$.occurred_at", spec.Seconds)},
			Resource: []spec.Value{
				"json:$.content.transaction.id", "json:$.content.credit_note.id", "json:$.content.invoice.id",
				"json:$.content.subscription.id", "json:$.content.customer.id",
			},
		},
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.event_type", "json:$.occurred_at", "json:$.content"}},
		Answer:  spec.Answer{Deadline: 20 * second},
		Limits:  spec.Limits{Retry: 4 * day}, // seven retries; the first after 2 minutes, the last after 2 more days
		Headers: []string{"Chargebee-*", "X-Chargebee-*"},
		Example: spec.Template{ID: "ev_16BHbhF4s42tO2lK", Type: "payment_succeeded", Object: "txn_example1001", Body: chargebeeExample},
		Sources: []spec.Source{
			stated("authentication, key, fields", "chargebee/chargebee-go: models/event"),
			reported("retries, deadline", "Chargebee documentation, quoted; the sum of the delays is rounded up"),
		},
		Traps: []string{
			"nothing is signed: whoever sees one request can send others, so fetch the event from Chargebee before money moves",
			"the body also says how its webhooks fared, which changes: a hash of it as the key lets retries through",
		},
	}
}

const chargebeeExample = `{
  "id": "{{id}}",
  "occurred_at": {{unix}},
  "source": "scheduled_job",
  "object": "event",
  "api_version": "v2",
  "event_type": "{{type}}",
  "webhook_status": "scheduled",
  "content": {
    "transaction": {
      "id": "{{object}}",
      "customer_id": "customer_example1001",
      "type": "payment",
      "date": {{unix}},
      "amount": 4200,
      "currency_code": "EUR",
      "status": "success",
      "object": "transaction"
    },
    "invoice": {"id": "1001", "status": "paid", "total": 4200, "amount_due": 0, "object": "invoice"},
    "customer": {"id": "customer_example1001", "email": "customer@example.com", "object": "customer"}
  }
}`
