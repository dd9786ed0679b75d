package provider

import "github.com/hookonce/hookonce/provider/spec"

// Squarespace returns the provider for Squarespace's webhook subscriptions. The secrets are those of the subscription, in
// hexadecimal. It panics if a secret is missing, empty or not hexadecimal.
//
// The key is the notification's id, which the signature covers. No time is signed.
func Squarespace(secrets ...string) *spec.Provider {
	return must(spec.New(squarespaceSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func squarespaceSpec() spec.Spec {
	verify := bodyMAC("Squarespace-Signature", "", spec.Hex)
	verify.Key = spec.KeyHex
	return spec.Spec{
		Name:   "squarespace",
		Title:  "Squarespace",
		Secret: "the subscription's secret, in hexadecimal, which is shown when it is made or rotated",
		Verify: []spec.Verify{verify},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.id"}},
			Subscription: []spec.Value{"json:$.subscriptionId"},
			Type:         []spec.Value{"json:$.topic"},
			Time:         []spec.Moment{at("json:$.createdOn", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.data.orderId"},
			Tenant:       []spec.Value{"json:$.websiteId"},
		},
		Headers: []string{"Squarespace-*"},
		Example: spec.Template{ID: "5c2ba184b63ed3cb411ce2b1", Type: "order.create", Object: "585d498fdee9f31a60284a37", Body: squarespaceExample},
		Sources: []spec.Source{
			stated("header, key is unique, fields, where the secret comes from", "developers.squarespace.com/webhooks/overview"),
			reported("signature, the secret is decoded", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			notSourced("whether the key is the same in a retry"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"subscriptionId is that of the subscription, the same for all notifications: as the key it loses everything after the first",
			"the order's id as the key loses every later change of it",
			"the secret is decoded from hexadecimal before it is used",
		},
	}
}

const squarespaceExample = `{
  "id": "{{id}}",
  "websiteId": "54f74f23e4b0952b4e0011c0",
  "subscriptionId": "37c1b87e-0000-4000-8000-000000001001",
  "topic": "{{type}}",
  "createdOn": "{{time}}",
  "data": {"orderId": "{{object}}"}
}`
