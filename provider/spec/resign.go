package spec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// Receiver is a program that requests are passed on to, and that verifies them as if the sender had called it.
type Receiver struct {
	// Secret is the one that the receiver verifies with, in the form that the sender hands out. Empty: it knows
	// those of the endpoint.
	Secret string
	// URL is the address under which the receiver believes to be called, where the scheme signs that. Empty: the
	// address that requests are passed on to.
	URL string
}

// Resigner signs requests that are passed on, so that the receiver can verify them with the sender's own library
// however late they are. It is immutable and safe for concurrent use.
//
// With the receiver's secret everything is signed that is made with a shared secret. Otherwise only what would
// fail is (see [Renewal]): with all secrets that are valid where the scheme carries several signatures, else with the
// one that verified the request, or the newest that is valid if that one no longer is.
type Resigner struct {
	from    *Provider // of the endpoint, with its secrets whatever their validity
	by      *Provider // signs
	secrets []Secret  // of the endpoint
	own     bool      // by has the receiver's secret
	url     string
}

// Resigner returns what signs the endpoint's requests for a receiver. The errors are those of [New] about the secret
// of the receiver, and that it has one although nothing can be signed with it.
func (p *Provider) Resigner(to Receiver) (*Resigner, error) {
	r := &Resigner{secrets: p.settings.Secrets, own: to.Secret != "", url: to.URL}
	var err error
	if r.from, err = New(p.spec, Settings{Secrets: unbounded(r.secrets)}); err != nil {
		return nil, err
	}
	r.by = r.from
	if !r.own {
		return r, nil
	}
	if r.by, err = New(p.spec, Settings{Secrets: Secrets(to.Secret)}); err != nil {
		return nil, err
	}
	if kind, why := r.by.Renewal(); kind == Fixed {
		return nil, fmt.Errorf("provider %s: the signature %s, so that there is nothing to sign with another secret", p.spec.Name, why)
	}
	return r, nil
}

// Renewal is [Spec.Renewal] for the ways of signing that the endpoint's secrets are for.
func (p *Provider) Renewal() (r Renewal, why string) {
	var ways []Verify
	for i := range p.verifiers {
		ways = append(ways, p.spec.Verify[p.verifiers[i].way])
	}
	return p.spec.renewal(ways)
}

// unbounded returns the secrets as if they were valid at all times.
func unbounded(secrets []Secret) []Secret {
	all := make([]Secret, len(secrets))
	for i, s := range secrets {
		all[i].Text = s.Text
	}
	return all
}

// Sign signs a request at req.Now, if one was verified by what vouched names (see [hookonce.Proof]) and its signature
// is to be made anew. It replaces the headers of the signature and of its time; the identifier of the message stays.
// Where the time stands in the body it returns another body, and where the scheme puts something into the URL another
// URL. A request that nobody vouched for (zero) stays as it is, and so does one for which there is an error.
func (r *Resigner) Sign(req *hookonce.Request, vouched int16) error {
	if vouched == 0 {
		return nil
	}
	voucher, secret := r.from.voucher(vouched)
	signed := *req
	signed.URL, signed.Header = cmp.Or(r.url, req.URL), maps.Clone(req.Header)
	before := signed.URL
	for _, v := range r.ways(req, voucher) {
		if err := r.by.seal(v, &signed, r.choose(v, secret, req.Now)...); err != nil {
			return fmt.Errorf("provider %s: cannot sign: %w", r.by.spec.Name, err)
		}
	}
	req.Header, req.Body = signed.Header, signed.Body
	req.URL = carryOver(req.URL, before, signed.URL)
	return nil
}

// Carries reports whether a header of that canonical name is a part of what the receiver verifies.
func (r *Resigner) Carries(name string) bool {
	return slices.ContainsFunc(r.by.verifiers, func(v verifier) bool {
		base, numbered := strings.CutPrefix(name, v.at.text)
		return v.at.kind == kindHeader && (base == "" && numbered || v.carrier.numbered && numbered) ||
			v.kind == HTTPSignature && slices.Contains(httpHeaders, name) || v.id != nil && v.id.text == name || v.ts != nil && v.ts.kind == kindHeader && v.ts.text == name ||
			slices.ContainsFunc(v.sign, func(part value) bool { return part.kind == kindHeader && part.text == name })
	})
}

// voucher returns the way of signing, and the number of the secret, that a fingerprint stands for; nil and 0 if
// the secret is none of the endpoint's any more.
func (p *Provider) voucher(mark int16) (*verifier, int) {
	for i := range p.verifiers {
		v := &p.verifiers[i]
		for n, m := range v.marks {
			if m == mark && v.matcher.knows(n+1) {
				return v, n + 1
			}
		}
	}
	return nil, 0
}

// SecretOf returns the number, from 1, of the endpoint's secret that verified what a fingerprint stands for (see
// [hookonce.Proof]); 0 if it is none of them any more.
func (p *Provider) SecretOf(vouched int16) int {
	_, secret := p.voucher(vouched)
	return secret
}

// ways returns the ways in which a request is signed: the one that it was verified in, and any other that it came
// with. None: it keeps its signatures.
func (r *Resigner) ways(req *hookonce.Request, voucher *verifier) (ways []*verifier) {
	if voucher != nil && voucher.renewal == Fixed && !r.own {
		return nil
	}
	var able []*verifier
	for i := range r.by.verifiers {
		v := &r.by.verifiers[i]
		if voucher == nil && v.covers != CoversNothing && r.from.tokens() {
			continue // a token may have vouched, and says nothing about the content
		}
		if v.renewal == Renewed || v.renewal == Lasts && r.own {
			able = append(able, v)
		}
	}
	taken := map[string]bool{}
	choose := func(wanted func(*verifier) bool) {
		for _, v := range able {
			if wanted(v) && !taken[v.at.origin] {
				ways, taken[v.at.origin] = append(ways, v), true
			}
		}
	}
	choose(func(v *verifier) bool { return voucher != nil && v.way == voucher.way })
	choose(func(v *verifier) bool {
		return v.came(req) && (voucher == nil && len(ways) == 0 || voucher != nil && v.saysNoMore(req, voucher))
	})
	if len(ways) == 0 && (voucher == nil || voucher.renewal != Lasts || r.own) {
		choose(func(v *verifier) bool { return len(ways) == 0 && (voucher != nil || !v.stays()) })
	}
	return ways
}

// tokens reports whether the sender may prove itself by a secret that it sends along.
func (p *Provider) tokens() bool {
	return slices.ContainsFunc(p.spec.Verify, func(v Verify) bool { return v.Covers == CoversNothing })
}

// saysNoMore reports whether a signature covers, in this request, what that of another way does: what nobody vouched for
// is not signed.
func (v *verifier) saysNoMore(req *hookonce.Request, than *verifier) bool {
	if v.join != than.join || !slices.EqualFunc(v.sign, than.sign, func(a, b value) bool { return a.origin == b.origin }) {
		return false
	}
	if v.id == nil || than.id == nil {
		return v.id == nil
	}
	mine, _ := incoming.Single(req.Header[v.id.text])
	other, _ := incoming.Single(req.Header[than.id.text])
	return mine == other
}

// came reports whether a request has a signature of that kind.
func (v *verifier) came(req *hookonce.Request) bool {
	if v.carrier.numbered {
		return len(v.carrier.numberedValues(req)) > 0
	}
	return v.at.kind == kindHeader && len(req.Header[v.at.text]) > 0
}

// stays reports whether a request that was signed in this way still shows it: then one that does not, and of which
// nothing else is known, came from another sender, before the source was given to this one. Credentials are not kept.
func (v *verifier) stays() bool { return v.covers != CoversNothing && v.at.text != "Authorization" }

// choose returns the numbers of the secrets to sign with. The secret that verified the request is 0 if it is gone.
func (r *Resigner) choose(v *verifier, verified int, now time.Time) []int {
	if r.own {
		return []int{firstValid}
	}
	var valid []int
	for i, s := range r.secrets {
		if s.active(now) && v.matcher.knows(i+1) {
			valid = append(valid, i+1)
		}
	}
	several := v.carrier.split != "" || v.carrier.numbered
	switch {
	case slices.Contains(valid, verified) && !several:
		return []int{verified}
	case len(valid) > 0 && several:
		return valid
	case len(valid) > 0:
		return []int{slices.MaxFunc(valid, func(a, b int) int { return r.secrets[a-1].From.Compare(r.secrets[b-1].From) })}
	}
	if !v.matcher.knows(verified) {
		return []int{firstValid}
	}
	return []int{verified} // ended, like all others: the receiver may still know it
}

// carryOver returns an address with what signing has put into the query of another.
func carryOver(address, before, after string) string {
	if before == after {
		return address
	}
	_, old, _ := strings.Cut(before, "?")
	_, query, _ := strings.Cut(after, "?")
	had := strings.Split(old, "&")
	added := slices.DeleteFunc(strings.Split(query, "&"), func(part string) bool { return slices.Contains(had, part) })
	place, own, _ := strings.Cut(address, "?")
	parts := slices.DeleteFunc(strings.Split(own, "&"), func(part string) bool {
		return part == "" || slices.ContainsFunc(added, func(other string) bool { return nameOf(part) == nameOf(other) })
	})
	if parts = append(parts, added...); len(parts) == 0 {
		return place
	}
	return place + "?" + strings.Join(parts, "&")
}

// nameOf returns the name of a parameter of a query.
func nameOf(part string) string {
	name, _, _ := strings.Cut(part, "=")
	return name
}
