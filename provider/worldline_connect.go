package provider

import "github.com/hookonce/hookonce/provider/spec"

// WorldlineConnect returns the provider for the webhooks of Worldline Connect. The secrets are those of the webhooks keys;
// give all that are in use, because the header that names one is not signed. It panics if a secret is missing or empty.
// The GET that verifies the endpoint is answered.
//
// The key is the event's id, which the signature covers. No time is signed.
func WorldlineConnect(secrets ...string) *spec.Provider {
	return must(spec.New(worldlineConnectSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func worldlineConnectSpec() spec.Spec {
	return spec.Spec{
		Name:   "worldline-connect",
		Title:  "Worldline Connect",
		Secret: "the secret of the webhooks key",
		Verify: []spec.Verify{bodyMAC("X-GCS-Signature", "", spec.Base64)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.type"},
			Resource: []spec.Value{"json:$.payment.id", "json:$.refund.id", "json:$.payout.id", "json:$.token.id", "json:$.dispute.id"},
			Tenant:   []spec.Value{"json:$.merchantId"},
		},
		Dedup:      spec.Dedup{Retry: spec.Stable},
		Handshakes: []spec.Handshake{{Method: "GET", Echo: "header:X-GCS-Webhooks-Endpoint-Verification"}},
		Headers:    []string{"X-GCS-KeyId", "X-GCS-*"},
		Example: spec.Template{
			ID:     "97a4fcdf-9a08-4a59-a0c0-69bfd7e1d59d",
			Type:   "payment.captured",
			Object: "000000850010000188180000200001",
			Header: map[string]string{"X-GCS-KeyId": "fake-key-id"},
			Body:   worldlineConnectExample,
		},
		Sources: []spec.Source{
			stated("signature", "connect-sdk-nodejs on npm: lib/webhooks/validation.js"),
			stated("key recognises copies, fields", "docs.connect.worldline-solutions.com, Webhooks event structure"),
			stated("GET, and what is echoed", "docs.connect.worldline-solutions.com, Webhooks"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the payment's id as the key loses every later state of it",
			"created is written with a zone without a colon (+0200), which is no RFC 3339: no time is taken from it",
			"X-GCS-KeyId is not signed: all secrets are tried",
			"the endpoint can only be registered while a GET is answered with the text of X-GCS-Webhooks-Endpoint-Verification",
		},
	}
}

const worldlineConnectExample = `{
  "apiVersion": "v1",
  "id": "{{id}}",
  "created": "2026-02-03T04:05:06.000+0000",
  "merchantId": "1001",
  "type": "{{type}}",
  "payment": {
    "id": "{{object}}",
    "paymentOutput": {
      "amountOfMoney": {"amount": 4200, "currencyCode": "EUR"},
      "references": {"merchantReference": "order-1001"}
    },
    "status": "CAPTURED",
    "statusOutput": {"isCancellable": false, "statusCode": 800}
  }
}`
