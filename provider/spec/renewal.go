package spec

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Renewal says what becomes of a sender's signature when its request is passed on: later, to another URL, and
// a batch in parts.
type Renewal string

// The renewals.
const (
	// Lasts: it stays good. It signs no time and no URL, and what it covers is passed on as it came.
	Lasts Renewal = "lasts"
	// Renewed: it would fail, and whoever has the secret can make it anew. See [Resigner].
	Renewed Renewal = "renewed"
	// Fixed: nobody but the sender can make it, or it can be changed only together with the body.
	Fixed Renewal = "fixed"
)

// Renewal says what becomes of the sender's signatures. Where it has several ways of signing, the result is Fixed
// only if that holds for all of them, and Lasts only if none is Renewed. Why says why it is Fixed, after "the
// signature".
func (s Spec) Renewal() (r Renewal, why string) {
	s = s.WithDefaults()
	return s.renewal(s.Verify)
}

// renewal is [Spec.Renewal] for some of the ways of signing.
func (s Spec) renewal(ways []Verify) (r Renewal, why string) {
	lasts := len(ways) == 0 // New refuses that
	for _, way := range ways {
		kind, fixed := way.renewal(s.Split != nil)
		if kind == Renewed {
			return Renewed, ""
		}
		lasts = lasts || kind == Lasts
		why = cmp.Or(why, fixed)
	}
	if lasts {
		return Lasts, ""
	}
	return Fixed, why
}

// renewal decides about one way of signing, which has its defaults.
func (v Verify) renewal(batches bool) (r Renewal, why string) {
	in, symmetric := v.carrier()
	switch {
	case !symmetric && v.Kind == JWT:
		return Fixed, "is a JSON Web Token, which only the sender issues"
	case !symmetric:
		return Fixed, "is made with a private key that only the sender has"
	case in.kind == kindJSON || in.kind == kindItem || in.kind == kindForm:
		return Fixed, "stands in the body, which is passed on as it came"
	case v.Covers == CoversNonce || v.Covers == CoversCRC32:
		return Fixed, "covers a nonce, and nothing of the content"
	case in.kind == kindQuery || in.text == "Authorization": // these are not passed on
		return Renewed, ""
	case v.Kind == Token, v.Time != nil, v.Scheme != nil && v.Scheme.Signs("ts"), v.signsAddress(), batches:
		return Renewed, ""
	}
	return Lasts, ""
}

// carrier returns where the signature is, and whether it is made with a shared secret. A JWT is as good as none
// that is: its claims say more than what a receiver of one can know.
func (v Verify) carrier() (in value, symmetric bool) {
	at := v.Signature.In
	switch v.Kind {
	case Ed25519, ECDSA, RSA, JWT:
		return in, false
	case HTTPSignature:
		if !v.sharesSecret() {
			return in, false
		}
	case Code:
		scheme, ok := v.Scheme.(Imitator)
		if !ok || !scheme.Imitable() {
			return in, false
		}
		at = scheme.Carrier()
	}
	in, _ = parseValue(at) // what cannot be parsed is refused by New
	return in, true
}

// signsAddress reports whether the signature covers the URL, or a part of its query.
func (v Verify) signsAddress() bool {
	return v.Scheme != nil && v.Scheme.Signs("url") || slices.ContainsFunc(v.Sign, func(text Value) bool {
		part, err := parseValue(text)
		return err == nil && (part.kind == kindURL || part.kind == kindQuery)
	})
}

// marks returns the fingerprints of one way of signing with each of the secrets, see [hookonce.Proof]. They are too
// short to tell anything about a secret to whoever reads them.
func marks(provider string, way Verify, secrets []Secret) []int16 {
	scheme := ""
	if way.Scheme != nil {
		if name, err := way.Scheme.MarshalText(); err == nil {
			scheme = string(name)
		}
	}
	all := make([]int16, len(secrets))
	for i, s := range secrets {
		h := hmac.New(sha256.New, []byte(s.Text))
		fmt.Fprintf(h, "%q %q %q %q %q", provider, way.Kind, scheme, way.Signature.In, way.Sign)
		if way.Key == KeyWhsecOnly { // another way may differ from this one by the form of its key alone
			fmt.Fprintf(h, " %q", way.Key)
		}
		all[i] = int16(binary.BigEndian.Uint16(h.Sum(nil))%math.MaxInt16) + 1
	}
	return all
}
