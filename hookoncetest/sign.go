package hookoncetest

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

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
// Its content is the same each time in one test and in those within it, except for the time of signing: the
// event happens when it is signed first. By a clock that was set back before that, it happens at the moment of the
// call.
func Sign(t testing.TB, p Signer, id string, opts ...Option) *http.Request {
	t.Helper()
	s := newSettings(t, opts)
	r, _, err := s.sign(p, spec.Sample{ID: id, Object: s.object, Version: 1, Time: happened(t, p, id, s.now())})
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

// moment returns when a delivery of an event is signed. As a sender signs each attempt anew, no two of one second have one
// signature: it is the latest second in which none was signed, but none longer ago than any handler allows.
func (s *settings) moment(sender spec.Spec, of spec.Sample) time.Time {
	now, room := s.now(), time.Minute
	if of.Attempt == 0 {
		return now
	}
	for _, v := range sender.Verify {
		if v.Time != nil && v.Time.Past > 0 {
			room = min(room, v.Time.Past/2)
		}
	}
	s.moments.Lock()
	defer s.moments.Unlock()
	for at := now; now.Sub(at) < room; at = at.Add(-time.Second) {
		if second := (moment{of.ID, at.Unix()}); !s.moments.taken[second] {
			s.moments.taken[second] = true
			return at
		}
	}
	return now
}

// moments are the seconds in which deliveries of events were signed.
type moments struct {
	sync.Mutex
	taken map[moment]bool
}

type moment struct {
	event  string
	second int64
}

// sign returns a delivery, signed now or before, of an event, which gets the type that was asked for. It returns what
// the provider's own side finds in it, too.
func (s *settings) sign(p Signer, of spec.Sample) (*http.Request, *hookonce.Event, error) {
	example := p.Spec().Example
	of.Type, of.Object = cmp.Or(s.kind, example.Type), cmp.Or(of.Object, example.Object, of.ID)
	header, body := p.Spec().Sample(of)
	if s.body != nil {
		body = s.body(of)
	}
	signed := &hookonce.Request{Method: http.MethodPost, URL: cmp.Or(s.url, DefaultURL+p.Profile().Name), Header: header, Body: body, Now: s.moment(p.Spec(), of)}
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

// occurrence is an event of a test.
type occurrence struct{ test, provider, id string }

// occurrences has when the events of the tests under way happened. Nothing of it outlives its test: another may have
// another clock.
var occurrences = struct {
	sync.Mutex
	at map[occurrence]time.Time
}{at: map[occurrence]time.Time{}}

// happened returns when the event with that id happened: at its first signing in t or in a test around it, or now, if
// there was none or the clock shows that it is yet to be.
func happened(t testing.TB, p Signer, id string, now time.Time) time.Time {
	occurrences.Lock()
	defer occurrences.Unlock()
	o := occurrence{test: t.Name(), provider: p.Profile().Name, id: id}
	for around, more := o, true; more; around.test, more = parent(around.test) {
		if at, ok := occurrences.at[around]; ok && !at.After(now) {
			return at
		}
	}
	occurrences.at[o] = now
	t.Cleanup(func() {
		occurrences.Lock()
		defer occurrences.Unlock()
		delete(occurrences.at, o)
	})
	return now
}

// parent returns the name of the test that runs the one with that name, if there is one.
func parent(test string) (string, bool) {
	i := strings.LastIndexByte(test, '/')
	return test[:max(i, 0)], i >= 0
}
