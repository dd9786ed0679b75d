package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/spec"
)

// DocuSign returns the provider for DocuSign Connect in JSON. The secrets are the HMAC keys of the
// account's Connect configuration. It panics if a secret is missing or empty.
//
// DocuSign states no id for an event: the key is made of event, envelope, the time when the message was
// made and, where there is one, the recipient. All are signed. No time is signed. A message in XML is
// verified, and passed through unkeyed.
func DocuSign(secrets ...string) *spec.Provider {
	return must(spec.New(docusignSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func docusignSpec() spec.Spec {
	return spec.Spec{
		Name:   "docusign",
		Title:  "DocuSign Connect",
		Secret: "an HMAC key of the account's Connect configuration",
		Verify: []spec.Verify{bodyMAC("X-DocuSign-Signature-*", "", spec.Base64)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event", "json:$.data.envelopeId", "json:$.generatedDateTime", "json:$.data.recipientId?"}},
			Type:     []spec.Value{"json:$.event"},
			Time:     []spec.Moment{at("json:$.generatedDateTime", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.envelopeId"},
			Tenant:   []spec.Value{"json:$.data.accountId"},
			Attempt:  []spec.Value{"json:$.retryCount"},
		},
		// retryCount counts up.
		Dedup: spec.Dedup{Same: []spec.Value{"json:$.event", "json:$.generatedDateTime", "json:$.data"}},
		// https://developers.docusign.com/platform/webhooks/connect/hmac/
		Headers: []string{"X-Authorization-Digest", "X-DocuSign-AccountId", "X-DocuSign-*"},
		Reconcile: &spec.Reconcile{
			Servers: []spec.Server{
				{Name: "live", URL: "https://{base}.docusign.net"},
			},
			Settings: []spec.Setting{
				{Name: "base", Help: "the first part of the account's base URI, as in na4, eu or demo"},
				{Name: "account", Help: "the account's id (API Account ID)"},
			},
			Auth: spec.Auth{Token: "an access token, made with JWT grant for an administrator; it lasts an hour"},
			List: spec.List{
				Path:     "/restapi/v2.1/accounts/{account}/connect/failures?from_date={since}&to_date={until}",
				Items:    "$.failures",
				ID:       "$.failureId",
				Time:     &spec.ListedTime{In: "$.created"},
				Failures: true,
			},
			Redeliver: &spec.Redeliver{
				Method: http.MethodPut,
				Path:   "/restapi/v2.1/accounts/{account}/connect/envelopes/{id}/retry_queue",
				ID:     "$.envelopeId",
				Rate:   spec.Rate{Requests: 1, Per: second},
			},
			Rights: "the scope signature, for an administrator of the account",
			Notes: []string{
				"the list is the log of failures: it names envelopes and not events, so nothing can be compared; what it has is reported, and can be sent again",
				"the log of Connect has to be switched on (enableLog)",
				"access tokens last an hour: a schedule needs one that is renewed from outside",
			},
		},
		Example: spec.Template{ID: "0aa561b8-b4d9-47e0-a615-2367971f876b", Type: "envelope-completed", Body: docusignExample},
		Sources: []spec.Source{
			reported("signature, one header for each key", "DocuSign documentation, HMAC security, quoted; webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("fields", "messages that users of Connect published"),
			reported("parts of the key", "inferred: everything that tells one message from another"),
			notSourced("retries, and whether generatedDateTime is the same in a retry"),
			stated("log of failures, sending an envelope's messages again", "docusign-esign (npm): src/api/ConnectApi.js, src/model/ConnectLog.js, src/model/ConnectLogs.js"),
			reported("how far back the log goes: 15 days and 100 entries", "DocuSign documentation, ConnectEvents, quoted"),
			notSourced("form of the log's times, whether a message that is sent again has the same generatedDateTime"),
		},
		Traps: []string{
			"there is a signature for each key of the account: behind the gateway with more than 60 of them a request is answered 431",
			"the id of the envelope as the key loses all events of it but the first",
			"each key of the account has a header of its own, numbered from 1: any one of them proves the sender",
			"if a retry is generated anew its time differs, and it passes as a new event",
			"messages in XML have no key here: have Connect send JSON",
			"with the documents inside, a message may be larger than the limit for bodies: leave them out, or raise max_body",
		},
	}
}

const docusignExample = `{
  "event": "{{type}}",
  "apiVersion": "v2.1",
  "uri": "/restapi/v2.1/accounts/00000000-0000-4000-8000-000000000001/envelopes/{{id}}",
  "retryCount": {{retry}},
  "configurationId": 1001,
  "generatedDateTime": "{{time}}",
  "data": {
    "accountId": "00000000-0000-4000-8000-000000000001",
    "userId": "00000000-0000-4000-8000-000000000002",
    "envelopeId": "{{id}}",
    "envelopeSummary": {
      "status": "completed",
      "emailSubject": "Please sign order 1001",
      "completedDateTime": "{{time}}"
    }
  }
}`
