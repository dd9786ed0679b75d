// Package httpsig reads, makes and checks the signatures of requests that RFC 9421, HTTP Message Signatures, describes, and
// the digest of the body of RFC 9530 that they cover. It says what a signature covers; whether that is enough is up to
// its callers.
package httpsig

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The headers of a signed request, in canonical form.
const (
	SignatureHeader = "Signature"
	InputHeader     = "Signature-Input"
	DigestHeader    = "Content-Digest"
)

// Bounds of what a stranger sends.
const (
	maxField      = 16 << 10 // bytes of one header, its lines together
	maxSignatures = 8
	maxComponents = 64
)

// Signature is one signature of a request.
type Signature struct {
	// Label tells the signatures of a request apart.
	Label string
	// Covered are the components that are signed, in their order.
	Covered []Component
	// Created and Expires are the times that it states, in seconds since 1970; nil if it states none.
	Created, Expires *int64
	// Texts are the parameters that are texts, by their names: alg, keyid, nonce, tag.
	Texts map[string]string
	// Value is the signature itself.
	Value []byte

	params string // the covered components and the parameters, as they are signed
}

// Component is a part of a request that is signed: a header in lower case, or a derived component, whose name
// begins with @.
type Component struct {
	// Name is its name.
	Name string
	// Param is the name of the query's parameter, as it is written in the signature, of an @query-param.
	Param string

	text string // as it is signed
}

// Parse reads the lines of the headers Signature-Input and Signature. A label that only one of them has is an error, and
// so is what RFC 9421 has and requests to a webhook have not: components of another message (req), and header fields in
// another form than their own (sf, key, bs, tr).
func Parse(input, signature []string) ([]Signature, error) {
	inputs, err := parseDictionary(input)
	if err != nil {
		return nil, fmt.Errorf("the header %s %w", InputHeader, err)
	}
	values, err := parseDictionary(signature)
	if err != nil {
		return nil, fmt.Errorf("the header %s %w", SignatureHeader, err)
	}
	if len(inputs) != len(values) {
		return nil, fmt.Errorf("the headers %s and %s do not have the same labels", InputHeader, SignatureHeader)
	}
	sums := make(map[string][]byte, len(values))
	for _, v := range values {
		if v.list || v.kind != byteSequence || len(v.params) > 0 {
			return nil, fmt.Errorf("the header %s has %s, which is no byte sequence between colons", SignatureHeader, v.name)
		}
		sums[v.name] = v.bytes
	}
	found := make([]Signature, len(inputs))
	for i, in := range inputs {
		sum, ok := sums[in.name]
		if !ok {
			return nil, fmt.Errorf("the headers %s and %s do not have the same labels", InputHeader, SignatureHeader)
		}
		if found[i], err = newSignature(in); err != nil {
			return nil, fmt.Errorf("the header %s has %s, which %w", InputHeader, in.name, err)
		}
		found[i].Value = sum
	}
	return found, nil
}

// newSignature reads one member of Signature-Input.
func newSignature(in member) (Signature, error) {
	s := Signature{Label: in.name, Texts: map[string]string{}, params: in.String()}
	if !in.list {
		return s, errors.New("is no list of components in parentheses")
	}
	if len(in.items) > maxComponents {
		return s, fmt.Errorf("covers more than %d components", maxComponents)
	}
	for _, it := range in.items {
		c, err := newComponent(it)
		if err != nil {
			return s, err
		}
		if s.Covers(c.text) {
			return s, fmt.Errorf("covers %s twice", c.text)
		}
		s.Covered = append(s.Covered, c)
	}
	for _, p := range in.params {
		number, name := p.value.number, p.name
		switch {
		case (name == "created" || name == "expires") != (p.value.kind == integer):
			return s, fmt.Errorf("has a parameter %s of another type than it should have", name)
		case name == "created":
			s.Created = &number
		case name == "expires":
			s.Expires = &number
		case p.value.kind != text:
			return s, fmt.Errorf("has a parameter %s that is no text in quotes", name)
		default:
			s.Texts[name] = p.value.text
		}
	}
	return s, nil
}

func newComponent(it item) (Component, error) {
	c := Component{Name: it.text, text: it.String()}
	if it.kind != text || it.text == "" || strings.ToLower(it.text) != it.text {
		return c, errors.New("covers something that is no name in lower case and quotes")
	}
	for _, p := range it.params {
		if p.name != "name" || p.value.kind != text || c.Name != "@query-param" {
			return c, fmt.Errorf("covers %s, whose parameter %s is not supported: of a webhook the request itself is signed, and its headers as they are", c.Name, p.name)
		}
		c.Param = p.value.text
	}
	if (c.Name == "@query-param") != (len(it.params) > 0) {
		return c, errors.New("covers an @query-param without a name")
	}
	return c, nil
}

// Covers reports whether a component is signed. It is named as it is signed, in quotes and with its parameter, or
// by its name alone if it has none.
func (s *Signature) Covers(name string) bool {
	for _, c := range s.Covered {
		if c.text == name || c.Name == name && c.Param == "" {
			return true
		}
	}
	return false
}

// Params are the parameters of a signature to make. What is empty or zero is left out.
type Params struct {
	// Created and Expires are the times that it states, in seconds since 1970.
	Created, Expires int64
	// KeyID, Alg and Tag are texts, of printable ASCII.
	KeyID, Alg, Tag string
}

// New returns a signature to make of the named components, none of which has a parameter.
func New(label string, covered []string, p Params) (*Signature, error) {
	s := &Signature{Label: label, Texts: map[string]string{}}
	in := member{name: label, list: true}
	for _, name := range covered {
		it := item{kind: text, text: name}
		in.items = append(in.items, it)
		s.Covered = append(s.Covered, Component{Name: name, text: it.String()})
	}
	for _, t := range []struct {
		name   string
		number int64
		to     **int64
	}{{"created", p.Created, &s.Created}, {"expires", p.Expires, &s.Expires}} {
		if t.number != 0 {
			*t.to = &t.number
			in.params = append(in.params, param{t.name, item{kind: integer, number: t.number}})
		}
	}
	for _, t := range [][2]string{{"keyid", p.KeyID}, {"alg", p.Alg}, {"tag", p.Tag}} {
		if t[1] == "" {
			continue
		}
		if !Printable(t[1]) {
			return nil, fmt.Errorf("the parameter %s of a signature has other characters than those of ASCII; remove them", t[0])
		}
		s.Texts[t[0]] = t[1]
		in.params = append(in.params, param{t[0], item{kind: text, text: t[1]}})
	}
	s.params = in.String()
	return s, nil
}

// Missing returns the first component that a signature leaves out although it could be changed then: the method, the URL,
// the digest of a body that is not empty, or one of the headers, in any case. It is empty if there is none.
func (s *Signature) Missing(of *Request, body []byte, headers ...string) string {
	switch {
	case !s.Covers("@method"):
		return "@method"
	case s.Covers("@target-uri"):
	case !s.Covers("@authority"):
		return "@target-uri, or @authority"
	case s.Covers("@request-target"):
	case !s.Covers("@path"):
		return "@target-uri, or @path beside @authority"
	case of.HasQuery() && !s.Covers("@query"):
		return "@target-uri, or @query beside @path"
	}
	if len(body) > 0 && !s.Covers("content-digest") {
		return "content-digest"
	}
	for _, name := range headers {
		if name = strings.ToLower(name); !s.Covers(name) {
			return name
		}
	}
	return ""
}

// Input returns the text of the header Signature-Input.
func (s *Signature) Input() string { return s.Label + "=" + s.params }

// Field returns the text of the header Signature, with a value.
func (s *Signature) Field(value []byte) string {
	return s.Label + "=" + item{kind: byteSequence, bytes: value}.String()
}

// Base returns what is signed of a request. An error says which component the request lacks.
func (s *Signature) Base(r *Request) ([]byte, error) {
	var b []byte
	for _, c := range s.Covered {
		value, err := r.value(c)
		if err != nil {
			return nil, err
		}
		if strings.ContainsAny(value, "\r\n") {
			return nil, fmt.Errorf("%s has a line break", c.text)
		}
		b = append(b, c.text...)
		b = append(b, ": "...)
		b = append(b, value...)
		b = append(b, '\n')
	}
	b = append(b, strconv.Quote("@signature-params")+": "...)
	return append(b, s.params...), nil
}
