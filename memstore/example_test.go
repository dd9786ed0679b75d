package memstore_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// The first attempt fails after it staged its effect: nothing happens. The retry happens once, and
// the copy that comes after it not at all.
func Example() {
	ctx, store := context.Background(), memstore.New()
	payments := 0
	handle := func(failure error) func(*memstore.Tx, hookonce.Claim) error {
		return func(tx *memstore.Tx, c hookonce.Claim) error {
			tx.OnCommit(func() { payments++ })
			return failure
		}
	}
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}}
	_, err := store.Within(ctx, req, handle(errors.New("the bank is closed")))
	fmt.Println(payments, err)
	for range 2 {
		c, err := store.Within(ctx, req, handle(nil))
		fmt.Println(payments, c.Verdict, err)
	}
	// Output:
	// 0 memstore: billing/evt_1: attempt 1: the bank is closed
	// 1 accepted <nil>
	// 1 duplicate <nil>
}
