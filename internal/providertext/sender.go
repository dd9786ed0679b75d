// Package providertext says in words what the catalogue knows of a sender, for its page and for people at a terminal.
//
// Texts are Markdown of the simplest kind: code between backquotes, and links. Plain takes both out.
package providertext

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/provider/spec"
)

// Sender is a sender with what is said of it.
type Sender struct{ spec.Spec }

// Of returns the sender that a specification describes, with the defaults that it leaves out.
func Of(known spec.Spec) Sender { return Sender{known.WithDefaults()} }

var link = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)

// Plain returns a text for where Markdown is not shown as what it means: links without their targets,
// code and strong words without their marks.
func Plain(text string) string {
	return strings.NewReplacer("`", "", "**", "").Replace(link.ReplaceAllString(text, "$1"))
}

// Rules returns the rules for the key, each in code.
func (s Sender) Rules() string {
	var rules []string
	for _, rule := range s.KeyRules() {
		rules = append(rules, inCode(rule, " + "))
	}
	return cmp.Or(strings.Join(rules, ", or else "), "none: every event passes on")
}

// Signed says whether the signature covers the key.
func (s Sender) Signed() string {
	signed := s.KeySigned()
	switch {
	case len(signed) == 0:
		return "-"
	case !slices.Contains(signed, false):
		return "yes"
	case !slices.Contains(signed, true):
		return "no"
	}
	return "some"
}

// SameOnRetry says whether the key is the same in every retry.
func (s Sender) SameOnRetry() string { return cmp.Or(string(s.Dedup.Retry), "not sourced") }

// SameOnResend says whether the key is the same when a person has the event sent again.
func (s Sender) SameOnResend() string { return cmp.Or(string(s.Dedup.Manual), "not sourced") }

// Repeat says what happens to a copy.
func (s Sender) Repeat() string {
	if len(s.Event.Key) == 0 {
		return string(spec.Off)
	}
	return string(s.Dedup.OnRepeat)
}

// Window returns how long the sender sends events again.
func (s Sender) Window() string {
	retry, manual := "not sourced", ""
	if s.Limits.Retry > 0 {
		retry = spec.FormatDuration(s.Limits.Retry)
	} else if s.Dedup.Retry == spec.NotSent {
		retry = "no retries"
	}
	if s.Limits.Manual > 0 {
		manual = "; by hand " + spec.FormatDuration(s.Limits.Manual)
	}
	return retry + manual
}

// Deadline returns how long the sender waits for the answer, empty if it does not say.
func (s Sender) Deadline() string {
	if s.Answer.Deadline == 0 {
		return ""
	}
	return spec.FormatDuration(s.Answer.Deadline)
}

// Carriers returns where the signatures or tokens are. Schemes in code have their own ways.
func (s Sender) Carriers() string {
	var in []spec.Value
	for _, v := range s.Verify {
		if v.Signature.In != "" && !slices.Contains(in, v.Signature.In) {
			in = append(in, v.Signature.In)
		}
	}
	return inCode(in, " or ")
}

// Passed returns the headers that the gateway passes on besides those that the specification names elsewhere.
func (s Sender) Passed() string {
	if len(s.Headers) == 0 {
		return "all but [what applications act on](destinations.md#which-headers-pass)"
	}
	return "`" + strings.Join(s.Headers, "`, `") + "`"
}

// Batch returns where the items are, empty if a request is one event.
func (s Sender) Batch() string {
	if s.Split == nil {
		return ""
	}
	return inCode(s.Split.Items, ", ")
}

// units are what an order goes by.
var units = map[spec.Unit]string{
	"": "version", spec.Seconds: "time (seconds)", spec.Millis: "time (milliseconds)", spec.RFC3339: "time (RFC 3339)",
}

// Newer returns what tells a newer state of the resource from an older one, empty if nothing does.
func (s Sender) Newer() string {
	if s.Order == nil {
		return ""
	}
	return "`" + string(s.Order.By) + "`" + s.promise()
}

// promise says what kind of a value the order goes by, and whether the sender promises it.
func (s Sender) promise() string {
	text := ", a " + units[s.Order.Unit]
	if s.Order.Advisory {
		text += "; a hint and no promise"
	}
	return text
}

// inCode joins values, each in code.
func inCode(values []spec.Value, by string) string {
	text := make([]string, len(values))
	for i, v := range values {
		text[i] = "`" + string(v) + "`"
	}
	return strings.Join(text, by)
}

// Greetings returns the methods of the handshakes.
func (s Sender) Greetings() string {
	var methods []string
	for _, h := range s.Handshakes {
		if !slices.Contains(methods, h.Method) {
			methods = append(methods, h.Method)
		}
	}
	return cmp.Or(strings.Join(methods, ", "), "-")
}
