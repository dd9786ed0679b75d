package spec

import (
	"slices"
)

// KeySigned reports for each rule of Event.Key whether the signature covers all of it, in every way of
// signing. Where it does not, somebody who replays a captured request can change the key. It is for
// listings; for an event there is [hookonce.Event.KeySigned].
func (s Spec) KeySigned() []bool {
	s = s.WithDefaults()
	signed := make([]bool, len(s.Event.Key))
	for i, rule := range s.Event.Key {
		signed[i] = true
		for _, way := range s.Verify {
			if way.ID == "" && slices.Contains(rule, "id") {
				continue // the rule is not for this way
			}
			signed[i] = signed[i] && way.bindsAll(rule) && (s.Dedup.OnRepeat != KeepLatest || way.Covers == CoversBody)
		}
	}
	return signed
}

// bindsAll reports whether the signature covers every value. One that cannot be parsed is not covered.
func (v Verify) bindsAll(values []Value) bool {
	signer := verifier{kind: v.Kind, covers: v.Covers, scheme: v.Scheme, join: v.Join}
	if v.Time != nil {
		signer.unit, signer.past, signer.future = v.Time.Unit, v.Time.Past, v.Time.Future
	}
	for _, text := range v.Sign {
		part, err := parseValue(text)
		if err != nil {
			return false
		}
		if part.kind == kindURL {
			part.plain = unescaper(v.Unescape)
		}
		signer.sign = append(signer.sign, part)
	}
	for _, text := range values {
		part, err := parseValue(text)
		if part.kind == kindID {
			part.origin = string(v.ID)
		}
		if err != nil || !signer.binds(&part) {
			return false
		}
	}
	return true
}

// SignsURL reports whether a way of signing covers the URL that the sender calls. An endpoint behind a
// proxy, which sees another URL, has to be told it then: see [Settings.URL].
func (s Spec) SignsURL() bool {
	return slices.ContainsFunc(s.Verify, Verify.signsWholeURL)
}

// Imitable reports whether [Provider.Sign] can sign with the secret of the endpoint: the first way of
// signing uses a shared secret. One that does not can be imitated with a private key of one's own where it is an
// HTTP message signature: see [Settings.AsSender].
func (s Spec) Imitable() bool {
	v := s.WithDefaults().Verify[0]
	switch v.Kind {
	case Ed25519, ECDSA, RSA:
		return false
	case JWT:
		return len(v.Algorithms) > 0 && v.Algorithms[0][0] == 'H'
	case HTTPSignature:
		return v.sharesSecret()
	case Code:
		scheme, ok := v.Scheme.(Imitator)
		return ok && scheme.Imitable()
	}
	return true
}
