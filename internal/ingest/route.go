package ingest

import (
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
)

// Route sends the events of a source that match it to destinations. All routes that match an event
// apply; one that none matches is stored, and is done.
type Route struct {
	// To are the names of the destinations.
	To []string
	// Types are patterns, one of which the event's type has to match as a whole: * stands for any
	// characters, everything else for itself. None: all types match.
	Types []string
	// Where says which fields of the event have to have which texts. The zero Where matches all.
	Where Where
}

// Where are fields of an event, and the text that each of them has to have.
type Where struct {
	Fields FieldReader
	Texts  []string
}

// FieldReader reads fields of an event. It is safe for concurrent use.
type FieldReader interface {
	// Read returns the texts of the fields, always in the same order; empty for one that is absent.
	Read(*hookonce.Event) []string
}

// router finds the destinations of events. What it returns is shared: nobody may write to it.
type router struct {
	routes []route
	always []string // the destinations of every event, if there are no conditions
	fixed  bool
}

// route is a Route in compiled form.
type route struct {
	to    []string
	types []pattern
	where Where
}

func newRouter(routes []Route) *router {
	r := &router{fixed: true}
	for _, from := range routes {
		to := union(nil, from.To)
		r.always = union(r.always, to)
		r.fixed = r.fixed && len(from.Types) == 0 && len(from.Where.Texts) == 0
		r.routes = append(r.routes, route{to, patterns(from.Types), from.Where})
	}
	return r
}

// destinations returns where an event goes, each name once.
func (r *router) destinations(ev *hookonce.Event) []string {
	if r.fixed {
		return r.always
	}
	var to []string
	for i := range r.routes {
		switch way := &r.routes[i]; {
		case !way.matches(ev):
		case to == nil:
			to = way.to
		default:
			to = union(to, way.to)
		}
	}
	return to
}

func (r *route) matches(ev *hookonce.Event) bool {
	if len(r.types) > 0 && !slices.ContainsFunc(r.types, func(p pattern) bool { return p.matches(ev.Type) }) {
		return false
	}
	return len(r.where.Texts) == 0 || slices.Equal(r.where.Texts, r.where.Fields.Read(ev))
}

// union returns the names of both, each once, without changing either.
func union(a, b []string) []string {
	all := slices.Clip(a)
	for _, name := range b {
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	return all
}

// pattern is the text between the stars of a pattern for event types.
type pattern []string

func patterns(texts []string) []pattern {
	var all []pattern
	for _, text := range texts {
		all = append(all, strings.Split(text, "*"))
	}
	return all
}

// matches reports whether the pattern stands for s as a whole. It takes time in proportion to both.
func (p pattern) matches(s string) bool {
	if len(p) == 1 {
		return s == p[0]
	}
	s, begins := strings.CutPrefix(s, p[0])
	s, ends := strings.CutSuffix(s, p[len(p)-1])
	if !begins || !ends {
		return false
	}
	for _, part := range p[1 : len(p)-1] {
		at := strings.Index(s, part)
		if at < 0 {
			return false
		}
		s = s[at+len(part):]
	}
	return true
}
