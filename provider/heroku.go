package provider

import "github.com/hookonce/hookonce/provider/spec"

// Heroku returns the provider for the webhooks of Heroku's apps and add-ons. The secrets are those that the webhook was
// created with. It panics if a secret is missing or empty.
//
// The key is the id of the event, which the signature covers. No time is signed.
func Heroku(secrets ...string) *spec.Provider {
	return must(spec.New(herokuSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func herokuSpec() spec.Spec {
	return spec.Spec{
		Name:      "heroku",
		Title:     "Heroku",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("Heroku-Webhook-Hmac-SHA256", "", spec.Base64)},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.webhook_metadata.event.id"}, {"json:$.id"}},
			AttemptID:    []spec.Value{"json:$.webhook_metadata.attempt.id"},
			Subscription: []spec.Value{"json:$.webhook_metadata.webhook.id"},
			Type:         []spec.Value{"json:$.resource"},
			Action:       []spec.Value{"json:$.action"},
			Time:         []spec.Moment{at("json:$.created_at", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.data.id"},
			Tenant:       []spec.Value{"json:$.data.app.id"},
		},
		// published_at, updated_at and the attempt are those of the delivery.
		Dedup: spec.Dedup{
			Same:  []spec.Value{"json:$.resource", "json:$.action", "json:$.created_at", "json:$.data", "json:$.previous_data"},
			Retry: spec.Stable,
		},
		Order:   &spec.Order{By: "json:$.created_at", Unit: spec.RFC3339, Scope: []spec.Value{"json:$.resource", "json:$.data.id"}, Advisory: true},
		Limits:  spec.Limits{Retry: 7 * day}, // of webhooks whose level is sync
		Headers: []string{"Heroku-Webhook-*"},
		Example: spec.Template{ID: "7846bee9-b017-4492-9bed-34cd8327e71d", Type: "release.create", Object: "c53451e0-0000-4000-8000-00000000b001", Body: herokuExample},
		Sources: []spec.Source{
			stated("fields, ids of event, delivery and attempt", "devcenter.heroku.com/articles/webhook-events"),
			stated("signature's header, levels notify and sync, the secret is the receiver's choice", "devcenter.heroku.com/articles/app-webhooks-schema"),
			reported("encoding of the signature", "getsentry/sentry: its plugin for Heroku; others read the same"),
			reported("key is the same in every attempt", "inferred: the metadata has an id of its own for the attempt"),
			reported("180 retries over about seven days", "heroku/webhooks-docs: README.md, of the first release"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the id of the attempt, and that of the delivery where two webhooks send one event, let copies through as the key",
			"data.id is the app, the release or the dyno: as the key it loses everything that happens to it after the first event",
			"a webhook of the level notify is sent once, whatever the answer; sync is the level that retries",
			"an authorization header can be set on the webhook besides: it binds nothing, the signature does",
		},
	}
}

const herokuExample = `{
  "id": "{{id}}",
  "action": "{{action}}",
  "actor": {"email": "person@example.com", "id": "33500732-0000-4000-8000-00000000a001"},
  "created_at": "{{time}}",
  "data": {
    "id": "{{object}}",
    "app": {"id": "d2f24bd2-0000-4000-8000-00000000e001", "name": "example-shop"},
    "current": true,
    "description": "Deploy 9d3c1a2b",
    "slug": {"id": "63fb3a6d-0000-4000-8000-00000000c001"},
    "status": "succeeded",
    "version": 17
  },
  "previous_data": {},
  "published_at": "{{time}}",
  "resource": "{{event}}",
  "sequence": null,
  "updated_at": "{{time}}",
  "version": "application/vnd.heroku+json; version=3",
  "webhook_metadata": {
    "attempt": {"id": "8a44f820-0000-4000-8000-00000000f003"},
    "delivery": {"id": "d244009a-0000-4000-8000-00000000f002"},
    "event": {"id": "{{id}}", "include": "api:{{event}}"},
    "webhook": {"id": "b54e6a7e-0000-4000-8000-00000000f001"}
  }
}`
