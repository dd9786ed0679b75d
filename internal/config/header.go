package config

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/settings"
)

// Header is a header that is added to deliveries. Its value may be a secret.
type Header struct {
	Name  string // in canonical form
	Value settings.Secret
}

// shown is the value as it is printed: literals too, unless the name sounds like that of a credential.
func (h Header) shown() string {
	if h.Value.String() != settings.Mask || h.confidential() {
		return h.Value.String()
	}
	return h.Value.Reference()
}

// confidential reports whether the name sounds as if the value were a credential.
func (h Header) confidential() bool {
	name := strings.ToLower(h.Name)
	return slices.ContainsFunc([]string{"auth", "cookie", "credential", "key", "pass", "secret", "session", "signature", "token"},
		func(part string) bool { return strings.Contains(name, part) })
}

// resolve reads what the value refers to.
func (h *Header) resolve(e resolver) error {
	if err := e.Resolve(&h.Value); err != nil {
		return err
	}
	if !header.ValidValue(h.Value.Reveal()) {
		return errors.New("the value has control characters, which a header cannot carry; write it on one line")
	}
	return nil
}

// headers is the setting "headers".
type headers struct{ to *[]Header }

func (v headers) Clear()           { *v.to = nil }
func (v headers) Set(string) error { return nil } // a group has no text of its own
func (v headers) Show() string     { return strings.Join(v.Items(), " ") }
func (v headers) Example() string  { return "X-Team: payments" }

func (v headers) Items() []string {
	items := make([]string, len(*v.to))
	for i, h := range *v.to {
		items[i] = settings.QuotePair(h.Name, h.shown())
	}
	return items
}

func (v headers) SetPair(name, text string) error {
	h := Header{Name: http.CanonicalHeaderKey(name), Value: settings.Unresolved(text)}
	twice := slices.ContainsFunc(*v.to, func(other Header) bool { return other.Name == h.Name })
	*v.to = append(*v.to, h)
	if err := checkHeader(name); err != nil {
		return fmt.Errorf("%q: %w", name, err)
	}
	if twice {
		return fmt.Errorf("%s is there twice; keep one of them", h.Name)
	}
	if err := header.CheckSet(name); err != nil {
		return err
	}
	if text == "" {
		return fmt.Errorf("%s is empty; write its value, or remove it", h.Name)
	}
	if err := settings.CheckReference(text); err != nil {
		(*v.to)[len(*v.to)-1].Value = settings.Secret{} // it keeps its place in the list
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

func (v headers) Exact() string {
	var all strings.Builder
	for _, h := range *v.to {
		fmt.Fprintf(&all, "%s: %q\n", h.Name, h.Value.Exact())
	}
	return all.String()
}
