package sqlite

import (
	"errors"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/tally"
)

// What was counted goes along with a transaction that is made anyway; what becomes of one of them is nothing to the other.
func TestCountsRideInTransactionsThatAreMadeAnyway(t *testing.T) {
	errBroken := errors.New("broken")
	for _, c := range []struct {
		name        string
		ride, other error // how they fail
		took        time.Duration
		sum         int64 // 1 of the ride, 10 of the other
	}{
		{"both succeed", nil, nil, 0, 11},
		{"the ride fails", errBroken, nil, 0, 10},
		{"the other fails, and the ride goes by itself", nil, errBroken, rideWait, 1},
		{"both fail", errBroken, errBroken, rideWait, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := Open(t.Context(), filepath.Join(t.TempDir(), "hookonce.db"), Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				add := func(process string, n int64, fails error) func(w *writer) error {
					return func(w *writer) error {
						return errors.Join(s.addTallies(w, process, 1, []tally.Point{{Minute: time.Unix(60, 0), What: tally.Received, N: n}}), fails)
					}
				}
				began := time.Now()
				answer := make(chan error)
				go func() { answer <- s.ride(t.Context(), "testing", add("ride", 1, c.ride)) }()
				synctest.Wait() // it stands there
				if err := s.write(t.Context(), "testing", add("other", 10, c.other)); !errors.Is(err, c.other) {
					t.Errorf("the other: %v, want %v", err, c.other)
				}
				if err := <-answer; !errors.Is(err, c.ride) {
					t.Errorf("the ride: %v, want %v", err, c.ride)
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("it took %v, want %v", took, c.took)
				}
				points, err := s.Tallies(t.Context(), tally.Query{Until: time.Unix(120, 0), Step: time.Minute})
				var sum int64
				for _, p := range points {
					sum += p.N
				}
				if err != nil || sum != c.sum {
					t.Errorf("%d were added, want %d (%v)", sum, c.sum, err)
				}
			})
		})
	}
}

// Where the disk is full SQLite may end the transaction by itself. Then nobody is told that something was stored.
func TestAPassengerThatEndsTheTransaction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "hookonce.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		answer := make(chan error)
		full := func(w *writer) error {
			_, err := w.rollback.exec()
			return errors.Join(errors.New("disk full"), err)
		}
		go func() { answer <- s.ride(t.Context(), "testing", full) }()
		synctest.Wait()
		points := []tally.Point{{Minute: time.Unix(60, 0), What: tally.Received, N: 1}}
		if s.write(t.Context(), "testing", func(w *writer) error { return s.addTallies(w, "other", 1, points) }) == nil {
			t.Error("the other succeeded")
		}
		if <-answer == nil {
			t.Error("the ride succeeded")
		}
		if all, err := s.Tallies(t.Context(), tally.Query{Until: time.Unix(120, 0), Step: time.Minute}); len(all) != 0 || err != nil {
			t.Errorf("%v is stored (%v)", all, err)
		}
		if err := s.AddTallies(t.Context(), "other", 1, points); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}

// A transaction that panics, whoever's fault it is, leaves nobody waiting for ever and nothing of either.
func TestAPassengerOfATransactionThatPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, err := Open(t.Context(), filepath.Join(t.TempDir(), "hookonce.db"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		answer := make(chan error)
		go func() { answer <- s.ride(t.Context(), "testing", func(*writer) error { panic("ride") }) }()
		synctest.Wait()
		func() {
			defer func() { _ = recover() }()
			_ = s.write(t.Context(), "testing", func(*writer) error { return nil })
		}()
		if err := <-answer; err == nil {
			t.Error("the ride succeeded")
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
