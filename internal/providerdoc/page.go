package main

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

//go:embed page.md.tmpl
var source string

// sender is a provider as the page shows it.
type sender struct{ spec.Spec }

// page returns the page.
func page() ([]byte, error) {
	t, err := template.New("page").Parse(source)
	if err != nil {
		return nil, err
	}
	var senders []sender
	for _, name := range provider.Names() {
		known, _ := provider.Lookup(name)
		senders = append(senders, sender{known})
	}
	var b bytes.Buffer
	if err := t.Execute(&b, senders); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// Rules returns the rules for the key, each in code.
func (s sender) Rules() string {
	if len(s.Event.Key) == 0 {
		return "none: every event passes on"
	}
	rules := make([]string, len(s.Event.Key))
	for i, rule := range s.Event.Key {
		rules[i] = inCode(rule, " + ")
	}
	return strings.Join(rules, ", or else ")
}

// Signed says whether the signature covers the key.
func (s sender) Signed() string {
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
func (s sender) SameOnRetry() string { return cmp.Or(string(s.Dedup.Retry), "not sourced") }

// SameOnResend says whether the key is the same when a person has the event sent again.
func (s sender) SameOnResend() string { return cmp.Or(string(s.Dedup.Manual), "not sourced") }

// Repeat says what happens to a copy.
func (s sender) Repeat() string {
	if len(s.Event.Key) == 0 {
		return string(spec.Off)
	}
	return string(cmp.Or(s.Dedup.OnRepeat, spec.Drop))
}

// Window returns how long the sender sends events again.
func (s sender) Window() string {
	retry, manual := "not sourced", ""
	if s.Limits.Retry > 0 {
		retry = span(s.Limits.Retry)
	} else if s.Dedup.Retry == spec.NotSent {
		retry = "no retries"
	}
	if s.Limits.Manual > 0 {
		manual = "; by hand " + span(s.Limits.Manual)
	}
	return retry + manual
}

// span writes a duration in the units that it has, as in 28 h or 2 min 35 s; whole days are days.
func span(d time.Duration) string {
	if d%(24*time.Hour) == 0 {
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	}
	var text []string
	for _, unit := range []struct {
		of   time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}} {
		if n := d / unit.of; n > 0 {
			text = append(text, fmt.Sprintf("%d %s", n, unit.name))
		}
		d %= unit.of
	}
	return strings.Join(text, " ")
}

// OKStatus returns the status that the sender takes for success.
func (s sender) OKStatus() int { return cmp.Or(s.Answer.Status, http.StatusOK) }

// RejectStatus returns the status for what is not authentic.
func (s sender) RejectStatus() int { return cmp.Or(s.Answer.Reject, http.StatusUnauthorized) }

// Deadline returns how long the sender waits for the answer, empty if it does not say.
func (s sender) Deadline() string {
	if s.Answer.Deadline == 0 {
		return ""
	}
	return span(s.Answer.Deadline)
}

// Carriers returns where the signatures or tokens are. Schemes in code have their own ways.
func (s sender) Carriers() string {
	var in []spec.Value
	for _, v := range s.Verify {
		if v.Signature.In != "" && !slices.Contains(in, v.Signature.In) {
			in = append(in, v.Signature.In)
		}
	}
	return inCode(in, " or ")
}

// Batch returns where the items are, empty if a request is one event.
func (s sender) Batch() string {
	if s.Split == nil {
		return ""
	}
	return inCode(s.Split.Items, ", ")
}

// Newer returns what tells a newer state of the resource from an older one, empty if nothing does.
func (s sender) Newer() string {
	switch {
	case s.Order == nil:
		return ""
	case s.Order.Advisory:
		return "`" + string(s.Order.By) + "`, which is a hint and no promise"
	}
	return "`" + string(s.Order.By) + "`"
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
func (s sender) Greetings() string {
	var methods []string
	for _, h := range s.Handshakes {
		if method := cmp.Or(h.Method, http.MethodPost); !slices.Contains(methods, method) {
			methods = append(methods, method)
		}
	}
	return cmp.Or(strings.Join(methods, ", "), "-")
}

// Credential says what the secret is.
func (s sender) Credential() string { return cmp.Or(s.Secret, "the endpoint's signing secret") }
