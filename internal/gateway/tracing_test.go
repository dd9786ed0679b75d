package gateway

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/tracing/tracingtest"
)

// traced is a destination that notes which trace each attempt is of.
type traced struct {
	*httptest.Server
	board
	parents []string
	extra   []string // names of headers that nobody is to get
	status  int
}

func newTraced(t *testing.T) *traced {
	d := &traced{board: newBoard(), status: http.StatusServiceUnavailable}
	d.Server = httptest.NewServer(d)
	t.Cleanup(d.Close)
	return d
}

func (d *traced) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.parents = append(d.parents, r.Header.Get("Traceparent"))
	for name := range r.Header {
		if name == "Hookonce-Trace" || name == "Tracestate" {
			d.extra = append(d.extra, name)
		}
	}
	d.changed()
	w.WriteHeader(d.status)
}

// An event is accepted by one gateway, whose attempts fail, and delivered by another one after that is gone: its last attempt is
// linked to the acceptance, and the destination's work is below the attempt's request. What the sender says of sampling counts
// where it is trusted.
func TestTracesOverTwoGateways(t *testing.T) {
	t.Parallel()
	for _, trust := range []string{config.LinkTrace, config.TrustTrace} {
		t.Run(trust, func(t *testing.T) {
			to := newTraced(t)
			first, second := tracingtest.New(t), tracingtest.New(t)
			cfg := configured(sqliteStore(t), to.URL)
			cfg.Sources[0].Trace = trust
			cfg.Tracing.Endpoint = first.URL
			g := start(t, cfg)
			const theirs = "4bf92f3577b34da6a3ce929d0e0e4736"
			h := signed(t, cfg.Sources[0], event("1"))
			h.Set("Traceparent", "00-"+theirs+"-00f067aa0ba902b7-01")
			if r, err := postSigned(client(t), g, "orders", h, event("1")); err != nil || r.status != http.StatusOK {
				t.Fatal(r, err)
			}
			to.await(t, "an attempt", func() bool { return len(to.parents) > 0 })
			wantExemplars(t, g, "hookonce_accept_seconds_bucket")
			closeNow(t, g)
			accept := named(t, first, "accept orders")
			if server := named(t, first, "POST /in/{source}"); accept.Parent != server.ID || (server.TraceID == theirs) != (trust == config.TrustTrace) {
				t.Errorf("the event was accepted in %+v, below %+v", accept, server)
			}

			cfg.Tracing.Endpoint = second.URL
			to.mu.Lock()
			to.status = http.StatusOK
			before := len(to.parents)
			to.mu.Unlock()
			g = start(t, cfg)
			to.await(t, "the delivery", func() bool { return len(to.parents) > before })
			closeNow(t, g)
			consumer, request := named(t, second, "deliver orders"), named(t, second, "POST")
			if want := (tracingtest.Link{TraceID: accept.TraceID, ID: accept.ID}); !slices.Equal(consumer.Links, []tracingtest.Link{want}) || consumer.TraceID == accept.TraceID {
				t.Errorf("the delivery is %+v, want it linked to %+v", consumer, want)
			}
			if got := to.parents[len(to.parents)-1]; got != "00-"+request.TraceID+"-"+request.ID+"-01" || request.Parent != consumer.ID {
				t.Errorf("the destination got %s, want it below %+v", got, request)
			}
			if len(to.extra) > 0 {
				t.Errorf("the destination got %v as well", to.extra)
			}
			if id := consumer.Attributes["messaging.message.id"]; id == "" || id != accept.Attributes["messaging.message.id"] {
				t.Errorf("the event is called %q and %q", id, accept.Attributes["messaging.message.id"])
			}
		})
	}
}

// Where nothing is traced the metrics stay in the form that every scraper reads, and an event is stored without a trace.
func TestNothingIsTraced(t *testing.T) {
	t.Parallel()
	to := newTraced(t)
	to.status = http.StatusOK
	cfg := configured(sqliteStore(t), to.URL)
	g := start(t, cfg)
	if g.tracer != nil {
		t.Error("there is a tracer")
	}
	insist(t, client(t), g, cfg.Sources[0], event("1"))
	to.await(t, "the delivery", func() bool { return len(to.parents) > 0 })
	if text := scraped(t, g); strings.Contains(text, "trace_id") || strings.Contains(text, "# EOF") || strings.Contains(text, "hookonce_spans_total") {
		t.Errorf("the metrics have\n%s", text)
	}
}

// named returns the last span of a collector with that name.
func named(t *testing.T, c *tracingtest.Collector, name string) tracingtest.Span {
	t.Helper()
	all := c.Spans()
	for _, s := range slices.Backward(all) {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("no span is called %q: %v", name, all)
	return tracingtest.Span{}
}

func wantExemplars(t *testing.T, g *Gateway, metric string) {
	t.Helper()
	for line := range strings.Lines(scraped(t, g)) {
		if strings.HasPrefix(line, metric) && strings.Contains(line, `# {trace_id="`) {
			return
		}
	}
	t.Errorf("%s has no exemplar", metric)
}

// scraped are the metrics as a scraper reads them that takes OpenMetrics.
func scraped(t *testing.T, g *Gateway) string {
	t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "http://"+g.AdminAddr().String()+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	res, err := client(t).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
