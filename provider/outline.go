package provider

import "github.com/hookonce/hookonce/provider/spec"

// Outline returns the provider for Outline's webhooks. The secrets are those of the webhook, the whole text with ol_whs_. It
// panics if a secret is missing or empty.
//
// The key is the id of the delivery, which the signature covers: Outline sends each once. The time of the request, in
// milliseconds, is signed and may be five minutes off in either direction.
func Outline(secrets ...string) *spec.Provider {
	return must(spec.New(outlineSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func outlineSpec() spec.Spec {
	v := timed(headerMAC("Outline-Signature", "s=", spec.Hex, "ts", "const:.", "body"), "part:t=", spec.Millis, 5*minute)
	v.Signature.Split = ","
	return spec.Spec{
		Name:   "outline",
		Title:  "Outline",
		Secret: "the webhook's signing secret, which begins with ol_whs_",
		Verify: []spec.Verify{v},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.id"}},
			Subscription: []spec.Value{"json:$.webhookSubscriptionId"},
			Type:         []spec.Value{"json:$.event"},
			Time:         []spec.Moment{at("json:$.createdAt", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.payload.id"},
		},
		Dedup:   spec.Dedup{Retry: spec.NotSent},
		Order:   &spec.Order{By: "json:$.createdAt", Unit: spec.RFC3339, Advisory: true},
		Answer:  spec.Answer{Deadline: 5 * second},
		Headers: []string{"Outline-*"},
		Example: spec.Template{ID: "6b1c8f0e-0000-4000-8000-00000000d001", Type: "documents.update", Object: "2174add1-0000-4000-8000-00000000c001", Body: outlineExample},
		Sources: []spec.Source{
			stated("signature, unit of the time, form of the secret", "outline/outline: server/models/WebhookSubscription.ts"),
			stated("one attempt, deadline, when the webhook is disabled", "outline/outline: plugins/webhooks/server/tasks/DeliverWebhookTask.ts"),
			reported("fields, key", "outline/outline: plugins/webhooks/server/presenters/webhook.ts, as its caller shows: the body is made of the event and its delivery"),
			notSourced("tolerance of the signed time: it is made when the request is"),
		},
		Traps: []string{
			"payload.id is the document: as the key it loses every change but the first",
			"nothing is sent again: what is answered with an error is lost",
			"a webhook most of whose requests fail for a while is disabled",
			"the time is in milliseconds",
		},
	}
}

const outlineExample = `{
  "id": "{{id}}",
  "actorId": "b5ea5f1f-0000-4000-8000-00000000a001",
  "webhookSubscriptionId": "f1a2b3c4-0000-4000-8000-00000000f001",
  "createdAt": "{{time}}",
  "event": "{{type}}",
  "payload": {
    "id": "{{object}}",
    "model": {
      "id": "{{object}}",
      "title": "Answers to retried requests",
      "text": "Each event has one effect.",
      "createdAt": "{{time}}",
      "updatedAt": "{{time}}",
      "revision": 17
    }
  }
}`
