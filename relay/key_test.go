package relay_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/relay"
)

// wire is the network: it keeps the keys that came, by effect and attempt.
type wire struct{ keys map[string][]string }

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	name := req.Header.Get("Test-Attempt")
	w.keys[name] = append(w.keys[name], req.Header.Get("Idempotency-Key"))
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
}

// Calls of a handler have keys that are made of the effect's: the same at the next attempt, and others for
// another effect of the same event. A named one has its own also where the client makes up a key for each call.
func TestCallsOfHandlersHaveKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, w := memstore.New(), &wire{map[string][]string{}}
		client := &http.Client{Transport: hookonce.Transport(w)}
		enqueue(t, store, "a", "b")
		stop := start(t, store, func(ctx context.Context, e hookonce.QueuedEffect) error {
			if work, ok := hookonce.RefFrom(ctx); !ok || work.Key != e.IdempotencyKey() {
				t.Errorf("the work is %v", work)
			}
			for _, path := range []string{"customers", "charges", "refunds"} {
				ctx := ctx
				if path == "refunds" {
					ctx = hookonce.WithStep(ctx, "refund")
				}
				req, err := http.NewRequestWithContext(ctx, "POST", "https://api.example/"+path, nil)
				if err != nil {
					return err
				}
				req.Header.Set("Test-Attempt", e.Step+string(rune('0'+e.Tries)))
				if path == "refunds" {
					req.Header.Set("Idempotency-Key", rand.Text())
				}
				if _, err := client.Do(req); err != nil {
					return err
				}
			}
			return errors.New("crash after the calls")
		}, every(time.Minute, 2), relay.WithConcurrency(1))
		pass(time.Hour)
		stopped(t, stop)
		if !slices.Equal(w.keys["a1"], w.keys["a2"]) || !slices.Equal(w.keys["b1"], w.keys["b2"]) {
			t.Errorf("another attempt has other keys: %v", w.keys)
		}
		all := slices.Concat(w.keys["a1"], w.keys["b1"])
		slices.Sort(all)
		if len(slices.Compact(all)) != 6 || all[0] == "" {
			t.Errorf("different calls share a key: %v", w.keys)
		}
	})
}
