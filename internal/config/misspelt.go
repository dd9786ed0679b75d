package config

import (
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/closest"
)

// misspelt warns about variables that look like a setting but are none. They are no errors, because
// others put variables with the same prefix into the environment: container platforms do it for
// every service, and secrets often live there.
func (l *loader) misspelt() {
	known := variables()
	for _, kv := range l.in.Environ {
		name, _, _ := strings.Cut(kv, "=")
		if !strings.HasPrefix(name, envPrefix) || slices.Contains(known, name) || l.referred(name) {
			continue
		}
		if c, near := closest.Word(strings.TrimPrefix(name, envPrefix), trimmed(known)); near {
			l.warn(place{name: name}, "this is not a setting; did you mean %s%s?", envPrefix, c)
		}
	}
}

// variables returns every environment variable that is read.
func variables() []string {
	known := []string{envPrefix + "CONFIG", envPrefix + "ADMIN_URL", envPrefix + "ADMIN_TOKEN"}
	for _, f := range settings {
		known = append(known, f.envName())
	}
	for _, f := range sourceSettings {
		known = append(known, f.envName())
	}
	return known
}

func trimmed(names []string) []string {
	short := make([]string, len(names))
	for i, n := range names {
		short[i] = strings.TrimPrefix(n, envPrefix)
	}
	return short
}

// referred reports whether a secret names the variable.
func (l *loader) referred(name string) bool {
	for _, s := range l.cfg.Sources {
		for _, secret := range s.Secrets {
			if secret.ref == "env:"+name {
				return true
			}
		}
		if s.Token.ref == "env:"+name {
			return true
		}
	}
	for _, d := range l.cfg.Destinations {
		for _, secret := range d.Secrets {
			if secret.ref == "env:"+name {
				return true
			}
		}
		for _, h := range d.Headers {
			if h.Value.ref == "env:"+name {
				return true
			}
		}
	}
	return false
}
