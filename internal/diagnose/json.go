package diagnose

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// layout is how an encoder of JSON sets its spaces.
type layout struct {
	is    string
	write func(compact []byte) []byte
}

var layouts = []layout{
	{"on one line without spaces", func(b []byte) []byte { return b }},
	{"with an indent of two spaces", indented("  ")},
	{"on one line with a space after each comma and colon", spaced},
	{"with an indent of four spaces", indented("    ")},
	{"with tabs", indented("\t")},
}

func indented(by string) func([]byte) []byte {
	return func(compact []byte) []byte {
		var out bytes.Buffer
		_ = json.Indent(&out, compact, "", by) // it is valid: see written
		return out.Bytes()
	}
}

// spaced writes JSON as Python does.
func spaced(compact []byte) []byte {
	out := make([]byte, 0, len(compact)+len(compact)/8)
	inside := false
	for i := 0; i < len(compact); i++ {
		c := compact[i]
		out = append(out, c)
		switch {
		case inside && c == '\\':
			i++
			out = append(out, compact[i])
		case c == '"':
			inside = !inside
		case !inside && (c == ',' || c == ':'):
			out = append(out, ' ')
		}
	}
	return out
}

// escaping is how an encoder of JSON writes the characters that it need not write as they are.
type escaping struct {
	is     string
	escape func(r rune) string // empty: as it is
}

var escapings = []escaping{
	{"", nil}, // as they stand
	{"without escapes", func(rune) string { return "" }},
	{`with \/ for each slash, and \u for characters beyond ASCII`, func(r rune) string {
		if r == '/' {
			return `\/`
		}
		return beyondASCII(r)
	}},
	{`with \u for characters beyond ASCII`, beyondASCII},
	{`with \/ for each slash`, func(r rune) string {
		if r == '/' {
			return `\/`
		}
		return ""
	}},
	{`with \u for <, > and &`, func(r rune) string {
		switch r {
		case '<', '>', '&', '\u2028', '\u2029':
			return fmt.Sprintf(`\u%04x`, r)
		}
		return ""
	}},
}

func beyondASCII(r rune) string {
	switch {
	case r < utf8.RuneSelf:
		return ""
	case r > 0xffff:
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

// written yields a JSON body as other encoders would have written it.
func written(body []byte) iter.Seq2[[]byte, note] {
	return func(yield func([]byte, note) bool) {
		var compact bytes.Buffer
		if len(body) == 0 || len(body) > maxAnew || json.Compact(&compact, bytes.TrimPrefix(body, []byte("\ufeff"))) != nil {
			return
		}
		for _, e := range escapings {
			text := compact.Bytes()
			if e.escape != nil {
				text = escaped(text, e.escape)
			}
			for _, l := range layouts {
				is := l.is
				if e.is != "" {
					is += " and " + e.is
				}
				if !yield(l.write(text), note{BodyWrittenAnew, "the body is JSON that was parsed and written anew: the sender wrote it " + is, beforeIt}) {
					return
				}
			}
		}
	}
}

// escaped writes the characters of the strings in compact JSON in another way. Quotes, backslashes and what is not printed keep
// an escape, the short one where there is one.
func escaped(compact []byte, escape func(rune) string) []byte {
	out := make([]byte, 0, len(compact)+len(compact)/4)
	for i := 0; i < len(compact); {
		if compact[i] != '"' {
			out = append(out, compact[i])
			i++
			continue
		}
		out = append(out, '"')
		for i++; compact[i] != '"'; {
			r, size := character(compact[i:])
			if r == utf8.RuneError {
				out = append(out, compact[i:i+size]...)
			} else {
				out = appendCharacter(out, r, escape)
			}
			i += size
		}
		out = append(out, '"')
		i++
	}
	return out
}

// character reads one character of a valid JSON string, and how long it is written. What is none is [utf8.RuneError].
func character(text []byte) (rune, int) {
	if text[0] != '\\' {
		return utf8.DecodeRune(text)
	}
	if text[1] != 'u' {
		short := map[byte]rune{'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
		if r, ok := short[text[1]]; ok {
			return r, 2
		}
		return rune(text[1]), 2
	}
	r := hexDigits(text[2:6])
	if !utf16.IsSurrogate(r) {
		return r, 6
	}
	if len(text) >= 12 && text[6] == '\\' && text[7] == 'u' {
		if pair := utf16.DecodeRune(r, hexDigits(text[8:12])); pair != utf8.RuneError {
			return pair, 12
		}
	}
	return utf8.RuneError, 6
}

func hexDigits(text []byte) rune {
	n, _ := strconv.ParseUint(string(text), 16, 16)
	return rune(n)
}

func appendCharacter(out []byte, r rune, escape func(rune) string) []byte {
	const short = "\b\f\n\r\t"
	const letters = "bfnrt"
	if i := bytes.IndexRune([]byte(short), r); i >= 0 {
		return append(out, '\\', letters[i])
	}
	switch text := escape(r); {
	case r == '"' || r == '\\':
		return append(out, '\\', byte(r))
	case r < ' ':
		return fmt.Appendf(out, `\u%04x`, r)
	case text != "":
		return append(out, text...)
	}
	return utf8.AppendRune(out, r)
}
