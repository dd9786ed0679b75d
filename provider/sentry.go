package provider

import "github.com/hookonce/hookonce/provider/spec"

// Sentry returns the provider for the webhooks of Sentry's integration platform. The secrets are the
// client secrets of the integration. It panics if a secret is missing or empty.
//
// Of errors the key is made of the installation, the project and the id of the error, all signed. Nothing names the events
// of other resources: they pass through unkeyed, since the Request-ID header is another one in each retry. The time in
// Sentry-Hook-Timestamp is not signed, and no tolerance is applied to it for that reason. A request that is not
// authentic is answered 503, because Sentry gives up after any of the 400s.
func Sentry(secrets ...string) *spec.Provider {
	return must(spec.New(sentrySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func sentrySpec() spec.Spec {
	return spec.Spec{
		Name:   "sentry",
		Title:  "Sentry",
		Secret: "the integration's client secret",
		Verify: []spec.Verify{bodyMAC("Sentry-Hook-Signature", "", spec.Hex)},
		Event: spec.Extract{
			// There is an error.created for each error, and data.error is in no other resource.
			Key:       [][]spec.Value{{"json:$.installation.uuid", "json:$.data.error.project", "json:$.data.error.event_id"}},
			AttemptID: []spec.Value{"header:Request-ID"},
			Type:      []spec.Value{"header:Sentry-Hook-Resource"},
			Action:    []spec.Value{"json:$.action"},
			Time:      []spec.Moment{at("header:Sentry-Hook-Timestamp", spec.Seconds)},
			Resource:  []spec.Value{"json:$.data.issue.id", "json:$.data.error.issue_id", "json:$.data.event.issue_id"},
			Tenant:    []spec.Value{"json:$.installation.uuid"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable, Manual: spec.NotSent},
		// Each of the 400s ends the attempts: a wrong secret would lose events.
		Answer: spec.Answer{Reject: 503, Deadline: second},
		Limits: spec.Limits{Retry: 15 * minute}, // three retries, five minutes apart
		// https://docs.sentry.io/organization/integrations/integration-platform/webhooks/
		Headers: []string{"Request-ID", "Sentry-Hook-*"},
		Example: spec.Template{
			ID:     "e4874d664c3540c1a32eab185f12c5ab",
			Type:   "error.created",
			Object: "1170820242",
			Header: map[string]string{
				"Request-ID":            "4e1f8a2b0c3d4e5f8a9b7c6d5e4f3a2b",
				"Sentry-Hook-Resource":  "{{event}}",
				"Sentry-Hook-Timestamp": "{{unix}}",
			},
			Body:    sentryExample,
			Compact: true, // as its documentation's own code demands
		},
		Sources: []spec.Source{
			stated("headers, signature, deadline", "docs.sentry.io/organization/integrations/integration-platform/webhooks"),
			stated("Request-ID is made for each attempt, the body is compact JSON", "getsentry/sentry: src/sentry/sentry_apps/api/serializers/app_platform_event.py"),
			stated("retries of published integrations, and after which failures", "getsentry/sentry: src/sentry/sentry_apps/tasks/sentry_apps.py, src/sentry/utils/sentry_apps/webhooks.py"),
			reported("key of errors", "inferred from the same code: a retry sends the data of the same error again, and an error is created once"),
			notSourced("a key of issues, comments, alerts and installations"),
		},
		Traps: []string{
			"Sentry's own sample verifies JSON that was parsed and written again: genuine events fail it now and then; the bytes as received are what is signed",
			"Sentry-Hook-Timestamp is not signed: a tolerance on it protects nobody",
			"Request-ID is made anew for each attempt: as the key it lets every retry through",
			"published integrations are tried again three times, five minutes apart, after a timeout or an answer of 500 or above; what is answered 400 to 499 is lost, and so is what fails in an integration that is not published",
			"an alert may fire twice for one event, for two rules of one name, and an issue is resolved more than once: their events carry nothing that tells copies apart, and pass through unkeyed",
			"it waits for one second",
		},
	}
}

const sentryExample = `{
  "action": "{{action}}",
  "installation": {"uuid": "a8e5d37a-0000-4000-8000-00000000a001"},
  "data": {
    "error": {
      "event_id": "{{id}}",
      "project": 1001,
      "issue_id": "{{object}}",
      "title": "ReferenceError: claim is not defined",
      "culprit": "?(runner)",
      "level": "error",
      "platform": "javascript",
      "type": "error",
      "metadata": {"type": "ReferenceError", "value": "claim is not defined", "filename": "/runner"},
      "datetime": "{{time}}"
    }
  },
  "actor": {"type": "application", "id": "sentry", "name": "Sentry"}
}`
