package hookonce

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/hookonce/hookonce/internal/callgroup"
)

// once lets one of several equal calls in this process make its attempt, and gives the others what came of
// it. They wait in memory, as long as copies may. A call that says something else under the same key asks
// the store itself, after that.
func (h *idempotency) once(ctx context.Context, c *call) result {
	if c.Key == "" {
		return h.attempt(ctx, c)
	}
	waiting, cancel := context.WithTimeout(ctx, h.wait)
	defer cancel()
	for {
		first, mine := h.calls.Join(c.Ref, h.wait+h.timeout+recordTimeout)
		if mine {
			return h.lead(ctx, waiting, c, first)
		}
		res, ok := first.Wait(waiting)
		switch {
		case !ok:
			return result{verdict: Busy, problem: inProgress()}
		case res.verdict == Busy && waiting.Err() == nil: // it waited for another process, until its time was over
		case bytes.Equal(res.digest, c.digest):
			return res.shared()
		}
	}
}

// lead attempts the call. While another process has it, it asks again.
func (h *idempotency) lead(ctx, waiting context.Context, c *call, first *callgroup.Call[result]) (res result) {
	res = result{digest: c.digest, problem: unavailable("the request was not carried out", defaultRetry), err: errors.New("the handler ended its goroutine")}
	defer func() { h.calls.Finish(c.Ref, first, res) }()
	for {
		res = h.attempt(ctx, c)
		res.digest = c.digest
		if res.verdict != Busy || !h.pause(waiting, c.Ref) {
			return res
		}
	}
}

// How long it takes until a store is asked again about a claim that another process holds: where it does not
// tell when the work is over, and at the most where it does.
const (
	pollInterval  = 100 * time.Millisecond
	awaitInterval = time.Second
)

// pause returns true when it is time to ask for the claim again, and false when ctx has ended.
func (h *idempotency) pause(ctx context.Context, ref Ref) bool {
	awaiting, cancel := context.WithTimeout(ctx, awaitInterval)
	defer cancel()
	if awaiter, ok := h.responses.(Awaiter); ok && awaiter.Await(awaiting, ref) == nil {
		return ctx.Err() == nil
	}
	poll := time.NewTimer(pollInterval)
	defer poll.Stop()
	select {
	case <-poll.C:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
