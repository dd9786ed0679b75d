package provider

import "github.com/hookonce/hookonce/provider/spec"

// Typeform returns the provider for Typeform webhooks. The secrets are those of the webhook. It panics
// if a secret is missing or empty.
//
// The key is the event_id, which the signature covers. No time is signed.
func Typeform(secrets ...string) *spec.Provider {
	return must(spec.New(typeformSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func typeformSpec() spec.Spec {
	return spec.Spec{
		Name:      "typeform",
		Title:     "Typeform",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("Typeform-Signature", "sha256=", spec.Base64)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event_id"}},
			Type:     []spec.Value{"json:$.event_type"},
			Time:     []spec.Moment{at("json:$.form_response.submitted_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.form_response.token"},
			Tenant:   []spec.Value{"json:$.form_response.form_id"},
		},
		Answer:  spec.Answer{Deadline: 30 * second},
		Limits:  spec.Limits{Retry: 11 * hour}, // the delays add up to 10 h 35 min
		Headers: []string{"Typeform-*"},
		Example: spec.Template{ID: "01GXVNB5ZY4CBB2WS2QRZTEMCQ", Type: "form_response", Object: "a3a12ec67a1365927098a606107fac15", Body: typeformExample},
		Sources: []spec.Source{
			stated("deadline, retries, what disables the webhook", "typeform.com/developers/webhooks"),
			reported("signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts, quoting Typeform"),
			reported("event_id is unique", "Typeform documentation, example payload, quoted in the Azure Connectors SDK"),
			reported("the secret is the receiver's choice", "typeform.com/developers/webhooks"),
			notSourced("whether a retry keeps event_id"),
		},
		Traps: []string{
			"an answer of 404 or 410 disables the webhook at once: a route that is missing during a deployment costs the subscription",
			"a day of nothing but failures, more than 300 of them, disables the webhook",
			"the token is that of the submission: a partial response and the whole one share it",
		},
	}
}

const typeformExample = `{
  "event_id": "{{id}}",
  "event_type": "{{type}}",
  "form_response": {
    "form_id": "lT4Example",
    "token": "{{object}}",
    "landed_at": "{{time}}",
    "submitted_at": "{{time}}",
    "hidden": {"order": "1001"},
    "definition": {
      "id": "lT4Example",
      "title": "How was your order?",
      "fields": [{"id": "DlXFexample", "ref": "rating", "type": "opinion_scale", "title": "How many points?"}]
    },
    "answers": [
      {"type": "number", "number": 9, "field": {"id": "DlXFexample", "type": "opinion_scale", "ref": "rating"}}
    ]
  }
}`
