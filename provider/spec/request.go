package spec

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// layout says how the requests of a sender are read, and which places in their documents something asks for.
type layout struct {
	formField string    // holds the document; see [Spec.Form]
	decoder   Decoder   // nil: bodies are JSON
	splitter  *splitter // nil: a request is one event
	tree      tree      // of the document
	itemTree  tree      // of an item
	outerTree tree      // of what holds the item's array
}

// newLayout returns a layout in which nothing is asked for yet.
func newLayout(s Spec) (*layout, error) {
	l := &layout{formField: s.Form}
	for _, v := range s.Verify {
		if d, ok := v.Scheme.(Decoder); ok {
			l.decoder = d
		}
	}
	if s.Split == nil {
		return l, nil
	}
	var err error
	l.splitter, err = newSplitter(*s.Split)
	return l, err
}

// treeOf returns the tree that holds the places of values of that kind, nil if they are not in a document.
func (l *layout) treeOf(k kind) *tree {
	switch k {
	case kindJSON:
		return &l.tree
	case kindItem:
		return &l.itemTree
	case kindParent:
		return &l.outerTree
	}
	return nil
}

// bind gives a value its place in the document that it is read from.
func (l *layout) bind(v *value) {
	if t := l.treeOf(v.kind); t != nil {
		t.bind(v)
	}
}

// guard keeps others from being taken for a value that is signed. See [tree.guard].
func (l *layout) guard(v *value) {
	if t := l.treeOf(v.kind); t != nil {
		t.guard(v)
	}
}

// fact compiles a value of one of the given kinds.
func (l *layout) fact(text Value, kinds ...kind) (value, error) {
	v, err := parseAs(text, kinds...)
	if err != nil {
		return v, err
	}
	if (v.kind == kindItem || v.kind == kindParent) && l.splitter == nil {
		return v, fmt.Errorf("%q: there are items only where split takes batches apart", text)
	}
	l.bind(&v)
	return v, nil
}

// signed is what the signature of a request says, as far as that is read.
type signed struct {
	id string    // the identifier
	ts string    // the time, as the sender wrote it
	at time.Time // the same
}

// reading is a request while it is looked at. Its parts are parsed when something asks for them.
type reading struct {
	*layout
	signed
	req        *hookonce.Request
	method     string
	registered bool   // the URL that the sender calls is known
	url        string // as registered, with the request's query
	// strayed is set if the request has another query than the registered URL, and not one that was
	// added to that.
	strayed bool

	doc           document
	room          document // that was made for doc
	docErr        error
	form, query   url.Values
	formErr       error
	docRead       bool
	formRead      bool
	queryRead     bool
	item, parent  document
	itemText      string // the item as it is written; empty outside of batches
	place         *place // the array that it is in
	signatureLine string
}

// document returns the JSON document. A form without the field that should hold it is an empty
// document.
func (r *reading) document() (document, error) {
	if r.docRead {
		return r.doc, r.docErr
	}
	r.docRead = true
	body := r.req.Body
	if d := r.decoder; d != nil {
		if body, r.docErr = d.Decode(r.req); r.docErr != nil {
			return nil, r.docErr
		}
	}
	r.look(body)
	if r.docErr != nil && r.formField != "" {
		if body, r.docErr = r.embedded(r.docErr); r.docErr == nil && body != nil {
			r.look(body)
		}
	}
	return r.doc, r.docErr
}

// look reads a body that is to be JSON.
func (r *reading) look(body []byte) {
	if need := len(r.tree.nodes); cap(r.room) < need {
		r.room = make(document, need)
	} else {
		r.room = r.room[:need]
		clear(r.room)
	}
	r.doc, r.docErr = r.tree.read(view(body), r.room)
}

// readings are some that nobody looks at any more.
var readings = sync.Pool{New: func() any { return new(reading) }}

// end forgets the request.
func (r *reading) end() {
	clear(r.room)
	*r = reading{room: r.room}
}

// embedded returns the document in the field of a form that holds it. A form without that field has
// none, which is no error. For what is no form, why is returned.
func (r *reading) embedded(why error) ([]byte, error) {
	field := r.fields()[r.formField]
	switch {
	case len(field) == 1:
		document := []byte(field[0])
		return document, checkJSON(document)
	case r.formErr != nil:
		return nil, errNotForm
	case r.form == nil:
		return nil, why
	}
	return nil, nil
}

// fields returns the form in the body, none if the body is not a form. What looks like a form is read as
// one whatever its type is said to be: the type is not signed, and must not decide whether there is a key.
func (r *reading) fields() url.Values {
	if !r.formRead {
		r.formRead = true
		if incoming.IsForm(r.req.Header) || looksLikeForm(r.req.Body) {
			form, err := url.ParseQuery(view(r.req.Body))
			if err == nil {
				r.form = form
			}
			r.formErr = err
		}
	}
	return r.form
}

// looksLikeForm reports whether the body has a name and a value, and does not begin like a JSON object or
// array.
func looksLikeForm(body []byte) bool {
	body = bytes.TrimLeft(body, " \t\r\n")
	return bytes.IndexByte(body, '=') > 0 && body[0] != '{' && body[0] != '['
}

// parameters returns the query of the request. That of the registered URL does not count: a token in it
// is what the sender has to send.
func (r *reading) parameters() url.Values {
	if !r.queryRead {
		r.queryRead = true
		if _, query, ok := strings.Cut(r.req.URL, "?"); ok {
			if values, err := url.ParseQuery(query); err == nil {
				r.query = values
			}
		}
	}
	return r.query
}

// get returns the text of a value, empty if it is absent or ambiguous. It may be a view of the body.
func (r *reading) get(v *value) string {
	if v.hashed {
		return r.hash(v)
	}
	switch v.kind {
	case kindHeader, kindForm, kindQuery:
		text, _ := incoming.Single(r.named(v))
		return text
	case kindJSON, kindItem, kindParent:
		return r.in(v).text(v.node)
	case kindConst:
		return v.text
	case kindID:
		return r.id
	case kindTS:
		return r.ts
	case kindURL:
		if v.plain != nil {
			return v.plain.Replace(r.url)
		}
		return r.url
	case kindMethod:
		return r.method
	case kindBody:
		return view(r.req.Body)
	case kindSortedForm:
		return sortedForm(r.fields())
	}
	return ""
}

// named returns what the request has under the name of a header, field or parameter.
func (r *reading) named(v *value) []string {
	switch v.kind {
	case kindHeader:
		return r.req.Header[v.text]
	case kindForm:
		return r.fields()[v.text]
	}
	return r.parameters()[v.text]
}

// covered returns the text of a value as a signature covers it, and false if there is something at the
// value that is no text, or not one text. Taken for absent, it could be added where the sender had
// nothing, and the signature would still fit.
func (r *reading) covered(v *value) (string, bool) {
	text, ok := r.exact(v)
	if v.lowered {
		text = strings.ToLower(text)
	}
	return text, ok
}

// exact is covered before anything is done to the text.
func (r *reading) exact(v *value) (string, bool) {
	switch v.kind {
	case kindJSON, kindItem, kindParent:
		return r.in(v).exact(v.node)
	case kindSortedForm:
		return r.get(v), len(r.req.Body) == 0 || incoming.IsForm(r.req.Header) && r.fields() != nil && !queryLike(r.form)
	}
	return r.get(v), !r.unusable(v)
}

// queryLike reports whether the name of a field looks like a piece of a query. As a sorted form, it could
// be one: of the URL that is signed before.
func queryLike(form url.Values) bool {
	for name := range form {
		if strings.ContainsAny(name, "?&=#") {
			return true
		}
	}
	return false
}

// in returns the document that the value's path leads through.
func (r *reading) in(v *value) document {
	switch v.kind {
	case kindItem:
		return r.item
	case kindParent:
		return r.parent
	}
	doc, _ := r.document()
	return doc
}

// hash returns the digest of a field or of a part of a document, empty if that is absent, ambiguous or
// has nothing in it: the hash of nothing is the same for all events.
func (r *reading) hash(v *value) string {
	text := ""
	if v.kind == kindForm {
		text, _ = incoming.Single(r.named(v))
	} else if doc := r.in(v); v.node < len(doc) && !doc[v.node].ambiguous && !doc[v.node].blank() {
		text = doc[v.node].raw
	}
	if text == "" {
		return ""
	}
	sum := sha256.Sum256(bytesOf(text))
	return hex.EncodeToString(sum[:digestSize])
}

// unusable reports whether there is something at a value that is no text, or not one text. To take it
// for absent could merge events that differ in it.
func (r *reading) unusable(v *value) bool {
	switch v.kind {
	case kindHeader, kindForm, kindQuery:
		_, n := incoming.Single(r.named(v))
		return n > 1
	case kindJSON, kindItem, kindParent:
		doc := r.in(v)
		return v.node < len(doc) && doc[v.node].found && !doc[v.node].blank() && r.get(v) == ""
	}
	return false
}

// first returns the first text that is present.
func (r *reading) first(values []value) string {
	for i := range values {
		if text := r.get(&values[i]); text != "" {
			return text
		}
	}
	return ""
}

// sortedForm joins names and values in the order of the names. Of repeated fields each value counts,
// in order.
func sortedForm(form url.Values) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(form)) {
		for _, text := range form[name] {
			b.WriteString(name)
			b.WriteString(text)
		}
	}
	return b.String()
}
