package hookonce_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// printer is a service with an effect of its own: every run prints.
type printer struct{ prints atomic.Int64 }

func (p *printer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := p.prints.Add(1)
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Set-Cookie", "session=fake")
	w.Header().Set("Content-Type", "text/plain")
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "print %d of %s", n, body)
}

func (p *printer) want(t *testing.T, n int64) {
	t.Helper()
	if got := p.prints.Load(); got != n {
		t.Errorf("%d prints, want %d", got, n)
	}
}

func desk(store hookonce.ResponseStore, next http.Handler, opts ...hookonce.IdempotentLeaseOption) http.Handler {
	return hookonce.IdempotentLease(store, "idempotency", next, append([]hookonce.IdempotentLeaseOption{quiet, hookonce.WithScope(tenant)}, opts...)...)
}

// faulty is a store some of whose methods fail.
type faulty struct {
	*memstore.Store
	claim        func(persist func() error) error
	completeWith func(persist func() error) error
	extend       func(persist func() error) error
	fail         func(persist func() error) error
}

func (f faulty) Claim(ctx context.Context, req hookonce.ClaimRequest) (c hookonce.Claim, err error) {
	persist := func() error { c, err = f.Store.Claim(ctx, req); return err }
	if f.claim == nil {
		f.claim = func(persist func() error) error { return persist() }
	}
	err = f.claim(persist)
	return c, err
}

func (f faulty) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	persist := func() error { return f.Store.CompleteWith(ctx, c, r) }
	if f.completeWith == nil {
		return persist()
	}
	return f.completeWith(persist)
}

func (f faulty) Extend(ctx context.Context, c hookonce.Claim, d time.Duration) (extended hookonce.Claim, err error) {
	persist := func() error { extended, err = f.Store.Extend(ctx, c, d); return err }
	if f.extend == nil {
		f.extend = func(persist func() error) error { return persist() }
	}
	err = f.extend(persist)
	return extended, err
}

func (f faulty) Fail(ctx context.Context, c hookonce.Claim, failure hookonce.Failure) error {
	persist := func() error { return f.Store.Fail(ctx, c, failure) }
	if f.fail == nil {
		return persist()
	}
	return f.fail(persist)
}

var errAway = errors.New("the store is away")

func away(func() error) error { return errAway }

func TestIdempotentLeaseRunsOnceAndReplays(t *testing.T) {
	var p printer
	h := desk(memstore.New(), &p)
	first := buy(h, "k1", "10")
	wantAnswer(t, first, 201, "")
	wantReplay(t, buy(h, "k1", "10"), first)
	wantAnswer(t, buy(h, "k1", "11"), 422, "idempotency-key-reused")
	wantAnswer(t, buy(h, "k1", "10", setHeader("Tenant", "globex")), 201, "")
	p.want(t, 2)
}

func TestIdempotentLeaseManyAtOnce(t *testing.T) {
	for _, processes := range []int{1, 4} {
		t.Run(fmt.Sprint(processes), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p printer
				gate := make(chan struct{})
				handlers := make([]http.Handler, processes)
				store := memstore.New()
				for i := range handlers {
					handlers[i] = desk(store.With(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						<-gate
						p.ServeHTTP(w, r)
					}), hookonce.WithWait(10*time.Second))
				}
				answers := at(100, "k1", "10", handlers...)
				synctest.Wait()
				close(gate)
				for range cap(answers) {
					if w := <-answers; w.Code != 201 || w.Body.String() != "print 1 of 10" {
						t.Errorf("answered %d %s", w.Code, w.Body)
					}
				}
				p.want(t, 1)
			})
		})
	}
}

// A handler may take many times as long as its lease.
func TestIdempotentLeaseIsExtended(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		store := memstore.New()
		h := desk(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(10 * time.Second)
			p.ServeHTTP(w, r)
		}), hookonce.WithLease(time.Second))
		other := desk(store, &p)
		first := at(1, "k1", "10", h)
		for range 9 {
			time.Sleep(time.Second)
			wantAnswer(t, buy(other, "k1", "10"), 409, "request-in-progress")
		}
		w := <-first
		wantAnswer(t, w, 201, "")
		wantReplay(t, buy(other, "k1", "10"), w)
		p.want(t, 1)
	})
}

// Crash between effect and save: the process is gone before it could record the answer. Copies are told to
// come again until the lease ends, and not for longer; then the work is done again under the same key.
func TestIdempotentLeaseCrashBetweenEffectAndSave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var keys []string
		var p printer
		next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ref, _ := hookonce.RefFrom(r.Context())
			keys = append(keys, hookonce.EffectKey(ref, "print"))
			p.ServeHTTP(w, r)
		})
		store := memstore.New()
		crashing := desk(faulty{Store: store, completeWith: away}, next)
		restarted := desk(store, next)
		w := buy(crashing, "k1", "10")
		wantAnswer(t, w, 503, "unavailable")
		if !strings.Contains(w.Body.String(), "not known") {
			t.Errorf("the answer does not say that nobody knows: %s", w.Body)
		}
		wantAnswer(t, buy(restarted, "k1", "10"), 409, "request-in-progress")
		p.want(t, 1)
		time.Sleep(hookonce.DefaultLease)
		w = buy(restarted, "k1", "10")
		wantAnswer(t, w, 201, "")
		p.want(t, 2)
		if keys[0] != keys[1] || keys[0] == "" {
			t.Errorf("the effect ran under the keys %q", keys)
		}
		wantReplay(t, buy(restarted, "k1", "10"), w)
	})
}

// The save is reported as failed, but happened: the answer stands.
func TestIdempotentLeaseSavedButReportedFailed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		store := memstore.New()
		h := desk(faulty{Store: store, completeWith: func(persist func() error) error { return errors.Join(errAway, persist()) }}, &p)
		wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
		if w := buy(h, "k1", "10"); w.Code != 201 || w.Body.String() != "print 1 of 10" {
			t.Errorf("answered %d %s", w.Code, w.Body)
		}
		p.want(t, 1)
	})
}

// A store that is away for a moment costs time, not the answer.
func TestIdempotentLeaseInsistsOnSaving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		tries := 0
		h := desk(faulty{Store: memstore.New(), completeWith: func(persist func() error) error {
			if tries++; tries < 4 {
				return errAway
			}
			return persist()
		}}, &p)
		wantAnswer(t, buy(h, "k1", "10"), 201, "")
		p.want(t, 1)
	})
}

// Late completion by a stale owner: its lease ran out, because it could not be extended, and somebody took
// over. Its handler's context ends, and it neither stores nor gives its answer. That the work may have been done twice is logged.
func TestIdempotentLeaseLateCompletionByStaleOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		var log strings.Builder
		store := memstore.New()
		gate := make(chan struct{})
		var cause error
		stale := desk(faulty{Store: store, extend: away}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			cause = context.Cause(r.Context())
			<-gate
			io.WriteString(w, "the answer of the stale owner")
		}), hookonce.WithTimeout(time.Hour), hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		first := at(1, "k1", "10", stale)
		time.Sleep(hookonce.DefaultLease + time.Second)
		synctest.Wait()
		if !errors.Is(cause, errAway) {
			t.Errorf("the handler's context ended with %v", cause)
		}
		w := buy(desk(store, &p), "k1", "10")
		wantAnswer(t, w, 201, "")
		close(gate)
		wantAnswer(t, <-first, 409, "request-in-progress")
		wantReplay(t, buy(desk(store, &p), "k1", "10"), w)
		p.want(t, 1)
		if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "level=WARN") || !strings.Contains(line, "may have run twice") ||
			!strings.Contains(line, "source=idempotency key=") {
			t.Errorf("logged %s", line)
		}
	})
}

// Who learns that it was taken over stops at once, even if its lease should not have run out by its own clock.
func TestIdempotentLeaseLearnsThatItWasTakenOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		var ahead atomic.Int64 // the store's clock
		store := memstore.New(memstore.WithClock(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }))
		start := time.Now()
		var cause error
		var held time.Duration
		first := at(1, "k1", "10", desk(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			cause, held = context.Cause(r.Context()), time.Since(start)
		})))
		synctest.Wait()
		ahead.Store(int64(time.Hour))
		wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
		wantAnswer(t, <-first, 409, "request-in-progress")
		if !errors.Is(cause, hookonce.ErrStale) || held != hookonce.DefaultLease/3 {
			t.Errorf("the handler's context ended after %v with %v", held, cause)
		}
	})
}

// The same while the successor is still at it: a stale owner neither completes nor frees its claim.
func TestIdempotentLeaseStaleOwnerFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		store := memstore.New()
		gates := make(chan chan struct{}, 2)
		var runs atomic.Int64
		next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			gate := make(chan struct{})
			gates <- gate
			<-gate
			if runs.Add(1) == 1 {
				w.WriteHeader(503)
			}
		})
		first := at(1, "k1", "10", desk(faulty{Store: store, extend: away}, next, hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))))
		staleGate := <-gates
		time.Sleep(hookonce.DefaultLease)
		second := at(1, "k1", "10", desk(store, next))
		ownGate := <-gates
		close(staleGate)
		wantAnswer(t, <-first, 409, "request-in-progress")
		wantAnswer(t, buy(desk(store, next), "k1", "10"), 409, "request-in-progress")
		close(ownGate)
		wantAnswer(t, <-second, 200, "")
		if line := log.String(); strings.Count(line, "may have run twice") != 1 {
			t.Errorf("logged %s", line)
		}
	})
}

// Expired-row race at re-claim: many find the same lease run out, and one takes over.
func TestIdempotentLeaseRaceForAnExpiredClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		store := memstore.New()
		crashing := desk(faulty{Store: store, completeWith: away}, &p)
		wantAnswer(t, buy(crashing, "k1", "10"), 503, "unavailable")
		time.Sleep(hookonce.DefaultLease)
		var handlers []http.Handler
		for range 10 {
			handlers = append(handlers, desk(store, &p, hookonce.WithWait(time.Second)))
		}
		answers := at(100, "k1", "10", handlers...)
		for range cap(answers) {
			if w := <-answers; w.Code != 201 || w.Body.String() != "print 2 of 10" {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
		}
		p.want(t, 2)
	})
}

// A handler that does not stop when its time is over holds its claim for one more lease, not for ever.
func TestIdempotentLeaseEndsWithTheDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		store := memstore.New()
		gate := make(chan struct{})
		stuck := desk(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { <-gate }), hookonce.WithTimeout(5*time.Second))
		first := at(1, "k1", "10", stuck)
		time.Sleep(5*time.Second + hookonce.DefaultLease)
		wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
		close(gate)
		wantAnswer(t, <-first, 409, "request-in-progress")
		p.want(t, 1)
	})
}

// What is not kept frees the claim at once, and so does a panic.
func TestIdempotentLeaseFreesFailedWork(t *testing.T) {
	for name, fault := range map[string]func(http.ResponseWriter){
		"503":   func(w http.ResponseWriter) { w.WriteHeader(503) },
		"429":   func(w http.ResponseWriter) { w.WriteHeader(429) },
		"panic": func(http.ResponseWriter) { panic("a fault in the handler") },
		"abort": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
	} {
		t.Run(name, func(t *testing.T) {
			var p printer
			fails := true
			h := desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if fails {
					fault(w)
					return
				}
				p.ServeHTTP(w, r)
			}))
			func() {
				defer func() {
					if recovered := recover(); (recovered != nil) != (name == "abort") {
						t.Errorf("recovered %v", recovered)
					}
				}()
				if w := buy(h, "k1", "10"); name != "panic" && fmt.Sprint(w.Code) != name || name == "panic" && w.Code != 503 {
					t.Errorf("answered %d", w.Code)
				}
			}()
			fails = false
			wantAnswer(t, buy(h, "k1", "10"), 201, "")
			p.want(t, 1)
		})
	}
}

// A conflict that the first attempt was told is what came of the request. One that a later attempt was told may be
// with the first, which is still at work on the other side: it is not kept, and the client is told to ask again. In a
// transaction nothing is left of the first, and what the later one was told is.
func TestIdempotentLeaseKeepsTheConflictOfTheFirstAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		inTx           bool
		statuses, want []int
	}{
		"first":                {false, []int{409}, []int{409, 409}},
		"later":                {false, []int{503, 409, 201}, []int{503, 409, 201, 201}},
		"later in transaction": {true, []int{503, 409}, []int{503, 409, 409}},
	} {
		runs := 0
		answer := func(w http.ResponseWriter) {
			runs++
			w.WriteHeader(c.statuses[min(runs, len(c.statuses))-1])
		}
		h := desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(w) }))
		if c.inTx {
			h = counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, _ *memstore.Tx) error { answer(w); return nil })
		}
		for _, want := range c.want {
			w := buy(h, "k1", "10")
			if w.Code != want {
				t.Errorf("%s: answered %d, want %d", name, w.Code, want)
			}
			if again := w.Code == http.StatusConflict && w.Header().Get("Retry-After") != ""; again != (w.Code == http.StatusConflict && name == "later") {
				t.Errorf("%s: a %d says to ask again: %t", name, w.Code, again)
			}
		}
		if runs != len(c.statuses) {
			t.Errorf("%s: %d runs", name, runs)
		}
	}
}

// A failure that cannot be recorded is given all the same; the claim is free when the lease ends.
func TestIdempotentLeaseFailureNotRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		h := desk(faulty{Store: store, fail: away}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(429) }))
		if w := buy(h, "k1", "10"); w.Code != 429 {
			t.Errorf("answered %d", w.Code)
		}
		var p printer
		wantAnswer(t, buy(desk(store, &p), "k1", "10"), 409, "request-in-progress")
		time.Sleep(hookonce.DefaultLease)
		wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
	})
}

// An answer that is too large comes after an effect that nobody can undo, or refuses one for good: that is what all are told, those
// who wait for it as well. It counts as a failure, which somebody has to mend, and is logged once, under the name that clients have.
func TestIdempotentLeaseOversizeAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		store  bool // finds it too large, and not the limit of the handler
		told   string
	}{
		"done":                   {201, false, "the request was carried out, and its answer is larger than can be kept"},
		"done, to the store":     {201, true, "the request was carried out, and its answer is larger than can be kept"},
		"declined":               {422, false, "the request was refused (422), and that answer is larger than can be kept"},
		"declined, to the store": {422, true, "the request was refused (422), and that answer is larger than can be kept"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log strings.Builder
				var mu sync.Mutex
				seen := map[string]int{}
				store, limit, tries := faulty{Store: memstore.New()}, 1000, 0
				if c.store {
					limit, store.completeWith = 1<<20, func(persist func() error) error {
						if tries++; tries == 1 {
							return hookonce.ErrResponseTooLarge
						}
						return persist()
					}
				}
				runs := 0
				h := desk(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					runs++
					time.Sleep(time.Second)
					w.WriteHeader(c.status)
					if _, err := io.WriteString(w, strings.Repeat("x", 2000)); err != nil {
						panic(http.ErrAbortHandler) // as a proxy does
					}
				}), hookonce.WithMaxResponse(limit), hookonce.WithWait(time.Minute), hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
					hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) {
						mu.Lock()
						defer mu.Unlock()
						seen[fmt.Sprint(o.Status, " ", errors.Is(o.Err, hookonce.ErrResponseTooLarge))]++
					}))
				answers := at(3, "k1", "10", h)
				var first *httptest.ResponseRecorder
				var copies []*httptest.ResponseRecorder
				for range cap(answers) {
					if w := <-answers; w.Header().Get("Idempotency-Replayed") == "" {
						first = w
					} else {
						copies = append(copies, w)
					}
				}
				wantAnswer(t, first, 500, "answer-too-large")
				for _, w := range append(copies, buy(h, "k1", "10")) {
					wantReplay(t, w, first)
				}
				var doc struct{ Detail, Instance string }
				if err := json.Unmarshal(first.Body.Bytes(), &doc); err != nil || doc.Detail != c.told {
					t.Errorf("told %s, %v; want %s", first.Body, err, c.told)
				}
				if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "instance="+doc.Instance) ||
					!strings.Contains(line, fmt.Sprint("answered ", c.status)) {
					t.Errorf("logged %s", line)
				}
				if want := map[string]int{"failed true": 1, "duplicate false": 3}; !maps.Equal(seen, want) || runs != 1 {
					t.Errorf("observed %v after %d runs, want %v", seen, runs, want)
				}
			})
		})
	}
}

// A program that fails behind an answer that cannot be kept anyway has not carried the request out: the same request runs again,
// and the log says what happened.
func TestIdempotentLeasePanicBehindALongAnswer(t *testing.T) {
	var log strings.Builder
	runs := 0
	h := desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if runs++; runs > 1 {
			return
		}
		_, _ = io.WriteString(w, strings.Repeat("x", 2000))
		panic("a fault in the handler")
	}), hookonce.WithMaxResponse(1000), hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if w := buy(h, "k1", "10"); w.Code != 503 {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "a fault in the handler") {
		t.Errorf("logged %s", log.String())
	}
	if w := buy(h, "k1", "10"); w.Code != 200 || runs != 2 {
		t.Errorf("the same request was answered %d %s after %d runs", w.Code, w.Body, runs)
	}
}

// oversizeFailures answer with a status that is not kept, and with more than 1000 bytes.
var oversizeFailures = map[string]func(w http.ResponseWriter, status int){
	"overlooks that its page is not taken": func(w http.ResponseWriter, status int) {
		w.WriteHeader(status)
		io.WriteString(w, strings.Repeat("x", 2000))
	},
	"breaks off": func(w http.ResponseWriter, status int) {
		w.WriteHeader(status)
		if _, err := io.WriteString(w, strings.Repeat("x", 2000)); err != nil {
			panic(http.ErrAbortHandler) // as a proxy does
		}
	},
	"has a large header": func(w http.ResponseWriter, status int) {
		w.Header().Set("X-Page", strings.Repeat("x", 2000))
		w.WriteHeader(status)
	},
}

// A failure that passes does so with a page that is too large, too: what would not be kept is no
// answer for good. The client is told to come again, and the log says what it was not given.
func TestIdempotentLeaseOversizeFailure(t *testing.T) {
	for name, fail := range oversizeFailures {
		for _, status := range []int{500, 503, 429} {
			t.Run(fmt.Sprint(name, " ", status), func(t *testing.T) {
				var p printer
				var log strings.Builder
				fails := true
				h := desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if fails {
						fail(w, status)
						return
					}
					p.ServeHTTP(w, r)
				}), hookonce.WithMaxResponse(1000), hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
				wantRetryable(t, h)
				if !strings.Contains(log.String(), fmt.Sprint("answered ", status)) || !strings.Contains(log.String(), "1000 ") {
					t.Errorf("the log does not tell status and limit: %s", &log)
				}
				fails = false
				wantAnswer(t, buy(h, "k1", "10"), 201, "")
				p.want(t, 1)
			})
		}
	}
}

// The same in a transaction, which is rolled back. There a handler that breaks off wants the
// connection cut.
func TestIdempotentOversizeFailure(t *testing.T) {
	for name, fail := range oversizeFailures {
		if name == "breaks off" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var s till
			fails := true
			h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
				if fails {
					fail(w, http.StatusServiceUnavailable)
				}
				return s.charge(w, r, tx)
			}, hookonce.WithMaxResponse(1000))
			wantRetryable(t, h)
			s.want(t)
			fails = false
			wantAnswer(t, buy(h, "k1", "10"), 201, "")
			s.want(t, "10")
		})
	}
}

// wantRetryable buys something, and checks that the answer was cut short, and says that the same
// request may be sent again.
func wantRetryable(t *testing.T, h http.Handler) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("the connection is cut: %v", p)
		}
	}()
	w := buy(h, "k1", "10")
	wantAnswer(t, w, 503, "answer-incomplete")
	if !strings.Contains(w.Body.String(), `"retryable":true`) {
		t.Errorf("the client is not told to come again: %s", w.Body)
	}
}

// The client hangs up: the work goes on, and its answer is there for the next copy.
func TestIdempotentLeaseOutlivesTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		ctx, hangUp := context.WithCancel(t.Context())
		h := desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			hangUp()
			if r.Context().Err() != nil {
				w.WriteHeader(503)
				return
			}
			p.ServeHTTP(w, r)
		}))
		w := buy(h, "k1", "10", func(r *http.Request) { *r = *r.WithContext(ctx) })
		wantAnswer(t, w, 201, "")
		wantReplay(t, buy(h, "k1", "10"), w)
		p.want(t, 1)
	})
}

// What is not claimed goes to the handler as it is, streaming and all.
func TestIdempotentLeasePassesOthersOn(t *testing.T) {
	h := desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "x")
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Errorf("%s: %v", r.Method, err)
		}
	}), hookonce.WithOptionalKey())
	for _, c := range [][2]string{{"GET", "k1"}, {"HEAD", "k1"}, {"OPTIONS", ""}, {"POST", ""}} {
		w := buy(h, c[1], "10", func(r *http.Request) { r.Method = c[0] })
		if w.Code != 200 || !w.Flushed {
			t.Errorf("%s: answered %d, flushed %v", c[0], w.Code, w.Flushed)
		}
	}
	wantAnswer(t, buy(desk(memstore.New(), h), "", "10"), 400, "idempotency-key-missing")
}

func TestIdempotentLeaseStoreDown(t *testing.T) {
	var p printer
	wantAnswer(t, buy(desk(down{}, &p), "k1", "10"), 503, "unavailable")
	p.want(t, 0)
}

// down is a store that nobody reaches.
type down struct{ hookonce.ResponseStore }

func (down) Claim(context.Context, hookonce.ClaimRequest) (hookonce.Claim, error) {
	return hookonce.Claim{}, errAway
}

// awaiting is a store that tells when work is over.
type awaiting struct {
	*memstore.Store
	ended <-chan struct{}
	asked atomic.Int64
}

func (a *awaiting) Await(ctx context.Context, _ hookonce.Ref) error {
	select {
	case <-a.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (a *awaiting) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	a.asked.Add(1)
	return a.Store.Claim(ctx, req)
}

// A store that can tell is not asked again and again.
func TestIdempotentLeaseAwaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		ended := make(chan struct{})
		store := &awaiting{Store: memstore.New(), ended: ended}
		first := at(1, "k1", "10", desk(store.Store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(3500 * time.Millisecond)
			p.ServeHTTP(w, r)
		})))
		synctest.Wait()
		start := time.Now()
		second := make(chan *httptest.ResponseRecorder, 1)
		go func() { second <- buy(desk(store, &p, hookonce.WithWait(time.Minute)), "k1", "10") }()
		w := <-first
		close(ended)
		wantReplay(t, <-second, w)
		if took, asked := time.Since(start), store.asked.Load(); took != 3500*time.Millisecond || asked > 5 {
			t.Errorf("asked %d times in %v", asked, took)
		}
		p.want(t, 1)
	})
}

// hasty is a store that says after one round trip that the work is over, whatever it is, as for a claim in a transaction
// that is open.
type hasty struct{ *awaiting }

func (hasty) Await(context.Context, hookonce.Ref) error { time.Sleep(time.Millisecond); return nil }

// One that says so too early is not asked without a rest, and one that was right is not made to wait.
func TestIdempotentLeaseAwaitsNothing(t *testing.T) {
	for name, c := range map[string]struct {
		work, within time.Duration
		rounds       int64
	}{
		"it is over": {500 * time.Microsecond, time.Millisecond, 2},
		"it is not":  {3500 * time.Millisecond, 3600 * time.Millisecond, 37},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var p printer
				store := hasty{&awaiting{Store: memstore.New()}}
				first := at(1, "k1", "10", desk(store.Store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					time.Sleep(c.work)
					p.ServeHTTP(w, r)
				})))
				synctest.Wait()
				start := time.Now()
				second := buy(desk(store, &p, hookonce.WithWait(time.Minute)), "k1", "10")
				took, asked := time.Since(start), store.asked.Load()
				wantReplay(t, second, <-first)
				if took > c.within || asked > c.rounds {
					t.Errorf("asked %d times in %v", asked, took)
				}
				p.want(t, 1)
			})
		})
	}
}

// A claim that was so long on its way that its lease is over may be another's: nothing is begun under it.
func TestIdempotentLeaseThatCameLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		store := late(2 * time.Second)
		wantAnswer(t, buy(desk(store, &p, hookonce.WithLease(time.Second)), "k1", "10"), 503, "unavailable")
		p.want(t, 0)
		wantAnswer(t, buy(desk(store.Store, &p), "k1", "10"), 201, "")
		p.want(t, 1)
	})
}

// The context ends when the lease does, counted from when the store was asked for it, and not at some later
// attempt to extend it.
func TestIdempotentLeaseEndsOnTime(t *testing.T) {
	const lease = 3 * time.Second
	for name, c := range map[string]struct{ claim, extension, want time.Duration }{
		"never extended":   {0, 0, lease},
		"a slow claim":     {2 * time.Second, 0, lease},
		"extended once":    {0, time.Second / 2, time.Second + lease},
		"a slow extension": {0, 5 * time.Second / 4, 2*time.Second + time.Second/4 + lease},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store, extensions := faulty{Store: memstore.New()}, 0
				store.claim = func(persist func() error) error {
					err := persist()
					time.Sleep(c.claim)
					return err
				}
				store.extend = func(persist func() error) error {
					if extensions++; extensions > 1 && c.extension < time.Second || extensions > 2 || c.extension == 0 {
						return errAway
					}
					err := persist()
					time.Sleep(c.extension)
					return err
				}
				begun, ended := time.Now(), time.Duration(0)
				buy(desk(store, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					<-r.Context().Done()
					ended = time.Since(begun)
				}), hookonce.WithLease(lease), hookonce.WithTimeout(time.Minute)), "k1", "10")
				if ended != c.want {
					t.Errorf("it ended after %v, want %v", ended, c.want)
				}
			})
		})
	}
}
