package hookonce

import (
	"context"
	"net/http"
)

// WebhookLease is [Webhook] for effects that share no transaction with the claim: calls to other systems, with
// claims in Redis, say. Guarantee: at least once with a stable key. Copies of done work do not run handle, and of
// several at once one does. But a process that dies between the effect and the record of it leaves the claim
// to its lease ([WithLease]), and then the next copy runs handle again; so does one that came to the end of a
// lease that was lost. Make what handle does outside repeatable by sending keys along: [Transport] derives
// them from the claim in its context.
//
// Everything is as with Webhook, except:
//
//   - the lease is extended at a third of its length while handle runs, until [WithTimeout] has passed. When it
//     is lost, the handler's context ends. Only what was recorded under the current token counts: a delivery
//     whose claim was taken over meanwhile is answered 503 (busy), and so are copies while another process has
//     the lease, at once;
//   - success is acknowledged when it is on record that the event is done. If that cannot be recorded for 5 s,
//     the answer is 503, and the next copy runs handle again after the lease;
//   - an error or a panic frees the claim at once, with a trace; but nothing is rolled back;
//   - there is no transaction in the handler's context, so [Enqueue], [Newer], [Transition] and [Once] have
//     nothing to work in. Effects that can wait belong in an outbox, where there is a database.
//
// The handler may be used concurrently. WebhookLease panics when Webhook would.
func WebhookLease(store Store, source string, p Provider, handle func(ctx context.Context, ev *Event) error, opts ...Option) http.Handler {
	if store == nil || p == nil || handle == nil {
		panic("hookonce: WebhookLease needs a store, a provider and a handler")
	}
	h := newWebhook(forWebhookLease, source, p, opts)
	h.attempt = func(ctx context.Context, req ClaimRequest, ev *Event, given error) (Claim, error) {
		return UnderLease(ctx, store, req, func(ctx context.Context, c Claim) error {
			if given != nil {
				return given
			}
			ev.Attempt = c.Token
			return handle(&workContext{Context: ctx, work: work{ref: c.Ref, event: ev}}, ev)
		})
	}
	return h
}
