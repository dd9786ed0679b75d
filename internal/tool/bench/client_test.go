//go:build linux

package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
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

// TestClaimsAreRight: each event has its effect once, however often it comes, and a signature that does not fit has none.
func TestClaimsAreRight(t *testing.T) {
	for name, open := range map[string]func(context.Context, serverOrder) (http.Handler, error){
		"hand-effect": handEffect, "library": library, "hand-statement": handStatement, "library-batch": libraryBatch,
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
			for _, tamper := range []bool{true, false, false} {
				body := payload()
				req := &hookonce.Request{Method: http.MethodPost, Body: body, Now: time.Now(), Header: http.Header{"Webhook-Id": {"evt_1"}}}
				if err := benchProvider().Sign(req); err != nil {
					t.Fatal(err)
				}
				want := http.StatusOK
				if tamper {
					body[0], want = ' ', http.StatusUnauthorized
				}
				r := httptest.NewRequest(http.MethodPost, "/in/bench", bytes.NewReader(body))
				r.Header = req.Header
				w := httptest.NewRecorder()
				if handler.ServeHTTP(w, r); w.Code != want {
					t.Errorf("answered %d, want %d: %s", w.Code, want, w.Body)
				}
			}
			var n int
			if err := pool.QueryRow(t.Context(), "SELECT count(*) FROM payments WHERE event = 'evt_1'").Scan(&n); err != nil || n != 1 {
				t.Errorf("%d effects, %v", n, err)
			}
		})
	}
}
