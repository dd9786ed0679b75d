package oracle

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// each runs a test for every library. The libraries read the clock of the process; inside of synctest it stands still.
func each(t *testing.T, test func(*testing.T, sdk, *spec.Provider)) {
	for _, s := range sdks() {
		t.Run(s.provider, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, s, s.build(t)) })
		})
	}
}

// TestTheySignWeVerify is what happens in production.
func TestTheySignWeVerify(t *testing.T) {
	each(t, func(t *testing.T, s sdk, p *spec.Provider) {
		for _, noise := range bodies() {
			if s.sign == nil {
				return
			}
			req := s.request(p, noise)
			if err := s.sign(req); err != nil {
				t.Fatal(err)
			}
			if _, err := p.Open(req); err != nil {
				t.Errorf("%q: %v", head(req.Body), err)
			}
		}
	})
}

// TestWeSignTheyVerify holds the signer, and with it every test that relies on it, to the libraries.
func TestWeSignTheyVerify(t *testing.T) {
	each(t, func(t *testing.T, s sdk, p *spec.Provider) {
		for _, noise := range bodies() {
			req := s.signed(t, p, noise)
			switch name := kind(noise); {
			case s.accepts(clone(req)):
			case s.stricter[name] == "":
				t.Errorf("%s is rejected: %v %q", name, req.Header, head(req.Body))
			}
		}
	})
}

// TestTheyAcceptSamples: what send and hammer send is what the sender sends.
func TestTheyAcceptSamples(t *testing.T) {
	each(t, func(t *testing.T, s sdk, p *spec.Provider) {
		if s.private {
			return
		}
		header, body := p.Spec().Sample(spec.Sample{ID: "101", Time: time.Now()})
		req := &hookonce.Request{Method: http.MethodPost, URL: endpoint, Header: header, Body: body, Now: time.Now()}
		s.resign(t, p, req)
		if !s.accepts(clone(req)) {
			t.Errorf("it is rejected: %v %q", req.Header, head(req.Body))
		}
	})
}

// TestSameVerdict changes signed requests in every way of changes and compares what both say.
func TestSameVerdict(t *testing.T) {
	each(t, func(t *testing.T, s sdk, p *spec.Provider) {
		seen, compared := map[string]bool{}, 0
		for _, noise := range bodies() {
			req := s.signed(t, p, noise)
			if !s.accepts(clone(req)) { // TestWeSignTheyVerify says whether that is known
				seen[kind(noise)] = true
				continue
			}
			for _, c := range changes(t, s, p, req) {
				changed := clone(req)
				c.apply(changed)
				s.compare(t, p, changed, c.name, seen)
				compared++
			}
		}
		if compared == 0 {
			t.Error("nothing was compared")
		}
		for name := range s.laxer {
			if !seen[name] {
				t.Errorf("%s no longer accepts %q: delete the difference", s.module, name)
			}
		}
		for name := range s.stricter {
			if !seen[name] {
				t.Errorf("%s no longer rejects %q: delete the difference", s.module, name)
			}
		}
	})
}

// compare asks both about a changed request and notes a difference that is known.
func (s sdk) compare(t *testing.T, p *spec.Provider, req *hookonce.Request, name string, seen map[string]bool) {
	d, err := p.Open(req)
	var rejected *hookonce.RejectError
	if err != nil && !errors.As(err, &rejected) {
		t.Fatalf("%s: %v", name, err)
	}
	if err == nil && name == bodyByte && d.Proof.Covers == string(spec.CoversBody) {
		t.Errorf("another body is accepted: %q", head(req.Body))
	}
	theirs := s.accepts(clone(req))
	switch ours := err == nil; {
	case ours == theirs:
	case theirs && s.excuse(name) != "", ours && s.stricter[name] != "":
		seen[name] = true
	case theirs:
		t.Errorf("%s is accepted by the library and rejected here: %v\n%v\n%q", name, err, req.Header, head(req.Body))
	default:
		t.Errorf("%s is rejected by the library and accepted here\n%v\n%q", name, req.Header, head(req.Body))
	}
}

// TestForgeries signs with another secret.
func TestForgeries(t *testing.T) {
	each(t, func(t *testing.T, s sdk, p *spec.Provider) {
		other := s
		if other.secret = s.other; s.other == "" {
			other.secret = "fake-secret-of-somebody-else-for-tests"
		}
		if s.private {
			return
		}
		for _, noise := range bodies() {
			req := other.signed(t, other.build(t), noise)
			if _, err := p.Open(clone(req)); err == nil {
				t.Errorf("%q is accepted here", head(req.Body))
			}
			if s.accepts(req) {
				t.Errorf("%q is accepted by the library", head(req.Body))
			}
		}
	})
}
