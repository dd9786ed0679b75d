package provider

import "github.com/hookonce/hookonce/provider/spec"

// Standard returns the provider for senders that follow the Standard Webhooks specification. Requests
// with Svix's header names are accepted as well. The secrets are the endpoint's, whsec_ followed by
// base64. It panics if a secret is missing, empty or not base64.
//
// The key is the webhook-id, which the signature covers and which stays the same in every retry. The
// signed time may be five minutes off in either direction.
func Standard(secrets ...string) *spec.Provider {
	return must(spec.New(standardSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

// Svix returns the provider for senders that use Svix. It is [Standard] with Svix's names for the
// headers tried first, and Svix's retry schedule.
func Svix(secrets ...string) *spec.Provider {
	return must(spec.New(svixSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func standardSpec() spec.Spec {
	s := svixFamily("webhook", "svix")
	s.Name, s.Title = "standard", "Standard Webhooks"
	s.Limits = spec.Limits{Retry: 75 * hour} // the specification's own example of a schedule
	s.Sources = append(s.Sources, stated("retries", "standard-webhooks/standard-webhooks: spec/standard-webhooks.md"))
	return s
}

func svixSpec() spec.Spec {
	s := svixFamily("svix", "webhook")
	s.Name, s.Title = "svix", "Svix"
	s.Answer = spec.Answer{Deadline: svixDeadline}
	s.Limits = spec.Limits{Retry: svixRetry}
	s.Sources = append(s.Sources, stated("retries, deadline", "docs.svix.com/retries"))
	s.Traps = append(s.Traps, "a message can be sent again by hand for as long as Svix keeps it, which is not stated")
	return s
}

// svixRetry is how long Svix retries: after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h.
const svixRetry = 28 * hour

// svixDeadline is how long Svix waits for an answer.
const svixDeadline = 15 * second

// svixFamily is what those two, and the aliases, have in common; the names are the beginnings of their headers, the usual
// one first.
func svixFamily(usual, other string) spec.Spec {
	return spec.Spec{
		Secret: "the endpoint's signing secret, whsec_ followed by base64; or the public key, whpk_ followed by base64",
		Verify: []spec.Verify{svixVerify(usual), svixVerify(other), svixPublicVerify(usual), svixPublicVerify(other)},
		Event: spec.Extract{
			Key:  [][]spec.Value{{"id"}},
			Type: []spec.Value{"json:$.type"},
			Time: []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
		},
		Dedup: spec.Dedup{Retry: spec.Stable, Manual: spec.Stable},
		Example: spec.Template{
			ID:     "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W",
			Type:   "invoice.paid",
			Object: "inv_1001",
			Header: map[string]string{usual + "-id": "{{id}}"},
			Body:   standardExample,
		},
		Sources: []spec.Source{
			stated("signature, tolerance, key, a retry is signed anew", "standard-webhooks/standard-webhooks: spec/standard-webhooks.md"),
			stated("same id on every attempt", "svix/svix-webhooks: server/svix-server/src/worker.rs"),
			reported("same id when sent again by hand", "inferred: the worker takes the id from the message"),
		},
		Traps: []string{
			"keeping ids for five minutes, as the specification suggests, lets through the retries that it schedules for days",
			"the time in the header is that of the attempt; the time of the event is in the body",
			"a message sent to two endpoints has the same id: use one source for each",
		},
	}
}

func svixVerify(name string) spec.Verify {
	header := spec.Value("header:" + name)
	return spec.Verify{
		Hash:      spec.SHA256,
		Key:       spec.KeyWhsec,
		Encoding:  spec.Base64,
		Signature: spec.Signature{In: header + "-signature", Split: " ", Prefix: "v1,"},
		ID:        header + "-id",
		Time:      &spec.Timestamp{In: header + "-timestamp", Unit: spec.Seconds, Past: 5 * minute, Future: 5 * minute},
		Sign:      []spec.Value{"id", "const:.", "ts", "const:.", "body"},
	}
}

// svixPublicVerify is the asymmetric way of signing, for senders that hand out a public key (whpk_).
func svixPublicVerify(name string) spec.Verify {
	v := svixVerify(name)
	v.Kind, v.Key, v.Signature.Prefix = spec.Ed25519, spec.KeyWhpk, "v1a,"
	return v
}

const standardExample = `{
  "type": "{{type}}",
  "timestamp": "{{time}}",
  "data": {
    "id": "{{object}}",
    "amount": 4200,
    "currency": "EUR",
    "customer": {"id": "cus_1001", "email": "customer@example.com"},
    "lines": [
      {"sku": "HOOK-BRASS", "description": "Hook, brass", "quantity": 2, "unit_amount": 2100}
    ],
    "status": "paid"
  }
}`
