package provider

import "github.com/hookonce/hookonce/provider/spec"

// Notion returns the provider for the webhooks of Notion's integrations. The secrets are the verification tokens of the
// subscription. It panics if a token is missing or empty.
//
// The key is the id of the event, which the signature covers. No time is signed. The first request of a subscription
// brings the token, unsigned, and is answered 200.
func Notion(secrets ...string) *spec.Provider {
	return must(spec.New(notionSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func notionSpec() spec.Spec {
	return spec.Spec{
		Name:   "notion",
		Title:  "Notion",
		Secret: "the subscription's verification token, which Notion posts to the endpoint once",
		Verify: []spec.Verify{bodyMAC("X-Notion-Signature", "sha256=", spec.Hex)},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.id"}},
			Subscription: []spec.Value{"json:$.subscription_id"},
			Type:         []spec.Value{"json:$.type"},
			Time:         []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.entity.id"},
			Tenant:       []spec.Value{"json:$.workspace_id"},
		},
		// Whatever else is there may be that of the attempt.
		Dedup: spec.Dedup{
			Same:  []spec.Value{"json:$.type", "json:$.timestamp", "json:$.entity", "json:$.data"},
			Retry: spec.Stable,
		},
		Order: &spec.Order{By: "json:$.timestamp", Unit: spec.RFC3339, Advisory: true},
		Handshakes: []spec.Handshake{{
			When:     []spec.Match{{Value: "json:$.verification_token"}},
			Unsigned: true,
		}},
		Limits:  spec.Limits{Retry: day}, // eight retries, the last about a day later
		Headers: []string{"X-Notion-*"},
		Example: spec.Template{ID: "367cba44-b6f3-4c92-81e7-6a2e9659efd4", Type: "page.properties_updated", Object: "153104cd-0000-4000-8000-00000000b001", Body: notionExample},
		Sources: []spec.Source{
			stated("signature", "makenotion/notion-sdk-js: src/webhooks.ts"),
			stated("the token comes in the first request; events say what changed and not how", "developers.notion.com/reference/webhooks"),
			reported("fields", "Notion documentation, quoted by guides of Hooksbase and Hookdeck"),
			reported("eight retries in about a day, no order", "Notion documentation, quoted"),
			reported("the id is the same in every attempt", "inferred: what is sent again is the event, and the id is its own"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the request that brings the verification token is answered, and the token is shown nowhere here: have it sent to an endpoint that shows it first, and change the address afterwards",
			"the id of the page as the key loses every change but the first",
			"events of one page within a short time are put together, and the event does not say what the page is now: fetch it",
		},
	}
}

const notionExample = `{
  "id": "{{id}}",
  "timestamp": "{{time}}",
  "workspace_id": "13950b26-0000-4000-8000-00000000e001",
  "subscription_id": "29d75c0d-0000-4000-8000-00000000f001",
  "integration_id": "0ef2e755-0000-4000-8000-00000000d001",
  "type": "{{type}}",
  "entity": {"id": "{{object}}", "type": "page"},
  "data": {"parent": {"id": "1a2b3c4d-0000-4000-8000-00000000c001", "type": "database"}, "updated_properties": ["title"]}
}`
