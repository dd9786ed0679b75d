package chaos

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/jackc/pgx/v5"
)

// TestIdempotent terminates backends under clients that send every request twice, and again until they have an
// answer. The effect is in the transaction.
func TestIdempotent(t *testing.T) {
	dsn := newPostgres(t)
	db := open(t, "pgx", dsn)
	db.SetMaxOpenConns(1) // so that the adversary spares itself
	createBank(t, db)
	c := newCallers(newRound(t, func(d *dice) harm { return harmBackends(d, db) }))
	c.storm(t, func() http.Handler {
		store, _ := newPgstore(t, dsn)
		return hookonce.Idempotent(store, "bank", func(w http.ResponseWriter, r *http.Request, tx pgx.Tx) error {
			key, err := io.ReadAll(r.Body)
			if err != nil {
				return err
			}
			do := func(ctx context.Context, text string, args ...any) error { return execPgx(ctx, tx, text, args...) }
			if err := c.handle(r.Context(), do, string(key)); err != nil {
				return err
			}
			c.answer(w)
			return nil
		}, hookonce.WithoutScope(), waiting, patient, silent)
	})
	audit(t, db, c.all)
}

// TestIdempotentLease has the effect outside, and lets workers lose their leases.
func TestIdempotentLease(t *testing.T) {
	t.Run("pgstore", func(t *testing.T) {
		dsn := newPostgres(t)
		db := open(t, "pgx", dsn)
		db.SetMaxOpenConns(1)
		r := newRound(t, func(d *dice) harm { return harmBackends(d, db) })
		idempotentLease(t, r, func() hookonce.ResponseStore {
			store, _ := newPgstore(t, dsn)
			return store
		})
	})
	t.Run("redisstore", func(t *testing.T) {
		server := redistest.Start(t, redistest.Options{})
		n := newNetwork(t, server.Addr())
		r := newRound(t, func(d *dice) harm { return either(d, freeze(d, server), n.harm(d), n.harm(d), n.harm(d)) })
		idempotentLease(t, r, func() hookonce.ResponseStore { return openRedis(t, n.addr()) })
	})
}

func idempotentLease(t *testing.T, r *round, open func() hookonce.ResponseStore) {
	t.Helper()
	c, out := newCallers(r), newOutside()
	c.storm(t, func() http.Handler {
		return hookonce.IdempotentLease(sluggish{open(), r.dice}, "bank", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			key, err := io.ReadAll(r.Body)
			c.nudge()
			if err == nil {
				err = charge(r.Context(), out.client(), string(key))
			}
			if err == nil {
				err = c.mood()
			}
			if err != nil {
				http.Error(w, "not now", http.StatusServiceUnavailable)
				return
			}
			c.answer(w)
		}), hookonce.WithoutScope(), waiting, patient, silent, hookonce.WithLease(lease))
	})
	out.audit(t, r.all)
}

// sluggish is the store of a process that stalls at times, for longer than its lease, when the work is done and not
// recorded.
type sluggish struct {
	hookonce.ResponseStore
	*dice
}

// CompleteWith implements [hookonce.ResponseStore].
func (s sluggish) CompleteWith(ctx context.Context, c hookonce.Claim, r hookonce.Response) error {
	if s.oneIn(8) {
		<-time.After(lease + s.upTo(lease))
	}
	return s.ResponseStore.CompleteWith(ctx, c, r)
}

// The options of both doors.
var (
	waiting = hookonce.WithWait(wait)
	patient = hookonce.WithTimeout(patience)
	silent  = hookonce.WithLogger(slog.New(slog.DiscardHandler))
)

// callers send requests under Idempotency-Keys, and compare the answers.
type callers struct {
	*round
	mu       sync.Mutex
	answered map[string]string // what was answered first, by event
}

func newCallers(r *round) *callers { return &callers{round: r, answered: map[string]string{}} }

// storm sends the requests of a round to two processes, and once more, after it, to a third that no harm reached.
func (c *callers) storm(t *testing.T, process func() http.Handler) {
	t.Helper()
	for range 2 {
		h := process()
		c.deliver = append(c.deliver, func(ctx context.Context, key string) (receipt, error) {
			_, got, err := c.ask(ctx, h, key)
			return got, err
		})
	}
	c.round.storm(t)
	c.repeat(t, process())
}

// answer writes an answer that no other run of a handler writes.
func (c *callers) answer(w http.ResponseWriter) {
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "receipt %d", c.n(1<<50))
}

// ask sends a request. Its answer, if it is a success, must be that of all others under the key.
func (c *callers) ask(ctx context.Context, h http.Handler, key string) (replayed bool, got receipt, err error) {
	w, req := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "/transfers", strings.NewReader(key))
	req.Header.Set("Idempotency-Key", url.QueryEscape(key))
	h.ServeHTTP(w, req)
	switch w.Code {
	case http.StatusCreated:
	case http.StatusConflict, http.StatusServiceUnavailable, http.StatusInternalServerError:
		return false, unacknowledged, fmt.Errorf("it is answered %d: %s", w.Code, w.Body)
	default:
		return false, unacknowledged, fatalError{fmt.Errorf("it is answered %d: %s", w.Code, w.Body)}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if first, ok := c.answered[key]; ok && first != w.Body.String() {
		return false, unacknowledged, fatalError{fmt.Errorf("it is answered %q, and was answered %q", w.Body, first)}
	}
	c.answered[key] = w.Body.String()
	return w.Header().Get("Idempotency-Replayed") == "true", acknowledged, nil
}

// repeat sends every request once more to h, after the storm.
func (c *callers) repeat(t *testing.T, h http.Handler) {
	t.Helper()
	for _, e := range c.all {
		replayed, got, err := c.ask(t.Context(), h, e.key)
		if got != acknowledged || !replayed {
			t.Errorf("%s was answered 201, and a copy is not given the same: %v", e.key, err)
		}
	}
}
