package provider

import "github.com/hookonce/hookonce/provider/spec"

// Asana returns the provider for Asana's webhooks. The secrets are the X-Hook-Secrets of the webhooks: Asana makes one
// up for each webhook and says it in its answer to the request that makes the webhook. It panics if a secret is missing
// or empty. The handshake of a new webhook is answered, whatever secret it comes with: nothing is kept of it.
//
// Events come in batches and have no id. The key is the resource, the action, the time and a hash of the event.
func Asana(secrets ...string) *spec.Provider {
	return must(spec.New(asanaSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func asanaSpec() spec.Spec {
	return spec.Spec{
		Name:   "asana",
		Title:  "Asana",
		Secret: "the X-Hook-Secret of the webhook, which Asana's API answers when the webhook is made",
		Verify: []spec.Verify{bodyMAC("X-Hook-Signature", "", spec.Hex)},
		Split:  &spec.Split{Items: []spec.Value{"json:$.events[*]"}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"item:$.resource.gid", "item:$.action", "item:$.created_at", "hash:item:$"}},
			Type:     []spec.Value{"item:$.resource.resource_type", "item:$.type"},
			Action:   []spec.Value{"item:$.action"},
			Time:     []spec.Moment{at("item:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{"item:$.resource.gid"},
		},
		Answer:  spec.Answer{Deadline: 10 * second},
		Limits:  spec.Limits{Retry: day},
		Headers: []string{"X-Hook-*"},
		Handshakes: []spec.Handshake{{
			Unsigned: true,
			When:     []spec.Match{{Value: "header:X-Hook-Secret"}},
			Echo:     "header:X-Hook-Secret",
			Header:   map[string]string{"X-Hook-Secret": "{{echo}}"},
		}},
		Example: spec.Template{ID: "1201000000001001", Type: "task.changed", Body: asanaExample},
		Sources: []spec.Source{
			stated("handshake, deadline, retries for 24 hours, fields of an event", "developers.asana.com/docs/webhooks-guide; Asana/python-asana: docs/WebhooksApi.md"),
			reported("signature is the HMAC-SHA256 of the body in hexadecimal, under the secret of the handshake", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("key", "inferred: an event has no id, and its time is in milliseconds"),
			notSourced("whether a retry carries the same events"),
		},
		Traps: []string{
			"the secret is said once, in the header of the handshake and in the API's answer to whoever makes the webhook: take it from the answer, put it into the configuration and reload; what comes before is refused and sent again for a day",
			"each webhook has a secret of its own: list those of all that call this endpoint, or give each a source",
			"anybody may shake hands with this endpoint: their events are signed with another secret, and are refused",
			"Asana promises to deliver at most once: poll for what must not be missed",
			"a body with no events is a heartbeat, and is acknowledged",
			"a webhook that fails for 24 hours is deleted by Asana",
		},
	}
}

const asanaExample = `{
  "events": [
    {
      "user": {"gid": "1200000000000001", "resource_type": "user"},
      "created_at": "{{time}}",
      "type": "{{event}}",
      "action": "{{action}}",
      "resource": {"gid": "{{id}}", "resource_type": "{{event}}", "resource_subtype": "default_task"},
      "parent": null,
      "change": {"field": "completed", "action": "changed"}
    }
  ]
}`
