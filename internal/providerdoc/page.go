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
		parts := make([]string, len(rule))
		for j, part := range rule {
			parts[j] = "`" + string(part) + "`"
		}
		rules[i] = strings.Join(parts, " + ")
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

// span writes a duration in days or hours where it is whole ones, else in minutes.
func span(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d min", d/time.Minute)
}

// OKStatus returns the status that the sender takes for success.
func (s sender) OKStatus() int { return cmp.Or(s.Answer.Status, http.StatusOK) }

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
