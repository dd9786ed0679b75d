// Package scheme is the code that verifies what a specification cannot express in data: one file for each sender whose
// signature, or whose way to hand out keys, is its own. Package provider names these schemes in its catalogue.
//
// Those that fetch the keys of their sender do so over the transport that they are given.
package scheme

import (
	"crypto/hmac"
	"crypto/sha1"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/hookonce/hookonce/provider/spec"
)

// hmacSHA1 is what the older schemes sign with.
func hmacSHA1(key []byte, text string) []byte {
	h := hmac.New(sha1.New, key)
	h.Write([]byte(text))
	return h.Sum(nil)
}

// credentials cuts a secret of several parts, joined by colons, into them. The last part may contain
// colons itself.
func credentials(secret string, parts ...string) ([]string, error) {
	found := strings.SplitN(secret, ":", len(parts))
	shape := strings.Join(parts, ":")
	if len(found) != len(parts) {
		return nil, fmt.Errorf("is not %s", shape)
	}
	for i, text := range found {
		if text == "" || strings.TrimSpace(text) != text {
			return nil, fmt.Errorf("is not %s: %s is empty or has white space around it", shape, parts[i])
		}
	}
	return found, nil
}

// signsDocument reports whether a value is in the body, for schemes that sign all of that.
func signsDocument(v spec.Value) bool {
	text := strings.TrimPrefix(string(v), "hash:")
	return strings.HasPrefix(text, "json:") || strings.HasPrefix(text, "const:")
}

// account is what a sender's API knows us by. It has one host for production and another for its sandbox.
type account struct{ host, clientID, secret string }

// newAccount reads a secret that holds the environment and the two credentials, of which the second is called by that
// name.
func newAccount(text, secretName, production, sandbox string) (a account, err error) {
	parts, err := credentials(text, "production", "client_id", secretName)
	if err != nil {
		return a, err
	}
	host, known := map[string]string{"production": production, "sandbox": sandbox}[parts[0]]
	if !known {
		return a, errors.New("begins with neither production nor sandbox")
	}
	return account{host, parts[1], parts[2]}, nil
}

// keyName is what the identifier of a key may look like. It becomes part of a request.
var keyName = regexp.MustCompile(`\A[A-Za-z0-9_-]{1,64}\z`)

// uuid is one in any spelling: whoever reads one takes both cases of letters (RFC 9562, section 4).
var uuid = regexp.MustCompile(`\A[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}\z`)

// oneSpelling returns the one spelling of a key's identifier. Were there several of one key that the sender hands out,
// strangers could have it fetched under all of them, until the genuine one is forgotten.
func oneSpelling(id string) string {
	if uuid.MatchString(id) {
		return strings.ToLower(id)
	}
	return id
}

// wholeSecret returns what is wrong with a secret that is one text.
func wholeSecret(secret string) error {
	if secret == "" || strings.TrimSpace(secret) != secret {
		return errors.New("is empty or has white space around it")
	}
	return nil
}

// formScheme is what the schemes have in common that sign the URL and a sorted form.
type formScheme struct{}

func (formScheme) Covers() spec.Coverage { return spec.CoversFields }
func (formScheme) Imitable() bool        { return true }

// Signs is false for every field: names and values are signed with nothing between them, so that a piece
// of one can be made a piece of another.
func (formScheme) Signs(v spec.Value) bool {
	return v == "url" || strings.HasPrefix(string(v), "const:")
}
