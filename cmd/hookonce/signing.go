package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/cmd/hookonce/internal/signer"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/traffic"
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

// signer builds the maker of signed requests to that URL. Its errors are mistakes of whoever asks.
func (s *signing) signer(w *env, url string) (*signer.Signer, error) {
	if _, err := traffic.ParseTarget(url); err != nil {
		return nil, err
	}
	known, err := specification(cmp.Or(s.provider, defaultProvider(s.spec)), s.spec)
	if err != nil {
		return nil, err
	}
	return s.signerOf(w, known, url)
}

// defaultProvider is the provider where none is named and there is no specification either.
func defaultProvider(spec string) string {
	if spec != "" {
		return ""
	}
	return config.DevProvider
}

// signerOf is signer for a specification.
func (s *signing) signerOf(w *env, known spec.Spec, url string) (*signer.Signer, error) {
	name := cmp.Or(known.Title, known.Name)
	switch {
	case !known.Imitable() && known.Verify[0].Kind != spec.HTTPSignature:
		return nil, fmt.Errorf("%s signs with a private key that only it has, so nothing can be signed in its name; "+
			"try a request that was captured with hookonce verify", name)
	case s.secret == "":
		return nil, errors.New("--secret is missing: what is sent has to be signed; give env:NAME, file:PATH or the secret itself")
	case s.body == "" && known.Example.Body == "" && known.Example.Form == "":
		return nil, fmt.Errorf("%s has no example to send; give one with --body, or write it into the specification (example:, with body:)", name)
	}
	secret, err := settings.Resolver{Environ: w.environ, ReadFile: os.ReadFile}.Secret(s.secret)
	if err != nil {
		return nil, fmt.Errorf("--secret: %w", err)
	}
	p, err := build(known, s.spec, spec.Settings{Secrets: spec.Secrets(secret.Reveal()), URL: cmp.Or(s.signedURL, url), AsSender: true})
	if err != nil {
		return nil, err
	}
	f := &signer.Signer{Provider: p, URL: url, Type: s.kind}
	if s.body != "" {
		if f.Body, err = os.ReadFile(s.body); err != nil {
			return nil, fmt.Errorf("--body: %w", err)
		}
	}
	f.Header, err = parseHeaders(s.headers)
	return f, err
}

// withoutQuery returns a URL as it is shown: what is in its query may be secret.
func withoutQuery(url string) string {
	url, _, _ = strings.Cut(url, "?")
	return url
}

// cause returns why the request failed, without the URL.
func cause(ctx context.Context, err error) error {
	var e *url.Error
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.As(err, &e):
		return e.Err
	}
	return err
}
