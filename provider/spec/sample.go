package spec

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Sample says which event a sample request is about.
type Sample struct {
	// ID is the event's identifier. Empty makes an event without a key.
	ID string
	// Type is the event's type. Empty: the provider's usual one.
	Type string
	// Object is what the event is about, for samples in which that is another thing than the event itself.
	// Empty: the example's own. See [Template.NumberedObject].
	Object string
	// Version is the number of the object's state, where the provider has such numbers.
	Version int64
	// Attempt is the number of the delivery of the event, where the provider says something of that. Less than 1: the first.
	Attempt int64
	// Time is when it happened.
	Time time.Time
}

// Sample returns the header and body of a realistic event, as the specification's example has it. The
// request has no signature yet: see [Provider.Sign].
func (s Spec) Sample(of Sample) (http.Header, []byte) {
	of.Type = cmp.Or(of.Type, s.Example.Type)
	of.Object = cmp.Or(of.Object, s.Example.Object, of.ID)
	of.Attempt = max(of.Attempt, 1)
	event, action, _ := strings.Cut(of.Type, ".")
	fill := func(escape func(string) string) *strings.Replacer {
		return strings.NewReplacer(
			"{{id}}", escape(of.ID),
			"{{type}}", escape(of.Type),
			"{{event}}", escape(event),
			"{{action}}", escape(action),
			"{{object}}", escape(of.Object),
			"{{version}}", strconv.FormatInt(of.Version, 10),
			"{{attempt}}", strconv.FormatInt(of.Attempt, 10),
			"{{retry}}", strconv.FormatInt(of.Attempt-1, 10),
			"{{left}}", strconv.FormatInt(max(4-of.Attempt, 1), 10),
			"{{unix}}", strconv.FormatInt(of.Time.Unix(), 10),
			"{{millis}}", strconv.FormatInt(of.Time.UnixMilli(), 10),
			"{{time}}", escape(of.Time.UTC().Format(time.RFC3339)),
		)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	plain := fill(func(s string) string { return s })
	for name, text := range s.Example.Header {
		header.Set(name, plain.Replace(text))
	}
	if s.Example.Form != "" {
		header.Set("Content-Type", "application/x-www-form-urlencoded")
		return header, []byte(fill(url.QueryEscape).Replace(s.Example.Form))
	}
	quoted, bare := fill(escapeJSON), fill(numberOrString)
	body := []byte(literalOrPlaceholder.ReplaceAllStringFunc(s.Example.Body, func(part string) string {
		if part[0] == '"' {
			return quoted.Replace(part)
		}
		return bare.Replace(part)
	}))
	if s.Example.Compact {
		var compact bytes.Buffer
		if json.Compact(&compact, body) == nil {
			body = compact.Bytes()
		}
	}
	return header, body
}

// literalOrPlaceholder matches what may change in a template of JSON: a string literal with all that is in it, and a
// placeholder outside of one.
var literalOrPlaceholder = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|\{\{[a-z]+\}\}`)

// wholeNumber matches what JSON writes as a number, without a fraction.
var wholeNumber = regexp.MustCompile(`^-?(?:0|[1-9][0-9]*)$`)

// numberOrString returns the text as a JSON value: a number if it is one, else a string.
func numberOrString(text string) string {
	if wholeNumber.MatchString(text) {
		return text
	}
	return `"` + escapeJSON(text) + `"`
}

// Place puts a text, such as {{id}}, where a header: or json: value of a request is looked for, and leaves the template
// as it is for others. The objects and arrays on the way are made. The header must not be nil.
func (t *Template) Place(v Value, text string) {
	at, err := parseValue(v)
	switch {
	case err != nil: // New refuses it
	case at.kind == kindHeader:
		t.Header[at.text] = text
	case at.kind == kindJSON && len(at.path) > 0:
		if at.path[0][0] == '[' && !strings.HasPrefix(t.Body, "[") {
			t.Body = "[]"
		}
		if body, err := sjson.Set(t.Body, sjsonPath(at.path), text); err == nil {
			t.Body = gjson.Get(body, "@pretty").Raw
		}
	}
}

// usualID is the example of an identifier where there is none: that of Standard Webhooks.
const usualID = "msg_2KWPBgLlAfxdpx2AI54pPJ85f4W"

// uuid is what has its version and variant in fixed places.
var uuid = regexp.MustCompile(`[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}`)

// NewID returns a new identifier of the kind of the example's: with its beginning, its length and its alphabet.
// The beginning ends with the last separator or, if there is none, before the first digit that follows letters.
// A UUID stays one, of version 4.
func (t Template) NewID() string {
	example := cmp.Or(t.ID, usualID)
	if at := uuid.FindStringIndex(example); at != nil {
		id := []byte(example[:at[0]] + random(example[at[0]:at[1]]) + example[at[1]:])
		id[at[0]+14] = '4'
		id[at[0]+19] = "89ab"[rand.IntN(4)]
		if strings.ToUpper(example) == example {
			id = []byte(strings.ToUpper(string(id)))
		}
		return string(id)
	}
	tail := strings.TrimRight(example, "=")
	head := tail[:strings.LastIndexAny(tail, "_-/|:.")+1]
	if digit := strings.IndexAny(tail, "0123456789"); head == "" && digit <= maxIDHead {
		head = tail[:max(digit, 0)]
	}
	if ulid.MatchString(tail[len(head):]) {
		head += "01" // of this century
	}
	return head + random(tail[len(head):]) + example[len(tail):]
}

// firstNumber is the least that [Template.NumberedID] returns: 15 digits, which every parser of JSON keeps.
const firstNumber = 100_000_000_000_000

// NumberedID returns an identifier for senders whose identifiers are numbers, another one for each of the first 8e14 n. It is
// empty if the sender's are no numbers.
func (t Template) NumberedID(n uint64) string {
	if t.ID == "" || strings.Trim(t.ID, "0123456789") != "" {
		return ""
	}
	return strconv.FormatUint(firstNumber+n%(8*firstNumber), 10)
}

// maxIDHead is how many letters may stand before the first digit of an identifier and be its beginning.
const maxIDHead = 3

// ulid is an identifier that begins with its time, in the digits and letters of Crockford.
var ulid = regexp.MustCompile(`^01(?:[0-9a-hjkmnp-tv-z]{24}|[0-9A-HJKMNP-TV-Z]{24})$`)

// random replaces letters and digits by others that occur in identifiers like that one.
func random(like string) string {
	alphabet := alphabetOf(like)
	id := []byte(like)
	for i, c := range id {
		switch {
		case !isDigit(c) && !isLetter(c):
		case i == 0 && isDigit(c): // numbers do not begin with zeros
			id[i] = "123456789"[rand.IntN(9)]
		default:
			id[i] = alphabet[rand.IntN(len(alphabet))]
		}
	}
	return string(id)
}

// alphabetOf returns the characters of the narrowest usual alphabet that the text is written in.
func alphabetOf(text string) string {
	const digits, hex, lower, upper = "0123456789", "abcdef", "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	const crockford = "0123456789abcdefghjkmnpqrstvwxyz"
	all := digits + lower + upper
	for _, alphabet := range []string{digits, digits + hex, digits + strings.ToUpper(hex), crockford, strings.ToUpper(crockford), lower, upper, digits + lower, digits + upper, lower + upper} {
		if strings.Trim(text, alphabet+"-") == "" {
			return alphabet
		}
	}
	return all
}

func isDigit(c byte) bool  { return '0' <= c && c <= '9' }
func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// NumberedObject returns an object of the kind that the example is about, another one for each number: the
// number stands in place of its last part, and is filled up with zeros to the same length; a whole number is
// replaced. It is empty if the example names no object.
func (t Template) NumberedObject(n uint64) string {
	name := strings.TrimRight(t.Object, "}=")
	if name == "" {
		return ""
	}
	head := name[:strings.LastIndexAny(name, "_-/|:.")+1]
	if head == "" {
		head = strings.TrimRight(name, "0123456789")
	}
	width := len(name) - len(head)
	if head == "" {
		width = 0 // numbers do not begin with zeros
	}
	return fmt.Sprintf("%s%0*d%s", head, width, n, t.Object[len(name):])
}
