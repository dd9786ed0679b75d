package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"strings"
)

// TLS is how a destination with https is recognised, and how it recognises us.
type TLS struct {
	// CA is a PEM file with the certificates that the destination's may be signed by, instead of the
	// system's.
	CA string
	// Cert and Key are PEM files with the certificate that is shown to the destination, and its key.
	Cert, Key string
	// ServerName is the name in the destination's certificate, where it is not that in the URL.
	ServerName string

	config *tls.Config
	pem    struct{ ca, cert, key []byte } // what was in the files
}

// Config returns the settings in the form of crypto/tls, nil where none is needed. It is there after
// [Load], unless that was told to leave secrets unread.
func (t TLS) Config() *tls.Config { return t.config.Clone() }

// file is the name of a file whose content counts.
type file struct {
	text
	content *[]byte
}

func checkFile(s string) error {
	if s == "" || strings.ContainsRune(s, 0) {
		return errors.New("this is not the name of a file; write its path")
	}
	return nil
}

func checkHost(s string) error {
	if s == "" || strings.ContainsAny(s, "/:@ \x00") {
		return errors.New("this is not the name of a host; write one such as ledger.internal")
	}
	return nil
}

// resolveTLS reads the files of a destination.
func (l *loader) resolveTLS(d *Destination) {
	t := &d.TLS
	if t.CA == "" && t.Cert == "" && t.Key == "" && t.ServerName == "" {
		return
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	var haveCA, haveCert, haveKey bool
	if t.pem.ca, haveCA = l.pem(d, "tls.ca", t.CA); haveCA {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(t.pem.ca) {
			l.fault(d.where("tls.ca"), "tls.ca: the file %s holds no certificate; write one in PEM form", t.CA)
		}
	}
	t.pem.cert, haveCert = l.pem(d, "tls.cert", t.Cert)
	t.pem.key, haveKey = l.pem(d, "tls.key", t.Key)
	if haveCert && haveKey {
		pair, err := tls.X509KeyPair(t.pem.cert, t.pem.key)
		if err != nil {
			l.fault(d.where("tls.cert"), "tls.cert: certificate and key cannot be used: %v", err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	t.config = config
}

// pem reads a file that a setting names.
func (l *loader) pem(d *Destination, key, name string) ([]byte, bool) {
	if name == "" {
		return nil, false
	}
	if l.in.ReadFile == nil {
		l.fault(d.where(key), "%s: the file %s cannot be read here", key, name)
		return nil, false
	}
	data, err := l.in.ReadFile(name)
	if err != nil {
		l.fault(d.where(key), "%s: %v", key, unreadable(name, err))
	}
	return data, err == nil
}

// unreadable says why a file cannot be read, and what to do.
func unreadable(name string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the file %s does not exist; create it, or name another", name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the file %s cannot be read by this user; change its owner or mode", name)
	}
	return fmt.Errorf("the file cannot be read: %w", err)
}

// checkTLS looks for halves, and for what plain HTTP has no use for.
func (l *loader) checkTLS(d *Destination) {
	at, written := d.within("tls.")
	if !written {
		return
	}
	if u, err := url.Parse(d.URL); err == nil && u.Scheme == "http" {
		l.fault(at, "tls: the destination %q is called without TLS; write https: in its url, or remove these settings", d.Name)
	}
	_, cert := d.origin["tls.cert"]
	_, key := d.origin["tls.key"]
	if cert != key {
		l.fault(at, "tls: a certificate and its key go together; write both tls.cert and tls.key")
	}
}

// within returns where the first setting of a group was written, and whether one was.
func (d *Destination) within(prefix string) (place, bool) {
	for _, f := range destinationSettings {
		if g, ok := d.origin[f.key]; ok && strings.HasPrefix(f.key, prefix) {
			return g.at, true
		}
	}
	return place{}, false
}
