package provider

import "github.com/hookonce/hookonce/provider/spec"

// Zoom returns the provider for Zoom's webhooks. The secrets are the secret tokens of the app. It
// panics if a secret is missing or empty. The validation of the endpoint is answered once its signature
// is verified.
//
// Events have no id: the key is the event's name, its time in milliseconds and a digest of its payload,
// all of which the signature covers. Zoom states no tolerance for the time that it signs, so none is
// enforced.
func Zoom(secrets ...string) *spec.Provider {
	return must(spec.New(zoomSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func zoomSpec() spec.Spec {
	return spec.Spec{
		Name:   "zoom",
		Title:  "Zoom",
		Secret: "the app's secret token",
		Verify: []spec.Verify{timed(headerMAC("X-Zm-Signature", "v0=", spec.Hex, "const:v0:", "ts", "const::", "body"), "header:X-Zm-Request-Timestamp", spec.Seconds, 0)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event", "json:$.event_ts", "hash:json:$.payload"}},
			Type:     []spec.Value{"json:$.event"},
			Time:     []spec.Moment{at("json:$.event_ts", spec.Millis)},
			Resource: []spec.Value{"json:$.payload.object.uuid", "json:$.payload.object.id"},
			Tenant:   []spec.Value{"json:$.payload.account_id"},
		},
		Answer: spec.Answer{Deadline: 3 * second},
		Handshakes: []spec.Handshake{{
			When:        []spec.Match{{Value: "json:$.event", Is: "endpoint.url_validation"}},
			Echo:        "json:$.payload.plainToken",
			Code:        &spec.ChallengeCode{Kind: spec.HMAC, Encoding: spec.Hex},
			ContentType: "application/json",
			Body:        `{"plainToken":"{{echo}}","encryptedToken":"{{code}}"}`,
		}},
		Limits: spec.Limits{Retry: 85 * minute}, // after 5, 20 and 60 minutes
		// zoom/webhook-sample: README.md
		Headers: []string{"X-Zm-Trackingid", "ClientId", "X-Zm-*"},
		Example: spec.Template{ID: "1234567890", Type: "meeting.ended", Object: "ZXhhbXBsZSBtZWV0aW5nMDE=", Body: zoomExample, Compact: true},
		Sources: []spec.Source{
			stated("signature, validation of the endpoint", "zoom/webhook-sample: index.js"),
			stated("retries, deadline", "developers.zoom.us/blog/webhook-delays"),
			reported("key", "Zoom's guide for assistants (anthropics/knowledge-work-plugins: partner-built/zoom-plugin) recommends time and payload"),
			notSourced("whether event_ts is the same in a retry"),
			notSourced("tolerance"),
		},
		Traps: []string{
			"there is no id: the meeting's id as the key loses every later event of the meeting",
			"the official sample verifies JSON that it has read and written again; the raw body is what is signed",
			"two subscriptions of an app may report the same event: use one source for each",
		},
	}
}

const zoomExample = `{
  "event": "{{type}}",
  "payload": {
    "account_id": "exampleAccount01",
    "object": {
      "id": "{{id}}",
      "uuid": "{{object}}",
      "host_id": "exampleHost01",
      "topic": "Order 1001",
      "type": 2,
      "start_time": "{{time}}",
      "timezone": "Europe/Berlin",
      "duration": 30,
      "end_time": "{{time}}"
    }
  },
  "event_ts": {{millis}}
}`
