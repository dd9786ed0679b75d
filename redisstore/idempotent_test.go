package redisstore_test

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/redisstore"
)

// Many first requests at once, over two processes: one runs, and all are given its answer.
func TestIdempotentLeaseManyAtOnce(t *testing.T) {
	var runs atomic.Int64
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["X-Odd"] = []string{"caf\xe9", " a: b"}
		fmt.Fprintf(w, "run %d \x00", runs.Add(1))
	})
	prefix := redisstore.WithPrefix(fresh())
	var handlers []http.Handler
	for range 2 {
		store := redisstore.New(connect(t, redistest.Addr(t)), prefix)
		handlers = append(handlers, hookonce.IdempotentLease(store, "idempotency", next, hookonce.WithoutScope(), hookonce.WithWait(20*time.Second), hookonce.WithLogger(slog.New(slog.DiscardHandler))))
	}
	var senders sync.WaitGroup
	for i := range 50 {
		senders.Go(func() {
			r := httptest.NewRequest(http.MethodPost, "/labels", strings.NewReader("parcel 7"))
			r.Header.Set("Idempotency-Key", "k1")
			w := httptest.NewRecorder()
			handlers[i%2].ServeHTTP(w, r)
			if w.Code != 200 || w.Body.String() != "run 1 \x00" || fmt.Sprintf("%q", w.Header()["X-Odd"]) != `["caf\xe9" "a: b"]` {
				t.Errorf("answered %d %q %q", w.Code, w.Body, w.Header()["X-Odd"])
			}
		})
	}
	senders.Wait()
}
