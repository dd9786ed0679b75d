package oracle

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// secret is what most senders hand out: a text.
const secret = "fake-secret-for-tests-that-is-long-enough"

// endpoint is the address that is registered with the senders.
const endpoint = "https://shop.example/in"

// sdk is a sender's library.
type sdk struct {
	// module is the library.
	module string
	// provider is the sender's name in the catalogue.
	provider string
	// secret is what both verify with. Default: secret.
	secret string
	// other is a secret of the same form that is not the right one. Default: another text.
	other string
	// accepts asks the library whether the request is authentic.
	accepts func(*hookonce.Request) bool
	// sign makes the library sign the request. Nil: it cannot.
	sign func(*hookonce.Request) error
	// private is set if the sender signs with a private key, which only sign has.
	private bool
	// header holds the signature. Default: what the specification says, which code schemes do not.
	header string
	// wrap puts noise into a request that both can read. Nil: any body can be signed.
	wrap func(*hookonce.Request, []byte)
	// laxer says why we reject what the library accepts, by the name of the change.
	laxer map[string]string
	// stricter says why we accept what the library rejects.
	stricter map[string]string
}

// sdks lists every library. One that the catalogue has no provider for is an error.
func sdks() []sdk {
	return []sdk{
		adyenSDK(), braintreeSDK(), discordSDK("discord"), discordSDK("discord-interactions"), lineSDK(), mailgunSDK(), pagerdutySDK(), sendgridSDK(), twitchSDK(),
		easypostSDK(), githubSDK(), gitlabSDK(), lemonsqueezySDK(), openaiSDK(), paddleSDK(), razorpaySDK(), resendSDK(), shopifySDK(), slackSDK(), standardSDK(),
		stripeSDK(), svixSDK(), twilioSDK(), workosSDK(),
	}
}

// excuse says why we reject what the library accepts, empty if there is no reason to.
func (s sdk) excuse(name string) string {
	if why := s.laxer[name]; why != "" {
		return why
	}
	return everywhere[name]
}

// build returns the provider of the catalogue.
func (s sdk) build(t testing.TB) *spec.Provider {
	t.Helper()
	text := s.secret
	if text == "" {
		text = secret
	}
	p, err := provider.Build(s.provider, spec.Settings{Secrets: spec.Secrets(text), URL: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// request returns an unsigned request that carries noise.
func (s sdk) request(p *spec.Provider, noise []byte) *hookonce.Request {
	now := time.Now()
	header, _ := p.Spec().Sample(spec.Sample{ID: "evt_1", Time: now})
	if id, ok := strings.CutPrefix(string(p.Spec().Verify[0].ID), "header:"); ok {
		header.Set(id, "msg_1")
	}
	req := &hookonce.Request{Method: http.MethodPost, URL: endpoint, Header: header, Body: noise, Now: now}
	if s.wrap != nil {
		s.wrap(req, noise)
	}
	return req
}

// inJSON puts noise into a body of JSON, for senders of whose other bodies there is no telling where they
// begin in what is signed: see the provider's refusal of bodies that may be cut.
func inJSON(req *hookonce.Request, noise []byte) {
	body, err := json.Marshal(map[string]any{"noise": noise, "text": string(noise)})
	if err != nil {
		panic(err) // bytes and texts always have a JSON form
	}
	req.Body = body
}

// signed returns a request that carries noise, signed at Now by us or, where only that can, by the
// library.
func (s sdk) signed(t testing.TB, p *spec.Provider, noise []byte) *hookonce.Request {
	t.Helper()
	req := s.request(p, noise)
	s.resign(t, p, req)
	return req
}

// resign replaces the signature.
func (s sdk) resign(t testing.TB, p *spec.Provider, req *hookonce.Request) {
	t.Helper()
	sign := p.Sign
	if s.private {
		sign = s.sign
	}
	if err := sign(req); err != nil {
		t.Fatal(err)
	}
}

// clone returns a copy that can be changed.
func clone(req *hookonce.Request) *hookonce.Request {
	c := *req
	c.Header, c.Body = req.Header.Clone(), bytes.Clone(req.Body)
	return &c
}

// wire returns the request as a server sees it.
func wire(req *hookonce.Request) *http.Request {
	r, err := http.NewRequest(req.Method, req.URL, bytes.NewReader(req.Body))
	if err != nil {
		panic(err) // the URL is a constant
	}
	r.Header = req.Header.Clone()
	r.Body = io.NopCloser(bytes.NewReader(req.Body))
	return r
}
