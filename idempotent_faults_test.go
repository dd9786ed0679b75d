package hookonce_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
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
