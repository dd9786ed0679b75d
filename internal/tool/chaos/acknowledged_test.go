package chaos

import (
	"context"
	"errors"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// hasty is a store that calls work done when nobody knows whether its commit was made.
type hasty struct {
	hookonce.TxStore[*memstore.Tx]
}

// Within implements [hookonce.TxStore].
func (s hasty) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	c, err := s.TxStore.Within(ctx, req, fn)
	if errors.Is(err, hookonce.ErrUnknownOutcome) {
		err = nil
	}
	return c, err
}

// An acknowledgement that is false is told of before another copy can have its event done after all.
func TestFalseAcknowledgement(t *testing.T) {
	for _, c := range []struct {
		name  string
		store func(hookonce.TxStore[*memstore.Tx]) hookonce.TxStore[*memstore.Tx]
		fatal bool
	}{
		{"hasty", func(s hookonce.TxStore[*memstore.Tx]) hookonce.TxStore[*memstore.Tx] { return hasty{s} }, true},
		{"honest", func(s hookonce.TxStore[*memstore.Tx]) hookonce.TxStore[*memstore.Tx] { return s }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRound(t, func(*dice) harm { return nil })
			honest := memstore.New(memstore.WithWait(wait), memstore.WithCommit(func(persist func()) error {
				if r.oneIn(4) {
					return errors.New("the connection is lost")
				}
				persist()
				return nil
			}))
			for range 2 {
				r.join(newProcess(r.bank, c.store(honest), func(context.Context, *memstore.Tx, string, ...any) error { return nil }))
			}
			r.witness = honest.Lookup
			var err error
			for _, e := range r.all {
				if err = r.insist(t.Context(), e.key); err != nil {
					break
				}
			}
			if told := errors.As(err, new(fatalError)); told != c.fatal || !told && err != nil {
				t.Errorf("it ends with %v", err)
			}
		})
	}
}
