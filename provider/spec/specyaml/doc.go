// Package specyaml reads and writes specifications of senders in YAML, in the names that the tags of spec.Spec give to
// its fields:
//
//	known, err := specyaml.Parse(text)
//	p, err := spec.New(known, settings)
//
// It brings a YAML library and, for senders that sign with JSON Web Tokens, a JOSE library, so that only programs that
// read specifications from files carry these.
package specyaml
