package provider

import (
	"github.com/hookonce/hookonce/provider/internal/jws"
	"github.com/hookonce/hookonce/provider/spec"
)

// Vonage returns the provider for the signed webhooks of Vonage's Messages and Voice APIs. The secrets are the account's
// signature secrets. It panics if a secret is missing or shorter than 32 bytes, which is what HS256 needs.
//
// There is no id: the key is the message's or call's id with its status and the time of that. The token covers the body.
func Vonage(secrets ...string) *spec.Provider {
	return must(spec.New(vonageSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func vonageSpec() spec.Spec {
	return spec.Spec{
		Name:   "vonage",
		Title:  "Vonage",
		Secret: "the account's signature secret, of at least 32 characters",
		Verify: []spec.Verify{{
			Kind: spec.JWT, Tokens: jws.Tokens{}, Algorithms: []string{"HS256"},
			Signature: spec.Signature{Prefix: "Bearer "},
			BodyHash:  "payload_hash",
		}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.message_uuid", "json:$.timestamp", "json:$.status?"},
				{"json:$.uuid", "json:$.timestamp", "json:$.status?"},
			},
			Type:     []spec.Value{"json:$.status", "json:$.message_type"},
			Time:     []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.message_uuid", "json:$.uuid"},
			Tenant:   []spec.Value{"json:$.to"},
		},
		Answer:  spec.Answer{Reject: 503},
		Headers: []string{"X-Vonage-*"},
		Example: spec.Template{ID: "aaaaaaaa-bbbb-4ccc-8ddd-0123456789ab", Type: "delivered", Body: vonageExample},
		Sources: []spec.Source{
			stated("signature, payload_hash, a status of the 500s is retried", "developer.nexmo.com/messages/concepts/signed-webhooks; developer.vonage.com/en/getting-started/concepts/webhooks"),
			stated("algorithm", "Vonage/vonage-node-sdk: packages/jwt, verifySignature"),
			reported("key", "inferred: statuses of one message and of one call share its id"),
			notSourced("how long it retries, and whether the time stays the same in a retry"),
			notSourced("deadline"),
		},
		Traps: []string{
			"message_uuid alone is shared by all statuses of a message: as the key it loses delivered after submitted, and read after delivered",
			"a webhook that comes unsigned after an internal error of Vonage is answered with 503, so that it is sent again signed",
			"webhooks over GET (Voice, SMS by default) have no body, and are refused: set the method to POST",
			"a signature secret shorter than 32 bytes is refused: HS256 needs as many; make a longer one in the dashboard",
			"the answer URL of a call wants an NCCO, and cannot be acknowledged with anything else: receive events only",
		},
	}
}

const vonageExample = `{
  "message_uuid": "{{id}}",
  "to": "15550100001",
  "from": "15550100002",
  "timestamp": "{{time}}",
  "status": "{{type}}",
  "channel": "sms",
  "usage": {"currency": "EUR", "price": "0.0333"}
}`
