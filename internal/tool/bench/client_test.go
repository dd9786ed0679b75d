//go:build linux

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
)

// TestEndpointsAreRight: what is measured side by side does the same, once.
func TestEndpointsAreRight(t *testing.T) {
	for name, open := range map[string]func(context.Context, serverOrder) (http.Handler, error){
		"hand-idempotent": handIdempotent, "library-idempotent": libraryIdempotent,
	} {
		t.Run(name, func(t *testing.T) {
			o := serverOrder{Store: pgtest.DSN(t)}
			handler, err := open(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			pool, err := openPool(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			storm := hookoncetest.ClientStorm(t, handler, func(key string) *http.Request {
				r := httptest.NewRequest(http.MethodPost, "/in/bench", strings.NewReader("{}"))
				r.Header.Set("Webhook-Id", key)
				return r
			})
			storm.Once(t, func(key string) int {
				var n int
				if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM payments WHERE event = $1", key).Scan(&n); err != nil {
					t.Error(err)
				}
				return n
			})
		})
	}
}
