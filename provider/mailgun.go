package provider

import "github.com/hookonce/hookonce/provider/spec"

// Mailgun returns the provider for Mailgun's webhooks in JSON. The secrets are the HTTP webhook signing
// keys of the account. It panics if a secret is missing or empty.
//
// The signature covers a time and a random token and nothing else: whoever has captured one request can
// make others. The key is the event's id and time, not signed. The signed time is not checked against a
// tolerance unless [spec.Settings.Tolerance] says so.
func Mailgun(secrets ...string) *spec.Provider {
	return must(spec.New(mailgunSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func mailgunSpec() spec.Spec {
	return spec.Spec{
		Name:   "mailgun",
		Title:  "Mailgun",
		Secret: "the account's HTTP webhook signing key",
		Verify: []spec.Verify{{
			Hash:      spec.SHA256,
			Key:       spec.KeyUTF8,
			Encoding:  spec.Hex,
			Signature: spec.Signature{In: "json:$.signature.signature"},
			Time:      &spec.Timestamp{In: "json:$.signature.timestamp", Unit: spec.Seconds},
			Sign:      []spec.Value{"ts", "json:$.signature.token"},
			Covers:    spec.CoversNonce,
		}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event-data.id", "json:$.event-data.timestamp"}},
			Type:     []spec.Value{"json:$.event-data.event"},
			Time:     []spec.Moment{at("json:$.event-data.timestamp", spec.Seconds)},
			Resource: []spec.Value{"json:$.event-data.message.headers.message-id"},
		},
		Dedup:   spec.Dedup{Same: []spec.Value{"json:$.event-data"}},
		Limits:  spec.Limits{Retry: 8 * hour}, // after 5, 10 and 15 minutes, 1, 2 and 4 hours
		Headers: []string{"X-Mailgun-*"},
		Example: spec.Template{ID: "CPgfbmQMTCKtHW6uIWtuVe", Type: "opened", Object: "20260203040506.1.EXAMPLE@mail.example.com", Body: mailgunExample},
		Sources: []spec.Source{
			stated("signature", "mailgun/mailgun-go: webhooks.go"),
			stated("retries, only 200 accepts, 406 stops", "documentation.mailgun.com, Webhooks"),
			reported("an id is unique within a day only", "Mailgun documentation, Events, quoted; anymail/django-anymail: anymail/webhooks/mailgun.py"),
			notSourced("whether token and time of the signature are the same in a retry"),
		},
		Traps: []string{
			"the body is not signed: a captured signature fits any other body, so do not act on it without asking Mailgun",
			"an id is unique within a day only: alone as the key it can lose an event",
			"only the status 200 counts as success; any other is sent again, and 406 ends the retries",
			"notifications of delivered mail are not sent again",
			"the older form mode has neither this signature in JSON nor an id; it is rejected",
		},
	}
}

const mailgunExample = `{
  "signature": {
    "token": "00000000000000000000000000000000000000000000example",
    "timestamp": "{{unix}}",
    "signature": ""
  },
  "event-data": {
    "id": "{{id}}",
    "timestamp": {{unix}}.908181,
    "event": "{{type}}",
    "log-level": "info",
    "recipient": "customer@example.com",
    "recipient-domain": "example.com",
    "ip": "192.0.2.10",
    "tags": ["order-confirmation"],
    "user-variables": {"order": "1001"},
    "message": {"headers": {"message-id": "{{object}}"}},
    "campaigns": []
  }
}`
