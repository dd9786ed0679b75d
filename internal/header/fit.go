package header

import (
	"cmp"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// The bounds of what an event keeps of its request's headers, and of what an application gets of them. Servers that
// applications use refuse more than 8 KiB to 16 KiB of headers, or more than 100 lines, with 431 or 400; and they would
// refuse every attempt at the event.
const (
	// MaxBytes is how large they are together, as HTTP/1 field lines.
	MaxBytes = 8 << 10
	// MaxLines is how many lines they have.
	MaxLines = 64
)

// field are the lines of one name.
type field struct {
	name   string
	class  class
	values []string
	size   int // of all lines
}

// normalise leaves the values that count and measures them. It reports whether there are any.
func (f *field) normalise() bool {
	if slices.ContainsFunc(f.values, manyLines) { // servers refuse those already
		f.values = slices.DeleteFunc(slices.Clone(f.values), manyLines)
	}
	if len(f.values) == 0 {
		return false
	}
	switch f.class {
	case once:
		if slices.ContainsFunc(f.values[1:], func(v string) bool { return v != f.values[0] }) {
			return false
		}
		f.values = f.values[:1]
	case first:
		f.values = f.values[:1]
	}
	f.size = 0
	for _, v := range f.values {
		f.size += lineSize(f.name, v)
	}
	return true
}

func manyLines(value string) bool { return strings.ContainsAny(value, "\r\n\x00") }

// overfull reports whether what is named is too much already.
func overfull(fields []field) bool {
	size, lines := 0, 0
	for i := range fields {
		if f := &fields[i]; f.class.named() {
			size, lines = size+f.size, lines+len(f.values)
		}
	}
	return size > MaxBytes || lines > MaxLines
}

// fit returns as many of the headers as there is room for, and their size: first those that are named, then those of the
// provider's own beginnings, then others, and of each the smallest first.
func fit(fields []field) ([]field, int) {
	rank := func(f field) int { return max(int(f.class), int(every)) }
	slices.SortFunc(fields, func(a, b field) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a.size, b.size), cmp.Compare(a.name, b.name))
	})
	kept, size, lines := fields[:0], 0, 0
	for _, f := range fields {
		if size+f.size <= MaxBytes && lines+len(f.values) <= MaxLines {
			kept, size, lines = append(kept, f), size+f.size, lines+len(f.values)
		}
	}
	return kept, size
}

// Choice is what a destination says about the headers that a source passes. The zero choice leaves it at that. It is
// immutable and safe for concurrent use.
type Choice struct {
	only bool            // none but what is in also, and what says how to read the body
	also *Rule           // what is asked for
	drop map[string]bool // by canonical name
}

// NewChoice returns the choice of a destination. With pass none but those are passed, with drop all but those; also has names,
// and beginnings that end in a star, of what is passed besides. What says how to read the body always is.
func NewChoice(pass, drop, also []string) Choice {
	c := Choice{only: len(pass) > 0, also: closed.And(slices.Concat(pass, also)...), drop: map[string]bool{}}
	for _, name := range drop {
		if name = textproto.CanonicalMIMEHeaderKey(name); !aboutBody(name) {
			c.drop[name] = true
		}
	}
	return c
}

// Chooses reports whether the destination says anything.
func (c Choice) Chooses() bool { return c.also != nil }

// aboutBody reports whether the body cannot be read without a header.
func aboutBody(name string) bool { return name == "Content-Type" || name == "Content-Encoding" }

// Filter says what of an event's headers a destination gets. The zero filter is for a source of which nothing is known,
// and a destination that takes all.
type Filter struct {
	Rule *Rule
	Choice
	// Signed reports whether a header is a part of a signature that is made anew: it is passed whatever the choice is.
	// Nil: none is.
	Signed func(name string) bool
}

// class returns what the filter says of a canonical name.
func (f *Filter) class(name string) class {
	c := f.Rule.class(name)
	if !f.Chooses() || c != none && f.Signed != nil && f.Signed(name) {
		return c
	}
	asked := f.also.class(name)
	switch {
	case f.drop[name], f.only && asked == none && !aboutBody(name), f.Rule.withholds(name):
		return none
	case c == none:
		return asked
	}
	return c
}

// passes reports whether a header of that canonical name is passed.
func (f *Filter) passes(name string) bool { return f.class(name) != none }

// Decode reads field lines, see [Encode], and returns what the filter passes of them, as much as [Rule.Encode] would
// have kept: those that a version before this has stored, or others, may be more. A line that could not be sent is
// skipped. Of what begins as our own headers do, the facts that are kept with an event are passed on, whatever the
// filter says, and nothing else. The result has room for so many more headers.
func (f *Filter) Decode(lines []byte, room int) http.Header {
	text := string(lines)
	n := strings.Count(text, "\r\n")
	h := make(http.Header, n+room)
	values := make([]string, 0, n)
	size, repeated := 0, false
	for text != "" {
		var name, value string
		name, value, text = cutLine(text)
		if name == "" || !ValidValue(value) {
			continue
		}
		name = textproto.CanonicalMIMEHeaderKey(name)
		if !isFact(name) {
			if !f.passes(name) {
				continue
			}
			size += lineSize(name, value)
		}
		value = textproto.TrimString(value)
		if more, ok := h[name]; ok {
			h[name], repeated = append(more, value), true
			continue
		}
		values = append(values, value)
		h[name] = values[len(values)-1 : len(values) : len(values)]
	}
	if repeated || size > MaxBytes || len(h) > MaxLines {
		f.trim(h)
	}
	return h
}

// trim leaves in h as much as [Rule.Encode] would have kept. Facts stay as they are and do not count.
func (f *Filter) trim(h http.Header) {
	fields := make([]field, 0, len(h))
	for name, values := range h {
		if isFact(name) {
			continue
		}
		e := field{name: name, class: f.class(name), values: values}
		if e.class == none || !e.normalise() {
			delete(h, name)
			continue
		}
		h[name] = e.values
		fields = append(fields, e)
	}
	left, _ := fit(slices.Clone(fields))
	for _, e := range fields {
		if !slices.ContainsFunc(left, func(l field) bool { return l.name == e.name }) {
			delete(h, e.name)
		}
	}
}
