package sqlstore_test

import (
	"database/sql"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// late is a handler's error after which others get to the key before the trace is left: the store asks for
// the error's text between the rollback and the trace.
type late struct{ meanwhile func() }

func (e late) Error() string {
	e.meanwhile()
	return "the connection broke"
}

// An attempt takes over a lease that ran out, and fails. Before its trace is left the owner of the lease, who
// was slow, finishes or gets more time. The trace has the higher token and gives way all the same.
func TestATraceGivesWayToTheOwnerThatItTookOver(t *testing.T) {
	for name, tt := range map[string]struct {
		act   func(t *testing.T, f fixture, c hookonce.Claim) error
		state hookonce.State
	}{
		"who finishes": {func(t *testing.T, f fixture, c hookonce.Claim) error {
			return f.Complete(t.Context(), c)
		}, hookonce.StateDone},
		"who gets more time": {func(t *testing.T, f fixture, c hookonce.Claim) error {
			_, err := f.Extend(t.Context(), c, time.Hour)
			return err
		}, hookonce.StateProcessing},
	} {
		t.Run(name, func(t *testing.T) {
			every(t, connections(), func(t *testing.T, f fixture) {
				expired := request
				expired.Lease = -time.Second
				owner, err := f.Claim(t.Context(), expired)
				must(t, err)
				failure := late{sync.OnceFunc(func() { must(t, tt.act(t, f, owner)) })}
				_, err = f.Within(t.Context(), request, func(_ *sql.Tx, c hookonce.Claim) error {
					if c.Token != 2 {
						t.Errorf("token %d, so nothing was taken over", c.Token)
					}
					return hookonce.Permanent(failure)
				})
				if !errors.Is(err, hookonce.ErrTraceLost) {
					t.Errorf("error is %v, want ErrTraceLost", err)
				}
				f.left(t, tt.state, "")
			})
		})
	}
}
