package traffic

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// ErrURL is wrapped by the errors of [ParseTarget].
var ErrURL = errors.New("the URL cannot be used")

// Target is an HTTP endpoint. It is immutable and safe for concurrent use.
type Target struct {
	address string // host:port to dial
	host    string // as in the Host field
	path    string // as in the request line
	tls     *tls.Config
}

// ParseTarget reads an absolute http or https URL. Errors wrap [ErrURL], and do not show the query,
// where a token may be.
func ParseTarget(raw string) (*Target, error) {
	u, err := url.Parse(raw)
	raw, _, _ = strings.Cut(raw, "?")
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", ErrURL, errors.Unwrap(err))
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("%w: %q must start with http:// or https://", ErrURL, raw)
	case u.Hostname() == "":
		return nil, fmt.Errorf("%w: %q names no host", ErrURL, raw)
	case u.User != nil:
		return nil, fmt.Errorf("%w: put credentials into an Authorization header instead of the URL", ErrURL)
	}
	t := &Target{host: u.Host, path: u.RequestURI()}
	port := u.Port()
	if u.Scheme == "https" {
		t.tls = &tls.Config{ServerName: u.Hostname(), NextProtos: []string{"http/1.1"}}
		port = cmp.Or(port, "443")
	}
	t.address = net.JoinHostPort(u.Hostname(), cmp.Or(port, "80"))
	return t, nil
}

// WithTLS returns a copy of the target that is dialled with this configuration: with other roots, or
// a client certificate. The protocol stays HTTP/1.1.
func (t *Target) WithTLS(c *tls.Config) *Target {
	u := *t
	u.tls = c.Clone()
	u.tls.NextProtos = []string{"http/1.1"}
	return &u
}

// Address returns host and port that the target is dialled at.
func (t *Target) Address() string { return t.address }

// Dial opens a connection to the target, with its TLS handshake done if it has one.
func (t *Target) Dial(ctx context.Context) (net.Conn, error) {
	if t.tls == nil {
		var d net.Dialer
		return d.DialContext(ctx, "tcp", t.address)
	}
	d := tls.Dialer{Config: t.tls}
	return d.DialContext(ctx, "tcp", t.address)
}

// fieldValue keeps a value from ending its line.
var fieldValue = strings.NewReplacer("\r", " ", "\n", " ")

// Request returns the bytes of a POST to the target. Host and Content-Length are added, all other
// fields are the caller's; they are written in alphabetical order, so that equal input gives equal
// bytes.
func (t *Target) Request(header http.Header, body []byte) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "POST %s HTTP/1.1\r\nHost: %s\r\n", t.path, t.host)
	names := make([]string, 0, len(header))
	for name := range header {
		if name != "Host" && name != "Content-Length" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, value := range header[name] {
			fmt.Fprintf(&b, "%s: %s\r\n", name, fieldValue.Replace(value))
		}
	}
	fmt.Fprintf(&b, "Content-Length: %d\r\n\r\n", len(body))
	b.Write(body)
	return b.Bytes()
}
