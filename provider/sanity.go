package provider

import "github.com/hookonce/hookonce/provider/spec"

// Sanity returns the provider for Sanity's webhooks that are sent with POST. The secrets are those of
// the webhook. It panics if a secret is missing or empty.
//
// The key is the Idempotency-Key header, which the signature does not cover. A time is signed, but not
// checked against a tolerance unless [spec.Settings.Tolerance] says so: Sanity states none.
func Sanity(secrets ...string) *spec.Provider {
	return must(spec.New(sanitySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func sanitySpec() spec.Spec {
	verify := timedMAC("Sanity-Webhook-Signature", spec.Millis, 0)
	verify.Encoding = spec.Base64URL
	return spec.Spec{
		Name:      "sanity",
		Title:     "Sanity",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{verify},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"header:Idempotency-Key", "header:Sanity-Webhook-Id?"}},
			Subscription: []spec.Value{"header:Sanity-Webhook-Id"},
			Type:         []spec.Value{"header:Sanity-Operation"},
			Time:         []spec.Moment{at("header:Sanity-Transaction-Time", spec.RFC3339)},
			Resource:     []spec.Value{"header:Sanity-Document-Id"},
			Tenant:       []spec.Value{"header:Sanity-Project-Id"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		// Any other status of the 400s ends the attempts: a wrong secret would lose events.
		Answer: spec.Answer{Reject: 429, Deadline: 30 * second},
		Limits: spec.Limits{Retry: 2 * minute}, // two retries, each 30 s after up to 30 s of waiting
		// https://www.sanity.io/docs/content-lake/webhooks
		Headers: []string{"Sanity-Dataset", "Sanity-Transaction-Id", "Idempotency-Key", "Sanity-*"},
		Example: spec.Template{
			ID:     "9b2f7c14-3e5d-4a86-b0c1-2d8e6f4a7c93",
			Type:   "update",
			Object: "product-1001",
			Header: map[string]string{
				"Idempotency-Key":         "{{id}}",
				"Sanity-Dataset":          "production",
				"Sanity-Document-Id":      "{{object}}",
				"Sanity-Operation":        "{{type}}",
				"Sanity-Project-Id":       "example1",
				"Sanity-Transaction-Id":   "ExampleTransaction0001",
				"Sanity-Transaction-Time": "{{time}}",
				"Sanity-Webhook-Id":       "ExampleHook0001",
			},
			Body: sanityExample,
		},
		Sources: []spec.Source{
			stated("signature", "sanity-io/webhook-toolkit: src/signature.ts"),
			stated("key, headers, answer, deadline", "Sanity documentation, GROQ-powered webhooks"),
			stated("retries", "sanity.io/docs/changelog, 2026-04-29: twice, 30 seconds apart, instead of for 30 minutes"),
			reported("the secret is the receiver's choice", "Sanity documentation, GROQ-powered webhooks"),
		},
		Traps: []string{
			"the id of the document as the key loses every later change of it",
			"the body is what the webhook's projection makes of the document, and may be anything",
			"a status of 400 to 499 other than 429 ends the attempts: requests with a wrong signature are answered 429, so that a wrong secret can be put right",
			"no header but the signature is signed: whoever replays a captured request can change the key",
			"a webhook can be told to use another method than POST, which is refused",
		},
	}
}

const sanityExample = `{
  "_id": "{{object}}",
  "_type": "product",
  "_rev": "ExampleRevision0001",
  "_createdAt": "{{time}}",
  "_updatedAt": "{{time}}",
  "title": "Hook, brass",
  "slug": {"_type": "slug", "current": "hook-brass"},
  "price": {"amount": 2100, "currency": "EUR"}
}`
