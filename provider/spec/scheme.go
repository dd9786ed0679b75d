package spec

import (
	"strings"
	"time"
)

// codeMatcher asks a [Scheme].
type codeMatcher struct {
	keyed[Checker]
}

func newCodeMatcher(spec Verify, own Settings) (matcher, error) {
	if spec.Scheme == nil {
		return nil, fault("scheme", "code exists in the catalogue only; a specification cannot name it")
	}
	keys, err := newKeyed(own.Secrets, spec.Scheme.Compile)
	return &codeMatcher{keys}, err
}

func (*codeMatcher) wellFormed(string) bool { return true }
func (*codeMatcher) shape() string          { return "what its documentation says" }

// match returns the reason that says most when no checker accepts. That one of them cannot decide now
// outranks the rejection of another: see [rank].
func (m *codeMatcher) match(_ *verifier, r *reading, _ string) (int, error) {
	var why error
	req := *r.req
	req.URL = r.url
	n := m.find(req.Now, func(c Checker) bool {
		err := c.Check(&req)
		if err != nil && (why == nil || rank(err) > rank(why)) {
			why = err
		}
		return err == nil
	})
	if n == 0 {
		return 0, why
	}
	return n, nil
}

func (m *codeMatcher) seal(_ *verifier, r *reading, secret int) (string, error) {
	c, err := m.pick(r.req.Now, secret)
	if err != nil {
		return "", err
	}
	s, can := c.(Sealer)
	if !can {
		return "", errPrivateKey
	}
	req := *r.req
	req.URL = r.url
	err = s.Seal(&req)
	r.req.Body = req.Body
	if _, query, ok := strings.Cut(req.URL, "?"); ok && req.URL != r.url {
		place, _, _ := strings.Cut(r.req.URL, "?")
		r.req.URL = place + "?" + query
	}
	return "", err
}

// code implements [coder].
func (m *codeMatcher) code(challenge string, _ Encoding, now time.Time, secret int) (string, error) {
	c, err := m.pick(now, secret)
	if err != nil {
		return "", err
	}
	return c.(Responder).Respond(challenge), nil // New has checked it: see responds
}

// responds reports whether the scheme answers challenges.
func (m *codeMatcher) responds() bool {
	for i := range m.keyed {
		if _, can := m.keyed[i].key.(Responder); !can {
			return false
		}
	}
	return true
}

// signed returns what was signed with the secret of that number.
func (m *codeMatcher) signed(r *reading, secret int) string {
	c, _ := m.pick(r.req.Now, secret)
	if responder, can := c.(Responder); can {
		return responder.Signed(r.req)
	}
	return ""
}
