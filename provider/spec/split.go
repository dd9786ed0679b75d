package spec

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/tidwall/gjson"
)

const (
	// maxGrowth is how many times the size of its batch the items may have together, each with what
	// surrounds it. No more than one of them has to be in memory: see [hookonce.Batch].
	maxGrowth = 64
	// maxItems is how many items a batch may have. Strangers can send millions of nothing in a body
	// of some megabytes.
	maxItems = 10_000
)

var (
	errGrows = errors.New("the batch has too many items, inside too large a document, to be taken apart")
	errMany  = fmt.Errorf("the batch has more than %d items", maxItems)
	errTwice = errors.New("the batch has two members of one name where its items are: there is no telling which is meant")
	errAlike = errors.New("the batch has a member whose name differs from the one its items are in by letter case only: some parsers take it for that one")
	errOther = errors.New("the batch has something else than an array of items where its items are")
)

// splitter is a [Split] in compiled form: the paths of the items merged by common beginnings.
type splitter struct {
	root  step
	lines bool
	// strict is set if items are authenticated one by one. Then nothing binds what is around them, and
	// what a parser could take for their array must be their array.
	strict bool
}

type step struct {
	name string
	each *step
	next []*step
	leaf bool
}

// item is one item of a batch.
type item struct {
	text     string // as it is written
	parent   string // the element or document that holds its array
	document string // what it was taken from
	start    int    // where it is in there
	place    *place // nil: the whole document is the item
}

// newSplitter compiles how a batch is taken apart.
func newSplitter(how Split) (*splitter, error) {
	s := &splitter{lines: how.Lines}
	if len(how.Items) == 0 {
		return nil, fault("split.items", "is empty; say where the items are, as in json:$.events[*]")
	}
	for i, text := range how.Items {
		v, err := parseValue(text)
		if err == nil && (v.kind != kindJSON || len(v.path) == 0 || v.path[len(v.path)-1] != "[*]") {
			err = fmt.Errorf("%q: items are the elements of an array, as in json:$.events[*]", text)
		}
		for _, step := range v.path {
			if err == nil && step != "[*]" && step[0] == '[' {
				err = fmt.Errorf("%q: every element of an array is meant here; write [*]", text)
			}
		}
		if err != nil {
			return nil, within(fmt.Sprintf("split.items[%d]", i), err)
		}
		s.add(v.path)
	}
	return s, nil
}

// add merges a path into the tree of steps.
func (s *splitter) add(path []string) {
	at := &s.root
	for _, name := range path {
		at = at.child(name)
	}
	at.leaf = true
}

func (s *step) child(name string) *step {
	if name == "[*]" {
		if s.each == nil {
			s.each = &step{}
		}
		return s.each
	}
	for _, c := range s.next {
		if c.name == name {
			return c
		}
	}
	c := &step{name: name}
	s.next = append(s.next, c)
	return c
}

// documents cuts a body of several JSON documents into its lines; a body of one is its own line.
func (s *splitter) documents(body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if s == nil || !s.lines || checkJSON(body) == nil {
			yield(body)
			return
		}
		for line := range bytes.Lines(body) {
			if line = bytes.TrimSpace(line); len(line) > 0 && !yield(line) {
				return
			}
		}
	}
}

// split calls take for each item of a document, in order, until that returns an error.
func (s *splitter) split(text string, take func(item) error) error {
	text = strings.TrimSpace(text)
	c := collector{text: text, strict: s.strict, give: take, limit: maxGrowth * (len(text) + 1024)}
	switch {
	case c.span(&s.root, gjson.Parse(text), nil) || c.err != nil:
		return c.err
	case s.strict:
		return errOther
	}
	return take(item{text: text, parent: text, document: text})
}

// place is an array that items are in: what surrounds it, up to the element of the next outer array, or
// up to the whole document.
type place struct {
	outer      *place
	start, end int    // of the element or document that holds the array
	arrays     []span // every array in there that could hold items, in order
	own        int    // which of them the items are in
	size       int    // of what surrounds an item, in bytes
}

// span is an array in the text.
type span struct{ start, end int }

// size is how long the body is.
func (it item) size() int {
	if it.place == nil {
		return len(it.text)
	}
	return it.place.size + len(it.text)
}

// body returns the document with the item alone in its arrays, and no other items.
func (it item) body() []byte {
	text := it.document
	body := []byte(it.text)
	for p := it.place; p != nil; p = p.outer {
		inner, at := body, p.start
		body = make([]byte, 0, len(inner)+p.size)
		for i, a := range p.arrays {
			body = append(append(body, text[at:a.start]...), '[')
			if i == p.own {
				body = append(body, inner...)
			}
			body, at = append(body, ']'), a.end
		}
		body = append(body, text[at:p.end]...)
	}
	return body
}

type collector struct {
	text   string
	strict bool
	give   func(item) error
	size   int
	limit  int
	err    error
}

// found is an array that could hold items.
type found struct {
	each  *step
	array gjson.Result
}

// span takes the items from the arrays in one element or document, and reports whether there are any
// arrays.
func (c *collector) span(at *step, in gjson.Result, outer *place) bool {
	arrays := c.arrays(at, in, nil)
	if c.err != nil || len(arrays) == 0 {
		return false
	}
	p := place{outer: outer, start: in.Index, end: in.Index + len(in.Raw)}
	p.size = len(in.Raw)
	for _, f := range arrays {
		p.arrays = append(p.arrays, span{f.array.Index, f.array.Index + len(f.array.Raw)})
		p.size += len("[]") - len(f.array.Raw)
	}
	if outer != nil {
		p.size += outer.size
	}
	for i, f := range arrays {
		own := p
		own.own = i
		if c.elements(f, &own); c.err != nil {
			break
		}
	}
	return true
}

// arrays finds the outermost arrays below at.
func (c *collector) arrays(at *step, in gjson.Result, to []found) []found {
	switch {
	case at.each != nil && in.IsArray():
		return append(to, found{at.each, in})
	case len(at.next) > 0 && in.IsObject():
		return c.members(at, in, to)
	case c.strict:
		c.err = errOther
	}
	return to
}

// members finds the arrays in an object. Of two members of the same name parsers take the first or the
// last, so there is no telling which items are meant.
func (c *collector) members(at *step, in gjson.Result, to []found) []found {
	seen := make(map[*step]bool, len(at.next))
	in.ForEach(func(key, val gjson.Result) bool {
		for _, next := range at.next {
			switch {
			case key.Str != next.name:
				if c.strict && strings.EqualFold(key.Str, next.name) {
					c.err = errAlike
				}
				continue
			case seen[next]:
				c.err = errTwice
			}
			seen[next] = true
			to = c.arrays(next, val, to)
		}
		return c.err == nil
	})
	return to
}

// elements takes the elements of an array, or what is below them. An element in which no array is
// found is an item itself.
func (c *collector) elements(f found, p *place) {
	f.array.ForEach(func(_, val gjson.Result) bool {
		if f.each.leaf || !c.span(f.each, val, p) && c.err == nil {
			c.take(item{text: val.Raw, parent: c.text[p.start:p.end], start: val.Index, place: p})
		}
		return c.err == nil
	})
}

func (c *collector) take(it item) {
	c.size += it.size()
	if c.size > c.limit {
		c.err = errGrows
		return
	}
	it.document = c.text
	c.err = c.give(it)
}

// items takes a batch apart.
func (s *splitter) items(body []byte) (items []item, err error) {
	err = s.each(body, func(it item) error {
		items = append(items, it)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}

// each calls take for each item of a batch, in order, until that returns an error.
func (s *splitter) each(body []byte, take func(item) error) error {
	empty, n := true, 0
	for document := range s.documents(body) {
		empty = false
		if err := checkJSON(document); err != nil {
			return err
		}
		err := s.split(view(document), func(it item) error {
			if n++; n > maxItems {
				return errMany
			}
			return take(it)
		})
		if err != nil {
			return err
		}
	}
	if empty {
		return errEmptyBody
	}
	return nil
}
