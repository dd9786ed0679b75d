package provider

import "github.com/hookonce/hookonce/provider/spec"

// Fintoc returns the provider for Fintoc's webhooks. The secrets are those of the webhook endpoint. It panics if a secret
// is missing or empty.
//
// The key is the event's id, which the signature covers. A time is signed, but not checked against a tolerance unless
// [spec.Settings] has one: Fintoc states neither that retries are signed anew nor for how long they go on, and replays are
// caught by their key.
func Fintoc(secrets ...string) *spec.Provider {
	return must(spec.New(fintocSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func fintocSpec() spec.Spec {
	return spec.Spec{
		Name:   "fintoc",
		Title:  "Fintoc",
		Secret: "the secret of the webhook endpoint",
		Verify: []spec.Verify{timedMAC("Fintoc-Signature", spec.Seconds, 0)},
		Event: spec.Extract{
			Key: [][]spec.Value{{"json:$.id"}},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Headers: []string{"Fintoc-*"},
		Example: spec.Template{ID: "evt_example1001example", Body: fintocExample},
		Sources: []spec.Source{
			stated("key recognises a retry", "docs.fintoc.com/docs/resources/webhooks-walkthrough/webhooks-good-practices"),
			stated("any 2xx accepts, up to 17 retries that begin after 3 seconds", "docs.fintoc.com/guides/resources/webhooks-walkthrough/webhooks-creating-guide"),
			reported("signature", "a verifier in Rust that quotes Fintoc's documentation, Validating webhooks"),
			notSourced("other fields than the id"),
			notSourced("how long the retries go on, and whether they are signed anew: no tolerance is enforced"),
			notSourced("deadline"),
		},
		Traps: []string{
			"what an event is about is read by its handler: no type is taken from it here",
			"how old a signed time may be is not checked, so that no retry is refused: a captured request can be sent again once its key is forgotten",
			"an id is to be remembered for as long as the retries go on, which is not stated: keep keys for as long as you can",
		},
	}
}

const fintocExample = `{
  "id": "{{id}}",
  "object": "event",
  "type": "payment_intent.succeeded",
  "mode": "test",
  "created_at": "{{time}}",
  "data": {
    "id": "pi_example1001example",
    "object": "payment_intent",
    "amount": 4200,
    "currency": "CLP",
    "reference_id": "1001",
    "status": "succeeded"
  }
}`
