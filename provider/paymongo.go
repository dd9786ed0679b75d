package provider

import "github.com/hookonce/hookonce/provider/spec"

// PayMongo returns the provider for PayMongo's webhooks, of the live and of the test mode. The secrets are the secret keys
// of the webhooks. It panics if a secret is missing or empty.
//
// The key is the event's id, which the signature covers. A time is signed, but not checked against a tolerance unless
// [spec.Settings.Tolerance] says so: PayMongo states none.
func PayMongo(secrets ...string) *spec.Provider {
	return must(spec.New(payMongoSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func payMongoSpec() spec.Spec {
	live, test := timedMAC("Paymongo-Signature", spec.Seconds, 0), timedMAC("Paymongo-Signature", spec.Seconds, 0)
	live.Signature.Prefix, test.Signature.Prefix = "li=", "te="
	return spec.Spec{
		Name:   "paymongo",
		Title:  "PayMongo",
		Secret: "the secret key of the webhook",
		Verify: []spec.Verify{live, test},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.data.id"}},
			Type:     []spec.Value{"json:$.data.attributes.type"},
			Time:     []spec.Moment{at("json:$.data.attributes.created_at", spec.Seconds)},
			Resource: []spec.Value{"json:$.data.attributes.data.id"},
		},
		Dedup:   spec.Dedup{Manual: spec.Stable},
		Answer:  spec.Answer{ContentType: "application/json", Body: "{}", Deadline: 30 * second},
		Limits:  spec.Limits{Retry: 137 * minute}, // 12 times
		Headers: []string{"Paymongo-*"},
		Example: spec.Template{ID: "evt_example00000000000001001", Type: "payment.paid", Object: "pay_example00000000000001001", Body: payMongoExample},
		Sources: []spec.Source{
			stated("signature of the live and the test mode", "developers.paymongo.com/docs/securing-webhook"),
			stated("retries", "developers.paymongo.com/docs/webhook-retry-logic"),
			stated("200 to 209 with JSON accept, deadline, events never change", "developers.paymongo.com/docs/developer-tools-webhooks-key-concepts"),
			stated("the same payload when sent again by hand", "developers.paymongo.com/docs/retry-a-webhook-delivery"),
			reported("key, fields", "inferred: the body is the resource event, with its id in data.id"),
			notSourced("whether the key is the same in a retry by itself"),
		},
		Traps: []string{
			"the id inside of data.attributes.data is that of the payment: as the key it loses every later event about it",
			"the answer must be JSON; an empty one may count as a failure",
			"after three events in a row that used up their retries, the webhook is disabled",
		},
	}
}

const payMongoExample = `{
  "data": {
    "id": "{{id}}",
    "type": "event",
    "attributes": {
      "type": "{{type}}",
      "livemode": false,
      "data": {
        "id": "{{object}}",
        "type": "payment",
        "attributes": {"amount": 4200, "currency": "PHP", "description": "Order 1001", "status": "paid", "fee": 105, "net_amount": 4095}
      },
      "previous_data": {},
      "created_at": {{unix}},
      "updated_at": {{unix}}
    }
  }
}`
