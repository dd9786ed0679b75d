package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/storm"
	"github.com/hookonce/hookonce/provider/spec"
)

// signing is what a command line says about the requests that send and hammer sign.
type signing struct {
	provider, spec    string
	secret, signedURL string
	kind, body        string
	headers           []string
}

func (s *signing) declare(f *pflag.FlagSet) {
	f.StringVar(&s.provider, "provider", "", "`name` of the provider to sign as; see hookonce providers (default \""+config.DevProvider+"\")")
	f.StringVar(&s.spec, "spec", "", "`file` with a specification of your own, in place of --provider")
	f.StringVar(&s.secret, "secret", "", "secret to sign with, as a `reference`: env:NAME, file:PATH, or the secret itself")
	f.StringVar(&s.kind, "type", "", "`type` of the event; the provider's usual one if not set")
	f.StringVar(&s.body, "body", "", "`file` with the body to send; {{id}}, {{time}} and {{unix}} are filled in")
	f.StringArrayVarP(&s.headers, "header", "H", nil, "`header` to add or replace, as 'Name: value'; {{id}}, {{time}} and {{unix}} are filled in")
	declareSignedURL(f, &s.signedURL, "the URL that is posted to")
}

// declareSignedURL declares the flag for the URL that is signed, and says what stands in for it.
func declareSignedURL(f *pflag.FlagSet, to *string, otherwise string) {
	f.StringVar(to, "signed-url", "", "`URL` as registered with the provider, where it signs that; if not set, "+otherwise)
}

// forge builds the maker of signed requests to that URL. Its errors are mistakes of whoever asks.
func (s *signing) forge(w *world, url string) (*forge, error) {
	if _, err := storm.ParseTarget(url); err != nil {
		return nil, err
	}
	known, err := specification(cmp.Or(s.provider, defaultProvider(s.spec)), s.spec)
	if err != nil {
		return nil, err
	}
	return s.forgeAs(w, known, url)
}

// defaultProvider is the provider where none is named and there is no specification either.
func defaultProvider(spec string) string {
	if spec != "" {
		return ""
	}
	return config.DevProvider
}

// forgeAs is forge for a specification.
func (s *signing) forgeAs(w *world, known spec.Spec, url string) (*forge, error) {
	name := cmp.Or(known.Title, known.Name)
	switch {
	case !known.Imitable():
		return nil, fmt.Errorf("%s signs with a private key that only it has, so nothing can be signed in its name; "+
			"try a request that was captured with hookonce verify", name)
	case s.secret == "":
		return nil, errors.New("--secret is missing: what is sent has to be signed; give env:NAME, file:PATH or the secret itself")
	case s.body == "" && known.Example.Body == "" && known.Example.Form == "":
		return nil, fmt.Errorf("%s has no example to send; give one with --body, or write it into the specification (example:, with body:)", name)
	}
	secret, err := config.ResolveSecret(s.secret, config.Input{Environ: w.environ, ReadFile: os.ReadFile})
	if err != nil {
		return nil, fmt.Errorf("--secret: %w", err)
	}
	p, err := build(known, s.spec, spec.Settings{Secrets: spec.Secrets(secret.Reveal()), URL: cmp.Or(s.signedURL, url)})
	if err != nil {
		return nil, err
	}
	f := &forge{provider: p, url: url, event: s.kind}
	if s.body != "" {
		if f.body, err = os.ReadFile(s.body); err != nil {
			return nil, fmt.Errorf("--body: %w", err)
		}
	}
	f.header, err = parseHeaders(s.headers)
	return f, err
}

// forge makes signed requests the way the provider does.
type forge struct {
	provider *spec.Provider
	url      string      // to post to
	event    string      // type; empty: the provider's usual one
	body     []byte      // nil: the provider's sample
	header   http.Header // added to the sample's, or in place of them
}

// sign returns a request with an event of that id that happened at the given time, signed now. Signing
// may add to the query of its URL.
func (f *forge) sign(id string, at, now time.Time) (*hookonce.Request, error) {
	header, body := f.provider.Spec().Sample(spec.Sample{ID: id, Type: f.event, Version: at.UnixMicro(), Time: at})
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
	req := &hookonce.Request{Method: http.MethodPost, URL: f.url, Header: header, Body: body, Now: now}
	if err := f.provider.Sign(req); err != nil {
		return nil, err
	}
	maps.Copy(req.Header, f.overridden(req.Header))
	return req, nil
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

// key returns the key that a receiver finds in the request: an event that could not be recognised again
// is noticed before it is sent. It is empty where the signature was replaced on purpose.
func (f *forge) key(req *hookonce.Request) (string, error) {
	d, err := f.provider.Open(req)
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

// passing reports whether the provider's events are such that every copy of one passes on: there is no
// key, or an event only says that something changed.
func (f *forge) passing() bool {
	known := f.provider.Spec()
	return len(known.Event.Key) == 0 || known.Dedup.OnRepeat == spec.Coalesce
}

// withoutQuery returns a URL as it is shown: what is in its query may be secret.
func withoutQuery(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}
