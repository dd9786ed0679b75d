package provider

import (
	"fmt"
	"sync"

	"github.com/hookonce/hookonce"
)

// Provider is a compiled [Spec] with its secrets. It implements [hookonce.Provider] and [Signer], is
// immutable, and safe for concurrent use.
type Provider struct {
	spec      Spec
	url       string
	verifiers []verifier
	tree      tree
	extract   extractor
	hands     []handshake
	digesters sync.Pool
}

var (
	_ hookonce.Provider    = (*Provider)(nil)
	_ hookonce.BodyLimiter = (*Provider)(nil)
)

// Name returns the name in the catalogue.
func (p *Provider) Name() string { return p.spec.Name }

// String returns the name. It keeps secrets out of logs, whatever verb is used.
func (p *Provider) String() string { return "provider " + p.spec.Name }

// Format writes the name, whatever the verb: nothing inside a provider is for printing.
func (p *Provider) Format(f fmt.State, _ rune) { fmt.Fprint(f, p.String()) }

// Spec returns the specification with its defaults filled in. It is shared: treat it as read-only.
func (p *Provider) Spec() Spec { return p.spec }

// Limits returns the sizes and windows of the sender, with the defaults filled in.
func (p *Provider) Limits() Limits { return p.spec.Limits }

// MaxBody returns the largest body, in bytes, that the sender may send. [hookonce.Webhook] reads no
// more than that.
func (p *Provider) MaxBody() int64 { return p.spec.Limits.MaxBody }

// OK returns the answer that stops the sender from sending the event again.
func (p *Provider) OK() hookonce.Answer {
	a := p.spec.Answer
	return hookonce.Answer{Status: a.Status, ContentType: a.ContentType, Body: []byte(a.Body)}
}

// Open verifies the request and extracts its event. It never panics and never blocks, whatever the
// bytes. Every error wraps a *[hookonce.RejectError].
//
// A request whose signature is valid but whose body is not JSON yields one unkeyed event and the
// reason in Unreadable, unless the specification takes nothing from the body.
func (p *Provider) Open(req *hookonce.Request) (*hookonce.Delivery, error) {
	if p.url != "" && req.URL != p.url {
		configured := *req
		configured.URL = p.url
		req = &configured
	}
	proof, rej := p.authenticate(req)
	if rej != nil {
		return nil, rej
	}
	r := reading{req: req, proof: proof}
	var unreadable error
	if r.doc, unreadable = p.tree.read(req, p.spec.Form); unreadable != nil {
		return &hookonce.Delivery{Events: []hookonce.Event{p.opaque(&r)}, Unreadable: unreadable}, nil
	}
	if reply := p.handshake(&r); reply != nil {
		return &hookonce.Delivery{Reply: reply}, nil
	}
	return &hookonce.Delivery{Events: []hookonce.Event{p.event(&r)}}, nil
}

// authenticate tries the ways of signing in order. When none succeeds it reports the first one whose
// signature was there at all.
func (p *Provider) authenticate(req *hookonce.Request) (proof, *hookonce.RejectError) {
	var why *hookonce.RejectError
	for i := range p.verifiers {
		proof, rej := p.verifiers[i].check(req)
		if rej == nil {
			return proof, nil
		}
		if why == nil || why.Reason == hookonce.ReasonSignatureMissing && rej.Reason != hookonce.ReasonSignatureMissing {
			why = rej
		}
	}
	return proof{}, why
}
