package provider

import "github.com/hookonce/hookonce/provider/spec"

// Chargebee returns the provider for Chargebee webhooks. Chargebee signs nothing: the webhook is
// protected with HTTP basic authentication, and the secrets are its user:password. It panics if a
// secret is missing or not of that form.
//
// The key is the event's id. Nothing is signed.
func Chargebee(secrets ...string) *spec.Provider {
	return must(spec.New(chargebeeSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func chargebeeSpec() spec.Spec {
	return spec.Spec{
		Name:      "chargebee",
		Title:     "Chargebee",
		Secret:    "the user:password of the webhook's basic authentication",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Basic}},
		Event: spec.Extract{
			Key:  [][]spec.Value{{"json:$.id"}},
			Type: []spec.Value{"json:$.event_type"},
			Time: []spec.Moment{at("json:$.occurred_at", spec.Seconds)},
			Resource: []spec.Value{
				"json:$.content.transaction.id", "json:$.content.credit_note.id", "json:$.content.invoice.id",
				"json:$.content.subscription.id", "json:$.content.customer.id",
			},
		},
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.event_type", "json:$.occurred_at", "json:$.content"}},
		Answer:  spec.Answer{Deadline: 20 * second},
		Limits:  spec.Limits{Retry: 4 * day}, // seven retries; the first after 2 minutes, the last after 2 more days
		Headers: []string{"Chargebee-*", "X-Chargebee-*"},
		Reconcile: &spec.Reconcile{
			Servers:  []spec.Server{{Name: "site", URL: "https://{site}.chargebee.com"}},
			Settings: []spec.Setting{{Name: "site", Help: "the site's name, as in its address; that of a test site ends in -test"}},
			Auth:     spec.Auth{Kind: spec.AuthBasic, Token: "an API key of the site, which is the user of HTTP basic authentication"},
			List: spec.List{
				Path:      "/api/v2/events?limit=100&sort_by[asc]=occurred_at&occurred_at[after]={since}&occurred_at[before]={until}",
				Unit:      spec.Seconds,
				Items:     "$.list",
				Page:      &spec.Page{Kind: spec.PageCursor, In: "$.next_offset", Param: "offset"},
				Sort:      spec.Oldest,
				ID:        "$.event.id",
				Time:      &spec.ListedTime{In: "$.event.occurred_at", Unit: spec.Seconds},
				Delivered: &spec.Condition{In: "$.event.webhook_status", Is: []string{"succeeded"}},
				Event:     &spec.Recorded{Body: "$.event", Differs: "it is in the API version of the request, and says how its webhooks fared by now"},
			},
			Rate:       spec.Rate{Requests: 1, Per: second},
			Rights:     "a key of the type Read-only: All",
			Everything: true,
			Notes:      []string{"how far back the list goes is not stated", "no API sends an event again"},
		},
		Example: spec.Template{ID: "ev_16BHbhF4s42tO2lK", Type: "payment_succeeded", Object: "txn_example1001", Body: chargebeeExample},
		Sources: []spec.Source{
			stated("authentication, key, fields", "chargebee/chargebee-go: models/event"),
			reported("retries, deadline", "Chargebee documentation, quoted; the sum of the delays is rounded up"),
			stated("list, pages, filters, status of webhooks", "chargebee (npm): types/resources/Event.d.ts"),
			stated("rights of the key", "chargebee.com/docs/2.0/api_keys.html"),
			notSourced("how far back the list goes, how often it may be asked"),
		},
		Traps: []string{
			"nothing is signed: whoever sees one request can send others, so fetch the event from Chargebee before money moves",
			"the body also says how its webhooks fared, which changes: a hash of it as the key lets retries through",
		},
	}
}

const chargebeeExample = `{
  "id": "{{id}}",
  "occurred_at": {{unix}},
  "source": "scheduled_job",
  "object": "event",
  "api_version": "v2",
  "event_type": "{{type}}",
  "webhook_status": "scheduled",
  "content": {
    "transaction": {
      "id": "{{object}}",
      "customer_id": "customer_example1001",
      "type": "payment",
      "date": {{unix}},
      "amount": 4200,
      "currency_code": "EUR",
      "status": "success",
      "object": "transaction"
    },
    "invoice": {"id": "1001", "status": "paid", "total": 4200, "amount_due": 0, "object": "invoice"},
    "customer": {"id": "customer_example1001", "email": "customer@example.com", "object": "customer"}
  }
}`
