package provider

import "github.com/hookonce/hookonce/provider/spec"

// RevenueCat returns the provider for RevenueCat's webhooks. The secrets are the values of the authorization header that
// is set in the dashboard, each the whole text of the header, with "Bearer " if that is part of it. It panics if a secret
// is missing or empty.
//
// The key is the event's id. Nothing is signed: the header says who sends, and not what.
func RevenueCat(secrets ...string) *spec.Provider {
	return must(spec.New(revenueCatSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func revenueCatSpec() spec.Spec {
	return spec.Spec{
		Name:      "revenuecat",
		Title:     "RevenueCat",
		Secret:    "the authorization header's value, the whole text that you enter in the dashboard",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:Authorization"}}},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.event.id"}},
			Type:     []spec.Value{"json:$.event.type"},
			Time:     []spec.Moment{at("json:$.event.event_timestamp_ms", spec.Millis)},
			Resource: []spec.Value{"json:$.event.app_user_id"},
			Tenant:   []spec.Value{"json:$.event.app_id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Answer:  spec.Answer{Deadline: 60 * second},
		Limits:  spec.Limits{Retry: 155 * minute}, // after 5, 10, 20, 40 and 80 minutes
		Headers: []string{"X-RevenueCat-*"},
		Example: spec.Template{ID: "12345678-1234-4234-8234-123456789012", Type: "RENEWAL", Object: "customer-1001", Body: revenueCatExample},
		Sources: []spec.Source{
			stated("authorization, retries, deadline, only 200 accepts", "RevenueCat/revenuecat-docs: docs_source/Integrations & Events/webhooks.md"),
			stated("key: the event's id recognises duplicates", "RevenueCat/revenuecat-docs: docs_source/Integrations & Events/webhooks.md"),
			stated("the secret is the receiver's choice", "revenuecat.com/docs/webhooks"),
			notSourced("the scheme of the newer header X-RevenueCat-Signature, which is not looked at"),
		},
		Traps: []string{
			"nothing is signed: ask RevenueCat for the subscriber before access is granted",
			"the authorization header is optional in the dashboard: without one every request is refused here",
			"the id of the transaction is shared by the events about it: as the key it loses a cancellation or a refund",
			"only the status 200 counts as success",
			"a webhook of the sandbox has the same form: look at event.environment",
		},
	}
}

const revenueCatExample = `{
  "api_version": "1.0",
  "event": {
    "id": "{{id}}",
    "type": "{{type}}",
    "app_id": "app_example1001",
    "app_user_id": "{{object}}",
    "original_app_user_id": "{{object}}",
    "aliases": ["{{object}}"],
    "event_timestamp_ms": {{millis}},
    "purchased_at_ms": {{millis}},
    "product_id": "example.monthly",
    "period_type": "NORMAL",
    "entitlement_ids": ["example"],
    "currency": "EUR",
    "price_in_purchased_currency": 4.2,
    "store": "APP_STORE",
    "environment": "SANDBOX",
    "transaction_id": "100000000001001",
    "original_transaction_id": "100000000001001"
  }
}`
