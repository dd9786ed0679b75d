package provider

import "github.com/hookonce/hookonce/provider/spec"

// Buildkite returns the provider for Buildkite's webhooks of pipelines, packages and test suites. The secrets are the
// tokens of the notification service. It panics if a token is missing or empty.
//
// The notification service either signs with the token, and then the signed time may be five minutes off in either
// direction, or sends it along. Events have no id: all pass through unkeyed.
func Buildkite(tokens ...string) *spec.Provider {
	return must(spec.New(buildkiteSpec(), spec.Settings{Secrets: spec.Secrets(tokens...)}))
}

func buildkiteSpec() spec.Spec {
	signature := timed(headerMAC("X-Buildkite-Signature", "signature=", spec.Hex, "ts", "const:.", "body"), "part:timestamp=", spec.Seconds, 5*minute)
	signature.Signature.Split = ","
	return spec.Spec{
		Name:   "buildkite",
		Title:  "Buildkite",
		Secret: "the token of the webhook's notification service",
		Verify: []spec.Verify{
			signature,
			{Kind: spec.Token, Signature: spec.Signature{In: "header:X-Buildkite-Token"}},
		},
		Event: spec.Extract{
			Type:     []spec.Value{"json:$.event", "header:X-Buildkite-Event"},
			Resource: []spec.Value{"json:$.job.id", "json:$.build.id", "json:$.agent.id"},
			Tenant:   []spec.Value{"json:$.pipeline.id"},
		},
		Headers: []string{"X-Buildkite-*"},
		Example: spec.Template{
			ID:     "01900000-0000-7000-8000-000000000001",
			Type:   "build.finished",
			Object: "01900000-0000-7000-8000-00000000b001",
			Header: map[string]string{"X-Buildkite-Event": "{{type}}"},
			Body:   buildkiteExample,
		},
		Sources: []spec.Source{
			stated("signature, token, time of the request, tolerance, fields", "buildkite/docs: pages/apis/webhooks"),
			notSourced("a key: events have no id"),
			notSourced("retries"),
		},
		Traps: []string{
			"events have no id, and the build in them may be a later one than the event is about: neither the build's id nor a hash of the content tells a copy from the next event",
			"a build that was blocked finishes twice, with the same id",
			"a token that is sent along binds nothing: choose the signature in the notification service",
		},
	}
}

const buildkiteExample = `{
  "event": "{{type}}",
  "build": {
    "id": "{{object}}",
    "number": 1001,
    "state": "passed",
    "blocked": false,
    "message": "Answer the retried request",
    "commit": "709d658dc5b6d6afcd46049c2f332ee3f515a67d",
    "branch": "main",
    "source": "webhook",
    "created_at": "{{time}}",
    "started_at": "{{time}}",
    "finished_at": "{{time}}"
  },
  "pipeline": {"id": "01900000-0000-7000-8000-00000000e001", "slug": "shop", "name": "Shop"},
  "sender": {"id": "01900000-0000-7000-8000-00000000a001", "name": "Example Person"}
}`
