package spec

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
)

// ErrNotListed says that the specification does not describe a list ([Spec.Reconcile]).
var ErrNotListed = errors.New("this sender's list of events is not described: there is no reconcile in its specification")

// Listed extracts the events of a request as the sender's own API recorded it: body and headers are those that
// [Spec.Reconcile] leads to in an answer of that API. Nothing is verified here. What strangers can send goes through
// [Provider.Open] instead.
//
// Now is the time at which the list was read, as [hookonce.Request] has that of arrival.
//
// The events have neither a digest, because the record may be written otherwise than what was sent, nor a signed key. With
// an error, which says why the body cannot be read, the events have what the headers say, as those of Open do. The error
// is [ErrNotListed] for senders without a list.
func (p *Provider) Listed(header http.Header, body []byte, now time.Time) ([]hookonce.Event, error) {
	if p.spec.Reconcile == nil {
		return nil, ErrNotListed
	}
	r := p.reading(&hookonce.Request{Method: http.MethodPost, URL: p.settings.URL, Header: header, Body: body, Now: now})
	by := &p.verifiers[0]
	if by.id != nil {
		r.id = r.get(by.id)
	}
	var d hookonce.Verified
	p.extract.events(r, by, &d)
	for i := range d.Events {
		d.Events[i].Digest, d.Events[i].KeySigned = nil, false
	}
	return d.Events, d.Unreadable
}

// NewListed returns the provider of a specification for [Provider.Listed] alone: it knows no secret, and rejects every request.
// The error is [ErrNotListed] for senders without a list.
func NewListed(spec Spec) (*Provider, error) {
	if spec.Reconcile == nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, ErrNotListed)
	}
	return New(spec, Settings{blind: true})
}

// blindMatcher accepts nothing.
type blindMatcher struct{}

func newBlindMatcher(Verify, Settings) (matcher, error) { return blindMatcher{}, nil }

func (blindMatcher) wellFormed(string) bool                         { return false }
func (blindMatcher) shape() string                                  { return "none" }
func (blindMatcher) match(*verifier, *reading, string) (int, error) { return 0, nil }
func (blindMatcher) seal(*verifier, *reading, int) (string, error) {
	return "", errors.New("this provider knows no secret to sign with")
}
func (blindMatcher) knows(int) bool        { return false }
func (blindMatcher) active(time.Time) bool { return true }
