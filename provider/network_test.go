package provider

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// net stands in for the network. It counts what is asked of it.
type net struct {
	asked atomic.Int64
	serve func(*http.Request) (status int, body string)
}

func (n *net) RoundTrip(req *http.Request) (*http.Response, error) {
	n.asked.Add(1)
	status, body := n.serve(req)
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Request: req,
		Header: http.Header{"Location": {"https://elsewhere.example/"}}, Body: io.NopCloser(strings.NewReader(body)),
	}, nil
}

// authority issues certificates.
type authority struct {
	key  *rsa.PrivateKey
	cert *x509.Certificate
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	a := &authority{key: newRSA(t)}
	a.cert = a.issue(t, "Fake Root", &a.key.PublicKey, now.Add(day))
	return a
}

func newRSA(t testing.TB) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// issue returns a certificate for that name and key; the first one is the authority's own.
func (a *authority) issue(t testing.TB, name string, key *rsa.PublicKey, until time.Time) *x509.Certificate {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-day), NotAfter: until,
		IsCA: a.cert == nil, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	parent := a.cert
	if parent == nil {
		parent = template
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key, a.key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return cert
}

func (a *authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

func inPEM(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// rsaSigned returns the signature of a message in base64.
func rsaSigned(t testing.TB, key *rsa.PrivateKey, hash crypto.Hash, message string) string {
	t.Helper()
	h := hash.New()
	h.Write([]byte(message))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, hash, h.Sum(nil))
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(signature)
}

// withScheme returns the provider of that name with its scheme exchanged, and that secret.
func withScheme(t testing.TB, name string, code spec.Scheme, secrets ...string) *spec.Provider {
	t.Helper()
	s, _ := Lookup(name)
	s.Verify[0].Scheme = code
	p, err := spec.New(s, spec.Settings{Secrets: spec.Secrets(secrets...)})
	if err != nil {
		t.Fatal(err)
	}
	return p
}
