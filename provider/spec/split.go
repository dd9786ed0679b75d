package spec

import (
	"bytes"
	"errors"
	"strings"

	"github.com/tidwall/gjson"
)

// maxGrowth is how many times the size of its batch the items may have together, each with what
// surrounds it.
const maxGrowth = 64

var errGrows = errors.New("the batch has too many items, inside too large a document, to be taken apart")

// splitter is a [Split] in compiled form: the paths of the items merged by common beginnings.
type splitter struct {
	root  step
	lines bool
}

type step struct {
	name string
	each *step
	next []*step
	leaf bool
}

// item is one item of a batch.
type item struct {
	text   string // as it is written
	parent string // the element or document that holds its array
	body   []byte // the document with this item alone in its arrays
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
func (s *splitter) documents(body []byte) [][]byte {
	if !s.lines || gjson.ValidBytes(body) {
		return [][]byte{body}
	}
	var lines [][]byte
	for line := range bytes.Lines(body) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// split returns the items of a document, in order.
func (s *splitter) split(text string) ([]item, error) {
	text = strings.TrimSpace(text)
	c := collector{text: text, limit: maxGrowth * (len(text) + 1024)}
	if !c.walk(&s.root, gjson.Parse(text), place{end: len(text)}) {
		return []item{{text, text, []byte(text)}}, nil
	}
	return c.items, c.err
}

// place is where a walk is: inside text[start:end], which before and after surround once the arrays
// on the way are reduced to the elements that were chosen.
type place struct {
	start, end    int
	before, after string
}

type collector struct {
	text  string
	items []item
	size  int
	limit int
	err   error
}

// walk takes the items below at, and reports whether it found an array that could hold some.
func (c *collector) walk(at *step, in gjson.Result, p place) (found bool) {
	if at.each != nil && in.IsArray() {
		return c.elements(at.each, in, p)
	}
	if !in.IsObject() {
		return false
	}
	in.ForEach(func(key, val gjson.Result) bool {
		for _, next := range at.next {
			if key.Str == next.name {
				found = c.walk(next, val, p) || found
			}
		}
		return c.err == nil
	})
	return found
}

// elements takes the elements of an array, or what is below them. An element in which no array is
// found is an item itself.
func (c *collector) elements(each *step, array gjson.Result, p place) bool {
	before := p.before + c.text[p.start:array.Index] + "["
	after := "]" + c.text[array.Index+len(array.Raw):p.end] + p.after
	array.ForEach(func(_, val gjson.Result) bool {
		inner := place{val.Index, val.Index + len(val.Raw), before, after}
		if each.leaf || !c.walk(each, val, inner) {
			c.take(item{text: val.Raw, parent: c.text[p.start:p.end]}, before, after)
		}
		return c.err == nil
	})
	return true
}

func (c *collector) take(it item, before, after string) {
	c.size += len(before) + len(it.text) + len(after)
	if c.size > c.limit {
		c.err = errGrows
		return
	}
	it.body = make([]byte, 0, len(before)+len(it.text)+len(after))
	it.body = append(append(append(it.body, before...), it.text...), after...)
	c.items = append(c.items, it)
}
