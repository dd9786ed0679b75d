package provider

import "github.com/hookonce/hookonce/provider/spec"

// Pusher returns the provider for the webhooks of Pusher Channels. The secrets are those of the app's tokens. It panics if a
// secret is missing or empty.
//
// A request holds several events, none of which has an id: the key of each is its name, its channel, the request's time in
// milliseconds and a digest of the event, all of which the signature covers. The time is signed, and not checked against a
// tolerance: Pusher's own library has none.
func Pusher(secrets ...string) *spec.Provider {
	return must(spec.New(pusherSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func pusherSpec() spec.Spec {
	return spec.Spec{
		Name:   "pusher",
		Title:  "Pusher Channels",
		Secret: "the secret of the app's token",
		Verify: []spec.Verify{bodyMAC("X-Pusher-Signature", "", spec.Hex)},
		Split:  &spec.Split{Items: []spec.Value{"json:$.events[*]"}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"item:$.name", "item:$.channel", "json:$.time_ms", "hash:item:$"}},
			Type:     []spec.Value{"item:$.name"},
			Time:     []spec.Moment{at("json:$.time_ms", spec.Millis)},
			Resource: []spec.Value{"item:$.channel"},
		},
		Answer:  spec.Answer{Deadline: 4 * second},
		Limits:  spec.Limits{Retry: 5 * minute},
		Headers: []string{"X-Pusher-Key", "X-Pusher-*"},
		Example: spec.Template{
			ID:     "presence-room-1001",
			Type:   "channel_occupied",
			Header: map[string]string{"X-Pusher-Key": "fakekey0000000001001"},
			Body:   pusherExample,
		},
		Sources: []spec.Source{
			stated("signature, batches, time", "pusher/pusher-http-node: lib/webhook.js"),
			stated("retries, deadline, any 2xx accepts", "docs.bird.com/pusher, Channels webhook timeouts and retries"),
			reported("key", "inferred: an event has no id, and the time is that of the webhook"),
			notSourced("whether the time is the same in a retry"),
		},
		Traps: []string{
			"channel and name repeat: without the time the second occupation of a channel is lost",
			"where a retry has another time it passes as new: let the work be one that can be repeated",
			"X-Pusher-Key names the token whose secret signs, and is not signed itself",
			"one request holds many events",
		},
	}
}

const pusherExample = `{
  "time_ms": {{millis}},
  "events": [
    {"name": "{{type}}", "channel": "{{id}}"}
  ]
}`
