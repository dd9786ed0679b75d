package provider

import "github.com/hookonce/hookonce/provider/spec"

// Dub returns the provider for Dub's webhooks. The secrets are those of the webhook. It panics if a secret is missing or empty.
//
// The key is the id of the event, which the signature covers. No time is signed by itself.
func Dub(secrets ...string) *spec.Provider {
	return must(spec.New(dubSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func dubSpec() spec.Spec {
	return spec.Spec{
		Name:   "dub",
		Title:  "Dub",
		Secret: "the webhook's secret",
		Verify: []spec.Verify{bodyMAC("Dub-Signature", "", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.event"},
			Time:     []spec.Moment{at("json:$.createdAt", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.id", "json:$.data.customer.id", "json:$.data.link.id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Order:   &spec.Order{By: "json:$.createdAt", Unit: spec.RFC3339, Scope: []spec.Value{"json:$.data.id"}, Advisory: true}, // a customer's sales are in none
		Headers: []string{"Dub-*", "Upstash-*"},
		Example: spec.Template{ID: "evt_KleiO4HBYVYzVwJu", Type: "link.created", Object: "link_1001", Body: dubExample},
		Sources: []spec.Source{
			stated("id, fields, one body for all attempts of all webhooks", "dubinc/dub: apps/web/lib/webhook/prepare-payload.ts, qstash.ts"),
			stated("hash and encoding of the signature", "dubinc/dub: apps/web/lib/webhook/signature.ts"),
			reported("what is signed is the body", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts, quoting the sender"),
			notSourced("how long it retries: a queue sends the requests"),
			notSourced("deadline"),
		},
		Traps: []string{
			"data.id is the link or the customer: as the key it loses every change but the first",
			"two webhooks to one endpoint send the same event with the same id: use one source for each",
		},
	}
}

const dubExample = `{
  "id": "{{id}}",
  "event": "{{type}}",
  "createdAt": "{{time}}",
  "data": {
    "id": "{{object}}",
    "domain": "example.link",
    "key": "answers",
    "url": "https://shop.example.com/answers",
    "shortLink": "https://example.link/answers",
    "clicks": 0,
    "createdAt": "{{time}}",
    "updatedAt": "{{time}}"
  }
}`
