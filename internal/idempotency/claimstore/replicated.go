package claimstore

import (
	"context"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/pgstore"
)

// replicated is a store that says what it has stored, or found, only if no wait for a standby was cancelled meanwhile: a claim
// that is gone after a failover lets the service do the work again. Whoever asks again waits for the standby as the first did.
type replicated struct {
	*pgstore.Store
	waits *pgstandby.Waits
}

func (s replicated) Claim(ctx context.Context, req hookonce.ClaimRequest) (c hookonce.Claim, err error) {
	err = s.waits.Heed(func() error { c, err = s.Store.Claim(ctx, req); return err })
	return c, err
}

func (s replicated) Lookup(ctx context.Context, ref hookonce.Ref) (c hookonce.Claim, err error) {
	err = s.waits.Heed(func() error { c, err = s.Store.Lookup(ctx, ref); return err })
	return c, err
}

func (s replicated) Complete(ctx context.Context, c hookonce.Claim) error {
	return s.waits.Heed(func() error { return s.Store.Complete(ctx, c) })
}

func (s replicated) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	return s.waits.Heed(func() error { return s.Store.CompleteWith(ctx, c, r) })
}

func (s replicated) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	return s.waits.Heed(func() error { return s.Store.Fail(ctx, c, f) })
}
