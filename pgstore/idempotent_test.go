package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/pgstore"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// charges is an endpoint whose effect is a row, and whose answer is the id of the charge.
func charges(store *pgstore.Store, opts ...hookonce.IdempotentOption) http.Handler {
	var runs atomic.Int64
	return hookonce.Idempotent(store, "idempotency", func(w http.ResponseWriter, r *http.Request, tx pgx.Tx) error {
		id, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(r.Context(), "INSERT INTO effects VALUES ($1)", string(id)); err != nil {
			return err
		}
		w.Header().Add("X-Odd", "caf\xe9")
		w.Header().Add("X-Odd", " a: b")
		w.WriteHeader(http.StatusCreated)
		_, err = fmt.Fprintf(w, "run %d of %s \x00", runs.Add(1), id)
		return err
	}, append([]hookonce.IdempotentOption{hookonce.WithoutScope(), hookonce.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
}

func send(h http.Handler, key, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/charges", strings.NewReader(body))
	r.Header.Set("Idempotency-Key", key)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// insist sends until the answer is not that the client should come again.
func insist(t *testing.T, h http.Handler, key, body string) *httptest.ResponseRecorder {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if w := send(h, key, body); w.Code != http.StatusConflict && w.Code != http.StatusServiceUnavailable {
			return w
		}
	}
	t.Errorf("%s: no answer in time", key)
	return httptest.NewRecorder()
}

// another returns a pool on the same database, as another process has it, with that isolation level.
func another(t *testing.T, pool *pgxpool.Pool, level string) *pgxpool.Pool {
	t.Helper()
	cfg := pool.Config()
	if level != "" {
		cfg.ConnConfig.RuntimeParams["default_transaction_isolation"] = level
	}
	p, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func wantEffects(t *testing.T, pool *pgxpool.Pool, n int) {
	t.Helper()
	happened, err := testdb.Counts(t.Context(), pool, "effects")
	if err != nil {
		t.Fatal(err)
	}
	for id, times := range happened {
		if times != 1 {
			t.Errorf("%s happened %d times", id, times)
		}
	}
	if len(happened) != n {
		t.Errorf("%d effects, want %d", len(happened), n)
	}
}

func TestIdempotent(t *testing.T) {
	store, pool := newStore(t)
	h := charges(store)
	first := send(h, "k1", "ch_1")
	again := send(charges(store), "k1", "ch_1") // as another process has it
	if first.Code != 201 || again.Code != 201 || again.Body.String() != first.Body.String() || fmt.Sprint(again.Header()["X-Odd"]) != fmt.Sprint(first.Header()["X-Odd"]) || again.Header().Get("Idempotency-Replayed") != "true" {
		t.Errorf("first %d %q %v, copy %d %q %v", first.Code, first.Body, first.Header(), again.Code, again.Body, again.Header())
	}
	if w := send(h, "k1", "ch_2"); w.Code != 422 {
		t.Errorf("other content was answered %d", w.Code)
	}
	wantEffects(t, pool, 1)
}

// A hundred first requests at once, over two processes: one run, one answer.
func TestIdempotentManyAtOnce(t *testing.T) {
	store, pool := newStore(t)
	wait := hookonce.WithWait(20 * time.Second)
	handlers := []http.Handler{charges(store, wait), charges(pgstore.New(another(t, pool, "")), wait)}
	var senders sync.WaitGroup
	var mu sync.Mutex
	texts := map[string]int{}
	for i := range 100 {
		senders.Go(func() {
			w := send(handlers[i%2], "k1", "ch_1")
			mu.Lock()
			defer mu.Unlock()
			texts[fmt.Sprintf("%d %s", w.Code, w.Body)]++
		})
	}
	senders.Wait()
	if texts["201 run 1 of ch_1 \x00"] != 100 {
		t.Errorf("answers %v", texts)
	}
	wantEffects(t, pool, 1)
}

// Serializable and repeatable-read callers: whoever loses a race comes again, and each effect happens once.
func TestIdempotentUnderStricterIsolation(t *testing.T) {
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			_, pool := newStore(t)
			strict := another(t, pool, level)
			// Handlers of their own, so that copies do not wait in memory.
			var senders sync.WaitGroup
			for copies := range 6 {
				h := charges(pgstore.New(strict))
				senders.Go(func() {
					for i := range 20 {
						id := fmt.Sprint("ch_", (i+copies)%20)
						if w := insist(t, h, id, id); w.Code != 201 {
							t.Errorf("%s: answered %d %s", id, w.Code, w.Body)
						}
					}
				})
			}
			senders.Wait()
			wantEffects(t, pool, 20)
		})
	}
}

// The server cuts the connection of a handler that is at work: nothing happened, and the copy runs.
func TestIdempotentCutMidway(t *testing.T) {
	store, pool := newStore(t)
	cut := true
	h := hookonce.Idempotent(store, "idempotency", func(w http.ResponseWriter, r *http.Request, tx pgx.Tx) error {
		if _, err := tx.Exec(r.Context(), "INSERT INTO effects VALUES ('ch_1')"); err != nil {
			return err
		}
		if cut {
			_, err := tx.Exec(r.Context(), "SELECT pg_terminate_backend(pg_backend_pid())")
			return errors.Join(err, errors.New("the server is still there"))
		}
		return nil
	}, hookonce.WithoutScope(), hookonce.WithLogger(slog.New(slog.DiscardHandler)))
	if w := send(h, "k1", "ch_1"); w.Code != 503 || w.Header().Get("Retry-After") == "" {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	wantEffects(t, pool, 0)
	cut = false
	if w := send(h, "k1", "ch_1"); w.Code != 200 {
		t.Errorf("the copy was answered %d %s", w.Code, w.Body)
	}
	wantEffects(t, pool, 1)
}

// Under a lease: two processes, one run, and the answer is on record for both.
func TestIdempotentLease(t *testing.T) {
	store, pool := newStore(t)
	var runs atomic.Int64
	next := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "run %d", runs.Add(1))
	})
	var handlers []http.Handler
	for _, s := range []*pgstore.Store{store, pgstore.New(another(t, pool, ""))} {
		handlers = append(handlers, hookonce.IdempotentLease(s, "idempotency", next, hookonce.WithoutScope(), hookonce.WithWait(20*time.Second), hookonce.WithLogger(slog.New(slog.DiscardHandler))))
	}
	var senders sync.WaitGroup
	for i := range 50 {
		senders.Go(func() {
			if w := send(handlers[i%2], "k1", "ch_1"); w.Code != 200 || w.Body.String() != "run 1" {
				t.Errorf("answered %d %s", w.Code, w.Body)
			}
		})
	}
	senders.Wait()
	if runs.Load() != 1 {
		t.Errorf("%d runs", runs.Load())
	}
}

// A handler that declines undoes its rows, and its answer is that of every copy, also of those that wait for the
// key in another process and get it between the two transactions: then theirs is.
func TestIdempotentRollback(t *testing.T) {
	store, pool := newStore(t)
	var runs atomic.Int64
	decline := func(store *pgstore.Store) http.Handler {
		return hookonce.Idempotent(store, "idempotency", func(w http.ResponseWriter, r *http.Request, tx pgx.Tx) error {
			if _, err := tx.Exec(r.Context(), "INSERT INTO effects VALUES ('ch_1')"); err != nil {
				return err
			}
			w.WriteHeader(http.StatusPaymentRequired)
			fmt.Fprintf(w, "declined by run %d", runs.Add(1))
			return hookonce.ErrRollback
		}, hookonce.WithoutScope(), hookonce.WithWait(20*time.Second), hookonce.WithLogger(slog.New(slog.DiscardHandler)))
	}
	handlers := []http.Handler{decline(store), decline(pgstore.New(another(t, pool, "")))}
	answers := make([]*httptest.ResponseRecorder, 20)
	var senders sync.WaitGroup
	for i := range answers {
		senders.Go(func() { answers[i] = send(handlers[i%2], "k1", "10") })
	}
	senders.Wait()
	for _, w := range answers {
		if w.Code != 402 || w.Body.String() != answers[0].Body.String() {
			t.Errorf("answered %d %s, another %s", w.Code, w.Body, answers[0].Body)
		}
	}
	wantEffects(t, pool, 0)
}

// Postgres takes no field of a gigabyte, and is not sent one: the answer says so, and the work is
// undone. What the server itself says of a limit is told alike.
func TestAnswerAboveTheLimit(t *testing.T) {
	store, pool := newStore(t)
	huge := hookonce.Response{Status: 200, Body: make([]byte, 1<<30)}
	ref := hookonce.Ref{Source: "charges", Key: "k1"}
	_, err := store.Within(t.Context(), hookonce.ClaimRequest{Ref: ref}, func(tx pgx.Tx, c hookonce.Claim) error {
		return store.KeepResponse(t.Context(), tx, ref, huge)
	})
	if !errors.Is(err, hookonce.ErrResponseTooLarge) {
		t.Errorf("Within = %v", err)
	}
	c, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: ref, Lease: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CompleteWith(t.Context(), c, huge); !errors.Is(err, hookonce.ErrResponseTooLarge) {
		t.Errorf("CompleteWith = %v", err)
	}
	mustExec(t, pool, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE program_limit_exceeded; END'`)
	mustExec(t, pool, `CREATE TRIGGER refusal BEFORE INSERT ON hookonce.responses FOR EACH ROW EXECUTE FUNCTION refuse()`)
	if err := store.CompleteWith(t.Context(), c, hookonce.Response{Status: 200}); !errors.Is(err, hookonce.ErrResponseTooLarge) {
		t.Errorf("CompleteWith = %v", err)
	}
}

// Of a handler's transaction a savepoint is a part, and a transaction of the pool is not. What fails in a savepoint may be undone.
func TestPartsOfTheTransaction(t *testing.T) {
	for name, tt := range map[string]struct {
		work   func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx) error
		status int
		mails  int
	}{
		"a transaction of the pool": {func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, pool, func(mine pgx.Tx) error { return hookonce.Enqueue(ctx, mine, hookonce.Effect{Name: "mail"}) })
		}, 503, 0},
		"another type of transaction": {func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, pool, func(mine pgx.Tx) error {
				_ = hookonce.Enqueue(ctx, mine.(*pgxpool.Tx), hookonce.Effect{Name: "mail"})
				return nil
			})
		}, 503, 0},
		"a savepoint": {func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx) error {
			return pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error { return hookonce.Enqueue(ctx, part, hookonce.Effect{Name: "mail"}) })
		}, 200, 1},
		"a transaction of one's own type": {func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx) error {
			return hookonce.Enqueue(ctx, pgx.Tx(struct{ pgx.Tx }{tx}), hookonce.Effect{Name: "mail"})
		}, 200, 1},
		"a savepoint that is undone": {func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx) error {
			_ = pgx.BeginFunc(ctx, tx, func(part pgx.Tx) error {
				return errors.Join(hookonce.Enqueue(ctx, part, hookonce.Effect{Name: "mail"}), hookonce.Enqueue(ctx, part, hookonce.Effect{Name: "mail"}))
			})
			return hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "letter"})
		}, 200, 1},
		"an error that is hidden": {func(ctx context.Context, pool *pgxpool.Pool, tx pgx.Tx) error {
			_ = errors.Join(hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail"}), hookonce.Enqueue(ctx, tx, hookonce.Effect{Name: "mail"}))
			return nil
		}, 503, 0},
	} {
		t.Run(name, func(t *testing.T) {
			store, pool := newStore(t)
			h := hookonce.Idempotent(store, "idempotency", func(w http.ResponseWriter, r *http.Request, tx pgx.Tx) error {
				return tt.work(r.Context(), pool, tx)
			}, hookonce.WithoutScope(), hookonce.WithLogger(slog.New(slog.NewTextHandler(t.Output(), nil))))
			w := send(h, "k1", "10")
			mails, err := store.Effects(t.Context(), hookonce.StatePending, 0, 10)
			if w.Code != tt.status || len(mails) != tt.mails || err != nil {
				t.Errorf("status %d, effects %v, %v", w.Code, mails, err)
			}
		})
	}
}
