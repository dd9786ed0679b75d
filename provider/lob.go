package provider

import "github.com/hookonce/hookonce/provider/spec"

// Lob returns the provider for Lob's webhooks. The secrets are those of the webhook. It panics if a secret is missing or
// empty.
//
// The key is the event's id, which the signature covers. The time in the header is signed as a text, and not checked
// against a tolerance: its unit is not stated.
func Lob(secrets ...string) *spec.Provider {
	return must(spec.New(lobSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func lobSpec() spec.Spec {
	return spec.Spec{
		Name:   "lob",
		Title:  "Lob",
		Secret: "the webhook's secret",
		Verify: []spec.Verify{headerMAC("Lob-Signature", "", spec.Hex, "header:Lob-Signature-Timestamp", "const:.", "body")},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.event_type.id"},
			Time:     []spec.Moment{at("json:$.date_created", spec.RFC3339)},
			Resource: []spec.Value{"json:$.reference_id", "json:$.body.id"},
		},
		Headers: []string{"Lob-*"},
		Example: spec.Template{
			ID:     "evt_d95ff8ffd2b5cfb4",
			Type:   "letter.delivered",
			Object: "ltr_4868c3b754655f90",
			Header: map[string]string{"Lob-Signature-Timestamp": "{{millis}}"},
			Body:   lobExample,
		},
		Sources: []spec.Source{
			stated("the whole event is posted", "help.lob.com, Using webhooks"),
			stated("fields of an event", "lob/lob-openapi: resources/events"),
			reported("signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("key", "inferred: id is that of the event, which Lob lists"),
			notSourced("unit of the time"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the id in body is that of the letter or postcard: as the key it loses every later event about it",
			"webhooks of the test and of the live environment have secrets of their own",
		},
	}
}

const lobExample = `{
  "id": "{{id}}",
  "reference_id": "{{object}}",
  "event_type": {"id": "{{type}}", "enabled_for_test": true, "resource": "letters", "object": "event_type"},
  "date_created": "{{time}}",
  "object": "event",
  "body": {
    "id": "{{object}}",
    "description": "Order 1001",
    "object": "letter"
  }
}`
