package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/hookonce/hookonce"
)

func newerCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"higher is newer than all before", newerOrder[Tx]},
		{"every number is a version", newerNumbers[Tx]},
		{"resources have versions of their own", newerResources[Tx]},
		{"a transaction sees its own", newerTwice[Tx]},
		{"a rollback forgets", newerRollback[Tx]},
		{"commits with the claim and the effect", newerWithin[Tx]},
		{"what can not be stored is refused", newerInvalid[Tx]},
		{"an ended context answers nothing", newerCancelled[Tx]},
	}
}

// newer asks in a transaction of its own.
func (f *txFixture[Tx]) newer(t testing.TB, resource string, version int64, want bool) {
	t.Helper()
	newer, err := f.tryNewer(t, resource, version)
	ok(t, err)
	if newer != want {
		t.Fatalf("version %d of %q is newer: %v, want %v", version, resource, newer, want)
	}
}

func (f *txFixture[Tx]) tryNewer(t testing.TB, resource string, version int64) (newer bool, err error) {
	err = f.retried(t, func(tx Tx) (err error) {
		newer, err = f.guards(t).Newer(t.Context(), tx, resource, version)
		return err
	})
	return newer, err
}

func newerOrder[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, step := range []struct {
		version int64
		newer   bool
	}{{3, true}, {3, false}, {2, false}, {4, true}, {3, false}, {4, false}, {100, true}, {99, false}} {
		f.newer(t, "order-1", step.version, step.newer)
	}
}

func newerNumbers[Tx any](t *testing.T, f *txFixture[Tx]) {
	ascending := []int64{math.MinInt64, math.MinInt64 + 1, -1 << 53, -2, -1, 0, 1, 1<<53 + 1, 1<<53 + 2, math.MaxInt64 - 1, math.MaxInt64}
	for i, version := range ascending {
		f.newer(t, "order-1", version, true)
		f.newer(t, "order-1", version, false)
		if i > 0 {
			f.newer(t, "order-1", ascending[i-1], false)
		}
	}
}

func newerResources[Tx any](t *testing.T, f *txFixture[Tx]) {
	names := awkwardNames()
	for i, name := range names {
		f.newer(t, name, int64(len(names)-i), true)
	}
	for i, name := range names {
		f.newer(t, name, int64(len(names)-i), false)
		f.newer(t, name, int64(len(names)-i+1), true)
	}
}

func newerTwice[Tx any](t *testing.T, f *txFixture[Tx]) {
	var answers []bool
	ok(t, f.retried(t, func(tx Tx) error {
		answers = nil
		for _, version := range []int64{2, 2, 1, 3, 2} {
			newer, err := f.guards(t).Newer(t.Context(), tx, "order-1", version)
			if err != nil {
				return err
			}
			answers = append(answers, newer)
		}
		return nil
	}))
	if want := []bool{true, false, false, true, false}; !slices.Equal(answers, want) {
		t.Fatalf("answers %v, want %v", answers, want)
	}
	f.newer(t, "order-1", 3, false)
}

func newerRollback[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, first := range []bool{true, false} {
		refuses(t, f.inside(t, func(tx Tx) error {
			newer, err := f.guards(t).Newer(t.Context(), tx, "order-1", 9)
			ok(t, err)
			if !newer {
				t.Fatal("what was rolled back is remembered")
			}
			return errDeclined
		}), errDeclined)
		f.newer(t, "order-1", 1, first)
	}
	f.newer(t, "order-1", 2, true)
}

func newerWithin[Tx any](t *testing.T, f *txFixture[Tx]) {
	apply := func(key string, version int64, failure error) error {
		_, err := f.Within(t.Context(), request(key), func(tx Tx, _ hookonce.Claim) error {
			newer, err := f.guards(t).Newer(t.Context(), tx, "order-1", version)
			if err == nil && newer {
				err = f.db.Effect(t.Context(), tx, fmt.Sprint("version ", version))
			}
			return errors.Join(err, failure)
		})
		return err
	}
	refuses(t, apply("evt_2", 2, errDeclined), errDeclined)
	ok(t, apply("evt_1", 1, nil))
	ok(t, apply("evt_2", 2, nil))
	ok(t, apply("evt_0", 0, nil))
	f.effects(t, map[string]int{"version 1": 1, "version 2": 1})
}

func newerInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	names := invalidNames()
	names["empty"] = ""
	for what, name := range names {
		if _, err := f.tryNewer(t, name, 1); !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Fatalf("%s: error is %v, want ErrInvalidRef", what, err)
		}
	}
}

func newerCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	err := f.inside(t, func(tx Tx) error {
		_, err := f.guards(t).Newer(ended(t), tx, "order-1", 1)
		return err
	})
	refuses(t, err, context.Canceled)
	f.newer(t, "order-1", 1, true)
}
