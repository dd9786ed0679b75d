package claimstore

import (
	"context"
	"errors"

	"github.com/hookonce/hookonce"
)

// errLocked says that nothing is known of a key.
var errLocked = errors.New("the database was locked by another writer for too long")

// oneWriter is a store in SQLite, where one lock is that of all keys. A claim that did not get it is told as busy, and there is no
// request with the key for whose answer its client could come again.
type oneWriter struct{ hookonce.ResponseStore }

func (s oneWriter) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	c, err := s.ResponseStore.Claim(ctx, req)
	if err == nil && c.Verdict == hookonce.Busy && c.State == "" {
		return hookonce.Claim{}, errLocked
	}
	return c, err
}
