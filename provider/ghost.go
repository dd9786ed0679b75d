package provider

import "github.com/hookonce/hookonce/provider/spec"

// Ghost returns the provider for the webhooks of Ghost's custom integrations. The secrets are those of the webhook. It panics
// if a secret is missing or empty.
//
// The body and the time of the request, in milliseconds, are signed; the time may be five minutes off in either direction.
// Events have neither an id nor a type, and two of them may be about the same content: all pass through unkeyed.
func Ghost(secrets ...string) *spec.Provider {
	return must(spec.New(ghostSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func ghostSpec() spec.Spec {
	v := timed(headerMAC("X-Ghost-Signature", "sha256=", spec.Hex, "body", "ts"), "part:t=", spec.Millis, 5*minute)
	v.Signature.Split = ", "
	return spec.Spec{
		Name:      "ghost",
		Title:     "Ghost",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{v},
		Event: spec.Extract{
			Time: []spec.Moment{at("json:$.post.current.updated_at", spec.RFC3339), at("json:$.page.current.updated_at", spec.RFC3339), at("json:$.member.current.updated_at", spec.RFC3339)},
			Resource: []spec.Value{
				"json:$.post.current.id", "json:$.page.current.id", "json:$.member.current.id", "json:$.tag.current.id",
				"json:$.post.previous.id", "json:$.page.previous.id", "json:$.member.previous.id", "json:$.tag.previous.id",
			},
		},
		Answer:  spec.Answer{Deadline: 2 * second},
		Headers: []string{"X-Ghost-*", "Content-Version"},
		Example: spec.Template{ID: "1001", Object: "65f1c0de0000000000001001", Body: ghostExample},
		Sources: []spec.Source{
			stated("signature, deadline, what 410 does, the secret is optional", "TryGhost/Ghost: ghost/core/core/server/services/webhooks/webhook-trigger.js"),
			stated("the secret is the receiver's choice", "TryGhost/Ghost: ghost/core/core/server/services/webhooks/webhook-trigger.js signs with what was entered"),
			notSourced("a key: events have neither id nor type"),
			notSourced("tolerance of the signed time: it is made when the request is"),
			notSourced("retries: five are asked for, of a library that retries no POST unless it is told to"),
		},
		Traps: []string{
			"nothing in the request says which event it is: give each event of a webhook a URL, and a source, of its own",
			"a post that is published is edited as well: two requests with one content",
			"a status of 410 deletes the webhook",
			"a webhook without a secret is not signed, and is refused",
			"the time is in milliseconds, and is signed after the body, without a separator",
		},
	}
}

const ghostExample = `{
  "post": {
    "current": {
      "id": "{{object}}",
      "uuid": "0e1a2b3c-0000-4000-8000-00000000b001",
      "title": "Answers to retried requests",
      "slug": "answers-{{id}}",
      "status": "published",
      "visibility": "public",
      "created_at": "{{time}}",
      "updated_at": "{{time}}",
      "published_at": "{{time}}"
    },
    "previous": {"status": "draft", "updated_at": "{{time}}", "published_at": null}
  }
}`
