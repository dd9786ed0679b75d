package provider

import "github.com/hookonce/hookonce/provider/spec"

// WhatsApp returns the provider for the webhooks of the WhatsApp Business Platform. The token is the
// verify token that was chosen for the subscription; with it the verification of the endpoint is
// answered, and without it (empty) it is not. The secrets are the app secrets. It panics if a secret is
// missing or empty.
//
// An event is one message or one status, or a change that holds neither. The key of a message or status
// is its id together with its content, which the signature covers. Other changes have no id and pass
// through unkeyed. No time is signed.
func WhatsApp(token string, secrets ...string) *spec.Provider {
	return must(spec.New(whatsappSpec(), metaSettings(token, secrets)))
}

func whatsappSpec() spec.Spec {
	return spec.Spec{
		Name:   "whatsapp",
		Title:  "WhatsApp Business Platform",
		Secret: "the app secret",
		Verify: []spec.Verify{bodyMAC("X-Hub-Signature-256", "sha256=", spec.Hex)},
		Split: &spec.Split{Items: []spec.Value{
			"json:$.entry[*].changes[*].value.messages[*]",
			"json:$.entry[*].changes[*].value.statuses[*]",
		}},
		Event: spec.Extract{
			// The statuses of a message share its id: the content tells them apart.
			Key:      [][]spec.Value{{"item:$.id", "hash:item:$"}},
			Type:     []spec.Value{"parent:$.field", "item:$.field"},
			Action:   []spec.Value{"item:$.status", "item:$.type"},
			Time:     []spec.Moment{at("item:$.timestamp", spec.Seconds)},
			Resource: []spec.Value{"item:$.id"},
			Tenant:   []spec.Value{"parent:$.value.metadata.phone_number_id", "item:$.value.metadata.phone_number_id"},
		},
		Handshakes: []spec.Handshake{metaHandshake()},
		Limits:     spec.Limits{MaxBody: 3 << 20, Retry: 7 * day},
		// https://developers.facebook.com/docs/graph-api/webhooks/getting-started
		Headers: []string{"X-Hub-Signature", "X-Facebook-*", "X-FB-*", "Facebook-*"},
		Example: spec.Template{ID: "wamid.HBgLMTY0NjcwNDM1OTUVAgASGBQzQTdCNTg5RjY1MEMyRjlGMjRGNgA=", Type: "messages.text", Body: whatsappExample},
		Sources: []spec.Source{
			stated("signature, batches, handshake", "Meta documentation, Webhooks, Getting started; WhatsApp/WhatsApp-Nodejs-SDK"),
			stated("retries", "WhatsApp documentation, Webhooks"),
			reported("largest body", "WhatsApp documentation, quoted"),
			reported("key", "inferred: statuses share the id of their message, and the content tells them apart"),
		},
		Traps: []string{
			"the id of a message alone as the key loses its statuses: sent, delivered and read have the same id",
			"one request may hold several messages and statuses, and a retry may hold others beside them",
			"changes without messages or statuses, such as those of the account, pass through unkeyed",
			"statuses may arrive out of order",
		},
	}
}

const whatsappExample = `{
  "object": "whatsapp_business_account",
  "entry": [
    {
      "id": "100000000001001",
      "changes": [
        {
          "field": "{{event}}",
          "value": {
            "messaging_product": "whatsapp",
            "metadata": {"display_phone_number": "15550001001", "phone_number_id": "200000000001001"},
            "contacts": [{"profile": {"name": "Example Customer"}, "wa_id": "15550001002"}],
            "messages": [
              {
                "from": "15550001002",
                "id": "{{id}}",
                "timestamp": "{{unix}}",
                "type": "{{action}}",
                "text": {"body": "Is order 1001 paid?"}
              }
            ]
          }
        }
      ]
    }
  ]
}`
