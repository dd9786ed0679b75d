package config

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
)

// Header is a header that is added to deliveries. Its value may be a secret.
type Header struct {
	Name  string // in canonical form
	Value Secret
}

// headers is the setting "headers".
type headers struct{ to *[]Header }

func (v headers) clear()           { *v.to = nil }
func (v headers) set(string) error { return nil } // a group has no text of its own
func (v headers) show() string     { return strings.Join(v.items(), " ") }
func (v headers) example() string  { return "X-Team: payments" }

func (v headers) items() []string {
	items := make([]string, len(*v.to))
	for i, h := range *v.to {
		items[i] = yamlPair(h.Name, h.shown())
	}
	return items
}

func (v headers) setPair(name, text string) error {
	h := Header{Name: http.CanonicalHeaderKey(name), Value: Secret{ref: text}}
	twice := slices.ContainsFunc(*v.to, func(other Header) bool { return other.Name == h.Name })
	*v.to = append(*v.to, h)
	if err := checkHeader(name); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if twice {
		return fmt.Errorf("%s is there twice; keep one of them", h.Name)
	}
	if reserved(h.Name) {
		return fmt.Errorf("%s is set by this program or by HTTP itself; remove it", h.Name)
	}
	if text == "" {
		return fmt.Errorf("%s is empty; write its value, or remove it", h.Name)
	}
	if err := checkReference(text); err != nil {
		(*v.to)[len(*v.to)-1].Value = Secret{} // it keeps its place in the list
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

// shown is the value as it is printed: literals too, unless the name sounds like that of a credential.
func (h Header) shown() string {
	if h.Value.String() != mask || h.confidential() {
		return h.Value.String()
	}
	return h.Value.ref
}

// confidential reports whether the name sounds as if the value were a credential.
func (h Header) confidential() bool {
	name := strings.ToLower(h.Name)
	return slices.ContainsFunc([]string{"auth", "cookie", "credential", "key", "pass", "secret", "session", "signature", "token"},
		func(part string) bool { return strings.Contains(name, part) })
}

func (h *Header) resolve(in Input) error {
	if err := h.Value.resolve(in); err != nil {
		return err
	}
	if strings.IndexFunc(h.Value.value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) >= 0 {
		return errors.New("the value has control characters, which a header cannot carry; write it on one line")
	}
	return nil
}

// reserved reports whether a header is ours to set, or belongs to the connection.
func reserved(name string) bool {
	switch name {
	case "Idempotency-Key", "Traceparent", "Tracestate":
		return true
	}
	return header.HopByHop(name) || strings.HasPrefix(name, "Hookonce-") || strings.HasPrefix(name, "Webhook-")
}

// headerBeginnings is a list of names of headers, and of beginnings of names that end in a star.
func headerBeginnings(to *[]string) value {
	return names{words{to: to, sample: "X-Tenant", check: header.CheckPass}}
}

// headerNames is a list of names of headers.
func headerNames(to *[]string) value {
	return names{words{to: to, sample: "X-Signature", check: checkWholeName}}
}

func checkWholeName(s string) error {
	if strings.Contains(s, "*") {
		return errors.New("write whole names, without a star; only also_pass takes beginnings")
	}
	return checkHeader(s)
}
