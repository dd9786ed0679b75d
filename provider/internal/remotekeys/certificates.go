package remotekeys

import (
	"bytes"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// keepCertificate is how long a certificate is kept before it is fetched again. It is used until then, and until the end of
// its own time if it cannot be.
const keepCertificate = 24 * time.Hour

// maxAddress bounds the address of a certificate in bytes: PayPal's own bound for it is 500
// (docs.paypal.ai/reference/api/rest/verify-webhook-signature/verify-webhook-signature).
const maxAddress = 500

// Certificates fetches the certificates that a sender signs with, from addresses that the requests
// name. Only hosts that the pin allows are ever contacted.
type Certificates struct {
	client *http.Client
	pin    *regexp.Regexp // of the host and the path, as a whole
	trust  func(chain []*x509.Certificate, now time.Time) error
	keys   *Cache[*rsa.PublicKey]
}

// NewCertificates returns an empty cache of certificates that trust accepts, from hosts and paths that match the pin, a
// regular expression.
func NewCertificates(client *http.Client, pin string, trust func([]*x509.Certificate, time.Time) error) *Certificates {
	c := &Certificates{client: client, pin: regexp.MustCompile(`\A(?:` + pin + `)\z`), trust: trust}
	c.keys = New(OfFiles, c.fetch)
	return c
}

// Key returns the key in the certificate at that address. An address outside of the pin is a
// rejection.
func (c *Certificates) Key(address string, req *hookonce.Request) (*rsa.PublicKey, error) {
	place, ok := c.place(address)
	if !ok {
		return nil, incoming.Reject(hookonce.ReasonSignatureMalformed, "the certificate's address is not one of the sender's: only https, its own hosts and no query are accepted")
	}
	return c.keys.Get(place, req)
}

// place returns the one spelling of an address that the pin allows. Were there several of one
// certificate, strangers could have it fetched under all of them.
func (c *Certificates) place(address string) (string, bool) {
	u, err := url.Parse(address)
	if err != nil || len(address) > maxAddress || u.Scheme != "https" || u.User != nil || strings.ContainsAny(address, "?#") || path.Clean(u.Path) != u.Path {
		return "", false
	}
	place := strings.ToLower(u.Host) + u.EscapedPath()
	return "https://" + place, c.pin.MatchString(place)
}

// fetch implements the cache.
func (c *Certificates) fetch(ctx context.Context, address string, now time.Time) (key *rsa.PublicKey, use Validity, err error) {
	text, err := Fetch(ctx, c.client, http.MethodGet, address, http.Header{}, "")
	if err != nil {
		return nil, use, err
	}
	chain, err := parseChain(text)
	if err != nil {
		return nil, use, err
	}
	if now.Before(chain[0].NotBefore) || now.After(chain[0].NotAfter) {
		return nil, use, errors.New("the certificate is not valid at this time")
	}
	if err := c.trust(chain, now); err != nil {
		return nil, use, err
	}
	key, ok := chain[0].PublicKey.(*rsa.PublicKey)
	if !ok || key.Size() < 2048/8 {
		return nil, use, errors.New("the certificate has no RSA key of at least 2048 bits")
	}
	use = Validity{fresh: now.Add(keepCertificate), last: chain[0].NotAfter}
	if use.last.Before(use.fresh) {
		use.fresh = use.last
	}
	return key, use, nil
}

// parseChain reads certificates in PEM, that of the sender first.
func parseChain(text []byte) (chain []*x509.Certificate, err error) {
	for {
		var block *pem.Block
		block, text = pem.Decode(bytes.TrimSpace(text))
		if block == nil {
			break
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil || block.Type != "CERTIFICATE" {
			return nil, errors.New("what was fetched is not a certificate")
		}
		chain = append(chain, c)
	}
	if len(chain) == 0 {
		return nil, errors.New("what was fetched is not a certificate in PEM")
	}
	return chain, nil
}
