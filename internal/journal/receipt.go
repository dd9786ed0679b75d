package journal

import (
	"time"
)

// ReceiptKind says what a later copy of an event turned out to be.
type ReceiptKind string

// The kinds of duplicate receipts.
const (
	ReceiptDuplicate ReceiptKind = "duplicate"
	ReceiptConflict  ReceiptKind = "conflict" // it had other content under the same key; the first stands, and begins again if it had failed
	ReceiptRedriven  ReceiptKind = "redriven" // it made failed or dead deliveries begin again
)

// DuplicateReceipt says that copies of an event came.
type DuplicateReceipt struct {
	EventID     int64
	Kind        ReceiptKind
	First, Last time.Time
	Copies      int
}

// Add takes another duplicate receipt of the same event and kind into s.
func (s *DuplicateReceipt) Add(o DuplicateReceipt) {
	s.Copies += o.Copies
	if o.First.Before(s.First) {
		s.First = o.First
	}
	if o.Last.After(s.Last) {
		s.Last = o.Last
	}
}
