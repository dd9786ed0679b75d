package spec

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/internal/incoming"
)

// greeting is a sender with that handshake.
func greeting(h Handshake) Spec {
	s := plain()
	s.Handshakes = []Handshake{h}
	return s
}

// asks returns an unsigned request.
func asks(method, query string) *hookonce.Request {
	return &hookonce.Request{Method: method, URL: "https://shop.example/in?" + query, Header: http.Header{}, Now: now}
}

// echoing answers GET with the challenge.
var echoing = Handshake{Method: "GET", Echo: "query:challenge"}

// TestHandshakesAreOffUnlessEnabled: then a challenge is a request like any other.
func TestHandshakesAreOffUnlessEnabled(t *testing.T) {
	signed := Handshake{When: []Match{{Value: "json:$.type", Is: "verify"}}, Echo: "json:$.challenge"}
	unsigned := signed
	unsigned.Unsigned = true
	const body = `{"id":"1","type":"verify","challenge":"c"}`
	for _, h := range []Handshake{echoing, signed, unsigned} {
		for _, enabled := range []bool{false, true} {
			p := build1(t, greeting(h), Settings{Handshakes: enabled})
			req := asks("GET", "challenge=c")
			if h.Method == "" {
				req = request(t, p, body)
			}
			d, err := p.Open(req)
			switch {
			case enabled && (err != nil || d.Handshake == nil || string(d.Handshake.Body) != "c" || len(d.Events) > 0):
				t.Errorf("%+v is not answered: %+v, %v", h, d, err)
			case !enabled && h.Method == "" && (err != nil || d.Handshake != nil || d.Events[0].Key != "1"):
				t.Errorf("%+v swallowed an event: %+v, %v", h, d, err)
			case !enabled && h.Method != "" && !errors.Is(err, hookonce.ErrUnverified):
				t.Errorf("%+v is answered: %+v, %v", h, d, err)
			}
			if slices.Contains(p.Profile().Methods, "GET") != (enabled && h.Method == "GET") {
				t.Errorf("%+v greets GET: %v", h, slices.Contains(p.Profile().Methods, "GET"))
			}
		}
	}
	if _, err := New(plain(), Settings{Secrets: Secrets("fake"), Handshakes: true}); err == nil || !strings.Contains(err.Error(), "this provider has none") {
		t.Error(err)
	}
}

// TestAnswersAreInert: what a stranger wrote goes back as text, or inside a string.
func TestAnswersAreInert(t *testing.T) {
	for _, c := range []struct {
		h                 Handshake
		challenge         string
		status            int
		contentType, body string
	}{
		{echoing, "<script>", 200, "text/plain; charset=utf-8", "<script>"},
		{Handshake{Method: "GET", Echo: "query:challenge", ContentType: "application/json", Body: `{"c":"{{echo}}"}`}, "\"}<\\\n", 200, "application/json", `{"c":"\"}\u003c\\\n"}`},
		{Handshake{Method: "GET", Echo: "query:challenge", Status: 202, Body: "{{echo}}{{echo}}"}, "{{code}}{{echo}}", 202, "text/plain; charset=utf-8", "{{code}}{{echo}}{{code}}{{echo}}"},
		{Handshake{Method: "GET", When: []Match{{Value: "query:challenge"}}, Status: 204}, "x", 204, "", ""},
	} {
		p := build1(t, greeting(c.h), Settings{Handshakes: true})
		d, err := p.Open(asks("GET", "challenge="+url.QueryEscape(c.challenge)))
		if err != nil || d.Handshake.Status != c.status || d.Handshake.ContentType != c.contentType || string(d.Handshake.Body) != c.body {
			t.Errorf("%+v: %+v, %v", c.h, d, err)
		}
		if d.Proof != (hookonce.Proof{}) {
			t.Errorf("an unsigned challenge proves %+v", d.Proof)
		}
	}
}

// TestWhatIsNoChallenge is not answered.
func TestWhatIsNoChallenge(t *testing.T) {
	h := echoing
	h.When = []Match{{Value: "query:mode", Is: "subscribe"}, {Value: "query:topic"}, {Value: "query:token", Token: true}}
	p := build1(t, greeting(h), Settings{Handshakes: true, Token: "fake"})
	const good = "mode=subscribe&topic=t&token=fake&challenge="
	if d, err := p.Open(asks("GET", good+strings.Repeat("x", maxEcho))); err != nil || len(d.Handshake.Body) != maxEcho {
		t.Error(d, err)
	}
	for query, status := range map[string]int{
		good: http.StatusMethodNotAllowed, good + "%ff": http.StatusMethodNotAllowed, good + strings.Repeat("x", maxEcho+1): http.StatusMethodNotAllowed,
		good + "a&challenge=b": http.StatusMethodNotAllowed, strings.Replace(good, "subscribe", "unsubscribe", 1) + "c": http.StatusMethodNotAllowed,
		strings.Replace(good, "topic=t", "topic=", 1) + "c": http.StatusMethodNotAllowed, "": http.StatusMethodNotAllowed,
		strings.Replace(good, "fake", "other", 1) + "c": http.StatusForbidden, strings.Replace(good, "fake", "", 1) + "c": http.StatusForbidden,
		strings.Replace(good, "fake", "fake&token=other", 1) + "c": http.StatusForbidden,
	} {
		for method, want := range map[string]int{"GET": status, "PUT": http.StatusMethodNotAllowed} {
			_, err := p.Open(asks(method, query))
			var rej *hookonce.RejectError
			if !errors.As(err, &rej) || rej.Status != want || rej.Reason != hookonce.ReasonHandshakeRefused {
				t.Errorf("%s %s: %v", method, query, err)
			}
		}
	}
	if _, err := New(greeting(h), Settings{Secrets: Secrets("fake"), Handshakes: true}); err == nil || !strings.Contains(err.Error(), "token that they ask for is not set") {
		t.Error(err)
	}
}

// confirming is a signed handshake that is answered with a code.
var confirming = Handshake{
	When: []Match{{Value: "json:$.type", Is: "verify"}}, Echo: "json:$.challenge",
	Code: &ChallengeCode{Kind: HMAC}, ContentType: "application/json", Body: `{"plain":"{{echo}}","code":"{{code}}"}`,
}

// TestSignedHandshakes are answered to the sender alone, with the secret that it signed with: while
// secrets are rotated, it knows only one of them.
func TestSignedHandshakes(t *testing.T) {
	const body = `{"type":"verify","challenge":"abc"}`
	p := build1(t, greeting(confirming), Settings{Secrets: Secrets("old", "new"), Handshakes: true})
	for number, secret := range []string{"old", "new"} {
		theirs := build1(t, plain(), Settings{Secrets: Secrets(secret)})
		want := `{"plain":"abc","code":"` + request(t, theirs, "abc").Header.Get("X-Signature") + `"}`
		d, err := p.Open(request(t, theirs, body))
		if err != nil || d.Handshake == nil || string(d.Handshake.Body) != want || d.Proof.Secret != number+1 {
			t.Errorf("%s: %+v, %v", secret, d, err)
		}
	}
	rejected(t, p, request(t, build1(t, plain(), Settings{Secrets: Secrets("theirs")}), body), hookonce.ReasonSignatureMismatch)
	if d := open(t, p, `{"id":"1","type":"other","challenge":"abc"}`); d.Handshake != nil || d.Events[0].Key != "1" {
		t.Errorf("an event was taken for a challenge: %+v", d)
	}
}

// answering is an unsigned handshake that is answered with a code.
func answering(k Kind, over ...Value) Handshake {
	return Handshake{Method: "GET", Echo: "query:c", Pattern: "[a-z]{1,8}", Code: &ChallengeCode{Kind: k, Over: over}, Body: "{{code}}"}
}

// TestNoSigningOracle: only what matches the pattern is answered, and nothing that matches it verifies,
// whether or not this endpoint is the one that answers.
func TestNoSigningOracle(t *testing.T) {
	for _, kind := range []Kind{HMAC, Code} {
		s := greeting(answering(kind))
		if kind == Code {
			s.Verify = []Verify{{Kind: Code, Scheme: echoScheme{}}}
		}
		p, silent := build1(t, s, Settings{Handshakes: true}), build1(t, s, Settings{})
		d, err := p.Open(asks("GET", "c=abc"))
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []*Provider{p, silent} {
			rejected(t, p, signedAs(string(d.Handshake.Body), "abc"), hookonce.ReasonSignatureMismatch)
			open(t, p, `{"id":"1"}`)
			open(t, p, strings.Repeat("a", 9))
			open(t, p, strings.Repeat("a", maxEcho+1))
			open(t, p, "")
		}
		for _, text := range []string{"{}", "ABC", "abc ", "abc\n", "abcdefghi", "abc{}", ""} {
			if d, err := p.Open(asks("GET", "c="+url.QueryEscape(text))); err == nil {
				t.Errorf("%s answers %q with %s", kind, text, d.Handshake.Body)
			}
		}
	}
}

// TestLongBodiesAreNoChallenges: what is too long to be one is an event, whatever it looks like.
func TestLongBodiesAreNoChallenges(t *testing.T) {
	for _, kind := range []Kind{HMAC, Code} {
		h := answering(kind)
		h.Pattern = "[a-z]+"
		s := greeting(h)
		if kind == Code {
			s.Verify = []Verify{{Kind: Code, Scheme: echoScheme{}}}
		}
		p := build1(t, s, Settings{Handshakes: true})
		rejected(t, p, request(t, p, strings.Repeat("a", maxEcho)), hookonce.ReasonSignatureMismatch)
		open(t, p, strings.Repeat("a", maxEcho+1))
	}
}

// TestPatternsOfWholeChallenges: alternatives and anchors do not let anything else in.
func TestPatternsOfWholeChallenges(t *testing.T) {
	h := answering(HMAC)
	h.Pattern = "a|b(?m:$)"
	p := build1(t, greeting(h), Settings{Handshakes: true})
	for text, ok := range map[string]bool{"a": true, "b": true, "ab": false, "a{}": false, "{}b": false, "b\n{}": false} {
		if _, err := p.Open(asks("GET", "c="+url.QueryEscape(text))); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestHashedChallenges needs no secret of the endpoint. The sum is that of sha256sum(1).
func TestHashedChallenges(t *testing.T) {
	h := answering(PlainHash, "echo", "const:/", "token", "url")
	h.Pattern = ""
	h.Code.Encoding = Base64
	p := build1(t, greeting(h), Settings{Handshakes: true, Token: "fake", URL: "https://shop.example/in"})
	d, err := p.Open(asks("GET", "c=abc"))
	if err != nil || string(d.Handshake.Body) != "Mm5iPjwFriCIHJasiPdgZuV8dAI+o9/R17/flUJEBno=" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestNoCodeWithoutASecret: that every secret is out of date is our fault.
func TestNoCodeWithoutASecret(t *testing.T) {
	s := greeting(answering(HMAC))
	p := build1(t, s, Settings{Secrets: []Secret{{Text: "old", Until: now}}, Handshakes: true})
	if d, err := p.Open(asks("GET", "c=abc")); !errors.Is(err, hookonce.ErrNoSecret) || errors.Is(err, hookonce.ErrUnverified) {
		t.Errorf("%+v, %v", d, err)
	}
	p = build1(t, s, Settings{Secrets: []Secret{{Text: "old", Until: now}, {Text: "new"}}, Handshakes: true})
	want := request(t, build1(t, plain(), Settings{Secrets: Secrets("new")}), "abc").Header.Get("X-Signature")
	if d, err := p.Open(asks("GET", "c=abc")); err != nil || string(d.Handshake.Body) != want {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestHandshakesThatAreRefused when the program starts.
func TestHandshakesThatAreRefused(t *testing.T) {
	token := plain()
	token.Verify = []Verify{{Kind: Token, Signature: Signature{In: "header:X-Token"}}}
	mute := plain()
	mute.Verify = []Verify{{Kind: Code, Scheme: muteScheme{}}}
	both := plain()
	both.Verify = append(both.Verify, token.Verify...)
	for _, c := range []struct {
		spec   Spec
		change func(*Handshake)
		want   string
	}{
		{plain(), func(h *Handshake) { h.Pattern = "" }, "pattern: is missing"},
		{plain(), func(h *Handshake) { h.Pattern = "(" }, "pattern: error parsing"},
		{plain(), func(h *Handshake) { h.Echo = "" }, "needs an echo"},
		{plain(), func(h *Handshake) { h.Echo = "body" }, "echo"},
		{plain(), func(h *Handshake) { h.When = []Match{{Value: "json:$.a?"}} }, "when[0]"},
		{plain(), func(h *Handshake) { h.Code.Kind = Token }, `there is no "token"`},
		{plain(), func(h *Handshake) { h.Code.Encoding = "rot13" }, "code.encoding"},
		{plain(), func(h *Handshake) { h.Code.Kind = PlainHash }, "code.over: is missing"},
		{plain(), func(h *Handshake) { h.Code.Kind, h.Code.Over = PlainHash, []Value{"body"} }, "code.over[0]"},
		{plain(), func(h *Handshake) { h.Code.Kind = Code }, "cannot compute that"},
		{token, func(h *Handshake) {}, "cannot compute that"},
		{both, func(h *Handshake) {}, "cannot compute that"},
		{mute, func(h *Handshake) { h.Code.Kind = Code }, "cannot compute that"},
		{mute, func(h *Handshake) {}, "cannot compute that"},
		{plain(), func(h *Handshake) { h.Method = "POST" }, "every event would be taken"},
		{plain(), func(h *Handshake) { h.Status = 301 }, "status"},
		{plain(), func(h *Handshake) { h.ContentType = "text/html; charset=utf-8" }, "content_type"},
	} {
		h := answering(HMAC)
		c.change(&h)
		s := c.spec
		s.Handshakes = []Handshake{h}
		if _, err := New(s, Settings{Secrets: Secrets("fake")}); err == nil || !strings.Contains(err.Error(), "handshakes[0]") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

// muteScheme is code that says who sent a request and no more.
type muteScheme struct{}

func (muteScheme) MarshalText() ([]byte, error)         { return []byte("mute"), nil }
func (muteScheme) Covers() Coverage                     { return CoversBody }
func (muteScheme) Signs(v Value) bool                   { return strings.HasPrefix(string(v), "json:") }
func (muteScheme) Compile(text string) (Checker, error) { return muteChecker(text), nil }

type muteChecker string

func (c muteChecker) Check(req *hookonce.Request) error {
	switch sig := req.Header.Get("X-Signature"); {
	case sig == c.sign(string(req.Body)):
		return nil
	case sig == "later" && c == "c":
		return errors.New("the keys cannot be fetched now")
	}
	return incoming.Reject(hookonce.ReasonSignatureMismatch, "X-Signature is another")
}

func (c muteChecker) sign(text string) string { return fmt.Sprintf("%s(%s)", string(c), text) }

// echoScheme also signs and answers.
type echoScheme struct{ muteScheme }

func (echoScheme) Compile(text string) (Checker, error) { return echoChecker{muteChecker(text)}, nil }

type echoChecker struct{ muteChecker }

func (c echoChecker) Respond(challenge string) string     { return c.sign(challenge) }
func (c echoChecker) Signed(req *hookonce.Request) string { return string(req.Body) }

func (c echoChecker) Seal(req *hookonce.Request) error {
	req.Header.Set("X-Signature", c.sign(string(req.Body)))
	return nil
}

// TestCode: every secret is tried, and that one of them cannot decide now outranks a rejection.
func TestCode(t *testing.T) {
	s := plain()
	s.Verify = []Verify{{Kind: Code, Scheme: echoScheme{}}}
	p := build1(t, s, Settings{Secrets: []Secret{{Text: "a", Until: now}, {Text: "b"}, {Text: "c"}}})
	for sig, number := range map[string]int{`b({"id":"1"})`: 2, `c({"id":"1"})`: 3, `a({"id":"1"})`: 0, "x": 0, "later": -1} {
		d, err := p.Open(signedAs(sig, `{"id":"1"}`))
		switch {
		case number > 0 && (err != nil || d.Proof.Secret != number || d.Proof.Covers != "body" || !d.Events[0].KeySigned):
			t.Errorf("%s: %+v, %v", sig, d, err)
		case number <= 0 && (err == nil || errors.Is(err, hookonce.ErrUnverified) != (number == 0)):
			t.Errorf("%s: %+v, %v", sig, d, err)
		}
	}
	if req := request(t, p, "{}"); req.Header.Get("X-Signature") != "b({})" {
		t.Error(req.Header)
	}
	late := signedAs("c({})", "{}")
	p = build1(t, s, Settings{Secrets: []Secret{{Text: "c", Until: now.Add(-time.Hour)}}})
	if _, err := p.Open(late); !errors.Is(err, hookonce.ErrNoSecret) {
		t.Error(err)
	}
	if err := p.Sign(late); !errors.Is(err, hookonce.ErrNoSecret) {
		t.Error(err)
	}
	s.Verify[0].Scheme = muteScheme{}
	if err := build1(t, s, Settings{}).Sign(late); err == nil || !strings.Contains(err.Error(), "private key") {
		t.Error(err)
	}
}

// answeredInHeader wants its challenge back in a header.
func answeredInHeader() Handshake {
	return Handshake{
		Unsigned: true, When: []Match{{Value: "header:X-Hook-Secret"}}, Echo: "header:X-Hook-Secret",
		Header: map[string]string{"X-Hook-Secret": "{{echo}}", "Webhook-Allowed-Rate": "*"},
	}
}

// TestAnswersInHeaders: what a stranger wrote is one word there, or is not answered.
func TestAnswersInHeaders(t *testing.T) {
	p := build1(t, greeting(answeredInHeader()), Settings{Handshakes: true})
	for challenge, answered := range map[string]bool{
		"b537207f20cbfa02": true, "{{code}}": true, strings.Repeat("x", maxEcho): true,
		"": false, "a b": false, "a\r\nSet-Cookie: b": false, "é": false, strings.Repeat("x", maxEcho+1): false,
	} {
		req := asks("POST", "")
		req.Header["X-Hook-Secret"] = []string{challenge}
		d, err := p.Open(req)
		switch {
		case !answered && !errors.Is(err, hookonce.ErrUnverified):
			t.Errorf("%.40q is answered: %+v, %v", challenge, d, err)
		case answered && (err != nil || d.Handshake.Header["X-Hook-Secret"] != challenge || d.Handshake.Header["Webhook-Allowed-Rate"] != "*" || len(d.Handshake.Body) > 0):
			t.Errorf("%.40q: %+v, %v", challenge, d, err)
		}
	}
	both := answeredInHeader()
	both.Body = "{{echo}}!"
	req := asks("POST", "")
	req.Header["X-Hook-Secret"] = []string{"c"}
	if d, err := build1(t, greeting(both), Settings{Handshakes: true}).Open(req); err != nil || string(d.Handshake.Body) != "c!" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestHeadersOfAnswersAreHarmless: a challenge sets nothing that somebody on its way acts on.
func TestHeadersOfAnswersAreHarmless(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"Set-Cookie", "{{echo}}", "handshakes[0].header: Set-Cookie cannot be set by the reply to a handshake"},
		{"X-Accel-Redirect", "{{echo}}", "act on it"},
		{"X-Hook-Secret", "a b", "one word"}, {"X-Hook-Secret", "", "one word"},
	} {
		h := answeredInHeader()
		h.Header = map[string]string{c.name: c.text}
		if _, err := New(greeting(h), Settings{Secrets: Secrets("fake"), Handshakes: true}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q: %v, want %q", c.name, c.text, err, c.want)
		}
	}
}
