package provider

import "github.com/hookonce/hookonce/provider/spec"

// Recurly returns the provider for Recurly's webhooks in JSON; those in XML are not signed and are
// rejected. The secrets are the secret keys of the endpoint. It panics if a secret is missing or empty.
//
// The key is the Recurly-Notification-Id header, which is the same in every retry and which the
// signature does not cover. The signed time may be 73 hours in the past, which covers the retries, and five
// minutes ahead.
func Recurly(secrets ...string) *spec.Provider {
	return must(spec.New(recurlySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

// recurlyRetry is how long Recurly retries: ten times, 10+x·2^(x+5) seconds apart for x from 0 to 9, which are 262 308 s.
const recurlyRetry = 73 * hour

func recurlySpec() spec.Spec {
	return spec.Spec{
		Name:   "recurly",
		Title:  "Recurly",
		Secret: "the webhook endpoint's secret key",
		Verify: []spec.Verify{signedOnce(spec.Verify{
			Hash:      spec.SHA256,
			Key:       spec.KeyUTF8,
			Encoding:  spec.Hex,
			Signature: spec.Signature{In: "header:Recurly-Signature", Split: ",", Skip: 1},
			Time:      &spec.Timestamp{In: "entry:0", Unit: spec.Millis, Past: 5 * minute, Future: 5 * minute},
			Sign:      []spec.Value{"ts", "const:.", "body"},
		}, recurlyRetry)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"header:Recurly-Notification-Id"}},
			Type:     []spec.Value{"json:$.object_type"},
			Action:   []spec.Value{"json:$.event_type"},
			Time:     []spec.Moment{at("json:$.event_time", spec.RFC3339)},
			Resource: []spec.Value{"json:$.uuid", "json:$.id"},
			Tenant:   []spec.Value{"json:$.site_id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Answer:  spec.Answer{Deadline: 5 * second},
		Limits:  spec.Limits{Retry: recurlyRetry},
		Headers: []string{"Recurly-*"},
		Example: spec.Template{
			ID:     "1f0d5c3e-7a42-4b8e-9d21-6c3b5a4e8f70",
			Type:   "subscription.renewed",
			Object: "00000000000000000000000000001001",
			Header: map[string]string{"Recurly-Notification-Id": "{{id}}"},
			Body:   recurlyExample,
		},
		Sources: []spec.Source{
			stated("signature, tolerance", "recurly/recurly-client-go; docs.recurly.com, Signature verification"),
			stated("the notification id is the same in every retry", "docs.recurly.com, Overview: Webhooks"),
			stated("retries", "docs.recurly.com, Automatic retries"),
			notSourced(onceOrAnew),
			stated("answer, deadline", "recurly.com/developers/reference/webhooks; docs.recurly.com"),
			stated("a person can have a notification sent again, for how long is not said", "docs.recurly.com, Manual retries"),
			reported("fields", "users of Recurly's JSON webhooks; nothing but labels depends on them"),
		},
		Traps: []string{
			"the id in the body is that of the resource: as the key it loses every later event of it",
			"the notification id is in a header that the signature does not cover: whoever replays a captured request, within 73 hours, can change it",
			"notifications in XML are not signed: have the endpoint send JSON",
			"notifications arrive out of order, and say what happened, not what is: ask Recurly for the state",
			"redirects do not count as success",
		},
	}
}

const recurlyExample = `{
  "id": "example0001001",
  "object_type": "{{event}}",
  "event_type": "{{action}}",
  "event_time": "{{time}}",
  "site_id": "examplesite",
  "uuid": "{{object}}",
  "account_code": "customer-1001"
}`
