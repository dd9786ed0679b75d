package provider

import "github.com/hookonce/hookonce/provider/spec"

// Zendesk returns the provider for Zendesk's webhooks, subscribed to events or invoked by triggers and
// automations. The secrets are the signing secrets of the webhook. It panics if a secret is missing or empty.
//
// The key of a subscribed event is its id, which the signature covers. Requests of triggers and automations, whose body is
// the customer's own, have the X-Zendesk-Webhook-Invocation-Id header as the key, which it does not cover. The time of
// the request is signed; no tolerance is enforced, as Zendesk states none.
func Zendesk(secrets ...string) *spec.Provider {
	return must(spec.New(zendeskSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func zendeskSpec() spec.Spec {
	return spec.Spec{
		Name:   "zendesk",
		Title:  "Zendesk",
		Secret: "the webhook's signing secret",
		Verify: []spec.Verify{timed(headerMAC("X-Zendesk-Webhook-Signature", "", spec.Base64, "ts", "body"), "header:X-Zendesk-Webhook-Signature-Timestamp", spec.RFC3339, 0)},
		Event: spec.Extract{
			// The body of a trigger is whatever somebody wrote: an id in it is likely that of the ticket.
			Key: [][]spec.Value{
				{"json:$.zendesk_event_version", "json:$.id"},
				{"const:invocation", "header:X-Zendesk-Webhook-Invocation-Id"},
			},
			Subscription: []spec.Value{"header:X-Zendesk-Webhook-Id"},
			Type:         []spec.Value{"json:$.type"},
			Time:         []spec.Moment{at("json:$.time", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.subject"},
			Tenant:       []spec.Value{"header:X-Zendesk-Account-Id", "json:$.account_id"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		Order: &spec.Order{By: "json:$.time", Unit: spec.RFC3339, Advisory: true},
		// Of the statuses only 409, 429 and 503 are sent again after: a wrong secret would lose events.
		Answer:  spec.Answer{Reject: 503, Deadline: 10 * second},
		Headers: []string{"X-Zendesk-*"},
		Reconcile: &spec.Reconcile{
			Servers: []spec.Server{{Name: "live", URL: "https://{subdomain}.zendesk.com"}},
			Settings: []spec.Setting{
				{Name: "subdomain", Help: "the first part of the account's address"},
				{Name: "webhook", Help: "the webhook's id"},
			},
			Auth: spec.Auth{Kind: spec.AuthBasic, Token: "an administrator's address/token:API token, as in me@example.com/token:..."},
			List: spec.List{
				Path:      "/api/v2/webhooks/{webhook}/invocations?page[size]=100&filter[from_ts]={since}&filter[to_ts]={until}",
				Items:     "$.invocations",
				Page:      &spec.Page{Kind: spec.PageCursor, In: "$.meta.after_cursor", Param: "page[after]", More: "$.meta.has_more"},
				ID:        "$.id",
				Time:      &spec.ListedTime{In: "$.latest_completed_at"},
				Delivered: &spec.Condition{In: "$.status", Is: []string{"success"}},
			},
			Window: 7 * day,
			Rights: "an administrator's token",
			Notes: []string{
				"the list names invocations and not events, so nothing can be compared: what Zendesk did not deliver is reported",
				"no API sends an event again",
			},
		},
		Example: spec.Template{
			ID:     "2b24ef10-19d4-4740-93cf-8f98ec4776c0",
			Type:   "zen:event-type:ticket.status_changed",
			Object: "zen:ticket:1001",
			Header: map[string]string{
				"X-Zendesk-Account-Id":            "10000001",
				"X-Zendesk-Webhook-Id":            "01EXAMPLE0WEBHOOK000000001",
				"X-Zendesk-Webhook-Invocation-Id": "01EXAMPLE0INVOCATION000001",
			},
			Body: zendeskExample,
		},
		Sources: []spec.Source{
			stated("signature", "developer.zendesk.com/documentation/webhooks/verifying"),
			stated("fields of an event", "developer.zendesk.com/api-reference/webhooks/event-types/webhook-event-types"),
			stated("a webhook is invoked more than once for one action now and then, and has a circuit breaker", "developer.zendesk.com/api-reference/webhooks/introduction"),
			reported("headers", "receivers in Go, Python and TypeScript, which read the same ones"),
			reported("both ids are the same in every attempt", "inferred: Zendesk's Webhooks API lists the attempts of an invocation, with one request body"),
			reported("what is sent again: 409 three times, 429 and 503 with a short Retry-After, timeouts five times", "Zendesk documentation, quoted"),
			reported("deadline", "Hookdeck's guide to Zendesk webhooks"),
			notSourced("how long it retries"),
			notSourced("tolerance of the signed time"),
			reported("list of invocations, its pages, filters and window", "botbrains-io/python-zendesk, made from Zendesk's OpenAPI: src/zendesk/models/listwebhookinvocationsop.py, docs/sdks/webhookinvocations/README.md"),
			reported("only id, time and status of an invocation are relied on", "the same; where an attempt has the request is not sourced"),
		},
		Traps: []string{
			"X-Zendesk-Webhook-Id is the webhook itself and the same for all its requests: as the key it loses everything after the first",
			"an id in the body of a trigger is the ticket's, since somebody put it there: as the key it loses all that happens to the ticket later",
			"few answers are sent again: 409, 429 and 503 with a short Retry-After, and timeouts; an answer of 500 loses the event",
			"the circuit breaker holds requests back when most of five minutes fail",
			"the invocation id is not signed: whoever replays a captured request can change it",
			"two webhooks to one endpoint send the same event with the same id: use one source for each",
		},
	}
}

const zendeskExample = `{
  "account_id": 10000001,
  "id": "{{id}}",
  "type": "{{type}}",
  "time": "{{time}}",
  "subject": "{{object}}",
  "zendesk_event_version": "2022-11-06",
  "detail": {
    "id": "1001",
    "status": "SOLVED",
    "priority": "NORMAL",
    "requester_id": "20000001",
    "group_id": "30000001",
    "is_public": true,
    "created_at": "{{time}}",
    "updated_at": "{{time}}"
  },
  "event": {"current": "SOLVED", "previous": "OPEN"}
}`
