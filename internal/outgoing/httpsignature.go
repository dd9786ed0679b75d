package outgoing

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/httpsig"
)

// MaxHTTPKeys is how many keys sign one request at most. Each adds a signature of up to 700 bytes and a list of what it
// covers, and servers bound the size of a header.
const MaxHTTPKeys = 4

// HTTPTolerance is how long a signature is good, and how far the time of one may be from that of its arrival, in either
// direction.
const HTTPTolerance = 5 * time.Minute

// HTTPNames are the headers that [SignHTTP] sets.
var HTTPNames = []string{httpsig.InputHeader, httpsig.SignatureHeader, httpsig.DigestHeader}

// httpCovered are the components that every signature covers, whatever the request has. The address is covered in parts:
// its scheme is not what the receiver sees where a proxy in front of it ends TLS.
var httpCovered = []string{"@method", "@authority", "@path", "@query", "content-digest"}

// HTTPKey makes HTTP message signatures.
type HTTPKey = httpsig.Key

// NewHTTPKey reads a key: a private key in PEM, or a shared secret. See [httpsig.SigningKey]. Errors repeat nothing of it
// but its id.
func NewHTTPKey(id, text string) (HTTPKey, error) {
	if err := CheckKeyID(id); err != nil {
		return HTTPKey{}, err
	}
	key, err := httpsig.SigningKey(id, text)
	if err != nil {
		return HTTPKey{}, fmt.Errorf("the key %q %w", id, err)
	}
	return key, nil
}

// maxKeyID bounds the id of a key, in bytes: it stands in every request.
const maxKeyID = 255

// CheckKeyID returns why a text cannot be the id of a key, nil if it can.
func CheckKeyID(id string) error {
	if id == "" || len(id) > maxKeyID || !httpsig.Printable(id) {
		return fmt.Errorf("the keyid is not 1 to %d characters of printable ASCII; write one such as app-2026", maxKeyID)
	}
	return nil
}

// CheckHTTPAddress returns why requests to an address cannot be signed with HTTP message signatures, nil if they can.
func CheckHTTPAddress(address string) error {
	u, err := ParseAddress(address)
	if err != nil {
		return err
	}
	if !httpsig.Printable(u.Host) {
		return errors.New("the host has letters beyond ASCII, and the receiver sees another spelling of it than the one that would be signed; write the one that begins with xn--")
	}
	return nil
}

// SignHTTP sets the headers that sign a request with HTTP message signatures (RFC 9421), one for each key, at most
// [MaxHTTPKeys]. Each covers the method, the address, the digest of the body, and those of the headers that say what the
// request is about: see [HTTPHeaders]. All other headers must be set.
//
// A signature is good for five minutes, and says so: each attempt is signed anew. It has no nonce, because an attempt that
// is repeated is repeated on purpose, and its Idempotency-Key says so.
func SignHTTP(h http.Header, keys []HTTPKey, method, address string, at time.Time, body []byte) error {
	h[httpsig.DigestHeader] = []string{httpsig.Digest(body)}
	covered := append(append(make([]string, 0, 32), httpCovered...), HTTPHeaders(h)...)
	request := &httpsig.Request{Method: method, URL: wireAddress(address), Header: h}
	var inputs, signatures []string
	for i, key := range keys {
		s, err := httpsig.New("sig"+strconv.Itoa(i+1), covered, httpsig.Params{
			Created: at.Unix(), Expires: at.Add(HTTPTolerance).Unix(), KeyID: key.ID, Alg: string(key.Algorithm),
		})
		if err != nil {
			return err
		}
		base, err := s.Base(request)
		if err != nil {
			return err
		}
		signature, err := key.Sign(base)
		if err != nil {
			return err
		}
		inputs, signatures = append(inputs, s.Input()), append(signatures, s.Field(signature))
	}
	h[httpsig.InputHeader], h[httpsig.SignatureHeader] = []string{strings.Join(inputs, ", ")}, []string{strings.Join(signatures, ", ")}
	return nil
}

// HTTPHeaders returns the names, in lower case, of the headers that an HTTP message signature of ours covers: what says
// how to read the body, unless it is no ASCII, which receivers read differently; the Idempotency-Key, and all that begins
// with Hookonce- but the other signature.
func HTTPHeaders(h http.Header) []string {
	var names []string
	for _, name := range [...]string{"Content-Type", "Content-Encoding"} {
		if values := h[name]; len(values) > 0 && httpsig.Printable(strings.Join(values, "")) {
			names = append(names, strings.ToLower(name))
		}
	}
	return append(names, HTTPFacts(h)...)
}

// HTTPFacts returns those of [HTTPHeaders] that say what a request is about. A signature that left one out would let
// anybody add it.
func HTTPFacts(h http.Header) []string {
	names := factNames(h)
	for i, name := range names {
		names[i] = strings.ToLower(name)
	}
	return names
}

// wireAddress returns an address as net/http sends it: without a user, a fragment, and a port that is empty.
func wireAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address // whoever sends it finds out
	}
	u.User, u.Fragment, u.Host = nil, "", strings.TrimSuffix(u.Host, ":")
	return u.String()
}
