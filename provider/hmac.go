package provider

import (
	"encoding/json"
	"fmt"
)

// HMACConfig describes a sender that is not in the catalogue and signs the body with an HMAC. The
// zero value, with secrets, is a usable configuration. For schemes that sign a time or an identifier
// along with the body, write a [Spec].
type HMACConfig struct {
	// Name is the provider's name in events, logs and metrics. Default "hmac".
	Name string
	// Secrets are the secrets that are valid now. At least one. Used by [HMAC] only; with
	// [HMACConfig.Spec] they go into [Settings].
	Secrets []string
	// Header is the header that carries the signature. Default "X-Signature".
	Header string
	// Prefix precedes the signature in the header, such as "sha256=". Default none.
	Prefix string
	// Hash is the hash function of the HMAC. Default [SHA256].
	Hash Hash
	// KeyForm is how a secret's text becomes the HMAC's key. Default [KeyUTF8].
	KeyForm KeyForm
	// Encoding is how the signature is written. Default [Hex].
	Encoding Encoding
	// Key lists the parts of the event's key. Default json:$.id.
	Key []Value
	// Type is where the event's type is. Default json:$.type.
	Type Value
	// Time is where the time of the event is. Default none.
	Time Moment
	// Limits states the sender's sizes and windows. Default: 1 MiB, no windows known.
	Limits Limits
}

// HMAC returns a provider for a sender that signs the body with an HMAC. It panics if the
// configuration is wrong, or a secret is missing or of the wrong form; [New] with [HMACConfig.Spec]
// returns an error instead.
func HMAC(c HMACConfig) *Provider {
	return must(New(c.Spec(), Settings{Secrets: c.Secrets}))
}

// Format writes the configuration without the secrets.
func (c HMACConfig) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s, header %s, %d secrets}", or(c.Name, "hmac"), c.header(), len(c.Secrets))
}

func (c HMACConfig) header() string { return or(c.Header, "X-Signature") }

// Spec returns the specification that the configuration stands for. Mistakes in it are found by [New].
func (c HMACConfig) Spec() Spec {
	key := c.Key
	if len(key) == 0 {
		key = []Value{"json:$.id"}
	}
	s := Spec{
		Name:   or(c.Name, "hmac"),
		Title:  "HMAC",
		Secret: "the secret shared with the sender",
		Verify: []Verify{{
			Hash:      c.Hash,
			Key:       c.KeyForm,
			Encoding:  c.Encoding,
			Signature: Signature{In: Value("header:" + c.header()), Prefix: c.Prefix},
			Sign:      []Value{"body"},
		}},
		Event:  Extract{Key: [][]Value{key}, Type: []Value{or(c.Type, "json:$.type")}},
		Limits: c.Limits,
		Traps:  []string{"no time is signed: a captured request can be replayed for as long as its key is not remembered"},
	}
	if c.Time.In != "" {
		s.Event.Time = []Moment{{c.Time.In, or(c.Time.Unit, Seconds)}}
	}
	s.Example = exampleFor(key, or(c.Type, "json:$.type"), c.Time)
	return s.withDefaults()
}

// exampleFor returns a template that has the id, type and time where the values look for them.
func exampleFor(key []Value, kind Value, at Moment) Template {
	t := Template{Type: "order.paid", Header: map[string]string{}}
	body := map[string]any{"amount": 4200, "currency": "EUR", "order": "1001"}
	place := func(v Value, text string) {
		switch parsed, err := parseValue(v); {
		case err != nil:
		case parsed.kind == kindHeader:
			t.Header[parsed.text] = text
		case parsed.kind == kindJSON:
			placeAt(body, parsed.path, text)
		}
	}
	for _, v := range key {
		place(v, "{{id}}")
	}
	place(kind, "{{type}}")
	if at.In != "" {
		place(at.In, placeholder(at.Unit))
	}
	text, err := json.MarshalIndent(body, "", "  ")
	if err != nil { // maps of strings and numbers always have a JSON form
		return t
	}
	t.Body = string(text)
	return t
}

// placeholder returns the placeholder for a time in that unit.
func placeholder(u Unit) string {
	switch u {
	case RFC3339:
		return "{{time}}"
	case Millis:
		return "{{millis}}"
	}
	return "{{unix}}"
}

// placeAt sets the member at path, making the objects on the way.
func placeAt(object map[string]any, path []string, text string) {
	for _, name := range path[:len(path)-1] {
		next, ok := object[name].(map[string]any)
		if !ok {
			next = map[string]any{}
			object[name] = next
		}
		object = next
	}
	object[path[len(path)-1]] = text
}
