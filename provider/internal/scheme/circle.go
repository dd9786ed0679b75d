package scheme

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/internal/remotekeys"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	circleHeader    = "X-Circle-Signature"
	circleKeyHeader = "X-Circle-Key-Id"
	circleHost      = "https://api.circle.com"
	keepCircleKey   = time.Hour
)

// circleProducts are the places where Circle's products hand out their keys
// (developers.circle.com/api-reference/verify-webhook-signatures).
var circleProducts = map[string]string{
	"wallets": "/v2/notifications/publicKey/",
	"cpn":     "/v2/cpn/notifications/publicKey/",
}

// circleScheme is a signature over the body with a key that the header names.
type circleScheme struct{ client *http.Client }

// Circle returns the scheme of Circle's notifications of version 2, with a cache of keys for each secret.
func Circle(transport http.RoundTripper) spec.Scheme {
	return circleScheme{remotekeys.NewClient(transport)}
}

func (circleScheme) MarshalText() ([]byte, error) { return []byte("circle"), nil }
func (circleScheme) Covers() spec.Coverage        { return spec.CoversBody }

// Signs is true for the body.
func (circleScheme) Signs(v spec.Value) bool { return signsDocument(v) }

func (s circleScheme) Compile(secret string) (spec.Checker, error) {
	parts, err := credentials(secret, "product", "api_key")
	if err != nil {
		return nil, err
	}
	path, known := circleProducts[parts[0]]
	if !known {
		return nil, errors.New("begins with neither wallets nor cpn")
	}
	c := &circleChecker{path: path, apiKey: parts[1], client: s.client}
	c.keys = remotekeys.New(remotekeys.OfAccount, c.fetch)
	return c, nil
}

type circleChecker struct {
	path, apiKey string
	client       *http.Client
	keys         *remotekeys.Cache[*ecdsa.PublicKey]
}

func (c *circleChecker) Check(req *hookonce.Request) error {
	line, err := incoming.Required(req.Header, circleHeader, "a signature in base64")
	if err != nil {
		return err
	}
	kid, err := incoming.Required(req.Header, circleKeyHeader, "the identifier of a key")
	if err != nil {
		return err
	}
	signature, err := base64.StdEncoding.DecodeString(line)
	if err != nil {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "%s is not base64", circleHeader)
	}
	if !keyName.MatchString(kid) {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "%s is not the identifier of a key", circleKeyHeader)
	}
	key, err := c.keys.Get(oneSpelling(kid), req)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(req.Body)
	if !ecdsa.VerifyASN1(key, sum[:], signature) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the signature in %s was not made over the body with Circle's key; check that the body is passed on byte for byte", circleHeader)
	}
	return nil
}

// fetch asks Circle for a key. That Circle does not take our API key says nothing about it.
func (c *circleChecker) fetch(ctx context.Context, kid string, now time.Time) (key *ecdsa.PublicKey, use remotekeys.Validity, err error) {
	text, err := remotekeys.Fetch(ctx, c.client, http.MethodGet, circleHost+c.path+kid, http.Header{"Authorization": {"Bearer " + c.apiKey}}, "")
	if tokenRefused(err) {
		err = remotekeys.Outage(err)
	}
	if err != nil {
		return nil, use, err
	}
	key, err = parseCircleKey(text, kid)
	return key, remotekeys.RenewedAfter(now, keepCircleKey), err
}

// parseCircleKey reads the key of that identifier from Circle's answer: SPKI in base64, on the curve P-256.
func parseCircleKey(text []byte, kid string) (*ecdsa.PublicKey, error) {
	var answer struct {
		Data struct {
			ID        string `json:"id"`
			Algorithm string `json:"algorithm"`
			PublicKey string `json:"publicKey"`
		} `json:"data"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Data.PublicKey == "" {
		return nil, errors.New("the answer of Circle holds no key")
	}
	if answer.Data.Algorithm != "ECDSA_SHA_256" || !strings.EqualFold(answer.Data.ID, kid) {
		return nil, errors.New("the answer of Circle is another key than the one that was asked for, or not one of ECDSA_SHA_256")
	}
	der, err := base64.StdEncoding.DecodeString(answer.Data.PublicKey)
	if err != nil {
		return nil, errors.New("the key of Circle is not base64")
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return nil, errors.New("the key of Circle cannot be read")
	}
	key, ok := public.(*ecdsa.PublicKey)
	if !ok || key.Curve != elliptic.P256() {
		return nil, errors.New("the key of Circle is not one of ECDSA on the curve P-256")
	}
	return key, nil
}
