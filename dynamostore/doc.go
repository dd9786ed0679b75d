// Package dynamostore keeps claims in Amazon DynamoDB: in a transaction together with the effects, where these are in DynamoDB
// as well ([Store.Within], for hookonce.Webhook and hookonce.Idempotent), or in lease mode for everything else.
//
//	store := dynamostore.New(dynamodb.NewFromConfig(cfg), dynamostore.WithTable("hookonce"))
//	mux.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", provider.Stripe(secret),
//		func(ctx context.Context, b *dynamostore.Batch, ev *hookonce.Event) error {
//			return b.Update(booking(ev)) // one TransactWriteItems with the claim
//		}))
//
// It is held to its promises over stand-ins: a server of its own tests, and dynalite for what that has. It was not run against
// the service by those who wrote it; `make dynamodb` runs the same tests on an account of yours.
//
// # Global tables
//
// In a global table as it is by default (multi-Region eventual consistency) every promise of this package holds within one
// region, and none between two: each region decides a condition by its own copy, and of two writes the last one wins. Two regions
// that get the same event both do the work. Send all requests for a key to one region, or use a table without replicas.
// [Store.Inspect] finds such tables. With multi-Region strong consistency conditions hold everywhere, in lease mode: such
// tables refuse transactions, and expire nothing.
//
// # Answers that are lost
//
// Every write leaves a random name in its item. The client's own retries are off for writes: the store itself repeats what the
// service turned away unread (throttling, conflicts with a transaction), and where an answer was lost it looks for the write's
// name, strongly consistent. It finds it, and knows the answer; or it reports that nothing is known, and never that somebody
// else has the claim. In a transaction the name is the request's token, so a repetition is the same transaction to the service,
// and the store repeats it also where an answer was lost; see [Store.Within] for the rest.
//
// A claim that arrives after its call has failed is held by nobody, until its lease is over. One without a deadline has no such
// end: claim with a lease.
//
// # Clocks
//
// The time is the caller's, as in every store; leases are compared by it. Keep clocks within a second or so of each other.
// When a done claim may be deleted is computed by the caller's clock, too, and judged by DynamoDB's: a clock that is behind by
// more than the retention has its claims deleted soon.
package dynamostore
