package provider

import "github.com/hookonce/hookonce/provider/spec"

// Pusher returns the provider for the webhooks of Pusher Channels. The secrets are those of the app's keys. It panics if a
// secret is missing or empty.
//
// A request holds several events of one moment, none of which has an id: the request is one event, whose key is made of its
// time, in milliseconds, and its content, which the signature covers. No time is signed by itself.
func Pusher(secrets ...string) *spec.Provider {
	return must(spec.New(pusherSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func pusherSpec() spec.Spec {
	return spec.Spec{
		Name:   "pusher",
		Title:  "Pusher Channels",
		Secret: "the secret of the app's key",
		Verify: []spec.Verify{bodyMAC("X-Pusher-Signature", "", spec.Hex)},
		Event: spec.Extract{
			// The same event may be in one request twice, and both are genuine: taken apart, they would be one.
			Key:      [][]spec.Value{{"json:$.time_ms", "hash:json:$.events"}},
			Type:     []spec.Value{"json:$.events[0].name"},
			Time:     []spec.Moment{at("json:$.time_ms", spec.Millis)},
			Resource: []spec.Value{"json:$.events[0].channel"},
			Tenant:   []spec.Value{"header:X-Pusher-Key"},
		},
		Answer:  spec.Answer{Deadline: 4 * second},
		Limits:  spec.Limits{Retry: 5 * minute},
		Headers: []string{"X-Pusher-Key", "X-Pusher-*"},
		Example: spec.Template{
			ID:     "user-1001",
			Type:   "member_added",
			Object: "presence-shop",
			Header: map[string]string{"X-Pusher-Key": "278d525bdf162c739803"},
			Body:   pusherExample,
		},
		Sources: []spec.Source{
			stated("signature, headers, fields", "pusher/pusher-http-node: lib/webhook.js, lib/token.js"),
			reported("key", "inferred: a request has the moment at which it was made, and its events"),
			stated("retries, deadline, any 2xx accepts", "docs.bird.com/pusher, Channels webhook timeouts and retries"),
			notSourced("whether the time is the same in a retry"),
		},
		Traps: []string{
			"where a retry has another time it passes as new: let the work be one that can be repeated",
			"channel as the key loses every event of a channel but the first",
			"a request holds a list of events: handle all of them",
			"two client events with the same content in one request are both genuine",
			"the secret is that of the key which X-Pusher-Key names: while keys are rotated, give both",
		},
	}
}

const pusherExample = `{
  "time_ms": {{millis}},
  "events": [{"name": "{{type}}", "channel": "{{object}}", "user_id": "{{id}}"}]
}`
