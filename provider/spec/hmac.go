package spec

import (
	"crypto/hmac"
	"hash"
	"strings"
	"sync"
	"time"
)

// macMatcher matches HMACs and plain hashes: the texts are compared, not the decoded bytes, because
// base64 has several spellings for the same bytes.
type macMatcher struct {
	encoding Encoding
	size     int    // length of an encoded signature
	alphabet string // its characters
	keyed[*macs]
}

func newMACMatcher(spec Verify, own Settings) (matcher, error) {
	function, err := spec.Hash.function()
	if err != nil {
		return nil, err
	}
	m := &macMatcher{encoding: spec.Encoding, alphabet: encodings[spec.Encoding].alphabet}
	if err := spec.Encoding.check(); err != nil {
		return nil, err
	}
	m.size = encodings[spec.Encoding].EncodedLen(function.Size())
	m.keyed, err = newKeyed(own.Secrets, func(text string) (*macs, error) {
		key, err := spec.Key.decode(text)
		make := func() hash.Hash { return hmac.New(function.New, key) }
		if spec.Kind == PlainHash {
			make = function.New
		}
		return newMACs(make, key), err
	})
	return m, err
}

func (m *macMatcher) wellFormed(sig string) bool {
	return len(sig) == m.size && strings.Trim(sig, m.alphabet) == ""
}

func (m *macMatcher) shape() string { return m.encoding.describe(m.size) }

// match tries every secret on every signature.
func (m *macMatcher) match(v *verifier, r *reading, line string) (int, error) {
	return m.find(r.req.Now, func(key *macs) (ok bool) {
		h := key.get()
		defer key.put(h)
		want := h.compute(v, r, m.encoding)
		for sig := range v.carrier.signatures(line) {
			ok = ok || hmac.Equal(bytesOf(sig), want)
		}
		return ok
	}), nil
}

func (m *macMatcher) seal(v *verifier, r *reading, secret int) (string, error) {
	key, err := m.pick(r.req.Now, secret)
	if err != nil {
		return "", err
	}
	h := key.get()
	defer key.put(h)
	return string(h.compute(v, r, m.encoding)), nil
}

// code implements [coder].
func (m *macMatcher) code(challenge string, e Encoding, now time.Time, secret int) (string, error) {
	key, err := m.pick(now, secret)
	if err != nil {
		return "", err
	}
	h := key.get()
	defer key.put(h)
	h.writeString(challenge)
	return string(h.sum(e)), nil
}

// macs makes HMACs under one secret. Making one anew costs allocations and two blocks of hashing, so
// used ones are kept. Safe for concurrent use.
type macs struct{ pool sync.Pool }

// mac is an HMAC with its scratch space.
type mac struct {
	hash.Hash
	key     []byte
	scratch []byte
	encoded []byte
}

func newMACs(newHash func() hash.Hash, key []byte) *macs {
	return &macs{sync.Pool{New: func() any { return &mac{Hash: newHash(), key: key} }}}
}

func (m *macs) get() *mac {
	h := m.pool.Get().(*mac)
	h.Reset()
	return h
}

func (m *macs) put(h *mac) { m.pool.Put(h) }

// compute returns the signature of the request. It is valid until the mac is put back.
func (m *mac) compute(v *verifier, r *reading, e Encoding) []byte {
	for i := range v.sign {
		if i > 0 && v.join != "" {
			m.writeString(v.join)
		}
		switch part := &v.sign[i]; part.kind {
		case kindBody:
			m.Write(r.req.Body)
		case kindSecret:
			m.Write(m.key)
		default:
			text, _ := r.covered(part)
			m.writeString(text)
		}
	}
	return m.sum(e)
}

// writeString feeds s to the hash.
func (m *mac) writeString(s string) {
	m.scratch = append(m.scratch[:0], s...)
	m.Write(m.scratch)
}

// sum returns the hash of everything written, encoded.
func (m *mac) sum(e Encoding) []byte {
	m.scratch = m.Sum(m.scratch[:0])
	m.encoded = e.append(m.encoded[:0], m.scratch)
	return m.encoded
}
