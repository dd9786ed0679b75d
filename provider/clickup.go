package provider

import "github.com/hookonce/hookonce/provider/spec"

// ClickUp returns the provider for ClickUp's webhooks. The secrets are those that ClickUp returned when the webhook was
// created. It panics if a secret is missing or empty.
//
// The key is made of the webhook, the event and the id of its first history item. Events without one, such as those of
// deletions, pass through unkeyed. No time is signed.
func ClickUp(secrets ...string) *spec.Provider {
	return must(spec.New(clickupSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func clickupSpec() spec.Spec {
	return spec.Spec{
		Name:   "clickup",
		Title:  "ClickUp",
		Secret: "the webhook's secret, returned when it is created",
		Verify: []spec.Verify{bodyMAC("X-Signature", "", spec.Hex)},
		Event: spec.Extract{
			// One change makes several events; nobody says that each has a history item of its own.
			Key:          [][]spec.Value{{"json:$.webhook_id", "json:$.event", "json:$.history_items[0].id"}},
			Subscription: []spec.Value{"json:$.webhook_id"},
			Type:         []spec.Value{"json:$.event"},
			Time:         []spec.Moment{at("json:$.history_items[0].date", spec.Millis)},
			Resource: []spec.Value{
				"json:$.task_id", "json:$.list_id", "json:$.folder_id", "json:$.space_id", "json:$.goal_id", "json:$.key_result_id",
			},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		Order: &spec.Order{By: "json:$.history_items[0].date", Unit: spec.Millis, Advisory: true},
		// 410 suspends the webhook at once, and 401 is said to do so.
		Answer:  spec.Answer{Reject: 503, Deadline: 7 * second},
		Headers: []string{"X-Signature"},
		Example: spec.Template{ID: "2800763136717140857", Type: "taskStatusUpdated", Object: "1vj37mc", Body: clickupExample},
		Sources: []spec.Source{
			stated("signature, fields, key: webhook and history item", "developer.clickup.com: Webhooks, Webhook signature"),
			stated("deadline, five attempts, suspension", "developer.clickup.com/docs/webhookhealth"),
			reported("401 suspends at once", "notes of receivers; ClickUp's page names 410 only"),
			notSourced("how long it retries"),
		},
		Traps: []string{
			"task_id as the key loses every change of the task but the first",
			"one change makes several events: a new task is taskCreated and taskStatusUpdated",
			"after five attempts an event is given up, and a hundred events given up suspend the webhook: what it missed is not sent later",
			"a status of 410 suspends the webhook at once; a wrong signature is answered 503, so that a wrong secret can be put right",
			"events without history items, such as deletions, have nothing that tells a copy: they pass through unkeyed",
		},
	}
}

const clickupExample = `{
  "event": "{{type}}",
  "history_items": [
    {
      "id": "{{id}}",
      "type": 1,
      "date": "{{millis}}",
      "field": "status",
      "parent_id": "162641062",
      "data": {"status_type": "custom"},
      "source": null,
      "user": {"id": 1001, "username": "Example Person", "email": "person@example.com"},
      "before": {"status": "to do", "type": "open"},
      "after": {"status": "in progress", "type": "custom"}
    }
  ],
  "task_id": "{{object}}",
  "webhook_id": "7fa3ec74-0000-4000-8000-00000000f001"
}`
