package provider

import (
	"fmt"
	"net/http"
	"strings"
)

// Value says where a piece of text in a request is found. It is a tag and a path, not an expression:
//
//	header:X-GitHub-Delivery   the value of a header
//	json:$.data.object.id      a string or number in the JSON document: member names joined by dots
//	const:v0:                  the text after the first colon
//	part:t=                    the rest of the entry of the signature's header that begins with t=
//	body                       the raw body
//	url                        the URL that the sender calls, as configured
//	ts                         the signed time, as the sender wrote it
//	id                         the signed identifier
//
// A trailing "?" marks a header or json value as optional. A header or member that occurs several
// times with different values counts as absent: there is no telling which one is meant.
type Value string

// kind is the tag of a value.
type kind string

const (
	kindHeader kind = "header"
	kindJSON   kind = "json"
	kindConst  kind = "const"
	kindPart   kind = "part"
	kindBody   kind = "body"
	kindURL    kind = "url"
	kindTS     kind = "ts"
	kindID     kind = "id"
)

// value is a Value in parsed form.
type value struct {
	kind     kind
	text     string   // the header's canonical name, the constant, or the part's prefix
	path     []string // the member names of a json value
	node     int      // the json value's place in the document, set by tree.bind
	optional bool
	origin   string // as written, without "?"
}

// parseValue parses v. It never panics and accepts exactly the forms that [Value] documents.
func parseValue(v Value) (value, error) {
	tag, rest, tagged := strings.Cut(string(v), ":")
	switch k := kind(tag); k {
	case kindBody, kindURL, kindTS, kindID:
		if tagged {
			return value{}, fmt.Errorf("%q: %s takes nothing after it", v, k)
		}
		return value{kind: k, origin: string(v)}, nil
	case kindConst, kindPart:
		if rest == "" {
			return value{}, fmt.Errorf("%q: the text after %s: is missing", v, k)
		}
		return value{kind: k, text: rest, origin: string(v)}, nil
	case kindHeader, kindJSON:
		return parseLocated(k, rest, v)
	}
	return value{}, fmt.Errorf("%q: no such kind of value; use header:, json:, const:, part:, body, url, ts or id", v)
}

// parseLocated parses what follows header: or json:.
func parseLocated(k kind, rest string, v Value) (value, error) {
	rest, optional := strings.CutSuffix(rest, "?")
	out := value{kind: k, optional: optional, origin: string(k) + ":" + rest}
	if k == kindHeader {
		if !validHeaderName(rest) {
			return value{}, fmt.Errorf("%q: not a header name", v)
		}
		out.text = http.CanonicalHeaderKey(rest)
		return out, nil
	}
	path, ok := strings.CutPrefix(rest, "$.")
	if !ok {
		return value{}, fmt.Errorf("%q: a JSON path begins with $. as in json:$.data.id", v)
	}
	out.path = strings.Split(path, ".")
	for _, name := range out.path {
		if name == "" || strings.ContainsAny(name, "[]*") {
			return value{}, fmt.Errorf("%q: a JSON path is member names joined by dots; arrays and wildcards are not supported", v)
		}
	}
	return out, nil
}

// validHeaderName reports whether name is a token in the sense of RFC 9110.
func validHeaderName(name string) bool {
	for _, c := range []byte(name) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && strings.IndexByte("!#$%&'*+-.^_`|~", c) < 0 {
			return false
		}
	}
	return name != ""
}
