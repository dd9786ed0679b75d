package provider

import "github.com/hookonce/hookonce/provider/spec"

// Jira returns the provider for Jira webhooks that are signed with a secret: those that an administrator
// registers. It panics if a secret is missing or empty. Those of Connect apps carry a token instead and
// are not accepted.
//
// The key is the X-Atlassian-Webhook-Identifier header, which stays the same in retries. The signature
// does not cover it, and no time is signed.
func Jira(secrets ...string) *spec.Provider {
	return must(spec.New(jiraSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func jiraSpec() spec.Spec {
	return spec.Spec{
		Name:      "jira",
		Title:     "Jira",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Hub-Signature", "sha256=", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"header:X-Atlassian-Webhook-Identifier"}},
			Type:     []spec.Value{"json:$.webhookEvent"},
			Resource: []spec.Value{"json:$.issue.id"},
			Attempt:  []spec.Value{"header:X-Atlassian-Webhook-Retry"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		// Other statuses of the 400s than 408, 409, 425 and 429 are final: a wrong secret would lose events.
		Answer: spec.Answer{Reject: 503},
		Limits: spec.Limits{MaxBody: 25 << 20, Retry: hour}, // retries may come half an hour later, "subject to change"
		// https://developer.atlassian.com/cloud/jira/platform/webhooks/
		Headers: []string{"X-Atlassian-Webhook-Flow", "X-Atlassian-*"},
		Example: spec.Template{
			ID:     "5c1e1a3f-6d1e-4b6c-8e3a-7d2f9b0c4e55",
			Type:   "jira:issue_updated",
			Object: "10002",
			Header: map[string]string{
				"X-Atlassian-Webhook-Identifier": "{{id}}",
				"X-Atlassian-Webhook-Flow":       "Primary",
			},
			Body: jiraExample,
		},
		Sources: []spec.Source{
			reported("key is the same in retries, count of retries, flow", "MrRefactoring/jira.js: documentation of webhooks, quoting Atlassian"),
			reported("signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("the secret is the receiver's choice", "Atlassian documentation, quoted"),
			stated("retries of Jira Cloud, after 408, 409, 425, 429, 5xx and failed connections", "community.developer.atlassian.com: t/new-jira-cloud-webhook-retry-policy/30554"),
			reported("payloads of up to 25 MB", "gravitational/teleport: integrations/access/jira, quoting Atlassian"),
			notSourced("retries of Jira Data Center"),
			notSourced("time of the event"),
		},
		Traps: []string{
			"deletions that follow from another one arrive late, in the flow that X-Atlassian-Webhook-Flow calls Secondary",
			"the header X-Hub-Signature is GitHub's, Bitbucket's and Intercom's as well, with other hashes and secrets",
			"the id is not signed: whoever replays a captured request can change it",
			"Connect apps are sent a token with a hash of the query instead of this signature: they are rejected",
		},
	}
}

const jiraExample = `{
  "webhookEvent": "{{type}}",
  "issue_event_type_name": "issue_generic",
  "user": {"accountId": "example:0001", "displayName": "Example Person", "active": true},
  "issue": {
    "id": "{{object}}",
    "key": "HOOK-17",
    "fields": {
      "summary": "The answer to a retried request is missing",
      "issuetype": {"id": "10004", "name": "Bug", "subtask": false},
      "project": {"id": "10000", "key": "HOOK", "name": "Hooks"},
      "status": {"id": "3", "name": "In Progress"},
      "priority": {"id": "3", "name": "Medium"},
      "labels": ["webhooks"],
      "updated": "{{time}}"
    }
  },
  "changelog": {
    "id": "10124",
    "items": [{"field": "status", "fieldtype": "jira", "fromString": "To Do", "toString": "In Progress"}]
  }
}`
