package hookonceotel_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	metricnoop "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracenoop "go.opentelemetry.io/otel/trace/noop"
	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/hookonceotel"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

var (
	stripe   = provider.Stripe("whsec_fake")
	happened = time.Now() // copies of an event are the same to the byte, whenever they are sent
)

// post sends an event to a handler and returns the status of the answer.
func post(ctx context.Context, h http.Handler, id, secret string) int {
	header, body := stripe.Spec().Sample(spec.Sample{ID: id, Type: "charge.succeeded", Time: happened})
	signed := hookonce.Request{Method: http.MethodPost, Header: header, Body: body, Now: time.Now()}
	if err := provider.Stripe(secret).Sign(&signed); err != nil {
		panic(err)
	}
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/webhooks/stripe", strings.NewReader(string(body)))
	r.Header = signed.Header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func ExampleNew() {
	// In production: otel.GetTracerProvider() and otel.GetMeterProvider().
	telemetry, err := hookonceotel.New(tracenoop.NewTracerProvider(), metricnoop.NewMeterProvider())
	if err != nil {
		panic(err)
	}
	handle := func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil }

	handler := hookonce.Webhook(memstore.New(), "billing", stripe, hookonceotel.Handle(telemetry, handle), hookonce.WithObserver(telemetry.Observe))

	fmt.Println(post(context.Background(), handler, "evt_1", "whsec_fake"))
	// Output: 200
}

func ExampleHandle() {
	spans := tracetest.NewSpanRecorder()
	telemetry, _ := hookonceotel.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), metricnoop.NewMeterProvider())
	handler := hookonce.Webhook(memstore.New(), "billing", stripe,
		hookonceotel.Handle(telemetry, func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil }))

	post(context.Background(), handler, "evt_1", "whsec_fake")
	post(context.Background(), handler, "evt_1", "whsec_fake") // nothing is done

	fmt.Println(len(spans.Ended()), spans.Ended()[0].Name())
	// Output: 1 process billing
}

func ExampleHandleLease() {
	spans := tracetest.NewSpanRecorder()
	telemetry, _ := hookonceotel.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), metricnoop.NewMeterProvider())
	handler := hookonce.WebhookLease(memstore.New(), "billing", stripe,
		hookonceotel.HandleLease(telemetry, func(context.Context, *hookonce.Event) error { return nil }))

	post(context.Background(), handler, "evt_1", "whsec_fake")

	fmt.Println(spans.Ended()[0].SpanKind())
	// Output: consumer
}

// Attempts on a real database: each has a span below that of its request, and what the handler begins is below that.
func TestSpansAndMetrics(t *testing.T) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+"?_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := schema.Migrate(t.Context(), db, schema.SQLite, schema.DefaultName); err != nil {
		t.Fatal(err)
	}
	spans, reader := tracetest.NewSpanRecorder(), metric.NewManualReader()
	tracers := sdk.NewTracerProvider(sdk.WithSpanProcessor(spans))
	telemetry, err := hookonceotel.New(tracers, metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		t.Fatal(err)
	}
	outcomes := []func() error{
		func() error { return errors.New("out of stock") },
		func() error { panic("a mistake") },
		func() error { return nil },
	}
	n := 0
	var inside trace.SpanContext
	h := hookonce.Webhook(sqlstore.New(db, sqlstore.SQLite), "billing", stripe, hookonceotel.Handle(telemetry, func(ctx context.Context, _ *sql.Tx, _ *hookonce.Event) error {
		inside = trace.SpanContextFromContext(ctx)
		n++
		return outcomes[n-1]()
	}), hookonce.WithObserver(telemetry.Observe), hookonce.WithLogger(slog.New(slog.DiscardHandler)))
	ctx, request := tracers.Tracer("test").Start(t.Context(), "POST")
	for range 4 { // the last is a duplicate
		post(ctx, h, "evt_1", "whsec_fake")
	}
	if code := post(ctx, h, "evt_2", "whsec_forged"); code != http.StatusUnauthorized {
		t.Errorf("a forged event is answered %d", code)
	}
	ended := spans.Ended()
	if len(ended) != 3 {
		t.Fatalf("%d attempts have spans", len(ended))
	}
	for i, want := range []sdk.Status{{Code: codes.Error}, {Code: codes.Error, Description: "the handler did not return"}, {}} {
		s := ended[i]
		if s.Name() != "process billing" || s.SpanKind() != trace.SpanKindConsumer || s.Parent().SpanID() != request.SpanContext().SpanID() || s.Status() != want {
			t.Errorf("attempt %d: %s, %v, %+v", i+1, s.Name(), s.SpanKind(), s.Status())
		}
		number := int64(0)
		for _, a := range s.Attributes() {
			if a.Key == "hookonce.attempt" {
				number = a.Value.AsInt64()
			}
			if strings.Contains(a.Value.String(), "evt_1") {
				t.Errorf("a span has the key: %v", a)
			}
		}
		if number != int64(i+1) {
			t.Errorf("attempt %d says that it is attempt %d", i+1, number)
		}
	}
	if inside.SpanID() != ended[2].SpanContext().SpanID() {
		t.Error("what the handler begins is not below its span")
	}
	got := sums(t, reader)
	for name, want := range map[string]int64{
		"hookonce.handler.outcomes billing accepted": 1, "hookonce.handler.outcomes billing failed": 2, "hookonce.handler.outcomes billing duplicate": 1,
		"hookonce.handler.rejected billing signature_mismatch": 1, "hookonce.handler.first_attempts billing": 1, "hookonce.handler.first_attempt_failures billing": 1,
	} {
		if got[name] != want {
			t.Errorf("%s is %d, want %d; all: %v", name, got[name], want, got)
		}
	}
}

// What a handler's error says leaves the program if the program says so, in UTF-8 and cut; the type of the error always does.
func TestErrorTexts(t *testing.T) {
	quoting := fmt.Errorf("charge: %w", &refusal{"customer@example.com \xff" + strings.Repeat("é", 200)})
	for name, c := range map[string]struct {
		opts []hookonceotel.Option
		text string
	}{
		"by default": {nil, ""},
		"asked for":  {[]hookonceotel.Option{hookonceotel.WithErrorTexts()}, "charge: customer@example.com " + strings.Repeat("é", 113)},
	} {
		spans := tracetest.NewSpanRecorder()
		telemetry, err := hookonceotel.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(spans)), metricnoop.NewMeterProvider(), c.opts...)
		if err != nil {
			t.Fatal(err)
		}
		handle := hookonceotel.HandleLease(telemetry, func(context.Context, *hookonce.Event) error { return quoting })
		if err := handle(t.Context(), &hookonce.Event{Source: "billing"}); err != quoting {
			t.Errorf("%s: the error comes back as %v", name, err)
		}
		s := spans.Ended()[0]
		if want := (sdk.Status{Code: codes.Error, Description: c.text}); s.Status() != want || !utf8.ValidString(s.Status().Description) {
			t.Errorf("%s: the status is %+v", name, s.Status())
		}
		if !slices.Contains(s.Attributes(), attribute.String("error.type", "*hookonceotel_test.refusal")) || len(s.Events()) > 0 {
			t.Errorf("%s: the span has %v, %v", name, s.Attributes(), s.Events())
		}
	}
}

type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// sums returns all counters, by name and attributes.
func sums(t *testing.T, r metric.Reader) map[string]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	if err := r.Collect(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	got := map[string]int64{}
	for _, scope := range all.ScopeMetrics {
		for _, m := range scope.Metrics {
			sum, ok := m.Data.(metricdata.Sum[int64])
			if !ok {
				continue
			}
			for _, p := range sum.DataPoints {
				name := m.Name
				for _, key := range []string{"hookonce.source", "hookonce.status", "hookonce.reason"} {
					for _, a := range p.Attributes.ToSlice() {
						if string(a.Key) == key {
							name += " " + a.Value.AsString()
						}
					}
				}
				got[name] += p.Value
			}
		}
	}
	return got
}
