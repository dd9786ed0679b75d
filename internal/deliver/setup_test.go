package deliver_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

// rig is a deliverer on an engine in memory. Its destination "app" is where the test says.
type rig struct {
	*deliver.Deliverer
	model   *journaltest.Memory
	faulty  *journaltest.Faulty
	journal *engine.Engine
	metrics *prometheus.Registry
}

// newRig starts a deliverer to app. Change adapts the options before they are used. Everything is
// stopped when the test ends.
func newRig(t testing.TB, app deliver.Destination, change func(*deliver.Options)) *rig {
	t.Helper()
	return newRigOn(t, engine.Options{}, app, change)
}

// newRigOn is newRig with settings for the journal.
func newRigOn(t testing.TB, settings engine.Options, app deliver.Destination, change func(*deliver.Options)) *rig {
	t.Helper()
	settings.DoneKeys = -1
	r := &rig{model: journaltest.NewMemory(), metrics: prometheus.NewRegistry()}
	r.faulty = journaltest.NewFaulty(r.model)
	var err error
	if r.journal, err = engine.New(r.faulty, settings); err != nil {
		t.Fatal(err)
	}
	o := deliver.Options{
		Journal:      r.journal,
		Destinations: map[string]deliver.Destination{"app": app},
		Registerer:   r.metrics,
		Rand:         func() float64 { return 0 },
	}
	if change != nil {
		change(&o)
	}
	if r.Deliverer, err = deliver.New(o); err != nil {
		t.Fatal(err)
	}
	r.Start()
	t.Cleanup(func() { r.shutDown(t) })
	return r
}

// shutDown stops in the order in which a gateway does. It may be called more than once.
func (r *rig) shutDown(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	if err := r.Stop(ctx); err != nil {
		t.Error(err)
	}
	if err := r.journal.Close(ctx); err != nil {
		t.Error(err)
	}
}

// entry is an event of the source billing for the destination app.
func entry(key string) *journal.Event {
	return &journal.Event{
		Source: "billing", Key: key, Type: "invoice.paid", Digest: []byte("0123456789abcdef"),
		Header:       []byte("Content-Type: application/json\r\nX-Provider-Signature: t=1,v1=ab\r\n"),
		Body:         []byte(`{"id":"` + key + `"}`),
		Destinations: []string{"app"}, ReceivedAt: time.Now(),
	}
}

// accept stores events.
func (r *rig) accept(t testing.TB, entries ...*journal.Event) []journal.Result {
	t.Helper()
	results, err := r.journal.Accept(context.Background(), entries)
	if err != nil {
		t.Fatal(err)
	}
	return results
}

// attempts waits until n attempts are recorded, and returns them.
func (r *rig) attempts(t testing.TB, n int) []journal.Outcome {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if got := r.model.Attempts(); len(got) >= n {
			return got
		} else if time.Now().After(deadline) {
			t.Fatalf("%d attempts recorded, want %d", len(got), n)
		}
		<-time.After(time.Millisecond) // outcomes are recorded behind the scenes, in batches
	}
}

// transport plays the destination without a network, so that time can be played too.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func status(code int) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("secret body"))}
}

// hang answers nothing until the attempt is cancelled.
func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

var errBroken = errors.New("broken")
