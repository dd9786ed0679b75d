package engine

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

const (
	maxReceipts    = 4096        // what waits to be recorded, in pairs of event and kind
	receiptsBatch  = 500         // what is recorded in one transaction
	receiptsRecord = time.Second // how often: a storm of copies costs the store one small transaction in this time
)

// receipts are the receipts of copies that wait to be recorded. Copies of one event and kind that come meanwhile
// are one receipt; beyond the bound they are counted and forgotten, because a copy must never wait for the
// store or fill the memory.
type receipts struct {
	*core

	recording chan struct{} // has an element while a batch is recorded

	mu      sync.Mutex
	waiting map[receiptKey]*journal.DuplicateReceipt
}

type receiptKey struct {
	event int64
	kind  journal.ReceiptKind
}

func newReceipts(c *core) *receipts {
	return &receipts{core: c, recording: make(chan struct{}, 1), waiting: map[receiptKey]*journal.DuplicateReceipt{}}
}

// note takes the copies among the events of a request that was answered. What comes from a list is no copy.
func (r *receipts) note(events []*journal.Event, results []journal.Result) {
	for i := range results {
		if kind := results[i].Receipt(); kind != "" && !events[i].Listed {
			at := events[i].ReceivedAt
			r.add(journal.DuplicateReceipt{EventID: results[i].ID, Kind: kind, First: at, Last: at, Copies: 1})
		}
	}
}

func (r *receipts) add(receipt journal.DuplicateReceipt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := receiptKey{receipt.EventID, receipt.Kind}
	switch before := r.waiting[key]; {
	case before != nil:
		before.Add(receipt)
	case len(r.waiting) < maxReceipts:
		first := receipt // or each would be on the heap
		r.waiting[key] = &first
	default:
		r.metrics.dropped.Add(float64(receipt.Copies))
	}
}

// take removes and returns at most one batch.
func (r *receipts) take() []journal.DuplicateReceipt {
	r.mu.Lock()
	defer r.mu.Unlock()
	var batch []journal.DuplicateReceipt
	for key, receipt := range r.waiting {
		if len(batch) == receiptsBatch {
			break
		}
		batch = append(batch, *receipt)
		delete(r.waiting, key)
	}
	slices.SortFunc(batch, func(a, b journal.DuplicateReceipt) int {
		return cmp.Or(cmp.Compare(a.EventID, b.EventID), cmp.Compare(a.Kind, b.Kind))
	})
	return batch
}

// run writes receipts to the store until Close begins.
func (r *receipts) run() {
	for r.pauseUntilStop(receiptsRecord) {
		r.record()
	}
}

// recordRest writes what is left when Close is nearly through.
func (r *receipts) recordRest() {
	for r.record() {
	}
}

// record records one batch, and reports whether there may be more. What cannot be recorded
// waits for the next time. Whoever records the rest waits for what is being recorded: the end of Close would cancel it.
func (r *receipts) record() (more bool) {
	r.recording <- struct{}{}
	defer func() { <-r.recording }()
	batch := r.take()
	if len(batch) == 0 {
		return false
	}
	err := r.call(opReceipts, r.opt.Timeout, len(batch), func(ctx context.Context) error {
		return r.store.RecordDuplicates(ctx, batch)
	})
	if err == nil {
		return len(batch) == receiptsBatch
	}
	for _, receipt := range batch {
		r.add(receipt)
	}
	return false
}
