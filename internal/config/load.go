package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"
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

func (in Input) env(name string) (string, bool) { return lookup(in.Environ, name) }

// Lookup returns a variable of an environment in the form of os.Environ, empty if it is not set. The
// last of several counts, as in os/exec.
func Lookup(environ []string, name string) string {
	value, _ := lookup(environ, name)
	return value
}

func lookup(environ []string, name string) (string, bool) {
	for _, kv := range slices.Backward(environ) {
		if key, value, ok := strings.Cut(kv, "="); ok && key == name {
			return value, true
		}
	}
	return "", false
}

// Load reads a configuration: defaults, then the file, then HOOKONCE_ variables, then flags, each
// overriding what came before. An error is of type [Problems] and holds every fault that was found.
func Load(in Input) (*Config, error) {
	l := &loader{in: in, cfg: new(Config)}
	global, destinations, sources := l.file()
	l.cfg.origin = apply(l, l.cfg, settings, global, environment(in, settings), flags(in, settings))
	for _, d := range destinations {
		l.destination(d)
	}
	l.sources(sources)
	l.develop()
	l.check()
	if len(l.problems) > 0 {
		return nil, l.problems.sorted()
	}
	return l.cfg, nil
}

// Outline reads only the settings outside sources and destinations, and passes over all faults. It is for
// saying what is wrong with a configuration in the way that it asks for.
func Outline(in Input) *Config {
	l := &loader{in: in, cfg: new(Config)}
	global, _, _ := l.file()
	l.cfg.origin = apply(l, l.cfg, settings, global, environment(in, settings), flags(in, settings))
	return l.cfg
}

// loader gathers a configuration and what is wrong with it.
type loader struct {
	in       Input
	cfg      *Config
	problems Problems
}

func (l *loader) fault(at place, format string, args ...any) {
	l.problems = append(l.problems, Problem{at, fmt.Sprintf(format, args...)})
}

func (l *loader) warn(at place, format string, args ...any) {
	l.cfg.Warnings = append(l.cfg.Warnings, Problem{at, fmt.Sprintf(format, args...)}.Error())
}

// given is what one layer says about one setting: one text, several for a list, none if what stands
// there has the wrong form and is reported already.
type given struct {
	at    place
	texts []located
	node  *node // of a specification, which has a grammar of its own
}

// located is a text with its place and, in a group whose keys are not settings, its key; or a group of
// settings in its place.
type located struct {
	text  string
	key   string
	at    place
	group []entry
}

// layer is what one place of configuration says, by key.
type layer map[string]given

// apply sets the fields of c from the layers, the later ones winning, and returns where each setting
// came from. Faults are reported even in what a later layer overrides.
func apply[C any](l *loader, c *C, fields []field[C], layers ...layer) layer {
	origin := layer{}
	for _, f := range fields {
		f.reset(c)
		for _, from := range layers {
			if g, ok := from[f.key]; ok {
				set(l, f.bind(c), f.key, g)
				origin[f.key] = g
			}
		}
	}
	return origin
}

// set gives one value its texts.
func set(l *loader, v value, key string, g given) {
	if many, ok := v.(list); ok {
		many.clear()
	}
	for _, t := range g.texts {
		var err error
		switch {
		case t.group != nil:
			v.(grouped).setGroup(l, key, t)
		case t.key != "":
			err = v.(pairs).setPair(t.key, t.text)
		default:
			err = v.set(t.text)
		}
		if err != nil {
			l.fault(t.at, "%s: %v", key, err)
		}
	}
}

// sources builds the sources of the file and the one that the environment and the flags describe.
func (l *loader) sources(fromFile []section) {
	env, cmd := environment(l.in, sourceSettings), flags(l.in, sourceSettings)
	named, ok := cmd["name"]
	if !ok {
		named = env["name"]
	}
	for _, s := range fromFile {
		layers := []layer{s.settings}
		if named.text() != "" && s.settings["name"].text() == named.text() {
			layers = append(layers, env, cmd)
			env, cmd, named = nil, nil, given{}
		}
		l.source(s, layers...)
	}
	written := slices.Concat(places(env), places(cmd))
	switch {
	case len(written) == 0:
	case len(fromFile) == 0:
		at := written[0]
		if len(named.texts) > 0 {
			at = named.at
		}
		l.source(section{at: at}, l.development(env, cmd), env, cmd)
	case len(named.texts) > 0:
		l.source(section{at: named.at}, env, cmd)
	default:
		for _, at := range written {
			l.fault(at, "this describes a source, but not which of those in %s; add --source or HOOKONCE_SOURCE with its name, or with a new one", l.in.Path)
		}
	}
}

// text returns the only text of a setting that is no list.
func (g given) text() string {
	if len(g.texts) == 0 {
		return ""
	}
	return g.texts[0].text
}

// places returns where the settings of a layer were written, in the order of the table.
func places(from layer) []place {
	var all []place
	for _, f := range sourceSettings {
		if g, ok := from[f.key]; ok {
			all = append(all, g.at)
		}
	}
	return all
}

// source builds one source from its layers and resolves its secrets, unless nobody needs them.
func (l *loader) source(from section, layers ...layer) {
	s := Source{at: from.at}
	s.origin = apply(l, &s, sourceSettings, layers...)
	l.own(&s, from.own)
	l.specification(&s, from.spec)
	l.routes(&s, from)
	if !l.in.NoSecrets {
		l.resolve(&s)
	}
	l.cfg.Sources = append(l.cfg.Sources, s)
}

func (l *loader) resolve(s *Source) {
	for i := range s.Secrets {
		if err := s.Secrets[i].resolve(l.in); err != nil {
			l.fault(s.origin.element("secrets", i), "secrets: %v", err)
		}
	}
	if err := s.Token.resolve(l.in); err != nil {
		l.fault(s.where("token"), "token: %v", err)
	}
	if err := s.AppSecret.resolve(l.in); err != nil {
		l.fault(s.where("app_secret"), "app_secret: %v", err)
	}
}

// routes builds the routes of a source.
func (l *loader) routes(s *Source, from section) {
	if from.routesAt != (place{}) {
		s.origin[routesKey] = given{at: from.routesAt}
	}
	for _, says := range from.routes {
		r := Route{at: says.at}
		r.origin = apply(l, &r, routeSettings, says.settings)
		s.Routes = append(s.Routes, r)
	}
}

// element returns where the i-th text of a setting was written.
func (o layer) element(key string, i int) place {
	if g := o[key]; i < len(g.texts) {
		return g.texts[i].at
	}
	return o[key].at
}
