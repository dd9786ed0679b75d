package provider

import "github.com/hookonce/hookonce/provider/spec"

// PandaDoc returns the provider for PandaDoc's webhooks. The secrets are the shared keys of the subscription. It panics if a
// key is missing or empty.
//
// The key is the X-PandaDoc-Webhook-Event-Id header, which stays the same in automatic and manual retries; the signature,
// which is in the URL's query, does not cover it. Deliveries without it pass through unkeyed. No time is signed.
func PandaDoc(secrets ...string) *spec.Provider {
	return must(spec.New(pandaDocSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func pandaDocSpec() spec.Spec {
	v := bodyMAC("", "", spec.Hex)
	v.Signature.In = "query:signature"
	return spec.Spec{
		Name:   "pandadoc",
		Title:  "PandaDoc",
		Secret: "the shared key of the webhook subscription",
		Verify: []spec.Verify{v},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"header:X-PandaDoc-Webhook-Event-Id"}},
			Type:     []spec.Value{"json:$[0].event"},
			Time:     []spec.Moment{at("json:$[0].data.date_modified", spec.RFC3339)},
			Resource: []spec.Value{"json:$[0].data.id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable, Manual: spec.Stable},
		Headers: []string{"X-PandaDoc-*"},
		Example: spec.Template{
			ID:     "5d1c7a6e-0000-4000-8000-00000000d001",
			Type:   "document_state_changed",
			Object: "msFYActMfJHqNTKH8YSvF1",
			Header: map[string]string{"X-PandaDoc-Webhook-Event-Id": "{{id}}"},
			Body:   pandaDocExample,
		},
		Sources: []spec.Source{
			stated("signature and where it is", "developers.pandadoc.com/docs/webhook-verification"),
			stated("key, the same across automatic and manual retries, another for each type of event of one change", "developers.pandadoc.com/changelog/2026-07-20-webhooks-deduplicate"),
			reported("fields", "PandaDoc documentation, quoted by receivers"),
			notSourced("how long it retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the id of the document as the key loses every change of its state but the first",
			"one change makes events of several types, each with an id of its own",
			"the signature is in the query of the URL: a proxy that drops or logs the query drops or logs it",
			"the body is an array",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const pandaDocExample = `[
  {
    "event": "{{type}}",
    "data": {
      "id": "{{object}}",
      "name": "Offer 1001",
      "date_created": "{{time}}",
      "date_modified": "{{time}}",
      "status": "document.completed",
      "recipients": [{"id": "vGBWVvnqZjuQzxTYNoPvgd", "email": "customer@example.com", "has_completed": true}]
    }
  }
]`
