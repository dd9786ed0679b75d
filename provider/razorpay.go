package provider

import "github.com/hookonce/hookonce/provider/spec"

// Razorpay returns the provider for Razorpay webhooks. The secrets are those of the webhook; keep the
// old one for a day after a change, because retries stay signed with it. It panics if a secret is
// missing or empty.
//
// The key is the X-Razorpay-Event-Id header, which the signature does not cover. No time is signed.
func Razorpay(secrets ...string) *spec.Provider {
	return must(spec.New(razorpaySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func razorpaySpec() spec.Spec {
	return spec.Spec{
		Name:      "razorpay",
		Title:     "Razorpay",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Razorpay-Signature", "", spec.Hex)},
		Event: spec.Extract{
			Key:  [][]spec.Value{{"header:X-Razorpay-Event-Id"}},
			Type: []spec.Value{"json:$.event"},
			Time: []spec.Moment{at("json:$.created_at", spec.Seconds)},
			// A payload holds what the event is about and what that belongs to: the former comes first.
			Resource: []spec.Value{
				"json:$.payload.refund.entity.id",
				"json:$.payload.dispute.entity.id",
				"json:$.payload.invoice.entity.id",
				"json:$.payload.subscription.entity.id",
				"json:$.payload.order.entity.id",
				"json:$.payload.payment.entity.id",
			},
			Tenant: []spec.Value{"json:$.account_id"},
		},
		Dedup:   spec.Dedup{Retry: spec.Stable},
		Answer:  spec.Answer{Deadline: 5 * second},
		Limits:  spec.Limits{Retry: day, Manual: 7 * day},
		Headers: []string{"X-Razorpay-*"},
		Example: spec.Template{
			ID:     "NmR3hC4iQpOkW1",
			Type:   "payment.captured",
			Object: "pay_Example0000001",
			Header: map[string]string{"X-Razorpay-Event-Id": "{{id}}"},
			Body:   razorpayExample,
		},
		Sources: []spec.Source{
			stated("signature, key, deadline, retries, no order", "razorpay/markdown-docs: webhooks"),
			reported("key is the same in retries", "inferred: Razorpay offers it for recognising duplicates"),
			stated("the secret is the receiver's choice", "razorpay.com/docs/webhooks/integrations"),
			stated("a person can have events of the last 7 days sent again, also some that were acknowledged", "razorpay.com/docs/webhooks/replay-events"),
			notSourced("whether the key is the same when a person has it sent again"),
		},
		Traps: []string{
			"the body has no id of the event; the ids in it are those of payments and orders, which have many events",
			"retries stay signed with the secret that was valid at first: with the new secret only, they are all refused after a change",
			"after a day of failures the webhook is disabled",
			"events arrive in any order",
			"events of more than 7 days ago are sent again by Razorpay's support, when it is asked to: ids must be remembered for as long as that goes back",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const razorpayExample = `{
  "entity": "event",
  "account_id": "acc_Example0000001",
  "event": "{{type}}",
  "contains": ["payment"],
  "payload": {
    "payment": {
      "entity": {
        "id": "{{object}}",
        "entity": "payment",
        "amount": 4200,
        "currency": "INR",
        "status": "captured",
        "order_id": "order_Example000001",
        "method": "card",
        "captured": true,
        "description": "Order 1001",
        "email": "customer@example.com",
        "contact": "+910000000000",
        "fee": 84,
        "tax": 13,
        "created_at": {{unix}}
      }
    }
  },
  "created_at": {{unix}}
}`
