package provider

import "github.com/hookonce/hookonce/provider/spec"

// Okta returns the provider for Okta's event hooks. The secrets are the values of the header Authorization that the
// hook was registered with, as they are, with what precedes the token there if anything does. It panics if a secret is
// missing or empty. The one-time verification is answered.
//
// Events come in batches; the key is the uuid of each, which Okta says to compare. Nothing is signed: the header is the
// same in every request.
func Okta(secrets ...string) *spec.Provider {
	return must(spec.New(oktaSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func oktaSpec() spec.Spec {
	return spec.Spec{
		Name:      "okta",
		Title:     "Okta",
		Secret:    "the value of the header Authorization that the event hook was registered with",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:Authorization"}}},
		Split:     &spec.Split{Items: []spec.Value{"json:$.data.events[*]"}},
		Event: spec.Extract{
			Key:       [][]spec.Value{{"item:$.uuid"}},
			AttemptID: []spec.Value{"json:$.eventId"},
			Type:      []spec.Value{"item:$.eventType"},
			Time:      []spec.Moment{at("item:$.published", spec.RFC3339)},
			Resource:  []spec.Value{"item:$.target[0].id"},
			Tenant:    []spec.Value{"json:$.source"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Answer:  spec.Answer{Deadline: 3 * second, Reject: 503},
		Headers: []string{"X-Okta-*"},
		Handshakes: []spec.Handshake{{
			Method:      "GET",
			Echo:        "header:X-Okta-Verification-Challenge",
			ContentType: "application/json",
			Body:        `{"verification":"{{echo}}"}`,
		}},
		Example: spec.Template{ID: "f790999f-fe87-467a-9880-6982a583986c", Type: "user.lifecycle.deactivate", Object: "00uexample0000001001", Body: oktaExample},
		Sources: []spec.Source{
			stated("header, verification, batches, uuid recognises copies, deadline, at most one retry", "okta/okta-developer-docs: packages/@okta/vuepress-site/docs/concepts/event-hooks/index.md; developer.okta.com/docs/concepts/event-hooks"),
			notSourced("when the one retry is sent"),
		},
		Traps: []string{
			"nothing is signed: whoever has seen one request can send others with the same header",
			"it is sent again once at the most, and never after a status of the 400s: an outage of minutes loses events, which the System Log API still has",
			"eventId is that of the request: one request carries many events",
			"events come out of order: go by published",
		},
	}
}

const oktaExample = `{
  "eventType": "com.okta.event_hook",
  "eventTypeVersion": "1.0",
  "cloudEventsVersion": "0.1",
  "contentType": "application/json",
  "eventId": "b5a188b9-0000-4000-8000-000000001001",
  "eventTime": "{{time}}",
  "source": "https://example.okta.com/api/v1/eventHooks/whoexample0000001001",
  "data": {
    "events": [
      {
        "uuid": "{{id}}",
        "published": "{{time}}",
        "eventType": "{{type}}",
        "version": "0",
        "severity": "INFO",
        "displayMessage": "Deactivate Okta user",
        "actor": {"id": "00uexample0000000001", "type": "User", "alternateId": "admin@example.com", "displayName": "Admin"},
        "outcome": {"result": "SUCCESS", "reason": null},
        "target": [{"id": "{{object}}", "type": "User", "alternateId": "customer@example.com", "displayName": "Customer"}]
      }
    ]
  }
}`
