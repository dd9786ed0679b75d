package provider

import "github.com/hookonce/hookonce/provider/spec"

// GitLab returns the provider for GitLab webhooks. The secrets are the signing tokens of the webhook, whsec_ followed by
// base64, or its secret tokens, any other text. With a signing token GitLab signs the request by the scheme of Standard
// Webhooks. A secret token it sends along in X-Gitlab-Token, and then nothing of the request is signed. A webhook may have
// both; either that fits a secret suffices. It panics if a token is missing or empty.
//
// The key of a signed request is the Webhook-Id header, which the signature covers; of others it is the Idempotency-Key
// header, which is the same text. GitLab sends it since version 17.4, and it stays the same in retries and when a delivery
// is sent again by hand. Older versions send none: their events pass through unkeyed. The signed time may be five minutes off in either direction. A
// wrong token is answered 503, because older versions disable the webhook for good after four times 401.
func GitLab(secrets ...string) *spec.Provider {
	return must(spec.New(gitlabSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func gitlabSpec() spec.Spec {
	signed := svixVerify("webhook")
	signed.Key = spec.KeyWhsecOnly
	return spec.Spec{
		Name:      "gitlab",
		Title:     "GitLab",
		Secret:    "the webhook's signing token, whsec_ followed by base64, or its secret token, any other text",
		OwnSecret: true,
		Verify:    []spec.Verify{signed, {Kind: spec.Token, Signature: spec.Signature{In: "header:X-Gitlab-Token"}}},
		Event: spec.Extract{
			Key:       [][]spec.Value{{"id"}, {"header:Idempotency-Key"}},
			AttemptID: []spec.Value{"header:X-Gitlab-Webhook-UUID", "header:X-Gitlab-Event-UUID"},
			Type:      []spec.Value{"json:$.object_kind", "header:X-Gitlab-Event"},
			Action:    []spec.Value{"json:$.object_attributes.action"},
			Time:      []spec.Moment{at("json:$.object_attributes.updated_at", spec.RFC3339)},
			Resource:  []spec.Value{"json:$.object_attributes.id"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable, Manual: spec.Stable},
		Order: &spec.Order{
			By:       "json:$.object_attributes.updated_at",
			Unit:     spec.RFC3339,
			Scope:    []spec.Value{"json:$.object_kind", "json:$.object_attributes.id"},
			Advisory: true,
		},
		Answer: spec.Answer{
			Reject:   503,         // anything from 400 to 499 disables the webhook for good, in older versions
			Deadline: 10 * second, // of GitLab.com; an installation of one's own may differ
		},
		Limits: spec.Limits{MaxBody: 25 << 20},
		// https://docs.gitlab.com/user/project/integrations/webhooks/#delivery-headers; the signing token: https://gitlab.com/gitlab-org/gitlab/-/merge_requests/230944
		Headers:   []string{"X-Gitlab-Event", "X-Gitlab-Instance", "X-Gitlab-Webhook-UUID", "X-Gitlab-Event-UUID", "Idempotency-Key", "Webhook-Id", "Webhook-Timestamp", "Webhook-Signature", "X-Gitlab-*"},
		Reconcile: gitlabReconcile(),
		Example: spec.Template{
			ID:     "f5e5f430-f57b-4e6e-9fac-d9128cd7232f",
			Type:   "merge_request.open",
			Object: "93",
			Header: map[string]string{
				"Idempotency-Key":       "{{id}}",
				"Webhook-Id":            "{{id}}",
				"X-Gitlab-Event":        "Merge Request Hook",
				"X-Gitlab-Event-UUID":   "13792a34-0000-4000-8000-00000000e001",
				"X-Gitlab-Webhook-UUID": "6f5f8d5a-0000-4000-8000-00000000d001",
				"X-Gitlab-Instance":     "https://gitlab.example.com",
				"User-Agent":            "GitLab/18.0.0",
			},
			Body: gitlabExample,
		},
		Sources: gitlabSources(),
		Traps:   gitlabTraps(),
	}
}

// gitlabReconcile is the list of what GitLab delivered to a webhook.
func gitlabReconcile() *spec.Reconcile {
	return &spec.Reconcile{
		Servers:    []spec.Server{{Name: "gitlab", URL: "https://gitlab.com"}},
		SelfHosted: true,
		Places: []spec.Place{
			{Name: "project", Path: "/api/v4/projects/{project}/hooks/{hook}"},
			{Name: "group", Path: "/api/v4/groups/{group}/hooks/{hook}"},
		},
		Settings: []spec.Setting{
			{Name: "project", Help: "the project's number or path, as in group/project", Allow: "/"},
			{Name: "group", Help: "the group's number or path", Allow: "/"},
			{Name: "hook", Help: "the webhook's number"},
		},
		Auth: spec.Auth{Kind: spec.AuthHeader, Header: "PRIVATE-TOKEN", Token: "a project, group or personal access token"},
		List: spec.List{
			Path:       "{place}/events?per_page=20",
			Page:       &spec.Page{Kind: spec.PageNumber, Param: "page", Size: 20},
			Sort:       spec.Newest,
			ID:         "$.id",
			Time:       &spec.ListedTime{In: "$.created_at"}, // older versions do not say, see Notes
			Delivered:  &spec.Condition{In: "$.response_status", Is: []string{"2*"}},
			Deliveries: true,
			Event: &spec.Recorded{
				Body:    "$.request_data",
				Headers: "$.request_headers",
				Cut:     &spec.Condition{In: "$.request_data.oversize", Is: []string{"true"}},
				Differs: "addresses of mail are replaced by [REDACTED]",
			},
		},
		Redeliver: &spec.Redeliver{
			Path:   "{place}/events/{id}/resend",
			Rate:   spec.Rate{Requests: 5, Per: minute},
			Rights: "the role Maintainer and the scope api",
		},
		Window: 7 * day,
		Rights: "the role Maintainer (Owner for a group) and the scope read_api",
		Notes: []string{
			"the list is there since version 17.3, sending again since 17.4; it is refused if the webhook's URL has changed since",
			"sending again is the better way: a listed body lacks addresses of mail, and a large one is not recorded at all",
			"older versions do not list when an event was delivered (created_at): of one that has no time of its own nobody knows whether it is from before the range, so the gateway does nothing about it by itself; update GitLab, or compare by hand",
		},
	}
}

// gitlabSources says where each fact is from.
func gitlabSources() []spec.Source {
	return []spec.Source{
		stated("key", "gitlab-org/gitlab: lib/gitlab/web_hooks, app/services/web_hooks/resend_service.rb"),
		stated("signing token: Standard Webhooks, the id is the Idempotency-Key", "gitlab-org/gitlab: merge requests 230944 and 231325"),
		stated("token, delivery ids, no retry after an HTTP error", "gitlab-org/gitlab: app/services/web_hook_service.rb"),
		stated("largest body", "gitlab-org/gitlab: merge request 38687"),
		stated("webhooks are disabled after failures", "docs.gitlab.com/user/project/integrations/webhooks; gitlab-org/gitlab: merge request 166329"),
		reported("deadline", "GitLab documentation, quoted"),
		stated("the secret is the receiver's choice", "docs.gitlab.com/user/project/integrations/webhooks"),
		reported("a retry is signed anew", "inferred: the headers are made for each request: gitlabhq/gitlabhq: app/services/web_hook_service.rb"),
		notSourced("when a request that timed out is retried, and for how long a delivery can be sent again"),
		stated("list, its window, sending again five times a minute", "gitlabhq/gitlabhq: doc/api/project_webhooks.md, lib/api/hooks/events.rb, lib/api/hooks/resend_hook.rb"),
		stated("newest first, what of a body is recorded", "gitlabhq/gitlabhq: app/models/hooks/web_hook_log.rb, lib/api/entities/web_hook_log.rb"),
		reported("scope read_api suffices for the list", "inferred: docs.gitlab.com/user/profile/personal_access_tokens says that it grants read access to the API"),
	}
}

// gitlabTraps are what people get wrong.
func gitlabTraps() []string {
	return []string{
		"X-Gitlab-Event-UUID is shared by all the hooks that one request or a chain of hooks triggers: as the key it loses events; and it changes when the worker runs again, so it lets copies through",
		"X-Gitlab-Webhook-UUID is made anew for every request, whatever its name says: as the key it lets every copy through",
		"older versions disable the webhook for good after four answers of 400 to 499, newer ones after forty failures of any kind: requests with a wrong token are answered 503, which disables it for a while, so that a token that was changed on one side only can be put right",
		"the secret token proves who sends but binds nothing: whoever sees one request can send any other; give the webhook a signing token",
		"while a secret token is configured here beside the signing token, it alone suffices: remove it once the webhook is signed",
		"GitLab says that a request that timed out may be sent twice",
	}
}

const gitlabExample = `{
  "object_kind": "merge_request",
  "event_type": "merge_request",
  "user": {"id": 1, "name": "Example Person", "username": "example", "email": "[REDACTED]"},
  "project": {
    "id": 1001,
    "name": "hooks",
    "namespace": "Example",
    "path_with_namespace": "example/hooks",
    "web_url": "https://gitlab.example.com/example/hooks",
    "default_branch": "main"
  },
  "object_attributes": {
    "id": {{object}},
    "iid": 16,
    "title": "Answer the retried request",
    "state": "opened",
    "action": "open",
    "source_branch": "retry",
    "target_branch": "main",
    "created_at": "{{time}}",
    "updated_at": "{{time}}",
    "url": "https://gitlab.example.com/example/hooks/-/merge_requests/16"
  },
  "labels": [],
  "repository": {"name": "hooks", "homepage": "https://gitlab.example.com/example/hooks"}
}`
