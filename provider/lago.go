package provider

import "github.com/hookonce/hookonce/provider/spec"

// Lago returns the provider for Lago's webhooks with the signature hmac, which is chosen with the endpoint; those with jwt
// are refused. The secrets are HMAC keys of the organization. It panics if a secret is missing or empty.
//
// The key is the X-Lago-Unique-Key header, which the signature does not cover. No time is signed.
func Lago(secrets ...string) *spec.Provider {
	return must(spec.New(lagoSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func lagoSpec() spec.Spec {
	return spec.Spec{
		Name:   "lago",
		Title:  "Lago",
		Secret: "the HMAC key of the organization",
		Verify: []spec.Verify{bodyMAC("X-Lago-Signature", "", spec.Base64)},
		Event: spec.Extract{
			Key:    [][]spec.Value{{"header:X-Lago-Unique-Key"}},
			Type:   []spec.Value{"json:$.webhook_type"},
			Tenant: []spec.Value{"json:$.organization_id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable, Manual: spec.Stable},
		Answer:  spec.Answer{Deadline: 30 * second},
		Limits:  spec.Limits{Retry: 2 * minute}, // three attempts, 3 and 20 seconds apart, each of up to 30 seconds
		Headers: []string{"X-Lago-Signature-Algorithm", "X-Lago-*"},
		Example: spec.Template{
			ID:   "a1b2c3d4-0000-4000-8000-000000001001",
			Type: "invoice.created",
			Header: map[string]string{
				"X-Lago-Signature-Algorithm": "hmac",
				"X-Lago-Unique-Key":          "{{id}}",
			},
			Body: lagoExample,
		},
		Sources: []spec.Source{
			stated("signature, key", "getlago/lago-api: app/models/webhook.rb"),
			stated("retries, deadline, the key is the same in them", "getlago/lago-api: app/services/webhooks/send_http_service.rb"),
			stated("the key is the same when sent again by hand", "getlago/lago-api: app/services/webhooks/retry_service.rb"),
			stated("key recognises copies", "getlago.com/docs/api-reference/webhooks/format---signature"),
		},
		Traps: []string{
			"jwt is the signature that an endpoint has unless hmac is chosen: those webhooks are refused",
			"two endpoints get two keys for one event: give each a source of its own",
			"whoever hosts Lago can set other numbers of attempts and timeouts: keep keys for as long as yours",
			"the key is not signed: whoever replays a captured request can change it",
		},
	}
}

const lagoExample = `{
  "webhook_type": "{{type}}",
  "object_type": "invoice",
  "organization_id": "b1b2c3d4-0000-4000-8000-000000001001",
  "invoice": {
    "lago_id": "c1b2c3d4-0000-4000-8000-000000001001",
    "number": "EXA-1001-001",
    "issuing_date": "2026-02-03",
    "status": "finalized",
    "payment_status": "pending",
    "currency": "EUR",
    "total_amount_cents": 4200
  }
}`
