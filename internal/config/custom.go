package config

import (
	"cmp"
	"errors"

	"github.com/hookonce/hookonce/provider/spec"
)

// specification reads the specification of a source from the file. It is no setting of the table: a
// flag has no room for it.
func (l *loader) specification(s *Source, n *node) {
	if n == nil {
		return
	}
	s.origin[specKey] = given{at: n.at, node: n}
	if n.raw == nil {
		l.fault(n.at, "spec: is %s; write the specification below it, beginning with verify", n.form)
		return
	}
	parsed, err := spec.ParseNode(n.raw)
	if err != nil {
		l.specFaults(s, err)
		return
	}
	parsed.Name = cmp.Or(parsed.Name, s.Name)
	s.Spec = &parsed
}

// specFaults reports what is wrong with the specification of a source, each fault where it is written.
func (l *loader) specFaults(s *Source, err error) {
	n := s.origin[specKey].node
	var faults spec.Faults
	if !errors.As(spec.LocateNode(n.raw, err), &faults) {
		l.fault(n.at, "spec: %s", plain(err))
		return
	}
	for _, f := range faults {
		l.fault(place{n.at.name, f.Line, f.Column}, "spec: %s%s", dotted(f.Field), f.Text)
	}
}

// dotted is a field with what separates it from the text.
func dotted(field string) string {
	if field == "" {
		return ""
	}
	return field + ": "
}

// checkSpec finds a specification that its provider has no use for, that is missing, or that is not
// safe, and reports whether the provider can be built but for its secrets.
func (l *loader) checkSpec(s *Source) bool {
	custom := s.Provider == providerCustom
	switch {
	case !custom && s.has(specKey):
		l.fault(s.where(specKey), "spec: a specification is for the provider custom, and source %q has %s; remove it or write provider: custom", s.Name, s.Provider)
		return true
	case !custom:
		return true
	case !s.has(specKey):
		l.fault(s.at, "source %q lacks its specification; write spec: in the file, with verify and event below it, or another provider", s.Name)
		return false
	case s.Spec == nil:
		return false // reported already
	}
	if err := s.Spec.Validate(); err != nil {
		l.specFaults(s, err)
		return false
	}
	return true
}
