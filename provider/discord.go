package provider

import "github.com/hookonce/hookonce/provider/spec"

// Discord returns the provider for Discord's webhook events. In place of a secret it takes the public
// keys of the application, in hexadecimal. It panics if one is missing or of another form. The PING is
// answered once its signature is verified.
//
// Events have no id: the key is the application, the event's type and time, and a digest of its data,
// all of which the signature covers. A time is signed, but not checked against a tolerance unless
// [spec.Settings.Tolerance] says so: Discord states none.
func Discord(publicKeys ...string) *spec.Provider {
	return must(spec.New(discordSpec(), spec.Settings{Secrets: spec.Secrets(publicKeys...), Handshakes: true}))
}

func discordSpec() spec.Spec {
	return spec.Spec{
		Name:   "discord",
		Title:  "Discord webhook events",
		Secret: "the application's public key, in hexadecimal",
		Verify: []spec.Verify{discordVerify()},
		Event: spec.Extract{
			Key:    [][]spec.Value{{"json:$.application_id", "json:$.event.type", "json:$.event.timestamp", "hash:json:$.event.data?"}},
			Type:   []spec.Value{"json:$.event.type"},
			Time:   []spec.Moment{at("json:$.event.timestamp", spec.RFC3339)},
			Tenant: []spec.Value{"json:$.application_id"},
		},
		Answer: spec.Answer{Status: 204, Deadline: 3 * second},
		Handshakes: []spec.Handshake{{
			When:        []spec.Match{{Value: "json:$.type", Is: "0"}},
			Status:      204,
			ContentType: "application/json", // which Discord asks for, although nothing follows
		}},
		Limits:  spec.Limits{Retry: 10 * minute},
		Headers: []string{"X-Signature-*", "X-Discord-*"},
		Example: spec.Template{ID: "1233154170211536896", Type: "ENTITLEMENT_CREATE", Body: discordExample},
		Sources: []spec.Source{
			stated("signature, PING, answer, deadline, retries, fields, no order", "discord/discord-api-docs: docs/events/webhook-events.mdx"),
			reported("the signed time is in unix seconds", "examples in libraries for Discord; the documentation only says timestamp"),
			reported("key", "inferred: the envelope has no id"),
			notSourced("tolerance"),
		},
		Traps: []string{
			"Discord sends wrong signatures on purpose, all the time, and removes an endpoint that does not answer them with 401: they are no attack",
			"there is no id in the envelope: the type and time alone lose one of two events of the same moment",
			"after too many failures no more events are sent",
		},
	}
}

// discordVerify is how Discord signs events and interactions.
func discordVerify() spec.Verify {
	return spec.Verify{
		Kind:      spec.Ed25519,
		Key:       spec.KeyHex,
		Encoding:  spec.Hex,
		Signature: spec.Signature{In: "header:X-Signature-Ed25519"},
		Time:      &spec.Timestamp{In: "header:X-Signature-Timestamp", Unit: spec.Seconds},
		Sign:      []spec.Value{"ts", "body"},
	}
}

const discordExample = `{
  "version": 1,
  "application_id": "1000000000000000001",
  "type": 1,
  "event": {
    "type": "{{type}}",
    "timestamp": "{{time}}",
    "data": {
      "id": "{{id}}",
      "sku_id": "1000000000000000003",
      "application_id": "1000000000000000001",
      "user_id": "1000000000000000004",
      "type": 8,
      "deleted": false,
      "consumed": false
    }
  }
}`
