package spec

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"slices"
	"strings"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// Provider is a compiled [Spec] with its secrets. It implements [hookonce.Provider], is immutable, and safe
// for concurrent use. [Provider.Sign] is its mirror.
type Provider struct {
	spec       Spec
	settings   Settings
	profile    hookonce.Profile
	url        string // as registered, without its query
	query      string // of the registered URL
	verifiers  []verifier
	layout     *layout
	extract    extractor
	handshakes []handshake
}

var _ hookonce.Provider = (*Provider)(nil)

// Name returns the name in the catalogue, which is that of its profile.
func (p *Provider) Name() string { return p.spec.Name }

// String returns the name. It keeps secrets out of logs, whatever verb is used.
func (p *Provider) String() string { return "provider " + p.spec.Name }

// Format writes the name, whatever the verb: nothing inside a provider is for printing.
func (p *Provider) Format(f fmt.State, _ rune) { fmt.Fprint(f, p.String()) }

// Spec returns the specification with its defaults filled in. It is shared: treat it as read-only.
func (p *Provider) Spec() Spec { return p.spec }

// Profile says how the sender wants to be talked to. The handshakes count only if they are enabled.
func (p *Provider) Profile() hookonce.Profile { return p.profile }

// newProfile puts together what the specification says of that.
func (p *Provider) newProfile() hookonce.Profile {
	a := p.spec.Answer
	profile := hookonce.Profile{
		Name:            p.spec.Name,
		Acknowledgement: hookonce.Answer{Status: a.Status, ContentType: a.ContentType, Body: []byte(a.Body)},
		Rejected:        a.Reject,
		NotReady:        a.NotReady,
		SecretHeaders:   p.spec.secretHeaders(),
		MaxBody:         p.spec.Limits.MaxBody,
	}
	for _, method := range handshakeMethods {
		if method != http.MethodPost && slices.Contains(p.spec.Methods, method) {
			profile.Methods = append(profile.Methods, method)
			continue
		}
		if p.settings.Handshakes && method != http.MethodPost && slices.ContainsFunc(p.handshakes, func(h handshake) bool { return h.Method == method }) {
			profile.Methods = append(profile.Methods, method)
		}
	}
	return profile
}

// secretHeaders returns the canonical names of the headers of static tokens and basic authentication, which are the secret.
func (s Spec) secretHeaders() []string {
	var names []string
	for _, v := range s.Verify {
		name, header := strings.CutPrefix(string(v.Signature.In), "header:")
		if header && (v.Kind == Token || v.Kind == Basic) {
			names = append(names, textproto.CanonicalMIMEHeaderKey(name))
		}
	}
	return names
}

// Open verifies the request and extracts its events. It never panics, whatever the bytes, and blocks
// only where the sender's keys have to be fetched (PayPal, Plaid, Circle, Amazon SNS, eBay, Google, Kinde,
// Event Grid with Entra). An error that is no *[hookonce.RejectError] means that it could not be decided now.
//
// A request whose signature is valid but whose body cannot be read yields one event and the reason in Unreadable,
// unless the specification takes nothing from the body. The event has the key, the type and whatever else the header
// says. It is unkeyed if a part of the key is in the body, and always if the body was to hold a batch. A batch is such a
// request, too, if it has more than 10 000 items, or if their bodies together would be more than 64 times as long as its
// own, because each has in it what surrounds the items. A caller that cannot spare that much sets [hookonce.Request.Lazy].
func (p *Provider) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	r := readings.Get().(*reading)
	p.begin(r, req)
	d, err := p.open(r, req)
	if d == nil || d.Batch == nil { // the events of a batch are read from it later
		r.end()
		readings.Put(r)
	}
	return d, err
}

func (p *Provider) open(r *reading, req *hookonce.Request) (*hookonce.Verified, error) {
	if d, err := p.greet(r, proof{}, true); d != nil || err != nil {
		return d, err
	}
	if !slices.Contains(p.spec.Methods, r.method) {
		return nil, &hookonce.RejectError{
			Reason: hookonce.ReasonHandshakeRefused, Status: http.StatusMethodNotAllowed,
			Detail: "webhooks are sent with " + strings.Join(p.spec.Methods, " or ") + ", and this is no challenge that is to be answered",
		}
	}
	if r.method == http.MethodGet { // a body of it would be the end of what is signed, cut off
		bare := *req
		bare.Body = nil
		r.req = &bare
	}
	by, err := p.authenticate(r)
	if err != nil {
		return nil, err
	}
	r.signed = by.signed
	if err := by.verifier.intact(r); err != nil {
		return nil, err
	}
	if d, err := p.greet(r, by, false); d != nil || err != nil {
		return d, err
	}
	d := &hookonce.Verified{Proof: by.public()}
	if r.method == http.MethodGet {
		r.req, r.formRead = p.posted(req), false
	}
	p.extract.events(r, by.verifier, d)
	return d, nil
}

// posted returns a GET as the POST that says the same: its query is the form, without what was registered.
func (p *Provider) posted(req *hookonce.Request) *hookonce.Request {
	post := *req
	_, query, _ := strings.Cut(req.URL, "?")
	if rest, ok := strings.CutPrefix(query, p.query); ok && p.query != "" {
		query = strings.TrimPrefix(rest, "&")
	}
	post.Method, post.Body, post.Header = http.MethodPost, []byte(query), maps.Clone(req.Header)
	if post.Header == nil {
		post.Header = http.Header{}
	}
	post.Header["Content-Type"] = []string{"application/x-www-form-urlencoded"}
	return &post
}

// reading begins to look at a request.
func (p *Provider) reading(req *hookonce.Request) *reading {
	r := new(reading)
	p.begin(r, req)
	return r
}

// begin has a reading begin to look at a request.
func (p *Provider) begin(r *reading, req *hookonce.Request) {
	*r = reading{layout: p.layout, req: req, method: cmp.Or(req.Method, http.MethodPost), registered: p.url != "", url: req.URL, room: r.room}
	if !r.registered {
		return
	}
	// The sender calls what was registered, and may add to the query. Nobody else may: what is added
	// could be a piece of what is signed after the URL.
	_, query, _ := strings.Cut(req.URL, "?")
	if p.query != "" && query != p.query && !strings.HasPrefix(query, p.query+"&") {
		r.strayed, query = query != "", p.query
	}
	r.url = p.url
	if query != "" {
		r.url += "?" + query
	}
}

// authenticate tries the ways of signing in order. When none succeeds it reports the first one whose
// signature was there at all. That it cannot be decided now outranks a rejection.
func (p *Provider) authenticate(r *reading) (proof, error) {
	if p.settings.blind {
		return proof{}, incoming.Reject(hookonce.ReasonSignatureMismatch, "this provider knows no secret: it is for lists of events alone")
	}
	var why error
	for i := range p.verifiers {
		proof, err := p.verifiers[i].authenticate(r)
		if err == nil && p.couldBeChallenge(proof, r) {
			err = incoming.Reject(hookonce.ReasonSignatureMismatch, "the body is what a challenge looks like: its signature could have been obtained by asking for it")
		}
		if err == nil {
			return proof, nil
		}
		if why == nil || rank(err) > rank(why) {
			why = err
		}
	}
	return proof{}, why
}

// couldBeChallenge reports whether the signature of this request could have been obtained as the answer
// to a challenge: whether what is signed is what a challenge looks like. It does not matter whether this
// endpoint answers challenges: another one with the same secret may.
func (p *Provider) couldBeChallenge(proof proof, r *reading) bool {
	for i := range p.handshakes {
		h := &p.handshakes[i]
		if !h.Unsigned || h.Handshake.Code == nil || h.Handshake.Code.Kind == PlainHash {
			continue
		}
		if signed := proof.challengeable(r, proof.secret); len(signed) > 0 && len(signed) <= maxEcho && h.pattern.Match(signed) {
			return true
		}
	}
	return false
}

// greet answers a handshake of the given sort, nil if the request is none.
func (p *Provider) greet(r *reading, by proof, unsigned bool) (*hookonce.Verified, error) {
	if !p.settings.Handshakes {
		return nil, nil
	}
	for i := range p.handshakes {
		h := &p.handshakes[i]
		if h.Unsigned != unsigned || h.Method != r.method {
			continue
		}
		ok, err := h.applies(r)
		if err != nil {
			return nil, err
		}
		if ok {
			return h.greet(r, by)
		}
	}
	return nil, nil
}
