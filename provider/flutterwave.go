package provider

import "github.com/hookonce/hookonce/provider/spec"

// Flutterwave returns the provider for the webhooks of Flutterwave's API version 4, which are signed in the header
// flutterwave-signature. For version 3 see [FlutterwaveLegacy]. The secrets are the secret hashes of the dashboard. It
// panics if a secret is missing or empty.
//
// The key is made of the type, and the id and a digest of what it is about, all of which the signature covers. No time is
// signed.
func Flutterwave(secrets ...string) *spec.Provider {
	return must(spec.New(flutterwaveSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func flutterwaveSpec() spec.Spec {
	return spec.Spec{
		Name:      "flutterwave",
		Title:     "Flutterwave (version 4)",
		Secret:    "the secret hash, which you choose in the dashboard under Settings, Webhooks",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("Flutterwave-Signature", "", spec.Base64)},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.type", "json:$.data.id", "hash:json:$.data"},
			},
			Type:     []spec.Value{"json:$.type"},
			Resource: []spec.Value{"json:$.data.id"},
		},
		Headers: []string{"Flutterwave-*"},
		Example: spec.Template{ID: "chg_example1001", Type: "charge.completed", Body: flutterwaveExample},
		Sources: []spec.Source{
			reported("signature, fields", "Flutterwave documentation of version 4, quoted by integrations"),
			stated("the secret is the receiver's choice", "Flutterwave support, What is a secret hash"),
			reported("key", "inferred: what it is about and its content; what the id of a webhook stands for is not stated"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the id of a charge or its reference as the key loses every later event about it",
			"webhooks of version 3 carry the secret hash itself, in verif-hash: they are refused here, use flutterwave-legacy",
			"where both versions share one secret hash, it is sent along with those of version 3: give each its own",
		},
	}
}

const flutterwaveExample = `{
  "webhook_id": "wbk_example1001",
  "timestamp": {{millis}},
  "type": "{{type}}",
  "data": {
    "id": "{{id}}",
    "amount": 42.0,
    "currency": "NGN",
    "customer": {"id": "cus_example1001", "email": "customer@example.com"},
    "payment_method": {"type": "card", "id": "pmd_example1001"},
    "reference": "order-1001",
    "status": "succeeded",
    "created_datetime": "{{time}}"
  }
}`
