package provider

import (
	"github.com/hookonce/hookonce/provider/internal/jws"
	"github.com/hookonce/hookonce/provider/spec"
)

// MessageBird returns the provider for MessageBird's webhooks with a signature in the form of a token, which are older
// than Bird's (see [Bird]). The URL is the one of the webhook exactly as registered, because the token covers it; empty
// means the URL of the request, which is right only where no proxy changes it. The secrets are the account's signing
// keys. It panics if a secret is missing or shorter than 32 bytes, or the URL is not one.
//
// The products have bodies of their own and no common id: a notification is recognised by its id and a hash of its body.
func MessageBird(url string, secrets ...string) *spec.Provider {
	return must(spec.New(messageBirdSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

func messageBirdSpec() spec.Spec {
	return spec.Spec{
		Name:   "messagebird",
		Title:  "MessageBird",
		Secret: "the account's signing key, which is not its access key",
		Verify: []spec.Verify{{
			Kind: spec.JWT, Tokens: jws.Tokens{}, Algorithms: []string{"HS256"},
			Signature: spec.Signature{In: "header:MessageBird-Signature-JWT"},
			Claims:    map[string]string{"iss": "MessageBird"},
			BodyHash:  "payload_hash",
			URLHash:   "url_hash",
		}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.type", "json:$.message.id", "json:$.message.status", "hash:json:$"},
				{"json:$.id", "hash:json:$"},
			},
			Type:     []spec.Value{"json:$.type", "json:$.subscription_type", "json:$.status"},
			Time:     []spec.Moment{at("json:$.message.updatedDatetime", spec.RFC3339), at("json:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.message.id", "json:$.id"},
		},
		Headers: []string{"MessageBird-*"},
		Example: spec.Template{ID: "5f3437fdb8444583aea093a047ac014b", Type: "message.updated", Body: messageBirdExample},
		Sources: []spec.Source{
			stated("signature, claims", "messagebird/messagebird-nodejs: lib/webhook-signature-jwt.js; messagebird/go-rest-api: signature_jwt"),
			stated("fields of a notification", "developers.messagebird.com/quickstarts/notifications-webhook"),
			reported("fields of a conversation's message", "messagebird/go-rest-api: conversation"),
			reported("key", "inferred: updates of one message share its id"),
			notSourced("retries, and whether the body changes in them"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the token covers the URL: behind a proxy the request's URL differs from the registered one, and everything is rejected",
			"the header MessageBird-Signature is an older scheme, and another one is Bird's: only MessageBird-Signature-JWT counts here",
			"the access key is not the signing key",
			"the message's id is shared by all its updates: as the key it loses all but the first",
		},
	}
}

const messageBirdExample = `{
  "type": "{{type}}",
  "contact": {"id": "8a1d9e1c0000400080000000000c0001", "msisdn": "15550100001"},
  "conversation": {"id": "7c9e66790000400080000000000b0001", "status": "active"},
  "message": {
    "id": "{{id}}",
    "conversationId": "7c9e66790000400080000000000b0001",
    "status": "delivered",
    "direction": "sent",
    "type": "text",
    "content": {"text": "Order 1001 is on its way"},
    "createdDatetime": "{{time}}",
    "updatedDatetime": "{{time}}"
  }
}`
