package claimstore

import (
	"context"
	"time"

	"github.com/hookonce/hookonce"
)

// standing is a store that says what it has stored only if that is where a restart will find it: a claim that is gone after
// a restart lets the service do the work again.
type standing struct {
	hookonce.ResponseStore
	check func() error
}

func (s standing) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	if err := s.check(); err != nil {
		return hookonce.Claim{}, err
	}
	c, err := s.ResponseStore.Claim(ctx, req)
	if err == nil {
		err = s.check()
	}
	return c, err
}

func (s standing) Complete(ctx context.Context, c hookonce.Claim) error {
	return s.after(s.ResponseStore.Complete(ctx, c))
}

func (s standing) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	return s.after(s.ResponseStore.CompleteWith(ctx, c, r))
}

func (s standing) Fail(ctx context.Context, c hookonce.Claim, f hookonce.Failure) error {
	return s.after(s.ResponseStore.Fail(ctx, c, f))
}

func (s standing) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (hookonce.Claim, error) {
	c, err := s.ResponseStore.Extend(ctx, c, d)
	return c, s.after(err)
}

func (s standing) Purge(ctx context.Context, req hookonce.PurgeRequest) (int, error) {
	if err := s.check(); err != nil {
		return 0, err // somebody may want to copy the file as it is
	}
	return s.ResponseStore.Purge(ctx, req)
}

// after returns the error of what was stored, or why it does not last.
func (s standing) after(err error) error {
	if err != nil {
		return err
	}
	return s.check()
}
