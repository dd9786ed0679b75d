package spec

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// Sample returns the header and body of a realistic event with that id, type and time. An empty type
// means the provider's usual one. The id may be empty: that makes an event without a key. The request
// has no signature yet: see [Provider.Sign].
func (s Spec) Sample(id, eventType string, at time.Time) (http.Header, []byte) {
	if eventType == "" {
		eventType = s.Example.Type
	}
	event, action, _ := strings.Cut(eventType, ".")
	fill := func(escape func(string) string) *strings.Replacer {
		return strings.NewReplacer(
			"{{id}}", escape(id),
			"{{type}}", escape(eventType),
			"{{event}}", escape(event),
			"{{action}}", escape(action),
			"{{unix}}", strconv.FormatInt(at.Unix(), 10),
			"{{millis}}", strconv.FormatInt(at.UnixMilli(), 10),
			"{{time}}", escape(at.UTC().Format(time.RFC3339)),
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
