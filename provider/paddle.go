package provider

import "github.com/hookonce/hookonce/provider/spec"

// Paddle returns the provider for Paddle Billing webhooks. The secrets are those of the notification
// destination, each the whole text that begins with pdl_ntfset_. It panics if a secret is missing or
// empty.
//
// The key is the event_id, which the signature covers. A time is signed, but not checked against a
// tolerance unless [spec.Settings] has one: Paddle does not state that retries are signed anew,
// and replays are caught by their key.
func Paddle(secrets ...string) *spec.Provider {
	return must(spec.New(paddleSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func paddleSpec() spec.Spec {
	return spec.Spec{
		Name:   "paddle",
		Title:  "Paddle",
		Secret: "the notification destination's secret key, which begins with pdl_ntfset_",
		Verify: []spec.Verify{{
			Hash:      spec.SHA256,
			Key:       spec.KeyUTF8,
			Encoding:  spec.Hex,
			Signature: spec.Signature{In: "header:Paddle-Signature", Split: ";", Prefix: "h1="},
			Time:      &spec.Timestamp{In: "part:ts=", Unit: spec.Seconds},
			Sign:      []spec.Value{"ts", "const::", "body"},
		}},
		Event: spec.Extract{
			Key:       [][]spec.Value{{"json:$.event_id"}},
			AttemptID: []spec.Value{"json:$.notification_id"},
			Type:      []spec.Value{"json:$.event_type"},
			Time:      []spec.Moment{at("json:$.occurred_at", spec.RFC3339)},
			Resource:  []spec.Value{"json:$.data.id"},
		},
		Dedup: spec.Dedup{
			// notification_id differs between destinations.
			Same:  []spec.Value{"json:$.event_type", "json:$.occurred_at", "json:$.data"},
			Retry: spec.Stable,
		},
		Order:   &spec.Order{By: "json:$.occurred_at", Unit: spec.RFC3339, Advisory: true},
		Answer:  spec.Answer{Status: 200, Deadline: 5 * second},
		Limits:  spec.Limits{Retry: 3 * day}, // 60 attempts
		Headers: []string{"Paddle-*"},
		Reconcile: &spec.Reconcile{
			Servers: []spec.Server{
				{Name: "live", URL: "https://api.paddle.com"},
				{Name: "sandbox", URL: "https://sandbox-api.paddle.com"},
			},
			Settings: []spec.Setting{{Name: "destination", Help: "the id of the notification destination, which begins with ntfset_"}},
			Auth:     spec.Auth{Token: "an API key, which begins with pdl_"},
			Header:   map[string]spec.Pattern{"Paddle-Version": "1"},
			List: spec.List{
				Path:       "/notifications?per_page=200&order_by=id[ASC]&notification_setting_id={destination}&from={since}&to={until}",
				Items:      "$.data",
				Page:       &spec.Page{Kind: spec.PageURL, In: "$.meta.pagination.next", More: "$.meta.pagination.has_more"},
				Sort:       spec.Oldest,
				ID:         "$.id",
				Time:       &spec.ListedTime{In: "$.occurred_at"},
				Delivered:  &spec.Condition{In: "$.status", Is: []string{"delivered"}},
				Deliveries: true, // a replay is another notification of the same event
				Event:      &spec.Recorded{Body: "$.payload"},
			},
			Redeliver: &spec.Redeliver{
				Path:   "/notifications/{id}/replay",
				When:   &spec.Condition{In: "$.origin", Is: []string{"event"}},
				Rights: "notification.write",
			},
			Window: 90 * day,
			Rights: "notification.read",
			Notes:  []string{"a replay is sent under another notification_id and the same event_id; replays are not replayed themselves"},
		},
		Example: spec.Template{ID: "evt_01hv8x29kz0t586xy6zn1a62ny", Type: "transaction.completed", Object: "txn_01examplexampleexample0001", Body: paddleExample},
		Sources: []spec.Source{
			stated("signature", "PaddleHQ/paddle-go-sdk: webhook_verifier.go"),
			stated("key, time", "developer.paddle.com/webhooks/how-webhooks-work"),
			stated("retries, answer", "developer.paddle.com/webhooks/respond-to-webhooks"),
			stated("list, pages, replay and which notifications can be replayed", "PaddleHQ/paddle-go-sdk: notifications.go, collection.go"),
			stated("notifications are kept for 90 days, right to read them", "developer.paddle.com/api-reference/notification-logs/list-notification-logs"),
			reported("right to replay", "inferred: the API's other permissions are named alike"),
			notSourced("how often the list may be asked"),
		},
		Traps: []string{
			"notification_id is made for each destination: it is not the key",
			"only the status 200 counts as success, within five seconds",
			"a notification can be replayed for as long as Paddle lists it, which is not stated",
		},
	}
}

const paddleExample = `{
  "event_id": "{{id}}",
  "event_type": "{{type}}",
  "occurred_at": "{{time}}",
  "notification_id": "ntf_01examplexampleexample0001",
  "data": {
    "id": "{{object}}",
    "status": "completed",
    "customer_id": "ctm_01examplexampleexample0001",
    "currency_code": "EUR",
    "custom_data": {"order": "1001"},
    "items": [
      {"price": {"id": "pri_01examplexampleexample0001", "description": "Hook, brass", "unit_price": {"amount": "2100", "currency_code": "EUR"}}, "quantity": 2}
    ],
    "details": {"totals": {"subtotal": "3500", "tax": "700", "total": "4200", "currency_code": "EUR"}},
    "created_at": "{{time}}",
    "updated_at": "{{time}}"
  }
}`
