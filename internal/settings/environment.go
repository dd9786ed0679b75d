package settings

import (
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/closest"
)

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

// Environment returns what the variables of the settings say. The texts of a list are separated by
// spaces.
func Environment[C any](environ []string, t Table[C]) Layer {
	from := Layer{}
	for _, f := range t {
		s, ok := lookup(environ, f.EnvName())
		if !ok {
			continue
		}
		texts := []string{s}
		if _, many := f.Bind(new(C)).(List); many && strings.TrimSpace(s) != "" {
			texts = strings.Fields(s)
		}
		from[f.Key] = givenAt(f.EnvName(), texts)
	}
	return from
}

// WarnUnknown warns about variables that look like one of those that are known and are none. They are
// no errors, because others put variables with the same prefix into the environment: container
// platforms do it for every service, and secrets often live there.
func WarnUnknown(r *Report, environ, known []string, referred func(name string) bool) {
	short := make([]string, len(known))
	for i, n := range known {
		short[i] = strings.TrimPrefix(n, envPrefix)
	}
	for _, kv := range environ {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) || referred(name) {
			continue
		}
		if c, near := closest.Word(strings.TrimPrefix(name, envPrefix), short); near {
			r.Warn(Place{Name: name}, "this is not a setting; did you mean %s%s?", envPrefix, c)
		}
	}
}
