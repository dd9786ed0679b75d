package provider

import "github.com/hookonce/hookonce/provider/spec"

// Airtable returns the provider for Airtable's webhooks. The secrets are the macSecretBase64 values that Airtable showed
// when the webhook was created. It panics if one is missing or not base64.
//
// A request only says that a base has changes for a webhook. Nothing is ever dropped as a copy: the requests of one
// webhook coalesce while one waits to be handled. Handlers list the webhook's payloads from the cursor on that they kept.
// No time is signed by itself; the one in the body is.
func Airtable(secrets ...string) *spec.Provider {
	return must(spec.New(airtableSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func airtableSpec() spec.Spec {
	v := bodyMAC("X-Airtable-Content-MAC", "hmac-sha256=", spec.Hex)
	v.Key = spec.KeyBase64
	return spec.Spec{
		Name:   "airtable",
		Title:  "Airtable",
		Secret: "the webhook's macSecretBase64, shown when it is created",
		Verify: []spec.Verify{v},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.base.id", "json:$.webhook.id"}},
			Time:     []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.base.id"},
		},
		Dedup:   spec.Dedup{OnRepeat: spec.Coalesce},
		Answer:  spec.Answer{Deadline: 25 * second},
		Limits:  spec.Limits{Retry: day}, // 13 retries with growing pauses
		Headers: []string{"X-Airtable-*"},
		Example: spec.Template{ID: "ach00000000000001", Object: "app00000000000001", Body: airtableExample},
		Sources: []spec.Source{
			stated("a request is a ping with these fields, the answer is 200 or 204 with an empty body", "airtable.com/developers/web/api/webhooks-overview"),
			stated("the secret is shown once", "airtable.com/developers/web/api/create-a-webhook"),
			reported("signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts, quoting the sender"),
			reported("retries, deadline", "Airtable documentation, quoted"),
		},
		Traps: []string{
			"a request is a ping without a change in it: dropping repetitions loses all changes after the first, and handling one without listing the payloads handles nothing",
			"payloads are listed by a cursor that has to be kept with the effect: several pings may stand for one payload, and one ping for several",
			"the answer has to have an empty body",
			"a webhook that nobody refreshes ends after seven days, and payloads are kept for as long",
			"after its last retry Airtable turns the notifications of the webhook off until somebody turns them on",
		},
	}
}

const airtableExample = `{
  "base": {"id": "{{object}}"},
  "webhook": {"id": "{{id}}"},
  "timestamp": "{{time}}"
}`
