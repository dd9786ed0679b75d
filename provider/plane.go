package provider

import "github.com/hookonce/hookonce/provider/spec"

// Plane returns the provider for Plane's webhooks, of the cloud and of installations of one's own. The secrets are the secret
// keys of the webhook. It panics if a key is missing or empty.
//
// The X-Plane-Delivery header is another for each attempt. The key is made of the webhook, the time at which the object was
// updated, and the content, all of which the signature covers. Deletions, which have no time, pass through unkeyed. No
// time is signed by itself.
func Plane(secrets ...string) *spec.Provider {
	return must(spec.New(planeSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func planeSpec() spec.Spec {
	return spec.Spec{
		Name:   "plane",
		Title:  "Plane",
		Secret: "the webhook's secret key",
		Verify: []spec.Verify{bodyMAC("X-Plane-Signature", "", spec.Hex)},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.webhook_id", "json:$.data.updated_at", "hash:json:$"}},
			AttemptID:    []spec.Value{"header:X-Plane-Delivery"},
			Subscription: []spec.Value{"json:$.webhook_id"},
			Type:         []spec.Value{"json:$.event", "header:X-Plane-Event"},
			Action:       []spec.Value{"json:$.action"},
			Time:         []spec.Moment{at("json:$.data.updated_at", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.data.id"},
			Tenant:       []spec.Value{"json:$.workspace_id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Order:   &spec.Order{By: "json:$.data.updated_at", Unit: spec.RFC3339, Scope: []spec.Value{"json:$.event", "json:$.data.id"}, Advisory: true},
		Answer:  spec.Answer{Deadline: 30 * second},
		Headers: []string{"X-Plane-*"},
		Example: spec.Template{
			ID:     "HOOK-17",
			Type:   "issue.update",
			Object: "2174add1-0000-4000-8000-00000000c001",
			Header: map[string]string{"X-Plane-Delivery": "f819bdeb-0000-4000-8000-00000000d001", "X-Plane-Event": "{{event}}"},
			Body:   planeExample,
		},
		Sources: []spec.Source{
			stated("signature, headers, the delivery's id is made for each attempt, content, deadline, what is sent again", "makeplane/plane: apiserver/plane/bgtasks/webhook_task.py"),
			reported("key", "inferred: the content is made once and sent again as it is; it has the time of the change in it"),
			notSourced("how long it retries: five times at the most, with growing pauses of minutes"),
		},
		Traps: []string{
			"X-Plane-Delivery is another for each attempt: as the key it lets every retry through",
			"data.id as the key loses every change but the first",
			"no status is sent again, only what was not answered within the deadline or not connected: an event that is answered with an error is lost",
			"the fifth retry that fails deactivates the webhook",
			"a deletion has nothing but the id of what was deleted: it passes through unkeyed",
		},
	}
}

const planeExample = `{
  "event": "{{event}}",
  "action": "{{action}}",
  "webhook_id": "f1a2b3c4-0000-4000-8000-00000000f001",
  "workspace_id": "c467e125-0000-4000-8000-00000000e001",
  "data": {
    "id": "{{object}}",
    "name": "The answer to a retried request is missing ({{id}})",
    "priority": "high",
    "sequence_id": 17,
    "created_at": "{{time}}",
    "updated_at": "{{time}}",
    "state": "7a6f9e40-0000-4000-8000-00000000d002",
    "project": "72b2a2dc-0000-4000-8000-00000000e002"
  }
}`
