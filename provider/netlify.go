package provider

import (
	"github.com/hookonce/hookonce/provider/internal/jws"
	"github.com/hookonce/hookonce/provider/spec"
)

// Netlify returns the provider for Netlify's outgoing webhooks of deploys. The secrets are the JWS secret tokens of the
// notifications. It panics if a secret is missing or shorter than 32 bytes, which is what HS256 needs.
//
// There is no id: the key is the deploy's id, its state and a hash of the whole body. The token covers the body, and no
// time.
func Netlify(secrets ...string) *spec.Provider {
	return must(spec.New(netlifySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func netlifySpec() spec.Spec {
	return spec.Spec{
		Name:      "netlify",
		Title:     "Netlify",
		Secret:    "the notification's JWS secret token, of at least 32 characters",
		OwnSecret: true,
		Verify: []spec.Verify{{
			Kind: spec.JWT, Tokens: jws.Tokens{}, Algorithms: []string{"HS256"},
			Signature: spec.Signature{In: "header:X-Webhook-Signature"},
			Claims:    map[string]string{"iss": "netlify"},
			BodyHash:  "sha256",
		}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id", "json:$.state", "hash:json:$"}},
			Type:     []spec.Value{"header:X-Netlify-Event", "json:$.state"},
			Time:     []spec.Moment{at("json:$.updated_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.id"},
			Tenant:   []spec.Value{"json:$.site_id"},
		},
		Order:   &spec.Order{By: "json:$.updated_at", Unit: spec.RFC3339, Advisory: true},
		Headers: []string{"X-Netlify-*"},
		Example: spec.Template{
			ID: "5ebc34bf4fea0b01f02efa3a", Type: "deploy_created",
			Header: map[string]string{"X-Netlify-Event": "{{type}}"},
			Body:   netlifyExample,
		},
		Sources: []spec.Source{
			stated("signature", "docs.netlify.com/site-deploys/notifications: payload signature"),
			reported("issuer, claim sha256 is the hash of the raw body, HS256", "webhook-co/webhook: packages/webhooks-spec/src/adapters/bespoke/netlify.ts; simstudioai/sim: pull request 4518"),
			reported("body is the deploy", "gitlab.com/jamietanna/www-api: issue 107, a captured request"),
			reported("header X-Netlify-Event", "applications that read it"),
			reported("key", "inferred: one deploy has many notifications, and none of them an id"),
			notSourced("retries, and whether the body changes in them"),
			notSourced("deadline"),
		},
		Traps: []string{
			"without a JWS secret token the notification is not signed, and everything is rejected here",
			"the deploy's id is shared by all its notifications: as the key it loses all but the first",
			"the body has log_access_attributes with a token in it: whoever keeps bodies keeps that",
			"a secret shorter than 32 bytes is refused: HS256 needs as many",
		},
	}
}

const netlifyExample = `{
  "id": "{{id}}",
  "site_id": "fa4dd95a-0000-4000-8000-000000001001",
  "build_id": "5ebc34bf4fea0b01f02efa38",
  "state": "ready",
  "name": "example",
  "url": "https://www.example.com",
  "ssl_url": "https://www.example.com",
  "deploy_url": "http://{{id}}--example.netlify.app",
  "created_at": "{{time}}",
  "updated_at": "{{time}}",
  "published_at": "{{time}}",
  "branch": "main",
  "context": "production",
  "commit_ref": null,
  "error_message": null,
  "deploy_time": 159
}`
