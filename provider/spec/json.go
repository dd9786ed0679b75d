package spec

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/hookonce/hookonce/internal/nesting"
)

// maxDepth is how deep a JSON document may be nested. The checker is recursive, and a signed body of
// nothing but brackets must not exhaust the stack.
const maxDepth = 1000

var (
	errEmptyBody = errors.New("the body is empty; expected JSON")
	errNotJSON   = errors.New("the body is not valid JSON")
	errNotForm   = errors.New("the body is neither JSON nor a form")
	errTooDeep   = errors.New("the body's JSON is nested more than 1000 levels deep")
)

// tree holds the JSON paths of a specification merged by common beginnings, so that one pass over
// the document finds all of them. Node 0 is the document itself.
type tree struct{ nodes []node }

type node struct {
	name     string
	index    int // of an element, when isIndex
	isIndex  bool
	guarded  bool // on the way to a field that is signed, where others are not
	children []int
}

// bind gives a value its node.
func (t *tree) bind(v *value) {
	if t.nodes == nil {
		t.nodes = make([]node, 1)
	}
	at := 0
	for _, name := range v.path {
		at = t.child(at, name)
	}
	v.node = at
}

func (t *tree) child(parent int, name string) int {
	for _, i := range t.nodes[parent].children {
		if t.nodes[i].name == name {
			return i
		}
	}
	n := node{name: name}
	if inner, ok := strings.CutPrefix(name, "["); ok {
		n.isIndex = true
		n.index, _ = strconv.Atoi(strings.TrimSuffix(inner, "]")) // parsePath has checked it
	}
	t.nodes = append(t.nodes, n)
	i := len(t.nodes) - 1
	t.nodes[parent].children = append(t.nodes[parent].children, i)
	return i
}

// guard marks the way to a value that is signed in a document of which nothing else is. Some parsers do
// not tell upper from lower case in the names of members, and would take one that anybody added for the
// one that is signed: it makes the value ambiguous.
func (t *tree) guard(v *value) {
	at := 0
	for _, name := range v.path {
		at = t.child(at, name)
		t.nodes[at].guarded = true
	}
}

// document holds what was found at each node. Its strings are views into the body: whoever keeps one
// must clone it. The zero document has nothing in it.
type document []field

type field struct {
	kind      gjson.Type
	found     bool
	ambiguous bool   // found more than once, with different values
	text      string // the decoded string, or the number as written
	raw       string // the JSON text
}

// blank reports whether there is nothing in a field: it is absent, null, or empty.
func (f *field) blank() bool {
	if !f.found || f.ambiguous {
		return !f.ambiguous
	}
	return f.raw == "null" || f.raw == `""` || strings.Trim(f.raw, "{}[] \t\r\n") == ""
}

// find looks up every path in the text of a document.
func (t *tree) find(text string) document {
	if len(t.nodes) == 0 {
		return nil
	}
	doc := make(document, len(t.nodes))
	t.record(0, gjson.Parse(text), doc)
	return doc
}

// walk records the members of an object, or the elements of an array, that the tree asks for.
func (t *tree) walk(at int, in gjson.Result, doc document) {
	switch {
	case in.IsObject():
		in.ForEach(func(key, val gjson.Result) bool {
			for _, i := range t.nodes[at].children {
				switch n := &t.nodes[i]; {
				case n.isIndex:
				case n.name == key.Str:
					t.record(i, val, doc)
				case n.guarded && strings.EqualFold(n.name, key.Str):
					t.blur(i, doc)
				}
			}
			return true
		})
	case in.IsArray():
		next := 0
		in.ForEach(func(_, val gjson.Result) bool {
			for _, i := range t.nodes[at].children {
				if n := &t.nodes[i]; n.isIndex && n.index == next {
					t.record(i, val, doc)
				}
			}
			next++
			return true
		})
	}
}

// record notes val at a node and below. A second value for the same node makes it ambiguous unless
// both are the same text; parsers disagree on which one counts.
func (t *tree) record(i int, val gjson.Result, doc document) {
	f := &doc[i]
	if f.found {
		if f.raw != val.Raw {
			t.blur(i, doc)
		}
		return
	}
	*f = field{kind: val.Type, found: true, raw: val.Raw, text: val.Str}
	if val.Type != gjson.String {
		f.text = val.Raw
	}
	if len(t.nodes[i].children) > 0 {
		t.walk(i, val, doc)
	}
}

// blur marks a node and everything below it as ambiguous.
func (t *tree) blur(i int, doc document) {
	doc[i].found, doc[i].ambiguous = true, true
	for _, c := range t.nodes[i].children {
		t.blur(c, doc)
	}
}

// text returns the string, number or boolean at a node; empty if it is absent, ambiguous, of another type, or
// not text: escapes and bytes that are no characters all become U+FFFD, so different ids could meet. They
// could have met at the sender already, so U+FFFD itself is not text either.
func (d document) text(node int) string {
	text, _ := d.exact(node)
	if strings.ContainsRune(text, utf8.RuneError) {
		return ""
	}
	return text
}

// exact returns the string, number or boolean at a node as the sender wrote it, empty if it is absent or
// null, and false if there is something else, or something of which parsers make different texts.
func (d document) exact(node int) (string, bool) {
	if node >= len(d) {
		return "", true
	}
	f := &d[node]
	switch {
	case f.ambiguous || f.kind == gjson.JSON || f.garbled():
		return "", false
	case f.kind == gjson.Null:
		return "", true
	}
	return f.text, true
}

// garbled reports whether a string may have been something else before it was decoded: its U+FFFD stands
// for bytes or halves of surrogates that are no characters.
func (f *field) garbled() bool {
	return strings.ContainsRune(f.text, utf8.RuneError) &&
		(!utf8.ValidString(f.raw) || strings.Contains(f.raw, `\ud`) || strings.Contains(f.raw, `\uD`))
}

// checkJSON reports whether body is JSON that gjson can be trusted with.
func checkJSON(body []byte) error {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return errEmptyBody
	case nesting.Deeper(body, maxDepth):
		return errTooDeep
	case !gjson.ValidBytes(body):
		return errNotJSON
	}
	return nil
}

// view returns b as a string without copying it, and bytesOf the reverse. Bodies may be 25 MiB;
// nothing in this package writes to a body or keeps a view of one.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// empty reports whether nothing asks for the document.
func (t *tree) empty() bool { return len(t.nodes) == 0 }
