package provider

import "github.com/hookonce/hookonce/provider/spec"

// Cashfree returns the provider for the webhooks of Cashfree's payment gateway. The secrets are client secrets of the API.
// It panics if a secret is missing or empty.
//
// Events have no id in their body. The key is made of the type, the payment or refund, and its status, all of which the
// signature covers; other events pass through unkeyed. A time is signed, but not checked against a tolerance unless
// [spec.Settings.Tolerance] says so: Cashfree states none.
func Cashfree(secrets ...string) *spec.Provider {
	return must(spec.New(cashfreeSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func cashfreeSpec() spec.Spec {
	return spec.Spec{
		Name:   "cashfree",
		Title:  "Cashfree Payments",
		Secret: "the client secret of the API",
		Verify: []spec.Verify{timed(headerMAC("X-Webhook-Signature", "", spec.Base64, "ts", "body"), "header:X-Webhook-Timestamp", spec.Millis, 0)},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.type", "json:$.data.payment.cf_payment_id", "json:$.data.payment.payment_status"},
				{"json:$.type", "json:$.data.refund.cf_refund_id", "json:$.data.refund.refund_status"},
			},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.event_time", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.order.order_id", "json:$.data.refund.order_id"},
		},
		// The body also says when the event was made.
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.type", "json:$.data"}},
		Limits:  spec.Limits{Retry: 42 * minute}, // after 2, 10 and 30 minutes, unless the endpoint has a policy of its own
		Headers: []string{"X-Webhook-*"},
		Example: spec.Template{ID: "1453002795", Type: "PAYMENT_SUCCESS_WEBHOOK", Object: "order_1001", Body: cashfreeExample},
		Sources: []spec.Source{
			stated("signature", "cashfree-pg on npm: api.js, PGVerifyWebhookSignature"),
			stated("unit of the time", "cashfree.com/docs/payments/online/webhooks/signature-verification"),
			stated("retries, delivery at least once, only 200 accepts", "cashfree.com/docs/api-reference/webhooks/reliability-and-operations"),
			stated("key by cf_payment_id, of which every try to pay has its own", "cashfree.com/docs/api-reference/payments/latest/webhooks/idempotency"),
			reported("refunds by cf_refund_id and status", "inferred: a refund is announced for each of its states"),
			notSourced("deadline"),
		},
		Traps: []string{
			"an order has a cf_payment_id for every try to pay: order_id as the key loses the success after a failure",
			"cf_payment_id without the type loses the success after a state that was not final",
			"an endpoint can have another policy of retries than the default: keep keys for as long as yours",
			"settlements, disputes and subscriptions pass through unkeyed",
			"the documentation writes a dot between time and body, which is not signed",
		},
	}
}

const cashfreeExample = `{
  "data": {
    "order": {"order_id": "{{object}}", "order_amount": 42.00, "order_currency": "INR", "order_tags": null},
    "payment": {
      "cf_payment_id": {{id}},
      "payment_status": "SUCCESS",
      "payment_amount": 42.00,
      "payment_currency": "INR",
      "payment_message": "Transaction successful",
      "payment_time": "{{time}}",
      "bank_reference": "234928698581",
      "payment_group": "upi"
    },
    "customer_details": {"customer_name": "Example", "customer_id": "1001", "customer_email": "customer@example.com", "customer_phone": "9999999999"}
  },
  "event_time": "{{time}}",
  "type": "{{type}}"
}`
