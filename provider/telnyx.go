package provider

import "github.com/hookonce/hookonce/provider/spec"

// Telnyx returns the provider for Telnyx webhooks of version 2. The secrets are the public keys of the
// account, 32 bytes in base64. It panics if one is missing or not a key.
//
// The key is the id of the event, which the signature covers. The signed time may be five minutes off in
// either direction.
func Telnyx(publicKeys ...string) *spec.Provider {
	return must(spec.New(telnyxSpec(), spec.Settings{Secrets: spec.Secrets(publicKeys...)}))
}

func telnyxSpec() spec.Spec {
	return spec.Spec{
		Name:   "telnyx",
		Title:  "Telnyx",
		Secret: "the account's public key, in base64",
		Verify: []spec.Verify{{
			Kind:      spec.Ed25519,
			Key:       spec.KeyBase64,
			Encoding:  spec.Base64,
			Signature: spec.Signature{In: "header:Telnyx-Signature-Ed25519"},
			Time:      &spec.Timestamp{In: "header:Telnyx-Timestamp", Unit: spec.Seconds, Past: 5 * minute, Future: 5 * minute},
			Sign:      []spec.Value{"ts", "const:|", "body"},
		}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.data.id"}},
			Type:     []spec.Value{"json:$.data.event_type"},
			Time:     []spec.Moment{at("json:$.data.occurred_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.payload.call_leg_id", "json:$.data.payload.id"},
		},
		// What stands beside data is about the delivery.
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.data"}},
		Headers: []string{"Telnyx-*"},
		Example: spec.Template{ID: "0ccc7b54-4df3-4bca-a65a-3da1ecc777f0", Type: "message.received", Object: "84cca175-0000-4000-8000-00000000a001", Body: telnyxExample},
		Sources: []spec.Source{
			stated("headers and public key", "developers.telnyx.com/docs/development/sdk/python/webhooks"),
			stated("what is signed", "team-telnyx/telnyx-python: src/telnyx/lib/webhook_verification.py, pull request 242"),
			stated("id, copies, no order", "developers.telnyx.com/docs/voice/programmable-voice/receiving-webhooks"),
			stated("TeXML sends forms, with POST or GET", "team-telnyx/telnyx-node: src/resources/texml-applications.ts"),
			notSourced("what is signed of a GET"),
			reported("tolerance", "hookdeck/webhook-skills: skills/telnyx-webhooks"),
			notSourced("how long it retries"),
		},
		Traps: []string{
			"copies may arrive at the same moment as the first, and at the failover URL: both URLs belong to one source",
			"call_leg_id and the id of the message are shared by all their events: as the key they lose events",
			"TeXML sends forms, which pass through unkeyed; those that are set to GET are refused, because nothing is known to bind what their query says: set voice_method and status_callback_method to post",
			"an SDK of Telnyx verified the scheme of Standard Webhooks instead: nothing passed it",
		},
	}
}

const telnyxExample = `{
  "data": {
    "record_type": "event",
    "event_type": "{{type}}",
    "id": "{{id}}",
    "occurred_at": "{{time}}",
    "payload": {
      "record_type": "message",
      "direction": "inbound",
      "id": "{{object}}",
      "type": "SMS",
      "from": {"phone_number": "+15550100001", "carrier": "", "line_type": ""},
      "to": [{"phone_number": "+15550100002", "status": "webhook_delivered"}],
      "text": "Is order 1001 paid?",
      "received_at": "{{time}}",
      "parts": 1,
      "encoding": "GSM-7"
    }
  },
  "meta": {"attempt": {{attempt}}}
}`
