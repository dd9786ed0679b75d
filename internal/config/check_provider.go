package config

import (
	"errors"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/secretshape"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/specdecode"
	"github.com/hookonce/hookonce/provider/spec"
)

// checkSender holds a source against what its provider needs.
func checkSender(r *settings.Report, cfg *Config, s *Source, environ []string) {
	sound := checkHMAC(r, s) && checkSpec(r, s)
	known, err := s.spec()
	if err != nil {
		return // reported already
	}
	if sound {
		checkSecrets(r, cfg, s, known, environ)
	}
	checkWindow(r, cfg, s, known)
	checkLogicalDuplicates(r, s, known)
	checkReconcile(r, cfg, s, known)
	if known.SignsURL() && !s.has("url") {
		r.Fault(s.at, "%s signs the public URL of its endpoint, and source %q has none; %s and the URL exactly as registered there", known.Title, s.Name, s.at.Either("write url:", "add --url"))
	}
}

// checkHMAC finds a block hmac that says nothing to its provider, or makes no sense, and reports
// whether the provider can be built but for its secrets.
func checkHMAC(r *settings.Report, s *Source) bool {
	at, written := s.within("hmac.")
	if !written {
		return true
	}
	if s.Provider != providerHMAC {
		r.Fault(at, "hmac: these settings are for the provider hmac, and source %q has %s; remove them or write provider: hmac", s.Name, s.Provider)
		return true
	}
	const anySecret = "00" // good in every form
	if _, err := s.build(spec.Settings{Secrets: spec.Secrets(anySecret)}); err != nil {
		r.Fault(at, "hmac: %s", withoutProvider(err))
		return false
	}
	return true
}

// checkSpec finds a specification that its provider has no use for, that is missing, or that is not
// safe, and reports whether the provider can be built but for its secrets.
func checkSpec(r *settings.Report, s *Source) bool {
	custom := s.Provider == providerCustom
	switch {
	case !custom && s.has(specKey):
		r.Fault(s.where(specKey), "spec: a specification is for the provider custom, and source %q has %s; remove it or write provider: custom", s.Name, s.Provider)
		return true
	case !custom:
		return true
	case !s.has(specKey):
		r.Fault(s.at, "source %q lacks its specification; write spec: in the file, with verify and event below it, or another provider", s.Name)
		return false
	case s.Spec == nil:
		return false // reported already
	}
	if err := s.Spec.Validate(); err != nil {
		specFaults(r, s, err)
		return false
	}
	return true
}

// specFaults reports what is wrong with the specification of a source, each fault where it is written.
func specFaults(r *settings.Report, s *Source, err error) {
	n := s.specNode
	var faults spec.Faults
	if !errors.As(specdecode.Locate(n.Raw, err), &faults) {
		r.Fault(n.At, "spec: %s", withoutProvider(err))
		return
	}
	for _, f := range faults {
		r.Fault(settings.Place{Name: n.At.Name, Line: f.Line, Column: f.Column}, "spec: %s%s", dotted(f.Field), f.Text)
	}
}

// dotted is a field with what separates it from the text.
func dotted(field string) string {
	if field == "" {
		return ""
	}
	return field + ": "
}

// checkSecrets tries every secret, so that each one that has the wrong form is named, and then the
// settings that depend on the provider.
func checkSecrets(r *settings.Report, cfg *Config, s *Source, known spec.Spec, environ []string) {
	if !s.has("secrets") && !makesSecret(cfg, s) {
		r.Fault(s.at, `source %q lacks its secrets: %s; %s`, s.Name, known.Secret, s.at.Either(`write secrets: ["env:NAME"]`, "add --secret env:NAME"))
	}
	var good []string
	for i, secret := range s.Secrets {
		if secret.Reveal() == "" {
			continue // reported already
		}
		if !checkShape(r, s.origin.Element("secrets", i), "secrets", secret, environ, s.shapeOf(known)) {
			continue
		}
		switch _, err := s.build(spec.Settings{Secrets: spec.Secrets(secret.Reveal())}); {
		case errors.Is(err, spec.ErrSecret):
			r.Fault(s.origin.Element("secrets", i), "secrets: %s; it needs %s", withoutProvider(err), known.Secret)
		case err != nil && s.Provider == providerCustom:
			specFaults(r, s, err)
			return
		case err != nil:
			r.Fault(s.where("provider"), "provider: %s", withoutProvider(err))
			return
		default:
			checkStrength(r, s, i, known)
			good = append(good, secret.Reveal())
		}
	}
	if len(good) > 0 {
		checkSettings(r, s, good)
	}
}

// checkShape refuses a secret that by its shape is none, and warns of one that may be none. It reports whether it can be one.
func checkShape(r *settings.Report, at settings.Place, key string, secret settings.Secret, environ []string, known spec.Spec) bool {
	found, odd := secretshape.Look(secret.Reveal(), environ, known)
	switch {
	case odd && found.Sure:
		r.Fault(at, "%s: the secret %s; %s", key, found.Text, found.Mend)
		return false
	case odd:
		r.Warn(at, "%s: the secret %s; leave it if it is meant so, else %s", key, found.Text, found.Mend)
	}
	return true
}

// shapeOf returns the specification of a source's sender, for whoever goes by the shape of its secrets: of a sender that is not in
// the catalogue nothing is known of that.
func (s *Source) shapeOf(known spec.Spec) spec.Spec {
	known.OwnSecret = known.OwnSecret || s.Provider == providerCustom
	return known
}

// How many characters of a secret are to be guessed at least, and how many are safe, so that a short one is worth a
// warning. What senders hand out is longer; people make up short ones. HMAC wants 14 bytes that nobody can guess
// (https://doi.org/10.6028/NIST.SP.800-131Ar2, table 9), and characters are worth less than bytes.
const (
	minSecret  = 8
	safeSecret = 16
)

// checkStrength refuses a secret that can be guessed, and warns of a short one that whoever receives made up.
func checkStrength(r *settings.Report, s *Source, i int, known spec.Spec) {
	at, mend := s.origin.Element("secrets", i), "have the sender make a new one"
	own := known.OwnSecret || s.Provider == providerCustom
	if own {
		mend = "make one with openssl rand -hex 24, and enter it at the sender"
	}
	n := known.Guess(s.Secrets[i].Reveal())
	checkGuess(r, at, "secrets", n, "the sender", mend)
	if own && n >= minSecret && n < safeSecret {
		r.Warn(at, "secrets: %s has %d of the %d characters that are safe, and whoever guesses it passes for the sender; %s", s.Secrets[i], n, safeSecret, mend)
	}
}

// checkGuess refuses a secret of which so many characters are to be guessed; fewer than none: it is not known.
func checkGuess(r *settings.Report, at settings.Place, key string, n int, who, mend string) {
	if n >= 0 && n < minSecret {
		r.Fault(at, "%s: it has %d of the %d characters that a secret needs, and whoever guesses it passes for %s; %s", key, n, minSecret, who, mend)
	}
}

// makesSecret reports whether a secret is made up for a source that has none.
func makesSecret(cfg *Config, s *Source) bool {
	if !cfg.Development {
		return false
	}
	_, err := s.MakeSecret()
	return err == nil
}

// checkSettings tries the settings that not every provider has a use for, one after the other.
func checkSettings(r *settings.Report, s *Source, secrets []string) {
	own := spec.Settings{Secrets: spec.Secrets(secrets...), Tolerance: s.Tolerance}
	if _, err := s.build(own); err != nil {
		r.Fault(s.where("tolerance"), "tolerance: %s", withoutProvider(err))
	}
	own.Tolerance, own.URL, own.Handshakes, own.Token = 0, s.URL, s.Handshakes, s.Token.Reveal()
	if s.has("token") && own.Token == "" {
		return // reported already
	}
	if _, err := s.build(own); err != nil {
		r.Fault(s.where("handshakes"), "handshakes: %s", withoutProvider(err))
	}
	if s.has("token") && !s.Handshakes {
		r.Warn(s.where("token"), "token: only handshakes ask for it, and source %q answers none; write handshakes: true, or remove it", s.Name)
	}
}

// checkValidity warns about secrets that are not valid at all times, and most of all about a source
// that has none now.
func checkValidity(r *settings.Report, s *Source, now time.Time) {
	valid := 0
	for i, secret := range s.Secrets {
		at := s.origin.Element("secrets", i)
		switch from, until := secret.From, secret.Until; {
		case now.Before(from):
			r.Warn(at, "secrets: %s is not valid before %s", secret, settings.Time(&from).Show())
			continue
		case !until.IsZero() && !now.Before(until):
			r.Warn(at, "secrets: %s is not valid since %s; remove it", secret, settings.Time(&until).Show())
			continue
		case !until.IsZero():
			r.Warn(at, "secrets: %s is valid until %s", secret, settings.Time(&until).Show())
		}
		valid++
	}
	if valid == 0 && len(s.Secrets) > 0 {
		r.Warn(s.where("secrets"), "secrets: none of source %q is valid now, so that every request is answered 503; add the current one", s.Name)
	}
}

// checkWindow refuses to forget ids sooner than after twice the time for which the provider sends an
// event again: below that time late copies would run twice for certain, and above it there is a margin.
func checkWindow(r *settings.Report, cfg *Config, s *Source, known spec.Spec) {
	ids, window, keep := cfg.RetentionOf(s).IDs, known.Limits.Window(), known.Limits.Keep()
	if ids >= keep {
		return
	}
	at := whereKept(cfg, s, keepIDs)
	if at == (settings.Place{}) {
		at = s.at
	}
	r.Fault(at, "retention.ids: ids are forgotten after %s, but %s sends events again for up to %s, and late copies must not count as new; write at least twice that, %s",
		settings.ShowDuration(ids), known.Name, settings.ShowDuration(window), settings.ShowDuration(keep))
}

// whereKept returns the place that the first of the settings came from that the source has, or else all sources.
func whereKept(cfg *Config, s *Source, keys ...string) settings.Place {
	return s.origin.Where(cfg.where(keys...), keys...)
}

// checkLogicalDuplicates finds types that are to be dropped as logical duplicates where nothing recognises logical duplicates.
func checkLogicalDuplicates(r *settings.Report, s *Source, known spec.Spec) {
	if len(s.LogicalDuplicates.Drop) > 0 && len(known.Dedup.Logical) == 0 {
		r.Warn(s.where("logical_duplicates.drop"), "logical_duplicates.drop: %s is not known to send two events for one change, so that nothing is dropped", known.Title)
	}
}

// withoutProvider returns the text of an error of package provider without the words that the place says.
func withoutProvider(err error) string {
	text := err.Error()
	if rest, ok := strings.CutPrefix(text, "provider "); ok {
		if _, after, found := strings.Cut(rest, ": "); found {
			return after
		}
	}
	return text
}
