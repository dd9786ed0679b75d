package config

import "strings"

// field declares one setting of a C. Everything that depends on a setting's name follows from key:
// "delivery.timeout" is the key timeout inside delivery in the file, --delivery-timeout on the
// command line and HOOKONCE_DELIVERY_TIMEOUT in the environment.
type field[C any] struct {
	key  string
	flag string // where it differs from what follows from key
	def  string // the default in the form a user writes it; empty: unset
	help string // one sentence fragment; a word in `backquotes` stands for the value in help texts
	bind func(*C) value
	// restart is set if a change takes a new process: a reload refuses it. All else it applies.
	restart bool
}

// flagName returns the flag without its dashes.
func (f field[C]) flagName() string {
	if f.flag != "" {
		return f.flag
	}
	return strings.NewReplacer(".", "-", "_", "-").Replace(f.key)
}

// envName returns the environment variable.
func (f field[C]) envName() string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(f.flagName(), "-", "_"))
}

const envPrefix = "HOOKONCE_"

// reset gives c the default. A default that its own value refuses is a mistake in the table, found
// by the first test that runs.
func (f field[C]) reset(c *C) {
	if f.def == "" {
		return
	}
	if err := f.bind(c).set(f.def); err != nil {
		panic("config: default of " + f.key + ": " + err.Error())
	}
}

// parts returns the keys that may stand in the file directly below prefix ("" or "delivery.").
func parts[C any](fields []field[C], prefix string) []string {
	var names []string
	seen := map[string]bool{}
	for _, f := range fields {
		rest, ok := strings.CutPrefix(f.key, prefix)
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(rest, ".")
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return names
}

// find returns the field with the given key.
func find[C any](fields []field[C], key string) (field[C], bool) {
	for _, f := range fields {
		if f.key == key {
			return f, true
		}
	}
	return field[C]{}, false
}
