package config

import (
	"cmp"

	"github.com/hookonce/hookonce/internal/settings"
)

// What a source of a gateway has on which somebody develops, where nothing else is said.
const (
	DevSource   = "dev"
	DevProvider = "standard"
)

// developmentDefaults are those of settings that have others in development: whoever looks on does not wait
// for minutes until an app that was mended is tried again, nor lose the event that it was mended for.
var developmentDefaults = []struct{ key, text string }{
	{"delivery.attempts", "1000"},
	{"delivery.backoff", "1s"},
	{"delivery.backoff_max", "5s"},
}

// developmentPlace is where the settings come from that nobody wrote.
var developmentPlace = settings.Place{Name: "development"}

// developmentSource returns what is assumed of the only source, which the environment and the command line
// describe in layers: nil, unless its name is missing, or its provider and its secrets are.
func developmentSource(layers ...settings.Layer) settings.Layer {
	says := func(key string) (text string) {
		for _, from := range layers {
			if from.Has(key) {
				text = from[key].Text()
			}
		}
		return text
	}
	name, provider := says("name"), says("provider")
	service := says("mode") == Idempotent // which has neither provider nor secrets
	if name != "" && (service || provider != "" || says("secrets") != "") {
		return nil
	}
	assumed := settings.Layer{"name": settings.Assume(developmentPlace, cmp.Or(provider, DevSource))}
	if !service {
		assumed["provider"] = settings.Assume(developmentPlace, DevProvider)
	}
	return assumed
}

// develop gives a development gateway the defaults that it has of its own.
func develop(r *settings.Report, cfg *Config, in Input) {
	cfg.Development = cfg.Development || len(cfg.Sources) == 0 && in.Path == ""
	if !cfg.Development {
		return
	}
	for _, own := range developmentDefaults {
		if cfg.origin.Has(own.key) {
			continue
		}
		f, _ := configTable.Find(own.key)
		cfg.origin[own.key] = settings.Assume(developmentPlace, own.text)
		settings.Set(r, cfg, f, cfg.origin[own.key])
	}
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; !s.has("handshakes") && s.greets() {
			s.Handshakes = true
			s.origin["handshakes"] = settings.Assume(developmentPlace, "true")
		}
	}
}
