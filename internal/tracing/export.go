package tracing

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/hookonce/hookonce/internal/retry"
)

// gate bounds how many spans wait for the collector, and counts what became of them. What processes them behind it has room
// for as many, and so drops none by itself, which nobody would hear of.
type gate struct {
	sdk.SpanProcessor
	exporter                  *exporter
	waiting                   atomic.Int64
	exported, dropped, failed prometheus.Counter
}

func newGate(e *exporter, spans *prometheus.CounterVec) *gate {
	g := &gate{
		exporter: e,
		exported: spans.WithLabelValues("exported"), dropped: spans.WithLabelValues("dropped"), failed: spans.WithLabelValues("failed"),
	}
	e.gate = g
	g.SpanProcessor = sdk.NewBatchSpanProcessor(e, sdk.WithMaxQueueSize(maxSpans), sdk.WithMaxExportBatchSize(maxBatch),
		sdk.WithBatchTimeout(batchDelay), sdk.WithExportTimeout(sendLimit))
	return g
}

// OnEnd implements [sdk.SpanProcessor]. It never blocks.
func (g *gate) OnEnd(s sdk.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	if g.waiting.Add(1) > maxSpans {
		g.waiting.Add(-1)
		g.dropped.Inc()
		return
	}
	g.SpanProcessor.OnEnd(s)
}

// close exports what waits until ctx ends, and gives up the rest.
func (g *gate) close(ctx context.Context, p *sdk.TracerProvider) {
	err := p.Shutdown(ctx)
	if err == nil {
		return
	}
	g.exporter.log.Warn("tracing: the last spans could not be exported in time", "spans", g.waiting.Load(), "error", err)
	g.exporter.collector.giveUp()
	_ = g.SpanProcessor.Shutdown(ctx) // which a provider whose time is over leaves as it is
}

// exporter exports spans, counts them, and says when the collector went away and when it came back. It returns no error: the SDK
// would write it to a log that is not ours.
type exporter struct {
	next      *otlptrace.Exporter
	collector *collector
	gate      *gate
	log       *slog.Logger
	away      bool // used by one export at a time
}

// ExportSpans implements [sdk.SpanExporter].
func (e *exporter) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	err := e.next.ExportSpans(ctx, spans)
	e.gate.waiting.Add(int64(-len(spans)))
	switch {
	case err == nil:
		e.gate.exported.Add(float64(len(spans)))
		if e.away {
			e.log.Info("tracing: the collector takes spans again")
		}
	default:
		e.gate.failed.Add(float64(len(spans)))
		if !e.away {
			e.log.Warn("tracing: the collector does not take spans; they are counted in hookonce_spans_total, and nothing else is affected", "error", err)
		}
	}
	e.away = err != nil
	return nil
}

// Shutdown implements [sdk.SpanExporter].
func (e *exporter) Shutdown(ctx context.Context) error { return e.next.Shutdown(ctx) }

// collector sends spans over HTTP. The exporter of OpenTelemetry's that does so, otlptracehttp, brings gRPC with it.
type collector struct {
	url            string
	header, secret string
	http           *http.Client
	ctx            context.Context // of all requests
	giveUp         context.CancelFunc
}

func newCollector(o Options) *collector {
	c := &collector{url: o.URL, header: o.Header, secret: o.Secret, http: &http.Client{
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: o.TLS.Clone(), ForceAttemptHTTP2: true,
			MaxIdleConnsPerHost: 1, IdleConnTimeout: 90 * time.Second, TLSHandshakeTimeout: 5 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
		},
		// Another address is not told the secret.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
	c.ctx, c.giveUp = context.WithCancel(context.Background())
	return c
}

// Start implements [otlptrace.Client].
func (c *collector) Start(context.Context) error { return nil }

// Stop implements [otlptrace.Client].
func (c *collector) Stop(context.Context) error {
	c.giveUp()
	c.http.CloseIdleConnections()
	return nil
}

// again is how a batch is tried again while the collector is away or busy.
var again = retry.Schedule{Attempts: 5, First: 250 * time.Millisecond, Longest: 4 * time.Second, Factor: retry.Factor}

// UploadTraces implements [otlptrace.Client].
func (c *collector) UploadTraces(ctx context.Context, spans []*tracepb.ResourceSpans) error {
	// On the wire it is an ExportTraceServiceRequest, whose package brings gRPC with it.
	plain, err := proto.Marshal(&tracepb.TracesData{ResourceSpans: spans})
	if err != nil {
		return err
	}
	var body bytes.Buffer
	w := gzip.NewWriter(&body)
	if _, err := w.Write(plain); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.ctx, cancel)()
	for n := 1; ; n++ {
		err := c.post(ctx, body.Bytes())
		var busy *unavailable
		if err == nil || !errors.As(err, &busy) {
			return err
		}
		delay, more := again.Delay(n, rand.Float64())
		if !more {
			return err
		}
		timer := time.NewTimer(delay)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// unavailable is a failure after which the same can be sent again.
type unavailable struct{ error }

func (u *unavailable) Unwrap() error { return u.error }

func (c *collector) post(ctx context.Context, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", "hookonce")
	if c.secret != "" {
		r.Header.Set(c.header, c.secret)
	}
	answer, err := c.http.Do(r)
	if err != nil {
		return &unavailable{err}
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, 64<<10))
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &unavailable{fmt.Errorf("the collector answered %s", answer.Status)}
	}
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("the collector answered %s", answer.Status)
	}
	return nil
}
