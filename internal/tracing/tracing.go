// Package tracing makes the spans of the gateway, and exports them as OTLP over HTTP: SERVER for a request to a source,
// PRODUCER for an event that it brings, CONSUMER for an attempt to deliver it, CLIENT for the request of the attempt. The spans
// of an attempt are a trace of their own that is linked to the PRODUCER, because hours may lie between.
//
// All of it is off with a nil [Tracer], whose methods, like those of what they return, do nothing, start nothing and allocate
// nothing.
//
// What strangers send decides neither how much is exported nor what: they take part in no trace unless their source is
// trusted, a request that is not authentic has a span only at a bounded rate, and what an attribute has of theirs is cut.
// Keys of events, bodies, queries, secrets and the paths of destinations, which may be secrets, are in no span.
package tracing

import (
	"context"
	"crypto/tls"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
)

// Options are the settings of a [Tracer]. All are needed unless it is said otherwise.
type Options struct {
	// URL is where traces are POSTed to, with the path.
	URL string
	// Header and Secret are a field that each request has, such as Authorization. No Secret: none.
	Header, Secret string
	// TLS has the certificates to use for https. Nil: those of the system.
	TLS *tls.Config
	// Ratio is the part of the traces that is exported, from 0 to 1, where no trusted sender decided it.
	Ratio float64
	// Service and Version name the program in each span.
	Service, Version string
	// Registerer receives the count of spans.
	Registerer prometheus.Registerer
	// Logger receives a line when the collector is away, and when it is back.
	Logger *slog.Logger
}

// Bounds of what is kept for a collector.
const (
	maxSpans   = 2048 // that wait or are being sent, some 2 KiB each; those above it are dropped
	maxBatch   = 512  // in one request
	batchDelay = 2 * time.Second
	sendLimit  = 10 * time.Second // for one batch, with all that is tried again
	flushLimit = 5 * time.Second  // at the end
	maxText    = 256              // bytes of an attribute
	maxFields  = 32               // attributes of a span
)

// Tracer makes spans. The nil Tracer makes none. Its methods are safe for concurrent use.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	gate     *gate
}

// New returns a tracer, which has one goroutine until it is closed. It asks nothing of the collector, which may come and go.
// It panics if the metrics are registered already.
//
// Of the variables of OpenTelemetry's own it reads OTEL_RESOURCE_ATTRIBUTES alone, by which platforms say what runs where.
func New(ctx context.Context, o Options) (*Tracer, error) {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "hookonce_spans_total",
		Help: "Spans of traces by what became of them: exported, dropped (too many waited for the collector), failed (the collector did not take them). Only with tracing.",
	}, []string{"outcome"})
	client := newCollector(o)
	uploads, err := otlptrace.New(ctx, client)
	if err != nil {
		return nil, err
	}
	platform, err := resource.New(ctx, resource.WithFromEnv())
	if err != nil {
		o.Logger.Warn("tracing: OTEL_RESOURCE_ATTRIBUTES could not be read; spans lack what it says", "error", err)
	}
	described, err := resource.Merge(platform, resource.NewSchemaless(serviceName.String(o.Service), serviceVersion.String(o.Version)))
	if err != nil {
		return nil, err
	}
	o.Registerer.MustRegister(spans)
	g := newGate(&exporter{next: uploads, log: o.Logger, collector: client}, spans)
	ratio := sdk.TraceIDRatioBased(o.Ratio)
	p := sdk.NewTracerProvider(
		sdk.WithSpanProcessor(g),
		sdk.WithResource(described),
		sdk.WithSampler(sdk.ParentBased(decided{ratio})),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: maxText, AttributeCountLimit: maxFields, EventCountLimit: 1, LinkCountLimit: 1,
			AttributePerEventCountLimit: 1, AttributePerLinkCountLimit: 1,
		}),
	)
	return &Tracer{provider: p, tracer: p.Tracer(scope), gate: g}, nil
}

// Close exports what waits, for five seconds and until ctx ends at most, and drops the rest. Call it once, when no span is begun
// any more. It fails never: whoever stops has better things to wait for.
func (t *Tracer) Close(ctx context.Context) {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushLimit)
	defer cancel()
	t.gate.close(ctx, t.provider)
}

// w3c is how a trace is told to others: https://www.w3.org/TR/trace-context/
var w3c propagation.TraceContext

// traceparent is the name of the field, spelled as net/http does.
const (
	traceparent = "Traceparent"
	tracestate  = "Tracestate"
)

// decided samples a trace as it was decided for the event that it is about, and others by a ratio.
type decided struct{ sdk.Sampler }

// decision is the key of the flags of an event's own trace, in the context in which a trace about the event begins.
type decision struct{}

// ShouldSample implements [sdk.Sampler].
func (d decided) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	flags, ok := p.ParentContext.Value(decision{}).(trace.TraceFlags)
	switch {
	case !ok:
		return d.Sampler.ShouldSample(p)
	case flags.IsSampled():
		return sdk.AlwaysSample().ShouldSample(p)
	}
	return sdk.NeverSample().ShouldSample(p)
}

// observe observes a value, with the trace that it is of.
func observe(to prometheus.Observer, value float64, of trace.Span) {
	if of != nil && of.SpanContext().IsSampled() {
		if e, ok := to.(prometheus.ExemplarObserver); ok {
			e.ObserveWithExemplar(value, prometheus.Labels{traceID: of.SpanContext().TraceID().String()})
			return
		}
	}
	to.Observe(value)
}
