package httpsig

import (
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
)

// Structured fields (RFC 9651), as far as signatures and digests have them: dictionaries of items and inner lists. What
// a dictionary may say twice, of which the last would count, is refused: two readers would take it for two things.

// kind is the type of an item.
type kind byte

const (
	boolean kind = iota
	integer
	text
	token
	byteSequence
)

// item is a bare item with its parameters.
type item struct {
	kind   kind
	text   string // of a text or a token
	number int64  // of an integer; 1 for true
	bytes  []byte
	params []param
}

// param is a parameter.
type param struct {
	name  string
	value item
}

// member is a member of a dictionary: an item, or a list of items with parameters.
type member struct {
	item
	name  string
	list  bool
	items []item
}

// String writes the item and its parameters in their one form.
func (it item) String() string {
	var s string
	switch it.kind {
	case boolean:
		s = "?" + strconv.FormatInt(it.number, 10)
	case integer:
		s = strconv.FormatInt(it.number, 10)
	case text:
		s = `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(it.text) + `"`
	case token:
		s = it.text
	case byteSequence:
		s = ":" + base64.StdEncoding.EncodeToString(it.bytes) + ":"
	}
	return s + it.parameters()
}

func (it item) parameters() string {
	var b strings.Builder
	for _, p := range it.params {
		b.WriteString(";" + p.name)
		if p.value.kind != boolean || p.value.number == 0 {
			b.WriteString("=" + p.value.String())
		}
	}
	return b.String()
}

// String writes the value of the member in its one form.
func (m member) String() string {
	if !m.list {
		return m.item.String()
	}
	inner := make([]string, len(m.items))
	for i := range m.items {
		inner[i] = m.items[i].String()
	}
	return "(" + strings.Join(inner, " ") + ")" + m.parameters()
}

var (
	errForm = errors.New("cannot be read: it is no dictionary of RFC 9651")
	errSize = errors.New("is too long, or has too many parts")
	errSame = errors.New("says the same name twice")
)

// scanner reads a text from its beginning.
type scanner struct{ rest string }

// parseDictionary reads the lines of a header.
func parseDictionary(lines []string) ([]member, error) {
	s := scanner{strings.Trim(strings.Join(lines, ", "), " ")}
	if len(s.rest) > maxField {
		return nil, errSize
	}
	var members []member
	for s.rest != "" {
		m, err := s.member()
		if err != nil {
			return nil, err
		}
		for _, other := range members {
			if other.name == m.name {
				return nil, errSame
			}
		}
		if members = append(members, m); len(members) > maxSignatures {
			return nil, errSize
		}
		s.rest = strings.TrimLeft(s.rest, " \t")
		if s.rest == "" {
			break
		}
		if !s.take(',') {
			return nil, errForm
		}
		if s.rest = strings.TrimLeft(s.rest, " \t"); s.rest == "" {
			return nil, errForm
		}
	}
	return members, nil
}

func (s *scanner) member() (m member, err error) {
	if m.name, err = s.key(); err != nil {
		return m, err
	}
	switch {
	case !s.take('='):
		m.kind, m.number = boolean, 1
	case s.take('('):
		m.list = true
		if m.items, err = s.list(); err != nil {
			return m, err
		}
	default:
		if m.item, err = s.bare(); err != nil {
			return m, err
		}
	}
	m.params, err = s.parameters()
	return m, err
}

// list reads the items of a list whose parenthesis has been read.
func (s *scanner) list() (items []item, err error) {
	for {
		spaced := strings.HasPrefix(s.rest, " ")
		s.rest = strings.TrimLeft(s.rest, " ")
		if s.take(')') {
			return items, nil
		}
		if len(items) > 0 && !spaced {
			return nil, errForm
		}
		it, err := s.bare()
		if err != nil {
			return nil, err
		}
		if it.params, err = s.parameters(); err != nil {
			return nil, err
		}
		if items = append(items, it); len(items) > maxComponents {
			return nil, errSize
		}
	}
}

func (s *scanner) parameters() (params []param, err error) {
	for s.take(';') {
		s.rest = strings.TrimLeft(s.rest, " ")
		p := param{value: item{kind: boolean, number: 1}}
		if p.name, err = s.key(); err != nil {
			return nil, err
		}
		if s.take('=') {
			if p.value, err = s.bare(); err != nil {
				return nil, err
			}
		}
		for _, other := range params {
			if other.name == p.name {
				return nil, errSame
			}
		}
		if params = append(params, p); len(params) > maxComponents {
			return nil, errSize
		}
	}
	return params, nil
}

// take reads that character, if it is next.
func (s *scanner) take(c byte) bool {
	if s.rest == "" || s.rest[0] != c {
		return false
	}
	s.rest = s.rest[1:]
	return true
}

// span reads the longest beginning of such characters.
func (s *scanner) span(of func(c byte) bool) string {
	n := 0
	for n < len(s.rest) && of(s.rest[n]) {
		n++
	}
	begin := s.rest[:n]
	s.rest = s.rest[n:]
	return begin
}

func lower(c byte) bool { return 'a' <= c && c <= 'z' }
func digit(c byte) bool { return '0' <= c && c <= '9' }
func alpha(c byte) bool { return lower(c) || 'A' <= c && c <= 'Z' }

func (s *scanner) key() (string, error) {
	if s.rest == "" || !lower(s.rest[0]) && s.rest[0] != '*' {
		return "", errForm
	}
	return s.span(func(c byte) bool { return lower(c) || digit(c) || strings.IndexByte("_-.*", c) >= 0 }), nil
}

// bare reads an item without its parameters.
func (s *scanner) bare() (item, error) {
	switch {
	case s.take('"'):
		return s.quoted()
	case s.take(':'):
		encoded, rest, ok := strings.Cut(s.rest, ":")
		sum, err := base64.StdEncoding.Strict().DecodeString(encoded)
		if !ok || err != nil || strings.ContainsAny(encoded, "\r\n") {
			return item{}, errForm
		}
		s.rest = rest
		return item{kind: byteSequence, bytes: sum}, nil
	case s.take('?'):
		if s.take('1') {
			return item{kind: boolean, number: 1}, nil
		}
		if s.take('0') {
			return item{kind: boolean}, nil
		}
	case s.rest != "" && (digit(s.rest[0]) || s.rest[0] == '-'):
		return s.integer()
	case s.rest != "" && (alpha(s.rest[0]) || s.rest[0] == '*'):
		name := s.span(func(c byte) bool { return alpha(c) || digit(c) || strings.IndexByte("!#$%&'*+-.^_`|~:/", c) >= 0 })
		return item{kind: token, text: name}, nil
	}
	return item{}, errForm
}

func (s *scanner) integer() (item, error) {
	negative := s.take('-')
	digits := s.span(digit)
	if digits == "" || len(digits) > 15 || strings.HasPrefix(s.rest, ".") {
		return item{}, errForm
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if negative {
		n = -n
	}
	return item{kind: integer, number: n}, err
}

// quoted reads a text whose first quote has been read.
func (s *scanner) quoted() (item, error) {
	var b strings.Builder
	for s.rest != "" {
		c := s.rest[0]
		s.rest = s.rest[1:]
		switch {
		case c == '"':
			return item{kind: text, text: b.String()}, nil
		case c == '\\':
			if s.rest == "" || s.rest[0] != '"' && s.rest[0] != '\\' {
				return item{}, errForm
			}
			c, s.rest = s.rest[0], s.rest[1:]
		case c < ' ' || c > '~':
			return item{}, errForm
		}
		b.WriteByte(c)
	}
	return item{}, errForm
}

// Printable reports whether a text has printable ASCII alone, and so can stand in quotes.
func Printable(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c > '~' })
}
