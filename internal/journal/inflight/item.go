package inflight

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Item is one delivery in flight. Whoever makes one sets Work and Event; it belongs to the [Set] from
// [Set.Add] on.
type Item struct {
	journal.Work
	Event *Event // that came in here; nil when the work was taken from the store

	capacity *capacity
	token    int64           // the current one: higher than the worker's after an adoption
	until    time.Time       // the end of the lease as last extended
	outcome  journal.Outcome // zero until the worker reported it
	retried  bool            // recording the outcome failed before, so it may be recorded
	doubted  bool            // recording it was in vain once, while an offer was out
	lost     bool            // somebody else has the delivery now
}

// Event counts down the deliveries of one fresh event, to know when all of it is done.
type Event struct {
	*journal.Event
	ID   int64
	Open int // deliveries that are not done; guarded by the mutex of the Set, as is what follows

	known int64 // as of when the first of them was recorded done
	began bool  // one of them was
}

// current names the delivery under the token by which the store knows it.
func (it *Item) current() journal.Held {
	return journal.Held{EventID: it.EventID, Destination: it.Destination, Token: it.token}
}

// hasOutcome reports whether the worker has reported.
func (it *Item) hasOutcome() bool { return it.outcome.State != "" }

// recorded is the outcome in the form in which the store gets it. A delivery that was in flight since its event
// was accepted is neither in an ordering group nor compared.
func (it *Item) recorded() journal.Outcome {
	o := it.outcome
	o.Token = it.token
	o.Group, o.Rank = "", journal.Outcome{}.Rank
	if it.Event != nil || it.Resource == "" {
		return o
	}
	o.Group = it.Group()
	if it.capacity.compares(it.Resource, !it.Rank.IsZero()) {
		o.Rank = it.Rank
	}
	return o
}

// maxResponses bounds the responses that are recorded in one transaction, in bytes. The last may go beyond it.
const maxResponses = 4 << 20

// reports are the items with an outcome to record, in order. The caller holds the mutex of the [Set].
type reports struct {
	wake  chan struct{} // receives when some wait
	items []*Item
}

func (r *reports) add(items ...*Item) {
	r.items = append(r.items, items...)
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// next appends to items those that go into one transaction, at most limit.
func (r *reports) next(items []*Item, limit int) []*Item {
	n, bytes := 0, int64(0)
	for n < min(limit, len(r.items)) && bytes < maxResponses {
		bytes += r.items[n].outcome.Response.Size()
		n++
	}
	items = append(items, r.items[:n]...)
	left := copy(r.items, r.items[n:])
	clear(r.items[left:])
	r.items = r.items[:left]
	return items
}
