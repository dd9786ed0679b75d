package hookonce_test

import (
	"context"
	"errors"
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

// heldBack returns a handler that begins when the gate is opened.
func heldBack(gate <-chan struct{}, handle chargeFunc) chargeFunc {
	return func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		<-gate
		return handle(w, r, tx)
	}
}

// at sends n equal requests at once, to each of the handlers in turn.
func at(n int, key, body string, handlers ...http.Handler) <-chan *httptest.ResponseRecorder {
	answers := make(chan *httptest.ResponseRecorder, n)
	for i := range n {
		go func() { answers <- buy(handlers[i%len(handlers)], key, body) }()
	}
	return answers
}

// A hundred first requests at once, in one process or in four: the handler runs once, and all end with the
// same answer where they wait for it.
func TestIdempotentManyAtOnceWait(t *testing.T) {
	for _, processes := range []int{1, 4} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s till
				gate := make(chan struct{})
				handlers := make([]http.Handler, processes)
				store := memstore.New()
				for i := range handlers {
					handlers[i] = counter(store.With(), heldBack(gate, s.charge), hookonce.WithWait(10*time.Second))
				}
				answers := at(100, "k1", "10", handlers...)
				synctest.Wait()
				if len(answers) != 0 {
					t.Fatalf("%d were answered before the commit", len(answers))
				}
				close(gate)
				replayed := 0
				var text string
				for range cap(answers) {
					w := <-answers
					if text == "" {
						text = w.Body.String()
					}
					if w.Code != 201 || w.Body.String() != text {
						t.Errorf("answered %d %s, others %s", w.Code, w.Body, text)
					}
					if w.Header().Get("Idempotency-Replayed") == "true" {
						replayed++
						if w.Header().Get("Set-Cookie") != "" {
							t.Error("a copy got the cookie of the first")
						}
					}
				}
				if replayed != 99 {
					t.Errorf("%d of 100 were copies", replayed)
				}
				s.want(t, "10")
			})
		})
	}
}

// By default those who come meanwhile are told to come again.
func TestIdempotentManyAtOnceAreToldToComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s till
		gate := make(chan struct{})
		h := counter(memstore.New(), heldBack(gate, s.charge))
		first := at(1, "k1", "10", h)
		synctest.Wait()
		answers := at(99, "k1", "10", h)
		synctest.Wait()
		if len(answers) != 99 {
			t.Errorf("%d of 99 were answered at once", len(answers))
		}
		for range len(answers) {
			wantAnswer(t, <-answers, 409, "request-in-progress")
		}
		close(gate)
		w := <-first
		wantAnswer(t, w, 201, "")
		wantReplay(t, buy(h, "k1", "10"), w)
		s.want(t, "10")
	})
}

// The wait has an end, in this process and for another one.
func TestIdempotentWaitIsBounded(t *testing.T) {
	for name, own := range map[string]bool{"own process": true, "another process": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s till
				gate := make(chan struct{})
				store := memstore.New()
				h := counter(store, heldBack(gate, s.charge), hookonce.WithWait(7*time.Second))
				first := at(1, "k1", "10", h)
				synctest.Wait()
				if !own {
					h = counter(store, s.charge, hookonce.WithWait(7*time.Second))
				}
				start := time.Now()
				wantAnswer(t, buy(h, "k1", "10"), 409, "request-in-progress")
				if waited := time.Since(start); waited < 7*time.Second || waited > 7*time.Second+memstore.DefaultWait {
					t.Errorf("waited %v", waited)
				}
				close(gate)
				wantAnswer(t, <-first, 201, "")
				s.want(t, "10")
			})
		})
	}
}

// Who waits for one that fails shares its failure; who comes after it runs.
func TestIdempotentCopiesShareAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s till
		gate := make(chan struct{})
		h := counter(memstore.New(), heldBack(gate, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			if s.runs.Add(1) == 1 {
				return errors.New("the card network is away")
			}
			return s.charge(w, r, tx)
		}), hookonce.WithWait(10*time.Second))
		answers := at(20, "k1", "10", h)
		synctest.Wait()
		close(gate)
		for range cap(answers) {
			wantAnswer(t, <-answers, 503, "unavailable")
		}
		if s.runs.Load() != 1 {
			t.Errorf("a failing handler ran %d times", s.runs.Load())
		}
		wantAnswer(t, buy(h, "k1", "10"), 201, "")
		s.want(t, "10")
	})
}

// The connection of the first is cut because its handler wants that; those who waited get an answer.
func TestIdempotentCopiesOfAnAbortedRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := make(chan struct{})
		h := counter(memstore.New(), heldBack(gate, func(http.ResponseWriter, *http.Request, *memstore.Tx) error {
			panic(http.ErrAbortHandler)
		}), hookonce.WithWait(10*time.Second))
		cut := make(chan any, 20)
		answers := make(chan *httptest.ResponseRecorder, cap(cut))
		for range cap(cut) {
			go func() {
				defer func() { cut <- recover() }()
				answers <- buy(h, "k1", "10")
			}()
		}
		synctest.Wait()
		close(gate)
		aborted := 0
		for range cap(cut) {
			if p := <-cut; p == http.ErrAbortHandler {
				aborted++
			} else if p != nil {
				t.Errorf("panicked with %v", p)
			}
		}
		if aborted != 1 || len(answers) != cap(cut)-1 {
			t.Errorf("%d connections were cut, %d requests answered", aborted, len(answers))
		}
		for range len(answers) {
			wantAnswer(t, <-answers, 503, "unavailable")
		}
	})
}

// So with an answer that is not kept: it is the answer of all who waited, without the first one's cookie.
func TestIdempotentCopiesShareAnAnswerThatIsNotKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s till
		gate := make(chan struct{})
		h := counter(memstore.New(), heldBack(gate, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			w.Header().Set("Set-Cookie", "session=fake")
			w.WriteHeader(429)
			return s.charge(w, r, tx)
		}), hookonce.WithWait(10*time.Second))
		answers := at(20, "k1", "10", h)
		synctest.Wait()
		close(gate)
		cookies := 0
		for range cap(answers) {
			w := <-answers
			if w.Code != 429 {
				t.Errorf("answered %d", w.Code)
			}
			cookies += len(w.Header()["Set-Cookie"])
		}
		if s.runs.Load() != 1 || cookies != 1 {
			t.Errorf("%d runs, %d cookies", s.runs.Load(), cookies)
		}
		s.want(t)
	})
}

// Another request under the key of one that is under way waits as well, and learns then that the key is
// used, or that it is free.
func TestIdempotentOtherContentMeanwhile(t *testing.T) {
	for name, fail := range map[string]bool{"the first succeeds": false, "the first fails": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s till
				gate := make(chan struct{})
				h := counter(memstore.New(), heldBack(gate, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
					if r.ContentLength == 2 && fail {
						return errors.New("the card network is away")
					}
					return s.charge(w, r, tx)
				}), hookonce.WithWait(10*time.Second))
				first := at(1, "k1", "10", h)
				synctest.Wait()
				second := at(1, "k1", "1000", h)
				synctest.Wait()
				close(gate)
				if <-first; fail {
					wantAnswer(t, <-second, 201, "")
					s.want(t, "1000")
				} else {
					wantAnswer(t, <-second, 422, "idempotency-key-reused")
					s.want(t, "10")
				}
			})
		})
	}
}

// Waiting ends with the client; the work does not.
func TestIdempotentWorkOutlivesTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s till
		gate := make(chan struct{})
		h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			<-gate
			if err := r.Context().Err(); err != nil {
				return err
			}
			return s.charge(w, r, tx)
		}, hookonce.WithWait(time.Hour))
		ctx, hangUp := context.WithCancel(t.Context())
		gone := func(r *http.Request) { *r = *r.WithContext(ctx) }
		first := make(chan *httptest.ResponseRecorder, 2)
		go func() { first <- buy(h, "k1", "10", gone) }()
		synctest.Wait()
		go func() { first <- buy(h, "k1", "10", gone) }()
		synctest.Wait()
		hangUp()
		synctest.Wait()
		if len(first) != 1 {
			t.Fatalf("%d requests ended with their clients, want the one that waited", len(first))
		}
		<-first
		close(gate)
		w := <-first
		wantAnswer(t, w, 201, "")
		wantReplay(t, buy(h, "k1", "10"), w)
		s.want(t, "10")
	})
}

func TestIdempotentHandlerHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s till
		slow := true
		h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			if slow {
				<-r.Context().Done()
			}
			return s.charge(w, r, tx)
		}, hookonce.WithTimeout(5*time.Second))
		start := time.Now()
		wantAnswer(t, buy(h, "k1", "10"), 503, "answer-incomplete")
		if took := time.Since(start); took != 5*time.Second {
			t.Errorf("took %v", took)
		}
		s.want(t)
		slow = false
		wantAnswer(t, buy(h, "k1", "10"), 201, "")
		s.want(t, "10")
	})
}

// knowing is a store that tells at once that nobody holds a claim.
type knowing struct{ *memstore.Store }

func (knowing) Await(context.Context, hookonce.Ref) error { return nil }

// Work that the handler finds held by others is a failure of the handler: its request is not outstanding, and
// it is not run again and again while its client waits for a twin.
func TestIdempotentHandlerIsBusy(t *testing.T) {
	for _, cause := range []error{hookonce.ErrBusy, hookonce.ErrStale} {
		synctest.Test(t, func(t *testing.T) {
			runs := 0
			h := counter(knowing{memstore.New()}, func(http.ResponseWriter, *http.Request, *memstore.Tx) error {
				if runs++; runs > 10 {
					return nil
				}
				return fmt.Errorf("fee: %w", cause)
			}, hookonce.WithWait(time.Second))
			wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
			if runs != 1 {
				t.Errorf("%v: the handler ran %d times", cause, runs)
			}
		})
	}
}

// Copies wait as long as they may, whoever of them asked for the work of another process and went away.
func TestIdempotentCopiesOutwaitTheOneThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s till
		gate := make(chan struct{})
		store := memstore.New()
		elsewhere := at(1, "k1", "10", counter(store, heldBack(gate, s.charge)))
		synctest.Wait()
		h := counter(store.With(memstore.WithWait(time.Second)), s.charge, hookonce.WithWait(time.Minute))
		ctx, hangUp := context.WithCancel(t.Context())
		asks := at(1, "k1", "10", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { h.ServeHTTP(w, r.WithContext(ctx)) }))
		synctest.Wait()
		copies := at(3, "k1", "10", h)
		synctest.Wait()
		hangUp()
		wantAnswer(t, <-asks, 409, "request-in-progress")
		synctest.Wait()
		if len(copies) > 0 {
			t.Fatalf("%d copies did not wait", len(copies))
		}
		close(gate)
		first := <-elsewhere
		for range cap(copies) {
			wantReplay(t, <-copies, first)
		}
		s.want(t, "10")
	})
}

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
	limit := hookonce.WithTimeout(20 * time.Second)
	webhook := endpoint(cutOff{store}, func(context.Context, *memstore.Tx, *hookonce.Event) error { hang(); return nil }, limit)
	webhookLease := leased(store, func(context.Context, *hookonce.Event) error { hang(); return nil }, limit)
	idempotent := counter(cutOff{store}, func(w http.ResponseWriter, r *http.Request, _ *memstore.Tx) error { answer(w, r); return nil }, limit)
	idempotentLease := desk(store, answer, limit)
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

// The one that was given up and comes back in the end does not end the call of the one that took its place: copies
// go on waiting for that one, and do not ask the store, which would call them busy at once.
func TestFirstCallThatWasGivenUp(t *testing.T) {
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
