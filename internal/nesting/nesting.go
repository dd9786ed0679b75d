// Package nesting bounds how deep JSON is nested before a recursive parser looks at it: a body of nothing but brackets must
// not exhaust the stack.
package nesting

import "bytes"

// Deeper reports whether JSON is nested deeper than so many levels. Counting the brackets settles nearly every body without
// looking at its structure. Of a text that is no JSON the answer means nothing.
func Deeper(body []byte, levels int) bool {
	if bytes.Count(body, []byte{'['})+bytes.Count(body, []byte{'{'}) <= levels {
		return false
	}
	depth, text := 0, false
	for i := 0; i < len(body); i++ {
		switch c := body[i]; {
		case text && c == '\\':
			i++
		case c == '"':
			text = !text
		case text:
		case c == '[' || c == '{':
			if depth++; depth > levels {
				return true
			}
		case c == ']' || c == '}':
			depth--
		}
	}
	return false
}
