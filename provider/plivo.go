package provider

import (
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Plivo returns the provider for Plivo's callbacks about messages and calls, in version 3 of the signature. The URL is
// the callback URL exactly as registered, because the signature covers it; empty means the URL of the request, which is
// right only where no proxy changes it. The secrets are auth tokens, that of the main account or of the subaccount. It
// panics if a secret is missing or empty, or the URL is not one.
//
// There is no id: the key of a message is its id with its status, that of a call its id with the cause of its end. Other
// callbacks of a call pass through unkeyed. The signature covers the fields of the form as one text, and so none of them
// by itself.
func Plivo(url string, secrets ...string) *spec.Provider {
	return must(spec.New(plivoSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

func plivoSpec() spec.Spec {
	return spec.Spec{
		Name:   "plivo",
		Title:  "Plivo",
		Secret: "the auth token of the account or of the subaccount",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.Plivo()}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"form:MessageUUID", "form:Status", "form:ErrorCode?"},
				{"form:MessageUUID", "form:Type"},
				{"form:CallUUID", "form:HangupCause", "form:Event?"},
			},
			Type:     []spec.Value{"form:Status", "form:Event", "form:CallStatus", "form:Type"},
			Resource: []spec.Value{"form:MessageUUID", "form:CallUUID"},
			Tenant:   []spec.Value{"form:To"},
		},
		Headers: []string{"X-Plivo-Signature-V3", "X-Plivo-Signature-Ma-V3", "X-Plivo-Signature-V3-Nonce", "X-Plivo-*"},
		Example: spec.Template{
			ID: "0a5bd3c6-5b4e-11ee-b5e1-0242ac110002", Type: "delivered",
			Form: "MessageUUID={{id}}&Status={{type}}&From=15550100002&To=15550100001&Units=1&TotalRate=0.00350&TotalAmount=0.00350&MCC=310&MNC=004",
		},
		Sources: []spec.Source{
			stated("signature", "plivo/plivo-node: lib/utils/v3Security.js; plivo/plivo-python: plivo/utils/signature_v3.py"),
			reported("signature of the main account", "webhook-co/webhook: packages/webhooks-spec/src/adapters/bespoke/plivo.ts"),
			reported("fields", "Plivo documentation of message and hangup callbacks, as applications read them"),
			reported("key", "inferred: reports of one message, and callbacks of one call, share its id"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"MessageUUID alone is shared by all reports of a message: as the key it loses delivered after sent",
			"callbacks while a call goes on (digits, recordings, speech) may repeat every field: they pass through unkeyed",
			"the signature covers the URL: behind a proxy the request's URL differs from the callback URL, and everything is rejected",
			"X-Plivo-Signature-V2 covers the URL and a nonce, and nothing of the body: it does not count here",
			"callbacks over GET have no body, and are refused: set the method to POST",
			"answer URLs want XML, and cannot be acknowledged with anything else: receive events only",
		},
	}
}
