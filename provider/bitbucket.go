package provider

import "github.com/hookonce/hookonce/provider/spec"

// Bitbucket returns the provider for Bitbucket webhooks, of the cloud and of a data center. The secrets
// are those of the webhook. It panics if a secret is missing or empty.
//
// The key is the X-Request-UUID header, or X-Request-Id where a data center sends that. The signature
// does not cover it, and no time is signed.
func Bitbucket(secrets ...string) *spec.Provider {
	return must(spec.New(bitbucketSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func bitbucketSpec() spec.Spec {
	return spec.Spec{
		Name:      "bitbucket",
		Title:     "Bitbucket",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Hub-Signature", "sha256=", spec.Hex)},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"header:X-Request-UUID"}, {"header:X-Request-Id"}},
			Subscription: []spec.Value{"header:X-Hook-UUID"},
			Type:         []spec.Value{"header:X-Event-Key"},
			Resource:     []spec.Value{"json:$.repository.uuid"},
			Attempt:      []spec.Value{"header:X-Attempt-Number"},
		},
		Answer: spec.Answer{Reject: 503, Deadline: 10 * second},
		// https://support.atlassian.com/bitbucket-cloud/docs/event-payloads/
		Headers: []string{"X-Event-Key", "X-Hook-UUID", "X-Request-UUID", "X-Request-Id", "X-Attempt-Number", "X-Event-Time"},
		Example: spec.Template{
			ID:     "4b0a4a5b-9c7d-4e53-9a3c-1f6e0a7d2b11",
			Type:   "repo:push",
			Object: "{673a6070-0000-4000-8000-00000000b001}",
			Header: map[string]string{
				"X-Event-Key":      "{{type}}",
				"X-Hook-UUID":      "c8fb4acb-0000-4000-8000-00000000f001",
				"X-Request-UUID":   "{{id}}",
				"X-Attempt-Number": "1",
			},
			Body: bitbucketExample,
		},
		Sources: []spec.Source{
			stated("headers, signature", "support.atlassian.com/bitbucket-cloud/docs/event-payloads"),
			reported("X-Request-Id of a data center", "Atlassian documentation, quoted"),
			reported("the secret is the receiver's choice", "Atlassian, Enhanced webhook security: entered, or generated there"),
			stated("deadline, up to two more requests after a status of the 500s and after no other, of the cloud", "support.atlassian.com/bitbucket-cloud/docs/troubleshoot-webhooks"),
			reported("both come at once", "community.developer.atlassian.com: webhooks retries, tried"),
			notSourced("whether a data center retries"),
			notSourced("whether a retry keeps X-Request-UUID"),
		},
		Traps: []string{
			"X-Hook-UUID is the webhook itself and the same for all its events: as the key it loses everything after the first",
			"the header X-Hub-Signature is GitHub's, Jira's and Intercom's as well, with other hashes and secrets",
			"the cloud sends again twice, at once, and after a status of the 500s alone, so that refused requests are answered 503: an outage of seconds loses events, unless a person has them sent again",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const bitbucketExample = `{
  "push": {
    "changes": [
      {
        "created": false,
        "closed": false,
        "forced": false,
        "new": {
          "type": "branch",
          "name": "main",
          "target": {"type": "commit", "hash": "709d658dc5b6d6afcd46049c2f332ee3f515a67d", "date": "{{time}}", "message": "Answer the retried request\n"}
        },
        "old": {
          "type": "branch",
          "name": "main",
          "target": {"type": "commit", "hash": "1e65c05c1d5171631d92438a13901ca7dae9618c"}
        }
      }
    ]
  },
  "actor": {"type": "user", "display_name": "Example Person", "uuid": "{a54f16da-0000-4000-8000-00000000a001}"},
  "repository": {
    "type": "repository",
    "name": "hooks",
    "full_name": "example/hooks",
    "uuid": "{{object}}",
    "is_private": true
  }
}`
