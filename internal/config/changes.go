package config

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Change is one thing that two configurations differ in.
type Change struct {
	// Setting is the key, such as "delivery.timeout", without that of the group that it stands in.
	Setting string
	// Text says what changed, for people: "source billing: secrets changed (2 → 3)". No secret is in it.
	Text string
	// Restart is set if the change takes a new process.
	Restart bool
}

// Changes returns what is different in next, which is to take the place of c: what destinations take from
// delivery once, there. It goes by what holds and not by where it is written, and by the content of what
// secrets and certificates refer to. The order of destinations, sources and tokens does not count.
func (c *Config) Changes(next *Config) (all []Change) {
	all = differ(c, next, settings, c.origin, next.origin)
	all = append(all, match("admin token", c.AdminTokens, next.AdminTokens,
		func(t *AdminToken) string { return t.Name }, (*AdminToken).changes)...)
	all = append(all, match("destination", c.Destinations, next.Destinations,
		func(d *Destination) string { return d.Name }, (*Destination).changes)...)
	return append(all, match("source", c.Sources, next.Sources,
		func(s *Source) string { return s.Name }, (*Source).changes)...)
}

// Same reports whether nothing of the source's own is different in other.
func (s *Source) Same(other *Source) bool { return s.Name == other.Name && len(s.changes(other)) == 0 }

// Same reports whether other has the same certificates and names, whatever the names of their files.
func (t TLS) Same(other TLS) bool {
	return t.ServerName == other.ServerName && reflect.DeepEqual(t.pem, other.pem)
}

// match pairs the elements of two lists by name, and says which came, which went, and what the others
// differ in.
func match[C any](what string, before, after []C, name func(*C) string, changes func(a, b *C) []Change) (all []Change) {
	find := func(in []C, n string) *C {
		if i := slices.IndexFunc(in, func(c C) bool { return name(&c) == n }); i >= 0 {
			return &in[i]
		}
		return nil
	}
	for i := range before {
		n := name(&before[i])
		if now := find(after, n); now == nil {
			all = append(all, Change{Setting: "name", Text: fmt.Sprintf("%s %s removed", what, n)})
		} else {
			for _, c := range changes(&before[i], now) {
				c.Text = fmt.Sprintf("%s %s: %s", what, n, c.Text)
				all = append(all, c)
			}
		}
	}
	for i := range after {
		if n := name(&after[i]); find(before, n) == nil {
			all = append(all, Change{Setting: "name", Text: fmt.Sprintf("%s %s added", what, n)})
		}
	}
	return all
}

func (t *AdminToken) changes(next *AdminToken) []Change {
	return differ(t, next, tokenSettings, t.origin, next.origin)
}

// changes leaves out what both take from delivery.
func (d *Destination) changes(next *Destination) []Change {
	return slices.DeleteFunc(differ(d, next, destinationSettings, d.origin, next.origin), func(c Change) bool {
		if _, common := find(settings, "delivery."+c.Setting); !common {
			return false
		}
		_, before := d.own(c.Setting)
		_, after := next.own(c.Setting)
		return !before && !after
	})
}

func (s *Source) changes(next *Source) []Change {
	all := differ(s, next, sourceSettings, s.origin, next.origin)
	if !slices.EqualFunc(s.Routes, next.Routes, func(a, b Route) bool {
		return len(differ(&a, &b, routeSettings, nil, nil)) == 0
	}) {
		all = append(all, Change{Setting: routesKey, Text: routesKey + " changed" + counts(len(s.Routes), len(next.Routes))})
	}
	all = append(all, s.ownChanges(next)...)
	if !reflect.DeepEqual(s.Spec, next.Spec) {
		all = append(all, Change{Setting: specKey, Text: specKey + " changed"})
	}
	return all
}

// differ compares two groups of settings. The origins tell what is not set.
func differ[C any](before, after *C, fields []field[C], was, is layer) (all []Change) {
	for _, f := range fields {
		a, b := f.bind(before), f.bind(after)
		if exactly(a) == exactly(b) {
			continue
		}
		all = append(all, Change{Setting: f.key, Restart: f.restart,
			Text: f.key + " changed" + fromTo(a, b, f.isSet(was), f.isSet(is))})
	}
	return all
}

// isSet reports whether a value is anybody's.
func (f field[C]) isSet(origin layer) bool {
	_, written := origin[f.key]
	return written || f.def != ""
}

// fromTo says from what to what a value changed, as far as it may be shown, in brackets.
func fromTo(a, b value, was, is bool) string {
	before, after := shownAs(a, was), shownAs(b, is)
	listed, _ := a.(list)
	switch {
	case listed != nil:
		return counts(len(listed.items()), len(b.(list).items()))
	case before == after:
		return "" // it is masked, or what it refers to changed
	}
	return fmt.Sprintf(" (%s → %s)", before, after)
}

func shownAs(v value, set bool) string {
	if !set {
		return "not set"
	}
	return v.show()
}

func counts(before, after int) string {
	if before == after {
		return ""
	}
	return fmt.Sprintf(" (%d → %d)", before, after)
}

// exact is a value that does not show all that counts.
type exact interface {
	exact() string
}

// exactly returns all of a value, to be compared. It may be a secret.
func exactly(v value) string {
	switch v := v.(type) {
	case exact:
		return v.exact()
	case list:
		return strings.Join(v.items(), "\x00")
	}
	return v.show()
}

func (v storeValue) exact() string { return v.to.DSN }
func (v endpoint) exact() string   { return *v.to }
func (v file) exact() string       { return *v.to + "\x00" + string(*v.content) }
func (v reference) exact() string  { return v.to.exact() }

func (v references) exact() string {
	var all strings.Builder
	for i := range *v.to {
		fmt.Fprintf(&all, "%q\n", (*v.to)[i].exact())
	}
	return all.String()
}

func (v headers) exact() string {
	var all strings.Builder
	for _, h := range *v.to {
		fmt.Fprintf(&all, "%s: %q\n", h.Name, h.Value.exact())
	}
	return all.String()
}

// exact is the reference, what it refers to, and when it is valid.
func (s *Secret) exact() string { return fmt.Sprintf("%q %q %v %v", s.ref, s.value, s.From, s.Until) }
