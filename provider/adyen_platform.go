package provider

import "github.com/hookonce/hookonce/provider/spec"

// AdyenPlatform returns the provider for the webhooks of Adyen's platforms, management and transfers.
// The secrets are the HMAC keys of the webhook, hexadecimal. It panics if a secret is missing or not
// hexadecimal.
//
// The key of a transfer is made of type, transfer, sequence number and content, all of which the
// signature covers. For other events no source states an id: they pass through unkeyed. No time is
// signed.
func AdyenPlatform(secrets ...string) *spec.Provider {
	return must(spec.New(adyenPlatformSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func adyenPlatformSpec() spec.Spec {
	verify := bodyMAC("HmacSignature", "", spec.Base64)
	verify.Key = spec.KeyHex
	return spec.Spec{
		Name:   "adyen-platform",
		Title:  "Adyen for Platforms",
		Secret: "the webhook's HMAC key, in hexadecimal",
		Verify: []spec.Verify{verify},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.type", "json:$.data.id", "json:$.data.sequenceNumber", "hash:json:$.data"}},
			Type:     []spec.Value{"json:$.type"},
			Resource: []spec.Value{"json:$.data.id"},
			Tenant:   []spec.Value{"json:$.data.balancePlatform"},
		},
		Order:   &spec.Order{By: "json:$.data.sequenceNumber", Scope: []spec.Value{"json:$.data.id"}},
		Answer:  spec.Answer{Status: 202, Deadline: 10 * second},
		Limits:  spec.Limits{Retry: 30 * day},
		Headers: []string{"Protocol", "Adyen-*"},
		Example: spec.Template{ID: "EVJN42272224222B5JB8BRC84N686ZEU", Type: "balancePlatform.transfer.updated", Body: adyenPlatformExample},
		Sources: []spec.Source{
			stated("signature", "Adyen/adyen-go-api-library: src/hmacvalidator"),
			stated("sequence numbers begin with 1 and increase with each webhook of a transfer", "Adyen/adyen-go-api-library: src/transferwebhook/model_transfer_data.go"),
			stated("retries, any 2xx accepts", "docs.adyen.com, Troubleshoot webhooks"),
			notSourced("key of other events than transfers"),
		},
		Traps: []string{
			"the id of the transfer alone as the key loses every later state of it",
			"events without a sequence number pass through unkeyed: no source states an id for them",
			"the events of a transfer are cumulative: each one repeats those before it",
		},
	}
}

const adyenPlatformExample = `{
  "type": "{{type}}",
  "environment": "test",
  "data": {
    "id": "{{id}}",
    "sequenceNumber": 3,
    "balancePlatform": "ExamplePlatform",
    "accountHolder": {"id": "AH0000000000000000000001", "description": "Example account holder"},
    "balanceAccount": {"id": "BA0000000000000000000001"},
    "amount": {"currency": "EUR", "value": 4200},
    "category": "bank",
    "direction": "outgoing",
    "reference": "payout-1001",
    "status": "booked",
    "events": [
      {"id": "EVENT00000000000000000001", "status": "received", "bookingDate": "{{time}}"},
      {"id": "EVENT00000000000000000002", "status": "authorised", "bookingDate": "{{time}}"},
      {"id": "EVENT00000000000000000003", "status": "booked", "bookingDate": "{{time}}"}
    ]
  }
}`
