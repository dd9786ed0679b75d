package provider

import "github.com/hookonce/hookonce/provider/spec"

// WorkOS returns the provider for WorkOS webhooks. The secrets are the signing secrets of the endpoint.
// It panics if a secret is missing or empty.
//
// The key is the id of the event, which the signature covers. The signed time, in milliseconds, may be
// three days in the past, which covers the retries, and three minutes ahead.
func WorkOS(secrets ...string) *spec.Provider {
	return must(spec.New(workosSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func workosSpec() spec.Spec {
	verify := signedOnce(timedMAC("WorkOS-Signature", spec.Millis, 3*minute), 3*day)
	spaced := verify
	spaced.Signature.Split = ", " // as WorkOS writes it, and its own library relies on
	return spec.Spec{
		Name:   "workos",
		Title:  "WorkOS",
		Secret: "the endpoint's signing secret",
		Verify: []spec.Verify{spaced, verify},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.event"},
			Time:     []spec.Moment{at("json:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.id"},
		},
		Order:   &spec.Order{By: "json:$.data.updated_at", Unit: spec.RFC3339, Advisory: true},
		Limits:  spec.Limits{Retry: 3 * day}, // in production; several minutes elsewhere
		Headers: []string{"WorkOS-*"},
		Reconcile: &spec.Reconcile{
			Servers:  []spec.Server{{Name: "live", URL: "https://api.workos.com"}},
			Settings: []spec.Setting{{Name: "events", Help: "the event types to list, with commas between them, as in dsync.user.created,user.updated", List: true}},
			Auth:     spec.Auth{Token: "an API key, which begins with sk_"},
			List: spec.List{
				Path:  "/events?limit=100&order=asc&events[]={events}&range_start={since}&range_end={until}",
				Items: "$.data",
				Page:  &spec.Page{Kind: spec.PageCursor, In: "$.list_metadata.after", Param: "after", Without: []string{"range_start"}}, // they exclude each other
				Sort:  spec.Oldest,
				ID:    "$.id",
				Time:  &spec.ListedTime{In: "$.created_at"},
				Event: &spec.Recorded{Body: "$", Differs: "it has an object, and sometimes a context, besides"},
			},
			Window: 29 * day, // a request may ask for 30, and a little more than the range is asked for
			Rights: "an API key of the environment",
			Notes:  []string{"the list goes back 30 or 90 days, which is not stated alike everywhere, and a request may ask for 30 at most", "no API sends an event again"},
		},
		Example: spec.Template{ID: "event_01EHWNCE74X7JSDV0X3SZ3KJNY", Type: "dsync.user.updated", Object: "directory_user_01EXAMPLE0001", Body: workosExample, Compact: true},
		Sources: []spec.Source{
			stated("signature, tolerance", "workos/workos-go: pkg/webhooks/client.go"),
			stated("its Node library signs the parsed body as it writes it anew", "workos/workos-node: src/common/crypto/signature-provider.ts"),
			stated("retries, no order, compare the times of the data", "workos.com/docs/webhooks"),
			reported("key", "inferred: WorkOS retries the event, and the id is the event's"),
			notSourced(onceOrAnew),
			notSourced("how long a webhook can be sent again by hand"),
			stated("list, its parameters, pages", "@workos-inc/node (npm): SerializedListEventOptions, List"),
			stated("a webhook's id is that of the listed event", "workos.com/docs/events/quick-start"),
			stated("range_start and after exclude each other", "@workos/mcp-docs-server 0.2.0 (npm): reference/events/list"),
			stated("a request may ask for 30 days", "@workos/mcp-docs-server 0.2.0 (npm): events/data-syncing/events-api"),
			notSourced("how often the list may be asked"),
		},
		Traps: []string{
			"the time in the signature is in milliseconds, with a space after the comma",
			"its Node library verifies JSON that it wrote anew: samples are compact here, so that they pass it",
			"events arrive in any order, and a retry may carry an older state than what came since",
		},
	}
}

const workosExample = `{
  "id": "{{id}}",
  "event": "{{type}}",
  "data": {
    "object": "directory_user",
    "id": "{{object}}",
    "directory_id": "directory_01EXAMPLE0001",
    "organization_id": "org_01EXAMPLE0001",
    "idp_id": "8931",
    "emails": [{"type": "work", "value": "person@example.com", "primary": true}],
    "first_name": "Example",
    "last_name": "Person",
    "state": "active",
    "created_at": "{{time}}",
    "updated_at": "{{time}}",
    "previous_attributes": {"state": "inactive"}
  },
  "created_at": "{{time}}"
}`
