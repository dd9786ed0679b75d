package tracing

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// Delivery is the trace of one attempt, used by one goroutine at a time. The nil Delivery has none.
type Delivery struct {
	of       *Tracer
	ctx      context.Context
	span     trace.Span
	client   trace.Span // nil: nothing was sent
	answered time.Time
}

// Delivery begins the CONSUMER span of an attempt: the root of a trace that is linked to the acceptance of the event, in whatever
// process and however long ago that was, and exported if that one was. An event that was accepted without a trace is linked to
// nothing.
func (t *Tracer) Delivery(w *journal.Work, start time.Time) *Delivery {
	if t == nil {
		return nil
	}
	opts := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithTimestamp(start),
		trace.WithAttributes(messagingSystem.String(system), messagingOperation.String(deliver), messagingType.String(typeWork),
			messagingDestination.String(w.Destination), messagingID.String(strconv.FormatInt(w.EventID, 10)), messagingBodySize.Int(len(w.Body)),
			ownSource.String(w.Source), ownDestination.String(w.Destination), ownType.String(w.Type), ownAttempt.Int64(w.Token), ownTries.Int(w.Tries)),
	}
	ctx := context.Background()
	if accepted := acceptedIn(w); accepted.IsValid() {
		ctx = context.WithValue(ctx, decision{}, accepted.TraceFlags())
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: accepted}))
	}
	d := &Delivery{of: t}
	d.ctx, d.span = t.tracer.Start(ctx, deliver+" "+w.Destination, opts...)
	return d
}

// acceptedIn returns the trace in which an event was accepted, as it is kept with it.
func acceptedIn(w *journal.Work) trace.SpanContext {
	kept := propagation.MapCarrier{"traceparent": header.Fact(w.Header, header.HookonceTrace)}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), kept))
}

// Send begins the CLIENT span of the attempt's request, and makes it the parent of what its receiver does: the request has no
// other trace context then.
func (d *Delivery) Send(r *http.Request, now time.Time) {
	if d == nil {
		return
	}
	var ctx context.Context
	ctx, d.client = d.of.tracer.Start(d.ctx, r.Method, trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(now),
		trace.WithAttributes(append(address(r.URL), httpMethod.String(r.Method), httpBodySize.Int64(r.ContentLength))...))
	delete(r.Header, tracestate)
	w3c.Inject(ctx, propagation.HeaderCarrier(r.Header))
}

// address says where a request goes. Paths and queries of hooks are secrets often enough, so there is no url.full.
func address(u *url.URL) []attribute.KeyValue {
	a := []attribute.KeyValue{urlScheme.String(u.Scheme), serverHost.String(u.Hostname())}
	port, err := strconv.Atoi(u.Port())
	switch {
	case err == nil:
	case u.Scheme == "https":
		port = 443
	default:
		port = 80
	}
	return append(a, serverPort.Int(port))
}

// Answered says when the status of the answer was there, or none came.
func (d *Delivery) Answered(now time.Time) {
	if d != nil {
		d.answered = now
	}
}

// End says what became of the attempt, which ended at o.Started and o.Duration.
func (d *Delivery) End(o *journal.Outcome) {
	if d == nil {
		return
	}
	ended := o.Started.Add(o.Duration)
	if d.client != nil {
		if o.Status != 0 {
			d.client.SetAttributes(httpStatus.Int(o.Status))
		}
		if o.Status >= http.StatusBadRequest || o.Status == 0 {
			d.client.SetAttributes(errorType.String(failure(o)))
			d.client.SetStatus(codes.Error, "")
		}
		if d.answered.IsZero() {
			d.answered = ended
		}
		d.client.End(trace.WithTimestamp(d.answered))
	}
	outcome := string(o.State)
	if o.Spared {
		outcome = "spared"
	}
	d.span.SetAttributes(ownOutcome.String(outcome))
	if o.State == journal.Failed || o.State == journal.Dead {
		d.span.SetAttributes(errorType.String(failure(o)))
		d.span.SetStatus(codes.Error, o.Error[:min(len(o.Error), maxText)])
	}
	d.span.End(trace.WithTimestamp(ended))
}

// failure names what went wrong in one word.
func failure(o *journal.Outcome) string {
	switch {
	case o.Status >= http.StatusBadRequest:
		return strconv.Itoa(o.Status)
	case o.Kind != "":
		return string(o.Kind)
	}
	return "_OTHER"
}

// Observe observes a value that is about the attempt, with its trace as the exemplar.
func (d *Delivery) Observe(to prometheus.Observer, value float64) {
	if d == nil {
		to.Observe(value)
		return
	}
	observe(to, value, d.span)
}
