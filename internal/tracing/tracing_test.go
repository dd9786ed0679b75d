package tracing_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tracing"
	"github.com/hookonce/hookonce/internal/tracing/tracingtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	noon = time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	paid = &hookonce.Event{Key: "evt_1", Type: "invoice.paid", Body: []byte("{}")}
)

const (
	theirTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	theirSpan  = "00f067aa0ba902b7"
)

// rig is a tracer with its collector.
type rig struct {
	*tracing.Tracer
	*tracingtest.Collector
	registry *prometheus.Registry
}

func newRig(t *testing.T, change func(*tracing.Options)) rig {
	t.Helper()
	c := tracingtest.New(t)
	r := rig{Collector: c, registry: prometheus.NewRegistry()}
	o := tracing.Options{URL: c.URL + "/v1/traces", Ratio: 1, Service: "gate", Version: "v1", Registerer: r.registry, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&o)
	}
	var err error
	if r.Tracer, err = tracing.New(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close(context.Background()) })
	return r
}

// post is a request with a trace context.
func post(sent ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/in/billing?token=fake-secret", strings.NewReader("{}"))
	r.Header["Traceparent"] = sent
	r.Header["Tracestate"] = []string{"theirs=secret"}
	return r
}

// accepted is what is kept with an event that came with a request.
func accepted(s *tracing.Source, r *http.Request) string {
	q := s.Request(r, noon)
	q.Verified()
	e := q.Event(paid, noon)
	e.End(journal.Result{Status: journal.Accepted, ID: 7}, noon.Add(time.Millisecond))
	q.End(200, noon.Add(2*time.Millisecond))
	return e.Context()
}

// work is an event as it is delivered, with what was kept of its acceptance.
func work(kept string) *journal.Work {
	f := header.Facts("Content-Type: application/json\r\n")
	f.Add(header.HookonceTrace, kept)
	return &journal.Work{Held: journal.Held{EventID: 7, Destination: "ledger", Token: 3}, Source: "billing", Type: "invoice.paid", Key: "evt_1",
		Tries: 2, Header: f, Body: []byte("{}")}
}

// delivered makes an attempt and returns the trace context that its request had.
func delivered(tr *tracing.Tracer, w *journal.Work, o journal.Outcome) string {
	o.Started, o.Duration = noon.Add(time.Hour), time.Second
	d := tr.Delivery(w, o.Started)
	r, _ := http.NewRequest(http.MethodPost, "https://user:fake-password@ledger.example/hooks/fake-path-secret?token=fake-secret", strings.NewReader("{}"))
	r.Header["Traceparent"], r.Header["Tracestate"] = []string{"00-" + theirTrace + "-" + theirSpan + "-01"}, []string{"theirs=secret"}
	d.Send(r, o.Started)
	d.Answered(o.Started.Add(o.Duration))
	d.End(&o)
	if r.Header["Tracestate"] != nil {
		return "with a tracestate"
	}
	return r.Header.Get("Traceparent")
}

// spans closes the tracer and returns what it exported, by name.
func (r rig) spans(t *testing.T) map[string]tracingtest.Span {
	t.Helper()
	r.Close(t.Context())
	all := map[string]tracingtest.Span{}
	for _, s := range r.Spans() {
		if _, twice := all[s.Name]; twice {
			t.Fatalf("two spans are called %q", s.Name)
		}
		all[s.Name] = s
	}
	return all
}

// The spans of one event, from its request to its delivery an hour later.
func TestSpansOfAnEvent(t *testing.T) {
	r := newRig(t, nil)
	kept := accepted(r.Source("billing", false), post())
	sent := delivered(r.Tracer, work(kept), journal.Outcome{State: journal.Failed, Status: 503, Error: "503 Service Unavailable", Kind: "status"})
	all := r.spans(t)

	server, producer, consumer, client := all["POST /in/{source}"], all["accept billing"], all["deliver ledger"], all["POST"]
	for _, c := range []struct {
		s    tracingtest.Span
		kind string
	}{{server, "SERVER"}, {producer, "PRODUCER"}, {consumer, "CONSUMER"}, {client, "CLIENT"}} {
		if c.s.Kind != c.kind {
			t.Errorf("%q is %s, want %s", c.s.Name, c.s.Kind, c.kind)
		}
	}
	if server.Parent != "" || producer.Parent != server.ID || producer.TraceID != server.TraceID {
		t.Errorf("the event is not below its request: %+v %+v", server, producer)
	}
	if consumer.Parent != "" || consumer.TraceID == producer.TraceID || client.Parent != consumer.ID || client.TraceID != consumer.TraceID {
		t.Errorf("the attempt is no trace of its own: %+v %+v", consumer, client)
	}
	if want := (tracingtest.Link{TraceID: producer.TraceID, ID: producer.ID}); !slices.Equal(consumer.Links, []tracingtest.Link{want}) {
		t.Errorf("the attempt is linked to %v, want %v", consumer.Links, want)
	}
	if want := "00-" + client.TraceID + "-" + client.ID + "-01"; sent != want {
		t.Errorf("the destination got %s, want %s", sent, want)
	}
	if !consumer.Failed || !client.Failed || server.Failed || producer.Failed || client.Attributes["error.type"] != "503" || consumer.StatusText != "503 Service Unavailable" {
		t.Errorf("what failed does not show: %+v %+v", consumer, client)
	}
	if got := consumer.End.Sub(consumer.Start); got != time.Second || !consumer.Start.Equal(noon.Add(time.Hour)) {
		t.Errorf("the attempt began at %v and took %v", consumer.Start, got)
	}
	for _, want := range []struct {
		s    tracingtest.Span
		with map[string]string
	}{
		{server, map[string]string{"http.route": "/in/{source}", "url.path": "/in/billing", "http.response.status_code": "200", "hookonce.verified": "true", "hookonce.source": "billing"}},
		{producer, map[string]string{"messaging.system": "hookonce", "messaging.operation.type": "send", "messaging.destination.name": "billing", "messaging.message.id": "7", "hookonce.status": "accepted", "hookonce.event.type": "invoice.paid"}},
		{consumer, map[string]string{"messaging.operation.type": "process", "messaging.message.id": "7", "hookonce.destination": "ledger", "hookonce.attempt": "3", "hookonce.tries": "2", "hookonce.outcome": "failed"}},
		{client, map[string]string{"server.address": "ledger.example", "server.port": "443", "http.response.status_code": "503"}},
	} {
		for name, value := range want.with {
			if got := want.s.Attributes[name]; got != value {
				t.Errorf("%q has %s=%q, want %q", want.s.Name, name, got, value)
			}
		}
		if want.s.Resource["service.name"] != "gate" || want.s.Resource["service.version"] != "v1" {
			t.Errorf("%q is of %v", want.s.Name, want.s.Resource)
		}
		if text := fmt.Sprint(want.s); strings.Contains(text, "secret") || strings.Contains(text, "password") || strings.Contains(text, "evt_1") {
			t.Errorf("a span tells too much: %s", text)
		}
	}
}

// What a stranger says of sampling decides nothing, unless the source trusts its senders and this one is authentic.
func TestStrangersDecideNothing(t *testing.T) {
	for _, c := range []struct {
		name            string
		ratio           float64
		trust, verified bool
		flags           string
		exported, goes  bool // on with their trace
	}{
		{"sampled, and nothing is", 0, false, true, "01", false, false},
		{"not sampled, and everything is", 1, false, true, "00", true, false},
		{"sampled, and trusted", 0, true, true, "01", true, true},
		{"not sampled, and trusted", 1, true, true, "00", false, true},
		{"sampled, and not authentic", 0, true, false, "01", false, false},
		{"not sampled, and not authentic", 1, true, false, "00", true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, func(o *tracing.Options) { o.Ratio = c.ratio })
			s := r.Source("billing", c.trust)
			req := post("00-" + theirTrace + "-" + theirSpan + "-" + c.flags)
			if c.verified {
				kept := accepted(s, req)
				sent := delivered(r.Tracer, work(kept), journal.Outcome{State: journal.Done, Status: 200})
				if want := map[bool]string{true: "-01", false: "-00"}[c.exported]; !strings.HasSuffix(sent, want) {
					t.Errorf("the destination got %s", sent)
				}
			} else {
				s.Request(req, noon).End(401, noon)
			}
			all := r.spans(t)
			if got := len(all) > 0; got != c.exported {
				t.Fatalf("exported: %v", all)
			}
			server, ok := all["POST /in/{source}"]
			if !ok {
				return
			}
			linked := slices.Equal(server.Links, []tracingtest.Link{{TraceID: theirTrace, ID: theirSpan}})
			if goes := server.TraceID == theirTrace && server.Parent == theirSpan; goes != c.goes || linked == c.goes {
				t.Errorf("the trace is %+v", server)
			}
			if !c.goes && strings.Contains(fmt.Sprint(all), "theirs") {
				t.Errorf("a stranger's tracestate is in %v", all)
			}
		})
	}
}

// Whatever else is in the place of a trace context is none.
func TestNoTraceContext(t *testing.T) {
	for _, sent := range [][]string{
		nil, {""}, {"junk"}, {"00-" + theirTrace + "-" + theirSpan + "-01", "00-" + theirTrace + "-" + theirSpan + "-01"},
		{"00-" + strings.Repeat("0", 32) + "-" + theirSpan + "-01"}, {"ff-" + theirTrace + "-" + theirSpan + "-01"},
	} {
		r := newRig(t, nil)
		kept := accepted(r.Source("billing", true), post(sent...))
		all := r.spans(t)
		if server := all["POST /in/{source}"]; server.Parent != "" || len(server.Links) > 0 || strings.Contains(kept, theirTrace) {
			t.Errorf("%q is a trace context: %+v", sent, server)
		}
	}
}

// An event without a trace, or with something else in its place, is delivered in a trace that is linked to nothing.
func TestDeliveryOfAnEventWithoutTrace(t *testing.T) {
	for _, kept := range []string{"", "junk"} {
		r := newRig(t, nil)
		delivered(r.Tracer, work(kept), journal.Outcome{State: journal.Done, Status: 200})
		if s, ok := r.spans(t)["deliver ledger"]; !ok || len(s.Links) > 0 {
			t.Errorf("kept %q: %+v", kept, s)
		}
	}
}

// A flood of requests that are not authentic costs ten spans a second, and a batch of events 64.
func TestSpansAreBounded(t *testing.T) {
	r := newRig(t, nil)
	s := r.Source("billing", false)
	for range 500 {
		s.Request(post(), noon).End(401, noon)
	}
	q := s.Request(post(), noon)
	q.Verified()
	var last *tracing.Event
	long := &hookonce.Event{Type: strings.Repeat("x", 1<<20)}
	for range 500 {
		last = q.Event(long, noon)
		last.End(journal.Result{Status: journal.Accepted}, noon)
	}
	q.End(200, noon)
	r.Close(t.Context())
	n := map[string]int{}
	request := ""
	for _, span := range r.Spans() {
		n[span.Name+" "+span.Attributes["hookonce.verified"]]++
		if len(span.Attributes["hookonce.event.type"]) > 256 {
			t.Errorf("an attribute has %d bytes", len(span.Attributes["hookonce.event.type"]))
		}
		if span.Attributes["hookonce.verified"] == "true" {
			request = span.ID
		}
	}
	if n["POST /in/{source} false"] != 10 || n["POST /in/{source} true"] != 1 || n["accept billing "] != 64 {
		t.Errorf("exported: %v", n)
	}
	if request == "" || !strings.Contains(last.Context(), request) {
		t.Errorf("the last event of the batch is linked to %s, want the request, %s", last.Context(), request)
	}
}

// While the collector is away spans are dropped and counted, and nobody waits.
func TestCollectorAway(t *testing.T) {
	held := make(chan struct{})
	away := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-held
	}))
	defer away.Close()
	defer close(held)
	r := newRig(t, func(o *tracing.Options) { o.URL = away.URL })
	s := r.Source("billing", false)
	const all = 5000
	for range all {
		q := s.Request(post(), noon)
		q.Verified()
		q.End(200, noon)
	}
	if got := r.count(t, "dropped"); got != all-2048 {
		t.Errorf("%v were dropped", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r.Close(ctx) // waits for nobody
}

// What the collector refuses is counted, and asked once; what it cannot take now is sent again.
func TestCollectorRefuses(t *testing.T) {
	r := newRig(t, func(o *tracing.Options) { o.Header, o.Secret = "X-Team", "fake-secret" })
	r.Answer(http.StatusBadRequest)
	accepted(r.Source("billing", false), post())
	r.Close(t.Context())
	if got := r.count(t, "failed"); got != 2 || len(r.Headers()) != 1 || r.Headers()[0].Get("X-Team") != "fake-secret" {
		t.Errorf("%v failed; requests: %v", got, r.Headers())
	}

	r = newRig(t, nil)
	r.Answer(http.StatusServiceUnavailable)
	s := r.Source("billing", false)
	for range 256 {
		accepted(s, post())
	}
	r.Await(1) // a batch is full
	r.Answer(http.StatusOK)
	r.Await(2)
	r.Close(t.Context())
	if got := r.count(t, "exported"); got != 512 || len(r.Spans()) != 512 {
		t.Errorf("%v were exported: %d", got, len(r.Spans()))
	}
}

func (r rig) count(t *testing.T, outcome string) float64 {
	t.Helper()
	families, err := r.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range families[0].GetMetric() {
		if m.GetLabel()[0].GetValue() == outcome {
			return m.GetCounter().GetValue()
		}
	}
	t.Fatalf("no count of spans that are %s", outcome)
	return 0
}

// Where nothing is traced, nothing is allocated and nothing sent along.
func TestOff(t *testing.T) {
	var off *tracing.Tracer
	r, w := post(), work("")
	seconds := prometheus.NewHistogram(prometheus.HistogramOpts{Name: "seconds"})
	o := &journal.Outcome{State: journal.Done}
	got := testing.AllocsPerRun(100, func() {
		q := off.Source("billing", true).Request(r, noon)
		q.Verified()
		e := q.Event(paid, noon)
		e.End(journal.Result{}, noon)
		e.Fail(noon)
		q.Observe(seconds, 1)
		q.End(200, noon)
		d := off.Delivery(w, noon)
		d.Send(r, noon)
		d.Answered(noon)
		d.Observe(seconds, 1)
		d.End(o)
	})
	if got != 0 || r.Header["Traceparent"] != nil {
		t.Errorf("%v allocations, and the request has %v", got, r.Header)
	}
	off.Close(t.Context())
	if n := testutil.CollectAndCount(seconds); n != 1 {
		t.Errorf("%d histograms", n)
	}
}
