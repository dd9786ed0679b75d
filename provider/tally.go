package provider

import "github.com/hookonce/hookonce/provider/spec"

// Tally returns the provider for the webhooks of Tally's forms. The secrets are the signing secrets of the webhook. It panics
// if a secret is missing or empty.
//
// The key is the id of the event, which the signature covers. No time is signed by itself.
func Tally(secrets ...string) *spec.Provider {
	return must(spec.New(tallySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func tallySpec() spec.Spec {
	return spec.Spec{
		Name:   "tally",
		Title:  "Tally",
		Secret: "the webhook's signing secret",
		Verify: []spec.Verify{bodyMAC("Tally-Signature", "", spec.Base64)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.eventId"}},
			Type:     []spec.Value{"json:$.eventType"},
			Time:     []spec.Moment{at("json:$.createdAt", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.submissionId", "json:$.data.responseId"},
			Tenant:   []spec.Value{"json:$.data.formId"},
		},
		Dedup:   spec.Dedup{Manual: spec.Stable},
		Answer:  spec.Answer{Deadline: 10 * second},
		Limits:  spec.Limits{Retry: 32 * hour}, // after 5 and 30 minutes, 1, 6 and 24 hours
		Headers: []string{"Tally-*"},
		Example: spec.Template{ID: "a4cb511e-d513-4fa5-baee-b815d718dfd1", Type: "FORM_RESPONSE", Object: "2wgx4n", Body: tallyExample},
		Sources: []spec.Source{
			stated("signature's header, deadline, answer", "tally.so/help/webhooks"),
			stated("retries; what is sent again by hand is asked for by the id of the event", "developers.tally.so/api-reference/endpoint/webhooks/events/retry"),
			reported("encoding of the signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts, quoting the sender"),
			reported("fields", "Tally documentation, quoted by receivers"),
			notSourced("whether a retry keeps eventId"),
		},
		Traps: []string{
			"a submission and its later edition have ids of their own: submissionId as the key loses the edition",
			"Tally's own sample verifies JSON that was parsed and written again: the bytes as received are what is signed",
			"the last retry is a day after the one before: a cache of hours lets it through",
			"a webhook without a signing secret is not signed, and is refused",
		},
	}
}

const tallyExample = `{
  "eventId": "{{id}}",
  "eventType": "{{type}}",
  "createdAt": "{{time}}",
  "data": {
    "responseId": "{{object}}",
    "submissionId": "{{object}}",
    "respondentId": "dwQKYm",
    "formId": "VwbNEw",
    "formName": "Contact",
    "createdAt": "{{time}}",
    "fields": [{"key": "question_mVGEg3", "label": "Your question", "type": "INPUT_TEXT", "value": "Is order 1001 paid?"}]
  }
}`
