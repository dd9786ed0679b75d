package hookonce_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

func ExamplePurgeKinds() {
	fmt.Println(hookonce.PurgeKinds())
	// Output: [events failed once versions states effects]
}

// A store is purged in steps; usually by a janitor.
func ExamplePurger() {
	ctx, store := context.Background(), memstore.New()
	old := hookonce.PurgeRequest{Source: "stripe", Before: time.Now().Add(-90 * 24 * time.Hour), Limit: 1000}
	for {
		n, err := store.Purge(ctx, old)
		if err != nil || n < old.Limit {
			fmt.Println(n, err)
			return
		}
	}
	// Output: 0 <nil>
}

// A welcome bonus is paid once, however long ago that was, and whatever is purged of the events that asked for it.
func TestPurgeOfEventsForgetsNoOnce(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := memstore.New(memstore.WithClock(func() time.Time { return now }))
	bonuses := 0
	welcome := func(event string) {
		t.Helper()
		req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "users", Key: event}}
		_, err := store.Within(t.Context(), req, func(tx *memstore.Tx, c hookonce.Claim) error {
			first, err := hookonce.Once(hookonce.ContextWith(t.Context(), store, c, nil), tx, "bonus", "user_1")
			if first {
				bonuses++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	welcome("evt_1")
	now = now.Add(5 * 365 * 24 * time.Hour)
	if n, err := store.Purge(t.Context(), hookonce.PurgeRequest{Before: now, Limit: 100}); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	welcome("evt_2")
	if bonuses != 1 {
		t.Errorf("%d bonuses", bonuses)
	}
}
