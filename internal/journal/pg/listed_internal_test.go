package pg

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// TestDigestIsSuppliedOnce: of two processes that have both seen that an event from a list has no digest, the second one waits
// for the first, and leaves what that supplied.
func TestDigestIsSuppliedOnce(t *testing.T) {
	s, err := Open(t.Context(), pgtest.DSN(t), Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	of := func(digest string) *journal.Record {
		return &journal.Record{ID: journal.NewIDs(1, 0).Next(now), Event: &journal.Event{Source: "billing", Key: "evt_1", Digest: []byte(digest)}}
	}
	listed := of("")
	listed.Listed = true
	if _, err := s.Accept(t.Context(), []*journal.Record{listed}, now, now); err != nil {
		t.Fatal(err)
	}
	first, err := s.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer first.Rollback(t.Context()) // before the store is closed
	if _, err := first.Exec(t.Context(), s.sql.supply, []string{"billing"}, []string{"evt_1"}, [][]byte{[]byte("first")}); err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		a := &acceptance{Store: s, batch: []*journal.Record{of("second")}}
		second <- a.supply(t.Context(), []int{0})
	}()
	awaitBlocked(t, s)
	if err := first.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-second; err != nil {
		t.Fatal(err)
	}
	for digest, want := range map[string]journal.Status{"first": journal.Duplicate, "second": journal.Conflict} {
		results, err := s.Accept(t.Context(), []*journal.Record{of(digest)}, now, now)
		if err != nil || results[0].Status != want || results[0].ID != listed.ID {
			t.Errorf("the %s: %+v, %v, want %s", digest, results, err, want)
		}
	}
}
