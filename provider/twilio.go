package provider

import (
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Twilio returns the provider for Twilio's webhooks for messages and calls; Event Streams are another
// product. The URL is the one that Twilio was given, with its query, because the signature covers it;
// empty means the URL of the request, which is right only where no proxy changes it. The secrets are
// the account's auth tokens. It panics if a secret is missing or empty, or the URL is not one.
//
// Events come with POST or, where a webhook is set to that, with GET: then the fields are in the query, and the event's
// body is the form that a POST would have had.
//
// The key is the I-Twilio-Idempotency-Token header, which the signature does not cover. Without it, it
// is the SID of a message and its status, or the SID of a call, its status and the sequence number. The
// signature covers all fields as one text without separators, and so none of them by itself. No time is
// signed.
func Twilio(url string, secrets ...string) *spec.Provider {
	return must(spec.New(twilioSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

func twilioSpec() spec.Spec {
	return spec.Spec{
		Name:   "twilio",
		Title:  "Twilio",
		Secret: "the account's auth token",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.Twilio()}},
		// Each webhook of Twilio can be set to either.
		Methods: []string{"POST", "GET"},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"header:I-Twilio-Idempotency-Token"},
				{"const:status", "form:MessageSid", "form:MessageStatus", "form:ErrorCode?"},
				{"const:received", "form:MessageSid", "form:SmsStatus"},
				{"const:call", "form:CallSid", "form:CallStatus", "form:SequenceNumber"},
			},
			Type:     []spec.Value{"form:MessageStatus", "form:CallStatus", "form:EventType", "form:SmsStatus"},
			Resource: []spec.Value{"form:MessageSid", "form:CallSid"},
			Tenant:   []spec.Value{"form:AccountSid"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		// What is answered to a call or an incoming message is run as TwiML, so it must be nothing.
		Answer:  spec.Answer{Status: 204, Deadline: 15 * second},
		Limits:  spec.Limits{Retry: 15 * second}, // the whole of the attempts, unless the URL's fragment says otherwise
		Headers: []string{"X-Home-Region", "X-Twilio-*", "I-Twilio-*"},
		Example: spec.Template{
			ID:     "e9a1c0f2-3b4d-4c5e-8f60-7a8b9c0d1e2f",
			Type:   "delivered",
			Object: "SMexample00000000000000000000000001",
			Header: map[string]string{"I-Twilio-Idempotency-Token": "{{id}}"},
			Form: "AccountSid=ACexample00000000000000000000000000&ApiVersion=2010-04-01&From=%2B15005550006&" +
				"MessageSid={{object}}&MessageStatus={{type}}&SmsSid={{object}}&" +
				"SmsStatus={{type}}&To=%2B15005550009",
		},
		Sources: []spec.Source{
			stated("signature of forms and of other bodies, URL with and without port", "twilio/twilio-go: client/request_validator.go; twilio/twilio-node: src/webhooks/webhooks.ts"),
			stated("GET", "twilio.com/docs/usage/webhooks/getting-started-twilio-webhooks; twilio/twilio-go: rest/api/v2010/accounts_incoming_phone_numbers.go (SmsMethod, VoiceMethod)"),
			stated("status callbacks repeat the message's SID", "Twilio documentation, Outbound message status in status callbacks"),
			stated("attempts and timeouts", "Twilio documentation, Webhooks connection overrides"),
			reported("the token is the same on a retry", "Twilio's Agent Connect SDK deduplicates by it"),
			reported("keys without the token", "inferred from what status callbacks carry"),
			notSourced("which failures are retried by default, and when the token is absent"),
		},
		Traps: []string{
			"the SID of a message or call as the key loses every status after the first",
			"without the token, requests of a call that carry no sequence number pass through unkeyed: two inputs of one call look the same",
			"behind a proxy the request's URL differs from the one that Twilio was given, and everything is rejected",
			"a webhook that is set to GET says everything in its query: it becomes the form of a POST, for handlers and for destinations",
			"the answer may be run as TwiML: answer 204, or an empty response element",
			"a fallback URL is sent the same event again: give it the same source",
			"names and values of the form are signed with nothing between them: whoever holds a captured request can move a piece of one into another, so no key counts as signed",
			"give the URL with its query: where that is another in every request, its end can be exchanged with the beginning of the form",
			"the values of a field that occurs several times are signed, and not their order; such a field is never part of a key",
			"the token is not signed: whoever replays a captured request can change it",
		},
	}
}
