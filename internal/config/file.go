package config

import "github.com/hookonce/hookonce/internal/closest"

// section is an element of a list in the file that has settings of its own: a destination, a source or
// a route.
type section struct {
	at       place
	settings layer
	// Of a source:
	spec     *node    // nil: there is none
	own      *section // the settings of its own destination; nil: it is a URL alone
	routes   []section
	routesAt place // zero: there are none
}

// The keys of lists of sections.
const (
	tokensKey       = "admin_tokens"
	destinationsKey = "destinations"
	sourcesKey      = "sources"
	routesKey       = "routes"
	toKey           = "to" // of a source
)

// file reads the file into a layer of settings and the sections.
func (l *loader) file() (global layer, destinations, sources []section) {
	if l.in.Path == "" {
		return nil, nil, nil
	}
	root, problems := parseYAML(l.in.Path, l.in.Data)
	l.problems = append(l.problems, problems...)
	if root == nil {
		return nil, nil, nil
	}
	global = layer{}
	for _, e := range root.mapping {
		switch e.key {
		case tokensKey:
			l.tokens(l.sections(e, "an admin token", "- name: ...", func(s *section, e entry) {
				collect(l, s.settings, tokenSettings, "", e)
			}))
		case destinationsKey:
			destinations = l.sections(e, "a destination", "- name: ...", func(s *section, e entry) {
				collect(l, s.settings, destinationSettings, "", e)
			})
		case sourcesKey:
			sources = l.sections(e, "a source", "- name: ...", l.sourceEntry)
		default:
			collect(l, global, settings, "", e, tokensKey, destinationsKey, sourcesKey)
		}
	}
	return global, destinations, sources
}

// sourceEntry reads one entry of a source.
func (l *loader) sourceEntry(s *section, e entry) {
	switch {
	case e.key == toKey && e.value.form == isMapping:
		s.own = &section{at: e.at, settings: layer{}}
		s.settings[toKey] = given{at: e.at}
		for _, inner := range e.value.mapping {
			l.ownEntry(s, inner)
		}
		return
	}
	switch e.key {
	case specKey:
		s.spec = e.value
	case routesKey:
		s.routesAt = e.at
		s.routes = l.sections(e, "a route", "- to: ...", func(r *section, e entry) {
			collect(l, r.settings, routeSettings, "", e)
		})
	default:
		collect(l, s.settings, sourceSettings, "", e, specKey, routesKey)
	}
}

// sections reads a list of sections, each of whose entries goes to read. what is one of them with its
// article, begin how it begins.
func (l *loader) sections(e entry, what, begin string, read func(*section, entry)) []section {
	if e.value.form != isList {
		l.fault(e.at, `%s is %s; write a list, each element beginning with "%s"`, e.key, e.value.form, begin)
		return nil
	}
	var all []section
	for _, n := range e.value.list {
		if n.form != isMapping {
			l.fault(n.at, `%s is a group of settings, not %s; write "%s" with its settings below`, what, n.form, begin)
			continue
		}
		s := section{at: n.at, settings: layer{}}
		for _, inner := range n.mapping {
			read(&s, inner)
		}
		all = append(all, s)
	}
	return all
}

// collect puts one entry of a mapping into a layer: a setting, or a group of them. prefix is the key
// of the mapping with a dot, more are keys that are read elsewhere.
func collect[C any](l *loader, into layer, fields []field[C], prefix string, e entry, more ...string) {
	key := prefix + e.key
	if f, ok := find(fields, key); ok {
		into[key] = l.texts(key, f.bind(new(C)), e)
		return
	}
	if len(parts(fields, key+".")) == 0 {
		l.unknown(e, append(parts(fields, prefix), more...), elsewhere(fields, e.key))
		return
	}
	switch e.value.form {
	case isMapping:
		for _, inner := range e.value.mapping {
			collect(l, into, fields, key+".", inner)
		}
	default:
		l.fault(e.at, "%s is %s; write its settings below it: %s", key, e.value.form, oneOf(parts(fields, key+".")))
	}
}

// unknown reports a key that is no setting here.
func (l *loader) unknown(e entry, known []string, moved string) {
	if _, near := closest.Word(e.key, known); !near && moved != "" {
		l.fault(e.at, "unknown key %q here; it is %q", e.key, moved)
		return
	}
	l.fault(e.at, "unknown key %q%s", e.key, suggest(e.key, known))
}

// elsewhere returns the full key of a setting whose last part is name, if there is exactly one.
func elsewhere[C any](fields []field[C], name string) string {
	var found string
	for _, f := range fields {
		if len(f.key) > len(name) && f.key[len(f.key)-len(name)-1:] == "."+name {
			if found != "" {
				return ""
			}
			found = f.key
		}
	}
	return found
}

// texts returns what an entry says about a setting, or nothing after reporting that it has the wrong
// form.
func (l *loader) texts(key string, v value, e entry) given {
	switch v := v.(type) {
	case pairs:
		return l.paired(key, v, e)
	case list:
		return l.listed(key, v, e)
	}
	if e.value.form != isScalar {
		l.fault(e.at, "%s is %s; write a single value after the colon", key, e.value.form)
		return given{at: e.at}
	}
	return given{at: e.at, texts: []located{{text: *e.value.scalar, at: e.value.at}}}
}

func (l *loader) listed(key string, v list, e entry) given {
	g := given{at: e.at}
	_, groups := v.(grouped)
	_, single := v.(lone)
	example := v.example()
	switch {
	case single && e.value.form == isScalar:
		g.texts = []located{{text: *e.value.scalar, at: e.value.at}}
	case e.value.form != isList:
		l.fault(e.at, `%s is %s; write a list, such as [%q]`, key, e.value.form, example)
	case len(e.value.list) == 0:
		l.fault(e.at, `%s is an empty list; write an element, such as [%q]`, key, example)
	}
	for _, n := range e.value.list {
		if groups && n.form == isMapping && len(n.mapping) > 0 {
			g.texts = append(g.texts, located{at: n.at, group: n.mapping})
			continue
		}
		if n.form != isScalar {
			l.fault(n.at, "an element of %s is %s; write a single value", key, n.form)
			continue
		}
		g.texts = append(g.texts, located{text: *n.scalar, at: n.at})
	}
	return g
}

// paired returns the texts of a group whose keys are not settings.
func (l *loader) paired(key string, v pairs, e entry) given {
	g := given{at: e.at}
	if e.value.form != isMapping || len(e.value.mapping) == 0 {
		l.fault(e.at, "%s is %s; write a group, such as {%s}", key, e.value.form, v.example())
		return g
	}
	for _, inner := range e.value.mapping {
		if inner.value.form != isScalar || inner.key == "" {
			l.fault(inner.at, "%s: %q has %s; write a single value after the colon", key, inner.key, inner.value.form)
			continue
		}
		g.texts = append(g.texts, located{text: *inner.value.scalar, key: inner.key, at: inner.at})
	}
	return g
}
