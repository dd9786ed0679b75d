// Package hookonceotel tells OpenTelemetry what the handlers of hookonce do: a span for each attempt at an event, and metrics
// of all outcomes.
//
//	telemetry, err := hookonceotel.New(otel.GetTracerProvider(), otel.GetMeterProvider())
//	handler := hookonce.Webhook(store, "billing", stripe, hookonceotel.Handle(telemetry, handle), hookonce.WithObserver(telemetry.Observe))
//
// The span is below that of the request, if there is one in its context: put otelhttp.NewHandler around the handler. Whether a
// trace that a sender brings goes on, and is sampled as it says, is then for otelhttp to decide: otelhttp.WithPublicEndpoint begins
// a new one and links it, which is right for senders that are not your own.
//
// Nothing here has an event's key, body or header. A span of a handler that failed has the type of the error, and its text with
// [WithErrorTexts] alone; no metric has either.
package hookonceotel

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/hookonce/hookonce"
)

// scope names the instrumentation.
const scope = "github.com/hookonce/hookonce/hookonceotel"

// Telemetry makes spans and metrics. It is safe for concurrent use.
type Telemetry struct {
	tracer                  trace.Tracer
	outcomes, firsts        metric.Int64Counter
	rejected, firstFailures metric.Int64Counter
	seconds                 metric.Float64Histogram
	texts                   bool
}

// Option changes what [New] returns.
type Option func(*Telemetry)

// WithErrorTexts puts the texts of handlers' errors into their spans, cut at 256 bytes. Without it nobody who reads traces sees
// what an error quotes, such as a name or an address of a customer: the span has its type.
func WithErrorTexts() Option { return func(t *Telemetry) { t.texts = true } }

// New returns what tells these providers. An error is a meter's that refuses an instrument.
func New(spans trace.TracerProvider, meters metric.MeterProvider, opts ...Option) (*Telemetry, error) {
	meter := meters.Meter(scope)
	t := &Telemetry{tracer: spans.Tracer(scope)}
	for _, o := range opts {
		o(t)
	}
	var errs [5]error
	t.outcomes, errs[0] = meter.Int64Counter("hookonce.handler.outcomes", metric.WithUnit("{event}"),
		metric.WithDescription("Events, and requests with a key, by what became of them."))
	t.rejected, errs[1] = meter.Int64Counter("hookonce.handler.rejected", metric.WithUnit("{request}"),
		metric.WithDescription("Requests that were rejected, by reason."))
	t.firsts, errs[2] = meter.Int64Counter("hookonce.handler.first_attempts", metric.WithUnit("{attempt}"),
		metric.WithDescription("Events of which the first attempt was made."))
	t.firstFailures, errs[3] = meter.Int64Counter("hookonce.handler.first_attempt_failures", metric.WithUnit("{attempt}"),
		metric.WithDescription("First attempts that failed."))
	t.seconds, errs[4] = meter.Float64Histogram("hookonce.handler.duration", metric.WithUnit("s"),
		metric.WithDescription("Time from the verified request to its outcome, waiting included."),
		metric.WithExplicitBucketBoundaries(.0005, .001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1, 2, 4, 8, 16))
	return t, errors.Join(errs[:]...)
}

// The attributes. Those of messaging are in development at OpenTelemetry, and may change here with them.
const (
	source      = attribute.Key("hookonce.source")
	status      = attribute.Key("hookonce.status")
	reason      = attribute.Key("hookonce.reason")
	kind        = attribute.Key("hookonce.event.type")
	attempt     = attribute.Key("hookonce.attempt")
	errorType   = attribute.Key("error.type")
	system      = attribute.Key("messaging.system")
	operation   = attribute.Key("messaging.operation.name")
	operates    = attribute.Key("messaging.operation.type")
	destination = attribute.Key("messaging.destination.name")
	process     = "process"
)

// Observe counts one outcome: give it to [hookonce.WithObserver].
func (t *Telemetry) Observe(ctx context.Context, o hookonce.Observation) {
	of := source.String(o.Source)
	if o.Status == "rejected" {
		t.rejected.Add(ctx, 1, metric.WithAttributes(of, reason.String(o.Reason)))
		return
	}
	t.outcomes.Add(ctx, 1, metric.WithAttributes(of, status.String(o.Status)))
	t.seconds.Record(ctx, o.Duration.Seconds(), metric.WithAttributes(of))
	if o.Attempt == 1 {
		t.firsts.Add(ctx, 1, metric.WithAttributes(of))
		if o.Err != nil {
			t.firstFailures.Add(ctx, 1, metric.WithAttributes(of))
		}
	}
}

// Handle returns a handler for [hookonce.Webhook] that runs handle in a span. Spans that handle begins with its context are below.
func Handle[Tx any](t *Telemetry, handle func(ctx context.Context, tx Tx, ev *hookonce.Event) error) func(context.Context, Tx, *hookonce.Event) error {
	return func(ctx context.Context, tx Tx, ev *hookonce.Event) error {
		return t.run(ctx, ev, func(ctx context.Context) error { return handle(ctx, tx, ev) })
	}
}

// HandleLease is [Handle] for [hookonce.WebhookLease].
func HandleLease(t *Telemetry, handle func(ctx context.Context, ev *hookonce.Event) error) func(context.Context, *hookonce.Event) error {
	return func(ctx context.Context, ev *hookonce.Event) error {
		return t.run(ctx, ev, func(ctx context.Context) error { return handle(ctx, ev) })
	}
}

// run calls work in a span, which ends with it, also when it panics.
func (t *Telemetry) run(ctx context.Context, ev *hookonce.Event, work func(context.Context) error) (err error) {
	ctx, span := t.tracer.Start(ctx, process+" "+ev.Source, trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(
		system.String("hookonce"), operation.String(process), operates.String(process), destination.String(ev.Source),
		source.String(ev.Source), kind.String(ev.Type), attempt.Int64(ev.Attempt)))
	returned := false
	defer func() {
		switch {
		case !returned:
			span.SetStatus(codes.Error, "the handler did not return")
		case err != nil:
			span.SetAttributes(errorType.String(typeOf(err)))
			span.SetStatus(codes.Error, t.text(err))
		}
		span.End()
	}()
	err = work(ctx)
	returned = true
	return err
}

// typeOf names the type of the error that others wrap, such as *pgconn.PgError.
func typeOf(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	return fmt.Sprintf("%T", err)
}

// maxText bounds the text of an error, in bytes.
const maxText = 256

// text is what a span may say of an error. It is UTF-8: a collector refuses a batch with anything else.
func (t *Telemetry) text(err error) string {
	if !t.texts {
		return ""
	}
	text := err.Error()
	return strings.ToValidUTF8(text[:min(maxText, len(text))], "")
}
