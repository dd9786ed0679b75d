// Package stripe behaves like the provider at its worst, for the tests of the examples.
package stripe

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// Secret is the endpoint's signing secret.
const Secret = "whsec_fake"

// Deliver sends an event once and returns the status of the answer.
func Deliver(t testing.TB, endpoint http.Handler, event string) int {
	t.Helper()
	stripe := provider.Stripe(Secret)
	header, body := stripe.Spec().Sample(spec.Sample{ID: event, Time: time.Unix(1767225600, 0)})
	signed := hookonce.Request{Method: http.MethodPost, Header: header, Body: body, Now: time.Now()}
	if err := stripe.Sign(&signed); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/webhooks/stripe", bytes.NewReader(signed.Body))
	r.Header = signed.Header
	w := httptest.NewRecorder()
	endpoint.ServeHTTP(w, r)
	return w.Code
}

// Check insists that the effect of an event happens once however often and at whatever moment it is sent,
// and that an attempt which fails leaves no effect. Failing is the endpoint with a handler that fails after
// its last statement. Count returns how often the effect of an event happened.
func Check(t *testing.T, endpoint, failing http.Handler, count func(event string) int) {
	t.Helper()
	if status := Deliver(t, failing, "evt_1"); status != http.StatusServiceUnavailable || count("evt_1") != 0 {
		t.Errorf("a failure was answered %d, and left %d effects", status, count("evt_1"))
	}
	var copies sync.WaitGroup
	for range 8 {
		copies.Go(func() { Deliver(t, endpoint, "evt_1") })
	}
	copies.Wait()
	for _, event := range []string{"evt_1", "evt_2", "evt_2"} {
		if status := Deliver(t, endpoint, event); status != http.StatusOK || count(event) != 1 {
			t.Errorf("%s was answered %d, and happened %d times", event, status, count(event))
		}
	}
}
