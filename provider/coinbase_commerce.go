package provider

import "github.com/hookonce/hookonce/provider/spec"

// CoinbaseCommerce returns the provider for Coinbase Commerce webhooks. That product was switched off: it is here for
// events that were kept, and for servers that still speak its way. What took its place signs by another scheme, see
// [Coinbase]. The secrets are the webhook's shared secrets. It panics if a secret is missing or empty.
//
// The key is event.id, which the signature covers; the id beside it is that of the attempt. No time is
// signed.
func CoinbaseCommerce(secrets ...string) *spec.Provider {
	return must(spec.New(coinbaseCommerceSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func coinbaseCommerceSpec() spec.Spec {
	return spec.Spec{
		Name:   "coinbase-commerce",
		Title:  "Coinbase Commerce (switched off)",
		Secret: "the webhook's shared secret",
		Verify: []spec.Verify{bodyMAC("X-CC-Webhook-Signature", "", spec.Hex)},
		Event: spec.Extract{
			Key:       [][]spec.Value{{"json:$.event.id"}},
			AttemptID: []spec.Value{"json:$.id"},
			Type:      []spec.Value{"json:$.event.type"},
			Time:      []spec.Moment{at("json:$.event.created_at", spec.RFC3339)},
			Resource:  []spec.Value{"json:$.event.data.code"},
			Attempt:   []spec.Value{"json:$.attempt_number"},
		},
		// id, scheduled_for and attempt_number are about the attempt.
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.event"}, Retry: spec.Stable},
		Answer:  spec.Answer{Status: 200}, // the only one that is documented
		Limits:  spec.Limits{Retry: 3 * day},
		Headers: []string{"X-CC-*"},
		Example: spec.Template{ID: "24934862-d980-46cb-9402-43c81b0cdba6", Type: "charge:confirmed", Object: "66BEOV2A", Body: coinbaseCommerceExample},
		Sources: []spec.Source{
			stated("signature, fields", "coinbase/coinbase-commerce-node: lib/Webhook.js, test/testWebhook.spec.js"),
			stated("id is the attempt, retries, answer", "docs.cloud.coinbase.com/commerce/docs/webhooks"),
			stated("newer products sign in X-Hook0-Signature", "docs.cdp.coinbase.com/webhooks/verify-signatures"),
			reported("it was switched off", "OpenRouter documentation, Crypto API: Coinbase withdrew it for Coinbase Business"),
			notSourced("sending an event again by hand"),
		},
		Traps: []string{
			"it was switched off: the newer products of Coinbase sign in X-Hook0-Signature and are the provider coinbase; requests of theirs are rejected here",
			"the id on top is the number of the attempt, 1 for nearly every event: as the key it loses events; and 2 on a retry, so it lets copies through",
			"the body differs between attempts: a hash of it as the key lets retries through",
			"only the status 200 is documented as success",
		},
	}
}

// The outer id is a number: that of the attempt.
const coinbaseCommerceExample = `{
  "id": {{attempt}},
  "scheduled_for": "{{time}}",
  "attempt_number": {{attempt}},
  "event": {
    "id": "{{id}}",
    "resource": "event",
    "type": "{{type}}",
    "api_version": "2018-03-22",
    "created_at": "{{time}}",
    "data": {
      "code": "{{object}}",
      "name": "Order 1001",
      "description": "Hooks, brass",
      "hosted_url": "https://commerce.example.com/charges/{{object}}",
      "created_at": "{{time}}",
      "pricing_type": "fixed_price",
      "pricing": {"local": {"amount": "42.00", "currency": "EUR"}},
      "metadata": {"order": "1001"},
      "timeline": [{"time": "{{time}}", "status": "NEW"}, {"time": "{{time}}", "status": "COMPLETED"}],
      "payments": []
    }
  }
}`
