package hookonce_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
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
