package hookonce_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// cutOff is a store that rolls a transaction back when its context ends, as database/sql does, whatever the handler
// does then.
type cutOff struct{ *memstore.Store }

func (s cutOff) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	var handled chan error
	c, err := s.Store.Within(ctx, req, func(tx *memstore.Tx, c hookonce.Claim) error {
		handled = make(chan error, 1)
		go func() { handled <- fn(tx, c) }()
		select {
		case err := <-handled:
			handled <- nil
			return err
		case <-ctx.Done():
			return ctx.Err()
		}
	})
	if handled != nil {
		<-handled
	}
	return c, err
}

// hung are the four doors over store, each with a handler that calls hang and says who ran.
func hung(store *memstore.Store, hang func()) map[string]func() *httptest.ResponseRecorder {
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hang(); fmt.Fprint(w, "paid") })
	limit := []hookonce.Option{hookonce.WithTimeout(20 * time.Second)}
	webhook := endpoint(cutOff{store}, func(context.Context, *memstore.Tx, *hookonce.Event) error { hang(); return nil }, limit...)
	webhookLease := leased(store, func(context.Context, *hookonce.Event) error { hang(); return nil }, limit...)
	idempotent := counter(cutOff{store}, func(w http.ResponseWriter, r *http.Request, _ *memstore.Tx) error { answer(w, r); return nil }, limit...)
	idempotentLease := desk(store, answer, limit...)
	return map[string]func() *httptest.ResponseRecorder{
		"Webhook":         func() *httptest.ResponseRecorder { return post(webhook, "a 1") },
		"WebhookLease":    func() *httptest.ResponseRecorder { return post(webhookLease, "a 1") },
		"Idempotent":      func() *httptest.ResponseRecorder { return buy(idempotent, "k1", "10") },
		"IdempotentLease": func() *httptest.ResponseRecorder { return buy(idempotentLease, "k1", "10") },
	}
}

// A handler that never returns blocks its key in its process only while its time, its lease and a grace last. Then
// the store decides: a copy does the work, or learns that another process has done it.
func TestHandlerThatNeverReturnsIsGivenUp(t *testing.T) {
	for door := range hung(memstore.New(), nil) {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(door, ", done elsewhere: ", elsewhere), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, gate := memstore.New(), make(chan struct{})
					var runs, others atomic.Int64
					send := hung(store, func() {
						if runs.Add(1) == 1 {
							<-gate
						}
					})[door]
					first := make(chan *httptest.ResponseRecorder)
					go func() { first <- send() }()
					time.Sleep(19 * time.Second)
					if w := send(); w.Code < 400 || runs.Load() != 1 {
						t.Errorf("while the first is at work a copy is answered %d, after %d runs", w.Code, runs.Load())
					}
					time.Sleep(time.Second + hookonce.DefaultLease)
					if elsewhere {
						other := hung(store, func() { others.Add(1) })[door]
						if w := other(); w.Code != 200 {
							t.Errorf("another process answers %d %s", w.Code, w.Body)
						}
					}
					time.Sleep(5 * time.Second)
					for range 2 {
						if w := send(); w.Code != 200 {
							t.Errorf("a copy is answered %d %s", w.Code, w.Body)
						}
					}
					if done := runs.Load() - 1 + others.Load(); done != 1 || elsewhere != (others.Load() == 1) {
						t.Errorf("%d runs here, %d elsewhere", runs.Load(), others.Load())
					}
					close(gate)
					if w := <-first; w.Code < 400 {
						t.Errorf("the one that was given up is answered %d %s", w.Code, w.Body)
					}
					if w := send(); w.Code != 200 {
						t.Errorf("a copy after that is answered %d %s", w.Code, w.Body)
					}
				})
			})
		}
	}
}

// The one that was given up and comes back in the end does not open the latch of the one that took its place: copies
// go on waiting for that one, and do not ask the store, which would call them busy at once.
func TestLatchOfWhoWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first, second := make(chan struct{}), make(chan struct{})
		var runs atomic.Int64
		send := hung(memstore.New(), func() { <-[]chan struct{}{first, second}[runs.Add(1)-1] })["WebhookLease"]
		answers := make(chan *httptest.ResponseRecorder)
		go func() { answers <- send() }()
		time.Sleep(20*time.Second + hookonce.DefaultLease)
		go func() { answers <- send() }()
		synctest.Wait()
		close(first)
		want(t, <-answers, 503, "busy")
		copies := make(chan *httptest.ResponseRecorder)
		go func() { copies <- send() }()
		synctest.Wait()
		close(second)
		want(t, <-answers, 200, "accepted")
		want(t, <-copies, 200, "duplicate")
		if runs.Load() != 2 {
			t.Errorf("%d runs", runs.Load())
		}
	})
}
