package chaos

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/hookonce/hookonce"
)

// outside is a system of somebody else, which knows Idempotency-Keys: a call under a key that it has seen has no
// second effect. It is reached through [hookonce.Transport], without a network.
type outside struct {
	mu      sync.Mutex
	byKey   map[string]string // what was said first under the key
	effects map[string]int    // how often what was said took effect
	calls   int
}

func newOutside() *outside { return &outside{byKey: map[string]string{}, effects: map[string]int{}} }

// client returns a client of the system.
func (o *outside) client() *http.Client { return &http.Client{Transport: hookonce.Transport(o)} }

// RoundTrip implements [http.RoundTripper].
func (o *outside) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.calls++
	key, said := r.Header.Get("Idempotency-Key"), string(body)
	first, seen := o.byKey[key]
	status := http.StatusOK
	switch {
	case key == "":
		status = http.StatusBadRequest
	case !seen:
		o.byKey[key] = said
		o.effects[said]++
	case first != said:
		status = http.StatusUnprocessableEntity
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

// charge has the effect of an event, on behalf of the work in the request's context.
func charge(ctx context.Context, client *http.Client, key string) error {
	req, err := http.NewRequestWithContext(hookonce.WithStep(ctx, "charge"), http.MethodPost, "https://bank.example/charges", strings.NewReader(key))
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fatalError{fmt.Errorf("the system outside answers %d", res.StatusCode)}
	}
	return nil
}

// audit fails unless each of the events had its effect once.
func (o *outside) audit(t testing.TB, all []transfer) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	t.Logf("the system outside was called %d times about %d events", o.calls, len(all))
	for _, e := range all {
		if n := o.effects[e.key]; n != 1 {
			t.Errorf("%s has its effect %d times", e.key, n)
		}
	}
	if len(o.effects) != len(all) {
		t.Errorf("%d different effects of %d events", len(o.effects), len(all))
	}
}
