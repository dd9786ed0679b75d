package scheme

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/x509"
	_ "embed"
	"encoding/asn1"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/internal/jws"
	"github.com/hookonce/hookonce/provider/spec"
)

// AppleRoot is the certificate "Apple Root CA - G3" in PEM, which Apple publishes at
// https://www.apple.com/certificateauthority/. Its SHA-256 fingerprint is
// 63343abfb89a6a03ebb57e9b3f5fa7be7c4f5c756f3017b3a8c488c3653e9179.
//
//go:embed apple_root_ca_g3.pem
var AppleRoot []byte

// Extensions that say what Apple has issued a certificate for: only with them is the owner the App Store. Apple's root
// has others below it, for developers among them.
var (
	appleSigns  = asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 6, 11, 1} // App Store receipts and what is like them
	appleIssues = asn1.ObjectIdentifier{1, 2, 840, 113635, 100, 6, 2, 1}  // Worldwide Developer Relations
)

// appleSkew is how far Apple's clock may be ahead of ours, and a certificate's time behind that of the signature.
const appleSkew = time.Minute

// appStoreScheme is a JSON Web Token in the member signedPayload, with the certificates of its signer.
type appStoreScheme struct{ root *x509.Certificate }

// AppStore returns the scheme of App Store Server Notifications, version 2, for the root certificate in PEM. It fetches
// nothing: whether a certificate was revoked is not asked for.
func AppStore(root []byte) spec.Scheme {
	block, _ := pem.Decode(root)
	if block == nil {
		panic("scheme: the root certificate is not in PEM")
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		panic(fmt.Sprintf("scheme: the root certificate cannot be read: %v", err))
	}
	return &appStoreScheme{cert}
}

func (*appStoreScheme) MarshalText() ([]byte, error) { return []byte("app-store"), nil }
func (*appStoreScheme) Covers() spec.Coverage        { return spec.CoversBody }

// Signs is true for the notification.
func (*appStoreScheme) Signs(v spec.Value) bool { return signsDocument(v) }

func (s *appStoreScheme) Compile(secret string) (spec.Checker, error) {
	parts, err := credentials(secret, "environment", "bundle_id")
	if err != nil {
		return nil, err
	}
	environment, known := map[string]string{"production": "Production", "sandbox": "Sandbox"}[parts[0]]
	if !known {
		return nil, errors.New("begins with neither production nor sandbox")
	}
	return &appStoreChecker{s, environment, parts[1]}, nil
}

type appStoreChecker struct {
	*appStoreScheme
	environment, bundle string
}

func (c *appStoreChecker) Check(req *hookonce.Request) error {
	text, err := signedPayload(req.Body)
	if err != nil {
		return incoming.Reject(hookonce.ReasonSignatureMissing, "%v", err)
	}
	token, ok := jws.Parse(text, "ES256")
	if !ok || len(token.Chain) != 3 {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "signedPayload is not a JSON Web Token of the algorithm ES256 with three certificates (x5c)")
	}
	leaf, err := c.signer(token.Chain)
	if err != nil {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token in signedPayload was not signed by the App Store: %v", err)
	}
	key, ok := leaf[0].PublicKey.(*ecdsa.PublicKey)
	if !ok || !token.SignedBy(key) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token in signedPayload was not signed with the key of its certificate")
	}
	return c.believe(token.Payload, leaf, req.Now)
}

// signer returns the signer's certificate and that of who issued it, both issued under the root. What the token has in
// place of the root does not count.
func (c *appStoreChecker) signer(der [][]byte) ([]*x509.Certificate, error) {
	var chain []*x509.Certificate
	for _, text := range der[:2] {
		cert, err := x509.ParseCertificate(text)
		if err != nil {
			return nil, errors.New("a certificate cannot be read")
		}
		chain = append(chain, cert)
	}
	leaf, issuer := chain[0], chain[1]
	switch {
	case !bytes.Equal(issuer.RawIssuer, c.root.RawSubject) || issuer.CheckSignatureFrom(c.root) != nil:
		return nil, errors.New("its second certificate was not issued by Apple's root")
	case !bytes.Equal(leaf.RawIssuer, issuer.RawSubject) || leaf.CheckSignatureFrom(issuer) != nil:
		return nil, errors.New("its first certificate was not issued by the owner of the second")
	case !marked(leaf, appleSigns) || !marked(issuer, appleIssues):
		return nil, errors.New("its certificates are for something else")
	}
	return chain, nil
}

// marked reports whether a certificate has the extension.
func marked(c *x509.Certificate, id asn1.ObjectIdentifier) bool {
	for i := range c.Extensions {
		if c.Extensions[i].Id.Equal(id) {
			return true
		}
	}
	return false
}

// believe applies what the notification says of itself: when it was signed, and for which app. Apple signs for every
// app, so that a genuine notification may be about another one.
func (c *appStoreChecker) believe(payload []byte, chain []*x509.Certificate, now time.Time) error {
	type subject struct {
		Bundle      string `json:"bundleId"`
		Environment string `json:"environment"`
		Purchase    string `json:"externalPurchaseId"`
	}
	var n struct {
		ID         string   `json:"notificationUUID"`
		SignedDate *float64 `json:"signedDate"`
		Data       *subject `json:"data"`
		Summary    *subject `json:"summary"`
		App        *subject `json:"appData"`
		Purchase   *subject `json:"externalPurchaseToken"`
	}
	if json.Unmarshal(payload, &n) != nil || n.ID == "" || n.SignedDate == nil {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "signedPayload holds no notification of version 2, with notificationUUID and signedDate")
	}
	signed := unix(*n.SignedDate / 1000)
	for _, cert := range append(slices.Clone(chain), c.root) {
		if signed.Before(cert.NotBefore.Add(-appleSkew)) || signed.After(cert.NotAfter.Add(appleSkew)) {
			return incoming.Reject(hookonce.ReasonSignatureMismatch, "a certificate of signedPayload was not valid when that was signed (signedDate)")
		}
	}
	about := subject{}
	for _, s := range []*subject{n.Data, n.Summary, n.App, n.Purchase} {
		if s != nil {
			about = *s
			break
		}
	}
	if about.Environment == "" && n.Purchase != nil { // whose identifier says it
		about.Environment = "Production"
		if strings.HasPrefix(about.Purchase, "SANDBOX") {
			about.Environment = "Sandbox"
		}
	}
	switch {
	case about.Bundle != c.bundle:
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the notification is genuine, and about another app (bundleId)")
	case about.Environment != c.environment:
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the notification is genuine, and not of the environment %s", c.environment)
	case signed.After(now.Add(appleSkew)): // a time is the reason only for what is genuine otherwise
		return incoming.Reject(hookonce.ReasonTimestampFuture, "signedDate is in the future")
	}
	return nil
}

// signedPayload returns the one member of the body. With others beside it, or with it twice, another reader may take
// another one for it.
func signedPayload(body []byte) (string, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	var tokens [4]json.Token
	for i := range tokens {
		var err error
		if tokens[i], err = d.Token(); err != nil {
			return "", errors.New("the body is not a JSON object with the member signedPayload")
		}
	}
	text, is := tokens[2].(string)
	if tokens[0] != json.Delim('{') || tokens[1] != "signedPayload" || !is || tokens[3] != json.Delim('}') {
		return "", errors.New("the body is not a JSON object with the member signedPayload and no other")
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return "", errors.New("something follows the JSON object in the body")
	}
	return text, nil
}

// Decode returns the notification.
func (*appStoreScheme) Decode(req *hookonce.Request) ([]byte, error) {
	text, err := signedPayload(req.Body)
	if err != nil {
		return nil, err
	}
	token, ok := jws.Parse(text, "ES256")
	if !ok {
		return nil, errors.New("signedPayload is not a JSON Web Token")
	}
	return token.Payload, nil
}
