// Package hookonce makes webhooks safe to receive.
//
// Webhook providers deliver at least once: after a lost acknowledgement they send the same event
// again, sometimes several times at once. hookonce claims every event atomically and carries that
// claim into the effect, so that the effect happens exactly once even though the delivery does not.
//
// Most programs need two names from this package: [Webhook], which turns a store, a provider and a
// handler into an [http.Handler], and [Event], which the handler receives.
//
//	store := pgstore.New(pool)
//	mux.Handle("POST /webhooks/stripe", hookonce.Webhook(store, "stripe", provider.Stripe(secret),
//		func(ctx context.Context, tx pgx.Tx, ev *hookonce.Event) error {
//			return markPaid(ctx, tx, ev) // commits with the claim, or not at all
//		}))
//
// The second argument, the source, names the endpoint and is the scope of its keys: two endpoints with one
// source take each other's events for copies, and lose them, so each has its own, and keeps it.
//
// Clients of your own click twice and send again, too: [Idempotent] does the same for requests with the
// header Idempotency-Key, and gives every copy the first one's answer. [IdempotentLease] puts that in front
// of any handler whose effect is outside the database, as [WebhookLease] is [Webhook] for such effects. Inside a handler, [Enqueue] commits what is to be done
// afterwards, [Newer], [Transition] and [Once] guard against what is old or done, and [Transport] gives calls
// to other systems keys of their own.
//
// Work that does not arrive over HTTP (queues, cron, gRPC) uses the stores directly: [TxStore.Within]
// where the effect lives in the same database as the claim (guarantee: atomic), and [UnderLease]
// where it does not (guarantee: at least once with a stable key).
//
// This package depends on the standard library only. Stores live in their own packages: pgstore
// (pgx), sqlstore (database/sql), redisstore (leases only), memstore (tests). Providers live in package provider.
package hookonce
