package provider

import "github.com/hookonce/hookonce/provider/spec"

// WooCommerce returns the provider for WooCommerce's webhooks. The secrets are those of the webhook. It
// panics if a secret is missing or empty. The ping that WooCommerce sends when a webhook is saved, which
// is not signed, is answered.
//
// The key is the shop, the topic, the object's id, its time of change and the content; the signature
// covers the last three. Deletions carry no time and pass through unkeyed. No time of the attempt is
// signed.
func WooCommerce(secrets ...string) *spec.Provider {
	return must(spec.New(wooCommerceSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func wooCommerceSpec() spec.Spec {
	return spec.Spec{
		Name:      "woocommerce",
		Title:     "WooCommerce",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Wc-Webhook-Signature", "", spec.Base64)},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"header:X-Wc-Webhook-Source", "header:X-Wc-Webhook-Topic", "json:$.id", "json:$.date_modified_gmt"}},
			AttemptID:    []spec.Value{"header:X-Wc-Webhook-Delivery-Id"},
			Subscription: []spec.Value{"header:X-Wc-Webhook-Id"},
			Type:         []spec.Value{"header:X-Wc-Webhook-Topic"},
			Resource:     []spec.Value{"json:$.id"},
			Tenant:       []spec.Value{"header:X-Wc-Webhook-Source"},
		},
		// The time of change has seconds, and the content is that of the moment of sending.
		Dedup:  spec.Dedup{OnRepeat: spec.KeepLatest, Retry: spec.NotSent},
		Answer: spec.Answer{Deadline: minute},
		Handshakes: []spec.Handshake{{
			When:     []spec.Match{{Value: "form:webhook_id"}},
			Unsigned: true,
		}},
		// woocommerce/woocommerce: includes/class-wc-webhook.php
		Headers: []string{"X-Wc-Webhook-Resource", "X-Wc-Webhook-Event", "X-Wc-Webhook-*"},
		Example: spec.Template{
			ID:   "1138922",
			Type: "order.updated",
			Header: map[string]string{
				"X-Wc-Webhook-Delivery-Id": "00000000000000000000000000001001",
				"X-Wc-Webhook-Event":       "{{action}}",
				"X-Wc-Webhook-Id":          "1",
				"X-Wc-Webhook-Resource":    "{{event}}",
				"X-Wc-Webhook-Source":      "https://shop.example/",
				"X-Wc-Webhook-Topic":       "{{type}}",
			},
			Body: wooCommerceExample,
		},
		Sources: []spec.Source{
			stated("signature, headers, ping, no retries, deadline, how the delivery id is made", "woocommerce/woocommerce: plugins/woocommerce/includes/class-wc-webhook.php"),
			reported("key", "inferred: the delivery id depends on the second alone"),
			reported("the secret is the receiver's choice", "woocommerce/woocommerce: plugins/woocommerce/includes/class-wc-webhook.php; without one, one is made there"),
			notSourced("redelivery by hand"),
		},
		Traps: []string{
			"the delivery id is made of the webhook and the second: as the key it loses one of two orders of the same second, and lets a second run of the same delivery through",
			"nothing is retried: what is answered with an error is gone",
			"more than five failures in a row disable the webhook",
			"deletions carry only an id: an object that is deleted, restored and deleted again looks the same, so they pass through unkeyed",
			"the shop and the topic are not signed",
		},
	}
}

const wooCommerceExample = `{
  "id": "{{id}}",
  "status": "processing",
  "currency": "EUR",
  "date_created_gmt": "{{time}}",
  "date_modified_gmt": "{{time}}",
  "total": "42.00",
  "customer_id": 1001,
  "order_key": "wc_order_example",
  "billing": {"first_name": "Example", "email": "customer@example.com", "country": "DE"},
  "payment_method": "example",
  "line_items": [
    {"id": 1, "name": "Hook, brass", "product_id": 11, "quantity": 2, "total": "42.00", "sku": "HOOK-BRASS"}
  ],
  "number": "1001"
}`
