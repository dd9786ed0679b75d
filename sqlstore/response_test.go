package sqlstore_test

import (
	"errors"
	"testing"

	"github.com/hookonce/hookonce"
)

// A response belongs to a claim that is done when the transaction commits. Nobody can leave one under a key
// that was not claimed, or that a worker holds under a lease.
func TestAResponseNeedsAClaimThatIsDone(t *testing.T) {
	every(t, connections(), func(t *testing.T, f fixture) {
		keep := func() error {
			tx, err := f.db.BeginTx(t.Context(), nil)
			must(t, err)
			defer tx.Rollback()
			if err := f.KeepResponse(t.Context(), tx, request.Ref, hookonce.Response{Status: 201}); err != nil {
				return err
			}
			return tx.Commit()
		}
		if err := keep(); !errors.Is(err, hookonce.ErrNotFound) {
			t.Errorf("without a claim: %v", err)
		}
		c, err := f.Claim(t.Context(), request)
		must(t, err)
		if err := keep(); !errors.Is(err, hookonce.ErrNotFound) {
			t.Errorf("under a lease: %v", err)
		}
		must(t, f.CompleteWith(t.Context(), c, hookonce.Response{Status: 200, Body: []byte("mine")}))
		r, err := f.Response(t.Context(), request.Ref)
		must(t, err)
		if r.Status != 200 || string(r.Body) != "mine" {
			t.Errorf("the response is %#v", r)
		}
	})
}
