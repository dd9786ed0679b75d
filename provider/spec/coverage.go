package spec

import (
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
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
			signed[i] = signed[i] && way.bindsAll(rule) && (s.Dedup.OnRepeat != KeepLatest || way.Covers == CoversBody)
		}
	}
	return signed
}

// bindsAll reports whether the signature covers every value. One that cannot be parsed is not covered.
func (v Verify) bindsAll(values []Value) bool {
	signer := verifier{covers: v.Covers, scheme: v.Scheme, join: v.Join}
	if v.Time != nil {
		signer.unit, signer.past, signer.future = v.Time.Unit, v.Time.Past, v.Time.Future
	}
	for _, text := range v.Sign {
		part, err := parseValue(text)
		if err != nil {
			return false
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
	return slices.ContainsFunc(s.Verify, func(v Verify) bool {
		return slices.Contains(v.Sign, "url") || v.Scheme != nil && v.Scheme.Signs("url")
	})
}

// Imitable reports whether [Provider.Sign] can sign with the secret of the endpoint: the first way of
// signing uses a shared secret.
func (s Spec) Imitable() bool {
	v := s.WithDefaults().Verify[0]
	switch v.Kind {
	case Ed25519, ECDSA, RSA:
		return false
	case JWT:
		return len(v.Algorithms) > 0 && v.Algorithms[0][0] == 'H'
	case Code:
		scheme, ok := v.Scheme.(Imitator)
		return ok && scheme.Imitable()
	}
	return true
}

// signs reports whether a value of that kind is part of what is signed.
func (v *verifier) signs(k kind) bool {
	for i := range v.sign {
		if v.sign[i].kind == k {
			return true
		}
	}
	return false
}

// signsURL reports whether the signature covers the URL.
func (v *verifier) signsURL() bool {
	return v.signs(kindURL) || v.scheme != nil && v.scheme.Signs("url")
}

// binds reports whether the signature covers the text of a value, so that nobody but the sender can
// have chosen it.
func (v *verifier) binds(part *value) bool {
	if v.scheme != nil {
		return v.scheme.Signs(Value(part.origin))
	}
	switch part.kind {
	case kindConst:
		return true
	case kindID:
		return v.apart(kindID)
	case kindJSON, kindItem, kindParent, kindForm:
		if v.covers == CoversBody {
			return true
		}
	case kindQuery:
		return v.apart(kindURL)
	}
	i := slices.IndexFunc(v.sign, func(signed value) bool { return signed.origin == part.origin })
	return i >= 0 && v.apartAt(i)
}

// rigid reports whether a part has a length of its own: it is a fixed text, or a time that would be too
// old or in the future were it shorter or longer.
func (v *verifier) rigid(part *value) bool {
	switch part.kind {
	case kindConst, kindSecret, kindMethod: // events come with POST only
		return true
	case kindTS:
		return v.unit == RFC3339 || v.past > 0 && v.future > 0
	}
	return false
}

// apart reports whether nothing can be moved between a part and its neighbours. For the body that is
// seen to by intact.
func (v *verifier) apart(k kind) bool {
	i := slices.IndexFunc(v.sign, func(part value) bool { return part.kind == k })
	return i >= 0 && v.apartAt(i)
}

func (v *verifier) apartAt(i int) bool {
	for _, j := range []int{i - 1, i + 1} {
		if j < 0 || j >= len(v.sign) || v.join != "" {
			continue
		}
		if next := &v.sign[j]; next.kind != kindBody && !v.rigid(next) && !v.rigid(&v.sign[i]) {
			return false
		}
	}
	return true
}

// intact refuses a body that may be more or less than the one that the sender signed. JSON to which
// something was added, or from which something was cut off, is JSON no more. Of other content there is no telling.
func (v *verifier) intact(r *reading) error {
	why := ""
	switch {
	case v.kind == PlainHash && v.sign[len(v.sign)-1].kind != kindSecret:
		// It can be continued where it ended. What that takes between the two is not JSON.
		why = "with a hash that begins with the secret anybody can append to a body"
	case v.torn(r):
		why = "nothing says where it begins or ends in what is signed, so that it may be a piece of another"
	default:
		return nil
	}
	for document := range r.p.documents(r.req.Body) {
		if err := checkJSON(document); err != nil {
			return incoming.Reject(hookonce.ReasonSignatureMismatch, "the body cannot be read (%v), and %s", err, why)
		}
	}
	return nil
}

// torn reports whether a part could have taken something from the body, or the body from it: nothing is
// between them, or what is between them is in the part as well.
func (v *verifier) torn(r *reading) bool {
	body := slices.IndexFunc(v.sign, func(part value) bool { return part.kind == kindBody })
	if body < 0 {
		return false
	}
	for i := range v.sign {
		if i == body || v.rigid(&v.sign[i]) {
			continue
		}
		text, _ := r.covered(&v.sign[i])
		between := v.between(i, body)
		if between == "" || strings.Contains(text, between) {
			return true
		}
	}
	return false
}

// between returns the fixed text beside a part, on the side where the body is.
func (v *verifier) between(i, body int) string {
	next := i + 1
	if body < i {
		next = i - 1
	}
	if v.sign[next].kind == kindConst {
		return v.join + v.sign[next].text + v.join
	}
	return v.join
}
