package provider

import (
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Contentful returns the provider for Contentful's webhooks with request verification. The URL is the one of the webhook
// exactly as registered, because the signature covers its path; empty means the URL of the request. The secrets are the
// space's signing secrets, of 64 characters. It panics if a secret is missing or has another form, or the URL is not one.
//
// There is no id: the key is the topic, the entity's id and a hash of the whole entity. The signature covers the body, and
// is accepted for five minutes.
func Contentful(url string, secrets ...string) *spec.Provider {
	return must(spec.New(contentfulSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

func contentfulSpec() spec.Spec {
	return spec.Spec{
		Name:   "contentful",
		Title:  "Contentful",
		Secret: "the space's signing secret, of 64 characters",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.Contentful()}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"header:X-Contentful-Topic", "json:$.sys.id", "hash:json:$"}},
			Type:     []spec.Value{"header:X-Contentful-Topic", "json:$.sys.type"},
			Time:     []spec.Moment{at("json:$.sys.updatedAt", spec.RFC3339)},
			Resource: []spec.Value{"json:$.sys.id"},
			Tenant:   []spec.Value{"json:$.sys.space.sys.id"},
		},
		// Of what was deleted or unpublished this is the time of that. A revision counts what is published only.
		Order:   &spec.Order{By: "json:$.sys.updatedAt", Unit: spec.RFC3339, Scope: []spec.Value{"json:$.sys.id", "json:$.sys.environment.sys.id"}, Advisory: true},
		Answer:  spec.Answer{Deadline: 30 * second, Reject: 503},
		Limits:  spec.Limits{Retry: day}, // the most that a retry policy can ask for; by default it is a minute
		Headers: []string{"X-Contentful-Signed-Headers", "X-Contentful-Timestamp", "X-Contentful-Webhook-Name", "X-Contentful-*"},
		Example: spec.Template{
			ID: "5KsDBWseXY6QegucYAoacS", Type: "ContentManagement.Entry.publish",
			Header: map[string]string{
				"Content-Type": "application/vnd.contentful.management.v1+json", "X-Contentful-Topic": "{{type}}", "X-Contentful-Webhook-Name": "example",
			},
			Body: contentfulExample,
		},
		Sources: []spec.Source{
			stated("signature, secret", "contentful/node-apps-toolkit: src/requests; contentful.com/developers/docs/webhooks/request-verification"),
			stated("topics and headers", "contentful.com/developers/docs/webhooks/headers"),
			stated("retries: two, 30 s apart; up to 99 over 24 hours where a policy asks for that", "contentful.com/developers/docs/webhooks/retry-policy"),
			reported("deadline, and that a status of the 400s may not be retried", "contentfulcommunity.com: webhook retry on failure"),
			reported("key", "inferred: topics of one entity share its id, and a revision counts what is published only"),
			reported("updatedAt of an entity that was unpublished or deleted", "keithws/contentful-webhook-listener.js: README"),
			notSourced("whether the body and the signed time are the same in a retry"),
		},
		Traps: []string{
			"request verification has to be enabled in the space: without it nothing is signed, and everything is rejected",
			"by default there are two retries within a minute: an outage loses events, and the entities have to be fetched",
			"the entity's id is shared by all its events: as the key it loses all but the first",
			"behind a proxy that changes the path everything is rejected",
			"which headers are signed each request says itself; the topic is signed only if it is on that list",
		},
	}
}

const contentfulExample = `{
  "metadata": {"tags": []},
  "sys": {
    "type": "Entry",
    "id": "{{id}}",
    "space": {"sys": {"type": "Link", "linkType": "Space", "id": "examplespace"}},
    "environment": {"sys": {"id": "master", "type": "Link", "linkType": "Environment"}},
    "contentType": {"sys": {"type": "Link", "linkType": "ContentType", "id": "product"}},
    "revision": 3,
    "createdAt": "{{time}}",
    "updatedAt": "{{time}}"
  },
  "fields": {"title": {"en-US": "Example"}}
}`
