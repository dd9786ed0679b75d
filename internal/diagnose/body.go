package diagnose

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// edit is what a body may have been before one thing happened to it: nil where it cannot have happened.
type edit struct {
	note
	undo func(body []byte) []byte
}

const (
	asItCame = "take the bytes as they came, before anything reads them as text"
	beforeIt = "keep the bytes of the body before a framework parses them: they cannot be had from what it made of them"
)

// bodies yields requests with what the body may have been, simple changes first.
func (s *search) bodies() iter.Seq[change] {
	return func(yield func(change) bool) {
		if len(s.req.Body) > maxChanged {
			return
		}
		more := func(body []byte, notes ...note) bool { return !s.news(body) || yield(change{s.with(body), notes}) }
		s.news(s.req.Body)
		for _, e := range edges {
			if was := e.undo(s.req.Body); was != nil && !more(was, e.note) {
				return
			}
		}
		for _, e := range wrappings {
			was := e.undo(s.req.Body)
			if was == nil || len(was) > maxChanged {
				continue
			}
			if !more(was, e.note) {
				return
			}
			for _, edge := range edges {
				if first := edge.undo(was); first != nil && !more(first, e.note, edge.note) {
					return
				}
			}
		}
		for was, n := range written(s.req.Body) {
			if !more(was, n) || !more(append(slices.Clip(was), '\n'), n) {
				return
			}
		}
		for c := range s.forms() {
			if s.news(append([]byte(c.req.Header.Get("Content-Type")+"\x00"), c.req.Body...)) && !yield(c) {
				return
			}
		}
		if !more([]byte{}, note{BodyEmpty, "the signature is that of an empty body: the sender, or something on the way, sent this one without one when it signed",
			"look for what adds a body, such as a proxy that turns GET into POST"}) {
			return
		}
	}
}

// news reports whether a body was not tried yet.
func (s *search) news(body []byte) bool {
	sum := sha256.Sum256(body)
	if s.tried[sum] {
		return false
	}
	s.tried[sum] = true
	return true
}

// with returns the request with another body.
func (s *search) with(body []byte) *hookonce.Request {
	req := *s.req
	req.Body = body
	return &req
}

// edges are changes at the ends of a body, and of its line endings.
var edges = []edit{
	{note{BodyLineBreak, "the body ends in a line break that the sender did not sign", "save it without: editors and echo add one, and printf '%s' and curl --data-binary do not"}, func(b []byte) []byte {
		return changed(b, bytes.TrimSuffix(bytes.TrimSuffix(b, []byte("\n")), []byte("\r")))
	}},
	{note{BodyLineBreak, "the body has line breaks or spaces at its ends that the sender did not sign", "save it without them"}, func(b []byte) []byte {
		return changed(b, bytes.TrimSpace(b))
	}},
	{note{BodyMark, "the body begins with a byte order mark, which an editor puts in front of it", "save it as UTF-8 without that mark (BOM)"}, func(b []byte) []byte {
		return changed(b, bytes.TrimPrefix(b, []byte("\ufeff")))
	}},
	{note{BodyLineEndings, "the body has the line endings CRLF, and the sender wrote LF", asItCame + ": git, FTP and editors change line endings"}, func(b []byte) []byte {
		return changed(b, bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")))
	}},
	{note{BodyLineEndings, "the body has the line endings LF, and the sender wrote CRLF", asItCame + ": git, FTP and editors change line endings"}, func(b []byte) []byte {
		return changed(b, bytes.ReplaceAll(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\n"), []byte("\r\n")))
	}},
	{note{BodyLineBreak, "the body lacks the line break at its end that the sender signed", "keep it: $(...) of a shell and many libraries cut it off"}, func(b []byte) []byte {
		return append(slices.Clip(b), '\n')
	}},
	{note{BodyLineBreak, "the body lacks the line break at its end that the sender signed", "keep it: $(...) of a shell and many libraries cut it off"}, func(b []byte) []byte {
		return append(slices.Clip(b), "\r\n"...)
	}},
	{note{BodyLineBreak, "the body ends in a line break that the sender did not sign, and has the line endings CRLF where it wrote LF", asItCame}, func(b []byte) []byte {
		return changed(b, bytes.TrimRight(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), "\n"))
	}},
}

// changed returns a body if it is another one than before, and nil otherwise.
func changed(before, body []byte) []byte {
	if len(body) == len(before) && bytes.Equal(before, body) {
		return nil
	}
	return body
}

// wrappings are what a body may be in.
var wrappings = []edit{
	{note{BodyWrapped, "the file holds the whole request, with its headers before the body", "give the body alone, which begins after the first empty line"}, behindHeaders},
	{note{BodyWrapped, "the file holds the body as a text in JSON, with quotes around it", "give what that text says"}, fromJSONString},
	{note{BodyWrapped, "the file holds the event of a cloud function, and the body is in its field body", "give what that field says, decoded from base64 if isBase64Encoded is true"}, fromEvent},
	{note{BodyWrapped, "the body has quotes around it", "give it without them"}, func(b []byte) []byte {
		b = bytes.TrimSpace(b)
		if len(b) < 2 || b[0] != b[len(b)-1] || b[0] != '\'' && b[0] != '"' {
			return nil
		}
		return b[1 : len(b)-1]
	}},
	{note{BodyEncoded, "the body is encoded in base64", "decode it"}, func(b []byte) []byte {
		b = bytes.Join(bytes.Fields(b), nil)
		was, err := base64.StdEncoding.DecodeString(string(b))
		if err != nil || len(b) < 4 {
			return nil
		}
		return was
	}},
	{note{BodyEncoded, "the body is compressed, and the sender signed it before that", "give it as it is without compression"}, unpacked},
	{note{BodyEncoded, "the body has the sizes of its chunks in it, which belong to the transfer", "give what is between them: Transfer-Encoding: chunked is a matter of the connection"}, unchunked},
	{note{BodyEncoded, "the body is encoded as in a URL", "decode it"}, func(b []byte) []byte {
		was, err := url.QueryUnescape(strings.TrimSuffix(string(b), "="))
		if err != nil || !bytes.Contains(b, []byte("%")) {
			return nil
		}
		return changed(b, []byte(was))
	}},
	{note{BodyParsed, "the body is JSON that a parser of forms took for the name of a field", beforeIt}, func(b []byte) []byte {
		if trimmed := bytes.TrimSuffix(b, []byte("=")); len(trimmed) < len(b) && json.Valid(trimmed) {
			return trimmed
		}
		return nil
	}},
	{note{BodyWrittenAnew, `the body has \n in it where the sender wrote line breaks`, asItCame}, func(b []byte) []byte {
		return changed(b, bytes.ReplaceAll(b, []byte(`\n`), []byte("\n")))
	}},
	{note{BodyWrittenAnew, `the body has line breaks in it where the sender wrote \n: echo of some shells changes that`, asItCame + "; printf '%s' changes nothing"}, func(b []byte) []byte {
		end := len(bytes.TrimRight(b, "\r\n"))
		return changed(b, append(bytes.ReplaceAll(b[:end:end], []byte("\n"), []byte(`\n`)), b[end:]...))
	}},
	{note{BodyWrittenAnew, `the body has \ in front of its quotes`, asItCame}, func(b []byte) []byte {
		return changed(b, bytes.ReplaceAll(b, []byte(`\"`), []byte(`"`)))
	}},
	{note{BodyCharset, "the body was read as Latin-1 and written as UTF-8", asItCame}, fromLatin1},
	{note{BodyCharset, "the body was read as UTF-8 and written as Latin-1", asItCame}, toUTF8},
}

func behindHeaders(b []byte) []byte {
	head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
	if !ok {
		head, body, ok = bytes.Cut(b, []byte("\n\n"))
	}
	line, _, _ := bytes.Cut(head, []byte("\n"))
	if !ok || !bytes.Contains(line, []byte(" HTTP/")) && !bytes.Contains(line, []byte(": ")) || bytes.HasPrefix(line, []byte("{")) {
		return nil
	}
	return body
}

func fromJSONString(b []byte) []byte {
	var text string
	if json.Unmarshal(b, &text) != nil {
		return nil
	}
	return []byte(text)
}

// fromEvent returns the body in an event of AWS Lambda, API Gateway and what does as they do.
func fromEvent(b []byte) []byte {
	var event struct {
		Body    *string `json:"body"`
		RawBody *string `json:"rawBody"`
		Encoded bool    `json:"isBase64Encoded"`
	}
	if len(b) == 0 || len(b) > maxAnew || json.Unmarshal(b, &event) != nil {
		return nil
	}
	switch {
	case event.RawBody != nil:
		return []byte(*event.RawBody)
	case event.Body == nil:
		return nil
	case !event.Encoded:
		return []byte(*event.Body)
	}
	was, err := base64.StdEncoding.DecodeString(*event.Body)
	if err != nil {
		return nil
	}
	return was
}

// unpacked returns what is compressed in a body, up to the longest that is changed.
func unpacked(b []byte) []byte {
	from := bytes.NewReader(b)
	var r io.Reader
	var err error
	switch {
	case bytes.HasPrefix(b, []byte{0x1f, 0x8b}):
		r, err = gzip.NewReader(from)
	case bytes.HasPrefix(b, []byte{0x78}):
		r, err = zlib.NewReader(from)
	case len(b) > 0 && !utf8.Valid(b):
		r = flate.NewReader(from)
	default:
		return nil
	}
	if err != nil {
		return nil
	}
	was, err := io.ReadAll(io.LimitReader(r, maxAnew+1))
	if err != nil || len(was) > maxAnew {
		return nil
	}
	return was
}

// unchunked returns what is in chunks.
func unchunked(b []byte) (was []byte) {
	for len(b) > 0 {
		line, rest, ok := bytes.Cut(b, []byte("\n"))
		size, err := strconv.ParseUint(strings.TrimSpace(string(line)), 16, 31)
		switch {
		case !ok || err != nil || int(size) > len(rest):
			return nil
		case size == 0:
			return was
		}
		was = append(was, rest[:size]...)
		b = bytes.TrimPrefix(bytes.TrimPrefix(rest[size:], []byte("\r")), []byte("\n"))
	}
	return was
}

// fromLatin1 returns the bytes that were taken for characters of Latin-1 and written as UTF-8.
func fromLatin1(b []byte) []byte {
	was := make([]byte, 0, len(b))
	for _, r := range string(b) {
		if r > 0xff {
			return nil
		}
		was = append(was, byte(r))
	}
	return changed(b, was)
}

// toUTF8 returns the text that was written as Latin-1.
func toUTF8(b []byte) []byte {
	if utf8.Valid(b) {
		return nil
	}
	was := make([]rune, len(b))
	for i, c := range b {
		was[i] = rune(c)
	}
	return []byte(string(was))
}

// forms yields requests with the form that a parser made something else of.
func (s *search) forms() iter.Seq[change] {
	return func(yield func(change) bool) {
		const form = "application/x-www-form-urlencoded"
		as := func(body []byte, contentType string, n note) bool {
			req := s.with(body)
			if contentType != "" {
				req.Header = s.req.Header.Clone()
				req.Header.Set("Content-Type", contentType)
			}
			return yield(change{req, []note{n}})
		}
		body := s.req.Body
		if !s.saysForm() && !as(body, form, note{ContentType, "the body is a form, and the header Content-Type does not say so", "add -H 'Content-Type: " + form + "'"}) {
			return
		}
		if trimmed := bytes.TrimSpace(body); len(trimmed) < len(body) && !as(trimmed, form, note{ContentType, "the body ends in a line break, and the header Content-Type does not say that it is a form",
			"save it without, and add -H 'Content-Type: " + form + "'"}) {
			return
		}
		parsed := note{BodyParsed, "the body is what a parser made of a form", beforeIt}
		for _, fields := range parsedForms(body) {
			if !as([]byte(fields), form, parsed) {
				return
			}
		}
		if json.Valid(body) {
			for _, escaped := range formEscapes(string(body)) {
				if !as([]byte("payload="+escaped), form, note{BodyParsed, "the body is the field payload of the form that the sender wrote", beforeIt}) {
					return
				}
			}
		}
		if !json.Valid(body) && bytes.Contains(body, []byte("+")) && !as(bytes.ReplaceAll(body, []byte("+"), []byte("%2B")), form,
			note{BodyParsed, "the body is a form in which + is not written as %2B, and so stands for a space", "take the bytes as they came, or give the fields to curl with --data-urlencode"}) {
			return
		}
		for _, fields := range decodedForms(string(body)) {
			if !as([]byte(fields), form, note{BodyParsed, "the body is a form whose fields were decoded", beforeIt}) {
				return
			}
		}
		if !json.Valid(body) && bytes.IndexByte(body, '=') > 0 {
			if again, err := url.ParseQuery(string(body)); err == nil {
				_ = as([]byte(again.Encode()), form, note{BodyParsed, "the fields of the form are in another order or written in another way than the sender's", beforeIt})
			}
		}
	}
}

// decodedForms returns the forms that a text may have been whose fields were decoded, so that what belongs to a value may look like
// the end of its field: with each + as it stands, or as a space where it does not begin a value.
func decodedForms(body string) []string {
	if !strings.Contains(body, "=") || len(body) > maxAnew || strings.HasPrefix(body, "{") {
		return nil
	}
	var literal, spaced []string
	for field := range strings.SplitSeq(body, "&") {
		name, text, ok := strings.Cut(field, "=")
		last := len(literal) - 1
		if !ok && last >= 0 {
			literal[last] += url.QueryEscape("&" + field)
			spaced[last] += url.QueryEscape("&" + strings.ReplaceAll(field, "+", " "))
			continue
		}
		begin := ""
		if rest, plus := strings.CutPrefix(text, "+"); plus {
			begin, text = "%2B", rest
		}
		literal = append(literal, url.QueryEscape(name)+"="+begin+url.QueryEscape(text))
		spaced = append(spaced, url.QueryEscape(name)+"="+begin+url.QueryEscape(strings.ReplaceAll(text, "+", " ")))
	}
	return []string{strings.Join(literal, "&"), strings.Join(spaced, "&")}
}

// formEscapes returns a text as it may be written in a form: encoders differ in *, ~ and the space.
func formEscapes(text string) []string {
	plain := url.QueryEscape(text)
	browser := strings.NewReplacer("%2A", "*", "~", "%7E").Replace(plain)
	return []string{plain, browser, strings.ReplaceAll(plain, "+", "%20"), strings.ReplaceAll(browser, "+", "%20")}
}

// saysForm reports whether the header says that the body is a form.
func (s *search) saysForm() bool {
	return strings.HasPrefix(strings.ToLower(s.req.Header.Get("Content-Type")), "application/x-www-form-urlencoded")
}

// parsedForms returns the forms that JSON of names and texts may have been: with the fields as they stand, and in the order of
// their names.
func parsedForms(body []byte) []string {
	if len(body) > maxAnew {
		return nil
	}
	var fields map[string]any
	if json.Unmarshal(body, &fields) != nil || len(fields) == 0 {
		return nil
	}
	form := url.Values{}
	for name, is := range fields {
		switch is := is.(type) {
		case string:
			form.Add(name, is)
		case []any:
			for _, one := range is {
				if text, ok := one.(string); ok {
					form.Add(name, text)
				}
			}
		default:
			return nil
		}
	}
	pairs := make([]string, 0, len(form))
	for _, name := range slices.SortedFunc(maps.Keys(form), func(a, b string) int {
		return bytes.Index(body, []byte(strconv.Quote(a))) - bytes.Index(body, []byte(strconv.Quote(b)))
	}) {
		for _, text := range form[name] {
			pairs = append(pairs, url.QueryEscape(name)+"="+url.QueryEscape(text))
		}
	}
	return []string{strings.Join(pairs, "&"), form.Encode(), strings.ReplaceAll(strings.Join(pairs, "&"), "+", "%20")}
}

// sorted finds that the names in a body stand in alphabetical order, as some encoders write them and few senders do.
func (c Capture) sorted() (Cause, bool) {
	if !inOrder(c.Request.Body) {
		return Cause{}, false
	}
	return Cause{Word: BodyWrittenAnew, Text: "the body may be JSON that was parsed and written anew, since all its names stand in alphabetical order; or else the secret is another one", Mend: beforeIt}, true
}

// leastInOrder is how many names must stand behind the one before them: by chance so many do in one of a hundred documents.
const leastInOrder = 4

// inOrder reports whether a document has that many names that could stand in another order, and none does.
func inOrder(body []byte) bool {
	type object struct {
		last string
		name bool // a name is next
		is   bool // no array
	}
	var open []object
	names := 0
	d := json.NewDecoder(bytes.NewReader(body[:min(len(body), maxAnew)]))
	for {
		token, err := d.Token()
		if err != nil {
			return err == io.EOF && names >= leastInOrder
		}
		if text, is := token.(string); is && len(open) > 0 && open[len(open)-1].name {
			o := &open[len(open)-1]
			if text < o.last {
				return false
			}
			if o.last != "" {
				names++
			}
			o.last, o.name = text, false
			continue
		}
		switch token {
		case json.Delim('{'):
			open = append(open, object{name: true, is: true})
			continue
		case json.Delim('['):
			open = append(open, object{})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
		}
		if len(open) > 0 && open[len(open)-1].is {
			open[len(open)-1].name = true
		}
	}
}

// damage says what is wrong with a body by its looks alone.
func (c Capture) damage() (Cause, bool) {
	body, header := c.Request.Body, c.Request.Header
	length, err := strconv.Atoi(header.Get("Content-Length"))
	switch {
	case len(body) == 0 && c.Request.Method == http.MethodPost:
		return Cause{Word: BodyEmpty, Text: "the body is empty: something read it before it was captured, or it was not captured", Mend: "capture the request before anything else reads its body"}, true
	case err == nil && length != len(body) && header.Get("Content-Encoding") == "":
		return Cause{Word: BodyCut, Text: "the body has " + strconv.Itoa(len(body)) + " bytes, and the header Content-Length says " + strconv.Itoa(length), Mend: "capture all of it, and nothing else"}, true
	case c.Spec.Example.Form == "" && c.Spec.Example.Body != "" && bytes.IndexAny(bytes.TrimSpace(body), "{[") == 0 && !json.Valid(body):
		return Cause{Word: BodyCut, Text: "the body begins as JSON and is none: a part of it is missing, or it was changed", Mend: "capture all of it, and nothing else"}, true
	case bytes.Contains(body, []byte("\ufffd")):
		return Cause{Word: BodyCharset, Text: "the body has characters in it that stand for others that could not be read (U+FFFD)", Mend: asItCame}, true
	case header.Get("Content-Encoding") != "" && (json.Valid(body) || utf8.Valid(body)):
		return Cause{Word: BodyEncoded, Text: "the header Content-Encoding says that the body is compressed, and it is not: something on the way unpacked it, and the sender may have signed it packed", Mend: "have what is in front pass it on as it came"}, true
	}
	return Cause{}, false
}
