package provider

import "github.com/hookonce/hookonce/provider/spec"

// PagerDuty returns the provider for PagerDuty's webhooks, version 3. The secrets are those of the
// webhook subscription. It panics if a secret is missing or empty.
//
// The key is the id of the event, which the signature covers; without one it is the X-Webhook-Id
// header, which it does not cover. No time is signed.
func PagerDuty(secrets ...string) *spec.Provider {
	return must(spec.New(pagerdutySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func pagerdutySpec() spec.Spec {
	verify := bodyMAC("X-PagerDuty-Signature", "v1=", spec.Hex)
	verify.Signature.Split = ","
	return spec.Spec{
		Name:   "pagerduty",
		Title:  "PagerDuty",
		Secret: "the webhook subscription's secret",
		Verify: []spec.Verify{verify},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event.id"}, {"const:webhook", "header:X-Webhook-Id"}},
			Type:     []spec.Value{"json:$.event.event_type"},
			Time:     []spec.Moment{at("json:$.event.occurred_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.event.data.id"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		Order: &spec.Order{By: "json:$.event.occurred_at", Unit: spec.RFC3339, Advisory: true},
		// Any other status of the 400s drops the event at once, and three of them disable the subscription.
		Answer: spec.Answer{Reject: 429, Deadline: 5 * second},
		Limits: spec.Limits{Retry: 48 * hour},
		// https://developer.pagerduty.com/docs/webhooks-overview
		Headers: []string{"X-Webhook-Subscription", "X-PagerDuty-*"},
		Example: spec.Template{ID: "5ac64822-4adc-4fda-ade0-410becf0de4f", Type: "incident.acknowledged", Object: "PEXAMPLE2", Body: pagerdutyExample},
		Sources: []spec.Source{
			stated("signature, ids, retries, answer, deadline, order", "PagerDuty/developer-docs: docs/webhooks"),
		},
		Traps: []string{
			"a status of 400 to 499 other than 429 drops the event, and three drops disable the subscription for a day and empty its queue: requests with a wrong signature are answered 429, so that a wrong secret can be put right",
			"X-Webhook-Id is the same in every retry, but not signed; the id of the event is both",
			"events arrive in order for one subscription and incident, but not those above 55 KB; above 256 KB they are not sent",
			"webhooks of the older versions 1 and 2 put several messages into one request: only version 3 is known here",
			"two subscriptions to one endpoint send the same event with the same id: use one source for each",
		},
	}
}

const pagerdutyExample = `{
  "event": {
    "id": "{{id}}",
    "event_type": "{{type}}",
    "resource_type": "incident",
    "occurred_at": "{{time}}",
    "agent": {
      "html_url": "https://example.pagerduty.com/users/PEXAMPLE1",
      "id": "PEXAMPLE1",
      "summary": "Example engineer",
      "type": "user_reference"
    },
    "client": null,
    "data": {
      "id": "{{object}}",
      "type": "incident",
      "html_url": "https://example.pagerduty.com/incidents/{{object}}",
      "number": 1001,
      "status": "acknowledged",
      "title": "Checkout answers slowly",
      "service": {"id": "PEXAMPLE3", "summary": "Checkout", "type": "service_reference"},
      "urgency": "high"
    }
  }
}`
