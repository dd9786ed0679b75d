package reconcile

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/hookonce/hookonce/internal/jsonscan"
	"github.com/hookonce/hookonce/provider/spec"
)

// The bounds of a page.
const (
	maxPerPage = 10_000 // entries
	maxCursor  = 8 << 10
	maxID      = 512
	maxDepth   = 200
)

// page is an answer, taken apart.
type page struct {
	items []gjson.Result
	doc   gjson.Result
}

// parsePage finds the entries in an answer.
func parsePage(body []byte, l *spec.List) (page, error) {
	doc, err := parseJSON(body)
	if err != nil {
		return page{}, err
	}
	p := page{doc: doc}
	items, ok := find(doc, l.Items)
	switch {
	case !ok || items.Type == gjson.Null:
		if l.Items == "$" || !doc.IsObject() {
			return page{}, lies("the answer is no list")
		}
		for _, name := range []string{"error", "errors"} {
			if failed := member(doc, name); failed.Exists() && failed.Type != gjson.Null {
				return page{}, lies("the answer is said to be good, and has %q in the place of the list", name)
			}
		}
		if !l.LeftOut {
			return page{}, lies("the answer has no list at %s", l.Items)
		}
		return p, nil // an empty list
	case !items.IsArray():
		return page{}, lies("what should be the list, at %s, is none", l.Items)
	}
	full := true
	items.ForEach(func(_, item gjson.Result) bool {
		full = len(p.items) < maxPerPage
		p.items = append(p.items, item)
		return full
	})
	if !full {
		return page{}, lies("a page has more than %d entries", maxPerPage)
	}
	return p, nil
}

// parseJSON parses an answer, which must be JSON and not be nested without end.
func parseJSON(body []byte) (gjson.Result, error) {
	text := string(body)
	if jsonscan.Check(text, maxDepth) != nil {
		return gjson.Result{}, lies("the answer is no JSON")
	}
	return gjson.Parse(text), nil
}

// find returns what is at a path.
func find(in gjson.Result, path spec.Path) (gjson.Result, bool) {
	steps, err := path.Steps()
	if err != nil || path == "" {
		return gjson.Result{}, false
	}
	for _, step := range steps {
		var next gjson.Result
		if index, ok := strings.CutPrefix(step, "["); ok {
			next = element(in, strings.TrimSuffix(index, "]"))
		} else {
			next = member(in, step)
		}
		if !next.Exists() {
			return next, false
		}
		in = next
	}
	return in, true
}

// member returns the member of an object with that name, whatever characters the name has.
func member(in gjson.Result, name string) (found gjson.Result) {
	if in.IsObject() {
		in.ForEach(func(key, value gjson.Result) bool {
			if key.Str == name {
				found = value
			}
			return !found.Exists()
		})
	}
	return found
}

// element returns the element of an array with that number.
func element(in gjson.Result, index string) (found gjson.Result) {
	n, err := strconv.Atoi(index)
	if err != nil || !in.IsArray() {
		return found
	}
	in.ForEach(func(_, value gjson.Result) bool {
		if n == 0 {
			found = value
		}
		n--
		return n >= 0
	})
	return found
}

// text returns the string, number or boolean at a path, empty if there is none.
func text(in gjson.Result, path spec.Path) string {
	found, ok := find(in, path)
	if !ok || found.IsObject() || found.IsArray() || found.Type == gjson.Null {
		return ""
	}
	if found.Type == gjson.String {
		return found.Str
	}
	return found.Raw
}

// next returns the request for the page after one, nil if that was the last.
func (l *Lister) next(now ask, p page, a *answer) (*ask, error) {
	kind := l.client.spec.List.Page
	if kind == nil {
		return nil, nil
	}
	if kind.More == "" {
		return l.after(now, p, a)
	}
	switch text(p.doc, kind.More) {
	case "true":
		next, err := l.after(now, p, a)
		if next == nil && err == nil { // the list would count as read
			err = lies("the answer says that there is another page, and not where")
		}
		return next, err
	case "false":
		return nil, nil
	}
	return nil, lies("the answer does not say at %s whether there is another page", kind.More)
}

// after returns the request for the page that an answer leads to, nil if it leads to none.
func (l *Lister) after(now ask, p page, a *answer) (*ask, error) {
	kind := l.client.spec.List.Page
	full := kind.More != "" || len(p.items) >= kind.Size // where pages are counted, and the answer does not say it, a short one is the last
	switch kind.Kind {
	case spec.PageLink:
		return l.follow(now, linkNext(a.header))
	case spec.PageURL:
		return l.follow(now, urlNext(p.doc, kind.In))
	case spec.PageCursor:
		return l.turn(now, text(p.doc, kind.In))
	case spec.PageLastID:
		switch {
		case len(p.items) == 0 && kind.More != "":
			return nil, lies("a page is empty and said not to be the last, so the next page cannot be asked for")
		case len(p.items) == 0:
			return nil, nil
		}
		id := text(p.items[len(p.items)-1], l.client.spec.List.ID)
		if id == "" {
			return nil, lies("the last entry of a page has no id, so the next page cannot be asked for")
		}
		return l.turn(now, id)
	case spec.PageNumber:
		if !full {
			return nil, nil
		}
		l.position++
		return l.turn(now, strconv.Itoa(l.position+1))
	default:
		if !full {
			return nil, nil
		}
		l.position += len(p.items)
		return l.turn(now, strconv.Itoa(l.position))
	}
}

// follow returns the request for the URL of the next page, which the server gave.
func (l *Lister) follow(now ask, link string) (*ask, error) {
	if link == "" {
		return nil, nil
	}
	here, err := url.Parse(now.url)
	if err != nil {
		return nil, err
	}
	there, err := here.Parse(link)
	switch {
	case err != nil || len(link) > maxCursor:
		return nil, lies("the URL of the next page is none")
	case there.User != nil || !sameOrigin(here, there):
		return nil, lies("the next page is said to be at another server (%q), to which the token is not sent", shortened(there.Host))
	}
	there.Fragment = ""
	now.url = there.String()
	return &now, nil
}

// turn returns the request with a parameter for the next page.
func (l *Lister) turn(now ask, value string) (*ask, error) {
	switch {
	case value == "":
		return nil, nil
	case len(value) > maxCursor:
		return nil, lies("the cursor of the next page has %d bytes", len(value))
	}
	param, without := l.client.spec.List.Page.Param, l.client.spec.List.Page.Without
	next := l.first()
	if len(next.body) == 0 {
		next.url = leaveOut(next.url, without)
		separator := "?"
		if strings.Contains(next.url, "?") {
			separator = "&"
		}
		next.url += separator + url.QueryEscape(param) + "=" + url.QueryEscape(value)
		return &next, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(next.body, &members); err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(value)
	if kind := l.client.spec.List.Page.Kind; kind == spec.PageNumber || kind == spec.PageOffset {
		quoted = []byte(value)
	}
	if err != nil {
		return nil, err
	}
	for _, name := range without {
		delete(members, name)
	}
	members[param] = quoted
	next.body, err = json.Marshal(members)
	return &next, err
}

// leaveOut returns a URL without some parameters of its query.
func leaveOut(text string, names []string) string {
	path, query, _ := strings.Cut(text, "?")
	var left []string
	for part := range strings.SplitSeq(query, "&") {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); part != "" && (err != nil || !slices.Contains(names, plain)) {
			left = append(left, part)
		}
	}
	if len(left) == 0 {
		return path
	}
	return path + "?" + strings.Join(left, "&")
}

// urlNext returns the URL of the next page in an answer: a text, or in a list of links the one whose rel is next.
func urlNext(doc gjson.Result, in spec.Path) string {
	found, ok := find(doc, in)
	if !ok || !found.IsArray() {
		return text(doc, in)
	}
	link := ""
	found.ForEach(func(_, one gjson.Result) bool {
		if member(one, "rel").Str == "next" {
			link = member(one, "href").Str
		}
		return link == ""
	})
	return link
}

// linkNext returns the URL of the next page in Link headers (RFC 8288).
func linkNext(h http.Header) string {
	for _, line := range h.Values("Link") {
		for len(line) > 0 {
			_, rest, ok := strings.Cut(line, "<")
			if !ok {
				break
			}
			target, rest, ok := strings.Cut(rest, ">")
			if !ok {
				break
			}
			var params string
			params, line = linkParams(rest)
			if relNext(params) {
				return target
			}
		}
	}
	return ""
}

// linkParams cuts the parameters of one link from the next link.
func linkParams(rest string) (params, next string) {
	quoted := false
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return rest[:i], rest[i+1:]
		}
	}
	return rest, ""
}

// relNext reports whether the parameters of a link say that it is the next page.
func relNext(params string) bool {
	for param := range strings.SplitSeq(params, ";") {
		name, value, ok := strings.Cut(param, "=")
		if !ok || !strings.EqualFold(strings.TrimSpace(name), "rel") {
			continue
		}
		for rel := range strings.FieldsSeq(strings.Trim(strings.TrimSpace(value), `"`)) {
			if strings.EqualFold(rel, "next") {
				return true
			}
		}
		return false // the first rel counts
	}
	return false
}

// parseTime reads a time as an entry has it.
func parseTime(text string, unit spec.Unit) time.Time {
	if unit == spec.RFC3339 {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return time.Time{}
		}
		return at.UTC()
	}
	whole, _, _ := strings.Cut(text, ".")
	n, err := strconv.ParseInt(whole, 10, 64)
	switch {
	case err != nil || n <= 0:
		return time.Time{}
	case unit == spec.Millis:
		return time.UnixMilli(n).UTC()
	}
	return time.Unix(n, 0).UTC()
}

// formatTime writes a time as the list wants it.
func formatTime(at time.Time, unit spec.Unit) string {
	switch unit {
	case spec.Seconds:
		return strconv.FormatInt(at.Unix(), 10)
	case spec.Millis:
		return strconv.FormatInt(at.UnixMilli(), 10)
	}
	return at.UTC().Format(time.RFC3339)
}

// shortened returns what a server said, short enough for an error.
func shortened(text string) string {
	if len(text) > 100 {
		return text[:100] + "..."
	}
	return text
}
