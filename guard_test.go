package hookonce_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// state is an event about an object.
func state(source, scope string, rank hookonce.Rank) hookonce.Event {
	return hookonce.Event{Source: source, Scope: scope, Rank: rank}
}

// second is the rank of Stripe's times.
func second(n int64) hookonce.Rank { return hookonce.Timestamp(time.Unix(n, 0)) }

// TestNewer: what is old is told by the event's object and rank, and nothing is lost of which that cannot be
// said.
func TestNewer(t *testing.T) {
	long := strings.Repeat("x", hookonce.MaxKeyLen)
	type step struct {
		event hookonce.Event
		newer bool
	}
	for _, tt := range []struct {
		name  string
		steps []step
	}{
		{"late", []step{{state("a", "sub_1", second(2)), true}, {state("a", "sub_1", second(1)), false}}},
		{"two of one second", []step{{state("a", "sub_1", second(2)), true}, {state("a", "sub_1", second(2)), true}, {state("a", "sub_1", second(1)), false}}},
		{"without an object", []step{{state("a", "", second(2)), true}, {state("a", "", second(1)), true}, {state("a", "", hookonce.Version(1)), true}}},
		{"without a rank", []step{{state("a", "sub_1", hookonce.Rank{}), true}, {state("a", "sub_1", hookonce.Rank{}), true}}},
		{"without a rank, between others", []step{{state("a", "o", hookonce.Version(2)), true}, {state("a", "o", hookonce.Rank{}), true}, {state("a", "o", hookonce.Version(1)), false}}},
		{"one version twice", []step{{state("a", "o", hookonce.Version(2)), true}, {state("a", "o", hookonce.Version(2)), false}}},
		{"the first version is zero", []step{{state("a", "o", hookonce.Version(0)), true}, {state("a", "o", hookonce.Version(0)), false}}},
		{"two objects", []step{{state("a", "o", second(2)), true}, {state("a", "p", second(1)), true}}},
		{"two endpoints", []step{{state("a", "o", second(2)), true}, {state("b", "o", second(1)), true}, {state("a", "o", second(1)), false}}},
		{"names that run together", []step{{state("ab", "c", second(2)), true}, {state("a", "bc", second(1)), true}}},
		{"a long name", []step{{state("a", long, second(2)), true}, {state("a", long[1:], second(1)), true}, {state("a", long, second(1)), false}}},
		{"a provider that begins to send versions", []step{{state("a", "o", second(2)), true}, {state("a", "o", hookonce.Version(7)), true}, {state("a", "o", hookonce.Version(6)), false}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := within(t, memstore.New(), "evt_1", func(ctx context.Context, tx *memstore.Tx) error {
				for i, step := range tt.steps {
					newer, err := hookonce.Newer(ctx, tx, &step.event)
					if err != nil {
						return err
					}
					if newer != step.newer {
						t.Errorf("step %d: newer: %v, want %v", i, newer, step.newer)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A name that is missing is a mistake of the program where there is a rank, and is told.
func TestNewerRankRefusesNoName(t *testing.T) {
	err := within(t, memstore.New(), "evt_1", func(ctx context.Context, tx *memstore.Tx) error {
		if newer, err := hookonce.NewerRank(ctx, tx, "", hookonce.Rank{}); !newer || err != nil {
			t.Errorf("without a rank: %v, %v", newer, err)
		}
		_, err := hookonce.NewerRank(ctx, tx, "", hookonce.Version(1))
		return err
	})
	if !errors.Is(err, hookonce.ErrInvalidRef) {
		t.Errorf("error is %v", err)
	}
}

func TestRanks(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7999, time.FixedZone("", 3600))
	for rank, want := range map[hookonce.Rank]string{
		hookonce.Version(7): "version 7", hookonce.Version(0): "version 0", {}: "no rank",
		hookonce.Timestamp(at): "time 1770087906000007", hookonce.Timestamp(time.Unix(0, 0)): "time 0", hookonce.Timestamp(time.Time{}): "no rank",
	} {
		if got := rank.String(); got != want || rank.IsZero() != (want == "no rank") {
			t.Errorf("%#v is %s, want %s", rank, got, want)
		}
	}
}

// ask calls Once in a transaction of its own, which it commits.
func ask(t *testing.T, store *memstore.Store, scope, key string) (bool, error) {
	t.Helper()
	tx := store.Begin()
	first, err := hookonce.Once(hookonce.ContextWith(t.Context(), store, claim, nil), tx, scope, key)
	if err != nil {
		tx.Rollback()
		return first, err
	}
	return first, tx.Commit()
}

func TestOnce(t *testing.T) {
	store := memstore.New()
	for _, c := range []struct {
		name, scope, key string
		want             bool
	}{
		{"the first", "fee", "po_1", true},
		{"a copy", "fee", "po_1", false},
		{"another key", "fee", "po_2", true},
		{"another scope", "refund", "po_1", true},
		{"a long key", "fee", strings.Repeat("x", 300), true},
		{"a long key again", "fee", strings.Repeat("x", 300), false},
		{"another long key", "fee", strings.Repeat("x", 301), true},
	} {
		if first, err := ask(t, store, c.scope, c.key); first != c.want || err != nil {
			t.Errorf("%s: %v, %v; want %v", c.name, first, err, c.want)
		}
	}
}

// Whatever lacks a name is neither done nor to be done: it would collapse with all that lacks it, too.
func TestOnceNeedsNames(t *testing.T) {
	for _, c := range [][2]string{{"", "po_1"}, {"fee", ""}, {strings.Repeat("x", 255), "po_1"}} {
		if first, err := ask(t, memstore.New(), c[0], c[1]); first || !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("Once(%q, %q) = %v, %v", c[0], c[1], first, err)
		}
	}
}

func TestOnceIsFreeAfterARollback(t *testing.T) {
	store := memstore.New()
	tx := store.Begin()
	ctx := hookonce.ContextWith(t.Context(), store, claim, nil)
	for _, want := range []bool{true, false} { // the second is a copy in the same transaction
		if first, err := hookonce.Once(ctx, tx, "fee", "po_1"); first != want || err != nil {
			t.Fatalf("Once = %v, %v; want %v", first, err, want)
		}
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if first, err := ask(t, store, "fee", "po_1"); !first || err != nil {
		t.Errorf("after the rollback: %v, %v", first, err)
	}
}

func TestOnceUnderALease(t *testing.T) {
	store := memstore.New()
	if _, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "once:fee", Key: "po_1"}}); err != nil {
		t.Fatal(err)
	}
	if first, err := ask(t, store, "fee", "po_1"); first || !errors.Is(err, hookonce.ErrBusy) {
		t.Errorf("Once = %v, %v; want ErrBusy", first, err)
	}
}

// Of many events that ask for one fee at once, one gets it, whichever it is.
func TestOnceAtOnce(t *testing.T) {
	store, fees := memstore.New(), new(ledger)
	h := endpoint(store, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		first, err := hookonce.Once(ctx, tx, "payout.fee", string(ev.Digest))
		if err == nil && first {
			tx.OnCommit(func() { fees.mu.Lock(); fees.rows = append(fees.rows, string(ev.Digest)); fees.mu.Unlock() })
		}
		return err
	})
	var all sync.WaitGroup
	for _, key := range strings.Fields("a b c d e f g h i j k l m n o p") {
		all.Go(func() { want(t, post(h, key+" po_1"), 200, "accepted") })
	}
	all.Wait()
	fees.want(t, "po_1")
}

// No endpoint has a source that is one of Once's, or its events would be taken for what handlers did.
func TestSourcesOfOnceAreReserved(t *testing.T) {
	for _, source := range []string{"once:fee", ""} {
		for name, build := range map[string]func(){
			"Webhook":    func() { endpointOf(memstore.New(), source, new(ledger).handle) },
			"Idempotent": func() { hookonce.Idempotent(memstore.New(), source, new(till).charge, hookonce.WithoutScope()) },
			"IdempotentLease": func() {
				hookonce.IdempotentLease(memstore.New(), source, http.NotFoundHandler(), hookonce.WithoutScope())
			},
		} {
			func() {
				defer func() {
					if err, _ := recover().(error); !errors.Is(err, hookonce.ErrInvalidRef) {
						t.Errorf("%s under the source %q panicked with %v", name, source, err)
					}
				}()
				build()
			}()
		}
	}
}
