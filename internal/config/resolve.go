package config

import (
	"crypto/tls"
	"crypto/x509"

	"github.com/hookonce/hookonce/internal/settings"
)

// resolveAll reads the secrets and files that a configuration refers to.
func resolveAll(r *settings.Report, cfg *Config, e settings.Resolver) {
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
		for j := range s.Secrets {
			resolveSecret(r, e, &s.Secrets[j], s.origin.Element("secrets", j), "secrets")
		}
		resolveSecret(r, e, &s.Token, s.where("token"), "token")
		resolveSecret(r, e, &s.AppSecret, s.where("app_secret"), "app_secret")
		resolveSecret(r, e, &s.Reconcile.Token, s.where(reconcileToken), reconcileToken)
	}
}

func resolveSecret(r *settings.Report, e settings.Resolver, s *settings.Secret, at settings.Place, key string) {
	if err := e.Resolve(s); err != nil {
		r.Fault(at, "%s: %v", key, err)
	}
}

func resolveDestination(r *settings.Report, e settings.Resolver, d *Destination) {
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
		}
	}
	resolveTLS(r, e, &d.TLS, "tls.", d.where)
}

// resolveTLS reads the files with the certificates of a destination or of the admin listener. The keys of their settings begin
// with prefix, and where says what was written where.
func resolveTLS(r *settings.Report, e settings.Resolver, t *TLS, prefix string, where func(key string) settings.Place) {
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
	t.pem.key, haveKey = read("key", t.Key)
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
func readPEM(r *settings.Report, e settings.Resolver, at settings.Place, key, name string) ([]byte, bool) {
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
