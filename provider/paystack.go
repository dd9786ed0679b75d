package provider

import "github.com/hookonce/hookonce/provider/spec"

// Paystack returns the provider for Paystack's webhooks. The secrets are secret keys of the API, which begin with sk_;
// events of the test mode are signed with that of the test mode. It panics if a secret is missing or empty.
//
// Events have no id. The key is made of the event's name, the id, reference or code of what it is about, and a digest
// of that, all of which the signature covers. No time is signed.
func Paystack(secrets ...string) *spec.Provider {
	return must(spec.New(paystackSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func paystackSpec() spec.Spec {
	verify := bodyMAC("X-Paystack-Signature", "", spec.Hex)
	verify.Hash = spec.SHA512
	return spec.Spec{
		Name:   "paystack",
		Title:  "Paystack",
		Secret: "the secret key of the API, which begins with sk_live_ or sk_test_",
		Verify: []spec.Verify{verify},
		Event: spec.Extract{
			// What names none of these passes through unkeyed: two refunds of one amount that wait are the same in every byte.
			Key: [][]spec.Value{
				{"json:$.event", "json:$.data.id", "hash:json:$.data"},
				{"json:$.event", "json:$.data.reference", "hash:json:$.data"},
				{"json:$.event", "json:$.data.subscription_code", "hash:json:$.data"},
				{"json:$.event", "json:$.data.invoice_code", "hash:json:$.data"},
				{"json:$.event", "json:$.data.refund_reference", "hash:json:$.data"},
			},
			Type: []spec.Value{"json:$.event"},
			Resource: []spec.Value{
				"json:$.data.reference", "json:$.data.transaction_reference", "json:$.data.invoice_code", "json:$.data.subscription_code", "json:$.data.id",
			},
		},
		Limits:  spec.Limits{Retry: 3*day + 12*minute}, // every 3 minutes four times, then hourly
		Headers: []string{"X-Paystack-*"},
		Example: spec.Template{ID: "4099260516", Type: "charge.success", Object: "re4lyvq3s3", Body: paystackExample},
		Sources: []spec.Source{
			stated("200 accepts", "paystack.com/docs/payments/webhooks"),
			stated("fields", "PaystackOSS/doc-code-snippets: dist/doc/payments/webhooks/events.js"),
			reported("signature", "Paystack documentation, Webhooks, quoted; webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("retries", "Paystack documentation, Webhooks, quoted"),
			reported("key", "inferred: the body has no id of the event, and every event is a state of what it is about"),
			notSourced("deadline in live mode; it is 30 seconds in test mode"),
			notSourced("whether the data are the same in every attempt"),
		},
		Traps: []string{
			"there is no id of the event: the reference alone as the key loses every later event about the transaction",
			"the secret is the key of the API: events of test and live mode are signed with different ones",
			"a refund has no id before it has a reference: those events pass through unkeyed, because two refunds of one amount look the same",
			"a second reminder of a dispute that says nothing new is taken for a copy",
			"only the status 200 is documented as success",
		},
	}
}

const paystackExample = `{
  "event": "{{type}}",
  "data": {
    "id": {{id}},
    "domain": "test",
    "status": "success",
    "reference": "{{object}}",
    "amount": 420000,
    "currency": "NGN",
    "channel": "card",
    "gateway_response": "Approved",
    "paid_at": "{{time}}",
    "created_at": "{{time}}",
    "metadata": {"order": "1001"},
    "fees": 6300,
    "customer": {"id": 1001, "email": "customer@example.com", "customer_code": "CUS_example1001"},
    "authorization": {"authorization_code": "AUTH_example", "last4": "4081", "brand": "visa", "reusable": true}
  }
}`
