package settings

import (
	"slices"
	"strings"
)

// Field declares one setting of a C. Everything that depends on a setting's name follows from Key:
// "delivery.timeout" is the key timeout inside delivery in the file, --delivery-timeout on the command
// line and HOOKONCE_DELIVERY_TIMEOUT in the environment.
type Field[C any] struct {
	// Key is the name, with that of the group before a dot.
	Key string
	// Flag is the name of the flag where it differs from what follows from Key.
	Flag string
	// Default is the value of a setting that is written nowhere, as a user writes it. Empty: the zero
	// value, which is not shown.
	Default string
	// Help is one sentence fragment; a word in `backquotes` stands for the value in help texts.
	Help string
	// Bind returns the value in a C, with its kind and its bounds.
	Bind func(*C) Value
	// Restart is set if a change takes a new process: a reload refuses it. All else it applies.
	Restart bool
	// For reports whether a C has a use for the setting, so that its default is shown. Nil: every C has.
	For func(*C) bool
}

// envPrefix is the beginning of the environment variable of every setting.
const envPrefix = "HOOKONCE_"

// FlagName returns the flag without its dashes.
func (f Field[C]) FlagName() string {
	if f.Flag != "" {
		return f.Flag
	}
	return strings.NewReplacer(".", "-", "_", "-").Replace(f.Key)
}

// EnvName returns the environment variable.
func (f Field[C]) EnvName() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.FlagName(), "-", "_"))
}

// reset gives c the default. A default that its own value refuses is a mistake in the table, found
// by the first test that runs.
func (f Field[C]) reset(c *C) {
	if f.Default == "" {
		return
	}
	if err := f.Bind(c).Set(f.Default); err != nil {
		panic("settings: default of " + f.Key + ": " + err.Error())
	}
}

// Table declares the settings of a C, each once.
type Table[C any] []Field[C]

// Nest returns the settings of a part of C, as settings of C. what is done to each of them before.
func Nest[C, Part any](part Table[Part], in func(*C) *Part, each func(*Field[C])) Table[C] {
	nested := make(Table[C], len(part))
	for i, f := range part {
		nested[i] = Field[C]{Key: f.Key, Flag: f.Flag, Default: f.Default, Help: f.Help, Restart: f.Restart,
			Bind: func(c *C) Value { return f.Bind(in(c)) }}
		each(&nested[i])
	}
	return nested
}

// Reset gives c every default. Lists must be empty before.
func (t Table[C]) Reset(c *C) {
	for _, f := range t {
		f.reset(c)
	}
}

// Find returns the field with the given key.
func (t Table[C]) Find(key string) (Field[C], bool) {
	if i := slices.IndexFunc(t, func(f Field[C]) bool { return f.Key == key }); i >= 0 {
		return t[i], true
	}
	return Field[C]{}, false
}

// Without returns the table without the fields of the given keys.
func (t Table[C]) Without(keys ...string) Table[C] {
	return slices.DeleteFunc(slices.Clone(t), func(f Field[C]) bool { return slices.Contains(keys, f.Key) })
}

// Only returns the fields of the given keys.
func (t Table[C]) Only(keys ...string) Table[C] {
	return slices.DeleteFunc(slices.Clone(t), func(f Field[C]) bool { return !slices.Contains(keys, f.Key) })
}

// Variables returns the environment variables of the settings.
func (t Table[C]) Variables() []string {
	all := make([]string, len(t))
	for i, f := range t {
		all[i] = f.EnvName()
	}
	return all
}

// below returns the keys that may stand in the file directly below prefix ("" or "delivery.").
func (t Table[C]) below(prefix string) []string {
	var names []string
	for _, f := range t {
		rest, ok := strings.CutPrefix(f.Key, prefix)
		if !ok {
			continue
		}
		if name, _, _ := strings.Cut(rest, "."); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// elsewhere returns the full key of a setting whose last part is name, if there is exactly one.
func (t Table[C]) elsewhere(name string) string {
	var found string
	for _, f := range t {
		if strings.HasSuffix(f.Key, "."+name) {
			if found != "" {
				return ""
			}
			found = f.Key
		}
	}
	return found
}
