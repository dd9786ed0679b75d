package hookoncetest

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// Signer is a provider in whose name deliveries are made: one of the catalogue, a specification of yours, or
// that of hookonce's gateway.
type Signer interface {
	hookonce.Provider
	// Spec has an example of what the provider sends.
	Spec() spec.Spec
	// Sign signs a request the way the provider does, at its time.
	Sign(req *hookonce.Request) error
}

// Sign returns a delivery of the event with that id, as p signs it: a request for a server's handler. It
// fails the test if that cannot be made, as in the name of a provider that signs with a private key.
// Its content is the same each time, except for the time of signing: the event happens at the moment of
// the call.
func Sign(t testing.TB, p Signer, id string, opts ...Option) *http.Request {
	t.Helper()
	s := newSettings(t, opts)
	r, _, err := s.sign(p, spec.Sample{ID: id, Object: s.object, Version: 1, Time: s.now()})
	if err != nil {
		t.Fatalf("hookoncetest: Sign: %v", err)
	}
	return r
}

// Deliver sends one delivery of the event with that id to the handler, and returns its answer. See [Sign].
func Deliver(t testing.TB, h http.Handler, p Signer, id string, opts ...Option) *http.Response {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, Sign(t, p, id, opts...))
	return w.Result()
}

// sign returns a delivery, signed now, of an event, which gets the type that was asked for. It returns what
// the provider's own side finds in it, too.
func (s *settings) sign(p Signer, of spec.Sample) (*http.Request, *hookonce.Event, error) {
	example := p.Spec().Example
	of.Type, of.Object = cmp.Or(s.kind, example.Type), cmp.Or(of.Object, example.Object, of.ID)
	header, body := p.Spec().Sample(of)
	if s.body != nil {
		body = s.body(of)
	}
	signed := &hookonce.Request{Method: http.MethodPost, URL: cmp.Or(s.url, DefaultURL+p.Profile().Name), Header: header, Body: body, Now: s.now()}
	if err := p.Sign(signed); err != nil {
		return nil, nil, err
	}
	d, err := p.Open(signed)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("the delivery was not understood: %w", err)
	case d.Unreadable != nil:
		return nil, nil, fmt.Errorf("the delivery has no event in it: %w", d.Unreadable)
	case len(d.Events) != 1:
		return nil, nil, fmt.Errorf("the delivery has %d events in it, one is needed", len(d.Events))
	}
	r := httptest.NewRequest(http.MethodPost, signed.URL, bytes.NewReader(signed.Body))
	r.Header = signed.Header
	return r, &d.Events[0], nil
}
