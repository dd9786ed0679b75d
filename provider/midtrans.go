package provider

import "github.com/hookonce/hookonce/provider/spec"

// Midtrans returns the provider for Midtrans' payment notifications. The secrets are server keys of the merchant. It panics
// if a secret is missing or empty.
//
// Notifications have no id. The key is made of the order, the transaction and its status; Midtrans sends under it again
// what changed, such as a second partial refund: equal content is a copy, other content passes on. The signature covers
// order, status code and amount as one text without separators, so that the key does not count as signed. No time is
// signed.
func Midtrans(secrets ...string) *spec.Provider {
	return must(spec.New(midtransSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func midtransSpec() spec.Spec {
	return spec.Spec{
		Name:   "midtrans",
		Title:  "Midtrans",
		Secret: "the server key, which begins with Mid-server- or SB-Mid-server-",
		Verify: []spec.Verify{{
			Kind:      spec.PlainHash,
			Hash:      spec.SHA512,
			Key:       spec.KeyUTF8,
			Encoding:  spec.Hex,
			Signature: spec.Signature{In: "json:$.signature_key"},
			Sign:      []spec.Value{"json:$.order_id", "json:$.status_code", "json:$.gross_amount", "secret"},
			Covers:    spec.CoversFields,
		}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.order_id", "json:$.transaction_id", "json:$.transaction_status"}},
			Type:     []spec.Value{"json:$.transaction_status"},
			Resource: []spec.Value{"json:$.order_id"},
			Tenant:   []spec.Value{"json:$.merchant_id"},
		},
		Dedup:   spec.Dedup{OnRepeat: spec.KeepLatest},
		Headers: []string{"X-Midtrans-*"},
		Example: spec.Template{ID: "57d5293c-e65f-4a29-95e4-5959c3fa335b", Type: "settlement", Object: "order-1001", Body: midtransExample},
		Sources: []spec.Source{
			stated("signature, fields", "docs.midtrans.com/reference/partner-http-notification; docs.midtrans.com/docs/https-notification-webhooks"),
			reported("SHA-512 in hexadecimal", "Midtrans documentation, HTTP(S) notification, quoted"),
			reported("key", "inferred: a notification is a state of a transaction"),
			notSourced("retries"),
			notSourced("deadline"),
			notSourced("whether a retry has the same body"),
		},
		Traps: []string{
			"transaction_status itself is not signed: whoever holds a notification can change it, so ask Midtrans for the transaction before money moves",
			"order_id as the key loses every state after the first, such as the settlement after pending",
			"two partial refunds are one status with other content: dropping the second loses money",
			"payouts (Iris) are signed in another way and are refused",
		},
	}
}

const midtransExample = `{
  "transaction_time": "2026-02-03 11:05:06",
  "transaction_status": "{{type}}",
  "transaction_id": "{{id}}",
  "status_message": "midtrans payment notification",
  "status_code": "200",
  "signature_key": "",
  "payment_type": "bank_transfer",
  "order_id": "{{object}}",
  "merchant_id": "G1001",
  "gross_amount": "42000.00",
  "fraud_status": "accept",
  "currency": "IDR"
}`
