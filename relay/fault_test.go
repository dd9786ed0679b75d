package relay_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// faulty is a queue whose methods fail on demand, before or after they have done what they do.
type faulty struct {
	hookonce.EffectQueue
	fault func(method string) (persist bool, err error)
}

func (f *faulty) TakeEffects(ctx context.Context, req hookonce.TakeRequest) (taken []hookonce.QueuedEffect, err error) {
	err = f.call("take", func() (err error) {
		taken, err = f.EffectQueue.TakeEffects(ctx, req)
		return err
	})
	if err != nil {
		return nil, err
	}
	return taken, nil
}

func (f *faulty) CompleteEffect(ctx context.Context, e hookonce.QueuedEffect) error {
	return f.call("complete", func() error { return f.EffectQueue.CompleteEffect(ctx, e) })
}

func (f *faulty) FailEffect(ctx context.Context, e hookonce.QueuedEffect, why hookonce.Failure, retry time.Time) error {
	return f.call("fail", func() error { return f.EffectQueue.FailEffect(ctx, e, why, retry) })
}

func (f *faulty) ExtendEffect(ctx context.Context, e hookonce.QueuedEffect, d time.Duration) (extended hookonce.QueuedEffect, err error) {
	err = f.call("extend", func() (err error) {
		extended, err = f.EffectQueue.ExtendEffect(ctx, e, d)
		return err
	})
	return extended, err
}

func (f *faulty) call(method string, do func() error) error {
	persist, fault := f.fault(method)
	if persist {
		if err := do(); err != nil {
			return err
		}
	}
	return fault
}

// disturbed is a queue to whose first answers that bring effects something happens: they are lost
// where that fails.
type disturbed struct {
	hookonce.EffectQueue
	answers int
	happens func() error
}

func (d *disturbed) TakeEffects(ctx context.Context, req hookonce.TakeRequest) ([]hookonce.QueuedEffect, error) {
	taken, err := d.EffectQueue.TakeEffects(ctx, req)
	if len(taken) > 0 && d.answers > 0 {
		d.answers--
		err = d.happens()
	}
	if err != nil {
		return nil, err
	}
	return taken, nil
}

// late answers come when a lease of 4 seconds is over.
func late() error {
	time.Sleep(5 * time.Second)
	return nil
}

// lost answers never come.
func lost() error { return errors.New("timeout") }

// failing returns a fault of one method for its first calls.
func failing(method string, calls int, persist bool) func(string) (bool, error) {
	return func(m string) (bool, error) {
		if m != method || calls == 0 {
			return true, nil
		}
		calls--
		return persist, errors.New("connection reset by peer")
	}
}

// A store that fails loses no effect and no outcome: not when what it failed at did not happen, and not
// when it did.
func TestStoreFails(t *testing.T) {
	for _, c := range []struct {
		name     string
		fault    func(string) (bool, error)
		handle   error
		outcomes []string
		state    hookonce.State
	}{
		{"take, not persisted", failing("take", 3, false), nil, []string{"mail done 1"}, hookonce.StateDone},
		// Nobody knows who has them until the lease has run out.
		{"take, persisted", failing("take", 1, true), nil, []string{"mail done 1"}, hookonce.StateDone},
		{"complete, not persisted", failing("complete", 3, false), nil, []string{"mail done 1"}, hookonce.StateDone},
		{"complete, persisted", failing("complete", 3, true), nil, []string{"mail done 1"}, hookonce.StateDone},
		{"fail, not persisted", failing("fail", 3, false), errors.New("no"), []string{"mail failed 1", "mail dead 2"}, hookonce.StateDead},
		{"fail, persisted", failing("fail", 3, true), errors.New("no"), []string{"mail failed 1", "mail dead 2"}, hookonce.StateDead},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, outcomes := memstore.New(), new(journal)
				enqueue(t, store, "receipt")
				stop := start(t, &faulty{EffectQueue: store, fault: c.fault}, func(context.Context, hookonce.QueuedEffect) error {
					return c.handle
				}, every(time.Minute, 2), outcomes.observed())
				pass(time.Hour)
				stopped(t, stop)
				outcomes.want(t, c.outcomes...)
				expect(t, store, c.state)
			})
		})
	}
}

// A crash between the effect and its record, or a store that never takes the record: the effect is
// repeated, under the same key.
func TestCrashBeforeTheRecord(t *testing.T) {
	for name, persist := range map[string]bool{"not persisted": false, "persisted": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, keys, outcomes := memstore.New(), new(journal), new(journal)
				enqueue(t, store, "receipt")
				handle := func(_ context.Context, e hookonce.QueuedEffect) error {
					keys.write("%s", e.IdempotencyKey())
					return nil
				}
				var log strings.Builder
				crashing := start(t, &faulty{EffectQueue: store, fault: failing("complete", -1, persist)}, handle, outcomes.observed(), relay.WithPoll(time.Hour),
					relay.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				pass(time.Minute)
				stopped(t, crashing)
				if !strings.Contains(log.String(), `msg="effect unrecorded"`) || !strings.Contains(log.String(), "meant=done") {
					t.Errorf("logged %s", log.String())
				}
				second := start(t, store, handle, outcomes.observed())
				pass(time.Minute)
				stopped(t, second)
				key := hookonce.EffectKey(hookonce.Ref{Source: "billing", Key: "evt_1"}, "receipt")
				if persist {
					keys.want(t, key)
					outcomes.want(t, "mail unrecorded 1")
				} else {
					keys.want(t, key, key)
					outcomes.want(t, "mail unrecorded 1", "mail done 1")
				}
				expect(t, store, hookonce.StateDone)
			})
		})
	}
}

// What no waiting mends ends the relay, which says so; everything else does not.
func TestTablesAreMissing(t *testing.T) {
	for _, fault := range []error{hookonce.ErrSchemaMissing, hookonce.ErrSchemaNewer, hookonce.Permanent(errors.New("the file is gone"))} {
		var log strings.Builder
		r := relay.New(&faulty{EffectQueue: memstore.New(), fault: func(string) (bool, error) { return false, fault }},
			map[string]relay.Handler{"mail": func(context.Context, hookonce.QueuedEffect) error { return nil }},
			relay.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if err := r.Run(t.Context()); !errors.Is(err, fault) {
			t.Errorf("Run: %v, want %v", err, fault)
		}
		if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "level=ERROR") || !strings.Contains(said, "relay: it ends") || !strings.Contains(said, fault.Error()) {
			t.Errorf("logged %s", said)
		}
	}
}

// narrow is a queue that hands over an effect in the time that its payload takes.
type narrow struct {
	hookonce.EffectQueue
	each time.Duration
}

func (n *narrow) TakeEffects(ctx context.Context, req hookonce.TakeRequest) ([]hookonce.QueuedEffect, error) {
	select {
	case <-ctx.Done():
		return nil, errors.New("interrupted")
	case <-time.After(time.Duration(req.Limit) * n.each):
		return n.EffectQueue.TakeEffects(ctx, req)
	}
}

// What cannot be handed over in time is asked for in smaller parts, and not again and again as it is.
func TestTakesThatAreTooLarge(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		enqueue(t, store, "one", "two", "three", "four", "five", "six")
		stop := start(t, &narrow{store, 4 * time.Second}, func(context.Context, hookonce.QueuedEffect) error { return nil }, relay.WithConcurrency(16))
		pass(5 * time.Minute)
		done := hookonce.StateDone
		expect(t, store, done, done, done, done, done, done)
		stopped(t, stop)
	})
}
