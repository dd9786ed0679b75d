package provider

import "github.com/hookonce/hookonce/provider/spec"

// Slack returns the provider for Slack's Events API, slash commands and interactivity. The secrets
// are the signing secrets of the app. It panics if a secret is missing or empty.
//
// The key of an event is its event_id, which the signature covers. Slash commands and interactions
// have no id and pass through unkeyed. The URL verification is answered once its signature is
// verified. The signed time may be five minutes off in either direction.
func Slack(secrets ...string) *spec.Provider {
	return must(spec.New(slackSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func slackSpec() spec.Spec {
	return spec.Spec{
		Name:   "slack",
		Title:  "Slack",
		Secret: "the app's signing secret",
		Verify: []spec.Verify{timed(headerMAC("X-Slack-Signature", "v0=", spec.Hex, "const:v0:", "ts", "const::", "body"), "header:X-Slack-Request-Timestamp", spec.Seconds, 5*minute)},
		Form:   "payload", // interactivity; slash commands are forms without it
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.event_id"},
				{"json:$.type", "json:$.team_id", "json:$.minute_rate_limited"}, // app_rate_limited
			},
			Type:     []spec.Value{"json:$.event.type", "json:$.type"},
			Action:   []spec.Value{"json:$.event.subtype"},
			Time:     []spec.Moment{at("json:$.event_time", spec.Seconds)},
			Resource: []spec.Value{"json:$.event.channel"},
			Tenant:   []spec.Value{"json:$.team_id"},
			Attempt:  []spec.Value{"header:X-Slack-Retry-Num"},
			Reason:   []spec.Value{"header:X-Slack-Retry-Reason"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		Handshakes: []spec.Handshake{{
			When: []spec.Match{{Value: "json:$.type", Is: "url_verification"}},
			Echo: "json:$.challenge",
		}},
		Answer:  spec.Answer{Deadline: 3 * second},
		Limits:  spec.Limits{Retry: day}, // three retries in six minutes; hourly for a day where delayed events are on
		Headers: []string{"X-Slack-*"},
		Example: spec.Template{ID: "Ev08MFMKH6", Type: "app_mention", Object: "C0EXAMPLE", Body: slackExample},
		Sources: []spec.Source{
			stated("signature, tolerance", "slack-go/slack: security.go; Slack documentation, Verifying requests from Slack"),
			stated("retries, their headers, deadline, rate limit event, handshake", "Slack documentation, Events API"),
			notSourced("whether a retry is signed anew, " + assumed + ": Slack says to refuse what is five minutes old, and commands and interactions, which it does not retry, have no key that would catch a replay"),
			reported("event_id is the same on retries", "recommended as the key; Slack does not say it in so many words"),
			stated("interactions carry their JSON in the form field payload", "slack-go/slack: interactions"),
		},
		Traps: []string{
			"dropping whatever has X-Slack-Retry-Num loses the event when the first attempt never arrived",
			"slash commands, interactions and app_rate_limited have no event_id: an empty id as the key loses all but the first",
			"when fewer than one in twenty deliveries of an hour succeed, Slack turns the subscription off, unless there were few",
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
    "channel": "{{object}}",
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
