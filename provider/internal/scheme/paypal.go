package scheme

import (
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/crc32"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/lru"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/internal/remotekeys"
	"github.com/hookonce/hookonce/provider/spec"
)

// keepTransmissions is how many transmissions are remembered with the hash of their body.
const keepTransmissions = 16 << 10

// paypalScheme is RSA over the transmission's id and time, the webhook's id and a checksum of the body.
type paypalScheme struct {
	certificates  *remotekeys.Certificates
	transmissions *transmissions
}

// PayPal returns the scheme of PayPal, with an empty cache of certificates that lead to one of the roots. Nil means those
// of the system.
func PayPal(transport http.RoundTripper, roots *x509.CertPool) spec.Scheme {
	trust := func(chain []*x509.Certificate, now time.Time) error { return trustPayPal(chain, roots, now) }
	return &paypalScheme{remotekeys.NewCertificates(remotekeys.NewClient(transport), `([a-z0-9-]+\.)+paypal\.com/[A-Za-z0-9/._-]+`, trust), newTransmissions()}
}

func (*paypalScheme) MarshalText() ([]byte, error) { return []byte("paypal"), nil }
func (*paypalScheme) Covers() spec.Coverage        { return spec.CoversCRC32 }

// Signs is false for all of the body: a checksum does not bind it.
func (*paypalScheme) Signs(v spec.Value) bool {
	return strings.HasPrefix(string(v), "const:") || strings.EqualFold(string(v), "header:Paypal-Transmission-Id")
}

func (s *paypalScheme) Compile(webhookID string) (spec.Checker, error) {
	if webhookID == "" || strings.TrimSpace(webhookID) != webhookID || strings.Contains(webhookID, "|") {
		return nil, errors.New("is not the id of a webhook: it is empty, or has a vertical bar or white space around it")
	}
	return &paypalChecker{s, webhookID}, nil
}

type paypalChecker struct {
	*paypalScheme
	webhookID string
}

func (c *paypalChecker) Check(req *hookonce.Request) error {
	var id, sent, sig, address, algorithm string
	for _, h := range []struct {
		to          *string
		name, shape string
	}{
		{&id, "PAYPAL-TRANSMISSION-ID", "a UUID"},
		{&sent, "PAYPAL-TRANSMISSION-TIME", "an RFC 3339 time"},
		{&sig, "PAYPAL-TRANSMISSION-SIG", "base64"},
		{&address, "PAYPAL-CERT-URL", "the address of a certificate"},
		{&algorithm, "PAYPAL-AUTH-ALGO", "SHA256withRSA"},
	} {
		var err error
		if *h.to, err = incoming.Required(req.Header, h.name, h.shape); err != nil {
			return err
		}
	}
	signature, err := base64.StdEncoding.Strict().DecodeString(sig)
	if err != nil {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "PAYPAL-TRANSMISSION-SIG is not base64")
	}
	if algorithm != "SHA256withRSA" || strings.Contains(id+sent, "|") {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "PAYPAL-AUTH-ALGO is not SHA256withRSA, or the transmission's id or time has a vertical bar in it")
	}
	key, err := c.certificates.Key(address, req)
	if err != nil {
		return err
	}
	digest := sha256.Sum256([]byte(paypalMessage(id, sent, c.webhookID, req.Body)))
	if rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) != nil {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "PAYPAL-TRANSMISSION-SIG was not made over this transmission, the webhook's id and this body; check the webhook's id, and that the body is passed on byte for byte")
	}
	if !c.transmissions.first(id, req.Body) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the transmission was seen before with another body; the signature covers only a checksum of it")
	}
	return nil
}

// paypalMessage is what PayPal signs.
func paypalMessage(id, sent, webhookID string, body []byte) string {
	return fmt.Sprintf("%s|%s|%s|%d", id, sent, webhookID, crc32.ChecksumIEEE(body))
}

// trustPayPal verifies that the chain leads to a root, and that it is PayPal's.
func trustPayPal(chain []*x509.Certificate, roots *x509.CertPool, now time.Time) error {
	between := x509.NewCertPool()
	for _, c := range chain[1:] {
		between.AddCert(c)
	}
	leaf := chain[0]
	options := x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}
	if _, err := leaf.Verify(options); err != nil {
		return fmt.Errorf("the certificate is not trusted: %w", err)
	}
	for _, name := range slices.Concat(leaf.DNSNames, []string{leaf.Subject.CommonName}) {
		if strings.HasSuffix(strings.ToLower(name), ".paypal.com") {
			return nil
		}
	}
	return errors.New("the certificate is not PayPal's")
}

// transmissions remembers the body that each transmission came with. Only those of genuine requests
// get in, so that strangers cannot push them out. Safe for concurrent use.
type transmissions struct {
	mu   sync.Mutex
	seen *lru.Map[string, [sha256.Size]byte]
}

func newTransmissions() *transmissions {
	return &transmissions{seen: lru.New[string, [sha256.Size]byte](keepTransmissions)}
}

// first reports whether the transmission was not seen with another body.
func (t *transmissions) first(id string, body []byte) bool {
	sum := sha256.Sum256(body)
	t.mu.Lock()
	defer t.mu.Unlock()
	if before, ok := t.seen.Get(id); ok {
		return before == sum
	}
	t.seen.Add(id, sum)
	return true
}
