package memstore_test

import (
	"context"
	"errors"
	"fmt"
	"time"

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

// The events of an order arrive in the wrong order: the younger one is applied, and asks for one mail; the
// older one, and every copy, change nothing.
func Example_guards() {
	ctx, store := context.Background(), memstore.New()
	handle := func(key string, version int64) error {
		ref := hookonce.Ref{Source: "shop", Key: key}
		_, err := store.Within(ctx, hookonce.ClaimRequest{Ref: ref}, func(tx *memstore.Tx, _ hookonce.Claim) error {
			newer, err := store.Newer(ctx, tx, "order/1", hookonce.Version(version))
			fmt.Println(key, "is newer:", newer)
			if err != nil || !newer {
				return err
			}
			return store.Enqueue(ctx, tx, hookonce.Effect{Ref: ref, Name: "mail.status"})
		})
		return err
	}
	for _, err := range []error{handle("shipped", 2), handle("paid", 1), handle("shipped", 2)} {
		if err != nil {
			fmt.Println(err)
		}
	}
	effects, err := store.TakeEffects(ctx, hookonce.TakeRequest{Names: []string{"mail.status"}, Limit: 10, Lease: time.Minute})
	for _, e := range effects {
		fmt.Println("to do:", e.Name, "for", e.Ref)
	}
	fmt.Println(err)
	// Output:
	// shipped is newer: true
	// paid is newer: false
	// to do: mail.status for shop/shipped
	// <nil>
}
