package provider

import "github.com/hookonce/hookonce/provider/spec"

// MollieClassic returns the provider for the webhooks that are set on a Mollie payment, order or
// subscription. Mollie signs nothing there: put a token of your own into the webhook's URL, as in
// https://shop.example/mollie?token=..., and give it here. It panics if a token is missing or empty.
//
// A request says no more than that something about a payment changed; its body is the same for every
// change. So nothing is ever dropped as a copy: the requests for one payment coalesce while one waits to
// be handled. Handlers fetch the payment from Mollie, which is also what makes it trustworthy.
func MollieClassic(tokens ...string) *spec.Provider {
	return must(spec.New(mollieClassicSpec(), spec.Settings{Secrets: spec.Secrets(tokens...)}))
}

func mollieClassicSpec() spec.Spec {
	return spec.Spec{
		Name:      "mollie-classic",
		Title:     "Mollie (classic)",
		Secret:    "a token of your own, which you add to the webhook's URL as ?token=...",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "query:token"}}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"form:id"}},
			Resource: []spec.Value{"form:id"},
		},
		Dedup:   spec.Dedup{OnRepeat: spec.Coalesce},
		Headers: []string{"X-Mollie-*"},
		Example: spec.Template{ID: "tr_5B8cwPMGnU6qLbRvo7qEZo", Form: "id={{id}}"},
		Sources: []spec.Source{
			stated("the body is the id, nothing is signed, fetch the state", "docs.mollie.com/reference/webhooks"),
			reported("the secret is the receiver's choice", "inferred: the token is a part of the URL that is registered"),
			notSourced("retries"),
		},
		Traps: []string{
			"the body is the id of the payment and nothing else, for every change: dropping repetitions loses all changes after the first",
			"nothing is signed: whoever knows the URL can send any id; the payment has to be fetched before anything is believed",
		},
	}
}
