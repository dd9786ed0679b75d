package provider

import "github.com/hookonce/hookonce/provider/spec"

// Stripe returns the provider for Stripe webhooks, both snapshot events and thin (v2) events. The
// secrets are those of the endpoint, each the whole text that begins with whsec_. It panics if a
// secret is missing or empty.
//
// The key is the event's id, which the signature covers. Two events about one change, which Stripe
// sometimes makes, have the same Event.Logical. The library passes both on; the gateway marks the second, if
// it arrives on the same day in UTC, or drops it where its source lists the type. The signed time may be
// five minutes off in either direction.
func Stripe(secrets ...string) *spec.Provider {
	return must(spec.New(stripeSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func stripeSpec() spec.Spec {
	return spec.Spec{
		Name:   "stripe",
		Title:  "Stripe",
		Secret: "the endpoint's signing secret, which begins with whsec_",
		// The key is the whole text of the secret; Standard Webhooks decodes what looks the same.
		Verify: []spec.Verify{timedMAC("Stripe-Signature", spec.Seconds, 5*minute)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.created", spec.Seconds), at("json:$.created", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.object.id", "json:$.related_object.id"},
			Tenant:   []spec.Value{"json:$.account", "json:$.context"},
		},
		Dedup: spec.Dedup{
			// pending_webhooks counts down between attempts, so the whole body is not the same.
			Same:   []spec.Value{"json:$.type", "json:$.created", "json:$.account", "json:$.data", "json:$.related_object"},
			Retry:  spec.Stable,
			Manual: spec.Stable,
			Logical: []spec.Logical{{
				// The object's content as well, and what it was before: two updates of one object are no logical duplicates.
				Key:    []spec.Value{"json:$.type", "json:$.data.object.id", "hash:json:$.data"},
				Window: day,
			}},
		},
		Order: &spec.Order{By: "json:$.created", Unit: spec.Seconds, Advisory: true},
		Limits: spec.Limits{
			Retry:  3 * day,
			Manual: 30 * day, // by the command line tool; 15 days in the dashboard
		},
		Headers: []string{"Stripe-*"},
		Reconcile: &spec.Reconcile{
			Servers:  []spec.Server{{Name: "live", URL: "https://api.stripe.com"}},
			Settings: []spec.Setting{{Name: "account", Help: "the connected account (acct_...) whose events are listed", Optional: true}},
			Auth:     spec.Auth{Token: "a restricted key, which begins with rk_live_ or rk_test_"},
			Header:   map[string]spec.Pattern{"Stripe-Account": "{account}"},
			List: spec.List{
				Path:  "/v1/events?limit=100&created[gte]={since}&created[lte]={until}",
				Unit:  spec.Seconds,
				Items: "$.data",
				Page:  &spec.Page{Kind: spec.PageLastID, Param: "starting_after", More: "$.has_more"},
				Sort:  spec.Newest,
				ID:    "$.id",
				Time:  &spec.ListedTime{In: "$.created", Unit: spec.Seconds},
				Event: &spec.Recorded{Body: "$", Differs: "it is in the API version that the account had when the event was made; an endpoint with a version of its own gets that"},
			},
			Window:     30 * day,
			Rate:       spec.Rate{Requests: 10, Per: second},
			Rights:     "Events: read",
			Everything: true,
			Notes: []string{
				"events of connected accounts are listed one account at a time: set account",
				"sending again is done in the dashboard or with stripe events resend; no API for it is documented",
				"only snapshot events are listed; thin events (v2) are in another list",
			},
		},
		Example: spec.Template{ID: "evt_1NG8Du2eZvKYlo2CUI79vXWy", Type: "payment_intent.succeeded", Object: "pi_3QExampleExampleExample01", Body: stripeExample},
		Sources: []spec.Source{
			stated("signature, tolerance, key", "stripe/stripe-go: webhook/client.go"),
			stated("fields of snapshot and thin events", "stripe/stripe-go: event.go, v2_events.go"),
			stated("retries, resending, logical duplicates, no order", "Stripe documentation, Receive Stripe events in your webhook endpoint"),
			stated("a retry is signed anew", "docs.stripe.com/webhooks, Preventing replay attacks"),
			reported("time is not an order", "Stripe documentation, quoted"),
			reported("logical duplicates have the same object", "inferred: Stripe says type and object id, which two updates share as well; the day is our choice"),
			notSourced("deadline"),
			stated("list, pages, newest first", "stripe/stripe-node: types/EventsResource.d.ts; Stripe documentation, Pagination"),
			stated("the list goes back 30 days", "docs.stripe.com/webhooks/process-undelivered-events"),
			reported("rate of the list", "inferred: a tenth of the requests a second that Stripe permits in live mode"),
		},
		Traps: []string{
			"type and object id as the key loses every second update of an object",
			"a hash of the body as the key lets retries through: pending_webhooks changes",
			"sometimes two event objects with different ids are made for one change; they are logical duplicates and no copies: nothing drops the second unless a source asks for it",
			"created has a granularity of one second and is not an order",
			"signatures under v0 are not to be trusted",
		},
	}
}

const stripeExample = `{
  "id": "{{id}}",
  "object": "event",
  "api_version": "2025-09-30.clover",
  "created": {{unix}},
  "data": {
    "object": {
      "id": "{{object}}",
      "object": "payment_intent",
      "amount": 4200,
      "amount_capturable": 0,
      "amount_received": 4200,
      "automatic_payment_methods": {"allow_redirects": "always", "enabled": true},
      "capture_method": "automatic_async",
      "confirmation_method": "automatic",
      "created": {{unix}},
      "currency": "eur",
      "customer": "cus_QExampleExample01",
      "description": "Order 1001",
      "latest_charge": "ch_3QExampleExampleExample01",
      "livemode": false,
      "metadata": {"order": "1001"},
      "payment_method": "pm_1QExampleExampleExample01",
      "payment_method_types": ["card", "link"],
      "receipt_email": "customer@example.com",
      "status": "succeeded"
    }
  },
  "livemode": false,
  "pending_webhooks": {{left}},
  "request": {"id": "req_ExampleExample", "idempotency_key": "8f3f1d0e-0000-4000-8000-000000001001"},
  "type": "{{type}}"
}`
