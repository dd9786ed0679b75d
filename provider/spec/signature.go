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
	c := carrier{in: in, split: s.Split, join: s.Split, skip: s.Skip, prefix: s.Prefix, repeated: s.Repeated, where: in.describe()}
	if base, ok := strings.CutSuffix(in.text, "-*"); ok && in.kind == kindHeader {
		c.numbered, c.in.text, c.where = true, base+"-", "the headers "+base+"-1, "+base+"-2 and so on"
	}
	if trimmed := strings.TrimSpace(s.Split); trimmed != "" {
		c.split = trimmed
	}
	switch {
	case s.Skip < 0 || s.Skip > 0 && s.Split == "":
		return c, fault("signature.skip", "entries can be skipped only where signature.split separates them")
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
	case c.repeated:
		return c.present(strings.Join(r.req.Header[c.in.text], c.split))
	case c.in.kind == kindHeader:
		line, n := headerText(r.req.Header, c.in.text)
		if n > 1 {
			return "", incoming.Reject(hookonce.ReasonSignatureMalformed, "%s occurs several times with different values; expected one: %s", c.where, c.shape)
		}
		return c.present(line)
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
		text, n := headerText(req.Header, c.in.text+strconv.Itoa(i))
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
			if sig, ok := strings.CutPrefix(entry, c.prefix); ok && !yield(sig) {
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

// describe names a value for error messages.
func (v *value) describe() string {
	switch v.kind {
	case kindHeader:
		return "the header " + v.text
	case kindForm:
		return "the form field " + v.text
	case kindQuery:
		return "the query parameter " + v.text
	case kindItem:
		return "the item's member " + strings.TrimPrefix(v.origin, "item:")
	case kindJSON:
		return "the member " + strings.TrimPrefix(v.origin, "json:")
	case kindClaim:
		return "the token's claim " + v.text
	case kindSortedForm:
		return "the form in the body"
	}
	return v.origin
}
