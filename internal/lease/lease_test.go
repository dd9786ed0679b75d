package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/lease"
)

var (
	errGone = errors.New("another worker has it")
	errAway = errors.New("the store is away")
)

// The lease is extended at each third, and lost when another worker has it, when nobody could extend it, and when it is
// over before it was kept. The work ends at that very moment.
func TestKeep(t *testing.T) {
	const length = 30 * time.Second
	for name, c := range map[string]struct {
		answers []error // to the extensions, the last of them for ever
		late    time.Duration
		ends    time.Duration // after the lease was asked for; zero: not within ten minutes
		cause   error
	}{
		"extended":                    {answers: []error{nil}},
		"away for a while":            {answers: []error{errAway, nil, errAway, nil}},
		"away":                        {answers: []error{errAway}, ends: length, cause: errAway},
		"away after it was extended":  {answers: []error{nil, nil, errAway}, ends: 2*length/3 + length, cause: errAway},
		"taken over":                  {answers: []error{nil, errGone}, ends: 2 * length / 3, cause: errGone},
		"granted when it was over":    {answers: []error{nil}, late: length, ends: length, cause: lease.ErrOver},
		"granted when it was nearly":  {answers: []error{nil}, late: length - time.Second},
		"granted late, and kept then": {answers: []error{nil}, late: length / 2},
		"away, and granted late":      {answers: []error{errAway, nil}, late: length - 5*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked := time.Now()
				time.Sleep(c.late)
				calls, failures := 0, 0
				held, release := lease.Lease{
					Of: "billing/a", Length: length, Asked: asked,
					Extend: func(context.Context) error {
						calls++
						return c.answers[min(calls, len(c.answers))-1]
					},
					Gone:   func(err error) bool { return errors.Is(err, errGone) },
					Failed: func(context.Context, error) { failures++ },
				}.Keep(t.Context())
				defer release()
				select {
				case <-held.Done():
				case <-time.After(10 * time.Minute):
				}
				var lost *lease.LostError
				switch {
				case c.ends == 0:
					if held.Err() != nil {
						t.Errorf("it was lost: %v", context.Cause(held))
					}
				case time.Since(asked) != c.ends || !errors.Is(context.Cause(held), c.cause) || !errors.As(context.Cause(held), &lost):
					t.Errorf("it ended after %v: %v", time.Since(asked), context.Cause(held))
				case !strings.Contains(lost.Error(), "the lease of billing/a was lost: "+c.cause.Error()):
					t.Errorf("the cause reads %q", lost)
				}
				release()
				if away := strings.HasPrefix(name, "away"); away != (failures > 0) {
					t.Errorf("%d failures were told", failures)
				}
			})
		})
	}
}

// A store that hangs does not hold the work beyond the lease, and release waits for an extension that is under way.
func TestKeepOverAStoreThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := time.Now()
		under := false
		held, release := lease.Lease{
			Of: "a", Length: time.Minute, Asked: asked,
			Extend: func(ctx context.Context) error {
				under = true
				<-ctx.Done()
				under = false
				return ctx.Err()
			},
			Gone: func(error) bool { return false },
		}.Keep(t.Context())
		<-held.Done()
		if time.Since(asked) != time.Minute {
			t.Errorf("it ended after %v", time.Since(asked))
		}
		release()
		if under {
			t.Error("release left an extension under way")
		}
	})
}

// So it is where an extension goes on although its context has ended, as with a client that waits for its socket.
func TestKeepOverAClientThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := time.Now()
		held, release := lease.Lease{
			Of: "a", Length: time.Minute, Asked: asked,
			Extend: func(context.Context) error {
				time.Sleep(25 * time.Second)
				return errAway
			},
			Gone: func(error) bool { return false },
		}.Keep(t.Context())
		defer release()
		<-held.Done()
		if time.Since(asked) != time.Minute || !errors.Is(context.Cause(held), errAway) {
			t.Errorf("it ended after %v: %v", time.Since(asked), context.Cause(held))
		}
	})
}

// Work that is over is no lost lease.
func TestRelease(t *testing.T) {
	held, release := lease.Lease{
		Of: "a", Length: time.Minute, Asked: time.Now(),
		Extend: func(context.Context) error { return nil }, Gone: func(error) bool { return false },
	}.Keep(t.Context())
	release()
	var lost *lease.LostError
	if context.Cause(held) != context.Canceled || errors.As(context.Cause(held), &lost) {
		t.Errorf("the cause is %v", context.Cause(held))
	}
}
