package config

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/hookonce/hookonce/provider/spec"
)

// Route sends events of a source to destinations. Every route that an event matches applies.
type Route struct {
	// To are the names of the destinations.
	To []string
	// Types are patterns for the event's type, one of which it must match: text in which * stands for
	// any characters. None: all types.
	Types []string
	// Where are fields of the event, all of which must have the text that is given.
	Where []Match

	origin layer
	at     place
}

// Match is a field of an event and the text that it must have.
type Match struct {
	Field spec.Value
	Text  string
}

// routeSettings declares every setting of a route.
var routeSettings = []field[Route]{
	{key: "to", bind: func(r *Route) value {
		return names{words{to: &r.To, sample: "ledger", check: checkName}}
	}},
	{key: "types", bind: func(r *Route) value {
		return names{words{to: &r.Types, sample: "invoice.*", check: checkPattern}}
	}},
	{key: "where", bind: func(r *Route) value { return matches{&r.Where} }},
}

// names are words of which a single one needs no brackets.
type names struct{ words }

func (names) lone() {}

func (v names) set(s string) error {
	if slices.Contains(*v.to, s) {
		return fmt.Errorf("%q is there twice; keep one of them", s)
	}
	return v.words.set(s)
}

// maxPattern is the length of the longest event type.
const maxPattern = 255

func checkPattern(s string) error {
	if len(s) > maxPattern || strings.IndexFunc(s, unicode.IsControl) >= 0 {
		return fmt.Errorf("this matches no event type; write at most %d printable characters, with * for any others", maxPattern)
	}
	return nil
}

// checkExact accepts the types that somebody means by name.
func checkExact(s string) error {
	if strings.Contains(s, "*") {
		return fmt.Errorf("%q is a pattern, and twins are dropped only for types that are named; write each one", s)
	}
	return checkPattern(s)
}

// matches is the setting "where".
type matches struct{ to *[]Match }

func (v matches) clear()           { *v.to = nil }
func (v matches) set(string) error { return nil } // a group has no text of its own
func (v matches) show() string     { return strings.Join(v.items(), " ") }
func (v matches) example() string  { return `"json:$.livemode": "true"` }

func (v matches) items() []string {
	items := make([]string, len(*v.to))
	for i, m := range *v.to {
		items[i] = yamlPair(string(m.Field), m.Text)
	}
	return items
}

func (v matches) setPair(field, text string) error {
	*v.to = append(*v.to, Match{spec.Value(field), text})
	if text == "" {
		return fmt.Errorf("%q has an empty text, which stands for a field that is not there; write the text that it must have", field)
	}
	return nil
}

// Fields returns what reads the fields of the source's events, in their order.
func (s *Source) Fields(values ...spec.Value) (*spec.Fields, error) {
	known, err := s.spec()
	if err != nil {
		return nil, err
	}
	return known.Fields(values...)
}

// where returns the place that a setting of the route came from, or that of the route.
func (r *Route) where(key string) place {
	if g, ok := r.origin[key]; ok {
		return g.at
	}
	return r.at
}

// checkRoutes looks at the routes of a source.
func (l *loader) checkRoutes(s *Source) {
	known, err := s.spec()
	for i := range s.Routes {
		r := &s.Routes[i]
		if _, written := r.origin["to"]; !written {
			l.fault(r.at, "a route lacks its destination; write to: and the name of one")
		}
		l.checkTargets(r)
		l.checkRepeats(s.Routes[:i], r)
		if err != nil {
			continue // reported already
		}
		if len(r.Types) > 0 && len(known.Event.Type) == 0 {
			l.warn(r.where("types"), "types: %s does not say of which type an event is, so that only the pattern * matches", known.Title)
		}
		for n, m := range r.Where {
			if _, err := known.Fields(m.Field); err != nil {
				l.fault(r.origin.element("where", n), "where: %v", err)
			}
		}
	}
}

// checkTargets finds destinations that do not exist.
func (l *loader) checkTargets(r *Route) {
	var known []string
	for _, d := range l.cfg.Destinations {
		known = append(known, d.Name)
	}
	for _, t := range r.origin["to"].texts {
		name, at := t.text, t.at
		switch {
		case checkName(name) != nil, slices.Contains(known, name):
		case len(known) == 0:
			l.fault(at, "to: there is no destination %q; add it under destinations: with name and url", name)
		default:
			l.fault(at, "to: there is no destination %q%s", name, suggest(name, known))
		}
	}
}

// checkRepeats warns about a route that adds nothing to an earlier one, which sends everything.
func (l *loader) checkRepeats(before []Route, r *Route) {
	for i := range before {
		b := &before[i]
		if len(b.Types) > 0 || len(b.Where) > 0 || len(r.To) == 0 {
			continue
		}
		if !slices.ContainsFunc(r.To, func(name string) bool { return !slices.Contains(b.To, name) }) {
			l.warn(r.at, "this route adds nothing: the one at %s sends every event to the same destinations", b.at)
			return
		}
	}
}

// Reaches returns the names of the destinations that events of the source may go to, each once.
func (s *Source) Reaches() []string {
	names := []string{}
	if s.To != "" && s.Mode != Idempotent {
		names = append(names, s.Name)
	}
	for _, r := range s.Routes {
		for _, to := range r.To {
			if !slices.Contains(names, to) {
				names = append(names, to)
			}
		}
	}
	return names
}
