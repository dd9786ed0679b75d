package provider

import "github.com/hookonce/hookonce/provider/spec"

// BigCommerce returns the provider for BigCommerce's HTTPS webhooks, which are signed as Standard Webhooks are. The
// secrets are the client secrets of the API account that made the webhook, as they are: they are not decoded. It panics if
// a secret is missing or empty.
//
// The key is the webhook-id, which the signature covers. The signed time may be five minutes off in either direction.
func BigCommerce(secrets ...string) *spec.Provider {
	return must(spec.New(bigCommerceSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func bigCommerceSpec() spec.Spec {
	verify := svixVerify("webhook")
	verify.Key = spec.KeyUTF8 // the sender's own example encodes the text before a library decodes it
	return spec.Spec{
		Name:   "bigcommerce",
		Title:  "BigCommerce",
		Secret: "the client secret of the API account that made the webhook",
		Verify: []spec.Verify{verify},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"id"}},
			Type:     []spec.Value{"json:$.scope"},
			Time:     []spec.Moment{at("json:$.created_at", spec.Seconds)},
			Resource: []spec.Value{"json:$.data.id"},
			Tenant:   []spec.Value{"json:$.producer"},
		},
		Dedup: spec.Dedup{Logical: []spec.Logical{
			// Copies of one event have one hash. It is made of little, so that two changes may share it.
			{Key: []spec.Value{"json:$.producer", "json:$.scope", "json:$.hash"}, Window: 2 * day},
		}},
		Limits:  spec.Limits{Retry: 2 * day},
		Headers: []string{"Webhook-*"},
		Example: spec.Template{
			Type:   "store/order/updated",
			Object: "1001",
			Header: map[string]string{"Webhook-Id": "{{id}}"},
			Body:   bigCommerceExample,
		},
		Sources: []spec.Source{
			stated("signature, retries for 48 hours, any 2xx accepts", "bigcommerce/docs: docs/integrations/webhooks/https-webhook-overview.mdx"),
			stated("a hash that copies share, which is that of the payload", "bigcommerce/docs: docs/integrations/webhooks/overview.mdx, events/index.mdx"),
			reported("key", "inferred: Standard Webhooks, whose libraries BigCommerce asks for, define the webhook-id"),
			reported("a retry is signed anew", "inferred: Standard Webhooks define the signed time as that of the attempt"),
			notSourced("whether the webhook-id is the same in a retry"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the payload names what changed and not how: fetch it",
			"the hash is that of a payload that names little: as the key it may lose the second of two changes",
			"the client secret is not decoded: a library of Standard Webhooks wants it encoded in base64 first",
			"below nine in ten successes within two minutes deliveries pause for three minutes, and after two days of failures the webhook is deactivated",
			"custom headers of the webhook can hold a token of your own; it is the signature that counts here",
		},
	}
}

const bigCommerceExample = `{
  "scope": "{{type}}",
  "store_id": "1001",
  "producer": "stores/example",
  "data": {"type": "order", "id": {{object}}},
  "hash": "3f9ea420af83450d7ef9f78b08c8af25b2213637",
  "created_at": {{unix}}
}`
