package provider

// Paddle returns the provider for Paddle Billing webhooks. The secrets are those of the notification
// destination, each the whole text that begins with pdl_ntfset_. It panics if a secret is missing or
// empty.
//
// The key is the event_id, which the signature covers. A time is signed, but not checked against a
// tolerance unless [Settings.Tolerance] says so: Paddle does not state that retries are signed anew,
// and replays are caught by their key.
func Paddle(secrets ...string) *Provider {
	return must(New(paddleSpec(), Settings{Secrets: secrets}))
}

func paddleSpec() Spec {
	return Spec{
		Name:   "paddle",
		Title:  "Paddle",
		Secret: "the notification destination's secret key, which begins with pdl_ntfset_",
		Verify: []Verify{{
			Hash:      SHA256,
			Key:       KeyUTF8,
			Encoding:  Hex,
			Signature: Signature{In: "header:Paddle-Signature", Split: ";", Prefix: "h1="},
			Time:      &Timestamp{In: "part:ts=", Unit: Seconds},
			Sign:      []Value{"ts", "const::", "body"},
		}},
		Event: Extract{
			Key:      [][]Value{{"json:$.event_id"}},
			Delivery: []Value{"json:$.notification_id"},
			Type:     []Value{"json:$.event_type"},
			Time:     []Moment{{"json:$.occurred_at", RFC3339}},
			Resource: []Value{"json:$.data.id"},
		},
		// notification_id differs between destinations.
		Same:    []Value{"json:$.event_type", "json:$.occurred_at", "json:$.data"},
		Limits:  Limits{Retry: 3 * day}, // 60 attempts
		Example: Template{Type: "transaction.completed", Body: paddleExample},
		Sources: []Source{
			{"signature", Stated, "PaddleHQ/paddle-go-sdk: webhook_verifier.go"},
			{"key, time", Stated, "developer.paddle.com/webhooks/how-webhooks-work"},
			{"retries, answer", Stated, "developer.paddle.com/webhooks/respond-to-webhooks"},
		},
		Traps: []string{
			"notification_id is made for each destination: it is not the key",
			"only the status 200 counts as success, within five seconds",
			"a notification can be replayed for as long as Paddle lists it, which is not stated",
		},
	}
}

const paddleExample = `{
  "event_id": "{{id}}",
  "event_type": "{{type}}",
  "occurred_at": "{{time}}",
  "notification_id": "ntf_01examplexampleexample0001",
  "data": {
    "id": "txn_01examplexampleexample0001",
    "status": "completed",
    "customer_id": "ctm_01examplexampleexample0001",
    "currency_code": "EUR",
    "custom_data": {"order": "1001"},
    "items": [
      {"price": {"id": "pri_01examplexampleexample0001", "description": "Hook, brass", "unit_price": {"amount": "2100", "currency_code": "EUR"}}, "quantity": 2}
    ],
    "details": {"totals": {"subtotal": "3500", "tax": "700", "total": "4200", "currency_code": "EUR"}},
    "created_at": "{{time}}",
    "updated_at": "{{time}}"
  }
}`
