package provider

import "github.com/hookonce/hookonce/provider/spec"

// Twitch returns the provider for Twitch's EventSub. The secrets are those that subscriptions were made
// with. It panics if a secret is missing or empty. The verification of the callback is answered once
// its signature is verified.
//
// The key is the Twitch-Eventsub-Message-Id header, which the signature covers and which stays the same
// when a message is sent again. The signed time may be ten minutes off in either direction.
func Twitch(secrets ...string) *spec.Provider {
	return must(spec.New(twitchSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func twitchSpec() spec.Spec {
	verify := timed(headerMAC("Twitch-Eventsub-Message-Signature", "sha256=", spec.Hex, "id", "ts", "body"), "header:Twitch-Eventsub-Message-Timestamp", spec.RFC3339, 10*minute)
	verify.ID = "header:Twitch-Eventsub-Message-Id"
	return spec.Spec{
		Name:      "twitch",
		Title:     "Twitch EventSub",
		Secret:    "the secret that the subscription was made with",
		OwnSecret: true,
		Verify:    []spec.Verify{verify},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"id"}},
			Subscription: []spec.Value{"json:$.subscription.id"},
			Type:         []spec.Value{"json:$.subscription.type"},
			Time:         []spec.Moment{at("header:Twitch-Eventsub-Message-Timestamp", spec.RFC3339)},
			Resource:     []spec.Value{"json:$.event.broadcaster_user_id"},
			Attempt:      []spec.Value{"header:Twitch-Eventsub-Message-Retry"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		Handshakes: []spec.Handshake{{
			When: []spec.Match{{Value: "header:Twitch-Eventsub-Message-Type", Is: "webhook_callback_verification"}},
			Echo: "json:$.challenge",
		}},
		// https://dev.twitch.tv/docs/eventsub/handling-webhook-events/#list-of-request-headers
		Headers: []string{"Twitch-Eventsub-Subscription-Type", "Twitch-Eventsub-Subscription-Version", "Twitch-Eventsub-*"},
		Example: spec.Template{
			ID:     "e76c6bd4-55c9-4987-8304-da1588d8988b",
			Type:   "stream.online",
			Object: "1001",
			Header: map[string]string{
				"Twitch-Eventsub-Message-Id":        "{{id}}",
				"Twitch-Eventsub-Message-Retry":     "0",
				"Twitch-Eventsub-Message-Type":      "notification",
				"Twitch-Eventsub-Subscription-Type": "{{type}}",
			},
			Body: twitchExample,
		},
		Sources: []spec.Source{
			stated("signature", "twitchdev/twitch-cli: internal/events/trigger"),
			stated("types of messages, challenge, copies have the same id", "dev.twitch.tv/docs/eventsub/handling-webhook-events; dev.twitch.tv/docs/eventsub"),
			reported("tolerance", "Twitch documentation, quoted"),
			stated("the secret is the receiver's choice", "dev.twitch.tv/docs/eventsub/handling-webhook-events"),
			notSourced("retries"),
			notSourced("whether a retry is signed anew, " + assumed + ": Twitch says to refuse what is ten minutes old, and not for how long it retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"a revocation of the subscription arrives as an event of the subscription's type, without a member event; the header Twitch-Eventsub-Message-Type tells, and subscription.status why",
			"the header with the type of the message is not signed",
			"the id of the subscription as the key loses every event after the first",
			"after too many late answers the subscription is revoked",
		},
	}
}

const twitchExample = `{
  "subscription": {
    "id": "00000000-0000-4000-8000-000000001001",
    "type": "{{type}}",
    "version": "1",
    "status": "enabled",
    "cost": 0,
    "condition": {"broadcaster_user_id": "{{object}}"},
    "transport": {"method": "webhook", "callback": "https://shop.example/in"},
    "created_at": "{{time}}"
  },
  "event": {
    "id": "9001",
    "broadcaster_user_id": "{{object}}",
    "broadcaster_user_login": "example",
    "broadcaster_user_name": "Example",
    "type": "live",
    "started_at": "{{time}}"
  }
}`
