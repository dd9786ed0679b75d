package settings

import (
	"fmt"
	"strings"
)

// Printer writes settings as a file, line by line, each with where it came from. The zero Printer is
// empty.
type Printer struct {
	b      strings.Builder
	indent string
	bullet string // replaces the indent of the next line
	within string // the group that the last line belongs to
}

// String returns what was printed.
func (p *Printer) String() string { return p.b.String() }

// Print writes the settings of c: those that were written, and those that have a default which counts.
func Print[C any](p *Printer, c *C, t Table[C], origin Layer) {
	p.within = ""
	for _, f := range t {
		g, written := origin[f.Key]
		from := g.At.String()
		if !written {
			if f.Default == "" || f.For != nil && !f.For(c) {
				continue
			}
			from = "default"
		}
		p.setting(f.Key, shown(f.Bind(c)), from)
	}
}

func (p *Printer) setting(key, shown, from string) {
	outer, inner, nested := strings.Cut(key, ".")
	if !nested {
		p.Line(key+": "+shown, from)
		return
	}
	if outer != p.within {
		p.Line(outer+":", "")
	}
	p.within = outer
	p.deeper("  ", func() { p.Line(inner+": "+shown, from) })
}

// Line writes one line, and where it came from, unless that is empty.
func (p *Printer) Line(text, from string) {
	indent, width := p.indent, 42-len(p.indent)
	if p.bullet != "" {
		indent, p.bullet = p.bullet, ""
	}
	if from != "" {
		text = fmt.Sprintf("%-*s # %s", width, text, from)
	}
	p.b.WriteString(indent + text + "\n")
}

// Group writes a key, where it came from unless that is empty, and below it what inner writes.
func (p *Printer) Group(key, from string, inner func()) {
	p.Line(key+":", from)
	p.deeper("  ", inner)
}

// List writes a key, and below it n elements, each of which element writes; nothing if there are none.
func (p *Printer) List(key string, n int, element func(i int)) {
	if n > 0 {
		p.Line(key+":", "")
	}
	for i := range n {
		p.deeper("    ", func() {
			p.bullet = p.indent[:len(p.indent)-2] + "- "
			element(i)
		})
	}
}

// Within writes below a group what inner writes: below the last group that [Print] wrote if that is the one, else below a new one.
func (p *Printer) Within(group string, inner func()) {
	if p.within != group {
		p.Line(group+":", "")
	}
	p.within = group
	p.deeper("  ", inner)
}

// deeper indents what inner writes.
func (p *Printer) deeper(by string, inner func()) {
	outer := p.indent
	p.indent += by
	inner()
	p.indent = outer
}

// shown returns a value as it stands in YAML.
func shown(v Value) string {
	switch v := v.(type) {
	case Pairs:
		return "{" + strings.Join(v.Items(), ", ") + "}"
	case List:
		return "[" + strings.Join(v.Items(), ", ") + "]"
	}
	return quote(v.Show())
}
