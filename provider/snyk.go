package provider

import "github.com/hookonce/hookonce/provider/spec"

// Snyk returns the provider for Snyk's webhooks. The secrets are those of the webhook. It panics if a secret is missing or
// empty.
//
// The key is the X-Snyk-Transport-ID header, which the signature does not cover. No time is signed.
func Snyk(secrets ...string) *spec.Provider {
	return must(spec.New(snykSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func snykSpec() spec.Spec {
	return spec.Spec{
		Name:      "snyk",
		Title:     "Snyk",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Hub-Signature", "sha256=", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"header:X-Snyk-Transport-ID"}},
			Type:     []spec.Value{"header:X-Snyk-Event"},
			Time:     []spec.Moment{at("header:X-Snyk-Timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.project.id"},
			Tenant:   []spec.Value{"json:$.org.id"},
		},
		Headers: []string{"X-Snyk-*", "X-Hub-Signature"},
		Example: spec.Template{
			ID:     "998fe884-18a0-45db-8ae0-e379eea3bc0a",
			Type:   "project_snapshot/v0",
			Object: "af137b96-0000-4000-8000-00000000b001",
			Header: map[string]string{
				"X-Snyk-Event":        "{{type}}",
				"X-Snyk-Transport-ID": "{{id}}",
				"X-Snyk-Timestamp":    "{{time}}",
			},
			Body: snykExample,
		},
		Sources: []spec.Source{
			stated("headers, signature, the secret is the receiver's choice", "Snyk's API, version 1, Webhooks: Consuming Webhooks"),
			reported("prefix of the signature", "Snyk documentation of validating payloads, quoted by receivers"),
			reported("fields", "Snyk documentation, quoted by receivers"),
			notSourced("retries"),
			notSourced("whether a retry keeps X-Snyk-Transport-ID"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the header X-Hub-Signature is GitHub's, Bitbucket's and Jira's as well, with other secrets",
			"project.id as the key loses every snapshot of a project but the first",
			"each webhook receives every kind of event",
			"the time in X-Snyk-Timestamp is not signed: a tolerance on it protects nobody",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const snykExample = `{
  "project": {"id": "{{object}}", "name": "example/shop:package.json", "origin": "github", "type": "npm", "branch": "main"},
  "org": {"id": "c71af02f-0000-4000-8000-00000000e001", "name": "example", "slug": "example"},
  "group": null,
  "newIssues": [{"id": "npm:ms:20170412", "issueType": "vuln", "pkgName": "ms", "pkgVersions": ["1.0.0"], "issueData": {"severity": "high"}}],
  "removedIssues": []
}`
