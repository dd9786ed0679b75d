package spec

import (
	"cmp"
	"errors"
	"fmt"
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
	p := &Provider{spec: spec, settings: settings, extract: extractor{provider: spec.Name, onRepeat: spec.Dedup.OnRepeat, digesters: sync.Pool{New: newDigester}}}
	p.url, p.query, _ = strings.Cut(settings.URL, "?")
	var err error
	if p.layout, err = newLayout(spec); err != nil {
		return nil, err
	}
	if err := p.bindVerifiers(); err != nil {
		return nil, err
	}
	if err := p.bindExtract(); err != nil {
		return nil, err
	}
	for i, s := range spec.Handshakes {
		h, err := newHandshake(s, p.layout, p.verifiers, settings)
		if err != nil {
			return nil, within(fmt.Sprintf("handshakes[%d]", i), err)
		}
		p.handshakes = append(p.handshakes, h)
	}
	p.profile = p.newProfile()
	return p, nil
}

// matchers make the mechanism of each kind.
var matchers = map[Kind]func(Verify, Settings) (matcher, error){
	HMAC:          newMACMatcher,
	PlainHash:     newMACMatcher,
	Ed25519:       newPublicMatcher,
	ECDSA:         newPublicMatcher,
	RSA:           newPublicMatcher,
	JWT:           newJWTMatcher,
	HTTPSignature: newHTTPMatcher,
	Token:         newTokenMatcher,
	Basic:         newTokenMatcher,
	Code:          newCodeMatcher,
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
		v.way, v.mistakable = i, slices.ContainsFunc(p.spec.Verify, spec.mistakes)
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

// mistakes reports whether a body that is signed in this way could hold what another way signs beside the body, with the
// same key.
func (v Verify) mistakes(other Verify) bool {
	return slices.Contains(v.Sign, "body") && len(v.Sign) < len(other.Sign) &&
		v.Kind == other.Kind && v.Hash == other.Hash && v.Key == other.Key && v.Encoding == other.Encoding
}

// newVerifier compiles one way of signing.
func (p *Provider) newVerifier(spec Verify) (v verifier, err error) {
	if spec.PerItem {
		p.layout.splitter.strict = true
	}
	v = verifier{kind: spec.Kind, join: spec.Join, covers: spec.Covers, perItem: spec.PerItem, scheme: spec.Scheme, hashesURL: spec.URLHash != "" || spec.Kind == HTTPSignature}
	make, ok := matchers[spec.Kind]
	if !ok {
		return v, fault("kind", "there is no %q; use hmac, hash, ed25519, ecdsa, rsa, jwt, http_signature, token or basic", spec.Kind)
	}
	if spec.Kind != Code {
		if v.carrier, err = newCarrier(spec.Signature); err != nil {
			return v, err
		}
		p.layout.bind(&v.carrier.in)
		if err := p.bindSigned(&v, spec); err != nil {
			return v, err
		}
	}
	if p.settings.blind {
		make = newBlindMatcher
	}
	if v.matcher, err = make(spec, p.settings); err != nil {
		return v, err
	}
	if tokens, ok := v.matcher.(*tokenMatcher); ok && slices.ContainsFunc(p.spec.Verify, func(other Verify) bool { return other.Key == KeyWhsecOnly }) {
		if err = tokens.leaveSigning(); err != nil {
			return v, err
		}
	}
	v.carrier.shape = v.describe()
	v.at, _ = spec.carrier()
	if spec.Kind != Code {
		v.at = v.carrier.in
	}
	v.renewal, _ = spec.renewal(p.layout.splitter != nil)
	v.marks = marks(p.spec.Name, spec, p.settings.Secrets)
	return v, nil
}

// unescaper returns what undoes the escapes of those characters, nil for none.
func unescaper(characters string) *strings.Replacer {
	var pairs []string
	for _, c := range []byte(characters) {
		pairs = append(pairs, fmt.Sprintf("%%%02X", c), string(rune(c)))
	}
	if pairs == nil {
		return nil
	}
	return strings.NewReplacer(pairs...)
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
	for i, text := range spec.Sign {
		plain, lowered := strings.CutPrefix(string(text), "lower:")
		if err := text.Check(); err != nil {
			return within(fmt.Sprintf("sign[%d]", i), err)
		}
		part, err := p.layout.fact(Value(plain), kindBody, kindTS, kindID, kindURL, kindMethod, kindConst, kindSortedForm, kindSecret,
			kindJSON, kindItem, kindForm, kindQuery, kindHeader)
		if err != nil {
			return within(fmt.Sprintf("sign[%d]", i), err)
		}
		part.lowered, part.origin = lowered, string(text)
		if part.kind == kindURL {
			part.plain = unescaper(spec.Unescape)
		}
		if v.covers == CoversFields {
			p.layout.guard(&part)
		}
		v.sign = append(v.sign, part)
	}
	v.signed = inWords(v.sign)
	if spec.Kind == HTTPSignature {
		v.signed = "what it covers"
	}
	return nil
}

func (p *Provider) bindTime(v *verifier, spec Timestamp) error {
	ts, err := p.layout.fact(spec.In, kindHeader, kindPart, kindEntry, kindJSON, kindClaim)
	switch {
	case err != nil:
		return err
	case (ts.kind == kindPart || ts.kind == kindEntry) && v.carrier.split == "":
		return errors.New("a part of the signature's text needs signature.split")
	case (ts.kind == kindClaim) != (v.kind == JWT || v.kind == HTTPSignature):
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

// maxKeyParts is how many parts a key may have.
const maxKeyParts = 8

// keyRules compiles the rules for the key, for events that were verified by v.
func (p *Provider) keyRules(rules [][]Value, v *verifier) ([]keyRule, error) {
	var out []keyRule
	for i, rule := range rules {
		if v.id == nil && len(rules) > 1 && slices.Contains(rule, "id") {
			continue
		}
		compiled, err := p.keyRule(rule, v)
		if err != nil {
			return nil, within(fmt.Sprintf("event.key[%d]", i), err)
		}
		out = append(out, compiled)
	}
	return out, nil
}

func (p *Provider) keyRule(rule []Value, v *verifier) (keyRule, error) {
	if len(rule) > maxKeyParts {
		return keyRule{}, fmt.Errorf("a key has at most %d parts", maxKeyParts)
	}
	out := keyRule{signed: true}
	var origins []string
	for i, text := range rule {
		part, err := p.keyPart(text, i == len(rule)-1)
		if err != nil {
			return keyRule{}, err
		}
		if part.kind == kindID {
			if v.id == nil {
				return keyRule{}, errors.New("id is used, but a way of signing has no id")
			}
			part.origin = v.id.origin
		}
		out.parts = append(out.parts, part)
		out.signed = out.signed && v.binds(&part)
		out.inBody = out.inBody || part.inBody()
		origins = append(origins, part.origin)
	}
	out.origin = strings.Join(origins, " + ")
	return out, nil
}

// keyPart compiles one part of a key.
func (p *Provider) keyPart(text Value, last bool) (value, error) {
	optional := false
	if last {
		text, optional = cutOptional(text)
	}
	part, err := p.layout.fact(text, kindHeader, kindJSON, kindItem, kindParent, kindForm, kindQuery, kindConst, kindID)
	part.optional = optional
	return part, err
}

// bindExtract compiles what is taken from an event besides its key.
func (p *Provider) bindExtract() error {
	x, event := &p.extract, p.spec.Event
	fields := []struct {
		name string
		from []Value
		to   *[]value
	}{
		{"event.attempt_id", event.AttemptID, &x.attemptID},
		{"event.subscription", event.Subscription, new([]value)},
		{"event.type", event.Type, &x.kind},
		{"event.action", event.Action, &x.action},
		{"event.resource", event.Resource, &x.resource},
		{"event.tenant", event.Tenant, &x.tenant},
		{"event.attempt", event.Attempt, &x.attempt},
		{"event.reason", event.Reason, &x.reason},
		{"dedup.same", p.spec.Dedup.Same, &x.same},
	}
	for _, f := range fields {
		for i, text := range f.from {
			v, err := p.layout.fact(text, kindHeader, kindJSON, kindItem, kindParent, kindForm, kindQuery, kindConst)
			if err != nil {
				return within(fmt.Sprintf("%s[%d]", f.name, i), err)
			}
			*f.to = append(*f.to, v)
		}
	}
	for i, m := range event.Time {
		v, err := p.layout.fact(m.In, kindHeader, kindJSON, kindItem, kindParent, kindForm, kindTS)
		unit := cmp.Or(m.Unit, Seconds)
		if err == nil && !unit.valid() {
			err = fmt.Errorf("there is no unit %q; use s, ms or rfc3339", m.Unit)
		}
		if err != nil {
			return within(fmt.Sprintf("event.time[%d]", i), err)
		}
		x.time = append(x.time, moment{v, unit})
	}
	return p.bindLogicalDuplicates()
}

// bindLogicalDuplicates compiles what recognises logical duplicates, and the order.
func (p *Provider) bindLogicalDuplicates() error {
	for i, l := range p.spec.Dedup.Logical {
		rule, err := p.keyRule(l.Key, &p.verifiers[0])
		if err != nil {
			return within(fmt.Sprintf("dedup.logical[%d].key", i), err)
		}
		p.extract.logical = append(p.extract.logical, logical{l, rule})
	}
	o := p.spec.Order
	if o == nil {
		return nil
	}
	by, err := p.layout.fact(o.By, kindHeader, kindJSON, kindItem, kindParent, kindForm)
	if err == nil && o.Unit != "" && !o.Unit.valid() {
		err = fmt.Errorf("there is no unit %q; use s, ms or rfc3339, or none for a version number", o.Unit)
	}
	compiled := &order{by: by, unit: o.Unit}
	for _, text := range o.Scope {
		if err == nil {
			var part value
			part, err = p.layout.fact(text, kindHeader, kindJSON, kindItem, kindParent, kindForm, kindConst)
			compiled.scope = append(compiled.scope, part)
		}
	}
	p.extract.order = compiled
	return within("order", err)
}
