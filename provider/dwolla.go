package provider

import "github.com/hookonce/hookonce/provider/spec"

// Dwolla returns the provider for Dwolla's webhooks. The secrets are those that the webhook subscription was made with. It
// panics if a secret is missing or empty.
//
// The key is the event's id, which the signature covers. No time is signed.
func Dwolla(secrets ...string) *spec.Provider {
	return must(spec.New(dwollaSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func dwollaSpec() spec.Spec {
	return spec.Spec{
		Name:      "dwolla",
		Title:     "Dwolla",
		Secret:    "the secret that the webhook subscription was made with",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Request-Signature-SHA-256", "", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.topic"},
			Time:     []spec.Moment{at("json:$.timestamp", spec.RFC3339), at("json:$.created", spec.RFC3339)},
			Resource: []spec.Value{"json:$.resourceId"},
		},
		Headers: []string{"X-Request-Signature-*", "X-Dwolla-*"},
		Example: spec.Template{ID: "43706141-18a2-457e-96fc-8d26864825b7", Type: "customer_transfer_completed", Object: "6238fb83-b45a-4853-90f9-0a58bf54bf32", Body: dwollaExample},
		Sources: []spec.Source{
			reported("signature", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("key, fields", "events of Dwolla's API, collected by one of its developers: gist spencerhunter/54efed3e473e558d9b2155f5834632db"),
			reported("the secret is the receiver's choice", "inferred: the subscription is made with it"),
			notSourced("whether the key is the same in a retry"),
			notSourced("how long it retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"one request to the API can cause two events, such as transfer_created and customer_transfer_created: they have two ids and both pass",
			"resourceId is that of the transfer or the customer: as the key it loses all later events about it",
			"the event names what changed: fetch it for its state",
		},
	}
}

const dwollaExample = `{
  "id": "{{id}}",
  "resourceId": "{{object}}",
  "topic": "{{type}}",
  "timestamp": "{{time}}",
  "_links": {
    "self": {"href": "https://api-sandbox.dwolla.com/events/{{id}}"},
    "account": {"href": "https://api-sandbox.dwolla.com/accounts/ca32853c-48fa-40be-ae75-77b37504581b"},
    "resource": {"href": "https://api-sandbox.dwolla.com/transfers/{{object}}"}
  },
  "created": "{{time}}"
}`
