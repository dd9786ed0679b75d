package provider

import "github.com/hookonce/hookonce/provider/spec"

// EasyPost returns the provider for EasyPost webhooks. The secrets are those of the webhook; EasyPost
// brings them into Unicode's form NFKD before it signs, and so does this provider. It panics if a secret
// is missing or empty.
//
// The key is the id of the event, which the signature covers. No time is signed.
func EasyPost(secrets ...string) *spec.Provider {
	return must(spec.New(easypostSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func easypostSpec() spec.Spec {
	v := bodyMAC("X-Hmac-Signature", "hmac-sha256-hex=", spec.Hex)
	v.Key = spec.KeyNFKD
	return spec.Spec{
		Name:   "easypost",
		Title:  "EasyPost",
		Secret: "the webhook's secret",
		Verify: []spec.Verify{v},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.id"}},
			Type:     []spec.Value{"json:$.description"},
			Time:     []spec.Moment{at("json:$.created_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.result.id"},
			Tenant:   []spec.Value{"json:$.user_id"},
		},
		// pending_urls, completed_urls, status and updated_at are about the attempts.
		Dedup: spec.Dedup{
			Same:  []spec.Value{"json:$.description", "json:$.mode", "json:$.created_at", "json:$.previous_attributes", "json:$.result"},
			Retry: spec.Stable,
		},
		Answer: spec.Answer{Deadline: 7 * second},
		// https://docs.easypost.com/guides/webhooks-guide
		Headers: []string{"X-Hmac-Signature-V2", "X-Timestamp", "X-Path", "X-Hmac-*", "X-EasyPost-*"},
		Example: spec.Template{ID: "evt_2d4a5b1c9f6e4f3a8b7c6d5e4f3a2b1c", Type: "tracker.updated", Object: "trk_example0001", Body: easypostExample},
		Sources: []spec.Source{
			stated("signature, key", "EasyPost/easypost-go: webhook.go; EasyPost/examples: official/fixtures"),
			stated("retries, changing fields", "docs.easypost.com/guides/webhooks-guide"),
			reported("deadline", "EasyPost documentation, quoted"),
			notSourced("how long it retries"),
		},
		Traps: []string{
			"pending_urls, completed_urls and status change between attempts: a hash of the body as the key lets retries through",
			"a secret with accents makes other signatures in its composed form: it has to be normalised first",
		},
	}
}

const easypostExample = `{
  "id": "{{id}}",
  "object": "Event",
  "mode": "test",
  "description": "{{type}}",
  "created_at": "{{time}}",
  "updated_at": "{{time}}",
  "user_id": "user_example",
  "status": "pending",
  "pending_urls": ["https://shop.example.com/webhooks/easypost"],
  "completed_urls": [],
  "previous_attributes": {"status": "in_transit"},
  "result": {
    "id": "{{object}}",
    "object": "Tracker",
    "mode": "test",
    "tracking_code": "EZ4000004000",
    "status": "delivered",
    "carrier": "UPS",
    "created_at": "{{time}}",
    "updated_at": "{{time}}",
    "shipment_id": "shp_example0001"
  }
}`
