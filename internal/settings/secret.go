package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"regexp"
	"strings"
	"time"
)

// Secret is a secret that is configured by reference. It prints as its reference, or masked: only
// [Secret.Reveal] returns the secret itself.
type Secret struct {
	// From and Until bound the time in which it is accepted; the zero time does not.
	From, Until time.Time

	ref   string // as configured: env:NAME, file:PATH, or the literal
	value string
}

// Literal returns a secret that was not configured by reference.
func Literal(value string) Secret { return Secret{ref: value, value: value} }

// Unresolved returns the secret that a reference names, which is not read yet: see [Resolver.Resolve].
func Unresolved(reference string) Secret { return Secret{ref: reference} }

// Reveal returns the secret, empty as long as it is not read.
func (s Secret) Reveal() string { return s.value }

// Reference returns what was configured, which is the secret itself if it is a literal. It is empty if
// nothing was.
func (s Secret) Reference() string { return s.ref }

// String returns env:NAME or file:PATH as configured, and a mask for a literal.
func (s Secret) String() string {
	if strings.HasPrefix(s.ref, "env:") || strings.HasPrefix(s.ref, "file:") {
		return s.ref
	}
	return Mask
}

// LogValue keeps the secret out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Format writes what [Secret.String] returns, whatever the verb.
func (s Secret) Format(f fmt.State, _ rune) { fmt.Fprint(f, s.String()) }

// Exact returns the reference, what it refers to, and when it is valid, to be compared.
func (s Secret) Exact() string { return fmt.Sprintf("%q %q %v %v", s.ref, s.value, s.From, s.Until) }

// yaml returns the secret as it stands in a list in the file.
func (s Secret) yaml() string {
	if s.From.IsZero() && s.Until.IsZero() {
		return quote(s.String())
	}
	text := "{secret: " + quote(s.String())
	if !s.From.IsZero() {
		text += ", from: " + quote(instant{&s.From}.Show())
	}
	if !s.Until.IsZero() {
		text += ", until: " + quote(instant{&s.Until}.Show())
	}
	return text + "}"
}

// CheckReference accepts env:NAME, file:PATH, and what can be a secret itself.
func CheckReference(s string) error {
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

// reference is a single secret.
type reference struct{ to *Secret }

// Reference is a single secret. It keeps the reference, which is resolved when every layer is read, so
// that a reference which a flag replaces need not exist.
func Reference(to *Secret) Value { return reference{to} }

func (v reference) Set(s string) error {
	err := CheckReference(s)
	if err != nil {
		s = "" // nothing to resolve
	}
	v.to.ref = s
	return err
}

func (v reference) Show() string  { return v.to.String() }
func (v reference) Exact() string { return v.to.Exact() }

// outside is a reference to a secret that cannot stand in the file itself.
type outside struct{ reference }

// OutsideReference is [Reference] to a secret that cannot stand in the file itself.
func OutsideReference(to *Secret) Value { return outside{reference{to}} }

func (v outside) Set(s string) error {
	if !strings.HasPrefix(s, "env:") && !strings.HasPrefix(s, "file:") {
		return errors.New("a token does not belong into this file; write env:NAME or file:PATH")
	}
	return v.reference.Set(s)
}

// references is a list of secrets.
type references struct{ to *[]Secret }

// References is a list of secrets. See [Reference].
func References(to *[]Secret) Value { return references{to} }

func (v references) Clear()          { *v.to = nil }
func (v references) Example() string { return "env:NAME" }
func (v references) Show() string    { return strings.Join(v.Items(), " ") }

func (v references) Set(s string) error {
	err := CheckReference(s)
	if err != nil {
		s = "" // nothing to resolve, but it keeps its place in the list
	}
	*v.to = append(*v.to, Secret{ref: s})
	return err
}

func (v references) Items() []string {
	var shown []string
	for _, s := range *v.to {
		shown = append(shown, s.yaml())
	}
	return shown
}

func (v references) Exact() string {
	var all strings.Builder
	for i := range *v.to {
		fmt.Fprintf(&all, "%q\n", (*v.to)[i].Exact())
	}
	return all.String()
}

// rotating is a list of secrets, each of which may have a time of validity.
type rotating struct{ references }

// RotatingReferences is [References], each of which may be a group that says when it is valid.
func RotatingReferences(to *[]Secret) Value { return rotating{references{to}} }

// validityTable declares what an element of [RotatingReferences] can say, where it is a group of
// settings.
var validityTable = Table[Secret]{
	{Key: "secret", Bind: func(s *Secret) Value { return Reference(s) }},
	{Key: "from", Bind: func(s *Secret) Value { return Time(&s.From) }},
	{Key: "until", Bind: func(s *Secret) Value { return Time(&s.Until) }},
}

// setGroup adds a secret with its time of validity.
func (v rotating) setGroup(r *Report, key string, from Written) {
	says, s := Layer{}, Secret{}
	for _, e := range from.group {
		if _, ok := validityTable.Find(e.Key); !ok { // not quoted: {whsec_...} has the secret as its key
			r.Fault(e.At, "%s: a key that is none here; a secret alone stands without braces%s", key, Suggest(e.Key, validityTable.below("")))
			says["secret"] = Given{At: e.At} // one fault is enough
			continue
		}
		Collect(r, says, validityTable, e)
	}
	Apply(r, &s, validityTable, says)
	switch {
	case !says.Has("secret"):
		r.Fault(from.At, "%s: this names no secret; write {secret: \"env:NAME\", from: 2026-01-01T00:00:00Z}", key)
	case !s.From.IsZero() && !s.Until.IsZero() && !s.From.Before(s.Until):
		r.Fault(says["until"].At, "%s: the secret is never valid, because until is not after from; write a later until", key)
	}
	*v.to = append(*v.to, s)
}

// Resolver reads what references name.
type Resolver struct {
	// Environ is the environment, in the form of os.Environ.
	Environ []string
	// ReadFile reads files, as os.ReadFile does. Nil: none can be read.
	ReadFile func(name string) ([]byte, error)
	// What is read, for errors, such as "address". Empty: a secret.
	What string
}

// Secret returns the secret that a reference names: env:NAME, file:PATH, or a literal.
func (e Resolver) Secret(reference string) (Secret, error) {
	if err := CheckReference(reference); err != nil {
		return Secret{}, err
	}
	s := Secret{ref: reference}
	return s, e.Resolve(&s)
}

// Resolve reads the secret that a reference names.
func (e Resolver) Resolve(s *Secret) (err error) {
	if name, ok := strings.CutPrefix(s.ref, "env:"); ok {
		s.value, err = e.variable(name)
		return err
	}
	if path, ok := strings.CutPrefix(s.ref, "file:"); ok {
		s.value, err = e.content(path)
		return err
	}
	s.value = s.ref
	return nil
}

func (e Resolver) what() string { return cmp.Or(e.What, "secret") }

func (e Resolver) variable(name string) (string, error) {
	value, ok := lookup(e.Environ, name)
	if !ok {
		return "", fmt.Errorf("the environment variable %s is not set; set it to the %s", name, e.what())
	}
	if value == "" {
		return "", fmt.Errorf("the environment variable %s is empty; set it to the %s", name, e.what())
	}
	return value, nil
}

func (e Resolver) content(path string) (string, error) {
	if e.ReadFile == nil {
		return "", fmt.Errorf("the file %s cannot be read here; write env:NAME or the secret itself", path)
	}
	data, err := e.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the file %s does not exist; create it with the %s in it", path, e.what())
	case err != nil:
		return "", Unreadable(path, err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if value == "" {
		return "", fmt.Errorf("the file %s is empty; put the %s into it", path, e.what())
	}
	return value, nil
}

// Unreadable says why a file cannot be read, and what to do.
func Unreadable(path string, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("the file %s does not exist; create it, or name another", path)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("the file %s cannot be read by this user; change its owner or mode", path)
	}
	return fmt.Errorf("the file cannot be read: %w", err)
}
