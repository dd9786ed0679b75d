package settings

import "strings"

// Layer is what one place of configuration says (the file, the environment, the flags), by key; or of
// all of them together where each setting that was written comes from: its origin.
type Layer map[string]Given

// Given is what a layer says about one setting: one text, several for a list, none if what stands
// there has the wrong form and is reported already.
type Given struct {
	At    Place
	Texts []Written
}

// Written is a text with its place and, in a group whose keys are not settings, its key; or a group of
// settings in its place.
type Written struct {
	Text  string
	Key   string
	At    Place
	group []Entry
}

// Assume returns a setting that has a text which nobody wrote.
func Assume(at Place, text string) Given {
	return Given{At: at, Texts: []Written{{Text: text, At: at}}}
}

// givenAt returns what a variable or a flag says.
func givenAt(name string, texts []string) Given {
	g := Given{At: Place{Name: name}}
	for _, t := range texts {
		g.Texts = append(g.Texts, Written{Text: t, At: g.At})
	}
	return g
}

// Text returns the only text of a setting that is no list, and nothing if it is not written.
func (g Given) Text() string {
	if len(g.Texts) == 0 {
		return ""
	}
	return g.Texts[0].Text
}

// Has reports whether the setting was written anywhere, rightly or wrongly.
func (l Layer) Has(key string) bool {
	_, ok := l[key]
	return ok
}

// Where returns the place of the first of the settings that was written, and otherwise if none was.
func (l Layer) Where(otherwise Place, keys ...string) Place {
	for _, key := range keys {
		if g, ok := l[key]; ok {
			return g.At
		}
	}
	return otherwise
}

// Element returns where the i-th text of a setting was written.
func (l Layer) Element(key string, i int) Place {
	if g := l[key]; i < len(g.Texts) {
		return g.Texts[i].At
	}
	return l[key].At
}

// Within returns where the first setting of a group ("retention.") was written, in the order of the
// table, and whether one was.
func Within[C any](l Layer, t Table[C], group string) (Place, bool) {
	for _, f := range t {
		if g, ok := l[f.Key]; ok && strings.HasPrefix(f.Key, group) {
			return g.At, true
		}
	}
	return Place{}, false
}

// Places returns where the settings of a layer were written, in the order of the table.
func Places[C any](l Layer, t Table[C]) []Place {
	var all []Place
	for _, f := range t {
		if g, ok := l[f.Key]; ok {
			all = append(all, g.At)
		}
	}
	return all
}

// Apply sets the fields of c to their defaults and then from the layers, the later ones winning, and
// returns where each setting came from. Faults are reported even in what a later layer overrides.
func Apply[C any](r *Report, c *C, t Table[C], layers ...Layer) Layer {
	origin := Layer{}
	for _, f := range t {
		f.reset(c)
		for _, from := range layers {
			if g, ok := from[f.Key]; ok {
				Set(r, c, f, g)
				origin[f.Key] = g
			}
		}
	}
	return origin
}

// Set gives one field of c its texts.
func Set[C any](r *Report, c *C, f Field[C], g Given) {
	v := f.Bind(c)
	if many, ok := v.(List); ok {
		many.Clear()
	}
	for _, t := range g.Texts {
		var err error
		switch {
		case t.group != nil:
			v.(grouped).setGroup(r, f.Key, t)
		case t.Key != "":
			err = v.(Pairs).SetPair(t.Key, t.Text)
		default:
			err = v.Set(t.Text)
		}
		if err != nil {
			r.Fault(t.At, "%s: %v", f.Key, err)
		}
	}
}

// grouped is a list whose elements may be groups of settings.
type grouped interface {
	List
	setGroup(r *Report, key string, from Written)
}
