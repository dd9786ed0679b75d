package provider

import (
	"cmp"
	"fmt"

	"github.com/hookonce/hookonce/provider/spec"
)

// HMACConfig describes a sender that is not in the catalogue and signs the body with an HMAC. The
// zero value, with secrets, is a usable configuration. For schemes that sign a time or an identifier
// along with the body, write a [spec.Spec].
type HMACConfig struct {
	// Name is the provider's name in events, logs and metrics. Default "hmac".
	Name string
	// Secrets are the secrets that are valid now. At least one. Used by [HMAC] only; with
	// [HMACConfig.Spec] they go into [spec.Settings].
	Secrets []string
	// Header is the header that carries the signature. Default "X-Signature".
	Header string
	// Prefix precedes the signature in the header, such as "sha256=". Default none.
	Prefix string
	// Hash is the hash function of the HMAC. Default [spec.SHA256].
	Hash spec.Hash
	// KeyForm is how a secret's text becomes the HMAC's key. Default [spec.KeyUTF8].
	KeyForm spec.KeyForm
	// Encoding is how the signature is written. Default [spec.Hex].
	Encoding spec.Encoding
	// Key lists the parts of the event's key. Default json:$.id.
	Key []spec.Value
	// Type is where the event's type is. Default json:$.type.
	Type spec.Value
	// Time is where the time of the event is. Default none.
	Time spec.Moment
	// Limits states the sender's sizes and windows. Default: 1 MiB, no windows known.
	Limits spec.Limits
}

// HMAC returns a provider for a sender that signs the body with an HMAC. It panics if the
// configuration is wrong, or a secret is missing or of the wrong form; [spec.New] with
// [HMACConfig.Spec] returns an error instead.
func HMAC(c HMACConfig) *spec.Provider {
	return must(spec.New(c.Spec(), spec.Settings{Secrets: spec.Secrets(c.Secrets...)}))
}

// Format writes the configuration without the secrets.
func (c HMACConfig) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s, header %s, %d secrets}", cmp.Or(c.Name, "hmac"), c.header(), len(c.Secrets))
}

// MarshalText is Format for JSON and structured logs.
func (c HMACConfig) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%v", c), nil }

func (c HMACConfig) header() string { return cmp.Or(c.Header, "X-Signature") }

// Spec returns the specification that the configuration stands for. Mistakes in it are found by
// [spec.New].
func (c HMACConfig) Spec() spec.Spec {
	key := c.Key
	if len(key) == 0 {
		key = []spec.Value{"json:$.id"}
	}
	s := spec.Spec{
		Name:      cmp.Or(c.Name, "hmac"),
		Title:     "HMAC",
		Secret:    "the secret shared with the sender",
		OwnSecret: true,
		Verify: []spec.Verify{{
			Hash:      c.Hash,
			Key:       c.KeyForm,
			Encoding:  c.Encoding,
			Signature: spec.Signature{In: spec.Value("header:" + c.header()), Prefix: c.Prefix},
			Sign:      []spec.Value{"body"},
		}},
		Event:  spec.Extract{Key: [][]spec.Value{key}, Type: []spec.Value{cmp.Or(c.Type, "json:$.type")}},
		Limits: c.Limits,
		Traps:  []string{"no time is signed: a captured request can be replayed for as long as its key is not remembered"},
	}
	if c.Time.In != "" {
		s.Event.Time = []spec.Moment{{In: c.Time.In, Unit: cmp.Or(c.Time.Unit, spec.Seconds)}}
	}
	s.Example = exampleFor(key, cmp.Or(c.Type, "json:$.type"), c.Time)
	return s
}

// exampleFor returns a template that has the id, type and time where the values look for them.
func exampleFor(key []spec.Value, kind spec.Value, when spec.Moment) spec.Template {
	t := spec.Template{Type: "order.paid", Header: map[string]string{}, Body: `{"amount": 4200, "currency": "EUR", "order": "1001"}`}
	for _, v := range key {
		t.Place(v, "{{id}}")
	}
	t.Place(kind, "{{type}}")
	switch {
	case when.In == "":
	case when.Unit == spec.RFC3339:
		t.Place(when.In, "{{time}}")
	case when.Unit == spec.Millis:
		t.Place(when.In, "{{millis}}")
	default:
		t.Place(when.In, "{{unix}}")
	}
	return t
}
