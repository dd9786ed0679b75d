package tracing

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	"golang.org/x/time/rate"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

// Source makes the spans of the requests to one source. The nil Source makes none.
type Source struct {
	*Tracer
	name      string
	trust     bool
	strangers *rate.Limiter // of the spans of requests that are not authentic
}

// strangersPerSecond is how many requests to a source that are not authentic have a span.
const strangersPerSecond = 10

// Source returns what makes the spans of a source. With trust an authentic sender's trace goes on, and is exported as the sender
// says; otherwise a new one is linked to it.
func (t *Tracer) Source(name string, trust bool) *Source {
	if t == nil {
		return nil
	}
	return &Source{Tracer: t, name: name, trust: trust, strangers: rate.NewLimiter(strangersPerSecond, strangersPerSecond)}
}

// Request is the trace of one request, used by one goroutine. The nil Request has none.
type Request struct {
	of     *Source
	http   *http.Request
	start  time.Time
	ctx    context.Context
	span   trace.Span // nil: it is not known whether the request is authentic
	events int
}

// Request returns the trace of a request that came at start. It begins when it is known who sent it.
func (s *Source) Request(r *http.Request, start time.Time) *Request {
	if s == nil {
		return nil
	}
	return &Request{of: s, http: r, start: start}
}

// Verified says that the request is authentic.
func (q *Request) Verified() {
	if q != nil {
		q.begin(true)
	}
}

// begin begins the SERVER span.
func (q *Request) begin(verified bool) {
	opts := []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(q.start),
		trace.WithAttributes(httpMethod.String(method(q.http.Method)), httpRoute.String(route), urlPath.String("/in/"+q.of.name),
			urlScheme.String(scheme(q.http)), ownSource.String(q.of.name), ownVerified.Bool(verified)),
	}
	q.ctx = context.Background()
	switch sent := sentContext(q.http.Header); {
	case !sent.IsValid():
	case verified && q.of.trust:
		q.ctx = trace.ContextWithRemoteSpanContext(q.ctx, sent)
	default:
		opts = append(opts, trace.WithLinks(trace.Link{SpanContext: sent.WithTraceState(trace.TraceState{})}))
	}
	q.ctx, q.span = q.of.tracer.Start(q.ctx, method(q.http.Method)+" "+route, opts...)
}

// sentContext returns the trace context that a request brings, invalid if there is none.
func sentContext(h http.Header) trace.SpanContext {
	if len(h[traceparent]) != 1 {
		return trace.SpanContext{}
	}
	return trace.SpanContextFromContext(w3c.Extract(context.Background(), propagation.HeaderCarrier(h)))
}

// method returns a method as spans have it, which is one of few.
func method(m string) string {
	switch m {
	case http.MethodPost, http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "_OTHER"
}

func scheme(r *http.Request) string {
	if r.TLS != nil {
		return "https"
	}
	return "http"
}

// End ends the trace of a request that was answered at now.
func (q *Request) End(status int, now time.Time) {
	if q == nil {
		return
	}
	if q.span == nil {
		if !q.of.strangers.AllowN(now, 1) {
			return
		}
		q.begin(false)
	}
	q.span.SetAttributes(httpStatus.Int(status))
	if q.http.ContentLength > 0 {
		q.span.SetAttributes(httpBodySize.Int64(q.http.ContentLength))
	}
	if status >= http.StatusInternalServerError {
		q.span.SetStatus(codes.Error, "")
	}
	q.span.End(trace.WithTimestamp(now))
}

// Observe observes a value that is about the request, with its trace as the exemplar.
func (q *Request) Observe(to prometheus.Observer, value float64) {
	if q == nil {
		to.Observe(value)
		return
	}
	observe(to, value, q.span)
}

// Event is the trace of one event on its way into the journal. The nil Event has none.
type Event struct {
	span trace.Span
	own  bool // and not that of the request
}

// maxEventSpans is how many events of one request have a span of their own: a batch can bring thousands. Deliveries of the
// others are linked to the request.
const maxEventSpans = 64

// Event begins the PRODUCER span of an event, which Verified has been called before.
func (q *Request) Event(e *hookonce.Event, now time.Time) *Event {
	if q == nil || q.span == nil {
		return nil
	}
	if q.events++; q.events > maxEventSpans {
		return &Event{span: q.span}
	}
	_, span := q.of.tracer.Start(q.ctx, accept+" "+q.of.name, trace.WithSpanKind(trace.SpanKindProducer), trace.WithTimestamp(now),
		trace.WithAttributes(messagingSystem.String(system), messagingOperation.String(accept), messagingType.String(typeSend),
			messagingDestination.String(q.of.name), messagingBodySize.Int(len(e.Body)), ownSource.String(q.of.name), ownType.String(e.Type)))
	return &Event{span, true}
}

// Context is what is kept with the event for those who deliver it, empty where there is no trace.
func (e *Event) Context() string {
	if e == nil {
		return ""
	}
	c := e.span.SpanContext()
	return "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-" + c.TraceFlags().String()
}

// End says what became of the event.
func (e *Event) End(r journal.Result, now time.Time) {
	if e == nil || !e.own {
		return
	}
	if r.Err != nil {
		e.fail("row_refused", now)
		return
	}
	e.span.SetAttributes(messagingID.String(strconv.FormatInt(r.ID, 10)), ownStatus.String(string(r.Status)))
	e.span.End(trace.WithTimestamp(now))
}

// Fail says that the event was not stored.
func (e *Event) Fail(now time.Time) {
	if e != nil && e.own {
		e.fail("not_stored", now)
	}
}

func (e *Event) fail(kind string, now time.Time) {
	e.span.SetAttributes(errorType.String(kind))
	e.span.SetStatus(codes.Error, "")
	e.span.End(trace.WithTimestamp(now))
}
