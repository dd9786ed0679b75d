package provider

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/httpsig"
	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// HookonceHTTPConfig says how an application recognises its gateway by HTTP message signatures.
type HookonceHTTPConfig struct {
	// Keys are the public keys, in PEM, of the private keys of the gateway's destination, or its shared secrets, as they
	// stand there. At least one; several while a key is replaced.
	Keys []string
	// URL is the address that the gateway calls: the destination's app_url or, if it has none, its url. Set it. Empty means
	// the URL of the request with its Host, which whoever calls chooses: where one private key signs for several
	// applications, one of them could then pass a delivery of its own on to another, within five minutes. And a proxy that
	// changes host or path makes genuine deliveries fail. Its scheme does not matter, and neither does its query: that of the
	// request is looked at.
	URL string
	// AsSender is set where deliveries are made in the gateway's name, see [HookonceProvider.Sign]: a private key may stand
	// among Keys then. An endpoint has no use for it, and is refused a private key without it.
	AsSender bool
}

// Format writes the configuration without the keys.
func (c HookonceHTTPConfig) Format(f fmt.State, _ rune) {
	place, _, _ := strings.Cut(c.URL, "?")
	fmt.Fprintf(f, "{%d keys, URL %q}", len(c.Keys), place)
}

// MarshalText is Format for JSON and structured logs.
func (c HookonceHTTPConfig) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%v", c), nil }

// HookonceHTTP is [Hookonce] for a destination with http_signature, whose deliveries are signed with HTTP message
// signatures (RFC 9421) by a private key that the gateway alone has, or by a shared secret. It panics if the configuration
// has no key, or one of the wrong kind.
//
// A signature is required that covers the method, the URL, the body by its Content-Digest and what says how to read it, the
// Idempotency-Key, and every header that begins with Hookonce-. When it was created may be five minutes off in either direction. A request that is
// signed with several keys is accepted if one of the signatures is good.
func HookonceHTTP(c HookonceHTTPConfig) *HookonceProvider {
	s := httpSigning{url: c.URL}
	if c.URL != "" {
		if err := outgoing.CheckHTTPAddress(c.URL); err != nil {
			panic(fmt.Errorf("provider hookonce: URL: %w", err))
		}
	}
	for i, text := range c.Keys {
		read := httpsig.VerifyingKey
		if c.AsSender {
			read = eitherKey
		}
		key, err := read("", text)
		if err != nil {
			panic(fmt.Errorf("provider hookonce: key %d of %d %w", i+1, len(c.Keys), err))
		}
		s.keys = append(s.keys, key)
	}
	if len(s.keys) == 0 {
		panic("provider hookonce: no key is given; it needs the public keys of the gateway's destination, or its shared secrets")
	}
	return &HookonceProvider{s}
}

// eitherKey reads a private key, or what [httpsig.VerifyingKey] does.
func eitherKey(id, text string) (httpsig.Key, error) {
	if key, err := httpsig.SigningKey(id, text); err == nil {
		return key, nil
	}
	return httpsig.VerifyingKey(id, text)
}

// httpSigning is that of HTTP message signatures.
type httpSigning struct {
	keys []httpsig.Key
	url  string
}

// message returns what signatures cover parts of.
func (p httpSigning) message(req *hookonce.Request) *httpsig.Request {
	address := req.URL
	if p.url != "" {
		address, _, _ = strings.Cut(p.url, "?")
		if _, query, has := strings.Cut(req.URL, "?"); has {
			address += "?" + query
		}
	}
	return &httpsig.Request{Method: cmp.Or(req.Method, http.MethodPost), URL: address, Header: req.Header}
}

// verify accepts a request if one of its signatures is good. Of those that are not it says why the last is not.
func (p httpSigning) verify(req *hookonce.Request) (int, error) {
	for _, name := range []string{httpsig.SignatureHeader, httpsig.InputHeader, httpsig.DigestHeader} {
		if _, err := incoming.Required(req.Header, name, "what the gateway sends to a destination with http_signature"); err != nil {
			return 0, err
		}
	}
	found, err := httpsig.Parse(req.Header[httpsig.InputHeader], req.Header[httpsig.SignatureHeader])
	if err != nil {
		return 0, incoming.Reject(hookonce.ReasonSignatureMalformed, "%v", err)
	}
	message := p.message(req)
	for i := range found {
		var n int
		if n, err = p.verifyOne(req, message, &found[i]); err == nil {
			return n, nil
		}
	}
	return 0, err
}

func (p httpSigning) verifyOne(req *hookonce.Request, message *httpsig.Request, s *httpsig.Signature) (int, error) {
	base, err := s.Base(message)
	if err != nil {
		return 0, incoming.Reject(hookonce.ReasonSignatureMalformed, "%v", err)
	}
	n := p.made(s, base)
	if n == 0 {
		return 0, incoming.Reject(hookonce.ReasonSignatureMismatch, "no key here made the signature with the keyid %q over this method, URL and these headers; check the key, that the URL is the one that the gateway calls, and that no proxy changes headers that begin with Hookonce-, or Idempotency-Key", s.Texts["keyid"])
	}
	if missing := s.Missing(message, req.Body, outgoing.HTTPHeaders(req.Header)...); missing != "" {
		return 0, incoming.Reject(hookonce.ReasonSignatureMalformed, "the signature does not cover %s, which anybody could change or add then", missing)
	}
	if err := httpsig.CheckDigest(req.Header[httpsig.DigestHeader], req.Body); err != nil {
		return 0, incoming.Reject(hookonce.ReasonSignatureMismatch, "%v", err)
	}
	if s.Created == nil {
		return 0, incoming.Reject(hookonce.ReasonTimestampMissing, "the signature does not say when it was created")
	}
	switch created := time.Unix(*s.Created, 0); {
	case created.Before(req.Now.Add(-outgoing.HTTPTolerance)):
		return 0, incoming.Reject(hookonce.ReasonTimestampOld, "it was signed at %s, more than %v ago", created.UTC().Format(time.RFC3339), outgoing.HTTPTolerance)
	case created.After(req.Now.Add(outgoing.HTTPTolerance)):
		return 0, incoming.Reject(hookonce.ReasonTimestampFuture, "it was signed at %s, more than %v ahead: do the clocks agree?", created.UTC().Format(time.RFC3339), outgoing.HTTPTolerance)
	case s.Expires != nil && req.Now.After(time.Unix(*s.Expires, 0)):
		return 0, incoming.Reject(hookonce.ReasonTimestampOld, "the signature's expires is in the past")
	}
	return n, nil
}

// made returns the number of the key that made a signature, from 1; 0 for none. An algorithm that it names must be the
// key's.
func (p httpSigning) made(s *httpsig.Signature, base []byte) int {
	said, says := s.Texts["alg"]
	for i, key := range p.keys {
		if (!says || said == string(key.Algorithm)) && key.Verify(base, s.Value) {
			return i + 1
		}
	}
	return 0
}

func (p httpSigning) sign(req *hookonce.Request) error {
	err := outgoing.SignHTTP(req.Header, p.keys, cmp.Or(req.Method, http.MethodPost), p.message(req).URL, req.Now, req.Body)
	if errors.Is(err, httpsig.ErrPublic) {
		return errors.New("provider hookonce: only the gateway signs with its private key; a test gives a private key of its own, and sets AsSender")
	}
	return err
}
