package spec

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
)

// Value says where a piece of text in a request is found. It is a tag and a path, not an expression:
//
//	header:X-GitHub-Delivery   the value of a header
//	json:$.data.object.id      a string, number or boolean in the JSON document: names joined by dots,
//	                           [0] for the first element of an array
//	item:$.pspReference        the same in one item of a batch
//	parent:$.realmId           the same in the array element (or the document) that holds the item's array
//	form:MessageSid            a field of a form
//	query:challenge            a parameter of the URL's query
//	hash:json:$.data           a digest of a part of the document or item as it is written; hash:item:$
//	                           is one of the whole item, hash:form:payload one of a field
//	lower:query:data.id        the same with letters in lower case, in Verify.Sign only: a header:, json:, item:, form: or
//	                           query: value
//	const:v0:                  the text after the first colon
//	part:t=                    the rest of the entry of the signature's text that begins with t=
//	entry:0                    the entry of the signature's text with that number
//	claim:iat                  a claim of the JSON Web Token
//	body, url, method          the raw body, the URL that the sender calls as registered, the HTTP method
//	sorted_form                every field of the form and its value, sorted by name, without separators; no
//	                           field counts as signed by itself
//	ts, id, secret             the signed time as the sender wrote it, the signed identifier, the secret
//	echo, token                in handshakes: what is echoed, and the token of the Settings
//
// A trailing "?" marks a value as optional. A header, member or field that occurs several times with
// different values counts as absent: there is no telling which one is meant.
type Value string

// kind is the tag of a value.
type kind string

const (
	kindHeader     kind = "header"
	kindJSON       kind = "json"
	kindItem       kind = "item"
	kindParent     kind = "parent"
	kindForm       kind = "form"
	kindQuery      kind = "query"
	kindConst      kind = "const"
	kindPart       kind = "part"
	kindEntry      kind = "entry"
	kindBody       kind = "body"
	kindURL        kind = "url"
	kindMethod     kind = "method"
	kindSortedForm kind = "sorted_form"
	kindTS         kind = "ts"
	kindID         kind = "id"
	kindSecret     kind = "secret"
	kindClaim      kind = "claim"
	kindToken      kind = "token"
	kindEcho       kind = "echo"
)

// value is a Value in parsed form.
type value struct {
	kind     kind
	text     string   // the header's canonical name, the constant, the prefix, or the field's name
	path     []string // the steps of a path; "[0]" is an index, "[*]" every element
	node     int      // the path's place in its document, set by bind
	entry    int
	hashed   bool
	lowered  bool
	optional bool
	plain    *strings.Replacer // undoes escapes in the URL; nil: it is taken as it is
	origin   string            // as written, without "?"
}

// Check returns what is wrong with the form of the value, nil if nothing is. Whether it can be used in a certain field,
// [New] says.
func (v Value) Check() error {
	_, err := parseValue(v)
	return err
}

// parseValue parses v. It never panics and accepts exactly the forms that [Value] documents.
func parseValue(v Value) (value, error) {
	text, hashed := strings.CutPrefix(string(v), "hash:")
	text, lowered := strings.CutPrefix(text, "lower:")
	text, optional := strings.CutSuffix(text, "?")
	tag, rest, tagged := strings.Cut(text, ":")
	out := value{kind: kind(tag), text: rest, hashed: hashed, lowered: lowered, optional: optional, origin: strings.TrimSuffix(string(v), "?")}
	var err error
	switch out.kind {
	case kindBody, kindURL, kindMethod, kindSortedForm, kindTS, kindID, kindSecret, kindToken, kindEcho:
		if tagged || optional {
			err = fmt.Errorf("%q: %s takes nothing after it", v, tag)
		}
	case kindConst, kindPart:
		// The text is taken as it is; its last character may be "?".
		out.text, out.optional, out.origin = strings.TrimPrefix(string(v), tag+":"), false, string(v)
		err = missing(v, tag, out.text)
	case kindEntry:
		if out.entry, err = strconv.Atoi(rest); err != nil || out.entry < 0 || out.entry > 99 {
			err = fmt.Errorf("%q: entry: takes a number from 0 to 99", v)
		}
	case kindForm, kindQuery, kindClaim:
		err = missing(v, tag, rest)
	case kindHeader:
		out.text = http.CanonicalHeaderKey(rest)
		if !header.ValidName(strings.TrimSuffix(rest, "*")) {
			err = fmt.Errorf("%q: not a header name", v)
		}
	case kindJSON, kindItem, kindParent:
		out.text = ""
		out.path, err = parsePath(rest, v)
	default:
		err = fmt.Errorf("%q: no such kind of value; use header:, json:, item:, parent:, form:, query:, hash:, lower:, const:, part:, entry:, "+
			"claim:, body, url, method, sorted_form, ts, id, secret, echo or token; a fixed text is written const: and the text", v)
	}
	if err == nil && lowered && (hashed || !slices.Contains([]kind{kindHeader, kindJSON, kindItem, kindForm, kindQuery}, out.kind)) {
		err = fmt.Errorf("%q: lower: is for header:, json:, item:, form: and query: values", v)
	}
	if err == nil && hashed && out.path == nil && out.kind != kindForm {
		err = fmt.Errorf("%q: hash: is for json:, item:, parent: and form: values", v)
	}
	if err == nil && !hashed && out.path != nil && len(out.path) == 0 {
		err = fmt.Errorf("%q: names the whole document; only hash: takes that", v)
	}
	return out, err
}

// inBody reports whether the value is a part of the body.
func (v *value) inBody() bool {
	switch v.kind {
	case kindJSON, kindItem, kindParent, kindForm, kindSortedForm:
		return true
	}
	return false
}

// cutOptional returns the value without the mark of an optional one, and whether it had it. A constant
// has none: there it is part of the text.
func cutOptional(text Value) (Value, bool) {
	if v, err := parseValue(text); err != nil || !v.optional {
		return text, false
	}
	return text[:len(text)-1], true
}

func missing(v Value, tag, text string) error {
	if text == "" {
		return fmt.Errorf("%q: the text after %s: is missing", v, tag)
	}
	return nil
}

// parsePath cuts a path into its steps. The path of the whole document has none.
func parsePath(text string, v Value) ([]string, error) {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok || rest != "" && rest[0] != '.' && rest[0] != '[' {
		return nil, fmt.Errorf("%q: a JSON path begins with $. as in json:$.data.id", v)
	}
	path := []string{}
	for rest != "" {
		var step string
		if rest[0] == '[' {
			end := strings.IndexByte(rest, ']')
			if end < 0 || !validIndex(rest[1:end]) {
				return nil, fmt.Errorf("%q: in brackets there is a number or *, as in $.items[0] and $.items[*]", v)
			}
			step, rest = rest[:end+1], rest[end+1:]
		} else {
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			step, rest = rest[1:1+end], rest[1+end:]
		}
		if step == "" || strings.ContainsAny(step, "]*") && step[0] != '[' {
			return nil, fmt.Errorf("%q: a JSON path is member names joined by dots, with [0] for elements of arrays", v)
		}
		path = append(path, step)
	}
	return path, nil
}

func validIndex(text string) bool {
	n, err := strconv.Atoi(text)
	return text == "*" || err == nil && n >= 0 && n <= 999 && strconv.Itoa(n) == text
}

// parseAs parses a value of one of the given kinds.
func parseAs(text Value, kinds ...kind) (value, error) {
	v, err := parseValue(text)
	switch {
	case err != nil:
		return v, err
	case !slices.Contains(kinds, v.kind):
		return v, fmt.Errorf("%q cannot be used here; use %s", text, oneOf(kinds))
	case v.optional:
		return v, fmt.Errorf("%q: only the last part of a key can be optional", text)
	case v.lowered:
		return v, fmt.Errorf("%q: lower: is for what is signed (sign) only", text)
	case slices.Contains(v.path, "[*]"):
		return v, fmt.Errorf("%q: [*] is for split.items only; use [0] for one element", text)
	}
	return v, nil
}

// oneOf lists kinds for people.
func oneOf(kinds []kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
		if k.tagged() {
			names[i] += ":"
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// tagged reports whether something follows the kind in a value.
func (k kind) tagged() bool {
	switch k {
	case kindBody, kindURL, kindMethod, kindSortedForm, kindTS, kindID, kindSecret, kindToken, kindEcho:
		return false
	}
	return true
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
