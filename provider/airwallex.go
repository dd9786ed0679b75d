package provider

import "github.com/hookonce/hookonce/provider/spec"

// Airwallex returns the provider for Airwallex' webhooks. The secrets are those of the webhook subscription. It panics if
// a secret is missing or empty.
//
// The key is the event's id, which the signature covers. A time is signed, but not checked against a tolerance unless
// [spec.Settings.Tolerance] says so: Airwallex states none.
func Airwallex(secrets ...string) *spec.Provider {
	return must(spec.New(airwallexSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func airwallexSpec() spec.Spec {
	return spec.Spec{
		Name:   "airwallex",
		Title:  "Airwallex",
		Secret: "the secret of the webhook subscription",
		Verify: []spec.Verify{timed(headerMAC("X-Signature", "", spec.Hex, "ts", "body"), "header:X-Timestamp", spec.Millis, 0)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.name"},
			Resource: []spec.Value{"json:$.data.object.id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Limits:  spec.Limits{Retry: 3 * day},
		Headers: []string{"X-Signature", "X-Timestamp"},
		Example: spec.Template{ID: "evt_hkdm2vq5p2k7n7ubmxs", Type: "payment_intent.succeeded", Object: "int_example1001", Body: airwallexExample},
		Sources: []spec.Source{
			stated("key is the same in retries, retries for about three days, only 200 accepts", "airwallex.com/docs/developer-tools/webhooks/webhooks-overview"),
			reported("signature, unit of the time", "hookdeck/webhook-skills: airwallex-webhooks; webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("fields", "juspay/hyperswitch: crates/hyperswitch_connectors/src/connectors/airwallex/transformers.rs"),
			notSourced("deadline"),
			notSourced("whether the key is the same when an event is sent again by hand"),
		},
		Traps: []string{
			"only the status 200 counts as success",
			"the id of the object is shared by the events about it: as the key it loses all but the first",
			"many senders have a header X-Signature: it says nothing about who sends",
		},
	}
}

const airwallexExample = `{
  "id": "{{id}}",
  "name": "{{type}}",
  "account_id": "acct_example1001",
  "created_at": "{{time}}",
  "version": "2025-02-14",
  "data": {
    "object": {
      "id": "{{object}}",
      "amount": 42.0,
      "currency": "EUR",
      "merchant_order_id": "1001",
      "status": "SUCCEEDED",
      "created_at": "{{time}}",
      "updated_at": "{{time}}"
    }
  }
}`
