// Package hookonce makes webhooks safe to receive.
//
// Webhook senders deliver at least once: after a lost acknowledgement they send the same event again,
// sometimes several times at once. This package claims each event atomically, and ties the claim to the effect:
// the effect happens once, however often the event comes.
//
// # Quick start
//
// A program has a store, which is its own database, a provider, which knows the sender, and a handler, which has
// the effect:
//
//	store := pgstore.New(pool)
//	mux.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", provider.Stripe(secret),
//		func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
//			return markPaid(ctx, tx, ev) // commits with the claim, or not at all
//		}))
//
// The second argument is the source. It names the endpoint, and is the scope of its keys: two endpoints with one
// source take each other's events for copies, and lose them. So each endpoint has a source of its own, and keeps it.
//
// The tables of a store come from package schema, or from the command "hookonce migrate".
//
// # Which door
//
// Work comes in through one of six doors. On the left the effect is in the same database as the claim, and on the
// right it is elsewhere: a call to another system, or a claim in Redis.
//
//	                                  effect in the database    effect elsewhere
//	webhooks of a sender              Webhook                   WebhookLease
//	requests with Idempotency-Key     Idempotent                IdempotentLease
//	queues, cron, gRPC                TxStore.Within            UnderLease
//
// [Idempotent] is for clients of your own, which click twice and send again. It gives every copy the answer to the
// first request. [IdempotentLease] is middleware, and puts that in front of any [net/http.Handler].
//
// # Guarantees
//
// The doors on the left are atomic: what the handler writes through its transaction commits with the claim, or
// not at all. Nothing is acknowledged before that.
//
// The doors on the right run the effect at least once, with a stable key. A lease keeps others from the work while it
// goes on. But a process that dies between the effect and the record of it leaves the claim to the end of its lease, and
// then the next copy does the work again. [Transport] gives the calls of a handler keys that stay the same over all
// attempts, so that a system which heeds them has the effect once.
//
// An event without a key cannot be recognised when it comes again. It is handled each time, and reported as
// unkeyed.
//
// # Inside a handler
//
// The context of a handler carries its claim and its store:
//
//   - [Enqueue] commits what is to be done after the transaction, such as a mail. Package relay does it.
//   - [Newer] and [Transition] guard against events that are late or out of order.
//   - [Once] does a piece of work once, whichever event asks for it.
//   - [Transport] and [EffectKey] give calls to other systems keys of their own.
//
// # Errors
//
// An error of a handler rolls its transaction back and leaves a failed claim with the error's text. The sender is
// answered 503, and its next copy runs the handler again. [Permanent] marks an error that trying again cannot mend: the
// sender is told to stop. [RetryAfter] says when to come again. [Forget] leaves no trace of a first attempt.
//
// Errors of this package and of stores are told apart with [errors.Is]: see [ErrBusy] and those beside it. An error of a
// store that wraps none of them means that nothing is known about the claim. Do not acknowledge anything then.
//
// # Options
//
// Each constructor takes options of its own type, so that an option in the wrong place does not compile. An
// [Option] fits all four of them, an [EventOption] the two for events, a [KeyOption] the two for requests with a key, and a
// [LeaseOption] the two with a lease. A value that makes no sense panics when the handler is built.
//
// # Stores and providers
//
// This package imports no third-party package. Stores are packages of their own: pgstore (pgx), sqlstore
// (database/sql: PostgreSQL, MariaDB, MySQL and SQLite), redisstore (leases only) and memstore (tests). [Cached] puts a
// cache in front of a store. Providers are in package provider. Package hookoncetest sends a handler what senders send
// on a bad day.
package hookonce
