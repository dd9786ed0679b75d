package hookonce_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// outside is a system that shares no transaction with the store. It keeps the keys of the calls that reach it,
// in order.
type outside struct {
	mu    sync.Mutex
	calls []string
}

func (o *outside) handle(ctx context.Context, ev *hookonce.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls = append(o.calls, fmt.Sprintf("%s#%d", ev.Key, ev.Attempt))
	return ctx.Err()
}

func (o *outside) want(t *testing.T, calls ...string) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	if got, want := strings.Join(o.calls, " "), strings.Join(calls, " "); got != want {
		t.Errorf("calls: %q, want %q", got, want)
	}
}

type leasedFunc = func(context.Context, *hookonce.Event) error

func leased(store hookonce.Store, handle leasedFunc, opts ...hookonce.WebhookLeaseOption) http.Handler {
	return hookonce.WebhookLease(store, "sender", sender{}, handle, append([]hookonce.WebhookLeaseOption{quiet}, opts...)...)
}

// unsaved is a store whose Complete fails in a way of the test's.
type unsaved struct {
	faulty
	complete func(persist func() error) error
}

func (u unsaved) Complete(ctx context.Context, c hookonce.Claim) error {
	return u.complete(func() error { return u.Store.Complete(ctx, c) })
}

// overtaken is what [hookonce.UnderLease] returns of another claim, which was taken over while its work failed.
func overtaken(t *testing.T, fault error) error {
	t.Helper()
	store := faulty{Store: memstore.New(), fail: func(func() error) error { return hookonce.ErrStale }}
	c, err := hookonce.UnderLease(t.Context(), store, hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "print", Key: "label-8"}}, func(context.Context, hookonce.Claim) error { return fault })
	if c.Verdict != hookonce.Busy || !errors.Is(err, fault) || !errors.Is(err, hookonce.ErrTraceLost) || !errors.Is(err, hookonce.ErrStale) {
		t.Errorf("the other claim: %v, %v", c.Verdict, err)
	}
	return err
}

func wantState(t *testing.T, store *memstore.Store, key string, state hookonce.State, text string) {
	t.Helper()
	c, err := store.Lookup(t.Context(), hookonce.Ref{Source: "sender", Key: key})
	if err != nil || c.State != state || !strings.Contains(c.LastError, text) {
		t.Errorf("%s is %q under token %d, %q, %v; want %q, %q", key, c.State, c.Token, c.LastError, err, state, text)
	}
}

func TestWebhookLeaseHandlesOnce(t *testing.T) {
	var o outside
	store := memstore.New()
	h := leased(store, o.handle)
	want(t, post(h, "a 1"), 200, "accepted")
	want(t, post(h, "a 1"), 200, "duplicate")
	want(t, post(h, "a 2"), 200, "conflict")
	want(t, postSigned(t.Context(), h, "forged", "b 1"), 401, "")
	want(t, post(h, "b 1\nc 1\n- 1"), 200, "accepted")
	want(t, post(h, "- 1"), 200, "unkeyed")
	o.want(t, "a#1", "b#1", "c#1", "#0", "#0")
	wantState(t, store, "a", hookonce.StateDone, "")
}

// Who waits for whom, in one process and between two.
func TestWebhookLeaseManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outside
		store, gate := memstore.New(), make(chan struct{})
		h := leased(store, func(ctx context.Context, ev *hookonce.Event) error {
			<-gate
			return o.handle(ctx, ev)
		})
		answers := make(chan *httptest.ResponseRecorder, 25)
		for range cap(answers) {
			go func() { answers <- post(h, "a 1") }()
		}
		synctest.Wait()
		want(t, post(leased(store, o.handle), "a 1"), 503, "busy") // another process does not wait
		close(gate)
		statuses := map[string]int{}
		for range cap(answers) {
			statuses[(<-answers).Header().Get("Hookonce-Status")]++
		}
		if statuses["accepted"] != 1 || statuses["duplicate"] != 24 {
			t.Errorf("answered %v", statuses)
		}
		o.want(t, "a#1")
	})
}

// An event that only says that something changed has no claim, and is handled each time.
func TestWebhookLeaseCoalesce(t *testing.T) {
	var runs int
	h := hookonce.WebhookLease(memstore.New(), "sender", changes{}, func(ctx context.Context, ev *hookonce.Event) error {
		ref, _ := hookonce.RefFrom(ctx)
		if runs++; ref.Key != "" || ev.Key == "" {
			t.Errorf("the event %q is handled under the claim %v", ev.Key, ref)
		}
		return nil
	}, quiet)
	want(t, post(h, "a 1"), 200, "accepted")
	want(t, post(h, "a 1"), 200, "accepted")
	if runs != 2 {
		t.Errorf("handled %d times", runs)
	}
}

// changes is a provider whose events only say that something changed.
type changes struct{ sender }

func (p changes) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	d, err := p.sender.Open(req)
	for i := range d.Events {
		d.Events[i].Coalesce = true
	}
	return d, err
}

// A handler may take many times as long as its lease.
func TestWebhookLeaseIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outside
		store := memstore.New()
		h := leased(store, func(ctx context.Context, ev *hookonce.Event) error {
			time.Sleep(10 * time.Second)
			return o.handle(ctx, ev)
		}, hookonce.WithLease(time.Second))
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- post(h, "a 1") }()
		for range 9 {
			time.Sleep(time.Second)
			want(t, post(leased(store, o.handle), "a 1"), 503, "busy")
		}
		want(t, <-first, 200, "accepted")
		o.want(t, "a#1")
	})
}

// What was done and could not be recorded is not acknowledged. It is done again when the lease is over, under
// the same key.
func TestWebhookLeaseAcknowledgesNothingUnrecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		handle := func(ctx context.Context, ev *hookonce.Event) error {
			ref, _ := hookonce.RefFrom(ctx)
			if hookonce.EventFrom(ctx) != ev {
				t.Error("the context does not know the event")
			}
			keys = append(keys, hookonce.EffectKey(ref, "call"))
			return nil
		}
		store := memstore.New()
		w := post(leased(unsaved{faulty{Store: store}, away}, handle), "a 1")
		want(t, w, 503, "failed")
		if !strings.Contains(w.Body.String(), "not known") {
			t.Errorf("the answer does not say that nobody knows: %s", w.Body)
		}
		restarted := leased(store, handle)
		want(t, post(restarted, "a 1"), 503, "busy")
		time.Sleep(hookonce.DefaultLease)
		want(t, post(restarted, "a 1"), 200, "accepted")
		want(t, post(restarted, "a 1"), 200, "duplicate")
		if len(keys) != 2 || keys[0] != keys[1] || keys[0] == "" {
			t.Errorf("called under the keys %q", keys)
		}
	})
}

// The record is reported as failed, but happened: the next copy reads it.
func TestWebhookLeaseRecordedButReportedFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outside
		h := leased(unsaved{faulty{Store: memstore.New()}, func(persist func() error) error { return errors.Join(errAway, persist()) }}, o.handle)
		want(t, post(h, "a 1"), 503, "failed")
		want(t, post(h, "a 1"), 200, "duplicate")
		o.want(t, "a#1")
	})
}

// A store that is away for a moment costs time and no repetition.
func TestWebhookLeaseInsistsOnRecording(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outside
		tries := 0
		h := leased(unsaved{faulty{Store: memstore.New()}, func(persist func() error) error {
			if tries++; tries < 4 {
				return errAway
			}
			return persist()
		}}, o.handle)
		want(t, post(h, "a 1"), 200, "accepted")
		o.want(t, "a#1")
	})
}

// A lease that is lost ends the handler's context and says why. Whoever took over owns the outcome, whatever
// the former owner's handler returns.
func TestWebhookLeaseIsLost(t *testing.T) {
	for name, late := range map[string]error{"success": nil, "failure": errAway, "gives up": hookonce.Permanent(errAway), "is stale itself": hookonce.ErrStale} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var o outside
				var cause error
				store, gate := memstore.New(), make(chan struct{})
				begun := time.Now()
				stale := leased(faulty{Store: store, extend: away}, func(ctx context.Context, ev *hookonce.Event) error {
					<-ctx.Done()
					cause = context.Cause(ctx)
					<-gate
					return late
				}, hookonce.WithTimeout(time.Hour))
				first := make(chan *httptest.ResponseRecorder)
				go func() { first <- post(stale, "a 1") }()
				time.Sleep(hookonce.DefaultLease)
				synctest.Wait()
				if !errors.Is(cause, errAway) || time.Since(begun) != hookonce.DefaultLease {
					t.Errorf("the context ended after %v with %v", time.Since(begun), cause)
				}
				want(t, post(leased(store, o.handle), "a 1"), 200, "accepted")
				close(gate)
				want(t, <-first, 503, "busy")
				want(t, post(leased(store, o.handle), "a 1"), 200, "duplicate")
				wantState(t, store, "a", hookonce.StateDone, "")
				o.want(t, "a#2")
			})
		})
	}
}

// A lease that ran out, and that nobody took over, is still the handler's: what it did counts, and its failure
// says that the lease was lost.
func TestWebhookLeaseRanOutAndNobodyCame(t *testing.T) {
	for name, c := range map[string]struct {
		late   error
		code   int
		status string
		state  hookonce.State
		text   string
	}{
		"success": {nil, 200, "accepted", hookonce.StateDone, ""},
		"failure": {context.Canceled, 503, "failed", hookonce.StateFailed, "the lease of sender/a was lost"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				h := leased(faulty{Store: store, extend: away}, func(ctx context.Context, ev *hookonce.Event) error {
					<-ctx.Done()
					return c.late
				}, hookonce.WithTimeout(time.Hour))
				want(t, post(h, "a 1"), c.code, c.status)
				wantState(t, store, "a", c.state, c.text)
			})
		})
	}
}

// Who learns that it was taken over stops at once, even if its lease should not have run out by its own clock.
func TestWebhookLeaseLearnsThatItWasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outside
		var ahead atomic.Int64 // the store's clock
		store := memstore.New(memstore.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
		first, begun := make(chan *httptest.ResponseRecorder), time.Now()
		go func() {
			first <- post(leased(store, func(ctx context.Context, ev *hookonce.Event) error {
				<-ctx.Done()
				if held := time.Since(begun); !errors.Is(context.Cause(ctx), hookonce.ErrStale) || held != hookonce.DefaultLease/3 {
					t.Errorf("the context ended after %v with %v", held, context.Cause(ctx))
				}
				return ctx.Err()
			}), "a 1")
		}()
		synctest.Wait()
		ahead.Store(int64(time.Hour))
		want(t, post(leased(store, o.handle), "a 1"), 200, "accepted")
		want(t, <-first, 503, "busy")
		o.want(t, "a#2")
	})
}

// A handler that does not stop when its time is over holds its claim for one more lease, not for ever.
func TestWebhookLeaseEndsWithTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var o outside
		store, gate := memstore.New(), make(chan struct{})
		stuck := leased(store, func(context.Context, *hookonce.Event) error { <-gate; return nil }, hookonce.WithTimeout(5*time.Second))
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- post(stuck, "a 1") }()
		time.Sleep(5*time.Second + hookonce.DefaultLease)
		want(t, post(leased(store, o.handle), "a 1"), 200, "accepted")
		close(gate)
		want(t, <-first, 503, "busy")
		o.want(t, "a#2")
	})
}

// A failure frees the claim at once and leaves a trace; one for good is acknowledged when that is on record.
func TestWebhookLeaseFailures(t *testing.T) {
	fault := errors.New("the carrier is away")
	for name, c := range map[string]struct {
		fail   func() error
		code   int
		status string
		state  hookonce.State
	}{
		"error":              {func() error { return fault }, 503, "failed", hookonce.StateFailed},
		"panic":              {func() error { panic(fault) }, 503, "failed", hookonce.StateFailed},
		"permanent":          {func() error { return hookonce.Permanent(fault) }, 200, "dead", hookonce.StateDead},
		"meets a busy claim": {func() error { return fmt.Errorf("%w: %w", fault, hookonce.ErrBusy) }, 503, "failed", hookonce.StateFailed},
		"meets a stale one":  {func() error { return fmt.Errorf("%w: %w", fault, hookonce.ErrStale) }, 503, "failed", hookonce.StateFailed},
		"loses another":      {func() error { return overtaken(t, fault) }, 503, "failed", hookonce.StateFailed},
		"gives up over that": {func() error { return hookonce.Permanent(overtaken(t, fault)) }, 200, "dead", hookonce.StateDead},
		"is in doubt there":  {func() error { return hookonce.Permanent(fmt.Errorf("%w: %w", fault, hookonce.ErrUnknownOutcome)) }, 200, "dead", hookonce.StateDead},
	} {
		t.Run(name, func(t *testing.T) {
			var o outside
			store := memstore.New()
			want(t, post(leased(store, func(context.Context, *hookonce.Event) error { return c.fail() }), "a 1"), c.code, c.status)
			wantState(t, store, "a", c.state, fault.Error())
			want(t, post(leased(store, o.handle), "a 1"), 200, "accepted")
			o.want(t, "a#2")
		})
	}
}

// A failure for good that is not on record, or not known to be, is not acknowledged.
func TestWebhookLeaseGivesUpOnRecordOnly(t *testing.T) {
	for name, fail := range map[string]func(persist func() error) error{
		"not recorded":                   away,
		"recorded, but reported to fail": func(persist func() error) error { return errors.Join(errAway, persist()) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				handle := func(context.Context, *hookonce.Event) error { return hookonce.Permanent(errors.New("no such order")) }
				want(t, post(leased(faulty{Store: store, fail: fail}, handle), "a 1"), 503, "failed")
				time.Sleep(hookonce.DefaultLease)
				want(t, post(leased(store, handle), "a 1"), 200, "dead")
			})
		})
	}
}

func TestWebhookLeaseStoreDown(t *testing.T) {
	var o outside
	want(t, post(leased(down{}, o.handle), "a 1"), 503, "failed")
	o.want(t)
}

func TestWebhookLeaseOutlivesTheSender(t *testing.T) {
	var o outside
	ctx, hangUp := context.WithCancel(t.Context())
	store := memstore.New()
	h := leased(store, func(ctx context.Context, ev *hookonce.Event) error {
		hangUp()
		return o.handle(ctx, ev)
	})
	want(t, postSigned(ctx, h, "ok", "a 1"), 200, "accepted")
	o.want(t, "a#1")
}

// Handlers of events take the options of their kind, and no others.
func TestWebhookLeaseOptions(t *testing.T) {
	var o outside
	refuses := func(name string, build func()) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s: no panic", name)
			}
		}()
		build()
	}
	leased(memstore.New(), o.handle, hookonce.WithLease(time.Minute), hookonce.WithPublicURL("https://shop.example/in"), hookonce.WithUnkeyedRecord())
	refuses("no lease at all", func() { leased(memstore.New(), o.handle, hookonce.WithLease(0)) })
	refuses("no handler", func() { leased(memstore.New(), nil) })
	refuses("no store", func() { leased(nil, o.handle) })
	refuses("a source of Once", func() { hookonce.WebhookLease(memstore.New(), "once:fee", sender{}, o.handle) })
}

func TestUnderLease(t *testing.T) {
	fault := errors.New("no paper")
	for name, c := range map[string]struct {
		before  hookonce.State // of the claim
		fn      error
		verdict hookonce.Verdict
		after   hookonce.State
	}{
		"new":          {"", nil, hookonce.Acquired, hookonce.StateDone},
		"fails":        {"", fault, hookonce.Acquired, hookonce.StateFailed},
		"gives up":     {"", hookonce.Permanent(fault), hookonce.Acquired, hookonce.StateDead},
		"loses more":   {"", overtaken(t, fault), hookonce.Acquired, hookonce.StateFailed},
		"failed once":  {hookonce.StateFailed, nil, hookonce.Acquired, hookonce.StateDone},
		"given up":     {hookonce.StateDead, nil, hookonce.Acquired, hookonce.StateDone},
		"done":         {hookonce.StateDone, nil, hookonce.Duplicate, hookonce.StateDone},
		"held by some": {hookonce.StateProcessing, hookonce.ErrBusy, hookonce.Busy, hookonce.StateProcessing},
	} {
		t.Run(name, func(t *testing.T) {
			store, req := memstore.New(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "print", Key: "label-7"}}
			if c.before != "" {
				held, err := store.Claim(t.Context(), req)
				switch {
				case err != nil:
				case c.before == hookonce.StateDone:
					err = store.Complete(t.Context(), held)
				case c.before != hookonce.StateProcessing:
					err = store.Fail(t.Context(), held, hookonce.Failure{Dead: c.before == hookonce.StateDead})
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			runs := 0
			got, err := hookonce.UnderLease(t.Context(), store, req, func(ctx context.Context, held hookonce.Claim) error {
				runs++
				if ref, ok := hookonce.RefFrom(ctx); !ok || ref != req.Ref || held.Lease.IsZero() {
					t.Errorf("the context knows %v, the claim is %+v", ref, held)
				}
				return c.fn
			})
			if got.Verdict != c.verdict || !errors.Is(err, c.fn) || (err == nil) != (c.fn == nil) || (runs == 1) != (c.verdict == hookonce.Acquired) {
				t.Errorf("UnderLease = %v, %v after %d runs", got.Verdict, err, runs)
			}
			if stored, err := store.Lookup(t.Context(), req.Ref); err != nil || stored.State != c.after {
				t.Errorf("it is %s, %v; want %s", stored.State, err, c.after)
			}
		})
	}
}

// A claim without a deadline is never lost, and gets none.
func TestKeepLeaseOfAClaimWithoutADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "print", Key: "label-7"}}
		c, err := store.Claim(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		held, release := hookonce.KeepLease(t.Context(), store, c, req.Lease, time.Now())
		time.Sleep(time.Hour)
		synctest.Wait()
		if held.Err() != nil {
			t.Errorf("the context ended: %v", context.Cause(held))
		}
		release()
		if c, err := store.Lookup(t.Context(), req.Ref); err != nil || !c.Lease.IsZero() || c.State != hookonce.StateProcessing {
			t.Errorf("the claim is %+v, %v", c, err)
		}
	})
}

// A claim that a worker in another language left pinned is refused to other content, as by [hookonce.Webhook].
func TestWebhookLeaseRefusesWhatIsPinned(t *testing.T) {
	var o outside
	store := memstore.New()
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "sender", Key: "a"}, Digest: []byte("another")}
	held, err := store.Claim(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Fail(t.Context(), held, hookonce.Failure{Pin: true}); err != nil {
		t.Fatal(err)
	}
	for _, h := range []http.Handler{leased(store, o.handle), endpoint(store, func(ctx context.Context, _ *memstore.Tx, ev *hookonce.Event) error { return o.handle(ctx, ev) })} {
		want(t, post(h, "a 1"), 503, "failed")
		want(t, post(h, "a 1"), 503, "failed")
	}
	o.want(t)
	wantState(t, store, "a", hookonce.StateFailed, "")
}

// What a handler does instead of returning goes on its way, after the failure is on record.
func TestUnderLeaseOfAHandlerThatDoesNotReturn(t *testing.T) {
	for name, end := range map[string]func(){"the handler panicked": func() { panic("no paper") }, "ended its goroutine": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			store, ref := memstore.New(), hookonce.Ref{Source: "print", Key: "label-7"}
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				_, err := hookonce.UnderLease(t.Context(), store, hookonce.ClaimRequest{Ref: ref}, func(context.Context, hookonce.Claim) error { end(); return nil })
				t.Errorf("UnderLease returned %v", err)
			}()
			if p := <-ended; (p == nil) != strings.Contains(name, "goroutine") {
				t.Errorf("recovered %v", p)
			}
			if c, err := store.Lookup(t.Context(), ref); err != nil || c.State != hookonce.StateFailed || !strings.Contains(c.LastError, name) {
				t.Errorf("the claim is %+v, %v", c, err)
			}
		})
	}
}

func TestUnderLeaseRefusesALeaseThatCannotBeKept(t *testing.T) {
	for _, lease := range []time.Duration{-time.Second, time.Millisecond} {
		c, err := hookonce.UnderLease(t.Context(), memstore.New(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "s", Key: "k"}, Lease: lease}, func(context.Context, hookonce.Claim) error {
			t.Error("it ran")
			return nil
		})
		if err == nil || c.Verdict != 0 {
			t.Errorf("%v: %+v, %v", lease, c, err)
		}
	}
}
