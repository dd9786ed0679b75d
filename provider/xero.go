package provider

import "github.com/hookonce/hookonce/provider/spec"

// Xero returns the provider for Xero webhooks. The secrets are the webhooks keys of the app. It panics
// if a secret is missing or empty.
//
// Xero states no id for an event: the key is made of tenant, category, resource, type and time, all
// signed. The intent to receive needs nothing special: a request with a right signature and no events
// is accepted, one with a wrong signature is answered 401. No time is signed.
func Xero(secrets ...string) *spec.Provider {
	return must(spec.New(xeroSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func xeroSpec() spec.Spec {
	return spec.Spec{
		Name:   "xero",
		Title:  "Xero",
		Secret: "the app's webhooks key",
		Verify: []spec.Verify{bodyMAC("X-Xero-Signature", "", spec.Base64)},
		Split:  &spec.Split{Items: []spec.Value{"json:$.events[*]"}},
		Event: spec.Extract{
			Key: [][]spec.Value{{
				"item:$.tenantId", "item:$.eventCategory", "item:$.resourceId", "item:$.eventType", "item:$.eventDateUtc",
			}},
			Type:     []spec.Value{"item:$.eventCategory"},
			Action:   []spec.Value{"item:$.eventType"},
			Time:     []spec.Moment{at("item:$.eventDateUtc", spec.RFC3339)},
			Resource: []spec.Value{"item:$.resourceId"},
			Tenant:   []spec.Value{"item:$.tenantId"},
		},
		Answer:  spec.Answer{Status: 200, Reject: 401, Deadline: 5 * second},
		Limits:  spec.Limits{Retry: day},
		Headers: []string{"X-Xero-*"},
		Example: spec.Template{ID: "717f2bfc-c6d4-41fd-b238-3f2f0c0cf777", Type: "INVOICE.UPDATE", Body: xeroExample},
		Sources: []spec.Source{
			stated("signature, intent to receive, answer, deadline, retries", "developer.xero.com/documentation/webhooks/configuring-your-server"),
			stated("fields", "developer.xero.com/documentation/webhooks/overview; XeroAPI/Xero-OpenAPI"),
			reported("parts of the key", "inferred: everything that tells one event from another"),
		},
		Traps: []string{
			"the intent to receive has no events and wrong signatures on purpose: answer 200 and 401, without a body",
			"an event says what changed and not how: fetch the resource",
			"the numbers firstEventSequence and lastEventSequence are those of the request; a retry may be cut into other requests",
			"after 24 hours of failures the webhook is disabled",
		},
	}
}

const xeroExample = `{
  "events": [
    {
      "resourceUrl": "https://api.xero.com/api.xro/2.0/Invoices/{{id}}",
      "resourceId": "{{id}}",
      "tenantId": "c2cc9b6e-0000-4000-8000-000000001001",
      "tenantType": "ORGANISATION",
      "eventCategory": "{{event}}",
      "eventType": "{{action}}",
      "eventDateUtc": "{{time}}"
    }
  ],
  "firstEventSequence": 1,
  "lastEventSequence": 1,
  "entropy": "EXAMPLEEXAMPLEEXAMPLE"
}`
