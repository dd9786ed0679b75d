package provider

import "github.com/hookonce/hookonce/provider/spec"

// GitHub returns the provider for GitHub webhooks: of repositories, organisations and apps, sent as
// JSON or as a form. The secrets are those of the webhook. It panics if a secret is missing or empty.
//
// The key is the X-GitHub-Delivery header, which stays the same when a delivery is sent again. The
// signature does not cover it, and no time is signed.
func GitHub(secrets ...string) *spec.Provider {
	return must(spec.New(githubSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func githubSpec() spec.Spec {
	return spec.Spec{
		Name:      "github",
		Title:     "GitHub",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Hub-Signature-256", "sha256=", spec.Hex)},
		Form:      "payload",
		Event: spec.Extract{
			Key:      [][]spec.Value{{"header:X-GitHub-Delivery"}},
			Type:     []spec.Value{"header:X-GitHub-Event"},
			Action:   []spec.Value{"json:$.action"},
			Resource: []spec.Value{"json:$.repository.id"},
		},
		Dedup:  spec.Dedup{Retry: spec.NotSent, Manual: spec.Stable},
		Answer: spec.Answer{Deadline: 10 * second}, // 30 s on an Enterprise Server
		Limits: spec.Limits{
			MaxBody: 25 << 20, // larger payloads are never sent
			Manual:  3 * day,
		},
		// https://docs.github.com/en/webhooks/webhook-events-and-payloads#delivery-headers
		Headers: []string{"X-GitHub-Hook-ID", "X-GitHub-Hook-Installation-Target-ID", "X-GitHub-Hook-Installation-Target-Type", "X-GitHub-Enterprise-Host", "X-GitHub-Enterprise-Version", "X-Hub-Signature", "X-GitHub-*"},
		Reconcile: &spec.Reconcile{
			Servers:    []spec.Server{{Name: "github", URL: "https://api.github.com"}},
			SelfHosted: true,
			Places: []spec.Place{
				{Name: "repository", Path: "/repos/{owner}/{repo}/hooks/{hook}"},
				{Name: "organization", Path: "/orgs/{owner}/hooks/{hook}"},
				{Name: "app", Path: "/app/hook"},
			},
			Settings: []spec.Setting{
				{Name: "owner", Help: "the user or organisation"},
				{Name: "repo", Help: "the repository's name, without its owner"},
				{Name: "hook", Help: "the webhook's number, which is at the end of its address in the settings"},
			},
			Auth:   spec.Auth{Token: "a fine-grained personal access token; for an app's webhook its JSON Web Token"},
			Header: map[string]spec.Pattern{"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"},
			List: spec.List{
				Path:       "{place}/deliveries?per_page=100",
				Page:       &spec.Page{Kind: spec.PageLink},
				Sort:       spec.Newest,
				ID:         "$.id",
				Time:       &spec.ListedTime{In: "$.delivered_at"},
				Delivered:  &spec.Condition{In: "$.status", Is: []string{"OK"}},
				Deliveries: true,
				// The entry has the action where the body has it, and nothing else of the body.
				Event: &spec.Recorded{Body: "$", Header: map[string]spec.Path{"X-GitHub-Delivery": "$.guid", "X-GitHub-Event": "$.event"}},
			},
			Detail: &spec.Detail{
				Path:  "{place}/deliveries/{id}",
				Event: spec.Recorded{Body: "$.request.payload", Headers: "$.request.headers", Differs: "it is JSON also where the webhook is sent as a form"},
			},
			Redeliver: &spec.Redeliver{
				Path:   "{place}/deliveries/{id}/attempts",
				Rights: "Webhooks: read and write, for a repository or an organisation",
			},
			Window: 3 * day, // 7 days on an Enterprise Server
			Rate:   spec.Rate{Requests: 1, Per: second},
			Rights: "Webhooks: read, for a repository or an organisation",
			Notes: []string{
				"on an Enterprise Server, server is https://HOST/api/v3",
			},
		},
		Example: spec.Template{
			ID:     "72d3162e-cc78-11e3-81ab-4c9367dc0958",
			Type:   "issues.opened",
			Object: "1296269",
			Header: map[string]string{
				"X-GitHub-Delivery": "{{id}}",
				"X-GitHub-Event":    "{{event}}",
				"User-Agent":        "GitHub-Hookshot/0000000",
			},
			Body: githubExample,
		},
		Sources: []spec.Source{
			stated("signature", "github/docs: content/webhooks/using-webhooks/validating-webhook-deliveries.md"),
			stated("key is the same on redelivery", "github/docs: content/webhooks/using-webhooks/best-practices-for-using-webhooks.md"),
			stated("no automatic retries, deadline", "github/docs: content/webhooks/using-webhooks/handling-failed-webhook-deliveries.md"),
			stated("form field and size", "github/docs: data/reusables/webhooks/content_type_and_secret.md, payload_cap"),
			reported("redelivery for three days", "github/docs, quoted"),
			stated("the secret is the receiver's choice", "github/docs: content/webhooks/using-webhooks/validating-webhook-deliveries.md"),
			stated("list of deliveries, details, sending again", "google/go-github: github/repos_hooks_deliveries.go; docs.github.com/en/rest/repos/webhooks"),
			stated("what was not delivered has another status than OK", "github/docs: content/webhooks/using-webhooks/handling-failed-webhook-deliveries.md"),
			reported("the list goes back three days", "github/docs, quoted"),
			reported("rate of the list", "inferred: less than the 5000 requests an hour that GitHub permits"),
		},
		Traps: []string{
			"GitHub does not retry by itself: a delivery that failed comes again only when somebody asks for it",
			"one change that reaches a repository's, an organisation's and an app's hook has three delivery ids: use one source for each hook",
			"an event that was answered with an error comes again with the same id, and has to be handled then",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const githubExample = `{
  "action": "{{action}}",
  "issue": {
    "id": 1001001001,
    "node_id": "I_example",
    "number": 1347,
    "title": "Found a bug",
    "state": "open",
    "body": "The answer to a retried request is missing.",
    "user": {"login": "octocat", "id": 1, "type": "User"},
    "labels": [{"id": 208045946, "name": "bug", "color": "f29513", "default": true}],
    "comments": 0,
    "created_at": "{{time}}",
    "updated_at": "{{time}}"
  },
  "repository": {
    "id": {{object}},
    "node_id": "R_example",
    "name": "Hello-World",
    "full_name": "octocat/Hello-World",
    "private": false,
    "owner": {"login": "octocat", "id": 1, "type": "User"},
    "html_url": "https://github.com/octocat/Hello-World",
    "default_branch": "main"
  },
  "sender": {"login": "octocat", "id": 1, "type": "User"}
}`
