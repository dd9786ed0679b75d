package provider

import (
	"crypto/hmac"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
)

// verifier is a [Verify] in compiled form, with its secrets. It is immutable.
type verifier struct {
	signature Signature
	header    string // canonical name of the signature's header
	encoding  Encoding
	size      int    // length of an encoded signature
	alphabet  string // its characters
	shape     string // what the header looks like, for error messages
	secrets   []*macs
	sign      []value
	covers    string // what is signed, for error messages

	id *value // nil: the scheme signs no identifier

	ts           *value // nil: the scheme signs no time
	unit         Unit
	past, future time.Duration

	keys []keyRule
}

// proof is what a successful verification establishes.
type proof struct {
	by *verifier
	id string
	ts string
	at time.Time
}

// check verifies the request in one way of signing. The order of the tests makes the reasons precise:
// an old timestamp is reported only for a request that is genuine otherwise.
func (v *verifier) check(req *hookonce.Request) (proof, *hookonce.RejectError) {
	line, rej := v.line(req.Header)
	if rej != nil {
		return proof{}, rej
	}
	p := proof{by: v}
	if p.id, rej = v.identifier(req.Header); rej != nil {
		return proof{}, rej
	}
	candidates, rej := v.candidates(line)
	if rej != nil {
		return proof{}, rej
	}
	if p.ts, p.at, rej = v.timestamp(req.Header, line); rej != nil {
		return proof{}, rej
	}
	if !v.matches(req, p, line) {
		return proof{}, v.mismatch(req, candidates)
	}
	return p, v.fresh(req.Now, p)
}

// line returns the value of the signature's header.
func (v *verifier) line(h http.Header) (string, *hookonce.RejectError) {
	line, n := headerText(h, v.header)
	switch {
	case n > 1:
		return "", reject(hookonce.ReasonSignatureMalformed,
			"the header %s occurs several times with different values; expected one: %s", v.header, v.shape)
	case line == "":
		return "", reject(hookonce.ReasonSignatureMissing,
			"the header %s is absent; expected %s", v.header, v.shape)
	}
	return line, nil
}

// identifier returns the signed identifier.
func (v *verifier) identifier(h http.Header) (string, *hookonce.RejectError) {
	if v.id == nil {
		return "", nil
	}
	id, n := headerText(h, v.id.text)
	switch {
	case n > 1:
		return "", reject(hookonce.ReasonSignatureMalformed,
			"the header %s, which the signature covers, occurs several times with different values", v.id.text)
	case id == "":
		return "", reject(hookonce.ReasonSignatureMissing,
			"the header %s, which the signature covers, is absent", v.id.text)
	}
	return id, nil
}

// candidates counts the signatures in the header that have the right form.
func (v *verifier) candidates(line string) (int, *hookonce.RejectError) {
	total, wellFormed := 0, 0
	for entry := range entries(line, v.signature.Split) {
		if sig, ok := strings.CutPrefix(entry, v.signature.Prefix); ok {
			total++
			if v.wellFormed(sig) {
				wellFormed++
			}
		}
	}
	switch {
	case wellFormed > 0:
		return wellFormed, nil
	case total == 0:
		return 0, reject(hookonce.ReasonSignatureMalformed,
			"the header %s has nothing that begins with %q; expected %s", v.header, v.signature.Prefix, v.shape)
	}
	return 0, reject(hookonce.ReasonSignatureMalformed,
		"the signature in the header %s is not %s; expected %s", v.header, v.encoding.describe(v.size), v.shape)
}

func (v *verifier) wellFormed(sig string) bool {
	return len(sig) == v.size && strings.Trim(sig, v.alphabet) == ""
}

// timestamp returns the signed time as text and as a time.
func (v *verifier) timestamp(h http.Header, line string) (string, time.Time, *hookonce.RejectError) {
	if v.ts == nil {
		return "", time.Time{}, nil
	}
	where := "the header " + v.ts.text
	text, n := "", 0
	if v.ts.kind == kindPart {
		where = "the part " + v.ts.text + " of the header " + v.header
		text, n = partText(line, v.signature.Split, v.ts.text)
	} else {
		text, n = headerText(h, v.ts.text)
	}
	switch at, ok := v.unit.parse(text); {
	case n > 1:
		return "", time.Time{}, reject(hookonce.ReasonSignatureMalformed, "%s occurs several times with different values", where)
	case text == "":
		return "", time.Time{}, reject(hookonce.ReasonTimestampMissing, "%s is absent; expected %s", where, v.unit.describe())
	case !ok:
		return "", time.Time{}, reject(hookonce.ReasonTimestampMissing, "%s is not a time; expected %s", where, v.unit.describe())
	default:
		return text, at, nil
	}
}

// matches reports whether any signature in the header was made with any of the secrets.
func (v *verifier) matches(req *hookonce.Request, p proof, line string) bool {
	for _, secret := range v.secrets {
		m := secret.get()
		ok := v.contains(line, v.compute(m, req, p))
		secret.put(m)
		if ok {
			return true
		}
	}
	return false
}

// contains reports whether want is one of the signatures in the header. The texts are compared, not
// the decoded bytes: base64 has several spellings for the same bytes.
func (v *verifier) contains(line string, want []byte) bool {
	for entry := range entries(line, v.signature.Split) {
		sig, ok := strings.CutPrefix(entry, v.signature.Prefix)
		if ok && hmac.Equal(bytesOf(sig), want) {
			return true
		}
	}
	return false
}

// compute returns the signature of the request.
func (v *verifier) compute(m *mac, req *hookonce.Request, p proof) []byte {
	for i := range v.sign {
		switch part := &v.sign[i]; part.kind {
		case kindBody:
			m.Write(req.Body)
		case kindTS:
			m.writeString(p.ts)
		case kindID:
			m.writeString(p.id)
		case kindURL:
			m.writeString(req.URL)
		default:
			m.writeString(part.text)
		}
	}
	return m.sum(v.encoding)
}

func (v *verifier) mismatch(req *hookonce.Request, candidates int) *hookonce.RejectError {
	hint := "check the secret, and that the body is passed on byte for byte"
	if v.signs(kindURL) {
		hint = "check the secret, and that the URL is exactly the one registered with the provider"
		if req.URL == "" {
			hint = "the URL registered with the provider is not configured"
		}
	}
	return reject(hookonce.ReasonSignatureMismatch, "none of the %d signatures in the header %s was made over %s with any of the %d secrets; %s",
		candidates, v.header, v.covers, len(v.secrets), hint)
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

// fresh applies the tolerance to the signed time.
func (v *verifier) fresh(now time.Time, p proof) *hookonce.RejectError {
	if v.ts == nil {
		return nil
	}
	// Comparing times, not durations: a difference of centuries does not fit into a duration.
	switch {
	case v.past > 0 && p.at.Before(now.Add(-v.past)):
		return reject(hookonce.ReasonTimestampOld, "the signed time is %v before the time of arrival; at most %v is accepted",
			now.Sub(p.at).Round(time.Second), v.past)
	case v.future > 0 && p.at.After(now.Add(v.future)):
		return reject(hookonce.ReasonTimestampFuture, "the signed time %v is after the time of arrival, %v; at most %v is accepted",
			p.at.Format(time.RFC3339), now.UTC().Format(time.RFC3339), v.future)
	}
	return nil
}

func reject(reason, format string, args ...any) *hookonce.RejectError {
	return &hookonce.RejectError{Reason: reason, Detail: fmt.Sprintf(format, args...)}
}
