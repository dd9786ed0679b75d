package storetest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/hookonce/hookonce"
	"golang.org/x/sync/errgroup"
)

func concurrentCases() []leaseCase {
	return []leaseCase{
		{"one of many wins a fresh key", raceFresh},
		{"one of many takes over an expired lease", raceTakeover},
		{"one of many tries failed work again", raceFailed},
		{"of many with other content none takes over what is pinned", racePinned},
		{"a completion and a takeover never both succeed", raceComplete},
		{"an extension and a takeover never both succeed", raceExtend},
		{"purges do not count a claim twice", racePurge},
	}
}

// racers is how many workers compete, from how many stores.
const racers, stores = 12, 3

// race lets the racers claim the same key at once and returns their claims.
func (f *fixture) race(t testing.TB, req hookonce.ClaimRequest) []hookonce.Claim {
	t.Helper()
	var open [stores]hookonce.Store
	for i := range open {
		open[i] = f.another()
	}
	claims, start := make([]hookonce.Claim, racers), make(chan struct{})
	var g errgroup.Group
	for i := range claims {
		g.Go(func() (err error) {
			<-start
			claims[i], err = open[i%stores].Claim(t.Context(), req)
			return err
		})
	}
	close(start)
	ok(t, g.Wait())
	return claims
}

// racePinned lets as many ask for a pinned claim with its own content as with other content.
func racePinned(t *testing.T, f *fixture) {
	claim(t, f, pinning("evt_1"), hookonce.Acquired)
	f.clock.Advance(lease)
	others := make(chan []hookonce.Claim)
	go func() { others <- f.race(t, otherContent("evt_1")) }()
	oneWon(t, f.race(t, pinning("evt_1")), 2)
	for _, c := range <-others {
		if c.Verdict != hookonce.Pinned && c.Verdict != hookonce.Busy {
			t.Errorf("other content was answered %#v", c)
		}
	}
}

// oneWon checks that exactly one claim won, with the given token, and that the others are busy.
func oneWon(t testing.TB, claims []hookonce.Claim, token int64) {
	t.Helper()
	won := 0
	for _, c := range claims {
		switch {
		case c.Verdict == hookonce.Acquired && c.Token == token:
			won++
		case c.Verdict != hookonce.Busy:
			t.Fatalf("a copy was answered %#v", c)
		}
	}
	if won != 1 {
		t.Fatalf("%d of %d concurrent claims won", won, len(claims))
	}
}

func raceFresh(t *testing.T, f *fixture) {
	for i := range rounds {
		req := request(fmt.Sprint("evt_", i))
		oneWon(t, f.race(t, req), 1)
		stored(t, f, req.Ref, hookonce.StateProcessing, 1)
	}
}

func raceTakeover(t *testing.T, f *fixture) {
	req := request("evt_1")
	claim(t, f, req, hookonce.Acquired)
	for token := int64(2); token < 2+rounds; token++ {
		f.clock.Advance(lease)
		oneWon(t, f.race(t, req), token)
	}
}

func raceFailed(t *testing.T, f *fixture) {
	req := request("evt_1")
	c := claim(t, f, req, hookonce.Acquired)
	for token := int64(2); token < 2+rounds; token++ {
		ok(t, f.Fail(t.Context(), c, hookonce.Failure{Dead: token%2 == 0}))
		oneWon(t, f.race(t, req), token)
		c = stored(t, f, req.Ref, hookonce.StateProcessing, token)
	}
}

// versus runs a, which acts on an expired claim, against a takeover of it.
func (f *fixture) versus(t testing.TB, key string, a func(hookonce.Claim) error) (acted bool, takeover hookonce.Claim) {
	t.Helper()
	c := claim(t, f, request(key), hookonce.Acquired)
	f.clock.Advance(lease)
	other := f.another()
	var g errgroup.Group
	g.Go(func() (err error) {
		takeover, err = other.Claim(t.Context(), request(key))
		return err
	})
	g.Go(func() error {
		err := a(c)
		acted = err == nil
		if errors.Is(err, hookonce.ErrStale) {
			return nil
		}
		return err
	})
	ok(t, g.Wait())
	return acted, takeover
}

func raceComplete(t *testing.T, f *fixture) {
	for i := range rounds {
		acted, takeover := f.versus(t, fmt.Sprint("evt_", i), func(c hookonce.Claim) error {
			return f.Complete(t.Context(), c)
		})
		if want := map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[acted]; takeover.Verdict != want {
			t.Fatalf("completed: %v, takeover: %#v", acted, takeover)
		}
	}
}

func raceExtend(t *testing.T, f *fixture) {
	for i := range rounds {
		acted, takeover := f.versus(t, fmt.Sprint("evt_", i), func(c hookonce.Claim) error {
			_, err := f.Extend(t.Context(), c, lease)
			return err
		})
		if want := map[bool]hookonce.Verdict{true: hookonce.Busy, false: hookonce.Acquired}[acted]; takeover.Verdict != want {
			t.Fatalf("extended: %v, takeover: %#v", acted, takeover)
		}
	}
}

func racePurge(t *testing.T, f *fixture) {
	const claims = 40
	for i := range claims {
		finish(t, f, fmt.Sprint("evt_", i))
	}
	f.clock.Advance(lease)
	var deleted [stores]int
	var g errgroup.Group
	for i := range deleted {
		s := f.another()
		g.Go(func() error {
			for {
				n, err := s.Purge(t.Context(), before(f.clock.Now(), 5))
				deleted[i] += n
				if n == 0 || err != nil {
					return err
				}
			}
		})
	}
	ok(t, g.Wait())
	rest, err := f.Purge(t.Context(), before(f.clock.Now(), claims))
	ok(t, err)
	if total := deleted[0] + deleted[1] + deleted[2] + rest; total != claims {
		t.Fatalf("%d claims were deleted, want %d", total, claims)
	}
}
