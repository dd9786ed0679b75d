package journaltest

import (
	"context"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

func (c *suite) recordDuplicates(seen ...journal.DuplicateReceipt) {
	c.Helper()
	c.ok("RecordDuplicates", c.store.RecordDuplicates(c.Context(), seen))
}

// receipt is one copy of an event, now.
func (c *suite) receipt(id int64, kind journal.ReceiptKind) journal.DuplicateReceipt {
	return journal.DuplicateReceipt{EventID: id, Kind: kind, First: c.now, Last: c.now, Copies: 1}
}

var receiptCases = []testCase{
	{"copies are recorded with their times, oldest first", func(c *suite) {
		e := c.entry("evt_1")
		c.fresh(e, c.entry("evt_2"))
		first := c.receipt(e.ID, journal.ReceiptDuplicate)
		first.Last, first.Copies = c.now.Add(time.Second), 7
		c.recordDuplicates(first)
		c.pass(time.Minute)
		second, third := c.receipt(e.ID, journal.ReceiptConflict), c.receipt(e.ID, journal.ReceiptDuplicate)
		c.recordDuplicates(second, third)
		c.same("receipts", c.history(e.ID).Duplicates, []journal.DuplicateReceipt{first, second, third})
	}},
	{"copies of what is not there are left out", func(c *suite) {
		e := c.stored("evt_1")
		c.recordDuplicates(c.receipt(e.ID-1, journal.ReceiptDuplicate), c.receipt(e.ID, journal.ReceiptDuplicate))
		c.same("receipts", c.history(e.ID).Duplicates, []journal.DuplicateReceipt{c.receipt(e.ID, journal.ReceiptDuplicate)})
		c.recordDuplicates()
	}},
	{"the last of the rows of a kind sums up what comes later", func(c *suite) {
		e := c.stored("evt_1")
		c.recordDuplicates(c.receipt(e.ID, journal.ReceiptRedriven))
		for range journal.MaxReceipts + 5 {
			c.recordDuplicates(c.receipt(e.ID, journal.ReceiptDuplicate))
			c.pass(time.Second)
		}
		seen := c.history(e.ID).Duplicates
		if len(seen) != 1+journal.MaxReceipts {
			c.Fatalf("%d duplicate receipts are kept", len(seen))
		}
		c.same("last", seen[len(seen)-1], journal.DuplicateReceipt{EventID: e.ID, Kind: journal.ReceiptDuplicate, Copies: 6,
			First: start.Add((journal.MaxReceipts - 1) * time.Second), Last: start.Add((journal.MaxReceipts + 4) * time.Second)})
	}},
	{"they stay as long as the key and go with it", func(c *suite) {
		e := c.done("evt_1")
		c.recordDuplicates(c.receipt(e.ID, journal.ReceiptDuplicate))
		c.pass(time.Hour)
		c.purge(journal.KindBodies, 1)
		if n := len(c.history(e.ID).Duplicates); n != 1 {
			c.Fatalf("%d duplicate receipts after the body went", n)
		}
		c.purge(journal.KindIDs, 1)
		c.stored("evt_1", func(n *journal.Record) { n.ID = e.ID })
		if n := len(c.history(e.ID).Duplicates); n != 0 {
			c.Errorf("%d duplicate receipts of an event that went", n)
		}
	}},
	{"none is lost when several processes record at once", func(c *suite) {
		a, b := c.entry("a"), c.entry("b")
		c.fresh(a, b)
		const writers, rounds = 4, 15
		stores := c.stores(writers)
		var all sync.WaitGroup
		for i := range writers {
			all.Go(func() {
				for range rounds {
					batch := []journal.DuplicateReceipt{c.receipt(a.ID, journal.ReceiptDuplicate), c.receipt(b.ID, journal.ReceiptDuplicate)}
					if err := stores[i%len(stores)].RecordDuplicates(context.WithoutCancel(c.Context()), batch); err != nil {
						c.Error(err)
					}
				}
			})
		}
		all.Wait()
		for _, id := range []int64{a.ID, b.ID} {
			seen, copies := c.history(id).Duplicates, 0
			for _, s := range seen {
				copies += s.Copies
			}
			if copies != writers*rounds || len(seen) > journal.MaxReceipts {
				c.Errorf("%d copies in %d rows, want %d in at most %d", copies, len(seen), writers*rounds, journal.MaxReceipts)
			}
		}
	}},
}
