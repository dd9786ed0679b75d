package provider

import "github.com/hookonce/hookonce/provider/spec"

// Mandrill returns the provider for the webhooks of Mailchimp Transactional, formerly Mandrill. The URL is that of the
// webhook exactly as it is registered, because the signature covers it; empty means the URL of the request, which is right
// only where no proxy changes it. The secrets are the keys of the webhook. It panics if a secret is missing or empty, or
// the URL is not one. The HEAD request that precedes a webhook is answered.
//
// A request holds several events, none of which has an id: the key of each is the event's name, the message's id, the time
// and a digest of the event. The signature covers the form as one text without separators, so that no key counts as
// signed. No time is signed.
func Mandrill(url string, secrets ...string) *spec.Provider {
	return must(spec.New(mandrillSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func mandrillSpec() spec.Spec {
	verify := headerMAC("X-Mandrill-Signature", "", spec.Base64, "url", "sorted_form")
	verify.Hash = spec.SHA1
	return spec.Spec{
		Name:   "mandrill",
		Title:  "Mailchimp Transactional (Mandrill)",
		Secret: "the key of the webhook",
		Verify: []spec.Verify{verify},
		Form:   "mandrill_events",
		Split:  &spec.Split{Items: []spec.Value{"json:$[*]"}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"const:message", "item:$.event", "item:$._id", "item:$.ts", "hash:item:$"},
				{"const:inbound", "item:$.event", "item:$.ts", "hash:item:$"},
				{"const:sync", "item:$.type", "item:$.action", "item:$.ts", "hash:item:$"},
			},
			Type:     []spec.Value{"item:$.event", "item:$.type"},
			Time:     []spec.Moment{at("item:$.ts", spec.Seconds)},
			Resource: []spec.Value{"item:$._id"},
		},
		Handshakes: []spec.Handshake{{Method: "HEAD"}},
		Headers:    []string{"X-Mandrill-*"},
		Example: spec.Template{
			ID:   "exampleaaaaaaaaaaaaaaaaaaaaaaaaa",
			Type: "open",
			Form: "mandrill_events=" + "%5B%7B%22event%22%3A%22{{type}}%22%2C%22_id%22%3A%22{{id}}%22%2C%22ts%22%3A{{unix}}%2C%22msg%22%3A%7B%22_id%22%3A%22{{id}}%22%2C" +
				"%22state%22%3A%22sent%22%2C%22email%22%3A%22customer%40example.com%22%2C%22sender%22%3A%22shop%40example.com%22%2C%22subject%22%3A%22Order+1001%22%7D%7D%5D",
		},
		Sources: []spec.Source{
			reported("signature, HEAD, batches, fields, no id", "anymail/django-anymail: anymail/webhooks/mandrill.py, quoting Mandrill's help"),
			reported("key", "inferred: an event is known by its name, message, time and content"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"_id is that of the message: as the key it loses every event of a message but the first",
			"behind a proxy the request's URL differs from the registered one, and everything is rejected",
			"one request holds many events, and a retry may hold others beside them",
			"the webhook can only be made while HEAD is answered with 200",
			"Mandrill's own test of a webhook is signed with the key test-webhook, which everybody knows: it is refused here",
			"names and values of the form are signed with nothing between them: no key counts as signed",
		},
	}
}
