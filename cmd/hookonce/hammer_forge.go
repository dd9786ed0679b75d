package main

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// forge makes signed requests the way the provider does.
type forge struct {
	provider *spec.Provider
	event    string      // type; empty: the provider's usual one
	body     []byte      // nil: the provider's sample
	header   http.Header // added to the sample's, or in place of them
}

// forged is one signed request with the key that a receiver finds in it.
type forged struct {
	header http.Header
	body   []byte
	key    string
}

// make signs an event with that id. It reads its own work with the provider's receiving side, so
// that an event that could not be recognised again is noticed before it is sent.
func (f *forge) make(id string, at time.Time) (forged, error) {
	header, body := f.provider.Spec().Sample(id, f.event, at)
	fill := strings.NewReplacer("{{id}}", id, "{{time}}", at.UTC().Format(time.RFC3339), "{{unix}}", strconv.FormatInt(at.Unix(), 10))
	if f.body != nil {
		body = []byte(fill.Replace(string(f.body)))
	}
	for name, values := range f.header {
		header.Del(name)
		for _, v := range values {
			header.Add(name, fill.Replace(v))
		}
	}
	req := &hookonce.Request{Method: http.MethodPost, Header: header, Body: body, Now: at}
	if err := f.provider.Sign(req); err != nil {
		return forged{}, err
	}
	maps.Copy(req.Header, f.overridden(req.Header))
	d, err := f.provider.Open(req)
	switch {
	case err != nil: // a signature that was overridden on purpose: the key is of no interest
		return forged{header: req.Header, body: req.Body}, nil
	case d.Unreadable != nil:
		return forged{}, fmt.Errorf("the body has no event in it: %w", d.Unreadable)
	case len(d.Events) == 0:
		return forged{}, errors.New("the request carries no event")
	}
	return forged{header: req.Header, body: req.Body, key: d.Events[0].Key}, nil
}

// overridden returns the headers of the signature that the user replaced.
func (f *forge) overridden(signed http.Header) http.Header {
	h := http.Header{}
	for name, values := range f.header {
		if len(signed[name]) > 0 && !strings.Contains(values[0], "{{") {
			h[name] = values
		}
	}
	return h
}

// spec returns the specification of the provider that is asked for.
func (o *hammerOptions) spec() (spec.Spec, error) {
	if o.provider == "hmac" {
		return o.hmac.spec(), nil
	}
	if o.hmac != (hmacOptions{}) {
		return spec.Spec{}, fmt.Errorf("the --hmac flags are for --provider hmac, not %s", o.provider)
	}
	return catalogued(o.provider)
}

func (o hmacOptions) spec() spec.Spec {
	c := provider.HMACConfig{
		Header: o.header, Prefix: o.prefix,
		Hash: spec.Hash(o.digest), Encoding: spec.Encoding(o.encoding),
	}
	if o.key != "" {
		c.Key = []spec.Value{spec.Value(o.key)}
	}
	return c.Spec()
}
