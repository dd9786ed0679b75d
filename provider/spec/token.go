package spec

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
)

// tokenMatcher matches a secret that is sent along.
type tokenMatcher struct {
	basic bool
	keyed[string]
}

func newTokenMatcher(spec Verify, own Settings) (matcher, error) {
	m := &tokenMatcher{basic: spec.Kind == Basic}
	var err error
	m.keyed, err = newKeyed(own.Secrets, func(text string) (string, error) {
		if _, err := KeyUTF8.decode(text); err != nil {
			return "", err
		}
		if m.basic && !strings.Contains(text, ":") {
			return "", errors.New("is not user:password")
		}
		return text, nil
	})
	return m, err
}

// leaveSigning leaves out the secrets that another way of signing has for keys: they are never sent along.
func (m *tokenMatcher) leaveSigning() error {
	m.keyed = slices.DeleteFunc(m.keyed, func(s numbered[string]) bool {
		_, err := KeyWhsecOnly.decode(s.key)
		return err == nil
	})
	if len(m.keyed) == 0 {
		return errOtherForm
	}
	return nil
}

func (m *tokenMatcher) wellFormed(token string) bool {
	_, ok := m.decode(token)
	return ok
}

func (m *tokenMatcher) shape() string {
	if m.basic {
		return "base64 of user:password"
	}
	return "the secret"
}

// decode returns what was sent as the secret.
func (m *tokenMatcher) decode(token string) (string, bool) {
	if !m.basic {
		return token, token != ""
	}
	text, err := base64.StdEncoding.Strict().DecodeString(token)
	return string(text), err == nil
}

func (m *tokenMatcher) match(v *verifier, r *reading, line string) (int, error) {
	return m.find(r.req.Now, func(secret string) bool {
		for token := range v.carrier.signatures(line) {
			if sent, ok := m.decode(token); ok && equal(sent, secret) {
				return true
			}
		}
		return false
	}), nil
}

func (m *tokenMatcher) seal(_ *verifier, r *reading, number int) (string, error) {
	secret, err := m.pick(r.req.Now, number)
	switch {
	case err != nil:
		return "", err
	case m.basic:
		return base64.StdEncoding.EncodeToString([]byte(secret)), nil
	}
	return secret, nil
}
