package provider

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	plaidHeader    = "Plaid-Verification"
	plaidTolerance = 5 * time.Minute
	keepPlaidKey   = time.Hour // so that a key that expires early is noticed
)

// keyName is what the identifier of a key may look like. It becomes part of a request.
var keyName = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

// plaidScheme is a JSON Web Token that holds the hash of the body.
type plaidScheme struct{ client *http.Client }

func (plaidScheme) MarshalText() ([]byte, error) { return []byte("plaid"), nil }
func (plaidScheme) Covers() spec.Coverage        { return spec.CoversBody }

// Signs is true for the body.
func (plaidScheme) Signs(v spec.Value) bool { return signsDocument(v) }

func (s plaidScheme) Compile(secret string) (spec.Checker, error) {
	parts, err := credentials(secret, "production", "client_id", "secret")
	if err != nil {
		return nil, err
	}
	if parts[0] != "production" && parts[0] != "sandbox" {
		return nil, errors.New("begins with neither production nor sandbox")
	}
	c := &plaidChecker{client: s.client, host: parts[0] + ".plaid.com", clientID: parts[1], secret: parts[2]}
	c.keys = newKeyCache(ofAccount, c.fetch)
	return c, nil
}

type plaidChecker struct {
	client                 *http.Client
	host, clientID, secret string
	keys                   *keyCache[plaidKey]
}

// plaidKey is a key and when it stops being one, zero if that is not known yet.
type plaidKey struct {
	public  *ecdsa.PublicKey
	expired time.Time
}

func (c *plaidChecker) Check(req *hookonce.Request) error {
	token, err := requiredHeader(req, plaidHeader, "a JSON Web Token")
	if err != nil {
		return err
	}
	jws, err := jose.ParseSignedCompact(token, []jose.SignatureAlgorithm{jose.ES256})
	if err != nil || !keyName.MatchString(jws.Signatures[0].Header.KeyID) {
		return reject(hookonce.ReasonSignatureMalformed, "%s is not a JSON Web Token of the algorithm ES256 with the identifier of its key", plaidHeader)
	}
	key, err := c.keys.get(jws.Signatures[0].Header.KeyID, req)
	if err != nil {
		return err
	}
	payload, err := jws.Verify(key.public)
	if err != nil {
		return reject(hookonce.ReasonSignatureMismatch, "the token in %s was not signed with Plaid's key", plaidHeader)
	}
	return checkPlaidClaims(payload, key, req)
}

// checkPlaidClaims applies the token's age and compares the hash of the body.
func checkPlaidClaims(payload []byte, key plaidKey, req *hookonce.Request) error {
	var claims struct {
		IssuedAt *int64 `json:"iat"`
		BodyHash string `json:"request_body_sha256"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.IssuedAt == nil {
		return reject(hookonce.ReasonTimestampMissing, "the token's claim iat is absent or not unix seconds")
	}
	issued := time.Unix(*claims.IssuedAt, 0)
	sum := sha256.Sum256(req.Body)
	switch {
	case !hmac.Equal([]byte(claims.BodyHash), hex.AppendEncode(nil, sum[:])):
		return reject(hookonce.ReasonSignatureMismatch, "the token's claim request_body_sha256 is not the SHA-256 of the body in hexadecimal; check that the body is passed on byte for byte")
	case issued.Before(req.Now.Add(-plaidTolerance)):
		return reject(hookonce.ReasonTimestampOld, "the token was issued more than %v before the time of arrival", plaidTolerance)
	case issued.After(req.Now.Add(plaidTolerance)):
		return reject(hookonce.ReasonTimestampFuture, "the token was issued more than %v after the time of arrival", plaidTolerance)
	case !key.expired.IsZero() && issued.After(key.expired):
		return reject(hookonce.ReasonTimestampOld, "the token was issued after its key had expired")
	}
	return nil
}

// fetch asks Plaid for a key.
func (c *plaidChecker) fetch(ctx context.Context, kid string, now time.Time) (key plaidKey, use validity, err error) {
	question, err := json.Marshal(map[string]string{"client_id": c.clientID, "secret": c.secret, "key_id": kid})
	if err != nil { // texts always have a JSON form
		return key, use, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+c.host+"/webhook_verification_key/get", bytes.NewReader(question))
	if err != nil {
		return key, use, err
	}
	req.Header.Set("Content-Type", "application/json")
	text, err := fetchBody(c.client, req)
	if err != nil {
		return key, use, err
	}
	key, err = parsePlaidKey(text, kid)
	return key, renewed(now, keepPlaidKey), err
}

// parsePlaidKey reads the key of that identifier from Plaid's answer.
func parsePlaidKey(text []byte, kid string) (key plaidKey, err error) {
	var answer struct {
		Key json.RawMessage `json:"key"`
	}
	var jwk jose.JSONWebKey
	var expiry struct {
		At *int64 `json:"expired_at"`
	}
	for _, part := range []struct {
		text *[]byte
		into any
	}{{&text, &answer}, {(*[]byte)(&answer.Key), &jwk}, {(*[]byte)(&answer.Key), &expiry}} {
		if err := json.Unmarshal(*part.text, part.into); err != nil {
			return key, errors.New("the answer does not hold a JSON Web Key")
		}
	}
	public, ok := jwk.Key.(*ecdsa.PublicKey)
	if !ok || public.Curve != elliptic.P256() || jwk.KeyID != kid {
		return key, errors.New("the answer is not the ES256 key that was asked for")
	}
	if expiry.At != nil {
		key.expired = time.Unix(*expiry.At, 0)
	}
	key.public = public
	return key, nil
}
