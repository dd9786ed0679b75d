package provider

import (
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// Coinbase returns the provider for the webhooks of Coinbase's Developer Platform and of Coinbase Business, which sign in
// X-Hook0-Signature; those of Coinbase Commerce are [CoinbaseCommerce]'s. The secrets are those that the subscriptions
// were created with. It panics if a secret is missing or empty.
//
// The key is the eventId, which the signature covers, or else the X-Event-Id header. The signed time may be five minutes
// off in either direction.
func Coinbase(secrets ...string) *spec.Provider {
	return must(spec.New(coinbaseSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func coinbaseSpec() spec.Spec {
	return spec.Spec{
		Name:   "coinbase",
		Title:  "Coinbase Developer Platform",
		Secret: "the secret in the answer that created the webhook subscription",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.Hook0()}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.eventId"}, {"header:X-Event-Id"}},
			Type:     []spec.Value{"json:$.eventType", "header:X-Event-Type"},
			Time:     []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.data.transferId", "json:$.data.id"},
		},
		Dedup: spec.Dedup{Retry: spec.Stable},
		Order: &spec.Order{By: "json:$.data.updatedAt", Unit: spec.RFC3339, Advisory: true},
		// https://docs.cdp.coinbase.com/webhooks/verify-signatures
		Headers: []string{"X-Hook0-*", "X-Event-Id", "X-Event-Type"},
		Example: spec.Template{
			ID:     "123e4567-e89b-42d3-a456-426614174000",
			Type:   "payments.transfers.completed",
			Object: "transfer_af2937b0-0000-4000-8000-000000000001",
			Header: map[string]string{"X-Event-Id": "{{id}}", "X-Event-Type": "{{type}}"},
			Body:   coinbaseExample,
		},
		Sources: []spec.Source{
			stated("signature, tolerance, secret", "docs.cdp.coinbase.com/webhooks/verify-signatures"),
			stated("the same scheme in its sender's software", "hook0-client, of npm: dist/signature.js"),
			stated("eventId names the event, is for deduplication, and copies come", "coinbase/cdp-sdk: typescript/src/openapi-client/generated/coinbaseDeveloperPlatformAPIs.schemas.ts"),
			stated("fields of transfers", "docs.cdp.coinbase.com/webhooks/transfers/example-payloads"),
			stated("subscriptions are disabled after failures, answer", "docs.cdp.coinbase.com/webhooks/transfers/overview"),
			reported("X-Event-Id where a body has no eventId", "inferred: Hook0 names its event there, on every attempt"),
			notSourced("how long it retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"Coinbase Commerce, which was switched off, signed in X-CC-Webhook-Signature, by another scheme",
			"v0 covers the time and the body, v1 the headers in h as well, the type of the content among them: a proxy must leave those as they are",
			"events of other products than payments may have no eventId: X-Event-Id is their key then, which only v1 covers",
			"a subscription is switched off after failures for a while: see that isEnabled stays true",
		},
	}
}

const coinbaseExample = `{
  "eventId": "{{id}}",
  "eventType": "{{type}}",
  "timestamp": "{{time}}",
  "data": {
    "transferId": "{{object}}",
    "status": "completed",
    "source": {"accountId": "account_af2937b0-0000-4000-8000-000000000002", "asset": "usd"},
    "target": {"address": "0x0000000000000000000000000000000000001001", "network": "base", "asset": "usdc"},
    "sourceAmount": "103.50",
    "sourceAsset": "usd",
    "targetAmount": "100.00",
    "targetAsset": "usdc",
    "fees": [{"type": "network", "amount": "0.19", "asset": "usdc"}],
    "createdAt": "{{time}}",
    "updatedAt": "{{time}}"
  }
}`
