package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"strings"
	"time"
)

// mask stands for what is not shown.
const mask = "****"

// Secret is a verification secret. It prints as its reference, or masked: only [Secret.Reveal]
// returns the secret itself.
type Secret struct {
	// From and Until bound the time in which it is accepted; the zero time does not.
	From, Until time.Time

	ref   string // as configured: env:NAME, file:PATH, or the literal
	value string
}

// LiteralSecret returns a secret that was not configured by reference.
func LiteralSecret(value string) Secret { return Secret{ref: value, value: value} }

// ResolveSecret returns the secret that a reference names: env:NAME, file:PATH, or a literal. It uses
// the environment and ReadFile of in.
func ResolveSecret(reference string, in Input) (Secret, error) {
	if err := checkReference(reference); err != nil {
		return Secret{}, err
	}
	s := Secret{ref: reference}
	return s, s.resolve(in)
}

// Reveal returns the secret.
func (s Secret) Reveal() string { return s.value }

// String returns env:NAME or file:PATH as configured, and a mask for a literal.
func (s Secret) String() string {
	if strings.HasPrefix(s.ref, "env:") || strings.HasPrefix(s.ref, "file:") {
		return s.ref
	}
	return mask
}

// LogValue keeps the secret out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// references is a list of secrets. It keeps references; they are resolved when every layer is read, so
// that a reference which a flag replaces need not exist.
type references struct{ to *[]Secret }

func (v references) clear()          { *v.to = nil }
func (v references) example() string { return "env:NAME" }

func (v references) set(s string) error {
	err := checkReference(s)
	if err != nil {
		s = "" // nothing to resolve, but it keeps its place in the list
	}
	*v.to = append(*v.to, Secret{ref: s})
	return err
}

func checkReference(s string) error {
	switch s {
	case "":
		return errors.New("the secret is empty; write env:NAME, file:PATH or the secret itself")
	case "env:", "file:":
		return fmt.Errorf("%q lacks what to read; write env:NAME or file:PATH", s)
	}
	if shellPattern.MatchString(s) {
		return errors.New("this looks like a variable of a shell, and those are not expanded here; write env:NAME, or file:PATH if it is the secret itself")
	}
	for _, tag := range []string{"env:", "file:"} {
		if len(s) > len(tag) && s[:len(tag)] != tag && strings.EqualFold(s[:len(tag)], tag) {
			return fmt.Errorf("a reference begins with lower-case letters; write %s and what follows", tag)
		}
	}
	return nil
}

// shellPattern is a variable as shells and templates write it. As a literal it would be a secret that
// everybody knows.
var shellPattern = regexp.MustCompile(`^\$\{?[A-Za-z_][A-Za-z0-9_]*\}?$`)

func (v references) show() string { return strings.Join(v.items(), " ") }

func (v references) items() []string {
	var shown []string
	for _, s := range *v.to {
		shown = append(shown, s.yaml())
	}
	return shown
}

// resolve reads the secret that the reference names.
func (s *Secret) resolve(in Input) error {
	if name, ok := strings.CutPrefix(s.ref, "env:"); ok {
		return s.fromEnv(name, in)
	}
	if path, ok := strings.CutPrefix(s.ref, "file:"); ok {
		return s.fromFile(path, in)
	}
	s.value = s.ref
	return nil
}

func (s *Secret) fromEnv(name string, in Input) error {
	value, ok := in.env(name)
	if !ok {
		return fmt.Errorf("the environment variable %s is not set; set it to the secret", name)
	}
	if value == "" {
		return fmt.Errorf("the environment variable %s is empty; set it to the secret", name)
	}
	s.value = value
	return nil
}

func (s *Secret) fromFile(path string, in Input) error {
	if in.ReadFile == nil {
		return fmt.Errorf("the file %s cannot be read here; write env:NAME or the secret itself", path)
	}
	data, err := in.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the file %s does not exist; create it with the secret in it", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the file %s cannot be read by this user; change its owner or mode", path)
	case err != nil:
		return fmt.Errorf("the file cannot be read: %w", err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if value == "" {
		return fmt.Errorf("the file %s is empty; put the secret into it", path)
	}
	s.value = value
	return nil
}
