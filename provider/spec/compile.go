package spec

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// New compiles a specification for one endpoint. It refuses a specification that is not safe (see
// [Spec.Validate]) or cannot be applied, and secrets of the wrong form ([ErrSecret]). Errors name the
// field and never contain a secret; package specyaml adds the lines.
func New(spec Spec, settings Settings) (*Provider, error) {
	p, err := build(spec, settings)
	if err != nil {
		return nil, fmt.Errorf("provider %s: %w", spec.Name, err)
	}
	return p, nil
}

func build(spec Spec, settings Settings) (*Provider, error) {
	spec = spec.WithDefaults()
	if err := spec.Validate(); err != nil {
		return nil, err
	}
	if err := settings.apply(spec); err != nil {
		return nil, err
	}
	p := &Provider{spec: spec, settings: settings, digesters: sync.Pool{New: newDigester}}
	p.url, p.query, _ = strings.Cut(settings.URL, "?")
	if err := p.bindSplit(); err != nil {
		return nil, err
	}
	if err := p.bindVerifiers(); err != nil {
		return nil, err
	}
	if err := p.bindExtract(); err != nil {
		return nil, err
	}
	for i, s := range spec.Handshakes {
		h, err := p.newHandshake(s)
		if err != nil {
			return nil, within(fmt.Sprintf("handshakes[%d]", i), err)
		}
		p.handshakes = append(p.handshakes, h)
	}
	p.profile = p.newProfile()
	return p, nil
}

// WithDefaults returns a copy in which what the specification leaves out is filled in, as the fields say.
// What is filled in is the copy's own.
func (s Spec) WithDefaults() Spec {
	s.Verify = slices.Clone(s.Verify)
	for i := range s.Verify {
		s.Verify[i] = s.Verify[i].withDefaults()
	}
	s.Title = cmp.Or(s.Title, s.Name)
	s.Secret = cmp.Or(s.Secret, "the endpoint's signing secret")
	s.Dedup.OnRepeat = cmp.Or(s.Dedup.OnRepeat, Drop)
	s.Dedup.Logical = slices.Clone(s.Dedup.Logical)
	for i := range s.Dedup.Logical {
		s.Dedup.Logical[i].Mode = cmp.Or(s.Dedup.Logical[i].Mode, Flag)
	}
	s.Handshakes = slices.Clone(s.Handshakes)
	for i := range s.Handshakes {
		s.Handshakes[i] = s.Handshakes[i].withDefaults()
	}
	s.Answer.Status = cmp.Or(s.Answer.Status, http.StatusOK)
	s.Answer.Reject = cmp.Or(s.Answer.Reject, http.StatusUnauthorized)
	s.Answer.NotReady = cmp.Or(s.Answer.NotReady, http.StatusServiceUnavailable)
	s.Limits.MaxBody = cmp.Or(s.Limits.MaxBody, DefaultMaxBody)
	return s
}

// withDefaults fills in what the kind of the verification suggests.
func (v Verify) withDefaults() Verify {
	v.Kind = cmp.Or(v.Kind, HMAC)
	v.Hash = cmp.Or(v.Hash, SHA256)
	switch v.Kind {
	case Ed25519:
		v.Key = cmp.Or(v.Key, KeyHex)
	case ECDSA, RSA:
		v.Key, v.Encoding = cmp.Or(v.Key, KeyPEM), cmp.Or(v.Encoding, Base64)
	case JWT:
		v.Signature.In = cmp.Or(v.Signature.In, "header:Authorization")
	case Basic:
		v.Signature.In, v.Signature.Prefix = cmp.Or(v.Signature.In, "header:Authorization"), cmp.Or(v.Signature.Prefix, "Basic ")
	}
	v.Key = cmp.Or(v.Key, KeyUTF8)
	v.Encoding = cmp.Or(v.Encoding, Hex)
	if v.Time != nil {
		ts := *v.Time
		ts.Unit = cmp.Or(ts.Unit, Seconds)
		v.Time = &ts
	}
	v.Covers = cmp.Or(v.Covers, v.coverage())
	return v
}

// coverage is what follows from the kind and from Sign. Empty: it must be said.
func (v Verify) coverage() Coverage {
	switch {
	case v.Kind == Token || v.Kind == Basic:
		return CoversNothing
	case v.Kind == Code && v.Scheme != nil:
		return v.Scheme.Covers()
	case v.Kind == JWT && v.BodyHash != "", slices.Contains(v.Sign, "body"):
		return CoversBody
	case slices.Contains(v.Sign, "sorted_form"):
		return CoversFields // as one text: of none is it known where it ends
	case v.Kind == JWT:
		return CoversNothing
	}
	return ""
}

// matchers make the mechanism of each kind.
var matchers = map[Kind]func(Verify, []Secret) (matcher, error){
	HMAC:      newMACMatcher,
	PlainHash: newMACMatcher,
	Ed25519:   newPublicMatcher,
	ECDSA:     newPublicMatcher,
	RSA:       newPublicMatcher,
	JWT:       newJWTMatcher,
	Token:     newTokenMatcher,
	Basic:     newTokenMatcher,
	Code:      newCodeMatcher,
}

// bindVerifiers compiles every way of signing. One whose keys none of the secrets is for is left out.
func (p *Provider) bindVerifiers() error {
	var other error
	var secret *secretError
	for i, spec := range p.spec.Verify {
		v, err := p.newVerifier(spec)
		switch {
		case errors.Is(err, errOtherForm):
			other = err
			continue
		case errors.As(err, &secret):
			return err
		case err != nil:
			return within(fmt.Sprintf("verify[%d]", i), err)
		}
		v.way = i
		if v.keys, err = p.keyRules(p.spec.Event.Key, &v); err != nil {
			return err
		}
		p.verifiers = append(p.verifiers, v)
	}
	if len(p.verifiers) == 0 {
		return &secretError{fmt.Errorf("no secret has the right form: each %w; it needs %s", other, p.spec.Secret)}
	}
	return nil
}

// newVerifier compiles one way of signing.
func (p *Provider) newVerifier(spec Verify) (v verifier, err error) {
	if d, ok := spec.Scheme.(Decoder); ok {
		p.decoder = d
	}
	if spec.PerItem {
		p.splitter.strict = true
	}
	v = verifier{kind: spec.Kind, join: spec.Join, covers: spec.Covers, perItem: spec.PerItem, scheme: spec.Scheme}
	make, ok := matchers[spec.Kind]
	if !ok {
		return v, fault("kind", "there is no %q; use hmac, hash, ed25519, ecdsa, rsa, jwt, token or basic", spec.Kind)
	}
	if spec.Kind != Code {
		if v.carrier, err = newCarrier(spec.Signature); err != nil {
			return v, err
		}
		p.bind(&v.carrier.in)
		if err := p.bindSigned(&v, spec); err != nil {
			return v, err
		}
	}
	if v.matcher, err = make(spec, p.settings.Secrets); err != nil {
		return v, err
	}
	v.carrier.shape = v.describe()
	v.at, _ = spec.carrier()
	if spec.Kind != Code {
		v.at = v.carrier.in
	}
	v.renewal, v.fixed = spec.renewal(p.splitter != nil)
	v.marks = marks(p.spec.Name, spec, p.settings.Secrets)
	return v, nil
}

// bindSigned compiles what is signed besides the secret: identifier, time and content.
func (p *Provider) bindSigned(v *verifier, spec Verify) error {
	if spec.ID != "" {
		id, err := parseAs(spec.ID, kindHeader)
		if err != nil {
			return within("id", err)
		}
		v.id = &id
	}
	if spec.Time != nil {
		if err := p.bindTime(v, *spec.Time); err != nil {
			return within("time", err)
		}
	}
	var names []string
	for i, text := range spec.Sign {
		part, err := p.fact(text, kindBody, kindTS, kindID, kindURL, kindMethod, kindConst, kindSortedForm, kindSecret,
			kindJSON, kindItem, kindForm, kindQuery, kindHeader)
		if err != nil {
			return within(fmt.Sprintf("sign[%d]", i), err)
		}
		if v.covers == CoversFields {
			p.guard(&part)
		}
		v.sign = append(v.sign, part)
		names = append(names, strings.TrimPrefix(part.origin, "const:"))
	}
	v.signed = strings.Join(names, cmp.Or(v.join, " "))
	return nil
}

func (p *Provider) bindTime(v *verifier, spec Timestamp) error {
	ts, err := p.fact(spec.In, kindHeader, kindPart, kindEntry, kindJSON, kindClaim)
	switch {
	case err != nil:
		return err
	case (ts.kind == kindPart || ts.kind == kindEntry) && v.carrier.split == "":
		return errors.New("a part of the signature's text needs signature.split")
	case (ts.kind == kindClaim) != (v.kind == JWT):
		return errors.New("the time of a token, and of nothing else, is a claim, as in claim:iat")
	case !spec.Unit.valid():
		return fault("unit", "there is no %q; use s, ms or rfc3339", spec.Unit)
	case spec.Past < 0 || spec.Future < 0:
		return errors.New("a tolerance is negative")
	}
	v.ts, v.unit, v.past, v.future = &ts, spec.Unit, spec.Past, spec.Future
	return nil
}

// describe returns what the text with the signature looks like.
func (v *verifier) describe() string {
	sig := v.carrier.prefix + "<" + v.matcher.shape() + ">"
	if v.ts != nil && (v.ts.kind == kindPart || v.ts.kind == kindEntry) {
		return v.ts.text + "<" + v.unit.describe() + ">" + v.carrier.split + sig
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
		return v, fmt.Errorf("%q cannot be used here; use %s", text, oneOf(kinds))
	case v.optional:
		return v, fmt.Errorf("%q: only the last part of a key can be optional", text)
	case v.many():
		return v, fmt.Errorf("%q: [*] is for split.items only; use [0] for one element", text)
	}
	return v, nil
}

// oneOf lists kinds for people.
func oneOf(kinds []kind) string {
	names := make([]string, len(kinds))
	for i, k := range kinds {
		names[i] = string(k)
		if k.tagged() {
			names[i] += ":"
		}
	}
	if len(names) == 1 {
		return names[0]
	}
	return strings.Join(names[:len(names)-1], ", ") + " or " + names[len(names)-1]
}

// tagged reports whether something follows the kind in a value.
func (k kind) tagged() bool {
	switch k {
	case kindBody, kindURL, kindMethod, kindSortedForm, kindTS, kindID, kindSecret, kindToken, kindEcho:
		return false
	}
	return true
}
