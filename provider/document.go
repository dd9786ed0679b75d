package provider

import (
	"bytes"
	"errors"
	"mime"
	"net/url"
	"strings"
	"unicode/utf8"
	"unsafe"

	"github.com/tidwall/gjson"

	"github.com/hookonce/hookonce"
)

// maxDepth is how deep a JSON document may be nested. The checker is recursive, and a signed body of
// nothing but brackets must not exhaust the stack.
const maxDepth = 1000

var (
	errEmptyBody = errors.New("the body is empty; expected JSON")
	errNotJSON   = errors.New("the body is not valid JSON")
	errTooDeep   = errors.New("the body's JSON is nested more than 1000 levels deep")
)

// tree holds the JSON paths of a specification merged by common beginnings, so that one pass over
// the document finds all of them. Node 0 is the document itself.
type tree struct{ nodes []node }

type node struct {
	name     string
	children []int
}

// bind gives a json value its node, and leaves other values alone.
func (t *tree) bind(v *value) {
	if v.kind != kindJSON {
		return
	}
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
	t.nodes = append(t.nodes, node{name: name})
	i := len(t.nodes) - 1
	t.nodes[parent].children = append(t.nodes[parent].children, i)
	return i
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

// read finds the document in the request. A form without the named field is an empty document.
func (t *tree) read(req *hookonce.Request, form string) (document, error) {
	if len(t.nodes) == 0 {
		return nil, nil
	}
	body, isForm := req.Body, false
	err := checkJSON(body)
	if err != nil && form != "" {
		if body, isForm = formField(req, form); isForm {
			if body == nil {
				return nil, nil
			}
			err = checkJSON(body)
		}
	}
	if err != nil {
		return nil, err
	}
	doc := make(document, len(t.nodes))
	t.walk(0, gjson.Parse(view(body)), doc)
	return doc, nil
}

// walk records the members of object that the tree asks for.
func (t *tree) walk(at int, object gjson.Result, doc document) {
	if !object.IsObject() {
		return
	}
	object.ForEach(func(key, val gjson.Result) bool {
		for _, i := range t.nodes[at].children {
			if t.nodes[i].name == key.Str {
				t.record(i, val, doc)
			}
		}
		return true
	})
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
	if val.Type == gjson.Number {
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

// text returns the string or number at a node; empty if it is absent, ambiguous, of another type, or
// not text: escapes and bytes that are no characters all become U+FFFD, so different ids could meet.
func (d document) text(node int) string {
	if node >= len(d) {
		return ""
	}
	f := &d[node]
	if f.ambiguous || f.kind != gjson.String && f.kind != gjson.Number {
		return ""
	}
	if strings.ContainsRune(f.text, utf8.RuneError) {
		return ""
	}
	return f.text
}

// checkJSON reports whether body is JSON that gjson can be trusted with.
func checkJSON(body []byte) error {
	switch {
	case len(bytes.TrimSpace(body)) == 0:
		return errEmptyBody
	case tooDeep(body):
		return errTooDeep
	case !gjson.ValidBytes(body):
		return errNotJSON
	}
	return nil
}

// tooDeep reports whether body is nested more than maxDepth levels. Counting the brackets settles
// nearly every body without looking at its structure.
func tooDeep(body []byte) bool {
	if bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) <= maxDepth {
		return false
	}
	depth, inString := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case inString && c == '\\':
			i++
		case c == '"':
			inString = !inString
		case inString:
		case c == '[' || c == '{':
			if depth++; depth > maxDepth {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}

// formField returns the named field of a form, and whether the request is a form at all. The field
// is nil unless it occurs exactly once.
func formField(req *hookonce.Request, name string) ([]byte, bool) {
	contentType, _ := headerText(req.Header, "Content-Type")
	if kind, _, err := mime.ParseMediaType(contentType); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, false
	}
	form, err := url.ParseQuery(view(req.Body))
	if err != nil {
		return nil, false
	}
	if len(form[name]) != 1 {
		return nil, true
	}
	return []byte(form[name][0]), true
}

// view returns b as a string without copying it, and bytesOf the reverse. Bodies may be 25 MiB;
// nothing in this package writes to a body or keeps a view of one.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }
