package hookonce_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// The faults of field.md that concern Idempotency-Key, and the two ends of every write: "failed, not
// persisted" and "failed, but persisted". Those of leases are in idempotent_lease_test.go.

func TestIdempotentUnknownCommit(t *testing.T) {
	for name, persisted := range map[string]bool{"not persisted": false, "persisted": true} {
		t.Run(name, func(t *testing.T) {
			var s till
			store := memstore.New()
			cut := store.With(memstore.WithCommit(func(persist func()) error {
				if persisted {
					persist()
				}
				return errors.New("connection reset by peer")
			}))
			w := buy(counter(cut, s.charge), "k1", "10")
			wantAnswer(t, w, 503, "unavailable")
			if !strings.Contains(w.Body.String(), "not known") {
				t.Errorf("the answer does not say that nobody knows: %s", w.Body)
			}
			retry := buy(counter(store, s.charge), "k1", "10")
			wantAnswer(t, retry, 201, "")
			s.want(t, "10")
			if replayed := retry.Header().Get("Idempotency-Replayed") == "true"; replayed != persisted {
				t.Errorf("replayed %v", replayed)
			}
		})
	}
}

// Nobody knows a copy of a request without a key: a client that was told to send it again would be charged twice. After a
// rollback nothing happened, and it may, unless the handler had called another system before.
func TestIdempotentUnknownCommitWithoutAKey(t *testing.T) {
	cut := func(persist func()) error { persist(); return errors.New("connection reset by peer") }
	reach := func(end chargeFunc) chargeFunc {
		return func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			hookonce.PinRequest(r.Context())
			return end(w, r, tx)
		}
	}
	away := func(http.ResponseWriter, *http.Request, *memstore.Tx) error { return errAway }
	for name, c := range map[string]struct {
		handle  chargeFunc // nil: it charges
		commit  func(persist func()) error
		key     string
		status  int
		kind    string
		again   bool
		charges []string
	}{
		"unknown":                      {commit: cut, status: 503, kind: "unavailable", charges: []string{"10"}},
		"rolled back":                  {handle: away, status: 503, kind: "unavailable", again: true},
		"an error after a call":        {handle: reach(away), status: 503, kind: "unavailable"},
		"an error after a call, a key": {handle: reach(away), key: "k1", status: 503, kind: "unavailable", again: true},
		"an error after a call by Transport": {handle: func(_ http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
			new(wire).call(r.Context(), t, "POST", charges, "10")
			return errAway
		}, status: 503, kind: "unavailable"},
		"a panic after a call": {handle: reach(func(http.ResponseWriter, *http.Request, *memstore.Tx) error { panic("no float") }), status: 503, kind: "unavailable"},
		"half an answer after a call": {handle: reach(func(w http.ResponseWriter, _ *http.Request, _ *memstore.Tx) error {
			w.Header().Set("Content-Length", "30")
			return nil
		}), status: 503, kind: "answer-incomplete"},
		"too long an answer after a call": {handle: reach(func(w http.ResponseWriter, _ *http.Request, _ *memstore.Tx) error {
			_, err := io.WriteString(w, strings.Repeat("x", 2000))
			return err
		}), status: 500, kind: "answer-too-large"},
		"too long an answer after a call, a key": {handle: reach(func(w http.ResponseWriter, _ *http.Request, _ *memstore.Tx) error {
			_, err := io.WriteString(w, strings.Repeat("x", 2000))
			return err
		}), key: "k1", status: 503, kind: "unavailable", again: true},
		"given up after a call": {handle: reach(func(http.ResponseWriter, *http.Request, *memstore.Tx) error { return hookonce.Permanent(errAway) }), status: 500, kind: "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			var s till
			store := memstore.New()
			if c.commit != nil {
				store = store.With(memstore.WithCommit(c.commit))
			}
			handle := c.handle
			if handle == nil {
				handle = s.charge
			}
			w := buy(counter(store, handle, hookonce.WithOptionalKey(), hookonce.WithMaxResponse(1000)), c.key, "10")
			if w.Code != c.status || !strings.Contains(w.Body.String(), ":problem:"+c.kind+`"`) || (w.Header().Get("Retry-After") != "") != c.again ||
				!strings.Contains(w.Body.String(), fmt.Sprintf(`"retryable":%t`, c.again)) || strings.Contains(w.Body.String(), "look before you send it again") == c.again {
				t.Errorf("answered %d %v %s", w.Code, w.Header(), w.Body)
			}
			s.want(t, c.charges...)
		})
	}
}

// traceless is a store that fails when it is to record a failure.
type traceless struct{ *memstore.Store }

func (s traceless) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	c, err := s.Store.Within(ctx, req, fn)
	if err != nil {
		err = fmt.Errorf("%w (%w: %w)", err, hookonce.ErrTraceLost, errAway)
	}
	return c, err
}

// What is told as final is on record.
func TestIdempotentLongAnswerWithoutATrace(t *testing.T) {
	long := func(w http.ResponseWriter, _ *http.Request, _ *memstore.Tx) error {
		_, err := io.WriteString(w, strings.Repeat("x", 2000))
		return err
	}
	for status, store := range map[int]hookonce.TxResponseStore[*memstore.Tx]{500: memstore.New(), 503: traceless{memstore.New()}} {
		if w := buy(counter(store, long, hookonce.WithMaxResponse(1000)), "k1", "10"); w.Code != status {
			t.Errorf("answered %d %s, want %d", w.Code, w.Body, status)
		}
	}
}

// forgetful is a store that cannot keep answers, or not read them.
type forgetful struct {
	*memstore.Store
	keep, read error
}

func (f *forgetful) KeepResponse(ctx context.Context, tx *memstore.Tx, ref hookonce.Ref, r hookonce.Response) error {
	if f.keep != nil {
		return f.keep
	}
	return f.Store.KeepResponse(ctx, tx, ref, r)
}

func (f *forgetful) Response(ctx context.Context, ref hookonce.Ref) (hookonce.Response, error) {
	if f.read != nil {
		return hookonce.Response{}, f.read
	}
	return f.Store.Response(ctx, ref)
}

// A copy in another process does the work between the rollback and the trace of a failure that is permanent: a client
// that was told so would begin anew under another key.
func TestIdempotentPermanentFailureThatIsNotOnRecord(t *testing.T) {
	var s till
	var seen []string
	store := memstore.New()
	copies := counter(store, s.charge)
	h := counter(store, func(http.ResponseWriter, *http.Request, *memstore.Tx) error {
		return hookonce.Permanent(textFunc(sync.OnceValue(func() string {
			wantAnswer(t, buy(copies, "k1", "10"), 201, "")
			return "no such account"
		})))
	}, hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) { seen = append(seen, o.Status) }))
	wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
	if w := buy(h, "k1", "10"); w.Code != 201 || w.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("the copy was answered %d %s", w.Code, w.Body)
	}
	s.want(t, "10")
	if got := strings.Join(seen, " "); got != "failed duplicate" {
		t.Errorf("observed %q", got)
	}
}

// Crash between effect and save: they are one. If the answer cannot be saved there is no effect.
func TestIdempotentAnswerNotSaved(t *testing.T) {
	var s till
	store := &forgetful{Store: memstore.New(), keep: errAway}
	h := counter(store, s.charge)
	wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
	s.want(t)
	store.keep = nil
	wantAnswer(t, buy(h, "k1", "10"), 201, "")
	s.want(t, "10")
}

// The effect is there and its answer cannot be read: nothing runs again.
func TestIdempotentAnswerNotReadable(t *testing.T) {
	var s till
	store := &forgetful{Store: memstore.New()}
	h := counter(store, s.charge)
	first := buy(h, "k1", "10")
	store.read = errAway
	wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
	store.read = hookonce.ErrNotFound
	wantAnswer(t, buy(h, "k1", "10"), 410, "answer-gone")
	store.read = nil
	wantReplay(t, buy(h, "k1", "10"), first)
	s.want(t, "10")
}

// 5xx after the commit: an answer of 5xx that somebody could take for a failure never stands beside an
// effect that happened, and one that is kept is the answer for ever.
func TestIdempotentNo5xxAfterTheCommit(t *testing.T) {
	var s till
	commits := 0
	store := memstore.New(memstore.WithCommit(func(persist func()) error { commits++; persist(); return nil }))
	h := counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		defer w.WriteHeader(500) // too late: the status is sent
		w.WriteHeader(500)
		return s.charge(w, r, tx)
	})
	if w := buy(h, "k1", "10"); w.Code != 500 || commits != 0 {
		t.Errorf("answered %d after %d commits", w.Code, commits)
	}
	s.want(t)
}

// Oversize answer: nothing happens, and the client is not told to try again.
func TestIdempotentOversizeAnswer(t *testing.T) {
	var s till
	large := true
	h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		if large {
			io.WriteString(w, strings.Repeat("x", 300)) // whose error the handler overlooks
			io.WriteString(w, strings.Repeat("x", 300))
		}
		return s.charge(w, r, tx)
	}, hookonce.WithMaxResponse(500))
	wantAnswer(t, buy(h, "k1", "10"), 500, "answer-too-large")
	s.want(t)
	large = false
	wantAnswer(t, buy(h, "k1", "10"), 201, "")
	s.want(t, "10")
}

// Replay to another principal: neither the answer nor that there is one.
func TestIdempotentReplayToAnotherPrincipal(t *testing.T) {
	h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		_, err := io.WriteString(w, "the balance of "+r.Header.Get("Tenant"))
		return err
	})
	buy(h, "k1", "10", setHeader("Tenant", "acme"))
	w := buy(h, "k1", "10", setHeader("Tenant", "globex"))
	if w.Code != 200 || w.Body.String() != "the balance of globex" || w.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("globex got %d %s %v", w.Code, w.Body, w.Header())
	}
	w = buy(h, "k1", "11", setHeader("Tenant", "initech"))
	if w.Code != 200 {
		t.Errorf("initech learns from %d that somebody used its key", w.Code)
	}
}

// Two endpoints that share a source share keys, and tell their requests apart; two sources share nothing.
func TestIdempotentSources(t *testing.T) {
	var s till
	store := memstore.New()
	buy(counter(store, s.charge), "k1", "10")
	wantAnswer(t, buy(counter(store, s.charge), "k1", "10", func(r *http.Request) { r.URL.Path = "/refunds" }), 422, "idempotency-key-reused")
	wantAnswer(t, buy(hookonce.Idempotent(store, "refunds", s.charge, quiet, hookonce.WithScope(tenant)), "k1", "10"), 201, "")
	s.want(t, "10", "10")
}

// A crash leaves 409 for 24 hours: not in a transaction, which leaves nothing, and a claim that another
// program holds under a lease is free when that ends.
func TestIdempotentTakesOverALease(t *testing.T) {
	var s till
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	store := memstore.New(memstore.WithClock(func() time.Time { return now }))
	var ref hookonce.Ref
	h := counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		ref, _ = hookonce.RefFrom(r.Context())
		return errors.Join(s.charge(w, r, tx), errors.New("find out the reference"))
	})
	buy(h, "k1", "10")
	if c, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: ref, Lease: time.Minute}); err != nil || c.Verdict != hookonce.Acquired {
		t.Fatalf("claim: %+v, %v", c, err)
	}
	h = counter(store, s.charge)
	wantAnswer(t, buy(h, "k1", "10"), 409, "request-in-progress")
	now = now.Add(time.Minute)
	wantAnswer(t, buy(h, "k1", "10"), 201, "")
	s.want(t, "10")
}

// After its retention a key is new.
func TestIdempotentForgetsWhatWasPurged(t *testing.T) {
	var s till
	now := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	store := memstore.New(memstore.WithClock(func() time.Time { return now }))
	h := counter(store, s.charge)
	buy(h, "k1", "10")
	now = now.Add(time.Second)
	if n, err := store.Purge(t.Context(), hookonce.PurgeRequest{Before: now, Limit: 10}); n != 1 || err != nil {
		t.Fatalf("purged %d, %v", n, err)
	}
	if w := buy(h, "k1", "10"); w.Code != 201 || w.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("answered %d %v", w.Code, w.Header())
	}
	s.want(t, "10", "10")
}

// The store is down: nobody is served past it.
func TestIdempotentStoreDown(t *testing.T) {
	var s till
	wantAnswer(t, buy(counter(downTx{}, s.charge), "k1", "10"), 503, "unavailable")
	s.want(t)
}

type downTx struct {
	hookonce.TxResponseStore[*memstore.Tx]
}

func (downTx) Within(context.Context, hookonce.ClaimRequest, func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	return hookonce.Claim{}, errAway
}

// A caller who is turned away leaves no row behind, in a transaction and under a lease. A later attempt does, and so
// does one that had reached the outside, or that failed in another way.
func TestIdempotentRefusalLeavesNoRow(t *testing.T) {
	for name, c := range map[string]struct {
		statuses []int
		outside  bool
		want     hookonce.State // empty: no row
	}{
		"401":                  {[]int{401}, false, ""},
		"403":                  {[]int{403}, false, ""},
		"407":                  {[]int{407}, false, ""},
		"twice":                {[]int{403, 403}, false, ""},
		"let in later":         {[]int{403, 201}, false, hookonce.StateDone},
		"after a failure":      {[]int{503, 403}, false, hookonce.StateFailed},
		"425":                  {[]int{425}, false, ""},
		"429":                  {[]int{429}, false, ""},
		"too often, then not":  {[]int{429, 201}, false, hookonce.StateDone},
		"429 after a failure":  {[]int{503, 429}, false, hookonce.StateFailed},
		"429 after a call":     {[]int{429}, true, hookonce.StateFailed},
		"408":                  {[]int{408}, false, hookonce.StateFailed},
		"503":                  {[]int{503}, false, hookonce.StateFailed},
		"404":                  {[]int{404}, false, hookonce.StateDone},
		"after a call outside": {[]int{403}, true, hookonce.StateFailed},
	} {
		for _, door := range []string{"Idempotent", "IdempotentLease"} {
			t.Run(door+" "+name, func(t *testing.T) {
				store := memstore.New()
				var ref hookonce.Ref
				runs := 0
				answer := func(ctx context.Context, w http.ResponseWriter) {
					ref, _ = hookonce.RefFrom(ctx)
					if c.outside {
						hookonce.PinRequest(ctx)
					}
					w.WriteHeader(c.statuses[runs])
					runs++
				}
				h := desk(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(r.Context(), w) }))
				if door == "Idempotent" {
					h = counter(store, func(w http.ResponseWriter, r *http.Request, _ *memstore.Tx) error { answer(r.Context(), w); return nil })
				}
				for i, status := range c.statuses {
					if w := buy(h, "k1", fmt.Sprint(10)); w.Code != status || runs != i+1 {
						t.Errorf("answered %d after %d runs", w.Code, runs)
					}
				}
				claim, err := store.Lookup(t.Context(), ref)
				if c.want == "" && !errors.Is(err, hookonce.ErrNotFound) || c.want != "" && (err != nil || claim.State != c.want) {
					t.Errorf("the claim is %+v, %v; want %q", claim, err, c.want)
				}
			})
		}
	}
}

// A declined request leaves the record of its answer and no trace of a failed attempt.
func TestIdempotentRollbackLeavesNoTrace(t *testing.T) {
	var s till
	var ref hookonce.Ref
	store := memstore.New()
	buy(counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		ref, _ = hookonce.RefFrom(r.Context())
		return s.decline(w, r, tx)
	}), "k1", "10")
	if c, err := store.Lookup(t.Context(), ref); err != nil || c.State != hookonce.StateDone || c.Token != 1 || c.LastError != "" {
		t.Errorf("the claim is %+v, %v", c, err)
	}
}

// full is a store that takes no new key.
type full struct{ *memstore.Store }

func (s full) Claim(ctx context.Context, req hookonce.ClaimRequest) (hookonce.Claim, error) {
	return hookonce.Claim{}, hookonce.RetryAfter(90*time.Second, hookonce.ErrTooManyKeys)
}

func (s full) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	return s.Claim(ctx, req)
}

// A key that the store does not take is told to come again, and that is no failure of ours.
func TestIdempotentTooManyKeys(t *testing.T) {
	var seen []hookonce.Observation
	observe := hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) { seen = append(seen, o) })
	runs := 0
	for name, h := range map[string]http.Handler{
		"Idempotent": hookonce.Idempotent(full{memstore.New()}, "counter", func(http.ResponseWriter, *http.Request, *memstore.Tx) error { runs++; return nil },
			hookonce.WithoutScope(), observe),
		"IdempotentLease": hookonce.IdempotentLease(full{memstore.New()}, "counter", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { runs++ }),
			hookonce.WithoutScope(), observe),
	} {
		seen = nil
		w := buy(h, "k1", "10")
		wantAnswer(t, w, 429, "too-many-keys")
		if w.Header().Get("Retry-After") != "90" || runs != 0 {
			t.Errorf("%s: answered %v after %d runs", name, w.Header(), runs)
		}
		if len(seen) != 1 || seen[0].Status != "rejected" || seen[0].Reason != hookonce.ReasonTooManyKeys {
			t.Errorf("%s: observed %+v", name, seen)
		}
	}
}

// decline writes a charge, finds that the card was declined, and undoes the charge under its answer.
func (s *till) decline(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
	n := s.runs.Add(1)
	tx.OnCommit(func() { s.mu.Lock(); s.charges = append(s.charges, "declined"); s.mu.Unlock() })
	w.WriteHeader(http.StatusPaymentRequired)
	fmt.Fprintf(w, "declined by run %d", n)
	return fmt.Errorf("the card was declined: %w", hookonce.ErrRollback)
}

// between is a store in which something happens between two calls of Within.
type between struct {
	hookonce.TxResponseStore[*memstore.Tx]
	calls int
	then  func() error
}

func (b *between) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	if b.calls++; b.calls == 2 {
		if err := b.then(); err != nil {
			return hookonce.Claim{}, err
		}
	}
	return b.TxResponseStore.Within(ctx, req, fn)
}

// The answer of work that was undone is given to every copy, and the work stays undone.
func TestIdempotentRollbackKeepsTheAnswer(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.decline)
	first := buy(h, "k1", "10")
	wantAnswer(t, first, 402, "")
	wantReplay(t, buy(h, "k1", "10"), first)
	wantAnswer(t, buy(h, "k1", "11"), 422, "idempotency-key-reused")
	s.want(t)
	if runs := s.runs.Load(); runs != 1 {
		t.Errorf("%d runs", runs)
	}
}

// Nobody who looks meanwhile sees the work, and nothing stays of it if its answer cannot be recorded: the next copy
// does it again.
func TestIdempotentRollbackWhoseAnswerIsNotRecorded(t *testing.T) {
	var s till
	store := &between{TxResponseStore: memstore.New(), then: func() error { return errAway }}
	wantAnswer(t, buy(counter(store, s.decline), "k1", "10"), 503, "unavailable")
	s.want(t)
	wantAnswer(t, buy(counter(store, s.charge), "k1", "10"), 201, "")
	s.want(t, "10")
}

// The key is free between the two transactions. Who gets it then has the last word.
func TestIdempotentRollbackIsOvertaken(t *testing.T) {
	for name, c := range map[string]struct {
		body   string
		status int
		kind   string
	}{
		"by a copy":          {"10", 201, ""},
		"by another request": {"11", 422, "idempotency-key-reused"},
	} {
		t.Run(name, func(t *testing.T) {
			var s till
			store := memstore.New()
			overtaken := &between{TxResponseStore: store}
			overtaken.then = func() error {
				wantAnswer(t, buy(counter(store, s.charge), "k1", c.body), 201, "")
				return nil
			}
			w := buy(counter(overtaken, s.decline), "k1", "10")
			wantAnswer(t, w, c.status, c.kind)
			s.want(t, c.body)
		})
	}
}

// An answer that is not kept is not kept with a rollback either, nor one that is too large.
func TestIdempotentRollbackOfWhatIsNotKept(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		want   int
	}{
		"503":       {func(w http.ResponseWriter) { w.WriteHeader(503) }, 503},
		"too large": {func(w http.ResponseWriter) { w.WriteHeader(402); io.WriteString(w, "more than eight bytes") }, 500},
		"torn":      {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9"); w.WriteHeader(402) }, 503},
	} {
		var s till
		h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			s.runs.Add(1)
			c.answer(w)
			return hookonce.ErrRollback
		}, hookonce.WithMaxResponse(8))
		for range 2 {
			if w := buy(h, "k1", "10"); w.Code != c.want {
				t.Errorf("%s: answered %d, want %d", name, w.Code, c.want)
			}
		}
		if runs := s.runs.Load(); runs != 2 {
			t.Errorf("%s: %d runs", name, runs)
		}
	}
}

// Nobody is told that work was done which was undone: neither by an answer that the handler did not write, nor by one
// that it wrote before. The failure is on record, and the next copy does the work.
func TestIdempotentRollbackOfASuccess(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(http.ResponseWriter)
		trace  string
	}{
		"none":        {func(http.ResponseWriter) {}, "the handler wrote none: over the limit"},
		"header only": {func(w http.ResponseWriter) { w.Header().Set("Location", "/charges/1") }, "the handler wrote none: over the limit"},
		"empty write": {func(w http.ResponseWriter) { w.Write(nil) }, "the answer 200 is not kept"},
		"201":         {func(w http.ResponseWriter) { w.WriteHeader(201); io.WriteString(w, "paid") }, "the answer 201 is not kept"},
		"303":         {func(w http.ResponseWriter) { w.WriteHeader(303) }, "the answer 303 is not kept"},
	} {
		for _, key := range []string{"k1", ""} {
			t.Run(name+" "+key, func(t *testing.T) {
				var s till
				var ref hookonce.Ref
				store := memstore.New()
				fails := counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
					ref, _ = hookonce.RefFrom(r.Context())
					c.answer(w)
					return fmt.Errorf("over the limit: %w", hookonce.ErrRollback)
				}, hookonce.WithOptionalKey())
				for range 2 {
					w := buy(fails, key, "10")
					wantAnswer(t, w, 503, "unavailable")
					if strings.Contains(w.Body.String(), "paid") || w.Header().Get("Location") != "" {
						t.Errorf("answered %v %s", w.Header(), w.Body)
					}
				}
				if key != "" {
					failed, err := store.Lookup(t.Context(), ref)
					if err != nil || failed.State != hookonce.StateFailed || failed.Token != 2 || !strings.Contains(failed.LastError, c.trace) {
						t.Errorf("the claim is %+v, %v; want one that says %q", failed, err, c.trace)
					}
				}
				wantAnswer(t, buy(counter(store, s.charge, hookonce.WithOptionalKey()), key, "10"), 201, "")
				s.want(t, "10")
			})
		}
	}
}

// Without a key there is no copy.
func TestIdempotentRollbackWithoutAKey(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.decline, hookonce.WithOptionalKey())
	for range 2 {
		wantAnswer(t, buy(h, "", "10"), 402, "")
	}
	s.want(t)
}

// For a webhook it is an error like any other: there is no answer to keep.
func TestWebhookRollback(t *testing.T) {
	h := endpoint(memstore.New(), func(context.Context, *memstore.Tx, *hookonce.Event) error { return hookonce.ErrRollback })
	want(t, post(h, "a 1"), 503, "failed")
}

// What a handler writes before its answer is cut short, and what the client is told in its place.
var truncations = map[string]struct {
	answer http.HandlerFunc
	status int
	kind   string
}{
	"the context ends while it writes": {func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, `{"charged":`)
		<-r.Context().Done()
	}, 503, "answer-incomplete"},
	"the context ends before it writes": {func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		io.WriteString(w, `{"charged":`)
	}, 503, "answer-incomplete"},
	"the context ends and it says so": {func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(504)
	}, 504, ""},
	"too long, and the context ends": {func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		io.WriteString(w, strings.Repeat("x", 2000))
	}, 503, "answer-incomplete"},
	"less than it declares": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "30")
		io.WriteString(w, `{"charged":`)
	}, 503, "answer-incomplete"},
	"nothing of what it declares": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "30")
	}, 503, "answer-incomplete"},
	"more than it declares": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "5")
		io.WriteString(w, `{"charged":`)
	}, 503, "answer-incomplete"},
}

// An answer that was cut short is neither kept nor given: the client is told to come again, and the claim is free.
func TestIdempotentLeaseKeepsNoTruncatedAnswer(t *testing.T) {
	for name, c := range truncations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memstore.New()
				cut := desk(store, c.answer, hookonce.WithTimeout(5*time.Second), hookonce.WithMaxResponse(1000))
				w := buy(cut, "k1", "10")
				wantAnswer(t, w, c.status, c.kind)
				if strings.Contains(w.Body.String(), "charged") {
					t.Errorf("the client was given the torso %s", w.Body)
				}
				var p printer
				wantAnswer(t, buy(desk(store, &p), "k1", "11"), 422, "idempotency-key-reused") // who knows what the first did
				wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
				p.want(t, 1)
			})
		})
	}
}

// The same after a lease that was lost and that nobody took over: its answer would be recorded under a token
// that is still current.
func TestIdempotentLeaseKeepsNoAnswerAfterALostLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		lost := desk(faulty{Store: store, extend: away}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			io.WriteString(w, "written without a lease")
		}), hookonce.WithTimeout(time.Hour))
		wantAnswer(t, buy(lost, "k1", "10"), 503, "answer-incomplete")
		var p printer
		wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
		p.want(t, 1)
	})
}

// A proxy whose upstream breaks off hands on what it got. Where no server is round it, it does not even panic: only
// the length that the upstream declared tells.
func TestIdempotentLeaseBehindAProxyThatIsCutOff(t *testing.T) {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "30")
		io.WriteString(w, `{"charged":`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer upstream.Close()
	to, err := url.Parse(upstream.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, ErrorLog: log.New(io.Discard, "", 0)}
	store := memstore.New()
	wantAnswer(t, buy(desk(store, proxy), "k1", "10"), 503, "answer-incomplete")
	var p printer
	wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
	p.want(t, 1)
}

// A declared length that is met, or that counts for nothing, is no reason.
func TestIdempotentKeepsAnswersThatAreWhole(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{
		"declared": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "2")
			fmt.Fprint(w, "ok")
		},
		"declared empty": func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Content-Length", "0") },
		"204": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(204)
		},
		"304": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "9")
			w.WriteHeader(304)
		},
		"no number": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "x")
			fmt.Fprint(w, "ok")
		},
		"declared when too late": func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprint(w, "ok")
			w.Header().Set("Content-Length", "9")
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := desk(memstore.New(), answer)
			first := buy(h, "k1", "10")
			wantReplay(t, buy(h, "k1", "10"), first)
		})
	}
}

// In a transaction the work is undone with the answer.
func TestIdempotentKeepsNoTruncatedAnswer(t *testing.T) {
	for name, c := range truncations {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s till
				store := memstore.New()
				cut := counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
					tx.OnCommit(func() { t.Error("the work under half an answer was committed") })
					c.answer(w, r)
					return nil
				}, hookonce.WithTimeout(5*time.Second), hookonce.WithMaxResponse(1000))
				wantAnswer(t, buy(cut, "k1", "10"), c.status, c.kind)
				wantAnswer(t, buy(counter(store, s.charge), "k1", "10"), 201, "")
				s.want(t, "10")
			})
		})
	}
}
