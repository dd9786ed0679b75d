package hookonce_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

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

// Nobody who looks meanwhile sees the work, and nothing stays of it if its answer can not be recorded: the next copy
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
		"too large": {func(w http.ResponseWriter) { io.WriteString(w, "more than eight bytes") }, 500},
		"torn":      {func(w http.ResponseWriter) { w.Header().Set("Content-Length", "9") }, 503},
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
