package oracle

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// nodeSender is a sender whose own library for Node is asked: see node/senders.mjs.
type nodeSender struct {
	provider string
	secret   string // default: secret
	url      string // that is called; default: endpoint
	decoded  string // what the library is told instead of it; default: the same
	// noise is set if any JSON can be signed; otherwise the library takes the sender's own events only.
	noise bool
	// laxer and stricter say why the library's verdict differs from ours, by the name of the change.
	laxer, stricter map[string]string
}

// nodeSenders lists the libraries.
var nodeSenders = []nodeSender{
	{provider: "polar", secret: whsec, noise: true},
	{provider: "polar", secret: "polar_whs_fake-secret", noise: true},
	{provider: "hubspot", noise: true, laxer: map[string]string{"signed 6m0s from now": pastOnly}},
	{
		provider: "hubspot", noise: true, laxer: map[string]string{"signed 6m0s from now": pastOnly},
		url: endpoint + "?to=crm%3Aall%2Fof%20us&by=%28a%29", decoded: endpoint + "?to=crm:all/of%20us&by=(a)",
	},
	{provider: "coinbase", noise: true},
	{provider: "workos", laxer: map[string]string{
		"white space in the body": "the library verifies JSON that it wrote anew",
		"signed 6m0s from now":    pastOnly,
	}, stricter: map[string]string{"signed -6m0s from now": signedOnce}},
	{provider: "sanity", noise: true},
	{provider: "gocardless", noise: true},
	{provider: "mux", noise: true, laxer: map[string]string{"signed 6m0s from now": pastOnly}},
	{provider: "linear"},
	{provider: "replicate", secret: whsec, noise: true, laxer: map[string]string{"signed -6m0s from now": noTolerance, "signed 6m0s from now": noTolerance}},
	{provider: "finch", secret: strings.TrimPrefix(whsec, "whsec_"), noise: true},
	{provider: "square", noise: true},
	{provider: "cloudinary", noise: true, laxer: map[string]string{"signed 3h0m0s from now": pastOnly}},
	{provider: "gitlab", secret: whsec, noise: true},
	{provider: "supabase", secret: "v1," + whsec, noise: true},
}

// asked is a request as a library is asked about it.
type asked struct {
	name string // of the change
	ours error

	Provider string            `json:"provider"`
	Secret   string            `json:"secret"`
	URL      string            `json:"url"`
	Method   string            `json:"method"`
	Headers  map[string]string `json:"headers"`
	Body     []byte            `json:"body"`
}

// TestSendersAcceptSamples: what send and hammer send is accepted by the sender's own library, and after a change it says
// what we say.
func TestSendersAcceptSamples(t *testing.T) {
	var all []asked
	var of []nodeSender
	for _, s := range nodeSenders {
		for _, a := range s.requests(t) {
			all, of = append(all, a), append(of, s)
		}
	}
	seen := map[string]bool{}
	for i, theirs := range askNode(t, all) {
		a, s := all[i], of[i]
		id := a.Provider + ": " + a.name
		switch ours := a.ours == nil; {
		case ours == theirs:
		case theirs && s.laxer[a.name] != "", ours && s.stricter[a.name] != "":
			seen[id] = true
		default:
			t.Errorf("%s: accepted by the library: %v; here: %v\n%v\n%q", id, theirs, a.ours, a.Headers, head(a.Body))
		}
		if a.name == "nothing" && !theirs {
			t.Errorf("%s: what we sign is rejected: %v %q", a.Provider, a.Headers, head(a.Body))
		}
	}
	for _, s := range nodeSenders {
		for name := range s.laxer {
			if !seen[s.provider+": "+name] {
				t.Errorf("%s no longer accepts %q: delete the difference", s.provider, name)
			}
		}
		for name := range s.stricter {
			if !seen[s.provider+": "+name] {
				t.Errorf("%s no longer rejects %q: delete the difference", s.provider, name)
			}
		}
	}
}

// requests returns a sample of each sender, other bodies where it takes them, and what becomes of them by changes.
func (s nodeSender) requests(t *testing.T) (all []asked) {
	t.Helper()
	p, err := provider.Build(s.provider, spec.Settings{Secrets: spec.Secrets(s.text()), URL: endpoint})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	_, sample := p.Spec().Sample(spec.Sample{ID: "evt_1", Time: now})
	bodies := [][]byte{sample}
	if s.noise {
		bodies = append(bodies, []byte("{}"), []byte(`{"type": "order.paid", "text":"Grüße, 注文 ✓  <>& é \u0000", "n": 1.0}`))
	}
	for _, body := range bodies {
		signed := s.signed(t, p, body, now)
		all = append(all, s.ask(p, "nothing", signed))
		for _, c := range s.changes(t, p, signed) {
			changed := clone(signed)
			c.apply(changed)
			all = append(all, s.ask(p, c.name, changed))
		}
	}
	return all
}

func (s nodeSender) text() string {
	if s.secret == "" {
		return secret
	}
	return s.secret
}

// signed returns a sample of the sender with that body, signed.
func (s nodeSender) signed(t *testing.T, p *spec.Provider, body []byte, at time.Time) *hookonce.Request {
	t.Helper()
	header, _ := p.Spec().Sample(spec.Sample{ID: "evt_1", Time: at})
	if id, ok := strings.CutPrefix(string(p.Spec().Verify[0].ID), "header:"); ok {
		header.Set(id, "msg_1")
	}
	req := &hookonce.Request{Method: http.MethodPost, URL: endpoint, Header: header, Body: bytes.Clone(body), Now: at}
	if s.url != "" {
		req.URL = s.url
	}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// changes are those of a request that libraries see alike. Those of headers are bytes of the signature.
func (s nodeSender) changes(t *testing.T, p *spec.Provider, req *hookonce.Request) []change {
	all := []change{
		{"white space in the body", func(req *hookonce.Request) { req.Body = bytes.Replace(req.Body, []byte(":"), []byte(": "), 1) }},
		{"another character in the body", func(req *hookonce.Request) {
			at := bytes.LastIndexAny(req.Body, "0123456789abcdefghijklmnopqrstuvwxyz")
			if at >= 0 {
				req.Body[at] ^= 1
			} else {
				req.Body = []byte(`{"a":1}`)
			}
		}},
		{"another secret", func(req *hookonce.Request) {
			other := s
			other.secret = "another-fake-secret-for-the-tests"
			if strings.Contains(s.secret, "whsec_") {
				other.secret = otherWhsec
			} else if s.provider == "finch" {
				other.secret = strings.TrimPrefix(otherWhsec, "whsec_")
			}
			stranger, err := provider.Build(s.provider, spec.Settings{Secrets: spec.Secrets(other.secret), URL: endpoint})
			if err != nil {
				t.Fatal(err)
			}
			req.Header = other.signed(t, stranger, req.Body, req.Now).Header
		}},
	}
	shifts := []time.Duration{-6 * time.Minute, 6 * time.Minute}
	if s.provider == "cloudinary" {
		shifts = []time.Duration{-3 * time.Hour, 3 * time.Hour}
	}
	for _, shift := range shifts {
		all = append(all, change{"signed " + shift.String() + " from now", func(req *hookonce.Request) {
			if p.Spec().Verify[0].Time == nil && s.provider != "coinbase" || s.provider == "sanity" || s.provider == "linear" {
				return // no time is signed, or there is no tolerance on it; Linear's time is in the body
			}
			now := req.Now
			*req = *s.signed(t, p, req.Body, now.Add(shift))
			req.Now = now
		}})
	}
	carrier := string(p.Spec().Verify[0].Signature.In)
	if s.provider == "coinbase" {
		carrier = "header:X-Hook0-Signature"
	}
	name := http.CanonicalHeaderKey(strings.TrimPrefix(carrier, "header:"))
	text := req.Header.Get(name)
	for i := len(text) - 40; i < len(text)-3; i += 6 { // the last bits of base64 belong to no byte
		all = append(all, change{"another byte in the signature " + strconv.Itoa(i), func(req *hookonce.Request) {
			c := text[i] ^ 1
			req.Header[name] = []string{text[:i] + string([]byte{c}) + text[i+1:]}
		}})
	}
	return append(all, change{"no signature", func(req *hookonce.Request) { delete(req.Header, name) }})
}

// ask prepares the question, and notes what we say.
func (s nodeSender) ask(p *spec.Provider, name string, req *hookonce.Request) asked {
	_, err := p.Open(clone(req))
	var rejected *hookonce.RejectError
	if err != nil && !errors.As(err, &rejected) {
		panic(err) // nothing is fetched
	}
	a := asked{name: name, ours: err, Provider: s.provider, Secret: s.text(), URL: req.URL, Method: req.Method, Headers: map[string]string{}, Body: req.Body}
	if s.decoded != "" {
		a.URL = s.decoded
	}
	for key, values := range req.Header {
		a.Headers[strings.ToLower(key)] = strings.Join(values, ", ")
	}
	return a
}

// askNode asks the libraries.
func askNode(t *testing.T, cases []asked) []bool {
	t.Helper()
	if _, err := os.Stat("node/node_modules"); err != nil {
		t.Fatalf("%v: the libraries are not installed; run make oracle", err)
	}
	input, err := json.Marshal(cases)
	if err != nil {
		t.Fatal(err)
	}
	node := exec.CommandContext(t.Context(), "node", "senders.mjs")
	node.Dir, node.Stdin, node.Stderr = "node", bytes.NewReader(input), os.Stderr
	output, err := node.Output()
	if err != nil {
		t.Fatalf("node senders.mjs: %v", err)
	}
	var verdicts []bool
	if err := json.Unmarshal(output, &verdicts); err != nil || len(verdicts) != len(cases) {
		t.Fatalf("node senders.mjs wrote %q for %d cases: %v", output, len(cases), err)
	}
	return verdicts
}
