package settings

import (
	"strings"

	"github.com/spf13/pflag"
)

// Declare declares a flag for every setting. [Flags] returns their values.
func Declare[C any](fs *pflag.FlagSet, t Table[C]) {
	for _, f := range t {
		v := f.Bind(new(C))
		_, many := v.(List)
		_, truth := v.(boolean)
		flag := fs.VarPF(&flagValue{def: f.Default, many: many}, f.FlagName(), "", f.Help)
		if truth {
			flag.NoOptDefVal = "true"
		}
	}
}

// flagValue keeps what was given on the command line.
type flagValue struct {
	texts []string
	def   string
	many  bool
}

// Set implements [pflag.Value].
func (v *flagValue) Set(s string) error {
	if !v.many {
		v.texts = nil
	}
	v.texts = append(v.texts, s)
	return nil
}

// String implements [pflag.Value].
func (v *flagValue) String() string {
	if len(v.texts) == 0 {
		return v.def
	}
	return strings.Join(v.texts, " ")
}

// Type makes help texts quote the default.
func (v *flagValue) Type() string { return "string" }

// Flags returns what the command line says: the flags that [Declare] declared, parsed. A nil set says
// nothing.
func Flags[C any](fs *pflag.FlagSet, t Table[C]) Layer {
	from := Layer{}
	if fs == nil {
		return from
	}
	for _, f := range t {
		flag := fs.Lookup(f.FlagName())
		if flag == nil || !flag.Changed {
			continue
		}
		if v, ok := flag.Value.(*flagValue); ok {
			from[f.Key] = givenAt("--"+f.FlagName(), v.texts)
		}
	}
	return from
}
