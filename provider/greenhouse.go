package provider

import "github.com/hookonce/hookonce/provider/spec"

// Greenhouse returns the provider for the webhooks of Greenhouse Recruiting. The secrets are the secret keys of the webhook.
// It panics if a key is missing or empty.
//
// The key is the Greenhouse-Event-ID header, which the signature does not cover. No time is signed.
func Greenhouse(secrets ...string) *spec.Provider {
	return must(spec.New(greenhouseSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func greenhouseSpec() spec.Spec {
	return spec.Spec{
		Name:      "greenhouse",
		Title:     "Greenhouse",
		Secret:    "the webhook's secret key",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("Signature", "sha256 ", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"header:Greenhouse-Event-ID"}},
			Type:     []spec.Value{"json:$.action"},
			Resource: []spec.Value{"json:$.payload.application.id", "json:$.payload.candidate.id", "json:$.payload.person.id", "json:$.payload.job.id", "json:$.payload.id"},
		},
		Answer:  spec.Answer{Status: 200},
		Limits:  spec.Limits{Retry: 16 * hour}, // seven attempts in 15 hours and a quarter
		Headers: []string{"Greenhouse-*", "Signature"},
		Example: spec.Template{
			ID:     "31177161",
			Type:   "hire_candidate",
			Object: "46194062",
			Header: map[string]string{"Greenhouse-Event-ID": "{{id}}"},
			Body:   greenhouseExample,
		},
		Sources: []spec.Source{
			stated("signature, Greenhouse-Event-ID, the secret is the receiver's choice, seven attempts, only 200 is success, when a webhook is disabled", "grnhse/greenhouse-api-docs: source/includes/webhooks/_introduction.md"),
			stated("fields", "grnhse/greenhouse-api-docs: source/includes/webhooks"),
			notSourced("whether a retry keeps Greenhouse-Event-ID"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the id of the application or candidate as the key loses everything that happens to it after the first event",
			"only the status 200 counts as success",
			"the ping that is sent when a webhook is made or changed has to succeed, or the webhook is disabled",
			"the signature is written after the name of the hash and a space",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const greenhouseExample = `{
  "action": "{{type}}",
  "payload": {
    "application": {
      "id": {{object}},
      "status": "hired",
      "applied_at": "{{time}}",
      "last_activity_at": "{{time}}",
      "candidate": {"id": 37031511, "first_name": "Example", "last_name": "Person", "created_at": "{{time}}"},
      "jobs": [{"id": 149995, "name": "Engineer", "status": "closed"}]
    }
  }
}`
