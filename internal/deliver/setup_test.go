package deliver_test

import (
	"cmp"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/retry"
)

// rig is a deliverer on an engine in memory. Its destination "app" is where the test says.
type rig struct {
	*deliver.Deliverer
	model   *journaltest.Memory
	faulty  *journaltest.Faulty
	journal *engine.Engine
	metrics *prometheus.Registry
}

// options are those of a deliverer, and what plays its destinations without a network.
type options struct {
	deliver.Options
	transport http.RoundTripper
	random    func() float64
}

// open returns a deliverer with what the options leave out.
func (o options) open() (*deliver.Deliverer, error) {
	o.Destinations = complete(o.Destinations)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Registerer == nil {
		o.Registerer = prometheus.NewRegistry()
	}
	if o.random == nil {
		o.random = func() float64 { return 0 }
	}
	return deliver.NewWith(o.Options, o.transport, o.random)
}

const (
	usualTimeout     = 15 * time.Second
	usualConcurrency = 64
	usualFailures    = 10
)

// complete returns destinations with what they leave out. Failures of -1 are none.
func complete(destinations map[string]deliver.Destination) map[string]deliver.Destination {
	all := map[string]deliver.Destination{}
	for name, d := range destinations {
		d.Timeout, d.Concurrency = cmp.Or(d.Timeout, usualTimeout), cmp.Or(d.Concurrency, usualConcurrency)
		d.Schedule, d.Stale = cmp.Or(d.Schedule, retry.Default()), cmp.Or(d.Stale, deliver.StaleFlag)
		if d.Breaker.Failures = cmp.Or(d.Breaker.Failures, usualFailures); d.Breaker.Failures < 0 {
			d.Breaker.Failures = 0
		}
		all[name] = d
	}
	return all
}

// limited is a destination with so many attempts at once.
func limited(d deliver.Destination, concurrency int) deliver.Destination {
	d.Concurrency = concurrency
	return d
}

// newRig starts a deliverer to app. Change adapts the options before they are used. Everything is
// stopped when the test ends.
func newRig(t testing.TB, app deliver.Destination, change func(*options)) *rig {
	t.Helper()
	return newRigOn(t, engine.Options{}, app, change)
}

// newRigOn is newRig with settings for the journal.
func newRigOn(t testing.TB, settings engine.Options, app deliver.Destination, change func(*options)) *rig {
	t.Helper()
	settings.DoneKeys = -1
	r := &rig{model: journaltest.NewMemory(), metrics: prometheus.NewRegistry()}
	r.faulty = journaltest.NewFaulty(r.model)
	var err error
	if r.journal, err = engine.New(r.faulty, journaltest.Options(settings)); err != nil {
		t.Fatal(err)
	}
	o := options{Options: deliver.Options{
		Journal:      r.journal,
		Destinations: map[string]deliver.Destination{"app": app},
		Registerer:   r.metrics,
	}}
	if change != nil {
		change(&o)
	}
	if r.Deliverer, err = o.open(); err != nil {
		t.Fatal(err)
	}
	r.Start()
	t.Cleanup(func() { r.shutDown(t) })
	return r
}

// shutDown stops in the order in which a gateway does. It may be called more than once.
func (r *rig) shutDown(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
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
	for deadline := time.Now().Add(time.Minute); ; {
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

// hourly tries twice, an hour apart.
var hourly = retry.Schedule{Attempts: 2, First: time.Hour, Longest: time.Hour, Factor: 1}
