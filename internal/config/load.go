package config

import (
	"cmp"
	"slices"
	"time"

	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/specdecode"
)

// Input is everything that a configuration is read from.
type Input struct {
	// Path is the file's name as it appears in messages. Empty: there is no file, and a
	// configuration without sources is allowed.
	Path string
	// Data is the file's content.
	Data []byte
	// Environ is the environment, in the form of os.Environ.
	Environ []string
	// Flags are the flags that [Flags] declared, parsed. Nil: none.
	Flags *pflag.FlagSet
	// ReadFile reads the files that secrets refer to, as os.ReadFile does.
	ReadFile func(name string) ([]byte, error)
	// NoSecrets leaves the secrets of sources unread, for commands that only need the store: what
	// migrates a database need not hold them.
	NoSecrets bool
	// Now is the clock that tells which secrets are valid. Nil means [time.Now].
	Now func() time.Time
}

func (in Input) now() time.Time {
	if in.Now == nil {
		return time.Now()
	}
	return in.Now()
}

// Load reads a configuration: defaults, then the file, then HOOKONCE_ variables, then flags, each
// overriding what came before. An error is of type [settings.Faults] and holds every fault that was
// found.
func Load(in Input) (*Config, error) {
	l := &loader{Report: new(settings.Report), in: in, cfg: &Config{File: in.Path}}
	f := l.file()
	l.global(f)
	for _, from := range f.tokens {
		l.cfg.AdminTokens = append(l.cfg.AdminTokens, l.token(from))
	}
	for _, from := range f.cells {
		l.cfg.Cells = append(l.cfg.Cells, l.cell(from))
	}
	for _, from := range f.rules {
		l.cfg.Alerts.Rules = append(l.cfg.Alerts.Rules, l.rule(from))
	}
	for _, from := range f.channels {
		l.cfg.Notify = append(l.cfg.Notify, l.channel(from))
	}
	for _, from := range f.destinations {
		l.cfg.Destinations = append(l.cfg.Destinations, l.destination(from))
	}
	l.sources(f.sources)
	if !in.NoSecrets {
		resolveAll(l.Report, l.cfg, resolver{settings.Resolver{Environ: in.Environ, ReadFile: in.ReadFile}, &l.cfg.Inline, &l.cfg.SecretFiles})
	}
	develop(l.Report, l.cfg, in)
	checkAll(l.Report, l.cfg, in)
	l.cfg.Warnings = l.Warnings()
	if err := l.Err(); err != nil {
		return nil, err
	}
	return l.cfg, nil
}

// Outline reads only the settings outside sources and destinations, and passes over all faults. It is for
// saying what is wrong with a configuration in the way that it asks for.
func Outline(in Input) *Config {
	l := &loader{Report: new(settings.Report), in: in, cfg: new(Config)}
	l.global(l.file())
	return l.cfg
}

// loader builds a configuration out of what is written.
type loader struct {
	*settings.Report
	in  Input
	cfg *Config
}

// fileContent is what the file says.
type fileContent struct {
	global                                                settings.Layer
	tokens, cells, rules, channels, destinations, sources []section
}

// section is an element of a list in the file that has settings of its own: a token, a channel, a
// destination, a source or a route.
type section struct {
	at   settings.Place
	says settings.Layer
	// Of a source:
	spec     *settings.Node // nil: there is none
	own      *section       // the settings of its own destination; nil: it is a URL alone
	routes   []section
	routesAt settings.Place // zero: there are none
}

// file reads the file into layers of settings.
func (l *loader) file() (f fileContent) {
	if l.in.Path == "" {
		return f
	}
	root := settings.Parse(l.Report, l.in.Path, l.in.Data, specKey)
	if root == nil {
		return f
	}
	f.global = settings.Layer{}
	for _, e := range root.Mapping {
		switch e.Key {
		case tokensKey:
			f.tokens = sections(l, e, "an admin token", "- name: ...", tokenTable)
		case cellsKey:
			f.cells = sections(l, e, "a cell", "- name: ...", cellTable)
		case alertsKey:
			l.alerts(&f, e)
		case destinationsKey:
			f.destinations = sections(l, e, "a destination", "- name: ...", destinationTable)
		case sourcesKey:
			f.sources = l.sections(e, "a source", "- name: ...", l.sourceEntry)
		default:
			settings.Collect(l.Report, f.global, configTable, e, tokensKey, cellsKey, destinationsKey, sourcesKey)
		}
	}
	return f
}

// alerts reads the group of alerts: its lists, and the settings beside them.
func (l *loader) alerts(f *fileContent, e settings.Entry) {
	rest := *e.Value
	rest.Mapping = slices.DeleteFunc(slices.Clone(e.Value.Mapping), func(inner settings.Entry) bool {
		switch inner.Key {
		case notifyKey:
			f.channels = sections(l, inner, "a channel", "- name: ...", channelTable)
		case rulesKey:
			f.rules = sections(l, inner, "a rule", "- rule: ...", ruleTable)
		default:
			return false
		}
		return true
	})
	if len(rest.Mapping) < len(e.Value.Mapping) && len(rest.Mapping) == 0 {
		return
	}
	settings.Collect(l.Report, f.global, configTable, settings.Entry{Key: e.Key, At: e.At, Value: &rest}, alertsKey+"."+notifyKey, alertsKey+"."+rulesKey)
}

// sections reads a list of sections, which have the settings of a table alone.
func sections[C any](l *loader, e settings.Entry, what, begin string, t settings.Table[C]) []section {
	return l.sections(e, what, begin, func(s *section, e settings.Entry) { settings.Collect(l.Report, s.says, t, e) })
}

// sections reads a list of sections, each of whose entries goes to read. what is one of them with its
// article, begin how it begins.
func (l *loader) sections(e settings.Entry, what, begin string, read func(*section, settings.Entry)) []section {
	var all []section
	for _, n := range settings.Groups(l.Report, e, what, begin) {
		s := section{at: n.At, says: settings.Layer{}}
		for _, inner := range n.Mapping {
			read(&s, inner)
		}
		all = append(all, s)
	}
	return all
}

// sourceEntry reads one entry of a source.
func (l *loader) sourceEntry(s *section, e settings.Entry) {
	switch {
	case e.Key == toKey && e.Value.Form == settings.IsMapping:
		s.own = &section{at: e.At, says: settings.Layer{}}
		s.says[toKey] = settings.Given{At: e.At}
		for _, inner := range e.Value.Mapping {
			l.ownEntry(s, inner)
		}
	case e.Key == specKey:
		s.spec = e.Value
	case e.Key == routesKey:
		s.routesAt = e.At
		s.routes = sections(l, e, "a route", "- to: ...", routeTable)
	default:
		settings.Collect(l.Report, s.says, sourceTable, e, specKey, routesKey)
	}
}

// ownEntry reads one entry of a group to: the destination of a source with a URL of its own has the
// name of the source, and is written as the URL alone or as a group of the settings of a destination.
func (l *loader) ownEntry(s *section, e settings.Entry) {
	switch e.Key {
	case "url":
		s.says[toKey] = settings.Read(l.Report, toKey+".url", settings.URL(nil), e)
	case "name":
		l.Fault(e.At, "to.name: this destination has the name of its source; remove it, or make it one of destinations: with a route to it")
	default:
		settings.Collect(l.Report, s.own.says, destinationTable, e)
	}
}

// global sets what stands outside the lists.
func (l *loader) global(f fileContent) {
	l.cfg.origin = settings.Apply(l.Report, l.cfg, configTable, f.global,
		settings.Environment(l.in.Environ, configTable), settings.Flags(l.in.Flags, configTable))
}

func (l *loader) token(from section) AdminToken {
	t := AdminToken{at: from.at}
	t.origin = settings.Apply(l.Report, &t, tokenTable, from.says)
	return t
}

func (l *loader) destination(from section) Destination {
	d := Destination{at: from.at, Effort: l.cfg.Delivery.Effort}
	d.origin = settings.Apply(l.Report, &d, destinationTable, from.says)
	for key, g := range l.cfg.inherited() {
		if !d.origin.Has(key) {
			d.origin[key] = g
		}
	}
	return d
}

// sources builds the sources of the file and the one that the environment and the flags describe.
func (l *loader) sources(fromFile []section) {
	env, cmd := settings.Environment(l.in.Environ, sourceTable), settings.Flags(l.in.Flags, sourceTable)
	named, ok := cmd["name"]
	if !ok {
		named = env["name"]
	}
	for _, s := range fromFile {
		layers := []settings.Layer{s.says}
		if named.Text() != "" && s.says["name"].Text() == named.Text() {
			layers = append(layers, env, cmd)
			env, cmd, named = nil, nil, settings.Given{}
		}
		l.source(s, layers...)
	}
	written := slices.Concat(settings.Places(env, sourceTable), settings.Places(cmd, sourceTable))
	switch {
	case len(written) == 0:
	case len(fromFile) == 0:
		at := written[0]
		if len(named.Texts) > 0 {
			at = named.At
		}
		assumed := developmentSource(env, cmd)
		l.cfg.Development = assumed != nil
		l.source(section{at: at}, assumed, env, cmd)
	case len(named.Texts) > 0:
		l.source(section{at: named.At}, env, cmd)
	default:
		for _, at := range written {
			l.Fault(at, "this describes a source, but not which of those in %s; add --source or HOOKONCE_SOURCE with its name, or with a new one", l.in.Path)
		}
	}
}

// source builds one source from its layers.
func (l *loader) source(from section, layers ...settings.Layer) {
	s := Source{at: from.at}
	s.origin = settings.Apply(l.Report, &s, sourceTable, layers...)
	l.own(&s, from.own)
	l.specification(&s, from.spec)
	if from.routesAt != (settings.Place{}) {
		s.origin[routesKey] = settings.Given{At: from.routesAt}
	}
	for _, says := range from.routes {
		r := Route{at: says.at}
		r.origin = settings.Apply(l.Report, &r, routeTable, says.says)
		s.Routes = append(s.Routes, r)
	}
	l.cfg.Sources = append(l.cfg.Sources, s)
}

// own builds the destination of a source from a group to.
func (l *loader) own(s *Source, from *section) {
	if from == nil {
		return
	}
	d := l.destination(*from)
	if !d.origin.Has("sign_as") {
		d.SignAs = SignProvider
	}
	s.own = &d
	for _, key := range appKeys {
		if d.origin.Has(key) && s.has(key) {
			l.Fault(s.where(key), "%s: it is written below to: as well, at %s; keep one of them", key, d.where(key))
		}
	}
	if s.Mode == Idempotent {
		l.Fault(from.at, "to: source %q has mode: idempotency, and forwards requests as they are; write the URL alone", s.Name)
	} else if len(s.origin[toKey].Texts) == 0 {
		l.Fault(from.at, "to: a destination lacks its url; write url: and a value such as https://shop.internal/hooks")
	}
}

// specification reads the specification of a source from the file. It is no setting of the table: a
// flag has no room for it.
func (l *loader) specification(s *Source, n *settings.Node) {
	if n == nil {
		return
	}
	s.origin[specKey], s.specNode = settings.Given{At: n.At}, n
	if n.Raw == nil {
		l.Fault(n.At, "spec: is %s; write the specification below it, beginning with verify", n.Form)
		return
	}
	parsed, err := specdecode.Decode(n.Raw)
	if err != nil {
		specFaults(l.Report, s, err)
		return
	}
	parsed.Name = cmp.Or(parsed.Name, s.Name)
	s.Spec = &parsed
}
