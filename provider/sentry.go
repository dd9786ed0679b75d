package provider

import "github.com/hookonce/hookonce/provider/spec"

// Sentry returns the provider for the webhooks of Sentry's integration platform. The secrets are the
// client secrets of the integration. It panics if a secret is missing or empty.
//
// The key is the Request-ID header. The signature does not cover it, nor the time in
// Sentry-Hook-Timestamp, to which no tolerance is applied for that reason.
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
			Key:      [][]spec.Value{{"header:Request-ID"}},
			Type:     []spec.Value{"header:Sentry-Hook-Resource"},
			Action:   []spec.Value{"json:$.action"},
			Time:     []spec.Moment{at("header:Sentry-Hook-Timestamp", spec.Seconds)},
			Resource: []spec.Value{"json:$.data.issue.id"},
		},
		Dedup: spec.Dedup{Retry: spec.NotSent},
		// https://docs.sentry.io/organization/integrations/integration-platform/webhooks/
		Headers: []string{"Request-ID", "Sentry-Hook-*"},
		Example: spec.Template{
			ID:     "4e1f8a2b-0c3d-4e5f-8a9b-7c6d5e4f3a2b",
			Type:   "issue.created",
			Object: "1170820242",
			Header: map[string]string{
				"Request-ID":            "{{id}}",
				"Sentry-Hook-Resource":  "{{event}}",
				"Sentry-Hook-Timestamp": "{{unix}}",
			},
			Body: sentryExample,
		},
		Sources: []spec.Source{
			stated("headers, signature", "docs.sentry.io/organization/integrations/integration-platform/webhooks"),
			reported("no retries", "Sentry documentation of service hooks, quoted"),
			notSourced("deadline"),
		},
		Traps: []string{
			"Sentry's own sample verifies JSON that was parsed and written again: genuine events fail it now and then; the bytes as received are what is signed",
			"Sentry-Hook-Timestamp is not signed: a tolerance on it protects nobody",
			"what fails is not sent again: an event that is answered with an error is lost",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const sentryExample = `{
  "action": "{{action}}",
  "installation": {"uuid": "a8e5d37a-0000-4000-8000-00000000a001"},
  "data": {
    "issue": {
      "id": "{{object}}",
      "shortId": "HOOKS-1",
      "title": "ReferenceError: claim is not defined",
      "culprit": "?(runner)",
      "level": "error",
      "status": "unresolved",
      "platform": "javascript",
      "project": {"id": "1001", "name": "hooks", "slug": "hooks", "platform": "javascript"},
      "type": "error",
      "metadata": {"type": "ReferenceError", "value": "claim is not defined", "filename": "/runner"},
      "numComments": 0,
      "userCount": 0,
      "count": "1",
      "firstSeen": "{{time}}",
      "lastSeen": "{{time}}"
    }
  },
  "actor": {"type": "application", "id": "sentry", "name": "Sentry"}
}`
