package hookonce_test

import (
	"context"
	"errors"
	"strings"
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
