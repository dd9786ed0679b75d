package provider

import "github.com/hookonce/hookonce/provider/spec"

// SendGrid returns the provider for SendGrid's signed event webhook. The secrets are the verification
// keys of the webhook, public keys in base64. It panics if a secret is missing or not such a key.
//
// The key of an event is its sg_event_id, which the signature covers. A time is signed, but not checked
// against a tolerance unless [spec.Settings.Tolerance] says so: SendGrid states none.
func SendGrid(secrets ...string) *spec.Provider {
	return must(spec.New(sendgridSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func sendgridSpec() spec.Spec {
	return spec.Spec{
		Name:   "sendgrid",
		Title:  "SendGrid",
		Secret: "the event webhook's verification key, a public key in base64",
		Verify: []spec.Verify{{
			Kind:      spec.ECDSA,
			Hash:      spec.SHA256,
			Key:       spec.KeyBase64,
			Encoding:  spec.Base64,
			Signature: spec.Signature{In: "header:X-Twilio-Email-Event-Webhook-Signature"},
			Time:      &spec.Timestamp{In: "header:X-Twilio-Email-Event-Webhook-Timestamp", Unit: spec.Seconds},
			Sign:      []spec.Value{"ts", "body"},
		}},
		Split: &spec.Split{Items: []spec.Value{"json:$[*]"}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"item:$.sg_event_id"}},
			Type:     []spec.Value{"item:$.event"},
			Time:     []spec.Moment{at("item:$.timestamp", spec.Seconds)},
			Resource: []spec.Value{"item:$.sg_message_id"},
		},
		Limits:  spec.Limits{Retry: day},
		Headers: []string{"X-Twilio-Email-*"},
		Example: spec.Template{ID: "rbtnWrG1DVDGGGFHFyun0A==", Type: "delivered", Object: "ExampleMessage0000000A.recvd-example-1.0", Body: sendgridExample},
		Sources: []spec.Source{
			stated("signature", "sendgrid/sendgrid-go: helpers/eventwebhook"),
			stated("key, fields, batches", "Twilio SendGrid documentation, Event webhook reference"),
			reported("events arrive three times and more", "sendgrid/docs: issue 2933"),
			stated("sent again until a status of the 200s, for 24 hours after the event; duplicates", "docs.sendgrid.com/for-developers/tracking-events/troubleshooting"),
		},
		Traps: []string{
			"sg_message_id is that of the message: as the key it loses all events of a message but the first",
			"the body ends in a line break that is signed: pass it on byte for byte",
			"an event may come again though it was answered 200: it is known by its sg_event_id",
		},
	}
}

const sendgridExample = `[
  {
    "email": "customer@example.com",
    "event": "{{type}}",
    "ip": "192.0.2.10",
    "response": "250 OK",
    "sg_event_id": "{{id}}",
    "sg_message_id": "{{object}}",
    "smtp-id": "<ExampleMessage0000000A@mail.example.com>",
    "timestamp": {{unix}},
    "tls": 1,
    "category": ["order-confirmation"],
    "order": "1001"
  }
]
`
