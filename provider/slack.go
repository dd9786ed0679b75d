package provider

import "time"

// Slack returns the provider for Slack's Events API, slash commands and interactivity. The secrets
// are the signing secrets of the app. It panics if a secret is missing or empty.
//
// The key of an event is its event_id, which the signature covers. Slash commands and interactions
// have no id and pass through unkeyed. The URL verification is answered once its signature is
// verified. The signed time may be five minutes off in either direction.
func Slack(secrets ...string) *Provider {
	return must(New(slackSpec(), Settings{Secrets: secrets}))
}

func slackSpec() Spec {
	return Spec{
		Name:   "slack",
		Title:  "Slack",
		Secret: "the app's signing secret",
		Verify: []Verify{{
			Hash:      SHA256,
			Key:       KeyUTF8,
			Encoding:  Hex,
			Signature: Signature{In: "header:X-Slack-Signature", Prefix: "v0="},
			Time:      &Timestamp{In: "header:X-Slack-Request-Timestamp", Unit: Seconds, Past: 5 * time.Minute, Future: 5 * time.Minute},
			Sign:      []Value{"const:v0:", "ts", "const::", "body"},
		}},
		Form: "payload", // interactivity; slash commands are forms without it
		Event: Extract{
			Key: [][]Value{
				{"json:$.event_id"},
				{"json:$.type", "json:$.team_id", "json:$.minute_rate_limited"}, // app_rate_limited
			},
			Type:     []Value{"json:$.event.type", "json:$.type"},
			Action:   []Value{"json:$.event.subtype"},
			Time:     []Moment{{"json:$.event_time", Seconds}},
			Resource: []Value{"json:$.event.channel"},
			Tenant:   []Value{"json:$.team_id"},
		},
		Handshakes: []Handshake{{When: "json:$.type", Is: "url_verification", Echo: "json:$.challenge"}},
		Limits:     Limits{Retry: day}, // three retries in six minutes; hourly for a day where delayed events are on
		Example:    Template{Type: "app_mention", Body: slackExample},
		Sources: []Source{
			{"signature, tolerance", Stated, "slack-go/slack: security.go; Slack documentation, Verifying requests from Slack"},
			{"retries, rate limit event, handshake", Stated, "Slack documentation, Events API"},
			{"event_id is the same on retries", Reported, "recommended as the key; Slack does not say it in so many words"},
			{"interactions carry their JSON in the form field payload", Stated, "slack-go/slack: interactions"},
		},
		Traps: []string{
			"dropping whatever has X-Slack-Retry-Num loses the event when the first attempt never arrived",
			"slash commands, interactions and app_rate_limited have no event_id: an empty id as the key loses all but the first",
			"Slack retries after three seconds, while the first request may still be running",
		},
	}
}

const slackExample = `{
  "token": "example",
  "team_id": "T0EXAMPLE",
  "context_team_id": "T0EXAMPLE",
  "api_app_id": "A0EXAMPLE",
  "event": {
    "type": "{{type}}",
    "user": "U0EXAMPLE",
    "text": "<@U0HOOKBOT> is order 1001 paid?",
    "ts": "{{unix}}.000200",
    "channel": "C0EXAMPLE",
    "event_ts": "{{unix}}.000200"
  },
  "type": "event_callback",
  "event_id": "{{id}}",
  "event_time": {{unix}},
  "authorizations": [
    {"enterprise_id": null, "team_id": "T0EXAMPLE", "user_id": "U0HOOKBOT", "is_bot": true, "is_enterprise_install": false}
  ],
  "is_ext_shared_channel": false
}`
