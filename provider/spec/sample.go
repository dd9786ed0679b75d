package spec

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
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
	// Time is when it happened.
	Time time.Time
}

// Sample returns the header and body of a realistic event, as the specification's example has it. The
// request has no signature yet: see [Provider.Sign].
func (s Spec) Sample(of Sample) (http.Header, []byte) {
	of.Type = cmp.Or(of.Type, s.Example.Type)
	of.Object = cmp.Or(of.Object, s.Example.Object, of.ID)
	event, action, _ := strings.Cut(of.Type, ".")
	fill := func(escape func(string) string) *strings.Replacer {
		return strings.NewReplacer(
			"{{id}}", escape(of.ID),
			"{{type}}", escape(of.Type),
			"{{event}}", escape(event),
			"{{action}}", escape(action),
			"{{object}}", escape(of.Object),
			"{{version}}", strconv.FormatInt(of.Version, 10),
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
	return header, []byte(fill(escapeJSON).Replace(s.Example.Body))
}

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
