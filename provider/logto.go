package provider

import "github.com/hookonce/hookonce/provider/spec"

// Logto returns the provider for Logto's webhooks. The secrets are the signing keys of the webhook. It panics if a key is
// missing or empty.
//
// Events have no id: the key is made of the webhook, the event, the time at which it was made, in milliseconds, and the
// content, all of which retries repeat and the signature covers. No time is signed by itself.
func Logto(secrets ...string) *spec.Provider {
	return must(spec.New(logtoSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func logtoSpec() spec.Spec {
	const header = "Logto-Signature-Sha-256"
	return spec.Spec{
		Name:   "logto",
		Title:  "Logto",
		Secret: "the webhook's signing key",
		// Installations of one's own may be of a version that writes what hash it is.
		Verify: []spec.Verify{bodyMAC(header, "", spec.Hex), bodyMAC(header, "sha256=", spec.Hex)},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.hookId", "json:$.event", "json:$.createdAt", "hash:json:$"}},
			Subscription: []spec.Value{"json:$.hookId"},
			Type:         []spec.Value{"json:$.event"},
			Time:         []spec.Moment{at("json:$.createdAt", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.userId", "json:$.data.id"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		// A status of the 400s is final: a wrong secret would lose events.
		Answer:  spec.Answer{Reject: 503, Deadline: 10 * second},
		Limits:  spec.Limits{Retry: minute}, // three times within seconds
		Headers: []string{"Logto-*"},
		Example: spec.Template{ID: "1001", Type: "User.Created", Object: "example1001a", Body: logtoExample},
		Sources: []spec.Source{
			stated("three retries within seconds, after statuses of the 500s only, deadline, one content for all attempts", "logto-io/logto: packages/core/src/libraries/hook/utils.ts"),
			stated("signature, the older form", "logto-io/logto: packages/core/src/utils/sign.ts"),
			reported("signature without a prefix", "Logto documentation of securing webhooks, quoted by receivers"),
			reported("key", "inferred: the content has the time at which the event was made, and is sent again as it is"),
		},
		Traps: []string{
			"only statuses of the 500s are sent again, three times within seconds: whatever lasts longer, or is answered with a status of the 400s, is lost",
			"userId as the key loses every event of a user but the first",
			"a webhook without a signing key is not signed, and is refused",
		},
	}
}

const logtoExample = `{
  "hookId": "exampleHook1001",
  "event": "{{type}}",
  "createdAt": "{{time}}",
  "interactionEvent": "Register",
  "sessionId": "exampleSession{{id}}",
  "userId": "{{object}}",
  "userAgent": "Mozilla/5.0",
  "ip": "192.0.2.1",
  "data": {"id": "{{object}}", "username": "example", "primaryEmail": "person@example.com", "createdAt": {{millis}}}
}`
