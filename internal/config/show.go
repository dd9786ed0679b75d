package config

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/provider/spec"
)

// Show returns the whole configuration as a file, each setting with where it came from. Secrets that
// are references appear as such; literal secrets and passwords are masked.
func (c *Config) Show() string {
	var b strings.Builder
	p := printer{b: &b}
	group(&p, c, settings, c.origin)
	p.heading("", tokensKey, len(c.AdminTokens))
	for i := range c.AdminTokens {
		p.indent, p.bullet = "    ", "  - "
		group(&p, &c.AdminTokens[i], tokenSettings, c.AdminTokens[i].origin)
	}
	p.heading("", destinationsKey, len(c.Destinations))
	for i := range c.Destinations {
		p.indent, p.bullet = "    ", "  - "
		group(&p, &c.Destinations[i], destinationSettings, c.Destinations[i].origin)
	}
	p.heading("", sourcesKey, len(c.Sources))
	for i := range c.Sources {
		p.indent, p.bullet = "    ", "  - "
		p.source(&c.Sources[i])
		p.routes(c.Sources[i].Routes)
		p.specification(&c.Sources[i])
	}
	return b.String()
}

// heading begins a list, unless it is empty.
func (p *printer) heading(indent, key string, n int) {
	if n > 0 {
		p.line(indent, key+":")
	}
}

// source writes the settings of a source. Those of its own destination stand below to.
func (p *printer) source(s *Source) {
	if s.own == nil {
		group(p, s, sourceSettings, s.origin)
		return
	}
	group(p, s, slices.DeleteFunc(slices.Clone(sourceSettings), func(f field[Source]) bool { return f.key == toKey }), s.origin)
	outer := p.indent
	p.line(outer, toKey+":")
	p.indent += "  "
	own := s.destination()
	group(p, &own, destinationSettings[1:], own.origin)
	p.indent = outer
}

// routes writes those of a source.
func (p *printer) routes(all []Route) {
	p.heading(p.indent, routesKey, len(all))
	outer := p.indent
	for i := range all {
		p.indent, p.bullet = outer+"    ", outer+"  - "
		group(p, &all[i], routeSettings, all[i].origin)
	}
	p.indent = outer
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

// specification writes the one of a custom provider.
func (p *printer) specification(s *Source) {
	if s.Spec == nil {
		return
	}
	text, err := spec.Marshal(*s.Spec)
	if err != nil { // what was read from YAML has a form in it
		return
	}
	p.line(p.indent, fmt.Sprintf("%-*s # %s", 42-len(p.indent), specKey+":", s.where(specKey)))
	for line := range strings.Lines(string(text)) {
		p.line(p.indent+"  ", strings.TrimSuffix(line, "\n"))
	}
}

// shown returns a value as it stands in YAML.
func shown(v value) string {
	switch v := v.(type) {
	case pairs:
		return "{" + strings.Join(v.items(), ", ") + "}"
	case list:
		return "[" + strings.Join(v.items(), ", ") + "]"
	}
	return yamlText(v.show())
}

// plainText is what YAML reads as itself without quotes.
var plainText = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9/._=?&+~-]*(:[A-Za-z0-9/._=?&+~-]+)*$`)

func yamlText(s string) string {
	if plainText.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

// yamlPair returns a key and its value as they stand in a group. A colon in a key needs quotes.
func yamlPair(key, text string) string {
	if strings.Contains(key, ":") {
		return strconv.Quote(key) + ": " + yamlText(text)
	}
	return yamlText(key) + ": " + yamlText(text)
}
