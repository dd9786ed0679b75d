package provider

import (
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Braintree returns the provider for Braintree's webhooks. Each secret is the pair of a public and a
// private key of the API, as public_key:private_key. It panics if a secret is missing or has another
// form. The challenge, GET with bt_challenge, is answered.
//
// Notifications have no id: the key is the kind, the time and a digest of the notification, all of
// which the signature covers. No time of the attempt is signed.
func Braintree(secrets ...string) *spec.Provider {
	return must(spec.New(braintreeSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func braintreeSpec() spec.Spec {
	return spec.Spec{
		Name:   "braintree",
		Title:  "Braintree",
		Secret: "the public and the private key of the API, as public_key:private_key",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.Braintree()}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.kind", "json:$.timestamp", "hash:form:bt_payload"}},
			Type:     []spec.Value{"json:$.kind"},
			Time:     []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.id"},
		},
		Dedup:  spec.Dedup{Same: []spec.Value{"form:bt_payload"}},
		Answer: spec.Answer{Deadline: 30 * second},
		Handshakes: []spec.Handshake{{
			Method:  "GET",
			Echo:    "query:bt_challenge",
			Pattern: scheme.BraintreeChallenge,
			Code:    &spec.ChallengeCode{Kind: spec.Code},
			Body:    "{{code}}",
		}},
		Limits:  spec.Limits{Retry: day}, // hourly; 3 hours in the sandbox
		Headers: []string{"Braintree-*", "X-Braintree-*"},
		Example: spec.Template{ID: "8bnqjr", Type: "subscription_charged_successfully", Form: braintreeExample},
		Sources: []spec.Source{
			stated("signature, challenge, deadline, retries", "developer.paypal.com/braintree/docs/guides/webhooks"),
			reported("encoding of the payload and the signature", "braintree-go/braintree-go: webhook_notification_gateway.go, hmac.go"),
			reported("key", "inferred: the notification has no id, and a retry sends the notification as it is"),
		},
		Traps: []string{
			"there is no id: two notifications are the same only if kind, time and content are",
			"the line breaks in bt_payload are part of what is signed",
			"the challenge is signed with the key that signs notifications: only short hexadecimal texts are answered, and never accepted as a notification",
		},
	}
}

// braintreeExample has the notification as it is; [braintreeChecker.Seal] encodes it.
const braintreeExample = "bt_payload=%3Cnotification%3E%0A" +
	"++%3Ckind%3E{{type}}%3C%2Fkind%3E%0A" +
	"++%3Ctimestamp+type%3D%22datetime%22%3E{{time}}%3C%2Ftimestamp%3E%0A" +
	"++%3Csubject%3E%0A" +
	"++++%3Csubscription%3E%0A" +
	"++++++%3Cid%3E{{id}}%3C%2Fid%3E%0A" +
	"++++++%3Cplan-id%3Eexample-plan%3C%2Fplan-id%3E%0A" +
	"++++++%3Cprice%3E42.00%3C%2Fprice%3E%0A" +
	"++++++%3Cstatus%3EActive%3C%2Fstatus%3E%0A" +
	"++++%3C%2Fsubscription%3E%0A" +
	"++%3C%2Fsubject%3E%0A" +
	"%3C%2Fnotification%3E%0A"
