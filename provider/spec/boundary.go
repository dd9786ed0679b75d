package spec

import (
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
)

// What is signed is one text. Whoever holds a genuine request can move the boundary between two parts of
// it whose lengths nobody knows, and the signature still fits.

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
			return reject(hookonce.ReasonSignatureMismatch, "the body cannot be read (%v), and %s", err, why)
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
