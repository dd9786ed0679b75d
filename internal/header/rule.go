package header

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
)

// Spec is what is known of the headers of a source's requests. Names are spelled in any way.
type Spec struct {
	// Once are the headers that something is verified by or extracted from. Where one is there several times with
	// different values, nothing is extracted, and nothing is passed.
	Once []string
	// Repeated are those of them of which all lines count.
	Repeated []string
	// Listed are others that the sender documents: names, and beginnings of names that end in a star. Empty: nothing
	// is known of the sender's headers, and all are passed but those that senders do not set (see isDenied).
	Listed []string
	// Secret are the headers that hold the secret itself. They are never passed.
	Secret []string
}

// Rule says which headers are passed. It is immutable and safe for concurrent use. The nil rule is that of a
// source of which nothing is known.
type Rule struct {
	names    map[string]class // by canonical name
	families []string         // canonical beginnings of names
	folded   map[string]bool  // those of them that have other signs than dashes, see Fold
	open     bool
}

// class says how much a header matters, the most first, and which of its lines count.
type class uint8

const (
	none   class = iota // is not passed
	once                // named: one value, or none where there are different ones
	first               // named: the first value
	every               // named: all values
	family              // has a name that begins like the provider's own
	other               // is on no list
)

// named reports whether headers of the class have been asked for by name. An event is not stored without them.
func (c class) named() bool { return c != none && c < family }

// base are headers of all senders, without which an application cannot read the body or tell who sent it.
var base = []string{"Content-Type", "Content-Encoding", "User-Agent"}

// unknown is the rule of a source of which nothing is known, and closed one that passes nothing.
var unknown, closed = NewRule(Spec{}), &Rule{}

// NewRule returns the rule of a source. Names that nobody can have passed are left out (see [CheckPass]).
func NewRule(s Spec) *Rule {
	r := &Rule{names: map[string]class{}, folded: map[string]bool{}, open: len(s.Listed) == 0}
	r.name(first, base)
	r.list(s.Listed)
	r.name(once, s.Once)
	r.name(every, s.Repeated)
	r.name(none, s.Secret)
	return r
}

func (r *Rule) name(c class, names []string) {
	for _, name := range names {
		name = textproto.CanonicalMIMEHeaderKey(name)
		if never(name) {
			continue
		}
		if r.names[name] = c; !plain(name) {
			r.folded[Fold(name)] = true
		}
	}
}

func (r *Rule) list(listed []string) {
	for _, name := range listed {
		beginning, ok := strings.CutSuffix(name, "*")
		if ok {
			r.families = append(r.families, textproto.CanonicalMIMEHeaderKey(beginning))
		} else if _, known := r.names[textproto.CanonicalMIMEHeaderKey(name)]; !known {
			r.name(every, []string{name})
		}
	}
}

// And returns the rule that passes, besides, what a list has: names, and beginnings that end in a star. A header that
// holds the secret is not passed all the same.
func (r *Rule) And(listed ...string) *Rule {
	if r == nil {
		r = unknown
	}
	if len(listed) == 0 {
		return r
	}
	more := &Rule{names: map[string]class{}, families: slices.Clone(r.families), folded: map[string]bool{}, open: r.open}
	for name, c := range r.names {
		more.names[name] = c
	}
	for name := range r.folded {
		more.folded[name] = true
	}
	more.list(listed)
	return more
}

// class returns what the rule says of a canonical name.
func (r *Rule) class(name string) class {
	if r == nil {
		r = unknown
	}
	if c, ok := r.names[name]; ok {
		return c
	}
	c := none
	if r.open {
		c = other
	}
	for _, f := range r.families {
		if strings.HasPrefix(name, f) {
			c = family
			break
		}
	}
	if c == none || !plain(name) || r.twin(name) || isDenied(name) {
		return none
	}
	return c
}

// withholds reports whether a header holds the secret itself, or could be taken for one that is named.
func (r *Rule) withholds(name string) bool {
	if r == nil {
		return false
	}
	c, named := r.names[name]
	return named && c == none || !named && r.twin(name)
}

// twin reports whether a name is one of those that are named for whoever takes any sign for a dash.
func (r *Rule) twin(name string) bool { return len(r.folded) > 0 && r.folded[Fold(name)] }

// plain reports whether a name has nothing but letters, digits and dashes. X_GitHub_Event would be taken for X-GitHub-Event,
// and hookonce.key for ours (see [Fold]).
func plain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c != '-' && !letter(c) {
			return false
		}
	}
	return name != ""
}

// CheckPass returns why nobody can have a header of that name passed, or one of a beginning that ends in a star; nil if
// one can.
func CheckPass(listed string) error {
	name, beginning := strings.CutSuffix(listed, "*")
	name = textproto.CanonicalMIMEHeaderKey(name)
	switch {
	case beginning && !plain(name):
		return fmt.Errorf("%q is not the beginning of a header's name; write letters, digits and dashes before the star, as in X-Acme-*", listed)
	case !ValidName(name):
		return fmt.Errorf("%q is not the name of a header; write letters, digits and dashes", listed)
	case HopByHop(name):
		return fmt.Errorf("%s belongs to one connection and is never passed on", name)
	case ours(name):
		return fmt.Errorf("%s is set by this program", name)
	case !never(name):
		return nil
	}
	return fmt.Errorf("%s is never passed on: it holds credentials, or is taken for something else than a header", name)
}

// ErrTooLarge says that the headers that are named are together larger than [MaxBytes] or have more than [MaxLines]
// lines.
var ErrTooLarge = errors.New("the headers that are kept are too large")

// Encode returns the headers that an event keeps as HTTP/1 field lines, at most [MaxBytes] in at most [MaxLines] lines.
// Where there are more, those that nobody named go, see fit; if what is named is too much the error is [ErrTooLarge].
// Values stay as they came, because a signature is over the raw bytes. Lines of different names are in no particular
// order; values of one name keep theirs. What Connection lists is left out only if it is on no list: a journal is no hop
// on the way.
func (r *Rule) Encode(h http.Header) ([]byte, error) {
	fields := make([]field, 0, 32)
	size, lines := 0, 0
	for name, values := range h {
		f := field{name: name, class: r.class(name), values: values}
		if f.class == none || f.class == other && ConnectionLists(h, name) || !f.normalise() {
			continue
		}
		fields = append(fields, f)
		size, lines = size+f.size, lines+len(f.values)
	}
	if size > MaxBytes || lines > MaxLines {
		if overfull(fields) {
			return nil, ErrTooLarge
		}
		fields, size = fit(fields)
	}
	text := make([]byte, 0, size)
	for i := range fields {
		for _, v := range fields[i].values {
			text = appendLine(text, fields[i].name, v)
		}
	}
	return text, nil
}
