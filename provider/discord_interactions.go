package provider

import "github.com/hookonce/hookonce/provider/spec"

// DiscordInteractions returns the provider for Discord's interactions over HTTP: commands and
// components. In place of a secret it takes the public keys of the application, in hexadecimal. It
// panics if one is missing or of another form. The PING is answered once its signature is verified.
//
// The key is the interaction's id, which the signature covers. A time is signed, but not checked against
// a tolerance unless [spec.Settings.Tolerance] says so: Discord states none. The answer says that a
// message follows; the program sends it through the interaction's token.
func DiscordInteractions(publicKeys ...string) *spec.Provider {
	return must(spec.New(discordInteractionsSpec(), spec.Settings{Secrets: spec.Secrets(publicKeys...), Handshakes: true}))
}

func discordInteractionsSpec() spec.Spec {
	return spec.Spec{
		Name:   "discord-interactions",
		Title:  "Discord interactions",
		Secret: "the application's public key, in hexadecimal",
		Verify: []spec.Verify{discordVerify()},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.type"},
			Resource: []spec.Value{"json:$.data.name", "json:$.data.custom_id"},
			Tenant:   []spec.Value{"json:$.application_id"},
		},
		Answer: spec.Answer{ContentType: "application/json", Body: `{"type":5}`, Deadline: 3 * second},
		Handshakes: []spec.Handshake{{
			When:        []spec.Match{{Value: "json:$.type", Is: "1"}},
			ContentType: "application/json",
			Body:        `{"type":1}`,
		}},
		Headers: []string{"X-Signature-*", "X-Discord-*"},
		Example: spec.Template{ID: "1233154170211536896", Type: "2", Body: discordInteractionExample},
		Sources: []spec.Source{
			stated("signature, PING, deadline, answers, fields", "discord/discord-api-docs: docs/interactions/receiving-and-responding.mdx, docs/interactions/overview.mdx"),
			reported("the signed time is in unix seconds", "examples in libraries for Discord; the documentation only says timestamp"),
			notSourced("tolerance"),
			notSourced("retries"),
		},
		Traps: []string{
			"the answer is what the user sees: the one given here says that a message follows, which does not suit autocompletion",
			"Discord sends wrong signatures on purpose, all the time, and removes an endpoint that does not answer them with 401: they are no attack",
		},
	}
}

const discordInteractionExample = `{
  "id": "{{id}}",
  "application_id": "1000000000000000001",
  "type": 2,
  "data": {
    "id": "1000000000000000005",
    "name": "order",
    "type": 1,
    "options": [{"name": "number", "type": 4, "value": 1001}]
  },
  "guild_id": "1000000000000000006",
  "channel_id": "1000000000000000007",
  "member": {
    "user": {"id": "1000000000000000004", "username": "example"},
    "roles": [],
    "permissions": "0"
  },
  "token": "example",
  "version": 1,
  "locale": "en-US"
}`
