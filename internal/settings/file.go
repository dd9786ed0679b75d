package settings

import (
	"strings"

	"github.com/hookonce/hookonce/internal/closest"
)

// Collect puts one entry of a mapping of the file into a layer: a setting, or a group of them. besides
// are the keys that are read elsewhere, those in groups with the group's before a dot.
func Collect[C any](r *Report, into Layer, t Table[C], e Entry, besides ...string) {
	collect(r, into, t, "", e, besides...)
}

// collect is [Collect] below a group: prefix is its key with a dot.
func collect[C any](r *Report, into Layer, t Table[C], prefix string, e Entry, besides ...string) {
	key := prefix + e.Key
	if f, ok := t.Find(key); ok {
		into[key] = Read(r, key, f.Bind(new(C)), e)
		return
	}
	if len(t.below(key+".")) == 0 {
		unknown(r, e, append(t.below(prefix), within(prefix, besides)...), t.elsewhere(e.Key))
		return
	}
	if e.Value.Form != IsMapping {
		r.Fault(e.At, "%s is %s; write its settings below it: %s", key, e.Value.Form, oneOf(t.below(key+".")))
		return
	}
	for _, inner := range e.Value.Mapping {
		collect(r, into, t, key+".", inner, besides...)
	}
}

// within returns those of the keys that may stand directly below prefix, without it.
func within(prefix string, keys []string) (names []string) {
	for _, key := range keys {
		if name, ok := strings.CutPrefix(key, prefix); ok && !strings.Contains(name, ".") {
			names = append(names, name)
		}
	}
	return names
}

// unknown reports a key that is no setting here.
func unknown(r *Report, e Entry, known []string, moved string) {
	if _, near := closest.Word(e.Key, known); !near && moved != "" {
		r.Fault(e.At, "unknown key %q here; it is %q", e.Key, moved)
		return
	}
	r.Fault(e.At, "unknown key %q%s", e.Key, Suggest(e.Key, known))
}

// Groups returns the elements of a list of groups of settings, and reports what is none. what is one of
// them with its article, begin how it begins.
func Groups(r *Report, e Entry, what, begin string) []*Node {
	if e.Value.Form != IsList {
		r.Fault(e.At, `%s is %s; write a list, each element beginning with "%s"`, e.Key, e.Value.Form, begin)
		return nil
	}
	var all []*Node
	for _, n := range e.Value.List {
		if n.Form != IsMapping {
			r.Fault(n.At, `%s is a group of settings, not %s; write "%s" with its settings below`, what, n.Form, begin)
			continue
		}
		all = append(all, n)
	}
	return all
}

// Read returns what an entry says about a setting, or nothing after reporting that it has the wrong
// form.
func Read(r *Report, key string, v Value, e Entry) Given {
	switch v := v.(type) {
	case Pairs:
		return readPairs(r, key, v, e)
	case List:
		return readList(r, key, v, e)
	}
	if e.Value.Form != IsScalar {
		r.Fault(e.At, "%s is %s; write a single value after the colon", key, e.Value.Form)
		return Given{At: e.At}
	}
	return Given{At: e.At, Texts: []Written{{Text: *e.Value.Scalar, At: e.Value.At}}}
}

func readList(r *Report, key string, v List, e Entry) Given {
	g := Given{At: e.At}
	_, groups := v.(grouped)
	_, single := v.(lone)
	example := v.Example()
	switch {
	case single && e.Value.Form == IsScalar:
		g.Texts = []Written{{Text: *e.Value.Scalar, At: e.Value.At}}
	case e.Value.Form != IsList:
		r.Fault(e.At, `%s is %s; write a list, such as [%q]`, key, e.Value.Form, example)
	case len(e.Value.List) == 0:
		r.Fault(e.At, `%s is an empty list; write an element, such as [%q]`, key, example)
	}
	for _, n := range e.Value.List {
		if groups && n.Form == IsMapping && len(n.Mapping) > 0 {
			g.Texts = append(g.Texts, Written{At: n.At, group: n.Mapping})
			continue
		}
		if n.Form != IsScalar {
			quote := ""
			if n.Form == IsMapping {
				quote = ", in quotes if it has a colon"
			}
			r.Fault(n.At, "an element of %s is %s; write a single value%s", key, n.Form, quote)
			continue
		}
		g.Texts = append(g.Texts, Written{Text: *n.Scalar, At: n.At})
	}
	return g
}

// readPairs returns the texts of a group whose keys are not settings.
func readPairs(r *Report, key string, v Pairs, e Entry) Given {
	g := Given{At: e.At}
	if e.Value.Form != IsMapping || len(e.Value.Mapping) == 0 {
		r.Fault(e.At, "%s is %s; write a group, such as {%s}", key, e.Value.Form, v.Example())
		return g
	}
	for _, inner := range e.Value.Mapping {
		if inner.Value.Form != IsScalar || inner.Key == "" {
			r.Fault(inner.At, "%s: %q has %s; write a single value after the colon", key, inner.Key, inner.Value.Form)
			continue
		}
		g.Texts = append(g.Texts, Written{Text: *inner.Value.Scalar, Key: inner.Key, At: inner.At})
	}
	return g
}
