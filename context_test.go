package hookonce_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// wrapped is a store that is less able than what it wraps, and says what that is.
type wrapped struct{ hookonce.TxStore[*memstore.Tx] }

func (w wrapped) Unwrap() hookonce.TxStore[*memstore.Tx] { return w.TxStore }

// unable is a store that can claim and nothing else.
type unable struct{ hookonce.TxStore[*memstore.Tx] }

var claim = hookonce.Claim{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Token: 1}

// within runs fn in a transaction of store, with the context that handlers get.
func within(t *testing.T, store hookonce.TxStore[*memstore.Tx], key string, fn func(context.Context, *memstore.Tx) error) error {
	t.Helper()
	req := hookonce.ClaimRequest{Ref: hookonce.Ref{Source: "billing", Key: key}}
	_, err := store.Within(t.Context(), req, func(tx *memstore.Tx, c hookonce.Claim) error {
		return fn(hookonce.ContextWith(t.Context(), store, c, nil), tx)
	})
	return err
}

func TestHandlersKnowWhatTheyWorkOn(t *testing.T) {
	for _, c := range []struct{ name, body, key string }{
		{"keyed", "a 1", "a"},
		{"unkeyed", "- 1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			called := false
			h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
				called = true
				ref, ok := hookonce.RefFrom(ctx)
				if want := (hookonce.Ref{Source: "sender", Key: c.key}); !ok || ref != want {
					t.Errorf("RefFrom = %v, %v; want %v", ref, ok, want)
				}
				if hookonce.EventFrom(ctx) != ev {
					t.Error("EventFrom is not the handler's event")
				}
				return nil
			})
			if post(h, c.body); !called {
				t.Error("the handler was not called")
			}
		})
	}
}

// Handlers of requests with a key do as well: what they enqueue is asked for by the request, and the key that
// came in goes nowhere.
func TestIdempotentHandlersKnowWhatTheyWorkOn(t *testing.T) {
	store, w := memstore.New(), new(wire)
	h := counter(store, func(rw http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		w.call(r.Context(), t, "POST", charges, "")
		return hookonce.Enqueue(r.Context(), tx, hookonce.Effect{Name: "mail"})
	})
	for range 2 {
		r := httptest.NewRequest("POST", "/charges", strings.NewReader("7"))
		r.Header.Set("Idempotency-Key", "abc")
		h.ServeHTTP(httptest.NewRecorder(), r)
	}
	queued, err := store.Effects(t.Context(), hookonce.StatePending, 0, 10)
	if err != nil || len(queued) != 1 {
		t.Fatalf("effects: %v, %v", queued, err)
	}
	if ref := queued[0].Ref; ref.Source != "idempotency" || ref.Key == "" || ref.Key == "abc" {
		t.Errorf("the effect is asked for by %v", ref)
	}
	if len(w.keys) != 1 || w.keys[0] == "" || strings.Contains(w.keys[0], "abc") {
		t.Errorf("keys that went out: %v", w.keys)
	}
}

// An event that only says that something changed is handled without a claim: the next change has the same
// key, and its calls and effects must not be taken for copies.
func TestCoalescingEventsAreWorkWithoutAKey(t *testing.T) {
	called := false
	s := serveParticular(t, particular{coalesce: true}, func(ctx context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
		called = true
		if ref, ok := hookonce.RefFrom(ctx); !ok || ref.Key != "" || ev.Key == "" {
			t.Errorf("RefFrom = %v, %v", ref, ok)
		}
		return nil
	})
	if exchange(t, s, "POST", "ok", "a 1"); !called {
		t.Error("the handler was not called")
	}
}

func TestContextWithoutWork(t *testing.T) {
	ctx := t.Context()
	if ref, ok := hookonce.RefFrom(ctx); ok || hookonce.EventFrom(ctx) != nil {
		t.Errorf("found %v", ref)
	}
	ctx = hookonce.ContextWithRef(ctx, claim.Ref)
	if ref, ok := hookonce.RefFrom(ctx); !ok || ref != claim.Ref || hookonce.EventFrom(ctx) != nil {
		t.Errorf("RefFrom = %v, %v", ref, ok)
	}
}

// The innermost work counts, and contexts made of it keep it and still end with their parents.
func TestContextsOfWorkNest(t *testing.T) {
	parent, cancel := context.WithCancel(t.Context())
	outer := hookonce.ContextWith(parent, memstore.New(), claim, &hookonce.Event{})
	inner := hookonce.ContextWithRef(outer, hookonce.Ref{Source: "inner"})
	child, cancelChild := context.WithCancel(inner)
	defer cancelChild()
	if ref, _ := hookonce.RefFrom(child); ref.Source != "inner" || hookonce.EventFrom(child) != nil {
		t.Errorf("the work is %v", ref)
	}
	cancel()
	<-child.Done()
}

// A store that is wrapped keeps its abilities.
func TestStoresAreFoundBehindWrappers(t *testing.T) {
	store := memstore.New()
	err := within(t, wrapped{wrapped{store}}, "evt_1", func(ctx context.Context, tx *memstore.Tx) error {
		return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail"})
	})
	if err != nil {
		t.Fatal(err)
	}
	if queued, _ := store.Effects(t.Context(), hookonce.StatePending, 0, 10); len(queued) != 1 {
		t.Errorf("%d effects", len(queued))
	}
}

// What is missing is said in the error, with what to do.
func TestContextsWithoutTheAbility(t *testing.T) {
	tx := memstore.New().Begin()
	type other struct{}
	for _, c := range []struct {
		name string
		call func() error
		text string
	}{
		{"no work", func() error { return hookonce.Enqueue(t.Context(), tx, hookonce.Effect{Name: "mail"}) }, "pass on the context"},
		{"no store", func() error {
			_, err := hookonce.Newer(hookonce.ContextWithRef(t.Context(), claim.Ref), tx, &hookonce.Event{Source: "billing", Scope: "order", Rank: hookonce.Version(1)})
			return err
		}, "ContextWith"},
		{"another transaction", func() error {
			_, err := hookonce.Once(hookonce.ContextWith(t.Context(), memstore.New(), claim, nil), other{}, "fee", "1")
			return err
		}, "no transactions of type hookonce_test.other"},
		{"unable", func() error {
			_, _, err := hookonce.Transition(hookonce.ContextWith(t.Context(), unable{memstore.New()}, claim, nil), tx, "order", "", "paid")
			return err
		}, "hookonce_test.unable"},
		{"unable behind a wrapper", func() error {
			return hookonce.Enqueue(hookonce.ContextWith(t.Context(), wrapped{unable{memstore.New()}}, claim, nil), tx, hookonce.Effect{Name: "mail"})
		}, "nor can what it wraps"},
	} {
		if err := c.call(); err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v; want %q in it", c.name, err, c.text)
		}
	}
}

// An effect that names nothing is asked for by the work of the context.
func TestEnqueueKnowsWhoAsks(t *testing.T) {
	explicit := hookonce.Ref{Source: "shop", Key: "order_7"}
	for _, c := range []struct {
		name, key string
		given     hookonce.Ref
		want      hookonce.Ref
	}{
		{"work with a key", "evt_1", hookonce.Ref{}, hookonce.Ref{Source: "billing", Key: "evt_1"}},
		{"work without a key", "", hookonce.Ref{}, hookonce.Ref{Source: "billing"}},
		{"given", "evt_1", explicit, explicit},
		{"given without a key", "evt_1", hookonce.Ref{Source: "shop"}, hookonce.Ref{Source: "shop"}},
	} {
		store := memstore.New()
		err := within(t, store, c.key, func(ctx context.Context, tx *memstore.Tx) error {
			return hookonce.Enqueue(ctx, tx, hookonce.Effect{Ref: c.given, Name: "mail"})
		})
		queued, _ := store.Effects(t.Context(), hookonce.StatePending, 0, 10)
		if err != nil || len(queued) != 1 || queued[0].Ref != c.want {
			t.Errorf("%s: %v, %v; want %v", c.name, queued, err, c.want)
		}
	}
}

// What is enqueued commits with the claim, or not at all.
func TestEnqueueCommitsWithTheClaim(t *testing.T) {
	store := memstore.New()
	failing := true
	h := endpoint(store, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		if err := hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail"}); err != nil {
			return err
		}
		if failing {
			return errors.New("the mill burns")
		}
		return nil
	})
	for _, c := range []struct {
		failing bool
		effects int
	}{{true, 0}, {false, 1}, {false, 1}} {
		failing = c.failing
		post(h, "a 1")
		if queued, _ := store.Effects(t.Context(), hookonce.StatePending, 0, 10); len(queued) != c.effects {
			t.Errorf("failing %v: %d effects, want %d", c.failing, len(queued), c.effects)
		}
	}
}

func TestGuardsReachTheStore(t *testing.T) {
	err := within(t, memstore.New(), "evt_1", func(ctx context.Context, tx *memstore.Tx) error {
		if newer, err := hookonce.NewerRank(ctx, tx, "order_1", hookonce.Version(2)); !newer || err != nil {
			t.Errorf("the first version is not newer: %v, %v", newer, err)
		}
		if newer, err := hookonce.NewerRank(ctx, tx, "order_1", hookonce.Version(1)); newer || err != nil {
			t.Errorf("an older version is newer: %v, %v", newer, err)
		}
		if state, move, err := hookonce.Transition(ctx, tx, "order_1", "", "paid"); state != "paid" || move != hookonce.Moved || err != nil {
			t.Errorf("Transition = %q, %v, %v", state, move, err)
		}
		if state, move, err := hookonce.Transition(ctx, tx, "order_1", "", "cancelled"); state != "paid" || move != hookonce.Impossible || err != nil {
			t.Errorf("Transition = %q, %v, %v", state, move, err)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Every handler pays for it.
func TestContextOfWorkCostsOneAllocation(t *testing.T) {
	var store hookonce.TxStore[*memstore.Tx] = memstore.New()
	ctx, ev := context.Background(), &hookonce.Event{}
	var sink context.Context
	if n := testing.AllocsPerRun(100, func() { sink = hookonce.ContextWith(ctx, store, claim, ev) }); n > 1 || sink == nil {
		t.Errorf("%v allocations", n)
	}
}

// inDoors runs a handler behind both doors, each with a store of its own, and returns the status and what was logged.
func inDoors(t *testing.T, work func(ctx context.Context, store *memstore.Store, tx *memstore.Tx) error, check func(t *testing.T, status int, log string, store *memstore.Store)) {
	t.Helper()
	for _, door := range []string{"webhook", "idempotent"} {
		t.Run(door, func(t *testing.T) {
			store := memstore.New()
			var log bytes.Buffer
			logger := hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
			var answer *httptest.ResponseRecorder
			switch door {
			case "webhook":
				answer = post(endpoint(store, func(ctx context.Context, tx *memstore.Tx, _ *hookonce.Event) error { return work(ctx, store, tx) }, logger), "a 1")
			default:
				h := hookonce.Idempotent(store, "api", func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
					w.WriteHeader(http.StatusCreated)
					return work(r.Context(), store, tx)
				}, logger, hookonce.WithoutScope())
				req := httptest.NewRequest("POST", "/", strings.NewReader("x"))
				req.Header.Set("Idempotency-Key", "k1")
				answer = httptest.NewRecorder()
				h.ServeHTTP(answer, req)
			}
			check(t, answer.Code, log.String(), store)
		})
	}
}

// What is decided in another transaction would stay when the handler fails, and its next copy would find it decided.
func TestAnotherTransactionIsRefused(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, tx *memstore.Tx) error{
		"Enqueue": func(ctx context.Context, tx *memstore.Tx) error {
			return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail"})
		},
		"Once": func(ctx context.Context, tx *memstore.Tx) error {
			_, err := hookonce.Once(ctx, tx, "fee", "1")
			return err
		},
		"Newer": func(ctx context.Context, tx *memstore.Tx) error {
			_, err := hookonce.NewerRank(ctx, tx, "order", hookonce.Version(1))
			return err
		},
		"Transition": func(ctx context.Context, tx *memstore.Tx) error {
			_, _, err := hookonce.Transition(ctx, tx, "order", "", "paid")
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			inDoors(t, func(ctx context.Context, store *memstore.Store, tx *memstore.Tx) error {
				mine := store.Begin()
				if err := call(ctx, mine); err == nil || !strings.Contains(err.Error(), name+": that is not the transaction that the handler got") {
					t.Errorf("%v", err)
				}
				return errors.Join(mine.Commit(), call(ctx, tx))
			}, func(t *testing.T, status int, log string, store *memstore.Store) {
				if status < 500 || !strings.Contains(log, "the handler returned nil although "+name+" had failed") {
					t.Errorf("status %d: what was refused is not done\n%s", status, log)
				}
			})
		})
	}
}

// A handler that returns nil although a call had failed would lose what that was to do.
func TestHiddenErrorOfACall(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, tx *memstore.Tx){
		"Enqueue": func(ctx context.Context, tx *memstore.Tx) {
			_ = hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail"})
			_ = hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail", Payload: []byte("another one, without a step")})
		},
		"Once": func(ctx context.Context, tx *memstore.Tx) { _, _ = hookonce.Once(ctx, tx, "fee", "") },
		"Newer": func(ctx context.Context, tx *memstore.Tx) {
			_, _ = hookonce.NewerRank(ctx, tx, "", hookonce.Version(1))
		},
		"Transition": func(ctx context.Context, tx *memstore.Tx) { _, _, _ = hookonce.Transition(ctx, tx, "", "a", "b") },
	} {
		t.Run(name, func(t *testing.T) {
			inDoors(t, func(ctx context.Context, store *memstore.Store, tx *memstore.Tx) error {
				call(ctx, tx)
				return nil
			}, func(t *testing.T, status int, log string, store *memstore.Store) {
				queued, err := store.Effects(t.Context(), hookonce.StatePending, 0, 10)
				if status < 500 || len(queued) != 0 || err != nil || !strings.Contains(log, "the handler returned nil although "+name+" had failed") {
					t.Errorf("status %d, effects %v, %v\n%s", status, queued, err, log)
				}
			})
		})
	}
}
