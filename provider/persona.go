package provider

import "github.com/hookonce/hookonce/provider/spec"

// Persona returns the provider for Persona's webhooks. The secrets are those of the webhook. It panics if a secret is
// missing or empty.
//
// The key is the event's id, which the signature covers. A time is signed, but not checked against a tolerance unless
// [spec.Settings.Tolerance] says so: Persona states none.
func Persona(secrets ...string) *spec.Provider {
	return must(spec.New(personaSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func personaSpec() spec.Spec {
	return spec.Spec{
		Name:   "persona",
		Title:  "Persona",
		Secret: "the webhook's secret, which begins with wbhsec_",
		Verify: []spec.Verify{timedMAC("Persona-Signature", spec.Seconds, 0)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.data.id"}},
			Type:     []spec.Value{"json:$.data.attributes.name"},
			Time:     []spec.Moment{at("json:$.data.attributes.created-at", spec.RFC3339), at("json:$.data.attributes.createdAt", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.attributes.payload.data.id"},
		},
		Order:   &spec.Order{By: "json:$.data.attributes.created-at", Unit: spec.RFC3339, Advisory: true},
		Answer:  spec.Answer{Deadline: 5 * second},
		Headers: []string{"Persona-*"},
		Example: spec.Template{ID: "evt_exampleexampleexample1001", Type: "inquiry.completed", Object: "inq_exampleexampleexample1001", Body: personaExample},
		Sources: []spec.Source{
			stated("signature, duplicates occur", "docs.withpersona.com, Webhook best practices"),
			stated("200, 201, 202 and 204 accept, deadline", "docs.withpersona.com, Webhook best practices"),
			stated("order by created-at, up to eight retries", "docs.withpersona.com, Webhooks"),
			reported("key, fields", "inferred: the document is the event, in the form of JSON:API, and data.id is its id"),
			reported("two pairs while a secret is rotated, form of the secret", "hookdeck/webhook-skills: persona-webhooks"),
			notSourced("how long it retries"),
		},
		Traps: []string{
			"while a secret is rotated the header has two pairs of time and signature with a space between them, of which the last is looked at: give both secrets",
			"the id inside payload is that of the inquiry or account: as the key it loses all later events about it",
			"events arrive in any order; created-at tells",
		},
	}
}

const personaExample = `{
  "data": {
    "type": "event",
    "id": "{{id}}",
    "attributes": {
      "name": "{{type}}",
      "payload": {
        "data": {
          "type": "inquiry",
          "id": "{{object}}",
          "attributes": {"status": "completed", "reference-id": "customer-1001", "created-at": "{{time}}"}
        }
      },
      "created-at": "{{time}}"
    }
  }
}`
