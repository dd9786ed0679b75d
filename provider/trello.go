package provider

import "github.com/hookonce/hookonce/provider/spec"

// Trello returns the provider for Trello's webhooks. The URL is the callback URL exactly as the webhook
// was made with it, because the signature covers it; empty means the URL of the request, which is right
// only where no proxy changes it. The secrets are those of the app. It panics if a secret is missing or
// empty, or the URL is not one. The HEAD request that precedes a webhook is answered.
//
// The key is the id of the action together with that of the watched model: an action reaches the
// webhooks of two models as two events. The signature covers it. No time is signed.
func Trello(url string, secrets ...string) *spec.Provider {
	return must(spec.New(trelloSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func trelloSpec() spec.Spec {
	verify := headerMAC("X-Trello-Webhook", "", spec.Base64, "body", "url")
	verify.Hash = spec.SHA1
	return spec.Spec{
		Name:   "trello",
		Title:  "Trello",
		Secret: "the app's secret",
		Verify: []spec.Verify{verify},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.model.id", "json:$.action.id"}},
			Type:     []spec.Value{"json:$.action.type"},
			Time:     []spec.Moment{at("json:$.action.date", spec.RFC3339)},
			Resource: []spec.Value{"json:$.model.id"},
			Tenant:   []spec.Value{"json:$.action.idMemberCreator"},
		},
		// The model is written as it is when it is sent.
		Dedup:      spec.Dedup{Same: []spec.Value{"json:$.action.id", "json:$.action.type", "json:$.action.date", "json:$.action.data"}},
		Handshakes: []spec.Handshake{{Method: "HEAD"}},
		Headers:    []string{"X-Trello-*"},
		Example:    spec.Template{ID: "51f9277b2822b8654f0023af", Type: "updateCard", Object: "5f0000000000000000000002", Body: trelloExample},
		Sources: []spec.Source{
			stated("signature, HEAD, fields of the action", "developer.atlassian.com/cloud/trello/guides/rest-api/webhooks"),
			reported("key", "inferred: the id is that of the action, and not of an attempt"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"behind a proxy the request's URL differs from the callback URL, and everything is rejected",
			"the webhook can only be made while HEAD is answered with 200",
			"webhooks of a board and of a list on it both report an action: the model is part of the key",
		},
	}
}

const trelloExample = `{
  "action": {
    "id": "{{id}}",
    "idMemberCreator": "5f0000000000000000000001",
    "data": {
      "board": {"id": "{{object}}", "name": "Orders", "shortLink": "example1"},
      "card": {"id": "5f0000000000000000000003", "idShort": 1001, "name": "Order 1001", "shortLink": "example2"},
      "listBefore": {"id": "5f0000000000000000000004", "name": "Open"},
      "listAfter": {"id": "5f0000000000000000000005", "name": "Paid"}
    },
    "type": "{{type}}",
    "date": "{{time}}",
    "memberCreator": {"id": "5f0000000000000000000001", "fullName": "Example", "username": "example"}
  },
  "model": {
    "id": "{{object}}",
    "name": "Orders",
    "closed": false
  }
}`
