package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/url"
	"regexp"
	"strings"
	"unicode/utf8"
)

// maxMasked is how large a body may be of which a mask is made, in bytes.
const maxMasked = 4 << 20

// maxIndent is how deep lines are indented: with more, a body of brackets would become many times its size.
const maxIndent = 16

// name matches names of members and fields that programs give. Other names may be data, such as addresses, and are masked.
var name = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.\[\]-]{0,63}$`)

// masks returns as many stars as a text has characters.
func masks(text string) string { return strings.Repeat("*", utf8.RuneCountInString(text)) }

// shownName returns the name of a member or a field.
func shownName(text string) string {
	if name.MatchString(text) {
		return text
	}
	return masks(text)
}

// mask returns what of a body is shown masked. JSON is JSON whatever its sender calls it: curl calls everything a form. So what
// begins like JSON, and is broken or too large, is no form either, whose names could be what the text of a member says.
func mask(body []byte, kind string) (text string, cut bool) {
	text, cut = maskJSON(body)
	media, _, _ := mime.ParseMediaType(kind)
	if text == "" && media == "application/x-www-form-urlencoded" && !bytes.ContainsAny(firstByte(body), `{["`) {
		return maskForm(string(body))
	}
	return text, cut
}

// firstByte returns the first byte of a body that is no white space, if there is one.
func firstByte(body []byte) []byte {
	body = bytes.TrimLeft(body, " \t\r\n\ufeff")
	return body[:min(1, len(body))]
}

// maskJSON returns a JSON document with its structure, names, types and lengths, and nothing of what it says: characters are
// stars, digits are nines, and each truth is true. It returns "" for what is no JSON document, or too large.
func maskJSON(body []byte) (text string, cut bool) {
	if len(body) > maxMasked || !json.Valid(body) {
		return "", false
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	m := masker{}
	for m.out.Len() <= MaxShown {
		t, err := d.Token()
		if errors.Is(err, io.EOF) {
			return m.out.String(), false
		}
		if err != nil {
			return "", false
		}
		m.write(t)
	}
	return strings.ToValidUTF8(m.out.String()[:MaxShown], ""), true
}

// masker writes tokens, each element in a line of its own.
type masker struct {
	out   strings.Builder
	open  []json.Delim // what is open
	count int          // tokens in the innermost, names included
	outer []int        // those of what is around it
}

func (m *masker) write(t json.Token) {
	if end, ok := t.(json.Delim); ok && (end == '}' || end == ']') {
		empty := m.count == 0
		m.open, m.count, m.outer = m.open[:len(m.open)-1], m.outer[len(m.outer)-1], m.outer[:len(m.outer)-1]
		if !empty {
			m.line()
		}
		m.out.WriteRune(rune(end))
		return
	}
	inside := len(m.open) > 0
	member := inside && m.open[len(m.open)-1] == '{'
	switch {
	case member && m.count%2 == 1:
		m.out.WriteString(": ")
	case inside:
		if m.count > 0 {
			m.out.WriteByte(',')
		}
		m.line()
	}
	m.count++
	switch t := t.(type) {
	case json.Delim:
		m.out.WriteRune(rune(t))
		m.open, m.outer, m.count = append(m.open, t), append(m.outer, m.count), 0
	case string:
		if member && m.count%2 == 1 {
			t = shownName(t)
		} else {
			t = masks(t)
		}
		m.out.WriteString(`"` + t + `"`)
	case json.Number:
		m.out.WriteString(strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return '9'
			}
			return r
		}, string(t)))
	case bool:
		m.out.WriteString("true")
	default:
		m.out.WriteString("null")
	}
}

func (m *masker) line() {
	m.out.WriteString("\n" + strings.Repeat("  ", min(len(m.open), maxIndent)))
}

// maskForm does for a form what maskJSON does for JSON. What has no name in front of it is all value.
func maskForm(body string) (text string, cut bool) {
	if len(body) > maxMasked {
		return "", false
	}
	var b strings.Builder
	for field := range strings.SplitSeq(body, "&") {
		key, value, named := strings.Cut(field, "=")
		key, errKey := url.QueryUnescape(key)
		value, errValue := url.QueryUnescape(value)
		if errKey != nil || errValue != nil {
			return "", false
		}
		if !named {
			b.WriteString(masks(key) + "\n")
			continue
		}
		b.WriteString(shownName(key) + "=" + masks(value) + "\n")
	}
	return cutText(b.String())
}
