package provider

import "time"

// Standard returns the provider for senders that follow the Standard Webhooks specification. Requests
// with Svix's header names are accepted as well. The secrets are the endpoint's, whsec_ followed by
// base64. It panics if a secret is missing, empty or not base64.
//
// The key is the webhook-id, which the signature covers and which stays the same in every retry. The
// signed time may be five minutes off in either direction.
func Standard(secrets ...string) *Provider {
	return must(New(standardSpec(), Settings{Secrets: secrets}))
}

// Svix returns the provider for senders that use Svix. It is [Standard] with Svix's names for the
// headers tried first, and Svix's retry schedule.
func Svix(secrets ...string) *Provider {
	return must(New(svixSpec(), Settings{Secrets: secrets}))
}

func standardSpec() Spec {
	s := svixFamily("webhook", "svix")
	s.Name, s.Title = "standard", "Standard Webhooks"
	s.Limits = Limits{Retry: 75 * time.Hour} // the specification's own example of a schedule
	s.Sources = append(s.Sources, Source{"retries", Stated, "standard-webhooks/standard-webhooks: spec/standard-webhooks.md"})
	return s
}

func svixSpec() Spec {
	s := svixFamily("svix", "webhook")
	s.Name, s.Title = "svix", "Svix"
	s.Limits = Limits{Retry: 28 * time.Hour} // 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h
	s.Sources = append(s.Sources, Source{"retries", Stated, "docs.svix.com/retries"})
	s.Traps = append(s.Traps, "a message can be sent again by hand for as long as Svix keeps it, which is not stated")
	return s
}

// svixFamily is what both have in common; the names are the beginnings of their headers, the usual
// one first.
func svixFamily(usual, other string) Spec {
	return Spec{
		Secret: "the endpoint's signing secret, whsec_ followed by base64",
		Verify: []Verify{svixVerify(usual), svixVerify(other)},
		Event: Extract{
			Key:  [][]Value{{"id"}},
			Type: []Value{"json:$.type"},
			Time: []Moment{{"json:$.timestamp", RFC3339}},
		},
		Example: Template{
			Type:   "invoice.paid",
			Header: map[string]string{usual + "-id": "{{id}}"},
			Body:   standardExample,
		},
		Sources: []Source{
			{"signature, tolerance, key", Stated, "standard-webhooks/standard-webhooks: spec/standard-webhooks.md"},
			{"same id on every attempt", Stated, "svix/svix-webhooks: server/svix-server/src/worker.rs"},
		},
		Traps: []string{
			"keeping ids for five minutes, as the specification suggests, lets through the retries that it schedules for days",
			"the time in the header is that of the attempt; the time of the event is in the body",
			"a message sent to two endpoints has the same id: use one source for each",
		},
	}
}

func svixVerify(name string) Verify {
	header := Value("header:" + name)
	return Verify{
		Hash:      SHA256,
		Key:       KeyWhsec,
		Encoding:  Base64,
		Signature: Signature{In: header + "-signature", Split: " ", Prefix: "v1,"},
		ID:        header + "-id",
		Time:      &Timestamp{In: header + "-timestamp", Unit: Seconds, Past: 5 * time.Minute, Future: 5 * time.Minute},
		Sign:      []Value{"id", "const:.", "ts", "const:.", "body"},
	}
}

const standardExample = `{
  "type": "{{type}}",
  "timestamp": "{{time}}",
  "data": {
    "id": "inv_1001",
    "amount": 4200,
    "currency": "EUR",
    "customer": {"id": "cus_1001", "email": "customer@example.com"},
    "lines": [
      {"sku": "HOOK-BRASS", "description": "Hook, brass", "quantity": 2, "unit_amount": 2100}
    ],
    "status": "paid"
  }
}`
