package provider

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/hookonce/hookonce"
)

// Signer signs requests the way the sender does: the mirror of [hookonce.Provider]. It is there for
// demonstrations, load generators and tests.
type Signer interface {
	// Sign sets the headers of the signature on req, in the first way of signing, with the first
	// secret, at req.Now. It creates req.Header if that is nil, replaces the headers that it sets,
	// and leaves all others alone.
	Sign(req *hookonce.Request) error
}

var _ Signer = (*Provider)(nil)

// Sign implements [Signer]. It fails if the scheme signs something that the request lacks: an
// identifier (see [Spec.Sample] for a header that has it), or the URL.
func (p *Provider) Sign(req *hookonce.Request) error {
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	v := &p.verifiers[0]
	signed := *req
	if p.url != "" {
		signed.URL = p.url
	}
	if v.signs(kindURL) && signed.URL == "" {
		return errors.New("provider: the scheme signs the URL, and neither the request nor the settings have one")
	}
	id, rej := v.identifier(req.Header)
	if rej != nil {
		return fmt.Errorf("provider: can not sign: %s", rej.Detail)
	}
	pr := proof{by: v, id: id}
	if v.ts != nil {
		pr.ts = v.unit.format(req.Now)
	}
	v.seal(req.Header, &signed, pr)
	return nil
}

// seal sets the headers of the signature.
func (v *verifier) seal(h http.Header, req *hookonce.Request, p proof) {
	if v.ts != nil && v.ts.kind == kindHeader {
		h[v.ts.text] = []string{p.ts}
	}
	m := v.secrets[0].get()
	line := v.signature.Prefix + string(v.compute(m, req, p))
	v.secrets[0].put(m)
	if v.ts != nil && v.ts.kind == kindPart {
		line = v.ts.text + p.ts + v.signature.Split + line
	}
	h[v.header] = []string{line}
}
