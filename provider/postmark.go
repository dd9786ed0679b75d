package provider

import "github.com/hookonce/hookonce/provider/spec"

// Postmark returns the provider for Postmark's webhooks. Postmark signs nothing: the webhook's URL has a
// name and a password for HTTP basic authentication, and the secrets are those, as user:password. It
// panics if a secret is missing or not of that form.
//
// The key is made of RecordType, MessageID and the content. Nothing is signed.
func Postmark(secrets ...string) *spec.Provider {
	return must(spec.New(postmarkSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func postmarkSpec() spec.Spec {
	return spec.Spec{
		Name:      "postmark",
		Title:     "Postmark",
		Secret:    "the user:password that was put into the webhook's URL",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Basic}},
		Event: spec.Extract{
			// A message is opened and clicked many times: the content, with its time, tells them apart.
			Key: [][]spec.Value{
				{"json:$.RecordType", "json:$.MessageID", "hash:json:$"},
				{"const:inbound", "json:$.MessageID", "hash:json:$"},
			},
			Type: []spec.Value{"json:$.RecordType"},
			Time: []spec.Moment{
				at("json:$.DeliveredAt", spec.RFC3339), at("json:$.BouncedAt", spec.RFC3339),
				at("json:$.ReceivedAt", spec.RFC3339), at("json:$.ChangedAt", spec.RFC3339),
			},
			Resource: []spec.Value{"json:$.MessageID"},
		},
		Answer:  spec.Answer{Status: 200},
		Limits:  spec.Limits{Retry: 630 * minute}, // 10 retries of inbound messages
		Headers: []string{"X-PM-Retries-Remaining", "X-PM-Webhook-Trace-Id", "X-PM-Webhook-Event-Id", "X-PM-*", "X-Postmark-*"},
		Example: spec.Template{ID: "883953f4-6105-42a2-a16a-77a8eac79483", Type: "Delivery", Body: postmarkExample},
		Sources: []spec.Source{
			stated("authentication, answer, retries", "postmarkapp.com/support, inbound webhooks"),
			stated("fields", "postmarkapp.com/email-webhooks"),
			reported("key", "inferred: an event has no id; type, message and content tell one from another"),
		},
		Traps: []string{
			"MessageID alone as the key loses everything that happens to a message after the first event",
			"of inbound messages only the status 200 counts as success, and 403 ends the retries",
			"nothing is signed: whoever sees one request can send others",
			"inbound messages with attachments may be larger than the limit for bodies: raise max_body where they are expected",
		},
	}
}

const postmarkExample = `{
  "RecordType": "{{type}}",
  "ServerID": 23,
  "MessageStream": "outbound",
  "MessageID": "{{id}}",
  "Recipient": "customer@example.com",
  "Tag": "order-confirmation",
  "DeliveredAt": "{{time}}",
  "Details": "Example delivery details",
  "Metadata": {"order": "1001"}
}`
