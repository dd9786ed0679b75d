package provider

import "github.com/hookonce/hookonce/provider/spec"

// FlutterwaveLegacy returns the provider for the webhooks of Flutterwave's API version 3, which carry the secret itself in
// the header verif-hash. For version 4 see [Flutterwave]. The secrets are the secret hashes of the dashboard. It panics if a
// secret is missing or empty.
//
// The key is made of the event's name, the transaction's id and status, and a digest of the data. Nothing is signed.
func FlutterwaveLegacy(secrets ...string) *spec.Provider {
	return must(spec.New(flutterwaveLegacySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func flutterwaveLegacySpec() spec.Spec {
	return spec.Spec{
		Name:      "flutterwave-legacy",
		Title:     "Flutterwave (version 3)",
		Secret:    "the secret hash, which you choose in the dashboard under Settings, Webhooks",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:Verif-Hash"}}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event", "json:$.data.id", "json:$.data.status", "hash:json:$.data"}},
			Type:     []spec.Value{"json:$.event"},
			Resource: []spec.Value{"json:$.data.tx_ref", "json:$.data.reference", "json:$.data.id"},
		},
		Headers: []string{"Flutterwave-*"},
		Example: spec.Template{ID: "285959875", Type: "charge.completed", Object: "order-1001", Body: flutterwaveLegacyExample},
		Sources: []spec.Source{
			stated("verif-hash is the secret hash, which is the receiver's choice", "developer.flutterwave.com/docs/webhooks; flutterwave.com/eg/support/integrations/what-is-a-secret-hash"),
			reported("fields", "integrations that log what they receive"),
			reported("key", "inferred: what it is about, its state and its content"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"verif-hash is the secret itself and binds nothing: ask Flutterwave for the transaction before money moves",
			"tx_ref or the id of a transaction as the key loses every later event about it",
			"keep the secret hash long and random: it is sent along with every webhook",
		},
	}
}

const flutterwaveLegacyExample = `{
  "event": "{{type}}",
  "data": {
    "id": {{id}},
    "tx_ref": "{{object}}",
    "flw_ref": "EXAMPLE/FLW270177170",
    "amount": 42,
    "currency": "NGN",
    "charged_amount": 42,
    "app_fee": 0.59,
    "processor_response": "Approved",
    "status": "successful",
    "payment_type": "card",
    "created_at": "{{time}}",
    "account_id": 1001,
    "customer": {"id": 1001, "name": "Example", "email": "customer@example.com", "created_at": "{{time}}"}
  }
}`
