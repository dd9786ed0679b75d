package provider

import "github.com/hookonce/hookonce/provider/spec"

// Brevo returns the provider for the transactional webhooks of Brevo, formerly Sendinblue. Brevo signs nothing: protect the
// webhook with HTTP basic authentication. The secrets are its user:password. It panics if a secret is missing or not of that
// form.
//
// Events have no id. The key is made of the event, the message, its receiver, the time in milliseconds and a digest of the
// event. Nothing is signed.
func Brevo(secrets ...string) *spec.Provider {
	return must(spec.New(brevoSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func brevoSpec() spec.Spec {
	return spec.Spec{
		Name:      "brevo",
		Title:     "Brevo",
		Secret:    "the user:password of the webhook's basic authentication",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Basic}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event", "json:$.message-id", "json:$.email", "json:$.ts_epoch", "hash:json:$"}},
			Type:     []spec.Value{"json:$.event"},
			Time:     []spec.Moment{at("json:$.ts_epoch", spec.Millis)},
			Resource: []spec.Value{"json:$.message-id"},
		},
		// Only 429 is surely sent again after: what is stated of the 500s can be read both ways.
		Answer:  spec.Answer{Reject: 429, NotReady: 429},
		Limits:  spec.Limits{Retry: 12 * hour}, // after 10 minutes, 1, 2 and 8 hours
		Headers: []string{"X-Brevo-*", "X-Sib-*"},
		Example: spec.Template{ID: "<202602030405.10011001001@smtp-relay.mailin.fr>", Type: "delivered", Body: brevoExample},
		Sources: []spec.Source{
			reported("basic authentication, nothing is signed", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts; Brevo documentation, Secure webhook calls, quoted"),
			reported("fields, no id, ts_epoch is the time", "anymail/django-anymail: anymail/webhooks/brevo.py"),
			reported("key", "inferred: an event is known by its name, message, receiver, time and content"),
			reported("the secret is the receiver's choice", "inferred: it is entered with the webhook"),
			stated("four retries within 11 hours and 10 minutes, after 429; any other status of the 400s is final", "developers.brevo.com/docs/retry-mechanism"),
			notSourced("whether a status of the 500s is final: the page can be read both ways"),
			notSourced("deadline"),
		},
		Traps: []string{
			"nothing is signed: whoever sees one request can send others",
			"a webhook that is protected with a token or a header of its own, in place of user and password, is refused",
			"message-id is shared by all events of a message, and by its receivers: as the key it loses delivered after sent",
			"the first opening comes twice, as unique_opened and as opened: both pass, because they are two events",
			"ts, ts_event and date follow the account's time zone; ts_epoch does not",
			"inbound mail has another form and passes through unkeyed",
		},
	}
}

const brevoExample = `{
  "event": "{{type}}",
  "email": "customer@example.com",
  "id": 1001,
  "date": "2026-02-03 04:05:06",
  "ts": {{unix}},
  "ts_event": {{unix}},
  "ts_epoch": {{millis}},
  "message-id": "{{id}}",
  "subject": "Order 1001",
  "tags": ["order-confirmation"],
  "sending_ip": "192.0.2.10"
}`
