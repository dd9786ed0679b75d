package storetest

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/hookonce/hookonce"
)

// bank charges once per Idempotency-Key, and answers a repeated one with what it charged first.
type bank struct {
	mu      sync.Mutex
	charged map[string]string
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	amount, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.charged[key]; !known {
		b.charged[key] = string(amount)
	}
	fmt.Fprint(w, "charged ", b.charged[key])
}

// changedRequestAfterOutboundCall lets a request fail after the bank has charged for it. Another one under the
// same key must not be told that this was its charge.
func changedRequestAfterOutboundCall[Tx any](t *testing.T, f *txFixture[Tx]) {
	charges := httptest.NewServer(&bank{charged: map[string]string{}})
	defer charges.Close()
	client := &http.Client{Transport: hookonce.Transport(charges.Client().Transport)}
	lost := errors.New("the answer was lost")
	shop := hookonce.Idempotent(keeper(t, f.TxStore), "orders", func(w http.ResponseWriter, r *http.Request, tx Tx) error {
		amount, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		call, err := http.NewRequestWithContext(r.Context(), http.MethodPost, charges.URL, strings.NewReader(string(amount)))
		if err != nil {
			return err
		}
		answer, err := client.Do(call)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		order := fmt.Sprintf("order of %s: %s", amount, text)
		fmt.Fprint(w, order)
		return errors.Join(err, f.db.Effect(r.Context(), tx, order), lost)
	}, hookonce.WithoutScope(), hookonce.WithLogger(slog.New(slog.DiscardHandler)))

	order := func(amount string, status int) string {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(amount))
		r.Header.Set("Idempotency-Key", "k1")
		w := httptest.NewRecorder()
		shop.ServeHTTP(w, r)
		if w.Code != status {
			t.Fatalf("the order of %s was answered %d %s, want %d", amount, w.Code, w.Body, status)
		}
		return w.Body.String()
	}
	order("100", 503)
	lost = nil
	contains(t, order("200", 422), "idempotency-key-reused")
	contains(t, order("100", 200), "order of 100: charged 100")
	f.effects(t, map[string]int{"order of 100: charged 100": 1})
	contains(t, order("200", 422), "idempotency-key-reused")
}
