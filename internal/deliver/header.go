package deliver

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/passing"
)

// reserved reports whether the canonical name is that of a header that nobody but us may set.
func reserved(name string) bool {
	switch name {
	case outgoing.IdempotencyKeyHeader, outgoing.MessageIDHeader, outgoing.TimestampHeader, outgoing.SignatureHeader, traceparent, tracestate:
		return true
	}
	return passing.OfConnection(name) || strings.HasPrefix(name, outgoing.OwnPrefix)
}

// headers reads what a destination's settings say about headers.
func (d *destination) headers(s Destination) error {
	for name, values := range s.Header {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !passing.Token(name) || slices.ContainsFunc(values, func(v string) bool { return !isFieldValue(v) }):
			return fmt.Errorf("the header %q cannot be sent: its name or its value has characters that no header has", name)
		case reserved(canonical):
			return fmt.Errorf("the header %s is set by hookonce or belongs to the connection: remove it", canonical)
		case canonical == "Authorization" && d.authorization != "":
			return errors.New("the header Authorization is made of the user in the address: remove one of the two")
		}
		if d.header == nil {
			d.header = http.Header{}
		}
		d.header[canonical] = append(d.header[canonical], values...)
	}
	if len(s.PassHeader) > 0 && len(s.DropHeader) > 0 {
		return errors.New("the provider's headers are either those to pass or those to drop: write one of the two lists")
	}
	for _, name := range slices.Concat(s.PassHeader, s.DropHeader) {
		if !passing.Token(name) {
			return fmt.Errorf("%q cannot be the name of a header", name)
		}
	}
	for _, name := range s.AlsoPass {
		if err := passing.Check(name); err != nil {
			return err
		}
	}
	if len(s.PassHeader)+len(s.DropHeader)+len(s.AlsoPass) > 0 {
		d.choice = passing.NewChoice(s.PassHeader, s.DropHeader, s.AlsoPass)
	}
	return nil
}

// ownHeaders is how many headers of ours most events have.
const ownHeaders = 10

// decodeHeader reads HTTP/1 field lines, each ended by CRLF, and returns what the filter passes of them, as much as an event
// keeps: those that a version before this has stored, or others, may be more. A line that is not one is skipped: it
// could not be sent. Of what begins as our own headers do, the facts that are kept with an event are passed on,
// whatever the filter says, and nothing else. The result has room for our own headers.
func decodeHeader(lines []byte, filter *passing.Filter) http.Header {
	text := string(lines)
	n := strings.Count(text, "\r\n")
	h := make(http.Header, n+ownHeaders)
	values := make([]string, 0, n)
	size, repeated := 0, false
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\r\n")
		name, value, ok := strings.Cut(line, ":")
		if !ok || !passing.Token(name) || !isFieldValue(value) {
			continue
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if fact := outgoing.IsFact(name); !fact {
			if !filter.Passes(name) {
				continue
			}
			size += len(line) + len("\r\n")
		}
		value = strings.Trim(value, " \t")
		if more, ok := h[name]; ok {
			h[name], repeated = append(more, value), true
			continue
		}
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	if repeated || size > passing.MaxBytes || len(h) > passing.MaxLines {
		filter.Trim(h, outgoing.IsFact)
	}
	return h
}

// isFieldValue reports whether s has no control character except tabs.
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
