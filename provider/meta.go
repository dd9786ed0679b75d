package provider

import "github.com/hookonce/hookonce/provider/spec"

// Meta returns the provider for the webhooks of Facebook pages, Messenger and Instagram. The token is
// the verify token that was chosen for the subscription; with it the verification of the endpoint is
// answered, and without it (empty) it is not. The secrets are the app secrets. It panics if a secret is
// missing or empty.
//
// The key of a message is its mid and content, which the signature covers. Other changes have no id
// that a source states, and pass through unkeyed. No time is signed.
func Meta(token string, secrets ...string) *spec.Provider {
	return must(spec.New(metaSpec(), metaSettings(token, secrets)))
}

// metaSettings enables the handshake for whoever has a token.
func metaSettings(token string, secrets []string) spec.Settings {
	return spec.Settings{Secrets: spec.Secrets(secrets...), Token: token, Handshakes: token != ""}
}

func metaSpec() spec.Spec {
	return spec.Spec{
		Name:   "meta",
		Title:  "Meta (pages, Messenger, Instagram)",
		Secret: "the app secret",
		Verify: []spec.Verify{bodyMAC("X-Hub-Signature-256", "sha256=", spec.Hex)},
		Split:  &spec.Split{Items: []spec.Value{"json:$.entry[*].changes[*]", "json:$.entry[*].messaging[*]"}},
		Event: spec.Extract{
			// One message can be the subject of several events; the content tells them apart.
			Key:      [][]spec.Value{{"item:$.message.mid", "hash:item:$"}},
			Type:     []spec.Value{"json:$.object"},
			Action:   []spec.Value{"item:$.field"},
			Time:     []spec.Moment{at("item:$.timestamp", spec.Millis)},
			Resource: []spec.Value{"item:$.message.mid", "item:$.value.id"},
			Tenant:   []spec.Value{"parent:$.id"},
		},
		Handshakes: []spec.Handshake{metaHandshake()},
		Limits:     spec.Limits{Retry: 36 * hour},
		// https://developers.facebook.com/docs/graph-api/webhooks/getting-started
		Headers: []string{"X-Hub-Signature", "X-Facebook-*", "X-FB-*", "Facebook-*"},
		Example: spec.Template{ID: "m_AG5Hz2Uq7tuwNEhXfYYKj8mJEMQPpz5jdCK48PnKAjSdjf", Type: "page", Body: metaExample},
		Sources: []spec.Source{
			stated("signature, batches of up to 1000, handshake, retries", "Meta documentation, Webhooks, Getting started"),
			reported("a message is known by its mid", "Messenger documentation, quoted"),
			reported("the content is part of the key", "inferred: a message has several events"),
			notSourced("ids of changes that are not messages"),
			notSourced("whether an entry's time is in seconds or milliseconds"),
		},
		Traps: []string{
			"the id of a message alone as the key loses what happens to it later",
			"one request holds up to 1000 changes of several pages, and a retry may hold others beside them",
			"changes that are not messages pass through unkeyed: no source states an id for them",
			"Messenger signs the body with its characters escaped: pass it on byte for byte",
			"after an hour of failures Messenger unsubscribes the endpoint",
		},
	}
}

// metaHandshake answers the verification of the endpoint for whoever knows the token.
func metaHandshake() spec.Handshake {
	return spec.Handshake{
		Method: "GET",
		When: []spec.Match{
			{Value: "query:hub.mode", Is: "subscribe"},
			{Value: "query:hub.verify_token", Token: true},
		},
		Echo: "query:hub.challenge",
	}
}

const metaExample = `{
  "object": "{{type}}",
  "entry": [
    {
      "id": "100000000001001",
      "time": {{millis}},
      "messaging": [
        {
          "sender": {"id": "200000000001001"},
          "recipient": {"id": "100000000001001"},
          "timestamp": {{millis}},
          "message": {
            "mid": "{{id}}",
            "text": "Is order 1001 paid?"
          }
        }
      ]
    }
  ]
}`
