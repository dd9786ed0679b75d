package provider

import "github.com/hookonce/hookonce/provider/spec"

// Calendly returns the provider for Calendly webhooks. The secrets are the webhook signing keys. It
// panics if a secret is missing or empty.
//
// Events have no id. The key is made of the event's name, the time at which it was created and a digest
// of its payload, all of which the signature covers. The signed time may be a day in the past, which covers
// the retries, and three minutes ahead.
func Calendly(secrets ...string) *spec.Provider {
	return must(spec.New(calendlySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func calendlySpec() spec.Spec {
	return spec.Spec{
		Name:   "calendly",
		Title:  "Calendly",
		Secret: "the webhook signing key",
		Verify: []spec.Verify{signedOnce(timedMAC("Calendly-Webhook-Signature", spec.Seconds, 3*minute), day)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event", "json:$.created_at", "hash:json:$.payload"}},
			Type:     []spec.Value{"json:$.event"},
			Time:     []spec.Moment{at("json:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.payload.uri"},
			Tenant:   []spec.Value{"json:$.created_by"},
		},
		Answer:  spec.Answer{Deadline: 15 * second}, // to be read; 10 s to connect
		Limits:  spec.Limits{Retry: day},
		Headers: []string{"Calendly-*", "X-Calendly-*"},
		Example: spec.Template{ID: "87c1f0c6-1a9e-4d3b-9c1c-2a4f2f7e0a11", Type: "invitee.created", Body: calendlyExample},
		Sources: []spec.Source{
			stated("deadline", "developer.calendly.com/api-docs/overview/webhooks/webhook-timeouts"),
			stated("retries, what disables the webhook", "community.calendly.com: developer FAQ, How does a webhook become disabled"),
			stated("header of the signature", "developer.calendly.com/api-docs/overview/webhooks/webhook-signatures"),
			reported("what is signed, tolerance", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts; hookdeck/webhook-skills: skills/calendly-webhooks"),
			reported("key", "inferred: there is no id of the event; of two with one name, moment and payload the second says nothing new"),
			notSourced(onceOrAnew),
			notSourced("whether created_at is the same in every attempt"),
		},
		Traps: []string{
			"there is no id of the event: the invitee's address alone as the key loses the cancellation after the booking",
			"if a retry carries another created_at, it passes as a new event: handlers should look at the invitee's address as well",
			"a webhook whose retries fail for a day is disabled and has to be made anew",
		},
	}
}

const calendlyExample = `{
  "event": "{{type}}",
  "created_at": "{{time}}",
  "created_by": "https://api.calendly.com/users/EXAMPLE0001",
  "payload": {
    "uri": "https://api.calendly.com/scheduled_events/EXAMPLE1001/invitees/{{id}}",
    "event": "https://api.calendly.com/scheduled_events/EXAMPLE1001",
    "name": "Example Person",
    "email": "customer@example.com",
    "status": "active",
    "timezone": "Europe/Berlin",
    "rescheduled": false,
    "old_invitee": null,
    "new_invitee": null,
    "created_at": "{{time}}",
    "updated_at": "{{time}}",
    "questions_and_answers": [],
    "tracking": {"utm_source": null, "utm_campaign": null}
  }
}`
