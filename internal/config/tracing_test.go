package config

import (
	"slices"
	"testing"
)

// Variables that other programs trace by count for nothing, and whoever traces hears of it.
func TestVariablesOfOpenTelemetry(t *testing.T) {
	environ := []string{"OTEL_SERVICE_NAME=x", "OTEL_EXPORTER_OTLP_ENDPOINT=http://elsewhere.example", "OTEL_RESOURCE_ATTRIBUTES=a=b", "OTELIER=1"}
	for endpoint, want := range map[string][]string{
		"":                      nil,
		"http://127.0.0.1:4318": {"the environment: OTEL_EXPORTER_OTLP_ENDPOINT, OTEL_SERVICE_NAME counts for nothing here; the settings below tracing: do"},
	} {
		args := []string{"--tracing-endpoint=" + endpoint}
		if endpoint == "" {
			args = nil
		}
		cfg, err := Load(input(t, oneSource, environ, args...))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(cfg.Warnings, want) || cfg.Tracing.On() != (endpoint != "") {
			t.Errorf("endpoint %q: warnings %q, traced: %v", endpoint, cfg.Warnings, cfg.Tracing.On())
		}
	}
}

// Traces go below the collector's base, and to an address that is whole already.
func TestTracesURL(t *testing.T) {
	for base, want := range map[string]string{
		"http://127.0.0.1:4318":                  "http://127.0.0.1:4318/v1/traces",
		"https://otlp.example/team/":             "https://otlp.example/team/v1/traces",
		"https://otlp.example/custom/v1/traces/": "https://otlp.example/custom/v1/traces",
	} {
		if got := (&Tracing{Endpoint: base}).URL(); got != want {
			t.Errorf("%s: %s, want %s", base, got, want)
		}
	}
}
