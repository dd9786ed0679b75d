// Package signer makes requests that are signed the way a provider signs them: what the commands send and hammer post.
package signer

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// Signer makes signed requests the way a provider does. It is safe for concurrent use.
type Signer struct {
	// Provider signs.
	Provider *spec.Provider
	// URL is where requests are posted to.
	URL string
	// Type is that of the events; empty: the provider's usual one.
	Type string
	// Body is what is sent; nil: the provider's sample.
	Body []byte
	// Header is added to the sample's, or stands in place of it.
	Header http.Header
}

// Sign returns a request with an event of that id that happened at the given time, signed now. Signing
// may add to the query of its URL.
func (s *Signer) Sign(id string, at, now time.Time) (*hookonce.Request, error) {
	header, body := s.Provider.Spec().Sample(spec.Sample{ID: id, Type: s.Type, Version: at.UnixMicro(), Time: at})
	fill := strings.NewReplacer("{{id}}", id, "{{time}}", at.UTC().Format(time.RFC3339), "{{unix}}", strconv.FormatInt(at.Unix(), 10))
	if s.Body != nil {
		body = []byte(fill.Replace(string(s.Body)))
	}
	for name, values := range s.Header {
		header.Del(name)
		for _, v := range values {
			header.Add(name, fill.Replace(v))
		}
	}
	req := &hookonce.Request{Method: http.MethodPost, URL: s.URL, Header: header, Body: body, Now: now}
	if err := s.Provider.Sign(req); err != nil {
		return nil, err
	}
	maps.Copy(req.Header, s.overridden(req.Header))
	return req, nil
}

// overridden returns the headers of the signature that the user replaced.
func (s *Signer) overridden(signed http.Header) http.Header {
	h := http.Header{}
	for name, values := range s.Header {
		if len(signed[name]) > 0 && !strings.Contains(values[0], "{{") {
			h[name] = values
		}
	}
	return h
}

// Key returns the key that a receiver finds in the request: an event that could not be recognised again
// is noticed before it is sent. It is empty where the signature was replaced on purpose.
func (s *Signer) Key(req *hookonce.Request) (string, error) {
	d, err := s.Provider.Open(req)
	switch {
	case err != nil:
		return "", nil
	case d.Unreadable != nil:
		return "", fmt.Errorf("the body has no event in it: %w", d.Unreadable)
	case len(d.Events) == 0:
		return "", errors.New("the request carries no event")
	}
	return d.Events[0].Key, nil
}

// Passing reports whether the provider's events are such that every copy of one passes on: there is no
// key, or an event only says that something changed.
func (s *Signer) Passing() bool {
	known := s.Provider.Spec()
	return len(known.Event.Key) == 0 || known.Dedup.OnRepeat == spec.Coalesce
}
