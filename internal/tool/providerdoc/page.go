package main

import (
	"bytes"
	_ "embed"
	"text/template"

	"github.com/hookonce/hookonce/internal/providertext"
	"github.com/hookonce/hookonce/provider"
)

//go:embed page.md.tmpl
var source string

// page returns the page.
func page() ([]byte, error) {
	t, err := template.New("page").Parse(source)
	if err != nil {
		return nil, err
	}
	var senders []providertext.Sender
	for _, name := range provider.Names() {
		known, err := provider.Lookup(name)
		if err != nil {
			return nil, err
		}
		senders = append(senders, providertext.Of(known))
	}
	var b bytes.Buffer
	if err := t.Execute(&b, senders); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}
