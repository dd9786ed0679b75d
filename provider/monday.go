package provider

import (
	"github.com/hookonce/hookonce/provider/internal/jws"
	"github.com/hookonce/hookonce/provider/spec"
)

// Monday returns the provider for the webhooks of monday.com's apps. The secrets are the app's signing secrets. It panics if a
// secret is missing or shorter than 32 bytes, which is what HS256 needs.
//
// The token in the header Authorization says that monday.com sends, and for how long that may be believed; it does not cover
// the body. The key is made of the webhook, the trigger and the content of the event. The challenge that is sent when a webhook
// is made is answered.
func Monday(secrets ...string) *spec.Provider {
	return must(spec.New(mondaySpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func mondaySpec() spec.Spec {
	return spec.Spec{
		Name:   "monday",
		Title:  "monday.com",
		Secret: "the app's signing secret, of at least 32 characters",
		Verify: []spec.Verify{{Kind: spec.JWT, Tokens: jws.Tokens{}, Algorithms: []string{"HS256"}}},
		Event: spec.Extract{
			// Nobody says that each event of a trigger has one of its own.
			Key:          [][]spec.Value{{"json:$.event.subscriptionId", "json:$.event.triggerUuid", "hash:json:$.event"}},
			Subscription: []spec.Value{"json:$.event.subscriptionId"},
			Type:         []spec.Value{"json:$.event.type"},
			Time:         []spec.Moment{at("json:$.event.triggerTime", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.event.pulseId", "json:$.event.itemId", "json:$.event.boardId"},
			Tenant:       []spec.Value{"json:$.event.boardId"},
		},
		Order: &spec.Order{By: "json:$.event.triggerTime", Unit: spec.RFC3339, Advisory: true},
		Handshakes: []spec.Handshake{{
			When:        []spec.Match{{Value: "json:$.challenge"}},
			Unsigned:    true,
			Echo:        "json:$.challenge",
			ContentType: "application/json",
			Body:        `{"challenge":"{{echo}}"}`,
		}},
		Headers: []string{"X-Monday-*"},
		Example: spec.Template{ID: "b5ed2e17c530f43668de130142445cba", Type: "create_pulse", Object: "1001", Body: mondayExample},
		Sources: []spec.Source{
			stated("token, its claims, which secret", "developer.monday.com/apps/docs/authorization-header; developer.monday.com/apps/docs/advanced-concepts"),
			reported("algorithm, webhooks that are made without an app are not signed", "webhook-co/webhook: packages/webhooks-spec/src/adapters/bespoke/monday.ts, quoting the sender"),
			reported("challenge, fields", "monday.com documentation, quoted by hookdeck/webhook-skills and by receivers"),
			reported("key", "inferred: triggerUuid names what happened, and the content tells the events of it apart"),
			notSourced("retries"),
			notSourced("whether a retry keeps triggerUuid"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the token does not cover the body: whoever has a token that is still good can send other events with it",
			"webhooks that were made in the board, or with a personal token, have no token at all and are refused: make them with an app",
			"the claim aud, the address that the token is for, is not compared: give each endpoint an app, and with it a secret, of its own",
			"webhooks about the app itself are signed with the client secret, and not with the signing secret",
			"pulseId is the item: as the key it loses every change but the first",
		},
	}
}

const mondayExample = `{
  "event": {
    "userId": 1001,
    "originalTriggerUuid": null,
    "boardId": 1771812698,
    "pulseId": {{object}},
    "pulseName": "Answer the retried request",
    "groupId": "topics",
    "type": "{{type}}",
    "app": "monday",
    "triggerTime": "{{time}}",
    "subscriptionId": 73759690,
    "triggerUuid": "{{id}}"
  }
}`
