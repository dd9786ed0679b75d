package spec

import (
	"iter"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

const (
	// maxNumbered is how many numbered headers are looked at.
	maxNumbered = 100
	// maxSignatures is how many signatures a request may carry besides: each costs a verification for
	// everybody who is able to send a request.
	maxSignatures = 16
)

// carrier is a [Signature] in compiled form: where the signatures of a request are.
type carrier struct {
	in       value
	split    string
	join     string // split as the sender writes it
	trim     string
	skip     int
	prefix   string
	repeated bool
	numbered bool
	where    string // for error messages
	shape    string // what it looks like
}

func newCarrier(s Signature) (carrier, error) {
	in, err := parseAs(s.In, kindHeader, kindJSON, kindItem, kindForm, kindQuery)
	if err != nil {
		return carrier{}, within("signature.in", err)
	}
	c := carrier{in: in, split: s.Split, join: s.Split, trim: s.Trim, skip: s.Skip, prefix: s.Prefix, repeated: s.Repeated, where: in.describe()}
	if base, ok := strings.CutSuffix(in.text, "-*"); ok && in.kind == kindHeader {
		c.numbered, c.in.text, c.where = true, base+"-", "the headers "+base+"-1, "+base+"-2 and so on"
	}
	if trimmed := strings.TrimSpace(s.Split); trimmed != "" {
		c.split = trimmed
	}
	switch {
	case s.Skip < 0 || s.Skip > 0 && s.Split == "":
		return c, fault("signature.skip", "entries can be skipped only where signature.split separates them")
	case strings.TrimLeft(s.Prefix, s.Trim) != s.Prefix:
		return c, fault("signature.trim", "has the character that signature.prefix begins with, so that no entry could have the prefix")
	case c.repeated && in.kind != kindHeader:
		return c, fault("signature.repeated", "only a header can be repeated")
	case (c.numbered || c.repeated) && c.split == "":
		c.split = ","
	}
	return c, nil
}

// line returns the text with the signatures.
func (c *carrier) line(r *reading) (string, error) {
	switch {
	case c.numbered:
		return c.present(strings.Join(c.numberedValues(r.req), c.split))
	case c.repeated && len(r.req.Header[c.in.text]) > 0:
		return c.present(strings.Join(r.req.Header[c.in.text], c.split))
	case c.in.kind == kindHeader:
		return incoming.Required(r.req.Header, c.in.text, c.shape)
	}
	return c.present(r.get(&c.in))
}

func (c *carrier) present(line string) (string, error) {
	if line == "" {
		return "", incoming.Reject(hookonce.ReasonSignatureMissing, "%s is absent; expected %s", c.where, c.shape)
	}
	return line, nil
}

func (c *carrier) numberedValues(req *hookonce.Request) (values []string) {
	for i := 1; i <= maxNumbered; i++ {
		text, n := incoming.Single(req.Header[c.in.text+strconv.Itoa(i)])
		if n == 0 {
			break
		}
		values = append(values, text)
	}
	return values
}

// signatures yields the signatures in a line.
func (c *carrier) signatures(line string) iter.Seq[string] {
	return func(yield func(string) bool) {
		skip := c.skip
		for entry := range entries(line, c.split) {
			if skip > 0 {
				skip--
				continue
			}
			if sig, ok := strings.CutPrefix(strings.Trim(entry, c.trim), c.prefix); ok && !yield(sig) {
				return
			}
		}
	}
}

// most returns how many signatures are accepted in one request.
func (c *carrier) most() int {
	if c.numbered {
		return maxNumbered
	}
	return maxSignatures
}

// entries yields the entries of a header's value without the white space around them.
func entries(line, split string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for more := true; more; {
			entry := line
			if more = split != ""; more {
				entry, line, more = strings.Cut(line, split)
			}
			if !yield(strings.TrimSpace(entry)) {
				return
			}
		}
	}
}

// partText returns the rest of the entry that begins with prefix, and how many different ones there
// are, like headerText.
func partText(line, split, prefix string) (string, int) {
	text, n := "", 0
	for entry := range entries(line, split) {
		rest, ok := strings.CutPrefix(entry, prefix)
		if ok && n > 0 && rest != text {
			return "", 2
		}
		if ok {
			text, n = rest, 1
		}
	}
	return text, n
}

// entryText returns the entry with that number, from 0.
func entryText(line, split string, number int) string {
	for entry := range entries(line, split) {
		if number == 0 {
			return entry
		}
		number--
	}
	return ""
}
