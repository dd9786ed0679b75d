package storetest

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func purgeGuardCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"versions go by their own kind", purgeVersions[Tx]},
		{"states go by their own kind", purgeStates[Tx]},
		{"a time that no clock can have shown is no age", purgeGuardClocks[Tx]},
	}
}

// purgeKind purges what is old by now.
func (f *txFixture[Tx]) purgeKind(t testing.TB, kind hookonce.PurgeKind, limit, want int) {
	t.Helper()
	purgeOf(t, f, hookonce.PurgeRequest{Kind: kind, Before: f.clock.Now(), Limit: limit}, want)
}

// others are all kinds but one.
func (f *txFixture[Tx]) others(t testing.TB, kind hookonce.PurgeKind) {
	t.Helper()
	for _, k := range hookonce.PurgeKinds() {
		if k != kind {
			f.purgeKind(t, k, 100, 0)
		}
	}
}

func purgeVersions[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, resource := range awkwardNames() {
		f.newer(t, resource, 7, true)
	}
	f.newer(t, "young", 7, true)
	f.purgeKind(t, hookonce.PurgeVersions, 100, 0) // the bound itself stays
	f.clock.Advance(time.Second)
	f.newer(t, "young", 8, true)
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	f.others(t, hookonce.PurgeVersions)
	f.newer(t, "young", 9, true)
	n := len(awkwardNames())
	purgeOf(t, f, hookonce.PurgeRequest{Kind: hookonce.PurgeVersions, Before: f.clock.Now(), Limit: 100, Dry: true}, n)
	for _, step := range [][2]int{{0, 0}, {-1, 0}, {5, 5}, {n, n - 5}, {n, 0}} {
		f.purgeKind(t, hookonce.PurgeVersions, step[0], step[1])
	}
	f.newer(t, "a", 1, true)
	f.newer(t, "young", 9, false)
}

func purgeStates[Tx any](t *testing.T, f *txFixture[Tx]) {
	for _, entity := range awkwardNames() {
		f.moves(t, entity, "", "paid", "paid", hookonce.Moved)
	}
	f.moves(t, "young", "", "paid", "paid", hookonce.Moved)
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	f.others(t, hookonce.PurgeStates)
	f.moves(t, "young", "paid", "shipped", "shipped", hookonce.Moved)
	n := len(awkwardNames())
	for _, step := range [][2]int{{0, 0}, {5, 5}, {n, n - 5}, {n, 0}} {
		f.purgeKind(t, hookonce.PurgeStates, step[0], step[1])
	}
	f.moves(t, "a", "", "ordered", "ordered", hookonce.Moved)
	f.moves(t, "young", "", "paid", "shipped", hookonce.Impossible)
}

// purgeGuardClocks has a process whose clock says 1970 do everything that leaves a row.
func purgeGuardClocks[Tx any](t *testing.T, f *txFixture[Tx]) {
	wrong := *f
	wrong.clock = &Clock{now: time.Unix(1, 0).UTC()}
	wrong.TxStore = wrong.another(0)
	wrong.newer(t, "order-1", 7, true)
	wrong.moves(t, "order-1", "", "paid", "paid", hookonce.Moved)
	wrong.carryOut(t, "evt_1")
	for _, kind := range hookonce.PurgeKinds() {
		f.purgeKind(t, kind, 100, 0)
	}
	f.newer(t, "order-1", 7, false)
	f.moves(t, "order-1", "", "paid", "paid", hookonce.AlreadyThere)
}
