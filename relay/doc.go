// Package relay carries out the effects of an outbox: what a transaction stored with [hookonce.Enqueue], to
// be done after its commit.
//
//	r := relay.New(store, map[string]relay.Handler{
//		"mail.receipt": func(ctx context.Context, e hookonce.QueuedEffect) error {
//			return mailer.Send(ctx, e.Payload, e.IdempotencyKey())
//		},
//		"crm.update": relay.POST(nil, "https://crm.example/hooks"),
//	})
//	err := r.Run(ctx) // until ctx ends; or the tables are missing, or newer than the program
//
// Guarantee: at least once with a stable key. Every effect is tried until its handler returns nil, its
// tries are used up, or the handler gives it up with [hookonce.Permanent]. It is tried again when the
// handler failed, and when nobody knows how an attempt ended, because its process died or lost its lease.
// An effect that ends its process does not take others along for ever: effects during which a process died are
// begun one at a time, and one during which processes die again and again is given up; see [WithDeaths].
// The key is the same each time: send it along, so that the other side can tell. Any number of relays in any
// number of processes may work on one outbox.
package relay
