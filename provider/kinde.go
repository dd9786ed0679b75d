package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Kinde returns the provider for Kinde's webhooks. In place of a secret it takes the domains that issue the tokens, as in
// https://example.kinde.com. It panics if one is missing or is none. Verification fetches the domain's keys, and keeps
// them.
//
// The body is a token, and what it holds is the event. The key is its event_id, which the signature covers.
func Kinde(domains ...string) *spec.Provider {
	return must(spec.New(kindeSpec(), spec.Settings{Secrets: spec.Secrets(domains...)}))
}

func kindeSpec() spec.Spec {
	return spec.Spec{
		Name:   "kinde",
		Title:  "Kinde",
		Secret: "the domain that issues the tokens, as in https://example.kinde.com",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.Kinde(http.DefaultTransport)}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event_id"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.event_timestamp", spec.RFC3339), at("json:$.timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.user.id", "json:$.data.organization.code", "json:$.data.role.id", "json:$.data.permission.id"},
		},
		// A retry may be signed anew, and have a time of its own.
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.event_id", "json:$.type", "hash:json:$.data"}, Retry: spec.Stable},
		Limits:  spec.Limits{Retry: 36 * hour},
		Headers: []string{"Webhook-Id", "Webhook-*"},
		Example: spec.Template{
			ID: "event_018f2c1e5b7a7c3d9e4f0a1b2c3d4e5f", Type: "user.created",
			Header: map[string]string{"Content-Type": "application/jwt"},
			Body:   kindeExample,
		},
		Sources: []spec.Source{
			stated("the body is a token, address of the keys, event_id is that of the event, webhook-id is the same in all attempts, retries", "kinde-oss/documentation: src/content/docs/integrate/webhooks/about-webhooks.mdx"),
			stated("fields", "@kinde/webhooks: dist/types.d.ts"),
			notSourced("deadline"),
			notSourced("how old the timestamp in the token may be"),
		},
		Traps: []string{
			"only 200 is success; a webhook that fails for 72 hours is switched off",
			"the body is not JSON: what applications want is the second part of the token",
			"users' tokens are signed with the same keys: one without event_id, type and data is refused",
			"the header webhook-id is an id, too, and is not signed: event_id in the token is",
			"the keys are fetched: without a way out to the domain nothing can be verified",
		},
	}
}

const kindeExample = `{
  "data": {
    "user": {
      "id": "kp_example0000000001001",
      "email": "customer@example.com",
      "first_name": "Example",
      "last_name": "Customer",
      "is_suspended": false,
      "organizations": [{"code": "org_example", "permissions": null, "roles": null}]
    }
  },
  "event_id": "{{id}}",
  "event_timestamp": "{{time}}",
  "source": "admin",
  "timestamp": "{{time}}",
  "type": "{{type}}"
}`
