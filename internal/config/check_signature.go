package config

import (
	"errors"
	"slices"

	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// checkSignatures holds what destinations are told about the provider's signature against the sources that they get
// events of.
func checkSignatures(r *settings.Report, cfg *Config) {
	for i := range cfg.Destinations {
		d := &cfg.Destinations[i]
		checkApp(r, d)
		for j := range cfg.Sources {
			if s := &cfg.Sources[j]; s.To == "" && slices.Contains(s.Reaches(), d.Name) {
				checkSignature(r, d, s)
			}
		}
	}
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if s.To != "" && s.Mode != Idempotent {
			d := cfg.ownDestination(s)
			checkApp(r, &d)
			checkSignature(r, &d, s)
		}
		for _, key := range appKeys {
			if s.has(key) && !s.has(toKey) && s.Mode != Idempotent {
				r.Fault(s.where(key), "%s: source %q has no URL of its own that this could be for; write it in the destination that the routes name", key, s.Name)
			}
		}
	}
}

// checkApp finds what is said about an application that is to verify nothing of the provider's.
func checkApp(r *settings.Report, d *Destination) {
	if d.SignAs == SignProvider {
		return
	}
	for _, key := range []string{"app_secret", "app_url"} {
		if d.origin.Has(key) && (key == "app_secret" || len(d.HTTPSignature) == 0) {
			r.Fault(d.where(key), "%s: deliveries to %q are not signed as the provider; write sign_as: provider, or remove it", key, d.Name)
		}
	}
}

// signatureHeaders are the headers of the gateway's own signature.
var signatureHeaders = []string{"Webhook-Id", "Webhook-Timestamp", "Webhook-Signature"}

// checkSignature looks at what becomes of a source's signatures at a destination.
func checkSignature(r *settings.Report, d *Destination, s *Source) {
	known, err := s.spec()
	if d.SignAs != SignProvider || s.Provider == "" || err != nil {
		return // what is wrong is reported already
	}
	if d.AppSecret.Reveal() != "" {
		checkGuess(r, d.where("app_secret"), "app_secret", known.Guess(d.AppSecret.Reveal()), "the gateway", "make one with openssl rand -hex 24, and give it to the application")
	}
	renewal, why := known.Renewal()
	p, err := s.NewProvider()
	if err == nil {
		renewal, why = p.Renewal()
	}
	if err == nil {
		signer, err := p.Resigner(spec.Receiver{Secret: d.AppSecret.Reveal(), URL: d.AppURL})
		switch {
		case errors.Is(err, spec.ErrSecret):
			r.Fault(d.where("app_secret"), "app_secret: for source %q: %s; it needs %s", s.Name, withoutProvider(err), known.Secret)
			return
		case err != nil:
			r.Fault(d.where("app_secret"), "app_secret: for source %q: %s; remove it", s.Name, withoutProvider(err))
			return
		case len(d.Secrets) > 0 && (renewal != spec.Fixed || d.AppSecret.Reveal() != "") && slices.ContainsFunc(signatureHeaders, signer.Carries):
			r.Fault(d.where("secrets"), "secrets: these sign in the headers webhook-id, webhook-timestamp and webhook-signature, and so does %s, the provider of source %q; write sign_as: none, so that the application verifies these secrets, or remove them, so that it verifies the provider's", known.Title, s.Name)
			return
		case len(d.HTTPSignature) > 0 && (renewal != spec.Fixed || d.AppSecret.Reveal() != "") && slices.ContainsFunc(outgoing.HTTPNames, signer.Carries):
			r.Fault(d.where(httpSignatureKey), httpSignatureKey+": these keys sign in the headers Signature and Signature-Input, and so does %s, the provider of source %q; write sign_as: none, so that the application verifies these keys, or remove them, so that it verifies the provider's", known.Title, s.Name)
			return
		}
	}
	if renewal == spec.Fixed && d.AppSecret.Reference() == "" && len(d.Secrets) == 0 && len(d.HTTPSignature) == 0 {
		r.Warn(d.where("sign_as"), "sign_as: the signature of %s cannot be made anew: it %s. An application that verifies it may reject what source %q delivers late; have it verify the gateway's, with secrets: in the destination (to: {url: ..., secrets: [...]}), or write sign_as: none", known.Title, why, s.Name)
	}
	if d.AppURL != "" && !known.SignsURL() && d.Name == s.Name && len(d.HTTPSignature) == 0 {
		r.Warn(d.where("app_url"), "app_url: %s signs no URL; remove it", known.Title)
	}
}
