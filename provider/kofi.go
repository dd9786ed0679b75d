package provider

import "github.com/hookonce/hookonce/provider/spec"

// Kofi returns the provider for Ko-fi's webhooks. The secrets are the verification tokens of the page. It panics if a secret
// is missing or empty.
//
// The key is the message_id. Nothing is signed: the token says who sends, and not what.
func Kofi(secrets ...string) *spec.Provider {
	return must(spec.New(kofiSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func kofiSpec() spec.Spec {
	return spec.Spec{
		Name:   "kofi",
		Title:  "Ko-fi",
		Secret: "the verification token, under API, Advanced",
		Verify: []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "json:$.verification_token"}}},
		Form:   "data",
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.message_id"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.kofi_transaction_id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Headers: []string{"X-Kofi-*"},
		Example: spec.Template{
			ID:   "78b207f2-9e6c-4ea7-b47f-5454709824aa",
			Type: "Donation",
			Form: "data=%7B%22verification_token%22%3A%22d8546b84-c698-4df5-9812-39d35813e2ff%22%2C%22message_id%22%3A%22{{id}}%22%2C%22timestamp%22%3A%22{{time}}%22%2C" +
				"%22type%22%3A%22{{type}}%22%2C%22is_public%22%3Atrue%2C%22from_name%22%3A%22Example%22%2C%22amount%22%3A%224.20%22%2C%22currency%22%3A%22EUR%22%2C%22is_subscription_payment%22%3Afalse%7D",
		},
		Sources: []spec.Source{
			reported("token, form, key is the same in retries, only 200 accepts", "Ko-fi documentation, Webhooks, quoted at meta.discourse.org/t/255047"),
			notSourced("how long it retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"nothing is signed, and the token is in the body, which is passed on: whoever sees one request can send others",
			"a monthly subscription has a message for each payment: its subscriber as the key loses all but the first",
			"only the status 200 counts as success",
		},
	}
}
