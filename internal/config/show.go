package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Show returns the whole configuration as a file, each setting with where it came from. Secrets that
// are references appear as such; literal secrets and passwords are masked.
func (c *Config) Show() string {
	var b strings.Builder
	p := printer{b: &b}
	group(&p, c, settings, c.origin)
	if len(c.Sources) == 0 {
		return b.String()
	}
	b.WriteString("sources:\n")
	for i := range c.Sources {
		p.indent, p.bullet = "    ", "  - "
		group(&p, &c.Sources[i], sourceSettings, c.Sources[i].origin)
	}
	return b.String()
}

// printer writes settings line by line.
type printer struct {
	b      *strings.Builder
	indent string
	bullet string // replaces the indent of the next line
	within string // the group that the last line belongs to
}

func group[C any](p *printer, c *C, fields []field[C], origin layer) {
	p.within = ""
	for _, f := range fields {
		g, isSet := origin[f.key]
		if !isSet && f.def == "" {
			continue
		}
		from := "default"
		if isSet {
			from = g.at.String()
		}
		p.setting(f.key, shown(f.bind(c)), from)
	}
}

func (p *printer) setting(key, shown, from string) {
	indent := p.indent
	if outer, inner, nested := strings.Cut(key, "."); nested {
		if outer != p.within {
			p.line(indent, outer+":")
		}
		p.within, key, indent = outer, inner, indent+"  "
	}
	width := 42 - len(indent)
	p.line(indent, fmt.Sprintf("%-*s # %s", width, key+": "+shown, from))
}

func (p *printer) line(indent, text string) {
	if p.bullet != "" {
		indent, p.bullet = p.bullet, ""
	}
	p.b.WriteString(indent + text + "\n")
}

// shown returns a value as it stands in YAML.
func shown(v value) string {
	many, ok := v.(list)
	if !ok {
		return yamlText(v.show())
	}
	items := many.items()
	for i := range items {
		items[i] = yamlText(items[i])
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// plainText is what YAML reads as itself without quotes.
var plainText = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9/._=?&+~-]*(:[A-Za-z0-9/._=?&+~-]+)*$`)

func yamlText(s string) string {
	if plainText.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}
