package scheme

import (
	"context"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/internal/jws"
	"github.com/hookonce/hookonce/provider/internal/remotekeys"
	"github.com/hookonce/hookonce/provider/spec"
)

const (
	plaidHeader    = "Plaid-Verification"
	plaidTolerance = 5 * time.Minute
	keepPlaidKey   = time.Hour // so that a key that expires early is noticed
)

// plaidScheme is a JSON Web Token that holds the hash of the body.
type plaidScheme struct{ client *http.Client }

// Plaid returns the scheme of Plaid, with a cache of keys for each secret.
func Plaid(transport http.RoundTripper) spec.Scheme {
	return plaidScheme{remotekeys.NewClient(transport)}
}

func (plaidScheme) MarshalText() ([]byte, error) { return []byte("plaid"), nil }
func (plaidScheme) Covers() spec.Coverage        { return spec.CoversBody }

// Signs is true for the body.
func (plaidScheme) Signs(v spec.Value) bool { return signsDocument(v) }

func (s plaidScheme) Compile(secret string) (spec.Checker, error) {
	a, err := newAccount(secret, "secret", "production.plaid.com", "sandbox.plaid.com")
	if err != nil {
		return nil, err
	}
	c := &plaidChecker{account: a, client: s.client}
	c.keys = remotekeys.New(remotekeys.OfAccount, c.fetch)
	return c, nil
}

type plaidChecker struct {
	account
	client *http.Client
	keys   *remotekeys.Cache[plaidKey]
}

// plaidKey is a key and when it stops being one, zero if that is not known yet.
type plaidKey struct {
	public  *ecdsa.PublicKey
	expired time.Time
}

func (c *plaidChecker) Check(req *hookonce.Request) error {
	text, err := incoming.Required(req.Header, plaidHeader, "a JSON Web Token")
	if err != nil {
		return err
	}
	token, ok := jws.Parse(text, "ES256")
	if !ok || !keyName.MatchString(token.KeyID) {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "%s is not a JSON Web Token of the algorithm ES256 with the identifier of its key", plaidHeader)
	}
	key, err := c.keys.Get(token.KeyID, req)
	if err != nil {
		return err
	}
	if !token.SignedBy(key.public) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token in %s was not signed with Plaid's key", plaidHeader)
	}
	return checkPlaidClaims(token.Payload, key, req)
}

// checkPlaidClaims applies the token's age and compares the hash of the body.
func checkPlaidClaims(payload []byte, key plaidKey, req *hookonce.Request) error {
	var claims struct {
		IssuedAt *int64 `json:"iat"`
		BodyHash string `json:"request_body_sha256"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.IssuedAt == nil {
		return incoming.Reject(hookonce.ReasonTimestampMissing, "the token's claim iat is absent or not unix seconds")
	}
	issued := time.Unix(*claims.IssuedAt, 0)
	sum := sha256.Sum256(req.Body)
	switch {
	case !hmac.Equal([]byte(claims.BodyHash), hex.AppendEncode(nil, sum[:])):
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token's claim request_body_sha256 is not the SHA-256 of the body in hexadecimal; check that the body is passed on byte for byte")
	case !key.expired.IsZero() && issued.After(key.expired): // which is no fault of a clock
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token was issued after its key had expired")
	case issued.Before(req.Now.Add(-plaidTolerance)):
		return incoming.Reject(hookonce.ReasonTimestampOld, "the token was issued more than %v before the time of arrival", plaidTolerance)
	case issued.After(req.Now.Add(plaidTolerance)):
		return incoming.Reject(hookonce.ReasonTimestampFuture, "the token was issued more than %v after the time of arrival", plaidTolerance)
	}
	return nil
}

// fetch asks Plaid for a key.
func (c *plaidChecker) fetch(ctx context.Context, kid string, now time.Time) (key plaidKey, use remotekeys.Validity, err error) {
	question, err := json.Marshal(map[string]string{"client_id": c.clientID, "secret": c.secret, "key_id": kid})
	if err != nil { // texts always have a JSON form
		return key, use, err
	}
	text, err := remotekeys.Fetch(ctx, c.client, http.MethodPost, "https://"+c.host+"/webhook_verification_key/get",
		http.Header{"Content-Type": {"application/json"}}, string(question))
	if err != nil {
		return key, use, err
	}
	key, err = parsePlaidKey(text, kid)
	return key, remotekeys.RenewedAfter(now, keepPlaidKey), err
}

// parsePlaidKey reads the key of that identifier from Plaid's answer: a JSON Web Key on the curve of ES256.
func parsePlaidKey(text []byte, kid string) (key plaidKey, err error) {
	var answer struct {
		Key json.RawMessage `json:"key"`
	}
	if json.Unmarshal(text, &answer) != nil || answer.Key == nil {
		return key, errors.New("the answer does not hold a JSON Web Key")
	}
	if key.public, err = jws.ParseKey(answer.Key, kid); err != nil {
		return key, err
	}
	var life struct {
		ExpiredAt *int64 `json:"expired_at"`
	}
	if json.Unmarshal(answer.Key, &life) != nil {
		return key, errors.New("the key in the answer has an expired_at that is no number")
	}
	if life.ExpiredAt != nil {
		key.expired = time.Unix(*life.ExpiredAt, 0)
	}
	return key, nil
}
