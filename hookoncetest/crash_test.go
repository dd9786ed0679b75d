package hookoncetest_test

import (
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookoncetest"
	"github.com/hookonce/hookonce/memstore"
)

var points = map[string]hookoncetest.CrashPoint{"before": hookoncetest.BeforeCommit, "after": hookoncetest.AfterCommit}

// each crash of a storm hits another of its rounds.
var eighths = []int{1, 5, 9, 13, 17, 21}

func TestCrashesInAStorm(t *testing.T) {
	for name, point := range points {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			store := hookoncetest.Crash(shopStore(t, s), point, eighths...)
			webhook := hookonce.Webhook(store, "stripe", stripe, func(ctx context.Context, tx *sql.Tx, ev *hookonce.Event) error {
				return book(ctx, tx, ev.Key)
			}, quiet)
			hookoncetest.Storm(t, webhook, stripe).Once(t, s.count(t))
			if store.Crashes() < 3 {
				t.Errorf("it crashed %d times", store.Crashes())
			}
		})
	}
}

func TestCrashesInAStormOfClients(t *testing.T) {
	for name, point := range points {
		t.Run(name, func(t *testing.T) {
			s := openShop(t)
			store := hookoncetest.Crash(shopStore(t, s), point, eighths...)
			idempotent := hookonce.Idempotent(store, "orders", func(w http.ResponseWriter, r *http.Request, tx *sql.Tx) error {
				key, err := strconv.Unquote(r.Header.Get("Idempotency-Key"))
				if err != nil {
					return err
				}
				return book(r.Context(), tx, key)
			}, hookonce.WithoutScope(), quiet)
			hookoncetest.ClientStorm(t, idempotent, order).Once(t, s.count(t))
			if store.Crashes() < 3 {
				t.Errorf("it crashed %d times", store.Crashes())
			}
		})
	}
}

// TestCrashCatches: a handler whose effect is outside of the transaction passes every storm until a commit
// is lost.
func TestCrashCatches(t *testing.T) {
	s := openShop(t)
	store := hookoncetest.Crash(memstore.New(), hookoncetest.BeforeCommit, 1)
	webhook := hookonce.Webhook(store, "stripe", stripe, func(ctx context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
		return book(context.WithoutCancel(ctx), s, ev.Key)
	}, quiet)
	got := watch(t, func(tb testing.TB) { hookoncetest.Storm(tb, webhook, stripe).Once(tb, s.count(t)) })
	if want := "happened 2 times: copies one after the other: answered 503, 200"; !strings.Contains(got, want) {
		t.Errorf("the test does not say %q, but:\n%s", want, got)
	}
}

// TestCrashInLeaseMode: what is not recorded can be recorded again, and what is recorded stays.
func TestCrashInLeaseMode(t *testing.T) {
	complete := map[string]func(hookonce.ResponseStore, hookonce.Claim) error{
		"Complete": func(s hookonce.ResponseStore, c hookonce.Claim) error { return s.Complete(t.Context(), c) },
		"CompleteWith": func(s hookonce.ResponseStore, c hookonce.Claim) error {
			return s.CompleteWith(t.Context(), c, hookonce.Response{Status: http.StatusOK})
		},
	}
	states := map[string]hookonce.State{"before": hookonce.StateProcessing, "after": hookonce.StateDone}
	for method, record := range complete {
		for name, point := range points {
			t.Run(method+" "+name, func(t *testing.T) {
				store := hookoncetest.Crash(memstore.New(), point, 1)
				c, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "s", Key: "k"}, Lease: time.Minute})
				if err != nil {
					t.Fatal(err)
				}
				if err := record(store, c); !errors.Is(err, hookoncetest.ErrCrash) {
					t.Errorf("the crash is %v", err)
				}
				if got, err := store.Lookup(t.Context(), c.Ref); err != nil || got.State != states[name] {
					t.Errorf("the claim is %s, %v", got.State, err)
				}
				if err := record(store, c); err != nil {
					t.Errorf("recorded again: %v", err)
				}
			})
		}
	}
}

// TestCrashKeepsAbilities: guards and outbox of the store in it are found.
func TestCrashKeepsAbilities(t *testing.T) {
	store := hookoncetest.Crash(memstore.New(), hookoncetest.AfterCommit, 1)
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "s", Key: "k"}}
	_, err := store.Within(t.Context(), req, func(tx *memstore.Tx, c hookonce.Claim) error {
		newer, err := hookonce.NewerRank(hookonce.ContextWith(t.Context(), store, c, nil), tx, "order/1", hookonce.Version(1))
		if !newer {
			t.Error("the first version is not newer")
		}
		return err
	})
	if !errors.Is(err, hookonce.ErrUnknownOutcome) || !errors.Is(err, hookoncetest.ErrCrash) {
		t.Errorf("the crash is %v", err)
	}
}

func TestCrashRefusesNonsense(t *testing.T) {
	for name, f := range map[string]func(){
		"no store":  func() { hookoncetest.Crash[*memstore.Tx](nil, hookoncetest.AfterCommit, 1) },
		"no point":  func() { hookoncetest.Crash(memstore.New(), 0, 1) },
		"no number": func() { hookoncetest.Crash(memstore.New(), hookoncetest.AfterCommit) },
		"number 0":  func() { hookoncetest.Crash(memstore.New(), hookoncetest.AfterCommit, 1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("it does not panic")
				}
			}()
			f()
		})
	}
}
