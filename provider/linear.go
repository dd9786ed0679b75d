package provider

import "github.com/hookonce/hookonce/provider/spec"

// Linear returns the provider for Linear webhooks. The secrets are the signing secrets of the webhook.
// It panics if a secret is missing or empty.
//
// The key is the Linear-Delivery header, which the signature does not cover. The time in the body,
// webhookTimestamp, is signed and may be eight hours in the past, which covers the retries, and a minute ahead: a retry has
// the time of the first attempt.
func Linear(secrets ...string) *spec.Provider {
	return must(spec.New(linearSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

// linearRetry is how long Linear retries: after 1 minute, 1 and 6 hours.
const linearRetry = 8 * hour

func linearSpec() spec.Spec {
	v := bodyMAC("Linear-Signature", "", spec.Hex)
	v.Time = &spec.Timestamp{In: "json:$.webhookTimestamp", Unit: spec.Millis, Past: minute, Future: minute}
	return spec.Spec{
		Name:   "linear",
		Title:  "Linear",
		Secret: "the webhook's signing secret",
		Verify: []spec.Verify{signedOnce(v, linearRetry)},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"header:Linear-Delivery"}},
			Subscription: []spec.Value{"json:$.webhookId"},
			Type:         []spec.Value{"json:$.type", "header:Linear-Event"},
			Action:       []spec.Value{"json:$.action"},
			Time:         []spec.Moment{at("json:$.createdAt", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.data.id"},
		},
		// webhookTimestamp may be that of the attempt.
		Dedup: spec.Dedup{Same: []spec.Value{"json:$.type", "json:$.action", "json:$.createdAt", "json:$.data"}},
		Order: &spec.Order{
			By:       "json:$.data.updatedAt",
			Unit:     spec.RFC3339,
			Scope:    []spec.Value{"json:$.type", "json:$.data.id"},
			Advisory: true,
		},
		Answer: spec.Answer{Deadline: 5 * second},
		Limits: spec.Limits{Retry: linearRetry},
		// https://linear.app/developers/webhooks
		Headers: []string{"Linear-Timestamp", "Linear-*"},
		Example: spec.Template{
			ID:     "234d1a4e-b617-4388-90fe-adc3633d6b72",
			Type:   "Issue.update",
			Object: "2174add1-0000-4000-8000-00000000c001",
			Header: map[string]string{
				"Linear-Delivery": "{{id}}",
				"Linear-Event":    "{{event}}",
			},
			Body: linearExample,
		},
		Sources: []spec.Source{
			stated("signature, tolerance, fields", "linear/linear: packages/sdk/src/webhooks/client.ts"),
			reported("key", "Linear documentation, quoted"),
			stated("deadline, three retries, after any other status than 200", "linear.app/developers/webhooks"),
			reported("a retry is the first request again, with its time", "vercel/eve: issue 1570"),
			notSourced("whether a retry keeps Linear-Delivery"),
		},
		Traps: []string{
			"webhookId is the subscription and the same for all its events: as the key it loses everything after the first",
			"a webhook whose address does not answer may be disabled, until a person enables it again",
			"the header Linear-Timestamp is not signed; webhookTimestamp in the body is",
			"Linear's library refuses what is older than a minute, and with it every retry, which has the time of the first attempt",
			"the id is not signed: whoever replays a captured request within eight hours can change it",
		},
	}
}

const linearExample = `{
  "action": "{{action}}",
  "type": "{{event}}",
  "createdAt": "{{time}}",
  "actor": {"id": "b5ea5f1f-0000-4000-8000-00000000a001", "type": "user", "name": "Example Person"},
  "data": {
    "id": "{{object}}",
    "identifier": "HOOK-17",
    "number": 17,
    "title": "The answer to a retried request is missing",
    "priority": 2,
    "createdAt": "{{time}}",
    "updatedAt": "{{time}}",
    "teamId": "72b2a2dc-0000-4000-8000-00000000e001",
    "state": {"id": "7a6f9e40-0000-4000-8000-00000000d001", "name": "In Progress", "type": "started"}
  },
  "updatedFrom": {"updatedAt": "{{time}}", "stateId": "2f0c7a1e-0000-4000-8000-00000000d002"},
  "url": "https://linear.app/example/issue/HOOK-17",
  "webhookTimestamp": {{millis}},
  "webhookId": "000042e3-0000-4000-8000-00000000f001"
}`
