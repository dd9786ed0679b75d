package config

import (
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// HMAC describes the signature and the layout of a sender that the catalogue does not know. Fields that
// are empty have the defaults of [provider.HMACConfig].
type HMAC struct {
	// Header is the request header that carries the signature. Default X-Signature.
	Header string
	// Encoding of the signature: "hex", "base64" or "base64url". Default hex.
	Encoding string
	// Digest is "sha256", "sha1" or "sha512". Default sha256.
	Digest string
	// Prefix stands before the signature in the header, such as "sha256=". Default none.
	Prefix string
	// Form is how the secret's text becomes a key: "utf8", "base64", "hex" or "whsec". Default utf8.
	Form string
	// Key lists where the parts of the event's key are, such as "json:$.id" or "header:X-Event-Id".
	// Default json:$.id.
	Key []string
	// Type is where the event's type is, in the same form. Default json:$.type.
	Type string
}

// hmacTable declares the settings of the provider "hmac".
var hmacTable = settings.Table[HMAC]{
	{Key: "hmac.header", Help: "for provider hmac: header `name` of the signature; X-Signature if not set",
		Bind: func(h *HMAC) settings.Value { return settings.Text(&h.Header, checkHeader) }},
	{Key: "hmac.encoding", Help: "for provider hmac: `encoding` of the signature: hex, base64 or base64url; hex if not set",
		Bind: func(h *HMAC) settings.Value { return settings.Choice(&h.Encoding, "hex", "base64", "base64url") }},
	{Key: "hmac.digest", Help: "for provider hmac: `digest`: sha256, sha1 or sha512; sha256 if not set",
		Bind: func(h *HMAC) settings.Value { return settings.Choice(&h.Digest, "sha256", "sha1", "sha512") }},
	{Key: "hmac.prefix", Help: "for provider hmac: `text` before the signature in its header, such as sha256=",
		Bind: func(h *HMAC) settings.Value { return settings.Text(&h.Prefix, nil) }},
	{Key: "hmac.form", Help: "for provider hmac: `form` of the secret: utf8, base64, hex or whsec; utf8 if not set",
		Bind: func(h *HMAC) settings.Value { return settings.Choice(&h.Form, "utf8", "base64", "hex", "whsec") }},
	{Key: "hmac.key", Help: "for provider hmac: `where` a part of the event's key is; json:$.id if not set; repeatable",
		Bind: func(h *HMAC) settings.Value { return settings.Words(&h.Key, "json:$.id", nil) }},
	{Key: "hmac.type", Help: "for provider hmac: `where` the event's type is; json:$.type if not set",
		Bind: func(h *HMAC) settings.Value { return settings.Text(&h.Type, nil) }},
}

// spec returns the specification of such a sender.
func (h HMAC) spec() spec.Spec {
	c := provider.HMACConfig{
		Header:   h.Header,
		Prefix:   h.Prefix,
		Hash:     spec.Hash(h.Digest),
		KeyForm:  spec.KeyForm(h.Form),
		Encoding: spec.Encoding(h.Encoding),
		Type:     spec.Value(h.Type),
	}
	for _, part := range h.Key {
		c.Key = append(c.Key, spec.Value(part))
	}
	return c.Spec()
}
