package claimstore

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/pgstandby"
	"github.com/hookonce/hookonce/pgstore"
)

// replicated is a store that says what it has stored, or found, only if no wait for a standby was cancelled meanwhile: a claim
// that is gone after a failover lets the service do the work again. Whoever asks again for what is done waits for the standby as the
// first did; a claim whose wait was cancelled stays, for nobody, until its lease is over.
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

func (s replicated) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (out hookonce.Claim, err error) {
	err = s.waits.Heed(func() error { out, err = s.Store.Extend(ctx, c, d); return err })
	return out, err
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
