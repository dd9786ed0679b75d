package spec

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// verifier is a [Verify] in compiled form, with its secrets. It is immutable.
type verifier struct {
	kind    Kind
	carrier carrier
	matcher matcher
	sign    []value
	join    string
	signed  string // what is signed, in words
	covers  Coverage
	perItem bool
	scheme  Scheme

	hashesURL bool // a claim of the token is the hash of the URL, or a signature covers it beside what is in sign

	id *value // nil: the scheme signs no identifier

	ts           *value // nil: the scheme signs no time
	unit         Unit
	past, future time.Duration

	keys []keyRule

	// mistakable is set if the body could hold what another way of signing signs with the same key, such as a time in
	// front of the body. See intact.
	mistakable bool

	way     int   // its number in the specification
	at      value // where the signature is
	renewal Renewal
	marks   []int16 // fingerprints of this way of signing with each secret; see [hookonce.Proof]
}

// matcher compares the signatures of a request with what a mechanism makes of it.
type matcher interface {
	// wellFormed reports whether a text has the form of a signature.
	wellFormed(signature string) bool
	// shape says what a signature looks like, for error messages.
	shape() string
	// match returns the number, from 1, of the secret that made one of the signatures in the line, and
	// 0 if none did. An error that is no rejection means that it cannot be decided now.
	match(v *verifier, r *reading, line string) (int, error)
	// seal returns a signature made with the active secret of that number, or with the first active one.
	seal(v *verifier, r *reading, secret int) (string, error)
	// knows reports whether the secret of that number has the form that the mechanism wants.
	knows(secret int) bool
	// active reports whether any secret is accepted at that time.
	active(now time.Time) bool
}

// errPrivateKey is why nobody but the sender can sign.
var errPrivateKey = errors.New("the sender signs with a private key that only it has")

// check verifies the request in one way of signing. The order of the tests makes the reasons precise:
// an old timestamp is reported only for a request that is genuine otherwise.
func (v *verifier) check(r *reading) (p proof, err error) {
	if !v.matcher.active(r.req.Now) {
		return p, hookonce.ErrNoSecret
	}
	line := ""
	if v.kind != Code {
		if line, err = v.carrier.line(r); err != nil {
			return p, err
		}
	}
	r.signatureLine, r.signed = line, signed{}
	if r.id, err = v.identifier(r); err != nil {
		return p, err
	}
	candidates, err := v.candidates(line)
	if err != nil {
		return p, err
	}
	if err = v.timestamp(r, line); err != nil {
		return p, err
	}
	if err = v.legible(r); err != nil {
		return p, err
	}
	secret, err := v.matcher.match(v, r, line)
	switch {
	case err != nil:
		return p, err
	case secret == 0:
		return p, v.mismatch(r, candidates)
	}
	return proof{r.signed, v, secret}, v.fresh(r.req.Now, r.at)
}

// identifier returns the signed identifier.
func (v *verifier) identifier(r *reading) (string, error) {
	if v.id == nil {
		return "", nil
	}
	id, n := incoming.Single(r.req.Header[v.id.text])
	switch {
	case n > 1:
		return "", incoming.Reject(hookonce.ReasonSignatureMalformed,
			"the header %s, which the signature covers, occurs several times with different values", v.id.text)
	case id == "":
		return "", incoming.Absent(hookonce.ReasonSignatureMissing, v.id.text,
			"the header %s, which the signature covers, is absent", v.id.text)
	}
	return id, nil
}

// candidates counts the signatures in the line that have the right form.
func (v *verifier) candidates(line string) (int, error) {
	if v.kind == Code {
		return 1, nil
	}
	total, wellFormed := 0, 0
	for sig := range v.carrier.signatures(line) {
		total++
		if v.matcher.wellFormed(sig) {
			wellFormed++
		}
	}
	switch {
	case total > v.carrier.most():
		return 0, incoming.Reject(hookonce.ReasonSignatureMalformed, "%s has more than %d signatures", v.carrier.where, v.carrier.most())
	case wellFormed > 0:
		return wellFormed, nil
	case total == 0:
		return 0, incoming.Reject(hookonce.ReasonSignatureMalformed, "%s has no part that begins with %q; expected %s", v.carrier.where, v.carrier.prefix, v.carrier.shape)
	}
	return 0, incoming.Reject(hookonce.ReasonSignatureMalformed, "the signature in %s has another form; expected %s", v.carrier.where, v.carrier.shape)
}

// timestamp reads the signed time.
func (v *verifier) timestamp(r *reading, line string) error {
	if v.ts == nil || v.ts.kind == kindClaim { // a claim is read from the token that was verified
		return nil
	}
	text, n := "", 0
	switch v.ts.kind {
	case kindPart:
		text, n = partText(line, v.carrier.split, v.ts.text)
	case kindEntry:
		text = entryText(line, v.carrier.split, v.ts.entry)
	case kindHeader:
		text, n = incoming.Single(r.req.Header[v.ts.text])
	default:
		text = r.get(v.ts)
	}
	if n > 1 {
		return incoming.Reject(hookonce.ReasonSignatureMalformed, "%s occurs several times with different values", v.whereTime())
	}
	return v.believe(r, text)
}

// whereTime names the place of the signed time for error messages.
func (v *verifier) whereTime() string {
	switch v.ts.kind {
	case kindPart:
		return "the part " + v.ts.text + " of " + v.carrier.where
	case kindEntry:
		return fmt.Sprintf("entry %d of %s", v.ts.entry, v.carrier.where)
	}
	return v.ts.describe()
}

// believe takes a text for the signed time.
func (v *verifier) believe(r *reading, text string) error {
	at, ok := v.unit.parse(text)
	if v.unit != RFC3339 && len(text) > 1 && text[0] == '0' {
		ok = false // zeros could have been moved here from what is signed before
	}
	switch {
	case text == "" && v.ts.kind == kindHeader:
		return incoming.Absent(hookonce.ReasonTimestampMissing, v.ts.text, "%s is absent; expected %s", v.whereTime(), v.unit.describe())
	case text == "":
		return incoming.Reject(hookonce.ReasonTimestampMissing, "%s is absent; expected %s", v.whereTime(), v.unit.describe())
	case !ok:
		return incoming.Reject(hookonce.ReasonTimestampMissing, "%s is not a time; expected %s", v.whereTime(), v.unit.describe())
	}
	r.ts, r.at = text, at
	return nil
}

// legible refuses a request in which there is no telling what the signature covers.
func (v *verifier) legible(r *reading) error {
	if r.strayed && v.signsURL() {
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "the query of the request is neither the one of the registered URL nor begins with it")
	}
	for i := range v.sign {
		if _, ok := r.covered(&v.sign[i]); !ok {
			return incoming.Reject(hookonce.ReasonSignatureMalformed, "%s, which the signature covers, is no text, or not one text under one spelling of its name", v.sign[i].describe())
		}
	}
	return nil
}

func (v *verifier) mismatch(r *reading, candidates int) error {
	hint := "check the secret, and that the body is passed on byte for byte"
	switch covered := v.signs(kindURL) || v.kind == HTTPSignature; {
	case v.covers == CoversNothing:
		return incoming.Reject(hookonce.ReasonSignatureMismatch, "%s does not hold any of the secrets; check the secret", v.carrier.where)
	case covered && r.url == "":
		hint = "the URL registered with the provider is not configured"
	case covered:
		hint = "check the secret, and that the URL is exactly the one registered with the provider"
		if !r.registered { // the caller may know it all the same, as from hookonce.WithPublicURL
			hint += "; where none is configured, a proxy may have changed the one that is seen here"
		}
	}
	which := "the signature in " + v.carrier.where + " was not"
	if candidates > 1 {
		which = fmt.Sprintf("none of the %d signatures in %s was", candidates, v.carrier.where)
	}
	return incoming.Reject(hookonce.ReasonSignatureMismatch, "%s made over %s with any of the secrets; %s", which, v.signed, hint)
}

// inWords names what is signed, for error messages. Fixed texts between the parts are left out.
func inWords(sign []value) string {
	words := map[kind]string{kindBody: "the body", kindURL: "the URL", kindTS: "the time", kindID: "the id", kindMethod: "the method"}
	var names []string
	for i := range sign {
		name, simple := words[sign[i].kind]
		switch {
		case sign[i].kind == kindConst || sign[i].kind == kindSecret:
			continue
		case !simple:
			name = sign[i].describe()
		}
		names = append(names, name)
	}
	if n := len(names); n > 1 {
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return strings.Join(names, "")
}

// fresh applies the tolerance to the signed time.
func (v *verifier) fresh(now, at time.Time) error {
	if v.ts == nil {
		return nil
	}
	// Comparing times, not durations: a difference of centuries does not fit into a duration.
	switch {
	case v.past > 0 && at.Before(now.Add(-v.past)):
		return incoming.Reject(hookonce.ReasonTimestampOld, "the signed time is %s before the time of arrival; at most %s is accepted",
			FormatDuration(now.Sub(at).Round(time.Second)), FormatDuration(v.past))
	case v.future > 0 && at.After(now.Add(v.future)):
		return incoming.Reject(hookonce.ReasonTimestampFuture, "the signed time %v is after the time of arrival, %v; at most %s is accepted",
			at.Format(time.RFC3339), now.UTC().Format(time.RFC3339), FormatDuration(v.future))
	}
	return nil
}

// What is signed is one text. Whoever holds a genuine request can move the boundary between two parts of
// it whose lengths nobody knows, and the signature still fits.

// rank orders reasons by how much they say. A way of signing whose secrets are all out of date counts
// only where all are.
func rank(err error) int {
	var rej *hookonce.RejectError
	switch {
	case errors.Is(err, hookonce.ErrNoSecret):
		return 0
	case !errors.As(err, &rej):
		return 3
	case rej.Reason == hookonce.ReasonSignatureMissing:
		return 1
	}
	return 2
}

// authenticate checks the request, or each of its items where they are signed one by one.
func (v *verifier) authenticate(r *reading) (proof, error) {
	if !v.perItem {
		return v.check(r)
	}
	return v.checkEach(r)
}

// checkEach checks every item as it is found: the first that is wrong ends it, so that strangers cannot
// make large batches costly.
func (v *verifier) checkEach(r *reading) (p proof, refusal error) {
	err := r.splitter.each(r.req.Body, func(it item) error {
		r.enter(it)
		p, refusal = v.check(r)
		return refusal
	})
	r.leave()
	switch {
	case refusal != nil:
		return p, refusal
	case err != nil:
		return p, incoming.Reject(hookonce.ReasonSignatureMissing, "the items, each of which carries a signature, cannot be read: %v", err)
	case p.verifier == nil:
		return p, incoming.Reject(hookonce.ReasonSignatureMissing, "each item carries a signature, and there is no item")
	}
	return p, nil
}

// proof is what a successful verification establishes.
type proof struct {
	signed
	*verifier
	secret int // its number, from 1
}

// public is what others learn of a proof.
func (p proof) public() hookonce.Proof {
	return hookonce.Proof{Covers: string(p.covers), Secret: p.secret, Vouched: p.marks[p.secret-1]}
}

// message returns what is signed as one piece.
func (v *verifier) message(r *reading) []byte {
	var b []byte
	for i := range v.sign {
		if i > 0 {
			b = append(b, v.join...)
		}
		text, _ := r.covered(&v.sign[i])
		b = append(b, text...)
	}
	return b
}

// signs reports whether a value of that kind is part of what is signed.
func (v *verifier) signs(k kind) bool { return v.part(k) >= 0 }

// part returns the number of the part of that kind in what is signed, -1 if there is none.
func (v *verifier) part(k kind) int {
	for i := range v.sign {
		if v.sign[i].kind == k {
			return i
		}
	}
	return -1
}

// signsURL reports whether the signature covers the URL.
func (v *verifier) signsURL() bool {
	return v.signs(kindURL) || v.hashesURL || v.scheme != nil && v.scheme.Signs("url")
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
		return v.apart(v.part(kindID))
	case kindJSON, kindItem, kindParent, kindForm:
		if v.covers == CoversBody {
			return true
		}
	case kindQuery:
		if v.kind == HTTPSignature {
			return true // the whole URL
		}
		at := v.part(kindURL)
		return at >= 0 && v.sign[at].plain == nil && v.apart(at) // with escapes undone, two queries are one text
	}
	i := slices.IndexFunc(v.sign, func(signed value) bool { return signed.origin == part.origin })
	return v.apart(i)
}

// rigid reports whether a part has a length of its own: it is a fixed text, or a time that would be too
// old or in the future were it shorter or longer.
func (v *verifier) rigid(part *value) bool {
	switch part.kind {
	case kindConst, kindSecret, kindMethod: // POST or GET, of which neither begins with the other
		return true
	case kindTS:
		return v.unit == RFC3339 || v.past > 0 && v.future > 0
	}
	return false
}

// apart reports whether what is signed has a part of that number, and nothing can be moved between it and its neighbours.
// For the body that is seen to by intact.
func (v *verifier) apart(i int) bool {
	if i < 0 || v.kind == HTTPSignature {
		return i >= 0 // each part has its name and a line of its own
	}
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
	case r.method == http.MethodGet: // it has none
		return nil
	case v.kind == PlainHash && v.sign[len(v.sign)-1].kind != kindSecret:
		// It can be continued where it ended. What that takes between the two is not JSON.
		why = "with a hash that begins with the secret anybody can append to a body"
	case v.mistakable:
		why = "the sender signs more than the body with the secret as well, all of which this may be"
	case v.torn(r):
		why = "nothing says where it begins or ends in what is signed, so that it may be a piece of another"
	default:
		return nil
	}
	for document := range r.splitter.documents(r.req.Body) {
		if err := checkJSON(document); err != nil {
			return incoming.Reject(hookonce.ReasonSignatureMismatch, "the body cannot be read (%v), and %s", err, why)
		}
	}
	return nil
}

// torn reports whether a part could have taken something from the body, or the body from it: nothing is
// between them, or what is between them is in the part as well.
func (v *verifier) torn(r *reading) bool {
	body := v.part(kindBody)
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
