package provider

import "github.com/hookonce/hookonce/provider/spec"

// Sinch returns the provider for the callbacks of Sinch's Conversation API. The secrets are those of the webhook. It panics
// if a secret is missing or empty.
//
// Callbacks have no id of their own. The key of a message is its id; that of a delivery report is the message's id, the
// status and a digest of the report; that of an event is its id. The signature covers all of it. Other callbacks pass
// through unkeyed. The time in the header is signed, and not checked against a tolerance: Sinch's own library has none.
func Sinch(secrets ...string) *spec.Provider {
	return must(spec.New(sinchSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func sinchSpec() spec.Spec {
	return spec.Spec{
		Name:      "sinch",
		Title:     "Sinch Conversation API",
		Secret:    "the secret of the webhook",
		OwnSecret: true,
		Verify: []spec.Verify{headerMAC("X-Sinch-Webhook-Signature", "", spec.Base64,
			"body", "const:.", "header:X-Sinch-Webhook-Signature-Nonce", "const:.", "header:X-Sinch-Webhook-Signature-Timestamp")},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"const:message", "json:$.message.id"},
				{"const:report", "json:$.message_delivery_report.message_id", "json:$.message_delivery_report.status", "hash:json:$.message_delivery_report"},
				{"const:event", "json:$.event.id"},
			},
			Type: []spec.Value{"json:$.message_delivery_report.status"},
			Time: []spec.Moment{at("json:$.event_time", spec.RFC3339), at("json:$.accepted_time", spec.RFC3339)},
			Resource: []spec.Value{
				"json:$.message.id", "json:$.message_delivery_report.message_id", "json:$.event.id",
			},
			Tenant: []spec.Value{"json:$.app_id"},
		},
		// Sinch's SMS callbacks come again after 5xx and 429 alone: a wrong secret would lose events.
		Answer:  spec.Answer{Reject: 503},
		Headers: []string{"X-Sinch-Webhook-Signature-Algorithm", "X-Sinch-*"},
		Example: spec.Template{
			ID:   "01EQBC1A3BEK731GY4YXEN0C2R",
			Type: "DELIVERED",
			Header: map[string]string{
				"X-Sinch-Webhook-Signature-Algorithm": "HmacSHA256",
				"X-Sinch-Webhook-Signature-Nonce":     "01FJA8B4A7BM43YGWSG9GBV067",
				"X-Sinch-Webhook-Signature-Timestamp": "{{unix}}",
			},
			Body: sinchExample,
		},
		Sources: []spec.Source{
			stated("signature", "sinch/sinch-sdk-node: packages/sdk-client/src/utils/authorization.helper.ts"),
			stated("fields", "sinch/sinch-sdk-node: packages/conversation/src/models/v1/mod-callback-events"),
			reported("key", "inferred from what the callbacks carry"),
			reported("after which answers it sends again", "inferred: of the callbacks of Sinch's SMS API it is stated, developers.sinch.com/docs/sms/api-reference/sms/tag/Webhooks"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"a delivery report comes for every status of a message: its id alone as the key loses all but the first",
			"after a status of the 400s other than 429 the callbacks of Sinch's SMS API do not come again: requests with a wrong signature are answered 503, so that a secret that was changed on one side only can be put right",
			"callbacks about conversations, contacts, opt-ins and channels pass through unkeyed: no source states an id for them",
			"callbacks of Voice, Verification and Numbers are signed in another way and are refused",
		},
	}
}

const sinchExample = `{
  "app_id": "01EB37HMF37B2K2EXAMPLE1001",
  "project_id": "c36f3d3d-0000-4000-8000-000000001001",
  "accepted_time": "{{time}}",
  "event_time": "{{time}}",
  "message_metadata": "order-1001",
  "message_delivery_report": {
    "message_id": "{{id}}",
    "conversation_id": "01EQBC1A3BEK731EXAMPLE1001",
    "status": "{{type}}",
    "channel_identity": {"channel": "SMS", "identity": "15005550009"},
    "contact_id": "01EKA07N79THJ20EXAMPLE1001",
    "metadata": "order-1001"
  }
}`
