package storetest

import (
	"context"
	"errors"
	"testing"

	"github.com/hookonce/hookonce"
)

// ended returns a context that has ended.
func ended(t testing.TB) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

// inside runs work in a transaction of the driver, and commits it, or rolls it back for work's error.
func (f *txFixture[Tx]) inside(t testing.TB, work func(Tx) error) error {
	return f.insideOf(t.Context(), work)
}

func (f *txFixture[Tx]) insideOf(ctx context.Context, work func(Tx) error) error {
	tx, err := f.db.Begin(ctx)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		_ = f.db.Rollback(context.WithoutCancel(ctx), tx)
		return err
	}
	return f.db.Commit(ctx, tx)
}

// maxRetries bounds how often a transaction is tried again that the database gave up for another one's
// sake. Each time the other one went on, so more than the number of racers is not needed.
const maxRetries = 10 * racers

// retried is inside, tried again like a program does that meets a database's refusal to serialize: an error
// that wraps none of the package's says that nothing is known, and nothing happened after a rollback.
func (f *txFixture[Tx]) retried(t testing.TB, work func(Tx) error) (err error) {
	for range maxRetries {
		if err = f.inside(t, work); err == nil || isAnswer(err) {
			return err
		}
	}
	return err
}

// isAnswer reports whether err is one of those that callers tell apart.
func isAnswer(err error) bool {
	for _, target := range []error{
		hookonce.ErrInvalidRef, hookonce.ErrBusy, hookonce.ErrStale, hookonce.ErrNotFound, hookonce.ErrEffectExists,
		hookonce.ErrSchemaMissing, errDeclined,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// holdTx runs work in a transaction and keeps that open. Finish ends the transaction, with a commit or a
// rollback, and may be called once.
func (f *txFixture[Tx]) holdTx(t testing.TB, work func(Tx) error) (finish func(commit bool)) {
	t.Helper()
	tx, err := f.db.Begin(t.Context())
	ok(t, err)
	if err := work(tx); err != nil {
		_ = f.db.Rollback(t.Context(), tx)
		t.Fatalf("unexpected error: %v", err)
	}
	return func(commit bool) {
		t.Helper()
		if commit {
			ok(t, f.db.Commit(t.Context(), tx))
			return
		}
		ok(t, f.db.Rollback(t.Context(), tx))
	}
}

// mustWait checks that a transaction does not get through work while another one is open: it runs into the
// end of a short context instead of getting an answer.
func (f *txFixture[Tx]) mustWait(t testing.TB, work func(context.Context, Tx) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shortWait)
	defer cancel()
	var through bool
	err := f.insideOf(ctx, func(tx Tx) error {
		err := work(ctx, tx)
		through = err == nil
		return errors.Join(err, errDeclined)
	})
	if through {
		t.Fatal("it did not wait for the other transaction")
	}
	if err == nil {
		t.Fatal("a transaction that had to wait ended without an error")
	}
}
