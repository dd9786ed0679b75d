package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// PayPal returns the provider for PayPal's webhooks. In place of a secret it takes the ids of the
// webhooks, which PayPal's dashboard shows: they are part of what PayPal signs with its own key. It
// panics if an id is missing or empty. Verification fetches PayPal's certificate, from PayPal's hosts
// only, and keeps it.
//
// The key is the event's id. The signature covers no more of the body than a checksum that is easily
// met, so the key does not count as signed. A transmission that was seen with another body is refused,
// by the process that saw it.
func PayPal(webhookIDs ...string) *spec.Provider {
	return must(spec.New(paypalSpec(), spec.Settings{Secrets: spec.Secrets(webhookIDs...)}))
}

func paypalSpec() spec.Spec {
	return spec.Spec{
		Name:   "paypal",
		Title:  "PayPal",
		Secret: "the webhook's id, which PayPal's dashboard shows",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.PayPal(http.DefaultTransport, nil)}},
		Event: spec.Extract{
			Key:       [][]spec.Value{{"json:$.id"}},
			AttemptID: []spec.Value{"header:Paypal-Transmission-Id"},
			Type:      []spec.Value{"json:$.event_type"},
			Time:      []spec.Moment{at("json:$.create_time", spec.RFC3339)},
			Resource:  []spec.Value{"json:$.resource.id"},
		},
		Dedup:  spec.Dedup{Same: []spec.Value{"json:$.event_type", "json:$.create_time", "json:$.resource"}, Retry: spec.Stable, Manual: spec.Stable},
		Order:  &spec.Order{By: "json:$.resource.update_time", Unit: spec.RFC3339, Advisory: true},
		Limits: spec.Limits{Retry: 3 * day, Manual: 30 * day}, // 25 times; in the dashboard
		// https://developer.paypal.com/api/rest/webhooks/rest/#link-eventheaders
		Headers: []string{"Paypal-Transmission-Id", "Paypal-Transmission-Time", "Paypal-Transmission-Sig", "Paypal-Cert-Url", "Paypal-Auth-Algo", "Paypal-Auth-Version", "Correlation-Id", "Paypal-*"},
		Reconcile: &spec.Reconcile{
			Servers: []spec.Server{
				{Name: "live", URL: "https://api-m.paypal.com"},
				{Name: "sandbox", URL: "https://api-m.sandbox.paypal.com"},
			},
			Settings: []spec.Setting{{Name: "webhook", Help: "the webhook's id, to which events are sent again"}},
			Auth:     spec.Auth{Kind: spec.AuthOAuth, TokenPath: "/v1/oauth2/token", Token: "id:secret of the app that the webhook belongs to"},
			List: spec.List{
				Path:  "/v1/notifications/webhooks-events?page_size=100&start_time={since}&end_time={until}",
				Items: "$.events",
				Page:  &spec.Page{Kind: spec.PageURL, In: "$.links"},
				ID:    "$.id",
				Time:  &spec.ListedTime{In: "$.create_time"},
				Event: &spec.Recorded{Body: "$"},
			},
			Redeliver: &spec.Redeliver{
				Path:    "/v1/notifications/webhooks-events/{id}/resend",
				Body:    `{"webhook_ids": ["{webhook}"]}`,
				Success: []int{202},
				Rate:    spec.Rate{Requests: 1, Per: second},
			},
			Rate:       spec.Rate{Requests: 1, Per: second},
			Rights:     "the scope https://uri.paypal.com/services/applications/webhooks",
			Everything: true,
			Notes: []string{
				"how far back the list goes is not stated",
				"an event that is still being retried is not sent again",
			},
		},
		Example: spec.Template{
			ID:     "WH-2WR32451HC0233532-67976317FL4543714",
			Type:   "PAYMENT.CAPTURE.COMPLETED",
			Object: "EXAMPLE0000000001",
			Header: map[string]string{"Paypal-Transmission-Id": "00000000-0000-4000-8000-000000001001"},
			Body:   paypalExample,
		},
		Sources: []spec.Source{
			stated("signature, certificate", "paypal/PayPal-Python-SDK: paypalrestsdk/notifications.py"),
			stated("key, sending again, fields", "paypal/paypal-rest-api-specifications: openapi/notifications_webhooks_v1.json"),
			reported("retries", "PayPal documentation, quoted"),
			reported("a checksum binds no body", "inferred: CRC-32 is no cryptographic hash"),
			stated("a person can have each event of the last 30 days sent again", "developer.paypal.com/api/rest/webhooks/events-dashboard"),
			notSourced("for how long the API sends an event again"),
			stated("list, its range, sending again, scope", "paypal/paypal-rest-api-specifications: openapi/notifications_webhooks_v1.json"),
			reported("a hundred events a page", "public code that lists them"),
			notSourced("how far back the list goes, how often it may be asked"),
		},
		Traps: []string{
			"PAYPAL-TRANSMISSION-ID identifies the attempt: as the key it lets every retry through",
			"the signature covers only a CRC-32 of the body: whoever captures a request can make another body that fits",
			"the last 16,384 transmissions of a source are remembered, by the process that saw them, until it ends or is told another secret: a captured one can be posted with another body after that, so ask PayPal for the event before money moves",
			"resource_version is the version of the schema, not of the object",
			"the certificate is fetched: without a way out to PayPal's hosts nothing can be verified, and PayPal is asked to come again",
		},
	}
}

const paypalExample = `{
  "id": "{{id}}",
  "event_version": "1.0",
  "create_time": "{{time}}",
  "resource_type": "capture",
  "resource_version": "2.0",
  "event_type": "{{type}}",
  "summary": "Payment completed for EUR 42.00 EUR",
  "resource": {
    "id": "{{object}}",
    "amount": {"currency_code": "EUR", "value": "42.00"},
    "final_capture": true,
    "invoice_id": "1001",
    "seller_protection": {"status": "ELIGIBLE"},
    "status": "COMPLETED",
    "create_time": "{{time}}",
    "update_time": "{{time}}"
  },
  "links": [
    {"href": "https://api.sandbox.paypal.com/v1/notifications/webhooks-events/{{id}}", "rel": "self", "method": "GET"}
  ]
}`
