package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// EBay returns the provider for eBay's notifications. Each secret is what an application calls eBay's
// API with, as production:client_id:client_secret or sandbox:client_id:client_secret, because the keys
// that eBay signs with have to be fetched from there. The URL is the endpoint as it is registered with
// eBay, and the token the verification token that was chosen there: both are part of the answer to
// eBay's challenge. It panics if one of them is missing or wrong.
//
// The key is the notificationId, which the signature covers. No time of the attempt is signed.
func EBay(url, token string, secrets ...string) *spec.Provider {
	return must(spec.New(ebaySpec(), spec.Settings{URL: url, Token: token, Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func ebaySpec() spec.Spec {
	return spec.Spec{
		Name:   "ebay",
		Title:  "eBay",
		Secret: "what the API is called with, as production:client_id:client_secret or sandbox:client_id:client_secret",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.EBay(http.DefaultTransport)}},
		Event: spec.Extract{
			Key:     [][]spec.Value{{"json:$.notification.notificationId"}},
			Type:    []spec.Value{"json:$.metadata.topic"},
			Time:    []spec.Moment{at("json:$.notification.eventDate", spec.RFC3339), at("json:$.notification.publishDate", spec.RFC3339)},
			Attempt: []spec.Value{"json:$.notification.publishAttemptCount"},
		},
		// publishDate and publishAttemptCount are those of the attempt.
		Dedup:  spec.Dedup{Same: []spec.Value{"json:$.metadata.topic", "json:$.notification.eventDate", "json:$.notification.data"}, Retry: spec.Stable},
		Answer: spec.Answer{Status: 204, Reject: 412},
		Handshakes: []spec.Handshake{{
			Method:      "GET",
			Echo:        "query:challenge_code",
			Code:        &spec.ChallengeCode{Kind: spec.PlainHash, Over: []spec.Value{"echo", "token", "url"}},
			ContentType: "application/json",
			Body:        `{"challengeResponse":"{{code}}"}`,
		}},
		Headers: []string{"X-Ebay-Signature", "X-Ebay-*"},
		Example: spec.Template{ID: "49feeaeb-4982-42d9-a377-9645b8479411", Type: "MARKETPLACE_ACCOUNT_DELETION", Body: ebayExample},
		Sources: []spec.Source{
			stated("signature, keys, challenge, statuses", "eBay/event-notification-nodejs-sdk: lib/validator.js, lib/client.js, lib/constants.js"),
			stated("fields", "eBay/event-notification-nodejs-sdk: test/test.json"),
			reported("the application's token", "many public clients: client credentials at /identity/v1/oauth2/token"),
			reported("the key is the same on a retry", "inferred: the notification counts its attempts"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"eBay signs for all of its applications with the same keys: that a notification is authentic does not say that it was sent to yours",
			"eBay's SDK verifies the JSON that it has read and written again; the raw body is what is signed",
			"the number of the attempt and the time of sending are in the body: a hash of it as the key lets retries through",
			"the answer to the challenge depends on the URL exactly as it is registered",
			"the key is fetched with the application's credentials: without a way out to eBay nothing can be verified",
		},
	}
}

const ebayExample = `{
  "metadata": {
    "topic": "{{type}}",
    "schemaVersion": "1.0",
    "deprecated": false
  },
  "notification": {
    "notificationId": "{{id}}",
    "eventDate": "{{time}}",
    "publishDate": "{{time}}",
    "publishAttemptCount": {{attempt}},
    "data": {
      "username": "example_user",
      "userId": "exampleUser01",
      "eiasToken": "ZmFrZSB0b2tlbiBmb3IgZXhhbXBsZXM="
    }
  }
}`
