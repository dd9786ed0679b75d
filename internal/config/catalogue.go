package config

import (
	"fmt"
	"strings"
	"time"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// providerHMAC is the provider that is configured wholly by its source.
const providerHMAC = "hmac"

// NewProvider returns the source's provider with its secrets.
func (s *Source) NewProvider() (*spec.Provider, error) {
	settings := spec.Settings{URL: s.URL, Tolerance: s.Tolerance}
	for _, secret := range s.Secrets {
		settings.Secrets = append(settings.Secrets, spec.Secret{Text: secret.Reveal()})
	}
	return s.build(settings)
}

func (s *Source) build(settings spec.Settings) (*spec.Provider, error) {
	if s.Provider == providerHMAC {
		return spec.New(s.HMAC.spec(), settings)
	}
	return provider.Build(s.Provider, settings)
}

func (h HMAC) spec() spec.Spec {
	c := provider.HMACConfig{
		Header:   h.Header,
		Prefix:   h.Prefix,
		Hash:     spec.Hash(h.Digest),
		KeyForm:  spec.KeyForm(h.Form),
		Encoding: spec.Encoding(h.Encoding),
		Type:     spec.Value(h.Type),
	}
	for _, part := range h.Key {
		c.Key = append(c.Key, spec.Value(part))
	}
	return c.Spec()
}

// spec returns what the catalogue says about the source's provider.
func (s *Source) spec() (spec.Spec, bool) {
	if s.Provider == providerHMAC {
		return s.HMAC.spec(), true
	}
	return provider.Lookup(s.Provider)
}

// checkProvider accepts the names of the catalogue.
func checkProvider(s string) error {
	if _, ok := provider.Lookup(s); ok {
		return nil
	}
	if near := provider.Suggest(s); near != "" {
		return fmt.Errorf("unknown provider %q; did you mean %q?", s, near)
	}
	return fmt.Errorf("unknown provider %q; write %s", s, oneOf(provider.Names()))
}

// checkProvider holds a source against what its provider needs.
func (l *loader) checkProvider(s *Source) {
	known, ok := s.spec()
	if !ok {
		return
	}
	if l.checkHMAC(s) {
		l.checkSecrets(s, known)
	}
	l.checkWindow(s, known.Limits.Window())
	if signsURL(known) && !s.has("url") {
		l.fault(s.at, "%s signs the public URL of its endpoint, and source %q has none; write url: and the URL exactly as registered there", known.Title, s.Name)
	}
}

// checkHMAC finds a block hmac that says nothing to its provider, or makes no sense, and reports
// whether the provider can be built but for its secrets.
func (l *loader) checkHMAC(s *Source) bool {
	at, written := s.within("hmac.")
	if !written {
		return true
	}
	if s.Provider != providerHMAC {
		l.fault(at, "hmac: these settings are for the provider hmac, and source %q has %s; remove them or write provider: hmac", s.Name, s.Provider)
		return true
	}
	const anySecret = "00" // good in every form
	if _, err := s.build(spec.Settings{Secrets: spec.Secrets(anySecret)}); err != nil {
		l.fault(at, "hmac: %s", plain(err))
		return false
	}
	return true
}

// checkSecrets tries every secret, so that each one that has the wrong form is named, and then the
// tolerance.
func (l *loader) checkSecrets(s *Source, known spec.Spec) {
	if !s.has("secrets") {
		l.fault(s.at, `source %q lacks its secrets: %s; write secrets: ["env:NAME"]`, s.Name, known.Secret)
	}
	var good []string
	for i, secret := range s.Secrets {
		if secret.value == "" {
			continue // reported already
		}
		if _, err := s.build(spec.Settings{Secrets: spec.Secrets(secret.value)}); err != nil {
			l.fault(s.origin.secret(i), "secrets: %s; it needs %s", plain(err), known.Secret)
			continue
		}
		good = append(good, secret.value)
	}
	if s.Tolerance == 0 || len(good) == 0 {
		return
	}
	if _, err := s.build(spec.Settings{Secrets: spec.Secrets(good...), Tolerance: s.Tolerance}); err != nil {
		l.fault(s.where("tolerance"), "tolerance: %s", plain(err))
	}
}

// checkWindow holds the retention of ids against how late the provider sends an event again. Below
// the window late copies would run twice for certain; below twice the window there is no margin.
func (l *loader) checkWindow(s *Source, window time.Duration) {
	at := l.cfg.where("retention.ids")
	if at == (place{}) {
		at = s.at
	}
	switch ids := l.cfg.Retention.IDs; {
	case ids < window:
		l.fault(at, "retention.ids: ids are forgotten after %s, but %s sends events again for up to %s, so late copies would count as new; write at least %s",
			showDuration(ids), s.Provider, showDuration(window), showDuration(2*window))
	case ids < 2*window:
		l.warn(at, "retention.ids: %s is less than twice the %s for which %s sends events again; write at least %s",
			showDuration(ids), showDuration(window), s.Provider, showDuration(2*window))
	}
}

// signsURL reports whether the signature covers the URL. This program never sees it: something in
// front of it ends TLS.
func signsURL(s spec.Spec) bool {
	for _, v := range s.Verify {
		for _, signed := range v.Sign {
			if signed == "url" {
				return true
			}
		}
	}
	return false
}

// plain returns the text of an error of package provider without the words that the place says.
func plain(err error) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "provider "); ok {
		if _, after, found := strings.Cut(rest, ": "); found {
			return after
		}
	}
	return text
}
