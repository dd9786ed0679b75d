package provider

import "github.com/hookonce/hookonce/provider/spec"

// CalCom returns the provider for Cal.com's webhooks. The secrets are those of the webhook. It panics if a secret is missing
// or empty.
//
// Events have no id: the key is made of the trigger, the time at which it fired, in milliseconds, and the content. Webhooks
// with a payload template of their own have neither, and pass through unkeyed. No time is signed by itself.
func CalCom(secrets ...string) *spec.Provider {
	return must(spec.New(calComSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func calComSpec() spec.Spec {
	return spec.Spec{
		Name:      "cal-com",
		Title:     "Cal.com",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Cal-Signature-256", "", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.triggerEvent", "json:$.createdAt", "hash:json:$.payload"}},
			Type:     []spec.Value{"json:$.triggerEvent"},
			Time:     []spec.Moment{at("json:$.createdAt", spec.RFC3339)},
			Resource: []spec.Value{"json:$.payload.uid", "json:$.payload.bookingUid", "json:$.payload.oooEntry.uuid"},
		},
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.triggerEvent", "json:$.createdAt", "json:$.payload"}},
		Order:   &spec.Order{By: "json:$.createdAt", Unit: spec.RFC3339, Advisory: true},
		Headers: []string{"X-Cal-*"},
		Example: spec.Template{ID: "bFJeNb2uX8ANpT3JL5EfXw", Type: "BOOKING_CREATED", Object: "bFJeNb2uX8ANpT3JL5EfXw", Body: calComExample},
		Sources: []spec.Source{
			stated("signature, fields, payload templates", "calcom/cal.com: packages/features/webhooks/lib/sendPayload.ts"),
			stated("the secret is the receiver's choice", "calcom/cal.com: packages/features/webhooks/lib/sendPayload.ts signs with what was entered"),
			reported("key", "inferred: the time at which the trigger fired is handed to the sender with the content"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"payload.uid is the booking: as the key it loses its cancellation after its creation",
			"a rescheduled booking has a uid of its own, and rescheduleUid is the old one",
			"a webhook without a secret sends the words no-secret-provided in place of a signature, and is refused",
			"a webhook with a payload template of its own has no time and no trigger unless the template has them: it passes through unkeyed",
		},
	}
}

const calComExample = `{
  "triggerEvent": "{{type}}",
  "createdAt": "{{time}}",
  "payload": {
    "type": "30min",
    "title": "30min between Example Person and Customer",
    "startTime": "{{time}}",
    "endTime": "{{time}}",
    "organizer": {"id": 1001, "name": "Example Person", "email": "person@example.com", "timeZone": "Europe/Berlin"},
    "attendees": [{"name": "Customer", "email": "customer@example.com", "timeZone": "Europe/Berlin"}],
    "uid": "{{object}}",
    "bookingId": 1001,
    "iCalUID": "{{id}}@example.com",
    "status": "ACCEPTED"
  }
}`
