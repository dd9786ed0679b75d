package provider

import "github.com/hookonce/hookonce/provider/spec"

// Klaviyo returns the provider for Klaviyo's system webhooks. The secrets are those that the webhook was made with. It
// panics if a secret is missing or empty.
//
// A request holds several events. The key of each is its id and topic, which the signature covers. The time in the header
// is signed, and not checked against a tolerance: it is a text, and Klaviyo states none.
func Klaviyo(secrets ...string) *spec.Provider {
	return must(spec.New(klaviyoSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func klaviyoSpec() spec.Spec {
	return spec.Spec{
		Name:      "klaviyo",
		Title:     "Klaviyo",
		Secret:    "the secret that the webhook was made with",
		OwnSecret: true,
		Verify:    []spec.Verify{headerMAC("Klaviyo-Signature", "", spec.Hex, "body", "header:Klaviyo-Timestamp")},
		Split:     &spec.Split{Items: []spec.Value{"json:$.data[*]"}},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"item:$.topic", "item:$.external_id"}},
			Subscription: []spec.Value{"header:Klaviyo-Webhook-Id"},
			Type:         []spec.Value{"item:$.topic"},
			Resource:     []spec.Value{"item:$.external_id"},
		},
		Headers: []string{"Klaviyo-*"},
		Example: spec.Template{
			ID:   "4vRpBT",
			Type: "event:klaviyo.email_delivered",
			Header: map[string]string{
				"Klaviyo-Timestamp":  "Tue, 03 Feb 2026 04:05:06 GMT",
				"Klaviyo-Webhook-Id": "01HEXAMPLE0000000000001001",
			},
			Body: klaviyoExample,
		},
		Sources: []spec.Source{
			stated("headers, batches, key is the event's id", "developers.klaviyo.com/en/docs/system-webhooks"),
			reported("signature: body and time with nothing between", "hookdeck/webhook-skills: klaviyo-webhooks; webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("the secret is the receiver's choice", "hookdeck/webhook-skills: klaviyo-webhooks"),
			notSourced("whether the key is the same in a retry"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"Klaviyo-Webhook-Id is that of the subscription, the same for all requests: as the key it loses everything after the first",
			"webhook actions of flows send what you write into them, unsigned; they are refused",
			"body and time are signed with nothing between them, so that a body which is not JSON is refused",
		},
	}
}

const klaviyoExample = `{
  "data": [
    {
      "topic": "{{type}}",
      "external_id": "{{id}}",
      "payload": {
        "data": {
          "type": "event",
          "id": "{{id}}",
          "attributes": {"timestamp": {{unix}}, "datetime": "{{time}}", "event_properties": {"Subject": "Order 1001"}}
        }
      }
    }
  ],
  "meta": {"timestamp": "{{time}}", "klaviyo_webhook_id": "01HEXAMPLE0000000000001001", "version": "2025-10-15"}
}`
