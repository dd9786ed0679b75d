package diagnose

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// Bounds of a search.
const (
	maxAttempts = 4000
	maxHashed   = 512 << 20 // bytes
	maxAnew     = 4 << 20   // of a body that is written anew
	maxChanged  = 64 << 20  // of a body that is changed at all
)

// ages is the tolerance for the signed time while causes are looked for: an old capture with another fault has two.
const ages = 100 * 365 * 24 * time.Hour

// search looks for a change with which a request is verified.
type search struct {
	Capture
	req *hookonce.Request // with the URL that is signed, as far as it is known
	// remote is set if a key has to be fetched. Then no provider is made for an attempt: that which there is keeps what it fetched.
	remote   bool
	attempts int
	hashed   int64
	tried    map[[sha256.Size]byte]bool // bodies
	usables  map[string]map[string]bool // whether a secret can be used, by the forms of keys: see usable
}

// candidate is a text that the secret may be, and what is wrong with the one that was given then.
type candidate struct {
	text  string
	notes []note
}

// change is a request that may have been what the sender signed, and what is wrong with the captured one then.
type change struct {
	req   *hookonce.Request
	notes []note
}

func newSearch(c Capture) *search {
	s := &search{Capture: c, remote: fetches(c.Spec), tried: map[[sha256.Size]byte]bool{}, usables: map[string]map[string]bool{}}
	req := *c.Request
	req.URL, req.Lazy = signedURL(c.Settings.URL, req.URL), true
	s.req = &req
	if s.remote {
		s.req.URL = c.Request.URL
	}
	return s
}

// fetches reports whether a way of signing has keys that are fetched.
func fetches(known spec.Spec) bool {
	return slices.ContainsFunc(known.WithDefaults().Verify, func(v spec.Verify) bool {
		by, imitable := v.Scheme.(spec.Imitator)
		return v.Kind == spec.Code && (!imitable || !by.Imitable())
	})
}

// run tries changes, the likely and simple ones first.
func (s *search) run() (Cause, bool) {
	if s.remote {
		if s.Provider == nil {
			return Cause{}, false
		}
		return s.requests(s.Provider, nil)
	}
	texts := s.secrets()
	given, all := s.usable(s.Spec, texts[:s.count(texts)]), s.usable(s.Spec, texts)
	plain, fits := s.provider(s.Spec, given), s.provider(s.Spec, all)
	if found, ok := s.one(fits, all, change{req: s.req}); ok {
		return found, true
	}
	for c := range s.renamed() {
		if found, ok := s.one(fits, all, c); ok {
			return found, true
		}
	}
	if found, ok := s.otherProvider(texts); ok {
		return found, true
	}
	if found, ok := s.requests(plain, given); ok {
		return found, true
	}
	if found, ok := s.ways(texts[:s.count(texts)]); ok {
		return found, true
	}
	clear(s.tried)
	if found, ok := s.requests(fits, all); ok {
		return found, true
	}
	return s.ways(texts)
}

// requests tries changed requests.
func (s *search) requests(p *spec.Provider, keys []candidate) (Cause, bool) {
	for _, all := range []iter.Seq[change]{s.values(), s.addresses(), s.bodies()} {
		for c := range all {
			if found, ok := s.one(p, keys, c); ok {
				return found, true
			}
		}
	}
	return Cause{}, false
}

// one opens a changed request.
func (s *search) one(p *spec.Provider, keys []candidate, c change) (Cause, bool) {
	number, ok := s.open(p, c.req, len(keys))
	if !ok {
		return Cause{}, false
	}
	notes := slices.Clone(c.notes)
	secret := ""
	if number <= len(keys) {
		notes, secret = append(notes, keys[number-1].notes...), keys[number-1].text
	}
	if len(notes) == 0 {
		return Cause{}, false // nothing was changed but the tolerance and the spelling of the URL
	}
	found := causeOf(notes...)
	if secret != "" {
		found.Mend = s.withTime(found.Mend, secret, c.req)
	}
	return found, true
}

// open makes an attempt, and returns the number of the secret that verified the request.
func (s *search) open(p *spec.Provider, req *hookonce.Request, secrets int) (int, bool) {
	cost := int64(len(req.Body)+1024) * int64(max(1, secrets))
	if p == nil || s.attempts >= maxAttempts || s.hashed+cost > maxHashed {
		return 0, false
	}
	s.attempts++
	s.hashed += cost
	d, err := p.Open(req)
	if err != nil {
		if !errors.Is(err, hookonce.ErrUnverified) {
			s.attempts = maxAttempts // a key cannot be fetched now: it is not asked for again
		}
		return 0, false
	}
	return d.Proof.Secret, d.Proof.Secret > 0
}

// provider compiles a specification with some of the candidates, which must be usable. Nil: it cannot be.
func (s *search) provider(known spec.Spec, keys []candidate) *spec.Provider {
	if len(keys) == 0 {
		return nil
	}
	texts := make([]string, len(keys))
	for i := range keys {
		texts[i] = keys[i].text
	}
	p, err := spec.New(timeless(known), spec.Settings{Secrets: spec.Secrets(texts...)})
	if err != nil {
		return nil
	}
	return p
}

// usable returns the candidates that have a form that the sender has. Making a provider is what shows it, and what takes most of
// the time of a search, so the answers are kept: they depend on the kinds of the ways of signing, and the forms of their keys.
func (s *search) usable(known spec.Spec, keys []candidate) (fit []candidate) {
	var forms strings.Builder
	for _, v := range known.WithDefaults().Verify {
		fmt.Fprint(&forms, v.Kind, " ", v.Key, " ", v.Algorithms, " ")
		if v.Scheme != nil {
			fmt.Fprint(&forms, known.Name)
		}
	}
	of := s.usables[forms.String()]
	if of == nil {
		of = map[string]bool{}
		s.usables[forms.String()] = of
	}
	for _, key := range keys {
		fits, asked := of[key.text]
		if !asked {
			fits = s.provider(known, []candidate{key}) != nil
			of[key.text] = fits
		}
		if fits {
			fit = append(fit, key)
		}
	}
	return fit
}

// timeless returns a specification that accepts requests of any age. It still wants a time where there has to be one.
func timeless(known spec.Spec) spec.Spec {
	known.Verify = slices.Clone(known.Verify)
	for i, v := range known.Verify {
		if v.Time == nil {
			continue
		}
		ts := *v.Time
		if ts.Past > 0 {
			ts.Past = ages
		}
		if ts.Future > 0 {
			ts.Future = ages
		}
		known.Verify[i].Time = &ts
	}
	return known
}

// withTime adds to what is to be done that the request is old besides, if it is.
func (s *search) withTime(mend, secret string, req *hookonce.Request) string {
	p, err := spec.New(s.Spec, spec.Settings{Secrets: spec.Secrets(secret)})
	if err != nil {
		return mend
	}
	var rejection *hookonce.RejectError
	if _, err = p.Open(req); !errors.As(err, &rejection) || rejection.Reason != hookonce.ReasonTimestampOld && rejection.Reason != hookonce.ReasonTimestampFuture {
		return mend
	}
	c := s.Capture
	c.Provider, c.Request = p, req
	return mend + "; besides, " + c.clock().Mend
}

// ways tries other ways of signing: what somebody who writes a specification of a sender may have got wrong.
func (s *search) ways(keys []candidate) (Cause, bool) {
	for known, n := range s.otherWays() {
		usable := s.usable(known, keys)
		p := s.provider(known, usable)
		if found, ok := s.one(p, usable, change{s.req, []note{n}}); ok {
			return found, true
		}
	}
	return Cause{}, false
}

// otherProvider finds another provider of the catalogue that verifies the request with one of the secrets.
func (s *search) otherProvider(keys []candidate) (Cause, bool) {
	for _, name := range s.lookalikes() {
		known, err := provider.Lookup(name)
		if err != nil || fetches(known) {
			continue
		}
		usable := s.usable(known, keys)
		if found, ok := s.one(s.provider(known, usable), usable, change{s.req, []note{elsewhere(known, true)}}); ok {
			return found, true
		}
	}
	return Cause{}, false
}
