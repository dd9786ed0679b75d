package sqlite_test

import (
	"errors"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// TestInvalidBesideRefused: what no store may hold stays out also when another row of its batch is
// refused by the database, and the batch is done again one by one.
func TestInvalidBesideRefused(t *testing.T) {
	f := fixture(t)
	s := f.Open(t)
	f.Refuse(t, "poison")
	invalid := entry("invalid")
	invalid.Type = "paid\x00"
	batch := []*journal.Record{entry("poison"), invalid, entry("good")}
	results, err := s.Accept(t.Context(), batch, time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if results[0].Err == nil || !errors.Is(results[1].Err, hookonce.ErrInvalidRef) || results[2].Status != journal.Accepted {
		t.Errorf("results %+v; want a refused one, an invalid one and a good one", results)
	}
}
