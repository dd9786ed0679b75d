package provider

import "github.com/hookonce/hookonce/provider/spec"

// Todoist returns the provider for Todoist's webhooks. The secrets are the client secrets of the app. It panics if a secret is
// missing or empty.
//
// The key is the X-Todoist-Delivery-ID header, which stays the same when a delivery that failed is sent again. The
// signature does not cover it, and no time is signed by itself.
func Todoist(secrets ...string) *spec.Provider {
	return must(spec.New(todoistSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func todoistSpec() spec.Spec {
	return spec.Spec{
		Name:   "todoist",
		Title:  "Todoist",
		Secret: "the app's client secret",
		Verify: []spec.Verify{bodyMAC("X-Todoist-Hmac-SHA256", "", spec.Base64)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"header:X-Todoist-Delivery-ID"}},
			Type:     []spec.Value{"json:$.event_name"},
			Time:     []spec.Moment{at("json:$.triggered_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.event_data.id"},
			Tenant:   []spec.Value{"json:$.user_id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Order:   &spec.Order{By: "json:$.triggered_at", Unit: spec.RFC3339, Advisory: true},
		Answer:  spec.Answer{Status: 200},
		Limits:  spec.Limits{Retry: 45 * minute}, // three times, fifteen minutes apart
		Headers: []string{"X-Todoist-*"},
		Example: spec.Template{
			ID:     "7e1f8a2b-0c3d-4e5f-8a9b-7c6d5e4f3a2b",
			Type:   "item:added",
			Object: "6XR4GqQQCW6Gv9h4",
			Header: map[string]string{"X-Todoist-Delivery-ID": "{{id}}"},
			Body:   todoistExample,
		},
		Sources: []spec.Source{
			stated("signature", "Doist/todoist-sdk-typescript: src/utils/webhook-parser.ts"),
			stated("fields", "Doist/todoist-sdk-typescript: src/test-utils/webhook-fixtures.ts"),
			reported("key and that it is the same when sent again, three retries fifteen minutes apart, answer 200 only", "developer.todoist.com, Webhooks, quoted"),
			notSourced("deadline"),
		},
		Traps: []string{
			"event_data.id is the task: as the key it loses every change but the first",
			"only the status 200 counts as success",
			"a user who has installed the app gives it events of shared projects: two users of one project make two deliveries of one change",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const todoistExample = `{
  "version": "1",
  "user_id": "1001",
  "initiator": {"id": "1001", "email": "person@example.com", "full_name": "Example Person", "is_premium": true},
  "event_name": "{{type}}",
  "triggered_at": "{{time}}",
  "event_data": {
    "id": "{{object}}",
    "user_id": "1001",
    "project_id": "6XR4H993xv8H5qCR",
    "content": "Answer the retried request",
    "description": "",
    "checked": false,
    "is_deleted": false,
    "labels": [],
    "priority": 1,
    "added_at": "{{time}}",
    "updated_at": "{{time}}"
  }
}`
