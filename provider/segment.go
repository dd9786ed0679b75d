package provider

import "github.com/hookonce/hookonce/provider/spec"

// Segment returns the provider for the webhooks destination of Segment. The secrets are the shared secrets of the destination.
// It panics if a secret is missing or empty.
//
// The key is the messageId of the call, which the signature covers. A notification of a deletion has none and passes through
// unkeyed. The signature is an HMAC with SHA-1. No time is signed by itself.
func Segment(secrets ...string) *spec.Provider {
	return must(spec.New(segmentSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func segmentSpec() spec.Spec {
	v := bodyMAC("X-Signature", "", spec.Hex)
	v.Hash = spec.SHA1
	return spec.Spec{
		Name:      "segment",
		Title:     "Segment",
		Secret:    "the shared secret of the webhooks destination",
		OwnSecret: true,
		Verify:    []spec.Verify{v},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.messageId"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.userId", "json:$.anonymousId"},
			Tenant:   []spec.Value{"json:$.projectId"},
		},
		// sentAt and receivedAt are those of the way, and not of the call.
		Dedup: spec.Dedup{
			Same: []spec.Value{
				"json:$.type", "json:$.userId", "json:$.anonymousId", "json:$.event", "json:$.name", "json:$.properties", "json:$.traits",
				"json:$.groupId", "json:$.previousId", "json:$.timestamp",
			},
			Retry: spec.Stable,
		},
		// A status of the 400s is final: a wrong secret would lose events.
		Answer:  spec.Answer{Reject: 503},
		Limits:  spec.Limits{Retry: 4 * hour},
		Headers: []string{"X-Signature"},
		Example: spec.Template{ID: "ajs-next-1770091506000-1001a2b3", Type: "track", Object: "user-1001", Body: segmentExample},
		Sources: []spec.Source{
			stated("signature, the shared secret is the receiver's choice, fields, retries after statuses of the 500s for four hours", "segmentio/segment-docs: src/connections/destinations/catalog/webhooks/index.md"),
			reported("key is the same in every attempt", "Segment's spec of common fields: messageId is unique to each call, and what copies are recognised by"),
			notSourced("deadline"),
		},
		Traps: []string{
			"up to five addresses stand in one destination, and a call that reached one of them counts as sent to all: use one destination for each address",
			"only statuses of the 500s are sent again: a call that is answered with a status of the 400s is lost",
			"Segment's own sample verifies JSON that was parsed and written again: the bytes as received are what is signed",
			"userId as the key loses every call of a user but the first",
			"the header X-Signature is that of many senders, with other hashes",
		},
	}
}

const segmentExample = `{
  "version": 2,
  "type": "{{type}}",
  "messageId": "{{id}}",
  "userId": "{{object}}",
  "anonymousId": "507f191e-0000-4000-8000-00000000a001",
  "event": "Order Completed",
  "properties": {"order_id": "1001", "revenue": 39.95, "currency": "EUR"},
  "context": {"library": {"name": "analytics.js", "version": "2.11.1"}},
  "timestamp": "{{time}}",
  "sentAt": "{{time}}",
  "receivedAt": "{{time}}"
}`
