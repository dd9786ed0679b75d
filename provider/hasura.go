package provider

import "github.com/hookonce/hookonce/provider/spec"

// Hasura returns the provider for Hasura's event triggers. Hasura signs nothing: add the header Authorization to the trigger,
// and give its value here, the whole text. It panics if a value is missing or empty.
//
// The key is the id of the event. Nothing is signed: the header is the same in every request.
func Hasura(secrets ...string) *spec.Provider {
	return must(spec.New(hasuraSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func hasuraSpec() spec.Spec {
	return spec.Spec{
		Name:      "hasura",
		Title:     "Hasura event triggers",
		Secret:    "the value of the header Authorization that was added to the event trigger",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:Authorization"}}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.trigger.name"},
			Action:   []spec.Value{"json:$.event.op"},
			Time:     []spec.Moment{at("json:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.event.data.new.id", "json:$.event.data.old.id"},
		},
		// Whatever else is there may be that of the attempt.
		Dedup: spec.Dedup{
			Same:  []spec.Value{"json:$.created_at", "json:$.trigger", "json:$.table", "json:$.event"},
			Retry: spec.Stable,
		},
		Order:   &spec.Order{By: "json:$.created_at", Unit: spec.RFC3339, Scope: []spec.Value{"json:$.table.schema", "json:$.table.name", "json:$.event.data.new.id"}, Advisory: true},
		Headers: []string{"Content-Type"},
		Example: spec.Template{ID: "85558393-c75d-4d2f-9c15-e80591b83894", Type: "order_changed.UPDATE", Object: "1001", Body: hasuraExample},
		Sources: []spec.Source{
			stated("fields, id is the event's, another status than those of the 200s is sent again as the trigger is set, Retry-After", "hasura/graphql-engine: docs/docs/event-triggers/payload.mdx"),
			reported("a trigger sends the headers that were added to it", "Hasura documentation of event triggers, quoted"),
			reported("the header is the receiver's choice", "Hasura documentation of event triggers, quoted"),
			reported("the id is the same in every attempt", "inferred: it is that of the event in the log that is delivered from"),
			notSourced("how long it retries: number and pauses are settings of the trigger"),
			notSourced("deadline"),
		},
		Traps: []string{
			"nothing is signed: whoever sees one request can send others",
			"a trigger sends nothing again unless it has a number of retries: set one",
			"the id of the row as the key loses every change of it but the first",
			"a row that is changed twice may be told of in any order: go by created_at",
			"an event that is invoked by hand is an event of its own, with the operation MANUAL",
		},
	}
}

const hasuraExample = `{
  "id": "{{id}}",
  "created_at": "{{time}}",
  "trigger": {"name": "{{event}}"},
  "table": {"schema": "public", "name": "orders"},
  "event": {
    "session_variables": {"x-hasura-role": "admin"},
    "op": "{{action}}",
    "data": {
      "old": {"id": "{{object}}", "status": "open"},
      "new": {"id": "{{object}}", "status": "paid"}
    }
  }
}`
