package provider

import "github.com/hookonce/hookonce/provider/spec"

// Datadog returns the provider for the webhooks integration of Datadog. Datadog signs nothing: add the custom header
// Authorization to the webhook, and give its value here, the whole text. It panics if a value is missing or empty.
//
// The payload is the customer's own. One with id ($ID) and last_updated ($LAST_UPDATED) in it, such as the default, has a key
// that is made of both and the content; others pass through unkeyed. Nothing is signed: the header is the same in every
// request.
func Datadog(secrets ...string) *spec.Provider {
	return must(spec.New(datadogSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func datadogSpec() spec.Spec {
	return spec.Spec{
		Name:      "datadog",
		Title:     "Datadog",
		Secret:    "the value of the custom header Authorization that was added to the webhook",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:Authorization"}}},
		Event: spec.Extract{
			// An event of Datadog is updated under its id.
			Key:      [][]spec.Value{{"json:$.id", "json:$.last_updated", "hash:json:$"}},
			Type:     []spec.Value{"json:$.event_type"},
			Action:   []spec.Value{"json:$.alert_transition"},
			Resource: []spec.Value{"json:$.alert_id"},
			Tenant:   []spec.Value{"json:$.org.id"},
		},
		// A status of the 400s is final: a wrong secret would lose events.
		Answer:  spec.Answer{Reject: 503, Deadline: 15 * second},
		Headers: []string{"Content-Type"},
		Example: spec.Template{ID: "1234567", Type: "query_alert_monitor.Triggered", Object: "9876", Body: datadogExample},
		Sources: []spec.Source{
			stated("retries after statuses of the 500s, missed connections five times, deadline, custom headers and payload", "docs.datadoghq.com/integrations/webhooks"),
			stated("the header is the receiver's choice", "docs.datadoghq.com/integrations/webhooks: custom headers in JSON"),
			reported("fields of the payload", "guides of Robusta and ilert to Datadog webhooks"),
			reported("key", "inferred: an event has an id and the time of its last update, and what is sent again is the same text"),
			notSourced("how long it retries"),
		},
		Traps: []string{
			"nothing is signed: whoever sees one request can send others",
			"a payload without $ID and $LAST_UPDATED has nothing that tells a copy: it passes through unkeyed",
			"$ALERT_CYCLE_KEY and $AGGREG_KEY join the events of one alert: as the key they lose its recovery",
			"only statuses of the 500s and missed connections are sent again: what is answered with a status of the 400s is lost",
		},
	}
}

const datadogExample = `{
  "id": "{{id}}",
  "last_updated": "{{millis}}",
  "date": "{{millis}}",
  "event_type": "{{event}}",
  "alert_transition": "{{action}}",
  "alert_id": "{{object}}",
  "title": "[Triggered] Checkout answers slowly",
  "body": "The median is above two seconds.",
  "org": {"id": "11023", "name": "Example"}
}`
