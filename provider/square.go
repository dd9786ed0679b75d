package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/spec"
)

// Square returns the provider for Square webhooks. The URL is the notification URL exactly as it is
// registered with Square, because the signature covers it; empty means the URL of the request, which
// is right only where no proxy changes it. The secrets are the signature keys of the subscription.
// It panics if a secret is missing or empty, or the URL is not one.
//
// The key is the event_id, which the signature covers. No time is signed.
func Square(url string, secrets ...string) *spec.Provider {
	return must(spec.New(squareSpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

func squareSpec() spec.Spec {
	return spec.Spec{
		Name:   "square",
		Title:  "Square",
		Secret: "the webhook subscription's signature key",
		Verify: []spec.Verify{headerMAC("X-Square-Hmacsha256-Signature", "", spec.Base64, "url", "body")},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event_id"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.id"},
			Tenant:   []spec.Value{"json:$.merchant_id"},
			Attempt:  []spec.Value{"header:Square-Retry-Number"},
			Reason:   []spec.Value{"header:Square-Retry-Reason"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		// Orders count their updates. Payments and the rest have no version, and then there is no order.
		Order:  &spec.Order{By: "json:$.data.object.order_updated.version"},
		Answer: spec.Answer{Deadline: 10 * second},
		Limits: spec.Limits{Retry: day}, // 11 attempts
		// https://developer.squareup.com/docs/webhooks/step2subscribe
		Headers: []string{"X-Square-Signature", "Square-Environment", "Square-Initial-Delivery-Timestamp", "X-Square-*", "Square-*"},
		Reconcile: &spec.Reconcile{
			Servers: []spec.Server{
				{Name: "live", URL: "https://connect.squareup.com"},
				{Name: "sandbox", URL: "https://connect.squareupsandbox.com"},
			},
			Auth: spec.Auth{Token: "the application's personal access token; tokens of OAuth are not taken"},
			List: spec.List{
				Method:  http.MethodPost,
				Path:    "/v2/events",
				Body:    `{"limit": 100, "query": {"filter": {"created_at": {"start_at": "{since}", "end_at": "{until}"}}, "sort": {"field": "DEFAULT", "order": "ASC"}}}`,
				Items:   "$.events",
				LeftOut: true,
				Page:    &spec.Page{Kind: spec.PageCursor, In: "$.cursor", Param: "cursor"},
				Sort:    spec.Oldest,
				ID:      "$.event_id",
				Time:    &spec.ListedTime{In: "$.created_at"},
				Event:   &spec.Recorded{Body: "$"},
			},
			Window:     28 * day,
			Rights:     "the personal access token of the application; it has all rights",
			Everything: true,
			Notes: []string{
				"the list has to be switched on first (PUT /v2/events/enable), and has only what came after that",
				"no API sends an event again",
			},
		},
		Example: spec.Template{ID: "6a8f5f28-54a1-4eb0-a98a-3111513fd4fc", Type: "payment.updated", Object: "KkAkhdMsgzn59SM8A89WgKwekxLZY", Body: squareExample},
		Sources: []spec.Source{
			stated("signature, key, fields", "square/square-go-sdk: webhooks/client/verify_signature.go; developer.squareup.com/docs/webhooks/overview"),
			stated("version of orders", "square/square-nodejs-sdk: src/api/types/OrderUpdated.ts"),
			reported("retries, their headers, deadline", "Square documentation, quoted"),
			notSourced("sending an event again by hand"),
			stated("list, its window, that it is switched on first", "square (npm): reference.md, api/resources/events; developer.squareup.com/docs/events-api"),
			notSourced("how often the list may be asked"),
		},
		Traps: []string{
			"behind a proxy the request's URL differs from the registered one, and everything is rejected",
			"an SDK takes an empty body for valid whatever the signature; an empty body needs a valid signature like any other",
			"payments have no version to order by, version_token is opaque; orders have one",
		},
	}
}

const squareExample = `{
  "merchant_id": "MLEXAMPLE0001",
  "location_id": "LEXAMPLE0001",
  "type": "{{type}}",
  "event_id": "{{id}}",
  "created_at": "{{time}}",
  "data": {
    "type": "payment",
    "id": "{{object}}",
    "object": {
      "payment": {
        "id": "{{object}}",
        "amount_money": {"amount": 4200, "currency": "EUR"},
        "created_at": "{{time}}",
        "location_id": "LEXAMPLE0001",
        "order_id": "OEXAMPLE1001",
        "reference_id": "1001",
        "source_type": "CARD",
        "status": "COMPLETED",
        "total_money": {"amount": 4200, "currency": "EUR"},
        "updated_at": "{{time}}",
        "version_token": "example"
      }
    }
  }
}`
