package provider

import "github.com/hookonce/hookonce/provider/spec"

// Discourse returns the provider for Discourse's webhooks, sent as application/json. The secrets are those of the webhook. It
// panics if a secret is missing or empty.
//
// The key is made of the site and the X-Discourse-Event-Id header, neither of which the signature covers. What somebody has
// sent again keeps the id. Retries, which a site has to turn on, do not: each is flagged as a logical duplicate, by its
// content. No time is signed.
func Discourse(secrets ...string) *spec.Provider {
	return must(spec.New(discourseSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func discourseSpec() spec.Spec {
	return spec.Spec{
		Name:      "discourse",
		Title:     "Discourse",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Discourse-Event-Signature", "sha256=", spec.Hex)},
		Event: spec.Extract{
			// The id is a number that each site counts for itself.
			Key:      [][]spec.Value{{"header:X-Discourse-Instance", "header:X-Discourse-Event-Id"}},
			Type:     []spec.Value{"header:X-Discourse-Event", "header:X-Discourse-Event-Type"},
			Resource: []spec.Value{"json:$.post.id", "json:$.topic.id", "json:$.user.id", "json:$.reviewable.id", "json:$.category.id", "json:$.group.id", "json:$.tag.id"},
			Tenant:   []spec.Value{"header:X-Discourse-Instance"},
		},
		Dedup: spec.Dedup{
			Retry: spec.NotSent, Manual: spec.Stable, // retries, where a site turns them on, have another id
			Logical: []spec.Logical{{Key: []spec.Value{"header:X-Discourse-Event", "hash:json:$"}, Window: day}},
		},
		Headers: []string{"X-Discourse-*"},
		Example: spec.Template{
			ID:     "158765",
			Type:   "post_created",
			Object: "1001",
			Header: map[string]string{
				"X-Discourse-Instance":   "https://forum.example.com",
				"X-Discourse-Event-Id":   "{{id}}",
				"X-Discourse-Event-Type": "post",
				"X-Discourse-Event":      "{{type}}",
			},
			Body: discourseExample,
		},
		Sources: []spec.Source{
			stated("signature, headers, retries and that each makes an id of its own, what 404 and 410 do", "discourse/discourse: app/jobs/regular/emit_web_hook_event.rb"),
			stated("what is sent again by hand has the headers and the body of the first", "discourse/discourse: app/jobs/regular/redeliver_web_hook_event.rb"),
			stated("the secret is the receiver's choice", "discourse/discourse: app/jobs/regular/emit_web_hook_event.rb signs with what was entered"),
			notSourced("deadline"),
		},
		Traps: []string{
			"a retry has another id than what it repeats: the same content under two ids is flagged as a logical duplicate, and is not dropped",
			"nothing is sent again by itself unless the site setting retry_web_hook_events is on: then it is after 1, 5, 25 and 125 minutes",
			"after four retries a status of 404 or 410 deactivates the webhook",
			"a webhook with the content type application/x-www-form-urlencoded has JSON in its body all the same: choose application/json",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const discourseExample = `{
  "post": {
    "id": {{object}},
    "username": "example",
    "created_at": "{{time}}",
    "updated_at": "{{time}}",
    "post_number": 2,
    "topic_id": 17,
    "topic_slug": "answers",
    "raw": "Is order 1001 paid?",
    "cooked": "<p>Is order 1001 paid?</p>"
  }
}`
