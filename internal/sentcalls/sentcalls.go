// Package sentcalls tells the calls apart that one attempt at some work makes to other systems: a second call to an
// address is a retry of the first, or another call.
package sentcalls

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
)

// Set has the first call to each address. The zero value is ready. It is safe for concurrent use.
type Set struct {
	mu    sync.Mutex
	first map[string]call
}

// Compare returns how the call that req makes differs from an earlier one to the address, without what either says. It
// is empty if the call differs in nothing, or there was none before. The body is read from a copy of its own. An error says that this failed.
func (s *Set) Compare(address string, req *http.Request) (difference string, err error) {
	c, err := callOf(req)
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	first, known := s.first[address]
	if known {
		return c.differs(first), nil
	}
	if s.first == nil {
		s.first = map[string]call{}
	}
	s.first[address] = c
	return "", nil
}

// call is what calls to one address are compared by.
type call struct {
	query  string
	header http.Header
	body   [sha256.Size]byte
	once   bool // the body can be read only once
}

// callOf reads the body in a copy of its own.
func callOf(req *http.Request) (call, error) {
	c := call{query: req.URL.RawQuery, header: telling(req.Header)}
	hash := sha256.New()
	if req.Body != nil && req.Body != http.NoBody {
		if req.GetBody == nil {
			c.once = true
			return c, nil
		}
		r, err := req.GetBody()
		if err != nil {
			return call{}, fmt.Errorf("the body cannot be read twice: %w", err)
		}
		defer r.Close()
		if _, err := io.Copy(hash, r); err != nil {
			return call{}, fmt.Errorf("reading the body: %w", err)
		}
	}
	c.body = [sha256.Size]byte(hash.Sum(nil))
	return c, nil
}

// telling returns the header fields that tell calls apart, under their canonical names. The others change
// between retries of one call.
func telling(header http.Header) http.Header {
	fields := http.Header{}
	for name, values := range header {
		switch name = http.CanonicalHeaderKey(name); name {
		case "Date", "Traceparent", "Tracestate", "Baggage", "X-Request-Id", "User-Agent", "Referer":
		default:
			fields[name] = append(fields[name], values...)
		}
	}
	return fields
}

// differs says how c differs from first, without what either says; empty if it does not.
func (c call) differs(first call) string {
	switch {
	case c.query != first.query:
		return "has another query"
	case c.once || first.once:
		return "cannot be compared with the first, because a body can be read only once (GetBody is nil)"
	case c.body != first.body:
		return "has another body"
	}
	for name := range c.header {
		if !slices.Equal(c.header[name], first.header[name]) {
			return "has another header field " + name
		}
	}
	for name := range first.header {
		if _, there := c.header[name]; !there {
			return "lacks the header field " + name
		}
	}
	return ""
}
