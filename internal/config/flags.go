package config

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// Flags declares a flag for every setting. Their values are read by [Load], which also reports what
// is wrong with them.
func Flags(fs *pflag.FlagSet) {
	declare(fs, settings)
	declare(fs, sourceSettings)
}

// StoreFlags declares the flags of the settings that say where the tables are: store and schema.
func StoreFlags(fs *pflag.FlagSet) {
	declare(fs, slices.DeleteFunc(slices.Clone(settings), func(f field[Config]) bool {
		return f.key != "store" && f.key != "schema"
	}))
}

func declare[C any](fs *pflag.FlagSet, fields []field[C]) {
	for _, f := range fields {
		v := f.bind(new(C))
		_, many := v.(list)
		_, truth := v.(boolean)
		flag := fs.VarPF(&flagValue{def: f.def, many: many}, f.flagName(), "", f.help)
		if truth {
			flag.NoOptDefVal = "true"
		}
	}
}

// flagValue keeps what was given on the command line for Load to read.
type flagValue struct {
	texts []string
	def   string
	many  bool
}

func (v *flagValue) Set(s string) error {
	if !v.many {
		v.texts = nil
	}
	v.texts = append(v.texts, s)
	return nil
}

func (v *flagValue) String() string {
	if len(v.texts) == 0 {
		return v.def
	}
	return strings.Join(v.texts, " ")
}

// Type makes help texts quote the default.
func (v *flagValue) Type() string { return "string" }

// flags returns what the command line says.
func flags[C any](in Input, fields []field[C]) layer {
	from := layer{}
	if in.Flags == nil {
		return from
	}
	for _, f := range fields {
		flag := in.Flags.Lookup(f.flagName())
		if flag == nil || !flag.Changed {
			continue
		}
		if v, ok := flag.Value.(*flagValue); ok {
			from[f.key] = givenAt("--"+f.flagName(), v.texts)
		}
	}
	return from
}

// environment returns what the HOOKONCE_ variables say. Several secrets are separated by spaces.
func environment[C any](in Input, fields []field[C]) layer {
	from := layer{}
	for _, f := range fields {
		s, ok := in.env(f.envName())
		if !ok {
			continue
		}
		texts := []string{s}
		if _, many := f.bind(new(C)).(list); many && strings.TrimSpace(s) != "" {
			texts = strings.Fields(s)
		}
		from[f.key] = givenAt(f.envName(), texts)
	}
	return from
}

func givenAt(name string, texts []string) given {
	g := given{at: place{name: name}}
	for _, t := range texts {
		g.texts = append(g.texts, located{text: t, at: g.at})
	}
	return g
}
