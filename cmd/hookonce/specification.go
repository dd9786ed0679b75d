package main

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
	"github.com/hookonce/hookonce/provider/spec/specyaml"
)

// specification returns what --provider or --spec names.
func specification(provider, file string) (spec.Spec, error) {
	switch {
	case file != "" && provider != "" && provider != "custom":
		return spec.Spec{}, errors.New("--provider and --spec exclude each other; keep one")
	case file != "":
		return readSpec(file)
	case provider == "custom":
		return spec.Spec{}, errors.New("--provider custom: give its specification with --spec")
	case provider == "":
		return spec.Spec{}, errors.New("--provider is missing: name one of the catalogue (see hookonce providers), or give a specification with --spec")
	}
	return catalogued(provider)
}

// readSpec reads a specification in YAML.
func readSpec(file string) (spec.Spec, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return spec.Spec{}, fmt.Errorf("--spec: %w", err)
	}
	known, err := specyaml.Parse(text)
	if known.Name == "" { // as the name of a source does in a configuration, the file's name will do
		known.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	if err == nil {
		err = known.Validate()
	}
	return known, located(file, err)
}

// located says where in the file of a specification its faults are.
func located(file string, err error) error {
	text, unread := os.ReadFile(file)
	var faults spec.Faults
	if unread != nil || !errors.As(specyaml.Locate(text, err), &faults) {
		return err
	}
	lines := make([]string, len(faults))
	for i, fault := range faults {
		lines[i] = file + ":" + fault.Error()
	}
	return errors.New("--spec:\n" + strings.Join(lines, "\n"))
}

// build returns the provider, and says what kind of secret is needed where the one given does not fit, or
// where in the file of a specification the fault is.
func build(known spec.Spec, file string, settings spec.Settings) (*spec.Provider, error) {
	p, err := spec.New(known, settings)
	if errors.Is(err, spec.ErrSecret) {
		return nil, fmt.Errorf("--secret: %w; it needs %s", err, known.WithDefaults().Secret)
	}
	return p, located(file, err)
}

// catalogued returns the specification of that name.
func catalogued(name string) (spec.Spec, error) {
	known, err := provider.Lookup(name)
	if err != nil {
		err = fmt.Errorf("--provider: %w", err)
	}
	return known, err
}

// parseHeaders reads headers written as 'Name: value'.
func parseHeaders(lines []string) (http.Header, error) {
	header := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(line, "\r\n") {
			return nil, fmt.Errorf("-H %q is not a header; write 'Name: value'", line)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
}
