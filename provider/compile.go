package provider

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// New compiles a specification for one endpoint. It refuses a specification that can not be applied
// or is not safe (a signature that leaves out the body, a tolerance on a time that is not signed, a
// key that could be the same for all events) and secrets of the wrong form. Errors name the field and
// never contain a secret.
func New(spec Spec, settings Settings) (*Provider, error) {
	p, err := build(spec, settings)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
	}
	return p, nil
}

// must is for constructors whose arguments are written into a program.
func must(p *Provider, err error) *Provider {
	if err != nil {
		panic(err)
	}
	return p
}

func build(spec Spec, settings Settings) (*Provider, error) {
	if err := spec.check(); err != nil {
		return nil, err
	}
	spec = spec.withDefaults()
	if err := settings.apply(spec); err != nil {
		return nil, err
	}
	p := &Provider{spec: spec, url: settings.URL, digesters: sync.Pool{New: newDigester}}
	for i := range spec.Verify {
		v, err := newVerifier(spec.Verify[i], settings.Secrets)
		if err != nil {
			return nil, within(fmt.Sprintf("Verify[%d]", i), err)
		}
		if v.keys, err = p.tree.keyRules(spec.Event.Key, &v); err != nil {
			return nil, err
		}
		p.verifiers = append(p.verifiers, v)
	}
	var err error
	if p.extract, err = p.tree.extractor(spec); err != nil {
		return nil, err
	}
	p.hands, err = p.tree.handshakes(spec.Handshakes)
	return p, err
}

// check refuses specifications without the essentials.
func (s Spec) check() error {
	switch {
	case s.Name == "":
		return errors.New("the specification has no Name")
	case len(s.Verify) == 0:
		return errors.New("the specification has no Verify: every request must be authenticated")
	case s.Limits.MaxBody < 0 || s.Limits.Retry < 0 || s.Limits.Manual < 0:
		return errors.New("Limits: a size or window is negative")
	case s.Answer.Status != 0 && (s.Answer.Status < 200 || s.Answer.Status > 299):
		return fmt.Errorf("Answer.Status is %d; success is 200 to 299", s.Answer.Status)
	}
	return nil
}

// withDefaults returns a copy with what the specification leaves out filled in. What [Settings] may
// change is copied as well.
func (s Spec) withDefaults() Spec {
	s.Verify = slices.Clone(s.Verify)
	for i := range s.Verify {
		v := &s.Verify[i]
		v.Hash = or(v.Hash, SHA256)
		v.Key = or(v.Key, KeyUTF8)
		v.Encoding = or(v.Encoding, Hex)
		if v.Time != nil {
			ts := *v.Time
			ts.Unit = or(ts.Unit, Seconds)
			v.Time = &ts
		}
	}
	s.Answer.Status = or(s.Answer.Status, http.StatusOK)
	s.Limits.MaxBody = or(s.Limits.MaxBody, DefaultMaxBody)
	s.Secret = or(s.Secret, "the endpoint's signing secret")
	return s
}

func or[T comparable](v, fallback T) T {
	var zero T
	if v == zero {
		return fallback
	}
	return v
}

// within says which field an error is about.
func within(field string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", field, err)
}

// newVerifier compiles one way of signing.
func newVerifier(spec Verify, secrets []string) (verifier, error) {
	newHash := spec.Hash.new()
	if newHash == nil {
		return verifier{}, fmt.Errorf("Hash: there is no %q; use sha1, sha256 or sha512", spec.Hash)
	}
	v := verifier{
		signature: spec.Signature,
		encoding:  spec.Encoding,
		size:      spec.Encoding.size(newHash().Size()),
		alphabet:  spec.Encoding.alphabet(),
	}
	if v.size == 0 {
		return verifier{}, fmt.Errorf("Encoding: there is no %q; use hex, base64 or base64url", spec.Encoding)
	}
	in, err := parseAs(spec.Signature.In, kindHeader)
	if err != nil {
		return verifier{}, within("Signature.In", err)
	}
	v.header = in.text
	if err := v.bindSigned(spec); err != nil {
		return verifier{}, err
	}
	v.shape = v.describe()
	for i, secret := range secrets {
		key, err := spec.Key.decode(secret)
		if err != nil {
			return verifier{}, fmt.Errorf("secret %d of %d %w", i+1, len(secrets), err)
		}
		v.secrets = append(v.secrets, newMACs(newHash, key))
	}
	return v, nil
}

// bindSigned compiles what is signed besides the secret: identifier, time and content.
func (v *verifier) bindSigned(spec Verify) error {
	if spec.ID != "" {
		id, err := parseAs(spec.ID, kindHeader)
		if err != nil {
			return within("ID", err)
		}
		v.id = &id
	}
	if spec.Time != nil {
		if err := v.bindTime(*spec.Time); err != nil {
			return within("Time", err)
		}
	}
	var names []string
	for i, text := range spec.Sign {
		part, err := parseAs(text, kindBody, kindTS, kindID, kindURL, kindConst)
		if err != nil {
			return within(fmt.Sprintf("Sign[%d]", i), err)
		}
		v.sign = append(v.sign, part)
		names = append(names, strings.TrimPrefix(part.origin, "const:"))
	}
	v.covers = strings.Join(names, " ")
	return v.checkSigned()
}

func (v *verifier) bindTime(spec Timestamp) error {
	ts, err := parseAs(spec.In, kindHeader, kindPart)
	switch {
	case err != nil:
		return err
	case ts.kind == kindPart && v.signature.Split == "":
		return errors.New("a part of the signature's header needs Signature.Split")
	case !spec.Unit.valid():
		return fmt.Errorf("Unit: there is no %q; use s, ms or rfc3339", spec.Unit)
	case spec.Past < 0 || spec.Future < 0:
		return errors.New("a tolerance is negative")
	}
	v.ts, v.unit, v.past, v.future = &ts, spec.Unit, spec.Past, spec.Future
	return nil
}

// checkSigned refuses schemes that leave something out of what is signed.
func (v *verifier) checkSigned() error {
	switch {
	case !v.signs(kindBody):
		return errors.New("Sign does not contain body: anybody could change it")
	case v.signs(kindTS) != (v.ts != nil):
		return errors.New("Sign and Time must both have the time: a tolerance on a time that is not signed protects nobody")
	case v.signs(kindID) != (v.id != nil):
		return errors.New("Sign and ID must both have the identifier")
	}
	return nil
}

// describe returns what the signature's header looks like.
func (v *verifier) describe() string {
	sig := v.signature.Prefix + "<" + v.encoding.describe(v.size) + ">"
	if v.ts != nil && v.ts.kind == kindPart {
		return v.ts.text + "<" + v.unit.describe() + ">" + v.signature.Split + sig
	}
	return sig
}

// parseAs parses a value of one of the given kinds.
func parseAs(text Value, kinds ...kind) (value, error) {
	v, err := parseValue(text)
	switch {
	case err != nil:
		return v, err
	case !slices.Contains(kinds, v.kind):
		return v, fmt.Errorf("%q can not stand here", text)
	case v.optional:
		return v, fmt.Errorf("%q: only the last part of a key can be optional", text)
	}
	return v, nil
}
