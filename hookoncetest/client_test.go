package hookoncetest_test

import (
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

// order is the request of a client. Its body has the key, so that the effect shows it.
func order(key string) *http.Request {
	return httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(key))
}

// shopStore returns a store in the shop's database.
func shopStore(t *testing.T, s shop) *sqlstore.Store {
	t.Helper()
	store := sqlstore.New(s.DB, sqlstore.SQLite)
	if _, err := schema.Migrate(t.Context(), s.DB, schema.SQLite, schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	return store
}

// clientEndpoint answers 201 with what handle returns, and 500 if that is an error.
func clientEndpoint(handle func(ctx context.Context, key string) (string, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key, err := strconv.Unquote(r.Header.Get("Idempotency-Key"))
		if err != nil {
			http.Error(w, "", http.StatusBadRequest)
			return
		}
		answer, err := handle(r.Context(), key)
		if err != nil {
			http.Error(w, "", http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
		w.Write([]byte(answer))
	})
}

func TestClientStormPassesIdempotent(t *testing.T) {
	s := openShop(t)
	var numbers atomic.Int64
	handler := hookonce.Idempotent(shopStore(t, s), "idempotency", func(w http.ResponseWriter, r *http.Request, tx *sql.Tx) error {
		key, err := strconv.Unquote(r.Header.Get("Idempotency-Key"))
		if err != nil {
			return err
		}
		w.WriteHeader(http.StatusCreated)
		fmt.Fprintf(w, `{"order":%d}`, numbers.Add(1))
		return book(r.Context(), tx, key)
	}, hookonce.WithoutScope(), quiet)
	storm := hookoncetest.ClientStorm(t, handler, order)
	storm.Once(t, s.count(t))
	t.Log(storm)
}

func TestClientStormCatchesNaiveHandlers(t *testing.T) {
	var numbers atomic.Int64
	tests := []struct {
		name   string
		handle func(s shop) func(ctx context.Context, key string) (string, error)
		want   string
	}{
		{
			name: "an answer of its own to each",
			handle: func(s shop) func(context.Context, string) (string, error) {
				return func(ctx context.Context, key string) (string, error) {
					return fmt.Sprint(numbers.Add(1)), s.once(ctx, key)
				}
			},
			want: "was answered in different ways: copies one after the other: answered 201 (2 times)",
		},
		{
			name: "key without the effect",
			handle: func(s shop) func(context.Context, string) (string, error) {
				return func(ctx context.Context, key string) (string, error) {
					if first, err := remember(ctx, s, key); !first || err != nil {
						return "", err
					}
					return "", book(ctx, s, key)
				}
			},
			want: "was acknowledged and never happened: the work fails twice: answered 500",
		},
		{
			name: "no key at all",
			handle: func(s shop) func(context.Context, string) (string, error) {
				return func(ctx context.Context, key string) (string, error) { return "", book(ctx, s, key) }
			},
			want: "happened 2 times: copies one after the other",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := openShop(t)
			got := watch(t, func(tb testing.TB) {
				hookoncetest.ClientStorm(tb, clientEndpoint(tt.handle(s)), order).Once(tb, s.count(t))
			})
			if !strings.Contains(got, tt.want) {
				t.Errorf("the test does not say %q, but:\n%s", tt.want, got)
			}
		})
	}
}

func TestClientStormWithoutRequests(t *testing.T) {
	got := watch(t, func(tb testing.TB) {
		hookoncetest.ClientStorm(tb, http.NotFoundHandler(), func(string) *http.Request { return nil })
	})
	if !strings.Contains(got, "there is no request") {
		t.Error(got)
	}
}

// TestStormOf: what others sign passes as well, and is caught as well.
func TestStormOf(t *testing.T) {
	request := func(id string) *http.Request {
		return httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(id))
	}
	trusting := func(handle func(ctx context.Context, id string) error) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			id, err := io.ReadAll(r.Body)
			if err == nil {
				err = handle(r.Context(), string(id))
			}
			if err != nil {
				http.Error(w, "", http.StatusServiceUnavailable)
			}
		})
	}
	s := openShop(t)
	hookoncetest.StormOf(t, trusting(s.once), request).Once(t, s.count(t))

	got := watch(t, func(tb testing.TB) {
		naive := func(ctx context.Context, id string) error { return book(ctx, s, id) }
		hookoncetest.StormOf(tb, trusting(naive), request).Once(tb, s.count(t))
	})
	if want := "happened 2 times: copies one after the other"; !strings.Contains(got, want) {
		t.Errorf("the test does not say %q, but:\n%s", want, got)
	}
}
