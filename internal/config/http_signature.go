package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/hookonce/hookonce/internal/outgoing"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// httpSignatureKey is that of the setting.
const httpSignatureKey = "http_signature"

// HTTPKey is a key of HTTP message signatures: a private key in PEM, or a shared secret.
type HTTPKey struct {
	// ID is the keyid of its signatures.
	ID  string
	Key settings.Secret
}

// HTTPKeys returns the keys of HTTP message signatures. An error names the one that cannot be used.
func (d *Destination) HTTPKeys() ([]outgoing.HTTPKey, error) {
	var keys []outgoing.HTTPKey
	for _, k := range d.HTTPSignature {
		key, err := outgoing.NewHTTPKey(k.ID, k.Key.Reveal())
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// httpKeys is the setting "http_signature".
type httpKeys struct{ to *[]HTTPKey }

func (v httpKeys) Clear()           { *v.to = nil }
func (v httpKeys) Set(string) error { return nil } // a group has no text of its own
func (v httpKeys) Show() string     { return strings.Join(v.Items(), " ") }
func (v httpKeys) Example() string  { return "app-2026: file:app-key.pem" }

func (v httpKeys) Items() []string {
	items := make([]string, len(*v.to))
	for i, k := range *v.to {
		items[i] = settings.QuotePair(k.ID, k.Key.String())
	}
	return items
}

func (v httpKeys) SetPair(id, text string) error {
	k := HTTPKey{ID: id, Key: settings.Unresolved(text)}
	err := settings.CheckReference(text)
	if err != nil {
		k.Key = settings.Secret{} // it keeps its place in the list
		err = fmt.Errorf("%q: %w", id, err)
	} else {
		err = outgoing.CheckKeyID(id)
	}
	*v.to = append(*v.to, k)
	return err
}

func (v httpKeys) Exact() string {
	var all strings.Builder
	for _, k := range *v.to {
		fmt.Fprintf(&all, "%q: %q\n", k.ID, k.Key.Exact())
	}
	return all.String()
}

// checkHTTPSignature finds keys that sign nothing or can be guessed, and what their signatures cannot stand beside.
func checkHTTPSignature(r *settings.Report, d *Destination, environ []string) {
	if len(d.HTTPSignature) == 0 {
		return
	}
	at := d.where(httpSignatureKey)
	if n := len(d.HTTPSignature); n > outgoing.MaxHTTPKeys {
		r.Fault(at, httpSignatureKey+": %d keys would sign each delivery; keep the %d that receivers know", n, outgoing.MaxHTTPKeys)
	}
	address, key := d.URL, "url"
	if d.AppURL != "" {
		address, key = d.AppURL, "app_url"
	}
	if err := outgoing.CheckHTTPAddress(address); err != nil && settings.CheckURL(address) == nil { // else it is reported already
		r.Fault(d.where(key), "%s: %v", key, err)
	}
	for i, h := range d.Headers {
		if slices.Contains(outgoing.HTTPNames, h.Name) {
			r.Fault(d.origin.Element("headers", i), "headers: %s is set by http_signature; remove one of the two", h.Name)
		}
	}
	for i := range d.HTTPSignature {
		checkHTTPKey(r, d.origin.Element(httpSignatureKey, i), &d.HTTPSignature[i], environ)
	}
}

// checkHTTPKey looks at one key.
func checkHTTPKey(r *settings.Report, at settings.Place, k *HTTPKey, environ []string) {
	text := k.Key.Reveal()
	if text == "" {
		return // reported already
	}
	key, err := outgoing.NewHTTPKey(k.ID, text)
	switch {
	case err != nil:
		r.Fault(at, httpSignatureKey+": %v", err)
	case key.Shared():
		own := spec.Spec{OwnSecret: true, Secret: "a private key in PEM, as openssl genpkey -algorithm ed25519 makes it, or a secret that openssl rand -hex 32 makes", Verify: []spec.Verify{{Key: spec.KeyUTF8}}}
		checkShape(r, at, httpSignatureKey, k.Key, environ, own)
	}
}
