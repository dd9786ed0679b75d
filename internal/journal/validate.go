package journal

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// maxDigest is the longest digest that a store keeps, in bytes.
const maxDigest = 32

// Validate returns an error that wraps [hookonce.ErrInvalidRef] unless every store can hold the
// entry's texts. Stores call it for each entry and put the error into its [Result].
func (e *Entry) Validate() error {
	if err := (hookonce.Ref{Source: e.Source, Key: e.Key}).Validate(); err != nil {
		return err
	}
	if len(e.Digest) > maxDigest {
		return fmt.Errorf("%w: the digest has %d bytes, %d at most", hookonce.ErrInvalidRef, len(e.Digest), maxDigest)
	}
	if !plainText(e.Type) {
		return fmt.Errorf("%w: the event type is not UTF-8 or contains NUL", hookonce.ErrInvalidRef)
	}
	if err := e.validateNames(); err != nil {
		return err
	}
	for _, d := range e.Destinations {
		if d == "" || !plainText(d) {
			return fmt.Errorf("%w: the destination %q is empty, not UTF-8 or contains NUL", hookonce.ErrInvalidRef, d)
		}
	}
	return nil
}

// validateNames checks what is compared like a key, and has its form.
func (e *Entry) validateNames() error {
	for _, name := range []string{e.Resource, e.Logical} {
		if name == "" {
			continue
		}
		if err := (hookonce.Ref{Source: e.Source, Key: name}).Validate(); err != nil {
			return fmt.Errorf("the resource or the logical key: %w", err)
		}
	}
	return nil
}

// plainText reports whether a text column of every database takes s.
func plainText(s string) bool { return utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 }

// ErrorText returns Error in the form that every store can hold: valid UTF-8 without NUL, cut to
// [hookonce.MaxErrorLen] bytes.
func (o *Outcome) ErrorText() string { return hookonce.Failure{Err: errors.New(o.Error)}.Text() }

// KeptAnswer returns the part of Answer that is kept.
func (o *Outcome) KeptAnswer() []byte { return o.Answer[:min(len(o.Answer), MaxAnswer)] }
