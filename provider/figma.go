package provider

import "github.com/hookonce/hookonce/provider/spec"

// Figma returns the provider for Figma's webhooks, version 2. The secrets are the passcodes of the webhook, which Figma sends
// along in the body: nothing of the request is signed. It panics if a passcode is missing or empty.
//
// Events have no id. The key of a comment and of a named version is made of the webhook, the event, its time and the id of
// the comment or version. Other events pass through unkeyed: one publication of a library makes several of one moment. No
// time is signed.
func Figma(passcodes ...string) *spec.Provider {
	return must(spec.New(figmaSpec(), spec.Settings{Secrets: spec.Secrets(passcodes...)}))
}

func figmaSpec() spec.Spec {
	return spec.Spec{
		Name:      "figma",
		Title:     "Figma",
		Secret:    "the webhook's passcode",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "json:$.passcode"}}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.webhook_id", "json:$.event_type", "json:$.timestamp", "json:$.comment_id"},
				{"json:$.webhook_id", "json:$.event_type", "json:$.timestamp", "json:$.version_id"},
			},
			Subscription: []spec.Value{"json:$.webhook_id"},
			Type:         []spec.Value{"json:$.event_type"},
			Time:         []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.file_key"},
		},
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.event_type", "json:$.timestamp", "json:$.file_key", "json:$.comment", "json:$.description"}},
		Headers: []string{"X-Figma-*"},
		Example: spec.Template{ID: "813142367", Type: "FILE_COMMENT", Object: "zH24k20aPKIxs80BI0000a", Body: figmaExample},
		Sources: []spec.Source{
			stated("fields, the passcode is the receiver's choice and comes in every request", "figma/rest-api-spec: dist/api_types.ts, WebhookBasePayload and those made of it"),
			reported("key", "inferred: timestamp is when the event was triggered"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the passcode is in the body, which is passed on: whoever sees one request can send others",
			"file_key as the key loses every event of a file but the first",
			"one publication of a library may come as several events, of components, styles and variables: they pass through unkeyed",
			"the event PING is sent when a webhook is made, with nothing but the passcode in it",
		},
	}
}

const figmaExample = `{
  "event_type": "{{type}}",
  "passcode": "",
  "timestamp": "{{time}}",
  "webhook_id": "1001",
  "file_key": "{{object}}",
  "file_name": "Checkout",
  "comment_id": "{{id}}",
  "comment": [{"text": "Is the button blue?"}],
  "mentions": [],
  "order_id": "17",
  "parent_id": "",
  "created_at": "{{time}}",
  "resolved_at": "",
  "triggered_by": {"id": "1001", "handle": "Example Person"}
}`
