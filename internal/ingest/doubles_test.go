package ingest_test

import (
	"context"
	"crypto/tls"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
)

var tlsState = &tls.ConnectionState{}

// stub is a journal that answers what it is told to, at once.
type stub struct {
	results []journal.Result
	err     error
}

func (s stub) Accept(context.Context, []*journal.Event) ([]journal.Result, error) {
	return s.results, s.err
}

// keeping is a journal that remembers what it accepted.
type keeping struct{ events []*journal.Event }

func (k *keeping) Accept(_ context.Context, events []*journal.Event) ([]journal.Result, error) {
	k.events = append(k.events, events...)
	results := make([]journal.Result, len(events))
	for i := range results {
		results[i] = journal.Result{ID: int64(len(k.events) + i), Status: journal.Accepted}
	}
	return results, nil
}

// urlSpy remembers the address that it was given.
type urlSpy struct {
	testProvider
	url string
}

func (s *urlSpy) Open(r *hookonce.Request) (*hookonce.Verified, error) {
	s.url = r.URL
	return s.testProvider.Open(r)
}

// failingProvider cannot tell whether a request is authentic.
type failingProvider struct {
	testProvider
	err error
}

func (p failingProvider) Open(*hookonce.Request) (*hookonce.Verified, error) { return nil, p.err }

// gather returns the values of a counter by its label values, joined in the order of their names.
func gather(t *testing.T, g *gate, name string) map[string]float64 {
	t.Helper()
	families, err := g.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			values[strings.Join(labels, ",")] = m.GetCounter().GetValue()
		}
	}
	return values
}
