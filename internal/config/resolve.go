package config

import (
	"crypto/tls"
	"crypto/x509"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// Inline is a secret that stands in the configuration file itself, and where.
type Inline struct {
	Key string
	At  settings.Place
}

// SecretFile is a file that holds a secret or a private key, and the setting that names it.
type SecretFile struct {
	Name, Key string
	At        settings.Place
}

// resolver reads secrets, and notes where those stand that not everybody may have.
type resolver struct {
	settings.Resolver
	inline *[]Inline
	files  *[]SecretFile
}

// note remembers where a secret stands: in a file of its own, or in that of the configuration.
func (e resolver) note(s *settings.Secret, at settings.Place, key string) {
	if strings.Contains(s.Reveal(), "PUBLIC KEY-----") {
		return // which everybody may have
	}
	if name, ok := strings.CutPrefix(s.Reference(), "file:"); ok {
		e.noteFile(name, at, key)
	} else if at.Line > 0 && s.Reference() != "" && s.String() == settings.Mask {
		*e.inline = append(*e.inline, Inline{key, at})
	}
}

func (e resolver) noteFile(name string, at settings.Place, key string) {
	*e.files = append(*e.files, SecretFile{name, key, at})
}

// resolveAll reads the secrets and files that a configuration refers to.
func resolveAll(r *settings.Report, cfg *Config, e resolver) {
	for i := range cfg.AdminTokens {
		t := &cfg.AdminTokens[i]
		resolveSecret(r, e, &t.Token, t.where("token"), "token")
	}
	resolveChannels(r, e, cfg)
	resolveTLS(r, e, &cfg.AdminTLS, "admin_tls.", func(key string) settings.Place { return cfg.where(key) })
	resolveTLS(r, e, &cfg.CellTLS, "cell_tls.", func(key string) settings.Place { return cfg.where(key) })
	resolveSecret(r, e, &cfg.Tracing.Secret, cfg.where("tracing.secret"), "tracing.secret")
	resolveTLS(r, e, &cfg.Tracing.TLS, "tracing.", func(key string) settings.Place { return cfg.where(key) })
	for i := range cfg.Destinations {
		resolveDestination(r, e, &cfg.Destinations[i])
	}
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		if s.own != nil {
			resolveDestination(r, e, s.own)
		}
		verifier := e
		if s.publicKeys() {
			verifier.inline, verifier.files = new([]Inline), new([]SecretFile) // everybody may have them
		}
		for j := range s.Secrets {
			resolveSecret(r, verifier, &s.Secrets[j], s.origin.Element("secrets", j), "secrets")
		}
		resolveSecret(r, e, &s.Token, s.where("token"), "token")
		resolveSecret(r, e, &s.AppSecret, s.where("app_secret"), "app_secret")
		resolveSecret(r, e, &s.Reconcile.Token, s.where(reconcileToken), reconcileToken)
	}
}

// publicKeys reports whether what verifies the requests of a source are public keys.
func (s *Source) publicKeys() bool {
	known, err := s.spec()
	return err == nil && len(known.Verify) > 0 && !slices.ContainsFunc(known.Verify, func(v spec.Verify) bool {
		return v.Kind != spec.Ed25519 && v.Kind != spec.ECDSA && v.Kind != spec.RSA
	})
}

func resolveSecret(r *settings.Report, e resolver, s *settings.Secret, at settings.Place, key string) {
	if err := e.Resolve(s); err != nil {
		r.Fault(at, "%s: %v", key, err)
		return
	}
	e.note(s, at, key)
}

func resolveDestination(r *settings.Report, e resolver, d *Destination) {
	for i := range d.Secrets {
		resolveSecret(r, e, &d.Secrets[i], d.origin.Element("secrets", i), "secrets")
	}
	for i := range d.HTTPSignature {
		resolveSecret(r, e, &d.HTTPSignature[i].Key, d.origin.Element(httpSignatureKey, i), httpSignatureKey)
	}
	resolveSecret(r, e, &d.AppSecret, d.where("app_secret"), "app_secret")
	for i := range d.Headers {
		if err := d.Headers[i].resolve(e); err != nil {
			r.Fault(d.origin.Element("headers", i), "headers: %s: %v", d.Headers[i].Name, err)
		} else if d.Headers[i].confidential() || d.Headers[i].Value.String() != settings.Mask {
			e.note(&d.Headers[i].Value, d.origin.Element("headers", i), "headers")
		}
	}
	resolveTLS(r, e, &d.TLS, "tls.", d.where)
}

// resolveTLS reads the files with the certificates of a destination or of the admin listener. The keys of their settings begin
// with prefix, and where says what was written where.
func resolveTLS(r *settings.Report, e resolver, t *TLS, prefix string, where func(key string) settings.Place) {
	read := func(key, name string) ([]byte, bool) { return readPEM(r, e, where(prefix+key), prefix+key, name) }
	if t.CA == "" && t.Cert == "" && t.Key == "" && t.ServerName == "" {
		return
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	var haveCA, haveCert, haveKey bool
	if t.pem.ca, haveCA = read("ca", t.CA); haveCA {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(t.pem.ca) {
			r.Fault(where(prefix+"ca"), prefix+"ca: the file %s holds no certificate; write one in PEM form", t.CA)
		}
	}
	t.pem.cert, haveCert = read("cert", t.Cert)
	if t.pem.key, haveKey = read("key", t.Key); haveKey {
		e.noteFile(t.Key, where(prefix+"key"), prefix+"key")
	}
	if haveCert && haveKey {
		pair, err := tls.X509KeyPair(t.pem.cert, t.pem.key)
		if err != nil {
			r.Fault(where(prefix+"cert"), prefix+"cert: certificate and key cannot be used: %v", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	t.config = config
}

// readPEM reads a file that a setting names.
func readPEM(r *settings.Report, e resolver, at settings.Place, key, name string) ([]byte, bool) {
	if name == "" {
		return nil, false
	}
	if e.ReadFile == nil {
		r.Fault(at, "%s: the file %s cannot be read here", key, name)
		return nil, false
	}
	data, err := e.ReadFile(name)
	if err != nil {
		r.Fault(at, "%s: %v", key, settings.Unreadable(name, err))
	}
	return data, err == nil
}
