package journal_test

import (
	"errors"
	"testing"

	"github.com/hookonce/hookonce/internal/journal"
)

// TestReceiptOfACopy says what is written down of a copy. One with other content is a conflict, also where it made work begin
// again: lists and counts of conflicts must have it.
func TestReceiptOfACopy(t *testing.T) {
	for _, c := range []struct {
		name string
		res  journal.Result
		want journal.ReceiptKind
	}{
		{"new", journal.Result{Status: journal.Accepted}, ""},
		{"new, and the logical duplicate of one that failed", journal.Result{Status: journal.Accepted, Redriven: true}, journal.ReceiptRedriven},
		{"copy", journal.Result{Status: journal.Duplicate}, journal.ReceiptDuplicate},
		{"copy of one that failed", journal.Result{Status: journal.Duplicate, Redriven: true}, journal.ReceiptRedriven},
		{"other content", journal.Result{Status: journal.Conflict}, journal.ReceiptConflict},
		{"other content, of one that failed", journal.Result{Status: journal.Conflict, Redriven: true}, journal.ReceiptConflict},
		{"not stored", journal.Result{Status: journal.Conflict, Err: errors.New("refused")}, ""},
	} {
		if got := c.res.Receipt(); got != c.want {
			t.Errorf("%s: the receipt is %q, not %q", c.name, got, c.want)
		}
	}
}
