package config

// fileSource is one element of sources in the file.
type fileSource struct {
	at       place
	settings layer
	spec     *node // nil: there is none
}

// file reads the file into a layer of settings and one for each source.
func (l *loader) file() (layer, []fileSource) {
	if l.in.Path == "" {
		return nil, nil
	}
	root, problems := parseYAML(l.in.Path, l.in.Data)
	l.problems = append(l.problems, problems...)
	if root == nil {
		return nil, nil
	}
	global := layer{}
	var sources []fileSource
	for _, e := range root.mapping {
		if e.key == "sources" {
			sources = l.fileSources(e)
			continue
		}
		collect(l, global, settings, "", e, "sources")
	}
	return global, sources
}

// fileSources reads the list under the key sources.
func (l *loader) fileSources(e entry) []fileSource {
	if e.value.form != isList {
		l.fault(e.at, `sources is %s; write a list, each element beginning with "- name: ..."`, e.value.form)
		return nil
	}
	var sources []fileSource
	for _, n := range e.value.list {
		if n.form != isMapping {
			l.fault(n.at, `a source is a group of settings, not %s; write "- name: ..." with its settings below`, n.form)
			continue
		}
		s := fileSource{at: n.at, settings: layer{}}
		for _, e := range n.mapping {
			if e.key == specKey {
				s.spec = e.value
				continue
			}
			collect(l, s.settings, sourceSettings, "", e, specKey)
		}
		sources = append(sources, s)
	}
	return sources
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
	if _, near := Closest(e.key, known); !near && moved != "" {
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
	if many, ok := v.(list); ok {
		return l.listed(key, many, e)
	}
	if e.value.form != isScalar {
		l.fault(e.at, "%s is %s; write a single value after the colon", key, e.value.form)
		return given{at: e.at}
	}
	return given{e.at, []located{{text: *e.value.scalar, at: e.value.at}}}
}

func (l *loader) listed(key string, v list, e entry) given {
	g := given{at: e.at}
	_, groups := v.(grouped)
	example := v.example()
	switch {
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
