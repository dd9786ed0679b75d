package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/closest"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// The providers that are configured wholly by their source: in a few settings, or by a specification.
const (
	providerHMAC   = "hmac"
	providerCustom = "custom"
)

// NewProvider returns the source's provider with its secrets.
func (s *Source) NewProvider() (*spec.Provider, error) {
	return s.build(s.settings(s.Secrets...))
}

// NewTimelessProvider is [Source.NewProvider], but any signed time will do. It returns nil if the provider signs none.
func (s *Source) NewTimelessProvider() (*spec.Provider, error) {
	known, err := s.spec()
	if err != nil || !slices.ContainsFunc(known.Verify, func(v spec.Verify) bool { return v.Time != nil }) {
		return nil, err
	}
	settings := s.settings(s.Secrets...)
	settings.Tolerance = forever
	return s.build(settings)
}

// settings is what the source adds to its provider, with the given secrets.
func (s *Source) settings(secrets ...Secret) spec.Settings {
	settings := spec.Settings{URL: s.URL, Tolerance: s.Tolerance, Handshakes: s.Handshakes, Token: s.Token.Reveal()}
	for _, secret := range secrets {
		settings.Secrets = append(settings.Secrets, secret.spec())
	}
	return settings
}

func (s *Source) build(settings spec.Settings) (*spec.Provider, error) {
	known, err := s.spec()
	if err != nil {
		return nil, err
	}
	return spec.New(known, settings)
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

// spec returns what is known about the source's provider, with its defaults.
func (s *Source) spec() (known spec.Spec, err error) {
	switch {
	case s.Provider == providerHMAC:
		known = s.HMAC.spec()
	case s.Provider != providerCustom:
		known, err = provider.Lookup(s.Provider)
	case s.Spec == nil:
		err = fmt.Errorf("source %q lacks its specification", s.Name)
	default:
		known = *s.Spec
	}
	return known.WithDefaults(), err
}

// checkProvider accepts the names of the catalogue.
func checkProvider(s string) error {
	_, err := provider.Lookup(s)
	switch _, near := closest.Word(s, []string{providerCustom}); {
	case s == providerCustom:
		return nil
	case near && err != nil:
		return fmt.Errorf("%w: %q; did you mean %q?", provider.ErrUnknown, s, providerCustom)
	}
	return err
}

// checkProvider holds a source against what its provider needs.
func (l *loader) checkProvider(s *Source) {
	sound := l.checkHMAC(s) && l.checkSpec(s)
	known, err := s.spec()
	if err != nil {
		return // reported already
	}
	if sound {
		l.checkSecrets(s, known)
	}
	l.checkWindow(s, known)
	l.checkTwins(s, known)
	if known.SignsURL() && !s.has("url") {
		l.fault(s.at, "%s signs the public URL of its endpoint, and source %q has none; %s and the URL exactly as registered there", known.Title, s.Name, s.at.either("write url:", "add --url"))
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
// settings that depend on the provider.
func (l *loader) checkSecrets(s *Source, known spec.Spec) {
	if !s.has("secrets") && !l.makesSecret(s) {
		l.fault(s.at, `source %q lacks its secrets: %s; %s`, s.Name, known.Secret, s.at.either(`write secrets: ["env:NAME"]`, "add --secret env:NAME"))
	}
	var good []string
	for i, secret := range s.Secrets {
		if secret.value == "" {
			continue // reported already
		}
		switch _, err := s.build(spec.Settings{Secrets: spec.Secrets(secret.value)}); {
		case errors.Is(err, spec.ErrSecret):
			l.fault(s.origin.element("secrets", i), "secrets: %s; it needs %s", plain(err), known.Secret)
		case err != nil && s.Provider == providerCustom:
			l.specFaults(s, err)
			return
		case err != nil:
			l.fault(s.where("provider"), "provider: %s", plain(err))
			return
		default:
			l.checkStrength(s, i, known)
			good = append(good, secret.value)
		}
	}
	if len(good) > 0 {
		l.checkSettings(s, good)
	}
	l.checkValidity(s)
}

// How many characters of a secret are to be guessed at least, and how many are safe, so that a short one is worth a
// warning. What senders hand out is longer; people make up short ones. HMAC wants 14 bytes that nobody can guess
// (https://doi.org/10.6028/NIST.SP.800-131Ar2, table 9), and characters are worth less than bytes.
const (
	minSecret  = 8
	safeSecret = 16
)

// checkStrength refuses a secret that can be guessed, and warns of a short one that whoever receives made up.
func (l *loader) checkStrength(s *Source, i int, known spec.Spec) {
	at, mend := s.origin.element("secrets", i), "have the sender make a new one"
	own := known.OwnSecret || s.Provider == providerCustom
	if own {
		mend = "make one with openssl rand -hex 24, and enter it at the sender"
	}
	n := known.Guess(s.Secrets[i].value)
	l.checkGuess(at, "secrets", n, "the sender", mend)
	if own && n >= minSecret && n < safeSecret {
		l.warn(at, "secrets: %s has %d of the %d characters that are safe, and whoever guesses it passes for the sender; %s", s.Secrets[i], n, safeSecret, mend)
	}
}

// checkGuess refuses a secret of which so many characters are to be guessed; fewer than none: it is not known.
func (l *loader) checkGuess(at place, key string, n int, who, mend string) {
	if n >= 0 && n < minSecret {
		l.fault(at, "%s: it has %d of the %d characters that a secret needs, and whoever guesses it passes for %s; %s", key, n, minSecret, who, mend)
	}
}

// makesSecret reports whether a secret is made up for a source that has none.
func (l *loader) makesSecret(s *Source) bool {
	if !l.cfg.Development {
		return false
	}
	_, err := s.MakeSecret()
	return err == nil
}

// checkSettings tries the settings that not every provider has a use for, one after the other.
func (l *loader) checkSettings(s *Source, secrets []string) {
	settings := spec.Settings{Secrets: spec.Secrets(secrets...), Tolerance: s.Tolerance}
	if _, err := s.build(settings); err != nil {
		l.fault(s.where("tolerance"), "tolerance: %s", plain(err))
	}
	settings.Tolerance, settings.URL, settings.Handshakes, settings.Token = 0, s.URL, s.Handshakes, s.Token.value
	if s.has("token") && settings.Token == "" {
		return // reported already
	}
	if _, err := s.build(settings); err != nil {
		l.fault(s.where("handshakes"), "handshakes: %s", plain(err))
	}
	if s.has("token") && !s.Handshakes {
		l.warn(s.where("token"), "token: only handshakes ask for it, and source %q answers none; write handshakes: true, or remove it", s.Name)
	}
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
