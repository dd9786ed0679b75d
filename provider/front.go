package provider

import "github.com/hookonce/hookonce/provider/spec"

// Front returns the provider for Front's application webhooks; its rule webhooks are signed in another way and are refused.
// The secrets are the signing keys of the app. It panics if a secret is missing or empty. The request that validates the
// endpoint is answered.
//
// The key is made of the type, and the id and time of the event in the payload, all of which the signature covers. A time is signed, but not checked against a
// tolerance unless [spec.Settings.Tolerance] says so: Front states none.
func Front(secrets ...string) *spec.Provider {
	return must(spec.New(frontSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func frontSpec() spec.Spec {
	return spec.Spec{
		Name:   "front",
		Title:  "Front",
		Secret: "the application's signing key",
		Verify: []spec.Verify{timed(headerMAC("X-Front-Signature", "", spec.Base64, "ts", "const::", "body"), "header:X-Front-Request-Timestamp", spec.Millis, 0)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.type", "json:$.payload.id", "json:$.payload.emitted_at", "json:$.authorization.id?"}},
			Type:     []spec.Value{"json:$.type"},
			Time:     []spec.Moment{at("json:$.payload.emitted_at", spec.Seconds)},
			Resource: []spec.Value{"json:$.payload.conversation.id"},
			Tenant:   []spec.Value{"json:$.authorization.id"},
		},
		Handshakes: []spec.Handshake{{
			When:        []spec.Match{{Value: "json:$.type", Is: "sync"}},
			Echo:        "header:X-Front-Challenge",
			ContentType: "application/json",
			Body:        `{"challenge":"{{echo}}"}`,
		}},
		Headers: []string{"X-Front-*"},
		Example: spec.Template{ID: "evt_55c8c149", Type: "inbound_received", Object: "cnv_55c8c149", Body: frontExample},
		Sources: []spec.Source{
			stated("signature, unit of the time, validation of the endpoint", "dev.frontapp.com/docs/application-webhooks"),
			stated("rule webhooks are signed with SHA-1", "dev.frontapp.com/docs/rule-webhooks"),
			reported("answer to the challenge", "skillrecordings/support: front-webhook; hookdeck/webhook-skills: frontapp-webhooks"),
			reported("key, fields", "inferred: the payload is the event, under whose id the API has it; type and time keep apart what might share one"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the conversation's id as the key loses everything that happens in it after the first event",
			"payloads are previews: fetch what they name",
			"rule webhooks have the same header and another signature: they are refused",
		},
	}
}

const frontExample = `{
  "type": "{{type}}",
  "authorization": {"id": "cmp_example"},
  "payload": {
    "id": "{{id}}",
    "type": "inbound",
    "emitted_at": {{unix}}.123,
    "conversation": {"id": "{{object}}", "subject": "Order 1001", "status": "unassigned"},
    "source": {"_meta": {"type": "inboxes"}, "data": []},
    "target": {"_meta": {"type": "message"}, "data": {"id": "msg_55c8c149", "type": "email", "is_inbound": true}}
  }
}`
