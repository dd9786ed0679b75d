package config

import (
	"crypto/tls"
	"reflect"
)

// TLS is how a destination with https is recognised, and how it recognises us; or what the admin listener shows.
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

// Same reports whether other has the same certificates and names, whatever the names of their files.
func (t TLS) Same(other TLS) bool {
	return t.ServerName == other.ServerName && reflect.DeepEqual(t.pem, other.pem)
}
