package main

import (
	"context"
	"database/sql"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// newSQLiteShop returns a shop on a file of its own, whose queue answers as the handler does.
func newSQLiteShop(t *testing.T, queue http.HandlerFunc) *shop {
	t.Helper()
	d, err := open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	server := httptest.NewServer(queue)
	t.Cleanup(server.Close)
	return newShop(d, addresses{mail: "http://127.0.0.1:1", queue: server.URL}, secret)
}

func empty(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// A shop whose relay, or janitor, finds no tables that it can use ends with that, and waits for no
// signal.
func TestEndsWithItsWorkers(t *testing.T) {
	for worker, harm := range map[string]string{
		"relay":   "ALTER TABLE hookonce_effects RENAME COLUMN due_at TO something",
		"janitor": "DROP TABLE hookonce_claims",
	} {
		t.Run(worker, func(t *testing.T) {
			s := newSQLiteShop(t, empty)
			for _, statement := range []string{harm, "DROP TABLE hookonce_goose_db_version"} {
				if _, err := s.ExecContext(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			if err := s.run(ctx, listener); !errors.Is(err, hookonce.ErrSchemaMissing) || ctx.Err() != nil {
				t.Errorf("it ended with %v, want %v by itself (%v)", err, hookonce.ErrSchemaMissing, ctx.Err())
			}
		})
	}
}

// A listener that fails ends the shop, which says why.
func TestEndsWithItsListener(t *testing.T) {
	s := newSQLiteShop(t, empty)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := s.run(t.Context(), listener); !errors.Is(err, net.ErrClosed) {
		t.Errorf("it ended with %v, want %v", err, net.ErrClosed)
	}
}

// A queue that takes a question and never answers it is asked again.
func TestQueueThatDoesNotAnswer(t *testing.T) {
	for _, path := range []string{"/next", "/acknowledge"} {
		t.Run(path, func(t *testing.T) {
			var calls atomic.Int64
			again, over := make(chan struct{}), make(chan struct{})
			s := newSQLiteShop(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != path {
					_, _ = w.Write([]byte(`{"id":"m1","order":"o1"}`))
					return
				}
				switch calls.Add(1) {
				case 1:
					<-over
				case 2:
					close(again)
				}
				w.WriteHeader(http.StatusNoContent)
			})
			t.Cleanup(func() { close(over) })
			if s.client.Timeout <= 0 {
				t.Fatal("calls wait for ever")
			}
			s.client.Timeout = 200 * time.Millisecond
			paid := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "test", Key: "paid"}}
			_, err := s.store.Within(t.Context(), paid, func(tx *sql.Tx, c hookonce.Claim) error {
				_, _, err := hookonce.Transition(hookonce.ContextWith(t.Context(), s.store, c, nil), tx, "order/o1", "", "paid")
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				s.ship(ctx)
				close(ended)
			}()
			select {
			case <-again:
			case <-time.After(patience):
				t.Error("it still waits for the first answer")
			}
			cancel()
			<-ended
		})
	}
}
