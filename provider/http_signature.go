package provider

import (
	"cmp"
	"fmt"

	"github.com/hookonce/hookonce/provider/spec"
)

// HTTPSignatureConfig describes a sender that is not in the catalogue and signs its requests with HTTP message signatures
// (RFC 9421). The zero value, with secrets, is a usable configuration.
type HTTPSignatureConfig struct {
	// Name is the provider's name in events, logs and metrics. Default "http-signature".
	Name string
	// URL is the address that the sender calls, as it writes it. Empty means the URL of the request, which is right only
	// where no proxy changes it. Used by [HTTPSignature] only, as are the secrets; with [HTTPSignatureConfig.Spec] both go
	// into [spec.Settings].
	URL string
	// Secrets are the shared secrets and the public keys, in PEM, that are valid now. At least one.
	Secrets []string
	// AsSender is set where requests are made in the sender's name, see [spec.Settings.AsSender]: a private key in PEM may
	// stand among Secrets then. Used by [HTTPSignature] only.
	AsSender bool
	// KeyForm is how the text of a shared secret becomes a key. Default [spec.KeyUTF8].
	KeyForm spec.KeyForm
	// KeyID and Tag are what the signature's parameters keyid and tag must be. Default: anything.
	KeyID, Tag string
	// Headers are the names of headers that must be signed besides the method, the URL and the body. Default none.
	Headers []string
	// Key lists the parts of the event's key. Default json:$.id.
	Key []spec.Value
	// Type is where the event's type is. Default json:$.type.
	Type spec.Value
	// Limits states the sender's sizes and windows. Default: 1 MiB, no windows known.
	Limits spec.Limits
}

// HTTPSignature returns a provider for a sender that signs with HTTP message signatures (RFC 9421). A secret is shared
// (hmac-sha256), or a public key in PEM, whose kind says which algorithm it is for: ed25519, ecdsa-p256-sha256,
// ecdsa-p384-sha384 or rsa-pss-sha512. It panics if the configuration is wrong, or a secret is missing or of the wrong
// form; [spec.New] with [HTTPSignatureConfig.Spec] returns an error instead.
//
// A signature must cover the method, the URL and, by its Content-Digest, the body, and say when it was created, which may
// be five minutes off in either direction.
func HTTPSignature(c HTTPSignatureConfig) *spec.Provider {
	return must(spec.New(c.Spec(), spec.Settings{URL: c.URL, Secrets: spec.Secrets(c.Secrets...), AsSender: c.AsSender}))
}

// Format writes the configuration without the secrets.
func (c HTTPSignatureConfig) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%s, %d secrets}", cmp.Or(c.Name, "http-signature"), len(c.Secrets))
}

// MarshalText is Format for JSON and structured logs.
func (c HTTPSignatureConfig) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%v", c), nil }

// Spec returns the specification that the configuration stands for. Mistakes in it are found by [spec.New].
func (c HTTPSignatureConfig) Spec() spec.Spec {
	key := c.Key
	if len(key) == 0 {
		key = []spec.Value{"json:$.id"}
	}
	kind := cmp.Or(c.Type, "json:$.type")
	return spec.Spec{
		Name:      cmp.Or(c.Name, "http-signature"),
		Title:     "HTTP message signatures (RFC 9421)",
		Secret:    "the secret shared with the sender, or its public key in PEM",
		OwnSecret: true,
		Verify:    []spec.Verify{c.verify(c.KeyForm, "hmac-sha256"), c.verify("", "ed25519", "ecdsa-p256-sha256", "ecdsa-p384-sha384", "rsa-pss-sha512")},
		Event:     spec.Extract{Key: [][]spec.Value{key}, Type: []spec.Value{kind}},
		Limits:    c.Limits,
		Example:   exampleFor(key, kind, spec.Moment{}),
		Sources: []spec.Source{
			stated("signature", "RFC 9421, HTTP Message Signatures: sections 2, 3 and appendix B"),
			stated("digest of the body", "RFC 9530, Digest Fields: section 2"),
			notSourced("tolerance: how old a signature may be is up to whoever verifies, and is five minutes here"),
			notSourced("how long it retries, the same id in every retry: that is up to each sender"),
		},
		Traps: []string{
			"a signature that does not cover the method, the URL and the Content-Digest is refused: whoever captured a request could send it elsewhere, or with another body",
			"the signature covers the URL: behind a proxy the request's URL differs from the one that the sender called, and everything is rejected",
			"the algorithm follows from the key, never from what the request says; for rsa-v1_5-sha256, or keys as a JWK, describe the sender with kind: http_signature",
			"each retry must be signed anew: one that repeats the first signature is too old after five minutes",
		},
	}
}

func (c HTTPSignatureConfig) verify(form spec.KeyForm, algorithms ...string) spec.Verify {
	v := spec.Verify{Kind: spec.HTTPSignature, Key: form, Algorithms: algorithms}
	for name, text := range map[string]string{"keyid": c.KeyID, "tag": c.Tag} {
		if text == "" {
			continue
		}
		if v.Claims == nil {
			v.Claims = map[string]string{}
		}
		v.Claims[name] = text
	}
	for _, name := range c.Headers {
		v.Sign = append(v.Sign, spec.Value("header:"+name))
	}
	return v
}
