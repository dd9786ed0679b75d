package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Plaid returns the provider for Plaid's webhooks. Each secret is what Plaid's API is called with, as
// production:client_id:secret or sandbox:client_id:secret, because the keys that Plaid signs with have
// to be fetched from there. It panics if a secret is missing or has another form.
//
// Webhooks have no id, and every field of one may repeat, so all pass through unkeyed. The token binds
// the body, and is accepted for five minutes.
func Plaid(secrets ...string) *spec.Provider {
	return must(spec.New(plaidSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func plaidSpec() spec.Spec {
	return spec.Spec{
		Name:   "plaid",
		Title:  "Plaid",
		Secret: "what the API is called with, as production:client_id:secret or sandbox:client_id:secret",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.Plaid(http.DefaultTransport)}},
		Event: spec.Extract{
			Type:     []spec.Value{"json:$.webhook_type"},
			Action:   []spec.Value{"json:$.webhook_code"},
			Resource: []spec.Value{"json:$.item_id"},
		},
		Dedup:   spec.Dedup{OnRepeat: spec.Off},
		Answer:  spec.Answer{Deadline: 10 * second},
		Limits:  spec.Limits{Retry: day},
		Headers: []string{"Plaid-Verification", "Plaid-*"},
		Example: spec.Template{ID: "wz666MBjYWTp2PDzzggYhM6oWWmBb", Type: "TRANSACTIONS.SYNC_UPDATES_AVAILABLE", Body: plaidExample},
		Sources: []spec.Source{
			stated("signature, key, tolerance", "plaid.com/docs/api/webhooks/webhook-verification; plaid/plaid-openapi"),
			stated("retries, deadline, duplicates, no order", "plaid.com/docs/api/webhooks"),
			notSourced("key"),
		},
		Traps: []string{
			"there is no id: item, type and code are the same in distinct events, and as the key they lose all but the first; every webhook passes through unkeyed",
			"copies and webhooks out of order do occur: take a webhook as a hint, and fetch the state",
			"it is not documented whether others' webhooks have the same keys: take only those whose item_id is one of yours",
			"the key is fetched with the API's secret: without a way out to Plaid nothing can be verified",
			"an endpoint that refuses nine in ten webhooks of a day is not retried at all",
			"an answer other than 200 is a failure; 429 with Retry-After is honoured for up to four hours",
		},
	}
}

const plaidExample = `{
  "webhook_type": "{{event}}",
  "webhook_code": "{{action}}",
  "item_id": "{{id}}",
  "initial_update_complete": true,
  "historical_update_complete": false,
  "environment": "sandbox"
}`
