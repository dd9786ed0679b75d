package provider

import "time"

// Stripe returns the provider for Stripe webhooks, both snapshot events and thin (v2) events. The
// secrets are those of the endpoint, each the whole text that begins with whsec_. It panics if a
// secret is missing or empty.
//
// The key is the event's id, which the signature covers. The signed time may be five minutes off in
// either direction.
func Stripe(secrets ...string) *Provider {
	return must(New(stripeSpec(), Settings{Secrets: secrets}))
}

func stripeSpec() Spec {
	return Spec{
		Name:   "stripe",
		Title:  "Stripe",
		Secret: "the endpoint's signing secret, which begins with whsec_",
		Verify: []Verify{{
			Hash:      SHA256,
			Key:       KeyUTF8, // the whole text; Standard Webhooks decodes what looks the same
			Encoding:  Hex,
			Signature: Signature{In: "header:Stripe-Signature", Split: ",", Prefix: "v1="},
			Time:      &Timestamp{In: "part:t=", Unit: Seconds, Past: 5 * time.Minute, Future: 5 * time.Minute},
			Sign:      []Value{"ts", "const:.", "body"},
		}},
		Event: Extract{
			Key:      [][]Value{{"json:$.id"}},
			Type:     []Value{"json:$.type"},
			Time:     []Moment{{"json:$.created", Seconds}, {"json:$.created", RFC3339}},
			Resource: []Value{"json:$.data.object.id", "json:$.related_object.id"},
			Tenant:   []Value{"json:$.account", "json:$.context"},
		},
		// pending_webhooks counts down between attempts, so the whole body is not the same.
		Same: []Value{"json:$.type", "json:$.created", "json:$.account", "json:$.data", "json:$.related_object"},
		Limits: Limits{
			Retry:  3 * day,
			Manual: 30 * day, // by the command line tool; 15 days in the dashboard
		},
		Example: Template{Type: "payment_intent.succeeded", Body: stripeExample},
		Sources: []Source{
			{"signature, tolerance, key", Stated, "stripe/stripe-go: webhook/client.go"},
			{"fields of snapshot and thin events", Stated, "stripe/stripe-go: event.go, v2_events.go"},
			{"retries, resending, twin events, no order", Stated, "Stripe documentation, Receive Stripe events in your webhook endpoint"},
			{"time is not an order", Reported, "Stripe documentation, quoted"},
		},
		Traps: []string{
			"type and object id as the key loses every second update of an object",
			"a hash of the body as the key lets retries through: pending_webhooks changes",
			"sometimes two event objects with different ids are made for one change; they are twins, not copies",
			"created has a granularity of one second and is not an order",
			"signatures under v0 are not to be trusted",
		},
	}
}

const stripeExample = `{
  "id": "{{id}}",
  "object": "event",
  "api_version": "2025-09-30.clover",
  "created": {{unix}},
  "data": {
    "object": {
      "id": "pi_3QExampleExampleExample01",
      "object": "payment_intent",
      "amount": 4200,
      "amount_capturable": 0,
      "amount_received": 4200,
      "automatic_payment_methods": {"allow_redirects": "always", "enabled": true},
      "capture_method": "automatic_async",
      "confirmation_method": "automatic",
      "created": {{unix}},
      "currency": "eur",
      "customer": "cus_QExampleExample01",
      "description": "Order 1001",
      "latest_charge": "ch_3QExampleExampleExample01",
      "livemode": false,
      "metadata": {"order": "1001"},
      "payment_method": "pm_1QExampleExampleExample01",
      "payment_method_types": ["card", "link"],
      "receipt_email": "customer@example.com",
      "status": "succeeded"
    }
  },
  "livemode": false,
  "pending_webhooks": 1,
  "request": {"id": "req_ExampleExample", "idempotency_key": "8f3f1d0e-0000-4000-8000-000000001001"},
  "type": "{{type}}"
}`
