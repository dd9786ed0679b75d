package provider

import "github.com/hookonce/hookonce/provider/spec"

// Gumroad returns the provider for Gumroad's pings and resource subscriptions. Gumroad signs nothing: put a token of your
// own into the URL, as in https://shop.example/gumroad?token=..., and give it here. It panics if a token is missing or
// empty.
//
// The key is made of the resource's name and the id of the sale or subscription. Gumroad sends under it again what changed
// since: equal content is a copy, other content passes on. Nothing is signed. Of a refund it says neither which it is nor how
// much, only whether all is refunded now: of several partial refunds in a row those that leave something are one and the same
// ping, and pass for copies of the first. Ask Gumroad for the refunds of the sale.
func Gumroad(tokens ...string) *spec.Provider {
	return must(spec.New(gumroadSpec(), spec.Settings{Secrets: spec.Secrets(tokens...)}))
}

func gumroadSpec() spec.Spec {
	return spec.Spec{
		Name:      "gumroad",
		Title:     "Gumroad",
		Secret:    "a token of your own, which you add to the URL as ?token=...",
		OwnSecret: true,
		Verify:    []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "query:token"}}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"const:sale", "form:resource_name", "form:sale_id"},
				{"const:subscription", "form:resource_name", "form:subscription_id"},
				{"const:ping", "form:sale_id"},
			},
			Type:     []spec.Value{"form:resource_name"},
			Time:     []spec.Moment{at("form:sale_timestamp", spec.RFC3339)},
			Resource: []spec.Value{"form:sale_id", "form:subscription_id"},
			Tenant:   []spec.Value{"form:seller_id"},
			Attempt:  []spec.Value{"form:retry_count"},
		},
		Dedup: spec.Dedup{
			OnRepeat: spec.KeepLatest,
			// retry_count is added to the form of a retry.
			Same: []spec.Value{
				"form:resource_name", "form:sale_id", "form:subscription_id", "form:product_id", "form:email", "form:price", "form:quantity",
				"form:refunded", "form:disputed", "form:dispute_won", "form:charge_occurrence_count", "form:cancelled_at", "form:ended_at",
				"form:restarted_at", "form:effective_as_of", "form:type",
				"form:old_plan[tier][id]", "form:old_plan[recurrence]", "form:old_plan[price_cents]", "form:old_plan[quantity]",
				"form:new_plan[tier][id]", "form:new_plan[recurrence]", "form:new_plan[price_cents]", "form:new_plan[quantity]",
			},
			Retry: spec.Stable,
		},
		// A status of the 400s is final: a wrong secret would lose events.
		Answer:  spec.Answer{Reject: 503, Deadline: 5 * second},
		Limits:  spec.Limits{Retry: 14 * minute}, // after 1, 3 and 10 minutes
		Headers: []string{"X-Gumroad-*"},
		Example: spec.Template{
			ID:   "FO8TXN-dvaYbBbahG97Y-Q==",
			Type: "sale",
			Form: "seller_id=example1001%3D%3D&product_id=example1002%3D%3D&product_name=Hook&permalink=hook&product_permalink=https%3A%2F%2Fexample.gumroad.com%2Fl%2Fhook&" +
				"email=customer%40example.com&price=4200&gumroad_fee=420&currency=eur&quantity=1&order_number=1001&sale_id={{id}}&sale_timestamp={{time}}&" +
				"refunded=false&resource_name={{type}}&disputed=false&dispute_won=false",
		},
		Sources: []spec.Source{
			stated("nothing is signed, retries after 500, 502, 503, 504 and 499 only, deadline, retry_count", "antiwork/gumroad: app/sidekiq/post_to_individual_ping_endpoint_worker.rb"),
			stated("fields", "antiwork/gumroad: app/modules/purchase/ping_notification.rb, app/modules/subscription/ping_notification.rb; a changed plan: Subscription#send_updated_notifification_webhook"),
			stated("a refund's ping has no id and no amount, and refunded is true only when all is refunded", "antiwork/gumroad: app/modules/purchase/ping_notification.rb, app/modules/purchase/refundable.rb"),
			reported("key", "inferred: a resource has one event of a name, and what changes since is in the fields"),
			reported("the secret is the receiver's choice", "inferred: the token is a part of the URL that is registered"),
		},
		Traps: []string{
			"nothing is signed: whoever knows the URL can send any sale, so ask Gumroad for it before anything is handed out",
			"a connection that fails or an answer after five seconds is never tried again, and neither is a 4xx: what is missed is lost",
			"a second partial refund that leaves something cannot be told from a copy of the first: it has the same fields, the price of the sale among them and no amount of its own; ask Gumroad for the refunds of the sale, now and then as well",
			"a retry has one more field, retry_count: a hash of the body as the key lets retries through",
			"resource subscriptions can be made to send JSON, of which nothing is looked up here: leave them at the form",
		},
	}
}
