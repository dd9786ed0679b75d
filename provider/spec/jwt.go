package spec

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// jwtMatcher matches JSON Web Tokens.
type jwtMatcher struct {
	tokens     Tokens
	algorithms []string
	bodyHash   string
	urlHash    string
	claims     map[string]string
	keyed[jwtKey]
}

// jwtAlgorithms are the algorithms that may be asked for. "none" is not among them.
var jwtAlgorithms = []string{"HS256", "HS384", "HS512", "ES256", "ES384", "ES512", "RS256", "RS384", "RS512"}

func newJWTMatcher(spec Verify, own Settings) (matcher, error) {
	m := &jwtMatcher{tokens: spec.Tokens, algorithms: spec.Algorithms, bodyHash: spec.BodyHash, urlHash: spec.URLHash, claims: spec.Claims}
	if m.tokens == nil {
		return nil, fault("tokens", "is missing; JSON Web Tokens need jose.Tokens{}, of the package provider/spec/jose")
	}
	if len(spec.Algorithms) == 0 {
		return nil, fault("algorithms", "is empty; a token must not choose how it is verified")
	}
	family, least := spec.Algorithms[0], 0
	for _, name := range spec.Algorithms {
		switch {
		case !slices.Contains(jwtAlgorithms, name):
			return nil, fault("algorithms", "there is no %q; use HS256, ES256, RS256 or the longer ones", name)
		case name[0] != family[0]:
			return nil, fault("algorithms", "are of different families; a public key could be taken for a shared secret")
		}
		bits, _ := strconv.Atoi(name[2:])
		least = max(least, bits/8)
	}
	var err error
	m.keyed, err = newKeyed(own.Secrets, func(text string) (jwtKey, error) {
		if family[0] == 'H' {
			return parseJWTSecret(text, least)
		}
		return m.parseKey(text)
	})
	return m, err
}

// wellFormed accepts the one spelling of three parts in base64url.
func (m *jwtMatcher) wellFormed(token string) bool {
	parts := strings.Split(token, ".")
	for _, part := range parts {
		if _, err := base64.RawURLEncoding.Strict().DecodeString(part); err != nil || part == "" {
			return false
		}
	}
	return len(parts) == 3
}

func (m *jwtMatcher) shape() string { return "a JSON Web Token of three parts" }

func (m *jwtMatcher) match(v *verifier, r *reading, line string) (int, error) {
	var payload []byte
	n := m.find(r.req.Now, func(key jwtKey) (ok bool) {
		for token := range v.carrier.signatures(line) {
			if payload, ok = m.verified(key, token); ok {
				return true
			}
		}
		return false
	})
	if n == 0 {
		return 0, nil
	}
	var claims map[string]any
	if checkJSON(payload) != nil || json.Unmarshal(payload, &claims) != nil {
		return n, incoming.Reject(hookonce.ReasonSignatureMalformed, "the token's claims are not a JSON object")
	}
	if v.ts != nil {
		if err := v.believe(r, claim(payload, v.ts.text)); err != nil {
			return n, err
		}
	}
	return n, m.checkClaims(claims, r)
}

// verified returns the payload of a token that was signed with the key.
func (m *jwtMatcher) verified(key jwtKey, token string) ([]byte, bool) {
	if !m.wellFormed(token) {
		return nil, false
	}
	return m.tokens.Verify(token, m.algorithms, key.candidates)
}

// checkClaims compares the claims that are known beforehand and the hashes, and applies the token's own
// validity: last, because a time is the reason only for what is genuine otherwise.
func (m *jwtMatcher) checkClaims(claims map[string]any, r *reading) error {
	req := r.req
	for _, name := range slices.Sorted(maps.Keys(m.claims)) {
		if sent, _ := claims[name].(string); sent != m.claims[name] {
			return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token's claim %s is not %q: it was issued by or for somebody else", name, m.claims[name])
		}
	}
	if m.bodyHash != "" && !holdsHash(claims, m.bodyHash, req.Body) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token's claim %s is not the SHA-256 of the body in hexadecimal; check that the body is passed on byte for byte", m.bodyHash)
	}
	if m.urlHash != "" && !holdsHash(claims, m.urlHash, bytesOf(r.url)) {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the token's claim %s is not the SHA-256 of the URL in hexadecimal; check that the URL is configured exactly as it is registered with the provider", m.urlHash)
	}
	for _, name := range []string{"exp", "nbf"} {
		at, is := claims[name].(float64)
		switch _, there := claims[name]; {
		case there && !is:
			return incoming.Reject(hookonce.ReasonTimestampMissing, "the token's %s is not a number", name)
		case is && name == "exp" && !req.Now.Before(unixFloat(at)):
			return incoming.Reject(hookonce.ReasonTimestampOld, "the token's exp is in the past")
		case is && name == "nbf" && req.Now.Before(unixFloat(at)):
			return incoming.Reject(hookonce.ReasonTimestampFuture, "the token's nbf is in the future")
		}
	}
	return nil
}

// holdsHash reports whether a claim is the SHA-256 of those bytes in hexadecimal.
func holdsHash(claims map[string]any, name string, of []byte) bool {
	sent, _ := claims[name].(string)
	return equal(sent, hashed(of))
}

// hashed returns the SHA-256 in hexadecimal.
func hashed(of []byte) string {
	sum := sha256.Sum256(of)
	return hex.EncodeToString(sum[:])
}

func unixFloat(seconds float64) time.Time {
	return time.Unix(int64(min(max(seconds, 0), float64(latest.Unix()))), 0)
}

// seal makes a token of the shared-secret kind.
func (m *jwtMatcher) seal(v *verifier, r *reading, number int) (string, error) {
	key, err := m.pick(r.req.Now, number)
	secret, shared := key.one.([]byte)
	switch {
	case err != nil:
		return "", err
	case !shared:
		return "", errPrivateKey
	}
	claims := map[string]any{"iat": r.req.Now.Unix()}
	for name, text := range m.claims {
		claims[name] = text
	}
	if v.ts != nil {
		claims[v.ts.text] = json.RawMessage(v.unit.json(r.req.Now))
	}
	if m.bodyHash != "" {
		claims[m.bodyHash] = hashed(r.req.Body)
	}
	if m.urlHash != "" {
		claims[m.urlHash] = hashed(bytesOf(r.url))
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	return m.tokens.Sign(payload, m.algorithms[0], secret)
}

// claim returns a claim from the JSON of a token.
func claim(payload []byte, name string) string {
	var t tree
	v := value{path: []string{name}}
	t.bind(&v)
	return t.find(string(payload)).text(v.node)
}

// jwtKey is a key, or a set of which the token's kid selects one.
type jwtKey struct {
	one any
	set []webKey
}

// webKey is a public key with its id, which may be empty.
type webKey struct {
	id  string
	key any
}

// candidates returns the keys that may have signed a token with that kid.
func (k jwtKey) candidates(kid string) []any {
	if k.set == nil {
		return []any{k.one}
	}
	var keys []any
	for _, key := range k.set {
		if key.id == kid || key.id == "" || kid == "" {
			keys = append(keys, key.key)
		}
	}
	return keys
}

// parseJWTSecret reads a shared secret of at least so many bytes. A public key is none: whoever has it,
// which is everybody, could sign.
func parseJWTSecret(text string, least int) (jwtKey, error) {
	key, err := KeyUTF8.decode(text)
	switch {
	case err != nil:
		return jwtKey{}, err
	case httpsig.IsKey(text):
		return jwtKey{}, errors.New("is a key in PEM, DER or JSON, and the algorithms want a shared secret")
	case len(key) < least:
		return jwtKey{}, fmt.Errorf("is shorter than the %d bytes that the algorithms need", least)
	}
	return jwtKey{one: key}, nil
}

// parseKey reads a PEM public key, a JWK or a set of them, for the matcher's algorithms. Of a set, the keys for others
// are left out.
func (m *jwtMatcher) parseKey(text string) (jwtKey, error) {
	if block, _ := pem.Decode([]byte(text)); block != nil {
		key, err := x509.ParsePKIXPublicKey(block.Bytes)
		switch {
		case err != nil:
			return jwtKey{}, noPublicKey(block.Bytes)
		case !verifiesAny(key, m.algorithms):
			return jwtKey{}, otherKey(m.algorithms)
		}
		return jwtKey{one: key}, nil
	}
	keys, err := m.tokens.Keys(text)
	if err != nil {
		return jwtKey{}, err
	}
	var set []webKey
	for id, key := range keys {
		switch key.(type) {
		case *ecdsa.PrivateKey, *rsa.PrivateKey:
			return jwtKey{}, errPrivate
		}
		if verifiesAny(key, m.algorithms) {
			set = append(set, webKey{id, key})
		}
	}
	if len(set) == 0 {
		return jwtKey{}, otherKey(m.algorithms)
	}
	return jwtKey{set: set}, nil
}

// jwtCurves are the curves of the algorithms that have one.
var jwtCurves = map[string]elliptic.Curve{"ES256": elliptic.P256(), "ES384": elliptic.P384(), "ES512": elliptic.P521()}

// verifiesAny reports whether one of the algorithms verifies with a key of that type and size.
func verifiesAny(key any, algorithms []string) bool {
	return slices.ContainsFunc(algorithms, func(a string) bool {
		curve := jwtCurves[a]
		switch key := key.(type) {
		case *ecdsa.PublicKey:
			return curve != nil && key.Curve == curve
		case *rsa.PublicKey:
			return curve == nil && key.Size() >= 2048/8
		}
		return false
	})
}

func otherKey(algorithms []string) error {
	return fmt.Errorf("has no public key for %v: ES256, ES384 and ES512 take one on P-256, P-384 and P-521, and RS256 and the longer ones an RSA key of at least 2048 bits", algorithms)
}
