package spec

import (
	"errors"
	"fmt"
	"strings"
)

// Fault is one mistake in a specification.
type Fault struct {
	// Line and Column say where it is in the text that the specification was read from, from 1. Zero if
	// it was found in the specification and not in a text: package specyaml finds the place.
	Line, Column int
	// Field is the field that it is about, such as verify[0].hash. Empty for the text as a whole.
	Field string
	// Text says what is wrong and what to write.
	Text string
}

// Error returns the place, as far as it is known, the field and the text.
func (f Fault) Error() string {
	text := f.Text
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Line == 0 {
		return text
	}
	return fmt.Sprintf("%d:%d: %s", f.Line, f.Column, text)
}

// Faults are the mistakes that [Spec.Validate], or the reading of a text, found: all of them, in the order of the lines
// where those are known.
type Faults []Fault

// Error returns one line for each fault.
func (f Faults) Error() string {
	lines := make([]string, len(f))
	for i := range f {
		lines[i] = f[i].Error()
	}
	return strings.Join(lines, "\n")
}

// add appends the fault that an error is, if it is one and not nil.
func (f *Faults) add(err error) {
	var one Fault
	if errors.As(err, &one) {
		*f = append(*f, one)
	}
}

// fault returns a mistake in a field.
func fault(field, format string, args ...any) error {
	return Fault{Field: field, Text: fmt.Sprintf(format, args...)}
}

// within says which field an error is about. Of a fault the field becomes a longer one.
func within(field string, err error) error {
	if err == nil {
		return nil
	}
	inner, is := err.(Fault)
	if !is {
		return Fault{Field: field, Text: err.Error()}
	}
	if inner.Field != "" && inner.Field[0] != '[' {
		field += "."
	}
	inner.Field = field + inner.Field
	return inner
}
