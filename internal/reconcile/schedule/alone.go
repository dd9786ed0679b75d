package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBusy says that somebody compares the source already.
var ErrBusy = errors.New("it is being compared at this moment, by a gateway or because somebody asked; try again when that is over")

// Alone has do compare a source for somebody who asked, while nobody else compares it by its mark: no [Schedule], and no other Alone.
// The context of do ends when that cannot be said any more. How far the source was compared, and what came of that, stays on record as
// it is. It fails with [ErrBusy], or because the store does not answer, before do was called; else with the error of do.
func Alone(ctx context.Context, store Marks, now func() time.Time, source string, do func(context.Context) error) error {
	ask, cancel := context.WithTimeout(ctx, askTime)
	mark, taken, err := store.TakeMark(ask, source, rand.Text(), now(), now().Add(leaseTime)) // a holder of its own: another run of this process is another
	cancel()
	switch {
	case err != nil:
		return fmt.Errorf("the store does not answer: %w", err)
	case !taken:
		return ErrBusy
	}
	run, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var holding sync.WaitGroup
	holding.Go(func() { hold(run, stop, store, now, source, mark.Token) })
	err = do(run)
	if lost := context.Cause(run); lost != nil && err != nil {
		err = lost
	}
	stop(nil)
	holding.Wait()
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
	defer cancel()
	if _, failed := store.ReleaseMark(back, source, mark.Token, mark.Last); failed != nil {
		err = errors.Join(err, fmt.Errorf("for a minute nobody else can compare it: %w", failed))
	}
	return err
}
