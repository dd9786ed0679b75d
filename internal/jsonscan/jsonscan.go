// Package jsonscan reads JSON that strangers wrote, every byte of it once: it checks the syntax (RFC 8259), bounds how deep
// values are nested, and leads whoever asks through the members and elements on the way. Nothing is decoded: texts are
// handed out as they are written, and bytes in them that are no UTF-8 are no error.
package jsonscan

import (
	"errors"
	"math/bits"
)

var (
	// ErrSyntax says that a text is not JSON.
	ErrSyntax = errors.New("not JSON")
	// ErrDeep says that a text is nested deeper than it may be. What follows the bracket that was too many was not read.
	ErrDeep = errors.New("nested too deep")
)

// Check returns nil if a text is one JSON value in which at most so many arrays and objects are inside of one another, and
// else [ErrSyntax] or [ErrDeep], whichever is met first.
func Check(text string, levels int) error {
	s := New(text, levels)
	s.Skip()
	return s.End()
}

// Scanner goes through a JSON text from left to right. It is before a value, which is to be consumed by [Scanner.Skip],
// [Scanner.Members] or [Scanner.Elements], until an error ends it: then all of them do nothing.
type Scanner struct {
	text   string
	at     int // before a value, or behind the last one
	levels int // how many more may be opened
	err    error
}

// New returns a scanner before the outermost value of a text. Arrays and objects may be nested so many levels deep.
func New(text string, levels int) Scanner {
	return Scanner{text: text, at: space(text, 0), levels: levels}
}

// At returns where in the text the scanner is.
func (s *Scanner) At() int { return s.at }

// Begins returns the first byte of the value that the scanner is before, 0 at the end of the text. Of valid JSON it tells the
// sort: { [ " and the first letters of true, false and null; else it is a number.
func (s *Scanner) Begins() byte { return peek(s.text, s.at) }

// End returns what is wrong with the text, nil if nothing is: it is said after the outermost value was consumed, behind
// which there may be nothing but white space.
func (s *Scanner) End() error {
	if s.err == nil && space(s.text, s.at) < len(s.text) {
		s.err = ErrSyntax
	}
	return s.err
}

// Skip consumes a value.
func (s *Scanner) Skip() {
	if s.err == nil {
		s.moveTo(value(s.text, s.at, s.levels))
	}
}

// moveTo goes on where a part of the grammar has ended.
func (s *Scanner) moveTo(end int) {
	switch end {
	case failed:
		s.err = ErrSyntax
	case tooDeep:
		s.err = ErrDeep
	default:
		s.at = end
	}
}

// Members consumes an object. It yields the name of each member, as it is written between the quotes, when the scanner is
// before its value, which the caller has to consume; to leave the loop leaves the rest unread, and is for those who have
// seen enough. Of another value it is [Scanner.Skip].
func (s *Scanner) Members(yield func(name string) bool) {
	if s.Begins() != '{' || s.levels <= 0 {
		s.Skip()
		return
	}
	for more := s.open('}'); more; more = s.another('}') {
		begin := s.at + 1
		end, at := name(s.text, s.at)
		if s.moveTo(at); s.err != nil || !yield(s.text[begin:end]) {
			return
		}
	}
}

// Elements consumes an array. It yields the number of each element, from 0, when the scanner is before it; else it is like
// [Scanner.Members].
func (s *Scanner) Elements(yield func(index int) bool) {
	if s.Begins() != '[' || s.levels <= 0 {
		s.Skip()
		return
	}
	i := 0
	for more := s.open(']'); more; more = s.another(']') {
		if !yield(i) {
			return
		}
		i++
	}
}

// open goes one level down, if there is anything in the object or array.
func (s *Scanner) open(closing byte) bool {
	if s.err != nil {
		return false
	}
	at, more := first(s.text, s.at, closing)
	if s.moveTo(at); more {
		s.levels--
	}
	return more
}

// another consumes what is behind a member or element, and reports whether one more follows. The level ends with the last.
func (s *Scanner) another(closing byte) bool {
	if s.err != nil {
		return false
	}
	at, more := next(s.text, s.at, closing)
	if s.moveTo(at); !more {
		s.levels++
	}
	return more
}

// What the parts of the grammar return in place of where they end.
const (
	failed  = -1
	tooDeep = -2
)

// value returns where the value ends that begins at i.
func value(s string, i, levels int) int {
	switch c := peek(s, i); c {
	case '{':
		return object(s, i, levels)
	case '[':
		return array(s, i, levels)
	case '"':
		return text(s, i+1)
	case 't':
		return word(s, i, "true")
	case 'f':
		return word(s, i, "false")
	case 'n':
		return word(s, i, "null")
	default:
		return number(s, i)
	}
}

// object returns where the object ends that begins at i.
func object(s string, i, levels int) int {
	if levels <= 0 {
		return tooDeep
	}
	i, more := first(s, i, '}')
	for more {
		if _, i = name(s, i); i < 0 {
			return i
		}
		if i = value(s, i, levels-1); i < 0 {
			return i
		}
		i, more = next(s, i, '}')
	}
	return i
}

// array returns where the array ends that begins at i.
func array(s string, i, levels int) int {
	if levels <= 0 {
		return tooDeep
	}
	i, more := first(s, i, ']')
	for more {
		if i = value(s, i, levels-1); i < 0 {
			return i
		}
		i, more = next(s, i, ']')
	}
	return i
}

// first returns where the first member or element begins of what begins at i, or where that ends if there is none.
func first(s string, i int, closing byte) (at int, more bool) {
	if i = space(s, i+1); peek(s, i) == closing {
		return i + 1, false
	}
	return i, true
}

// name returns where the name that begins at i ends, and where its value begins.
func name(s string, i int) (end, at int) {
	if peek(s, i) != '"' {
		return 0, failed
	}
	end = text(s, i+1)
	if end == failed {
		return 0, failed
	}
	if i = space(s, end); peek(s, i) != ':' {
		return 0, failed
	}
	return end - 1, space(s, i+1)
}

// next returns where the member or element begins that is behind the one that ends at i, or where what they are in ends.
func next(s string, i int, closing byte) (at int, more bool) {
	i = space(s, i)
	switch peek(s, i) {
	case ',':
		return space(s, i+1), true
	case closing:
		return i + 1, false
	}
	return failed, false
}

// text returns where the string ends whose first character is at i. What it has to look at are quotes, backslashes and
// control characters, which it finds eight bytes at a time: for a byte that is one of those the uppermost bit in found is
// set. Bits above the lowest that is set may be wrong.
func text(s string, i int) int {
	const each, top = 0x0101010101010101, 0x8080808080808080
	for {
		for ; i+8 <= len(s); i += 8 {
			b := s[i : i+8]
			x := uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
				uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
			quote, backslash := x^each*'"', x^each*'\\'
			found := ((x - each*' ') &^ x) | ((quote - each) &^ quote) | ((backslash - each) &^ backslash)
			if found &= top; found != 0 {
				i += bits.TrailingZeros64(found) / 8
				break
			}
		}
		for i < len(s) && s[i] != '"' && s[i] != '\\' && s[i] >= ' ' {
			i++
		}
		switch peek(s, i) {
		case '"':
			return i + 1
		case '\\':
			if i = escape(s, i+1); i < 0 {
				return i
			}
		default: // a control character, or the end of the text
			return failed
		}
	}
}

// escape returns where an escape ends, of which the character behind the backslash is at i.
func escape(s string, i int) int {
	switch peek(s, i) {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		for range 4 {
			i++
			if c := peek(s, i) | 0x20; !digit(peek(s, i)) && (c < 'a' || c > 'f') {
				return failed
			}
		}
		return i + 1
	}
	return failed
}

// number returns where the number ends that begins at i.
func number(s string, i int) int {
	if peek(s, i) == '-' {
		i++
	}
	if peek(s, i) == '0' { // no digit may follow it
		i++
	} else if i = digits(s, i); i < 0 {
		return i
	}
	if peek(s, i) == '.' {
		if i = digits(s, i+1); i < 0 {
			return i
		}
	}
	if peek(s, i)|0x20 != 'e' {
		return i
	}
	i++
	if c := peek(s, i); c == '+' || c == '-' {
		i++
	}
	return digits(s, i)
}

// digits returns where the digits end that begin at i, of which there must be one.
func digits(s string, i int) int {
	if !digit(peek(s, i)) {
		return failed
	}
	for digit(peek(s, i)) {
		i++
	}
	return i
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func word(s string, i int, want string) int {
	if len(s)-i >= len(want) && s[i:i+len(want)] == want {
		return i + len(want)
	}
	return failed
}

// space returns where the first byte is, from i on, that is no white space.
func space(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\r' || s[i] == '\t') {
		i++
	}
	return i
}

// peek returns the byte at i, and 0, which may be nowhere outside of a string, at the end.
func peek(s string, i int) byte {
	if i < len(s) {
		return s[i]
	}
	return 0
}
