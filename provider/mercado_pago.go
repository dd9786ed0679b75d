package provider

import "github.com/hookonce/hookonce/provider/spec"

// MercadoPago returns the provider for Mercado Pago's webhooks; its older IPN and the notifications of QR codes are not
// signed and are refused. The secrets are the secret signatures of the application. It panics if a secret is missing or
// empty.
//
// The signature covers data.id in the query, the header X-Request-Id and a time, and not the body: whoever has captured
// one request can make others. The key is the type and id of the notification, not signed. The signed time is not checked
// against a tolerance unless [spec.Settings.Tolerance] says so.
func MercadoPago(secrets ...string) *spec.Provider {
	return must(spec.New(mercadoPagoSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func mercadoPagoSpec() spec.Spec {
	return spec.Spec{
		Name:   "mercado-pago",
		Title:  "Mercado Pago",
		Secret: "the secret signature of the application, under Webhooks",
		// What is absent is left out of what is signed. The documentation has the id in lower case, and the sender's own library
		// takes it as it is.
		Verify: []spec.Verify{
			mercadoPagoVerify("const:id:", "lower:query:data.id", "const:;request-id:", "header:X-Request-Id", "const:;ts:", "ts", "const:;"),
			mercadoPagoVerify("const:id:", "query:data.id", "const:;request-id:", "header:X-Request-Id", "const:;ts:", "ts", "const:;"),
			mercadoPagoVerify("const:id:", "lower:query:data.id", "const:;ts:", "ts", "const:;"),
			mercadoPagoVerify("const:request-id:", "header:X-Request-Id", "const:;ts:", "ts", "const:;"),
		},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.type", "json:$.id"}},
			Type:     []spec.Value{"json:$.action", "json:$.type"},
			Time:     []spec.Moment{at("json:$.date_created", spec.RFC3339)},
			Resource: []spec.Value{"query:data.id", "json:$.data.id"}, // that of the query is signed
			Tenant:   []spec.Value{"json:$.user_id"},
		},
		Headers: []string{"X-Signature", "X-Request-Id"},
		Example: spec.Template{
			ID:     "112233445566",
			Type:   "payment.updated",
			Object: "1234567890",
			Header: map[string]string{"X-Request-Id": "f7b2a1d4-0b1c-4ec2-8aaa-9e8b1d2f3c4d"},
			Body:   mercadoPagoExample,
		},
		Sources: []spec.Source{
			stated("signature, what is absent is left out, QR codes are not signed", "mercadopago on npm: dist/utils/webhook, WebhookSignatureValidator"),
			reported("the id is signed in lower case", "Mercado Pago documentation, Webhooks, quoted; webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("fields", "api-evangelist/mercado-pago: examples/mercado-pago-webhook-payment-example.json"),
			reported("key", "inferred: id is that of the notification, and type says of what"),
			notSourced("whether the key is the same in a retry"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the body is not signed: take the id from it as a hint, and ask Mercado Pago for the payment before anything is believed",
			"data.id is that of the payment, the same for all its changes: as the key it loses everything after the first",
			"the query of the URL is signed: a proxy that drops it makes every request fail",
			"a notification without an id of its own, as some products send, passes through unkeyed",
			"many senders have a header X-Signature: it says nothing about who sends",
		},
	}
}

// mercadoPagoVerify signs those parts, in a list of key and value.
func mercadoPagoVerify(sign ...spec.Value) spec.Verify {
	v := timed(headerMAC("X-Signature", "v1=", spec.Hex, sign...), "part:ts=", spec.Seconds, 0)
	v.Signature.Split, v.Covers = ",", spec.CoversFields
	return v
}

const mercadoPagoExample = `{
  "id": {{id}},
  "live_mode": false,
  "type": "payment",
  "date_created": "{{time}}",
  "user_id": "987654321",
  "api_version": "v1",
  "action": "{{type}}",
  "data": {"id": "{{object}}"}
}`
