package provider

import "github.com/hookonce/hookonce/provider/spec"

// Mailchimp returns the provider for Mailchimp's audience webhooks; for those of Mailchimp Transactional see [Mandrill].
// Mailchimp signs nothing: put a token of your own into the URL, as in https://shop.example/mailchimp?token=..., and give
// it here. It panics if a token is missing or empty. The GET request that precedes a webhook is answered.
//
// Events have no id. The key is made of the type, the time in seconds, the audience and the contact or campaign; of two
// events of one contact in one second both pass, if they say different things. Nothing is signed.
func Mailchimp(tokens ...string) *spec.Provider {
	return must(spec.New(mailchimpSpec(), spec.Settings{Secrets: spec.Secrets(tokens...), Handshakes: true}))
}

func mailchimpSpec() spec.Spec {
	return spec.Spec{
		Name:      "mailchimp",
		Title:     "Mailchimp (audiences)",
		Secret:    "a token of your own, which you add to the webhook's URL as ?token=...",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "query:token"}}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"form:type", "form:fired_at", "form:data[list_id]", "form:data[id]"},
				{"form:type", "form:fired_at", "form:data[list_id]", "form:data[new_id]"},
				{"form:type", "form:fired_at", "form:data[list_id]", "form:data[email]"},
			},
			Type:     []spec.Value{"form:type"},
			Resource: []spec.Value{"form:data[id]", "form:data[new_id]", "form:data[email]"},
			Tenant:   []spec.Value{"form:data[list_id]"},
		},
		Dedup:      spec.Dedup{OnRepeat: spec.KeepLatest},
		Handshakes: []spec.Handshake{{Method: "GET"}},
		Headers:    []string{"X-Mailchimp-*"},
		Example: spec.Template{
			ID:   "8a25ff1d98",
			Type: "subscribe",
			Form: "type={{type}}&fired_at=2026-02-03+04%3A05%3A06&data%5Bid%5D={{id}}&data%5Blist_id%5D=a6b5da1054&data%5Bemail%5D=customer%40example.com&" +
				"data%5Bemail_type%5D=html&data%5Bip_opt%5D=192.0.2.10&data%5Bmerges%5D%5BEMAIL%5D=customer%40example.com",
		},
		Sources: []spec.Source{
			reported("nothing is signed, GET, forms with type and data[...]", "Mailchimp documentation, Sync audience data with webhooks, quoted by hookdeck/webhook-skills: mailchimp-webhooks"),
			reported("key, fields", "Mailchimp documentation, quoted; inferred: an event has no id"),
			reported("the secret is the receiver's choice", "inferred: the token is a part of the URL that is registered"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"nothing is signed: whoever knows the URL can send any contact, so ask Mailchimp before anything is believed",
			"the contact's id as the key loses every later change of it",
			"fired_at has seconds: a change of a profile and another in the same second differ in nothing else but their content",
			"the webhook can only be made while GET is answered with 200",
		},
	}
}
