package spec

import (
	"errors"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/hookonce/hookonce/internal/jsonscan"
)

// maxDepth is how deep a JSON document may be nested. The scanner is recursive, and a signed body of
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
	found     bool
	ambiguous bool   // found more than once, with different values
	raw       string // the JSON text
}

// sort returns what a value begins with, which tells its sort: see [jsonscan.Scanner.Begins]. Absent ones have none.
func (f *field) sort() byte {
	if f.raw == "" {
		return 0
	}
	return f.raw[0]
}

// text returns the decoded string, or else the JSON text.
func (f *field) text() string {
	if f.sort() != '"' {
		return f.raw
	}
	return unquoted(f.raw[1 : len(f.raw)-1])
}

// unquoted returns the string that is written so between its quotes.
func unquoted(inner string) string {
	if strings.IndexByte(inner, '\\') < 0 {
		return inner
	}
	return gjson.Parse(`"` + inner + `"`).Str
}

// blank reports whether there is nothing in a field: it is absent, null, or empty.
func (f *field) blank() bool {
	if !f.found || f.ambiguous {
		return !f.ambiguous
	}
	return f.raw == "null" || f.raw == `""` || strings.Trim(f.raw, "{}[] \t\r\n") == ""
}

// read checks that a text is JSON, and looks up every path in it on the way. What it finds it puts into doc, which is empty and
// has room for every node.
func (t *tree) read(text string, doc document) (document, error) {
	s := jsonscan.New(text, maxDepth)
	if t.empty() {
		s.Skip()
		return nil, notJSON(s.End(), text)
	}
	begin := s.At()
	t.record(0, text, &s, doc)
	if err := s.End(); err != nil {
		return nil, notJSON(err, text)
	}
	if root := &doc[0]; root.sort() == '{' || root.sort() == '[' {
		root.raw = text[begin:] // with the white space behind it, which digests that are on record were made of
	}
	return doc, nil
}

// find looks up every path in the text of a document that was checked.
func (t *tree) find(text string) document {
	if t.empty() {
		return nil
	}
	doc, _ := t.read(text, make(document, len(t.nodes)))
	return doc
}

// walk records the members of an object, or the elements of an array, that the tree asks for.
func (t *tree) walk(at int, text string, s *jsonscan.Scanner, doc document) {
	for written := range s.Members {
		name, taken := unquoted(written), false
		for _, i := range t.nodes[at].children {
			switch n := &t.nodes[i]; {
			case n.isIndex:
			case n.name == name:
				taken = true
				t.record(i, text, s, doc)
			case n.guarded && strings.EqualFold(n.name, name):
				t.blur(i, doc)
			}
		}
		if !taken {
			s.Skip()
		}
	}
}

// elements records the elements of an array that the tree asks for.
func (t *tree) elements(at int, text string, s *jsonscan.Scanner, doc document) {
	for index := range s.Elements {
		taken := false
		for _, i := range t.nodes[at].children {
			if n := &t.nodes[i]; n.isIndex && n.index == index {
				taken = true
				t.record(i, text, s, doc)
			}
		}
		if !taken {
			s.Skip()
		}
	}
}

// record notes the value that the scanner is before at a node and below. A second value for the same node makes it
// ambiguous unless both are the same text; parsers disagree on which one counts.
func (t *tree) record(i int, text string, s *jsonscan.Scanner, doc document) {
	begin := s.At()
	switch f := &doc[i]; {
	case f.found:
		s.Skip()
		if f.raw != text[begin:s.At()] {
			t.blur(i, doc)
		}
		return
	case len(t.nodes[i].children) == 0:
		s.Skip()
	case s.Begins() == '[':
		t.elements(i, text, s, doc)
	default:
		t.walk(i, text, s, doc)
	}
	doc[i] = field{found: true, raw: text[begin:s.At()]}
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
	if replaced(text) {
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
	if f.ambiguous {
		return "", false
	}
	switch f.sort() {
	case '{', '[':
		return "", false
	case 0, 'n': // null
		return "", true
	}
	text := f.text()
	if replaced(text) && f.garbled() {
		return "", false
	}
	return text, true
}

// replaced reports whether U+FFFD is in a text, or stands for bytes in it that are no characters.
func replaced(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return strings.ContainsRune(text[i:], utf8.RuneError)
		}
	}
	return false
}

// garbled reports whether the U+FFFD in a string may have been something else before it was decoded: bytes or halves of
// surrogates that are no characters.
func (f *field) garbled() bool {
	return !utf8.ValidString(f.raw) || strings.Contains(f.raw, `\ud`) || strings.Contains(f.raw, `\uD`)
}

// checkJSON reports whether body is JSON.
func checkJSON(body []byte) error {
	text := view(body)
	return notJSON(jsonscan.Check(text, maxDepth), text)
}

// notJSON says what the scanner found wrong with a text.
func notJSON(err error, text string) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, jsonscan.ErrDeep):
		return errTooDeep
	case strings.TrimSpace(text) == "":
		return errEmptyBody
	}
	return errNotJSON
}

// view returns b as a string without copying it, and bytesOf the reverse. Bodies may be 25 MiB;
// nothing in this package writes to a body or keeps a view of one.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// empty reports whether nothing asks for the document.
func (t *tree) empty() bool { return len(t.nodes) == 0 }
