package provider

// Square returns the provider for Square webhooks. The URL is the notification URL exactly as it is
// registered with Square, because the signature covers it; empty means the URL of the request, which
// is right only where no proxy changes it. The secrets are the signature keys of the subscription.
// It panics if a secret is missing or empty, or the URL is not one.
//
// The key is the event_id, which the signature covers. No time is signed.
func Square(url string, secrets ...string) *Provider {
	return must(New(squareSpec(), Settings{URL: url, Secrets: secrets}))
}

func squareSpec() Spec {
	return Spec{
		Name:   "square",
		Title:  "Square",
		Secret: "the webhook subscription's signature key",
		Verify: []Verify{{
			Hash:      SHA256,
			Key:       KeyUTF8,
			Encoding:  Base64,
			Signature: Signature{In: "header:X-Square-Hmacsha256-Signature"},
			Sign:      []Value{"url", "body"},
		}},
		Event: Extract{
			Key:      [][]Value{{"json:$.event_id"}},
			Type:     []Value{"json:$.type"},
			Time:     []Moment{{"json:$.created_at", RFC3339}},
			Resource: []Value{"json:$.data.id"},
			Tenant:   []Value{"json:$.merchant_id"},
		},
		Limits:  Limits{Retry: day}, // 11 attempts
		Example: Template{Type: "payment.updated", Body: squareExample},
		Sources: []Source{
			{"signature, key, fields", Stated, "square/square-go-sdk: webhooks/client/verify_signature.go; developer.squareup.com/docs/webhooks/overview"},
			{"retries", Reported, "Square documentation, quoted"},
		},
		Traps: []string{
			"behind a proxy the request's URL differs from the registered one, and everything is rejected",
			"an SDK takes an empty body for valid whatever the signature; an empty body needs a valid signature like any other",
			"payments have no version to order by; orders have one",
		},
	}
}

const squareExample = `{
  "merchant_id": "MLEXAMPLE0001",
  "location_id": "LEXAMPLE0001",
  "type": "{{type}}",
  "event_id": "{{id}}",
  "created_at": "{{time}}",
  "data": {
    "type": "payment",
    "id": "KkAkhdMsgzn59SM8A89WgKwekxLZY",
    "object": {
      "payment": {
        "id": "KkAkhdMsgzn59SM8A89WgKwekxLZY",
        "amount_money": {"amount": 4200, "currency": "EUR"},
        "created_at": "{{time}}",
        "location_id": "LEXAMPLE0001",
        "order_id": "OEXAMPLE1001",
        "reference_id": "1001",
        "source_type": "CARD",
        "status": "COMPLETED",
        "total_money": {"amount": 4200, "currency": "EUR"},
        "updated_at": "{{time}}",
        "version_token": "example"
      }
    }
  }
}`
