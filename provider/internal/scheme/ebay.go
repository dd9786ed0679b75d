package scheme

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/internal/remotekeys"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	ebayHeader  = "X-Ebay-Signature"
	keepEBayKey = time.Hour // eBay's SDK keeps them for the life of the process
)

// ebayScheme is ECDSA over the body. The header names the key.
type ebayScheme struct{ client *http.Client }

// EBay returns the scheme of eBay, with a cache of keys for each secret.
func EBay(transport http.RoundTripper) spec.Scheme {
	return ebayScheme{remotekeys.NewClient(transport)}
}

func (ebayScheme) MarshalText() ([]byte, error) { return []byte("ebay"), nil }
func (ebayScheme) Covers() spec.Coverage        { return spec.CoversBody }

// Signs is true for the body.
func (ebayScheme) Signs(v spec.Value) bool { return signsDocument(v) }

func (s ebayScheme) Compile(secret string) (spec.Checker, error) {
	a, err := newAccount(secret, "client_secret", "api.ebay.com", "api.sandbox.ebay.com")
	if err != nil {
		return nil, err
	}
	c := &ebayChecker{account: a, client: s.client}
	c.keys = remotekeys.New(remotekeys.OfAccount, c.fetch)
	return c, nil
}

type ebayChecker struct {
	account
	client *http.Client
	keys   *remotekeys.Cache[ebayKey]

	mu    sync.Mutex // held while a token is asked for: one is enough for all
	token string
	until time.Time
}

// ebayKey is a key and the hash function that belongs to it.
type ebayKey struct {
	public *ecdsa.PublicKey
	hash   crypto.Hash
}

func (c *ebayChecker) Check(req *hookonce.Request) error {
	line, err := incoming.Required(req.Header, ebayHeader, "base64 of JSON with kid and signature")
	if err != nil {
		return err
	}
	var header struct{ Kid, Signature string }
	text, err := base64.StdEncoding.DecodeString(line)
	if err == nil {
		err = json.Unmarshal(text, &header)
	}
	signature, malformed := base64.StdEncoding.DecodeString(header.Signature)
	if err != nil || malformed != nil || !keyName.MatchString(header.Kid) {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "%s is not base64 of JSON with the identifier of a key (kid) and a signature in base64", ebayHeader)
	}
	key, err := c.keys.Get(oneSpelling(header.Kid), req)
	if err != nil {
		return err
	}
	h := key.hash.New()
	h.Write(req.Body)
	if !ecdsa.VerifyASN1(key.public, h.Sum(nil), signature) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the signature in %s was not made over the body with eBay's key; check that the body is passed on byte for byte", ebayHeader)
	}
	return nil
}

// fetch asks eBay for a key, with a token of the application. That eBay gives or takes none says nothing about the key.
func (c *ebayChecker) fetch(ctx context.Context, kid string, now time.Time) (key ebayKey, use remotekeys.Validity, err error) {
	token, err := c.authorize(ctx, now)
	if err != nil {
		return key, use, remotekeys.Outage(err)
	}
	text, err := remotekeys.Fetch(ctx, c.client, http.MethodGet, "https://"+c.host+"/commerce/notification/v1/public_key/"+kid,
		http.Header{"Authorization": {"Bearer " + token}}, "")
	if tokenRefused(err) {
		c.forget(token)
		err = remotekeys.Outage(err)
	}
	if err != nil {
		return key, use, err
	}
	key, err = parseEBayKey(text)
	return key, remotekeys.RenewedAfter(now, keepEBayKey), err
}

// authorize returns a token of the application, which is asked for when the last one is about to end: after two hours
// (developer.ebay.com/api-docs/static/oauth-client-credentials-grant.html).
func (c *ebayChecker) authorize(ctx context.Context, now time.Time) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Before(c.until) {
		return c.token, nil
	}
	token, lasts, err := c.ask(ctx)
	if err == nil {
		c.token, c.until = token, now.Add(lasts-time.Minute)
	}
	return token, err
}

// tokenRefused reports whether the sender did not take the token, or the key of its API.
func tokenRefused(err error) bool {
	var e *remotekeys.StatusError
	return errors.As(err, &e) && (e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden)
}

// forget gives up a token that eBay does not take any more.
func (c *ebayChecker) forget(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.token == token {
		c.until = time.Time{}
	}
}

// ask asks for a token, and says how long it lasts.
func (c *ebayChecker) ask(ctx context.Context) (token string, lasts time.Duration, err error) {
	form := url.Values{"grant_type": {"client_credentials"}, "scope": {"https://api.ebay.com/oauth/api_scope"}}
	text, err := remotekeys.Fetch(ctx, c.client, http.MethodPost, "https://"+c.host+"/identity/v1/oauth2/token", http.Header{
		"Authorization": {"Basic " + base64.StdEncoding.EncodeToString([]byte(c.clientID+":"+c.secret))},
		"Content-Type":  {"application/x-www-form-urlencoded"},
	}, form.Encode())
	if err != nil {
		return "", 0, err
	}
	var answer struct {
		Token string `json:"access_token"`
		Lasts int64  `json:"expires_in"` // seconds
	}
	if err := json.Unmarshal(text, &answer); err != nil || answer.Token == "" {
		return "", 0, errors.New("eBay's answer holds no token")
	}
	return answer.Token, time.Duration(min(max(answer.Lasts, 0), 7200)) * time.Second, nil
}

// parseEBayKey reads eBay's answer. The key is PEM without line breaks.
func parseEBayKey(text []byte) (key ebayKey, err error) {
	var answer struct{ Key, Algorithm, Digest string }
	if err := json.Unmarshal(text, &answer); err != nil {
		return key, errors.New("eBay's answer holds no key")
	}
	hash, known := map[string]crypto.Hash{"SHA1": crypto.SHA1, "SHA256": crypto.SHA256}[answer.Digest]
	inner := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(answer.Key), "-----BEGIN PUBLIC KEY-----"), "-----END PUBLIC KEY-----")
	der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(inner))
	if err != nil || !known || answer.Algorithm != "ECDSA" {
		return key, errors.New("eBay's key is not in a form that is known here: ECDSA with SHA1 or SHA256")
	}
	public, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return key, errors.New("eBay's key cannot be read")
	}
	ec, ok := public.(*ecdsa.PublicKey)
	if !ok {
		return key, errors.New("eBay's key is not one of ECDSA")
	}
	return ebayKey{ec, hash}, nil
}
