package provider

import "github.com/hookonce/hookonce/provider/spec"

// Shopify returns the provider for Shopify webhooks. The secrets are the client secrets of the app.
// It panics if a secret is missing or empty.
//
// The key is made of shop, topic, X-Shopify-Event-Id, a digest of the body and, where there is one, the name
// of the subscription: one action of a merchant makes events that share the event id. Without an event id,
// or where the body is no JSON, it is made of shop, topic and X-Shopify-Webhook-Id. The signature covers the
// body only, so the key is not signed, and no time is signed.
func Shopify(secrets ...string) *spec.Provider {
	return must(spec.New(shopifySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func shopifySpec() spec.Spec {
	return spec.Spec{
		Name:   "shopify",
		Title:  "Shopify",
		Secret: "the app's client secret",
		Verify: []spec.Verify{
			bodyMAC("X-Shopify-Hmac-Sha256", "", spec.Base64),
			bodyMAC("Shopify-Hmac-Sha256", "", spec.Base64), // the newer Events
		},
		Event: spec.Extract{
			Key: [][]spec.Value{
				// The event id is that of the merchant's action, which changes several objects; retries carry the body of the first attempt.
				{"header:X-Shopify-Shop-Domain", "header:X-Shopify-Topic", "header:X-Shopify-Event-Id", "hash:json:$", "header:X-Shopify-Name?"},
				{"const:webhook", "header:X-Shopify-Shop-Domain", "header:X-Shopify-Topic", "header:X-Shopify-Webhook-Id"},
				{"const:webhook", "header:Shopify-Shop-Domain", "header:Shopify-Topic", "header:Shopify-Webhook-Id"},
			},
			Type:     []spec.Value{"header:X-Shopify-Topic", "header:Shopify-Topic"},
			Action:   []spec.Value{"header:X-Shopify-Sub-Topic", "header:Shopify-Sub-Topic"},
			Time:     []spec.Moment{at("header:X-Shopify-Triggered-At", spec.RFC3339), at("header:Shopify-Triggered-At", spec.RFC3339)},
			Resource: []spec.Value{"json:$.admin_graphql_api_id", "json:$.id"},
			Tenant:   []spec.Value{"header:X-Shopify-Shop-Domain", "header:Shopify-Shop-Domain"},
		},
		Dedup:  spec.Dedup{Retry: spec.Stable},
		Order:  &spec.Order{By: "header:X-Shopify-Triggered-At", Unit: spec.RFC3339, Advisory: true},
		Answer: spec.Answer{Deadline: 5 * second},
		Limits: spec.Limits{Retry: 4 * hour}, // 8 attempts
		// https://shopify.dev/docs/apps/build/webhooks/subscribe#headers
		Headers: []string{"X-Shopify-Api-Version", "X-Shopify-Test", "X-Shopify-Order-Id", "X-Shopify-Product-Id", "Shopify-Api-Version", "Shopify-Event-Id", "Shopify-Name", "X-Shopify-*", "Shopify-*"},
		Example: spec.Template{
			ID:     "98880550-7158-44d4-b7cd-2c97c8a091b5",
			Type:   "orders/create",
			Object: "820982911946154508",
			Header: map[string]string{
				"X-Shopify-Api-Version":  "2025-10",
				"X-Shopify-Event-Id":     "{{id}}",
				"X-Shopify-Shop-Domain":  "example.myshopify.com",
				"X-Shopify-Topic":        "{{type}}",
				"X-Shopify-Triggered-At": "{{time}}",
				"X-Shopify-Webhook-Id":   "{{id}}",
			},
			Body: shopifyExample,
		},
		Sources: []spec.Source{
			stated("event id is what duplicates share", "shopify.dev/docs/apps/build/webhooks/ignore-duplicates"),
			stated("event id is shared by all deliveries of one action of the merchant", "shopify.dev/docs/apps/build/webhooks/delivery-structure"),
			stated("signature", "Shopify/shopify-api-js: packages/shopify-api/lib/webhooks"),
			stated("headers without X-", "Shopify/shopify-api-ruby: lib/shopify_api/webhooks/request.rb"),
			stated("retries, time of the event", "Shopify changelog, 2024-09-10"),
			reported("deadline, deletion after failures", "Shopify documentation, quoted"),
			reported("key is the same in retries", "inferred: the event id is offered for recognising duplicates, and the body is that of the first attempt"),
			reported("shop, topic, body and name in the key", "inferred: several subscriptions, topics and objects share the event id"),
		},
		Traps: []string{
			"the webhook id differs between two subscriptions to one topic: as the key it lets the copy through",
			"the event id is that of the merchant's action: as the key, even with the topic, it loses all but the first of the objects that one action changes",
			"two objects whose bodies are equal are one event: name id among the include_fields of a subscription",
			"eight failures in a row delete a subscription that was made through the Admin API",
			"retries carry the original payload: an older state may arrive after a newer one",
			"webhooks made in the store's notification settings are signed with another key",
			"no header is signed: shop, topic and ids can be changed by whoever replays a captured request",
		},
	}
}

const shopifyExample = `{
  "id": {{object}},
  "admin_graphql_api_id": "gid://shopify/Order/{{object}}",
  "confirmed": true,
  "created_at": "{{time}}",
  "currency": "EUR",
  "email": "customer@example.com",
  "financial_status": "paid",
  "line_items": [
    {"id": 866550311766439020, "name": "Hook, brass", "price": "21.00", "quantity": 2, "sku": "HOOK-BRASS"}
  ],
  "name": "#1001",
  "order_number": 1001,
  "processed_at": "{{time}}",
  "subtotal_price": "42.00",
  "test": true,
  "total_price": "42.00",
  "total_tax": "7.00",
  "updated_at": "{{time}}"
}`
