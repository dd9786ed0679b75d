package provider

import "github.com/hookonce/hookonce/provider/spec"

// Mollie returns the provider for Mollie's signed webhooks, the next generation. The secrets are the
// signing secrets of the webhook. It panics if a secret is missing or empty. The webhooks that are set
// on a payment carry no signature: see [MollieClassic].
//
// The key is the id of the event, which the signature covers. No time is signed.
func Mollie(secrets ...string) *spec.Provider {
	return must(spec.New(mollieSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func mollieSpec() spec.Spec {
	v := bodyMAC("X-Mollie-Signature", "sha256=", spec.Hex)
	v.Signature.Repeated = true // one for each secret, while it is rotated
	return spec.Spec{
		Name:   "mollie",
		Title:  "Mollie",
		Secret: "the webhook's signing secret",
		Verify: []spec.Verify{v},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.createdAt", spec.RFC3339)},
			Resource: []spec.Value{"json:$.entityId"},
		},
		Headers: []string{"X-Mollie-*"},
		Example: spec.Template{ID: "event_GvJ8WHrp5isUdRub9CJyH", Type: "payment-link.paid", Object: "pl_Example0001", Body: mollieExample},
		Sources: []spec.Source{
			stated("signature, its repetition, fields", "mollie/mollie-api-php: src/Webhooks"),
			notSourced("retries"),
		},
		Traps: []string{
			"a request without a signature is one of the classic webhooks, and not authentic: it belongs to another source",
		},
	}
}

const mollieExample = `{
  "resource": "event",
  "id": "{{id}}",
  "type": "{{type}}",
  "entityId": "{{object}}",
  "createdAt": "{{time}}",
  "_embedded": {
    "entity": {
      "resource": "payment-link",
      "id": "{{object}}",
      "mode": "test",
      "description": "Order 1001",
      "amount": {"currency": "EUR", "value": "42.00"},
      "archived": false,
      "redirectUrl": "https://shop.example.com/thanks",
      "createdAt": "{{time}}",
      "paidAt": "{{time}}"
    }
  },
  "_links": {
    "self": {"href": "https://api.example.com/v2/events/example", "type": "application/hal+json"}
  }
}`
