package scheme

import (
	"encoding/json"
	"errors"
	"net/http"
	"regexp"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
	"github.com/hookonce/hookonce/provider/internal/jws"
	"github.com/hookonce/hookonce/provider/internal/remotekeys"
	"github.com/hookonce/hookonce/provider/spec"
)

// kindeScheme is a JSON Web Token that is the body. Its payload is the event.
type kindeScheme struct{ client *http.Client }

// Kinde returns the scheme of Kinde, with a cache of keys for each secret, which is the domain that issues them.
func Kinde(transport http.RoundTripper) spec.Scheme {
	return kindeScheme{remotekeys.NewClient(transport)}
}

func (kindeScheme) MarshalText() ([]byte, error) { return []byte("kinde"), nil }
func (kindeScheme) Covers() spec.Coverage        { return spec.CoversBody }

// Signs is true for the event.
func (kindeScheme) Signs(v spec.Value) bool { return signsDocument(v) }

// hostname is a name on the internet with a dot in it, in lower case.
var hostname = regexp.MustCompile(`\A[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*\.[a-z][a-z0-9-]{0,61}[a-z0-9]\z`)

func (s kindeScheme) Compile(secret string) (spec.Checker, error) {
	host := strings.TrimSuffix(strings.TrimPrefix(secret, "https://"), "/")
	if !hostname.MatchString(host) || len(host) > 253 {
		return nil, errors.New("is not a domain, as in https://example.kinde.com")
	}
	issuer := "https://" + host
	return &kindeChecker{issuer, remotekeys.NewSet(s.client, issuer+"/.well-known/jwks.json")}, nil
}

type kindeChecker struct {
	issuer string
	keys   *remotekeys.Set
}

func (c *kindeChecker) Check(req *hookonce.Request) error {
	token, ok := jws.Parse(string(req.Body), "RS256")
	if !ok || !namesKey(token) {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "the body is not a JSON Web Token of the algorithm RS256 with the identifier of its key")
	}
	key, err := c.keys.Key(token.KeyID, req)
	if err != nil {
		return err
	}
	if !token.SignedBy(key) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token in the body was not signed with Kinde's key")
	}
	// The same keys sign the tokens of users, who may send theirs here. Those are about no event.
	var event struct {
		Issuer *string         `json:"iss"`
		ID     string          `json:"event_id"`
		Type   string          `json:"type"`
		Data   json.RawMessage `json:"data"`
	}
	switch {
	case json.Unmarshal(token.Payload, &event) != nil || event.ID == "" || event.Type == "" || event.Data == nil:
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token is genuine, and about no event: it has no event_id, type and data")
	case event.Issuer != nil && strings.TrimSuffix(*event.Issuer, "/") != c.issuer:
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token is genuine, and its issuer (iss) is not %s", c.issuer)
	}
	return nil
}

// Decode returns the event.
func (kindeScheme) Decode(req *hookonce.Request) ([]byte, error) {
	token, ok := jws.Parse(string(req.Body), "RS256")
	if !ok {
		return nil, errors.New("the body is not a JSON Web Token")
	}
	return token.Payload, nil
}
