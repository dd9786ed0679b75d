// Package tracingtest is a collector for tests: it takes traces as OTLP over HTTP, decodes them, and keeps them.
package tracingtest

import (
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Span is a span as a collector has it.
type Span struct {
	Name, Kind                   string // SERVER, PRODUCER, CONSUMER, CLIENT
	TraceID, ID, Parent          string // hexadecimal; no parent: empty
	Links                        []Link
	Attributes                   map[string]string
	Resource                     map[string]string
	Failed                       bool
	Start, End                   time.Time
	TraceState, StatusText, From string
}

// Link is a link of a span.
type Link struct{ TraceID, ID, TraceState string }

// Collector is a collector. Its methods are safe for concurrent use.
type Collector struct {
	URL string // its base

	mu      sync.Mutex
	spans   []Span
	headers []http.Header
	answer  int
	came    *sync.Cond
}

// New starts a collector that is stopped when the test ends.
func New(t testing.TB) *Collector {
	c := &Collector{answer: http.StatusOK}
	c.came = sync.NewCond(&c.mu)
	s := httptest.NewServer(http.HandlerFunc(c.take))
	t.Cleanup(s.Close)
	c.URL = s.URL
	return c
}

// Answer has it answer with that status from now on. What it answers with another one than 200 it does not keep.
func (c *Collector) Answer(status int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = status
}

func (c *Collector) take(w http.ResponseWriter, r *http.Request) {
	spans, err := decode(r)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = append(c.headers, r.Header)
	defer c.came.Broadcast()
	switch {
	case err != nil, r.Method != http.MethodPost, r.URL.Path != "/v1/traces":
		w.WriteHeader(http.StatusBadRequest)
		return
	case c.answer == http.StatusOK:
		c.spans = append(c.spans, spans...)
	}
	w.WriteHeader(c.answer)
}

// Spans returns what came, in order of their beginnings.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.Clone(c.spans)
	slices.SortStableFunc(all, func(a, b Span) int { return a.Start.Compare(b.Start) })
	return all
}

// Headers returns those of all requests.
func (c *Collector) Headers() []http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.headers)
}

// Await waits until there were so many requests.
func (c *Collector) Await(requests int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.headers) < requests {
		c.came.Wait()
	}
}

func decode(r *http.Request) (all []Span, err error) {
	unpacked, err := gzip.NewReader(r.Body)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(unpacked)
	if err != nil {
		return nil, err
	}
	var data tracepb.TracesData
	if err := proto.Unmarshal(raw, &data); err != nil {
		return nil, err
	}
	for _, from := range data.ResourceSpans {
		for _, in := range from.ScopeSpans {
			for _, s := range in.Spans {
				span := Span{
					Name: s.Name, Kind: s.Kind.String()[len("SPAN_KIND_"):],
					TraceID: hex.EncodeToString(s.TraceId), ID: hex.EncodeToString(s.SpanId), Parent: hex.EncodeToString(s.ParentSpanId),
					Attributes: texts(s.Attributes), Resource: texts(from.Resource.Attributes),
					Failed: s.Status.GetCode() == tracepb.Status_STATUS_CODE_ERROR, StatusText: s.Status.GetMessage(),
					Start: time.Unix(0, int64(s.StartTimeUnixNano)), End: time.Unix(0, int64(s.EndTimeUnixNano)),
					TraceState: s.TraceState, From: in.Scope.Name,
				}
				for _, l := range s.Links {
					span.Links = append(span.Links, Link{hex.EncodeToString(l.TraceId), hex.EncodeToString(l.SpanId), l.TraceState})
				}
				all = append(all, span)
			}
		}
	}
	return all, nil
}

func texts(in []*commonpb.KeyValue) map[string]string {
	all := map[string]string{}
	for _, a := range in {
		switch v := a.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			all[a.Key] = v.StringValue
		case *commonpb.AnyValue_IntValue:
			all[a.Key] = strconv.FormatInt(v.IntValue, 10)
		case *commonpb.AnyValue_BoolValue:
			all[a.Key] = strconv.FormatBool(v.BoolValue)
		}
	}
	return all
}
