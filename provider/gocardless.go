package provider

import "github.com/hookonce/hookonce/provider/spec"

// GoCardless returns the provider for GoCardless webhooks. The secrets are those of the webhook
// endpoint. It panics if a secret is missing or empty.
//
// The key of an event is its id, which the signature covers. No time is signed.
func GoCardless(secrets ...string) *spec.Provider {
	return must(spec.New(gocardlessSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func gocardlessSpec() spec.Spec {
	return spec.Spec{
		Name:   "gocardless",
		Title:  "GoCardless",
		Secret: "the webhook endpoint's secret",
		Verify: []spec.Verify{bodyMAC("Webhook-Signature", "", spec.Hex)},
		Split:  &spec.Split{Items: []spec.Value{"json:$.events[*]"}},
		Event: spec.Extract{
			Key:       [][]spec.Value{{"item:$.id"}},
			AttemptID: []spec.Value{"json:$.meta.webhook_id"},
			Type:      []spec.Value{"item:$.resource_type"},
			Action:    []spec.Value{"item:$.action"},
			Time:      []spec.Moment{at("item:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{
				"item:$.links.payment", "item:$.links.mandate", "item:$.links.refund", "item:$.links.payout",
				"item:$.links.subscription", "item:$.links.billing_request",
			},
			Tenant: []spec.Value{"item:$.links.organisation"},
		},
		Answer: spec.Answer{Reject: 498}, // what its own libraries answer
		// https://developer.gocardless.com/api-reference/#webhooks-overview
		Headers: []string{"Origin", "GoCardless-*"},
		Reconcile: &spec.Reconcile{
			Servers: []spec.Server{
				{Name: "live", URL: "https://api.gocardless.com"},
				{Name: "sandbox", URL: "https://api-sandbox.gocardless.com"},
			},
			Auth:   spec.Auth{Token: "an access token"},
			Header: map[string]spec.Pattern{"GoCardless-Version": "2015-07-06"},
			List: spec.List{
				Path:       "/webhooks?limit=100&created_at[gte]={since}&created_at[lte]={until}",
				Items:      "$.webhooks",
				Page:       &spec.Page{Kind: spec.PageCursor, In: "$.meta.cursors.after", Param: "after"},
				ID:         "$.id",
				Time:       &spec.ListedTime{In: "$.created_at"},
				Delivered:  &spec.Condition{In: "$.successful", Is: []string{"true"}},
				Deliveries: true,
				Event:      &spec.Recorded{Body: "$.request_body", Headers: "$.request_headers"},
			},
			Redeliver: &spec.Redeliver{
				Path:   "/webhooks/{id}/actions/retry",
				Rate:   spec.Rate{Requests: 1, Per: second},
				Rights: "read-write access",
			},
			Rights: "read-only access",
			Notes: []string{
				"a webhook has several events, which are sent again together",
				"the list has the webhooks of all endpoints of the account: with more than one endpoint, those of another may be reported",
				"how far back the list goes is not stated",
			},
		},
		Example: spec.Template{ID: "EV000ABC123DEF", Type: "payments.confirmed", Object: "PM000EXAMPLE1", Body: gocardlessExample},
		Sources: []spec.Source{
			stated("signature, fields, answer to a wrong signature", "gocardless/gocardless-pro-go"),
			notSourced("retries"),
			stated("list of webhooks, their bodies, retry", "gocardless-nodejs (npm): types/services/webhookService.d.ts, types/types/Types.d.ts"),
			notSourced("how far back the list goes, how often it may be asked"),
		},
		Traps: []string{
			"the header has the name that Standard Webhooks uses, for another scheme: it says nothing about the sender",
			"the body ends in a line break that is signed: pass it on byte for byte",
			"meta.webhook_id is that of the request, not of an event",
			"how long GoCardless retries is not stated: keep keys for as long as you can",
		},
	}
}

const gocardlessExample = `{
  "events": [
    {
      "id": "{{id}}",
      "created_at": "{{time}}",
      "resource_type": "{{event}}",
      "action": "{{action}}",
      "links": {"payment": "{{object}}"},
      "details": {
        "origin": "gocardless",
        "cause": "payment_confirmed",
        "description": "Enough time has passed since the payment was submitted for the banks to return an error."
      },
      "metadata": {}
    }
  ],
  "meta": {"webhook_id": "WB000EXAMPLE1"}
}
`
