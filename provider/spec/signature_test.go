package spec

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// carried returns a sender whose signature is in that format.
func carried(sig Signature) Spec {
	s := plain()
	sig.In = cmp.Or(sig.In, "header:X-Signature")
	s.Verify[0].Signature = sig
	return s
}

// TestFormatsOfSignatures: SIG stands for the signature that is right, BAD for one that is not.
func TestFormatsOfSignatures(t *testing.T) {
	const missing, malformed, mismatch = hookonce.ReasonSignatureMissing, hookonce.ReasonSignatureMalformed, hookonce.ReasonSignatureMismatch
	kv := Signature{Split: ",", Prefix: "v1="}
	spaces := Signature{Split: " ", Prefix: "v1,"}
	positional := Signature{Split: ",", Skip: 1}
	for _, c := range []struct {
		name  string
		sig   Signature
		lines map[string]string // and the reason why it is rejected
	}{
		{"plain", Signature{}, map[string]string{
			"SIG": "", " SIG\t": "", "": missing, " ": malformed, "BAD": mismatch, "SIG,SIG": malformed, "SIG BAD": malformed, "v1=SIG": malformed, "sig": malformed,
		}},
		{"prefix", Signature{Prefix: "sha256="}, map[string]string{
			"sha256=SIG": "", "SIG": malformed, "sha1=SIG": malformed, "SHA256=SIG": malformed, "sha256= SIG": malformed, "sha256=BAD": mismatch, "sha256=": malformed, "sha256=sha256=SIG": malformed,
		}},
		{"key and value", kv, map[string]string{
			"v1=SIG": "", "v0=BAD,v1=SIG": "", "v1=BAD,v1=SIG": "", "v1=SIG,v1=BAD": "", " v1=SIG , v0=x": "", "v1=x,v1=SIG": "", ",v1=SIG,": "",
			"v0=SIG": malformed, "v1 =SIG": malformed, "v1=BAD": mismatch, "v1=BAD,v0=SIG": mismatch, "v1=SIG;v1=BAD": malformed, "v11=SIG": malformed, "xv1=SIG": malformed,
		}},
		{"space list", spaces, map[string]string{
			"v1,SIG": "", "v1,BAD v1,SIG": "", "v1a,BAD v1,SIG v2,x": "", "v1a,SIG": malformed, "v1,BADv1,SIG": malformed, "v1,SIG,v1,BAD": malformed,
		}},
		{"space list with commas", Signature{Split: " ", Trim: ",;", Prefix: "v1,"}, map[string]string{
			"v1,SIG": "", "v1,BAD, v1,SIG": "", "v1,SIG, v1,BAD": "", "v1,SIG v1,BAD": "", ",v1,SIG;,": "", "v1,SIG ,": "",
			"SIG,": malformed, "v1,,SIG": malformed, "v1,BAD, v1,BAD": mismatch, "v1,BAD,v1,SIG": malformed,
		}},
		{"list", Signature{Split: ", "}, map[string]string{
			"SIG": "", "BAD,SIG": "", "BAD, SIG": "", "BAD SIG": malformed, ",,,": malformed,
		}},
		{"positional", positional, map[string]string{
			"x,SIG": "", ",SIG": "", "x,BAD,SIG": "", "SIG": malformed, "SIG,BAD": mismatch, "SIG,": malformed,
		}},
		{"positional after two", Signature{Split: ";", Skip: 2, Prefix: "h="}, map[string]string{
			"a;b;h=SIG": "", "h=SIG;b;h=BAD": mismatch, "a;h=SIG": malformed,
		}},
	} {
		p := build1(t, carried(c.sig), Settings{})
		sig := strings.TrimPrefix(request(t, build1(t, plain(), Settings{}), "{}").Header.Get("X-Signature"), c.sig.Prefix)
		for line, want := range c.lines {
			req := signedAs(strings.NewReplacer("SIG", sig, "BAD", strings.Repeat("0", len(sig))).Replace(line), "{}")
			if want != "" {
				t.Run(c.name+" "+line, func(t *testing.T) { rejected(t, p, req, want) })
			} else if _, err := p.Open(req); err != nil {
				t.Errorf("%s: %q: %v", c.name, line, err)
			}
		}
		if _, err := p.Open(request(t, p, "{}")); err != nil {
			t.Errorf("%s: what is signed here is rejected: %v", c.name, err)
		}
	}
}

// TestHeadersThatOccurTwice: of two different values nobody knows which one is meant, unless the sender
// repeats the header.
func TestHeadersThatOccurTwice(t *testing.T) {
	sig := request(t, build1(t, plain(), Settings{}), "{}").Header.Get("X-Signature")
	bad := strings.Repeat("0", len(sig))
	for _, c := range []struct {
		repeated bool
		values   []string
		want     string
	}{
		{false, []string{sig, sig}, ""},
		{false, []string{sig, bad}, hookonce.ReasonSignatureMalformed},
		{true, []string{bad, sig}, ""},
		{true, []string{bad, bad + ", " + sig}, ""},
		{true, []string{bad, bad}, hookonce.ReasonSignatureMismatch},
		{true, nil, hookonce.ReasonSignatureMissing},
	} {
		p := build1(t, carried(Signature{Repeated: c.repeated}), Settings{})
		req := &hookonce.Request{Header: http.Header{"X-Signature": c.values}, Body: []byte("{}"), Now: now}
		if c.want != "" {
			rejected(t, p, req, c.want)
		} else if _, err := p.Open(req); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestNumberedHeaders are looked at from 1 on, without a gap, and no more than a hundred.
func TestNumberedHeaders(t *testing.T) {
	p := build1(t, carried(Signature{In: "header:X-Signature-*"}), Settings{})
	sig := request(t, p, "{}").Header.Get("X-Signature-1")
	bad := strings.Repeat("0", len(sig))
	for _, c := range []struct {
		bad, genuine int // how many others are before it, and its number
		want         string
	}{
		{0, 1, ""}, {1, 2, ""}, {99, 100, ""}, {100, 101, hookonce.ReasonSignatureMismatch}, {1, 3, hookonce.ReasonSignatureMismatch},
		{0, 2, hookonce.ReasonSignatureMissing}, {0, 0, hookonce.ReasonSignatureMissing},
	} {
		req := &hookonce.Request{Header: http.Header{}, Body: []byte("{}"), Now: now}
		for i := range c.bad {
			req.Header.Set(fmt.Sprintf("X-Signature-%d", i+1), bad)
		}
		req.Header.Set(fmt.Sprintf("X-Signature-%d", c.genuine), sig)
		if c.want != "" {
			rejected(t, p, req, c.want)
		} else if _, err := p.Open(req); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestSignaturesElsewhere: in the document, in a field of the form, in the query.
func TestSignaturesElsewhere(t *testing.T) {
	for _, c := range []struct {
		in   Value
		sign Value
		body string
	}{
		{"json:$.auth.sig", "json:$.id", `{"id":"1"}`}, {"json:$.auth.sig", "json:$.id", `{"id":"1","auth":{"sig":"old","x":1}}`},
		{"form:sig", "form:id", "id=1"}, {"form:sig", "form:id", "id=1&sig=old"}, {"query:sig", "body", `{"id":"1"}`},
	} {
		s := carried(Signature{In: c.in})
		s.Verify[0].Sign, s.Event.Key = []Value{c.sign}, nil
		if c.sign != "body" {
			s.Verify[0].Covers = CoversFields
		}
		p := build1(t, s, Settings{})
		req := &hookonce.Request{URL: "https://shop.example/in?a=1", Header: http.Header{}, Body: []byte(c.body), Now: now}
		if c.in == "form:sig" {
			req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
		}
		rejected(t, p, req, map[bool]string{true: hookonce.ReasonSignatureMalformed, false: hookonce.ReasonSignatureMissing}[strings.Contains(c.body, "old")])
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		if _, err := p.Open(req); err != nil {
			t.Errorf("%s: %v in %s %s", c.in, err, req.URL, req.Body)
		}
		req.Body = []byte(strings.ReplaceAll(string(req.Body), "1", "2"))
		if strings.Contains(string(req.Body), "sig") { // the digits of the signature changed as well
			rejected(t, p, req, hookonce.ReasonSignatureMismatch)
		}
	}
}

// TestSigningKeepsWhatIsThere: the signature is put where it belongs, whatever the member is called, and
// nothing else changes.
func TestSigningKeepsWhatIsThere(t *testing.T) {
	for _, name := range []string{"a", "a?b", "a|b", "#", "@this", "a:b", ":a", "7", `a\b`, "{a", "!", "~", "a b", "é"} {
		s := carried(Signature{In: Value("json:$.w." + name)})
		s.Verify[0].Sign, s.Verify[0].Covers = []Value{"json:$.id"}, CoversFields
		p := build1(t, s, Settings{})
		for _, body := range []string{`{"id":"1","n":1.50}`, `{"id":"1","w":{"z":[1, 2]},"n":1.50}`} {
			req := request(t, p, body)
			if _, err := p.Open(req); err != nil {
				t.Errorf("%s: %v in %s", name, err, req.Body)
			}
			if !strings.Contains(string(req.Body), `"n":1.50`) || strings.Contains(body, "z") && !strings.Contains(string(req.Body), `"z":[1, 2]`) {
				t.Errorf("%s: %s became %s", name, body, req.Body)
			}
		}
	}
}

// TestSignedTimeInTheSignature: as a part with a name and as an entry with a number, before, among and
// after the entries that are skipped.
func TestSignedTimeInTheSignature(t *testing.T) {
	for _, c := range []struct {
		in   Value
		skip int
		want string
	}{
		{"part:t=", 0, "t=1770091506,SIG"}, {"part:t=", 2, "t=1770091506,,SIG"},
		{"entry:0", 1, "1770091506,SIG"}, {"entry:1", 2, ",1770091506,SIG"}, {"entry:0", 2, "1770091506,,SIG"},
		{"entry:0", 0, "1770091506,SIG"}, {"entry:1", 0, "SIG,1770091506"}, {"entry:1", 1, ",1770091506,SIG"}, {"entry:3", 1, ",SIG,,1770091506"},
	} {
		s := carried(Signature{Split: ",", Skip: c.skip})
		s.Verify[0].Time = &Timestamp{In: c.in, Past: time.Minute, Future: time.Minute}
		s.Verify[0].Sign = []Value{"ts", "body"}
		p := build1(t, s, Settings{})
		req := request(t, p, "{}")
		line := req.Header.Get("X-Signature")
		if got := regexp.MustCompile("[0-9a-f]{64}").ReplaceAllString(line, "SIG"); got != c.want {
			t.Errorf("%+v: %s", c, got)
		}
		if _, err := p.Open(req); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		late := *req
		late.Now = now.Add(2 * time.Minute)
		rejected(t, p, &late, hookonce.ReasonTimestampOld)
		req.Header.Set("X-Signature", strings.Replace(line, "1770091506", "1770091507", 1))
		rejected(t, p, req, hookonce.ReasonSignatureMismatch)
	}
}

// TestTheMostSignatures are sixteen: each costs a verification for whoever can send a request.
func TestTheMostSignatures(t *testing.T) {
	p := build1(t, carried(Signature{Split: ","}), Settings{})
	sig := request(t, p, "{}").Header.Get("X-Signature")
	most := strings.Repeat(strings.Repeat("0", 64)+",", 15) + sig
	if _, err := p.Open(signedAs(most, "{}")); err != nil {
		t.Error(err)
	}
	rejected(t, p, signedAs("x,"+most, "{}"), hookonce.ReasonSignatureMalformed)
}

// TestTokens: what is sent along is compared as it is, and binds nothing.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		kind       Kind
		sig        Signature
		secret     string
		good, evil []string
	}{
		{Token, Signature{In: "header:X-Token"}, "s3cret", []string{"s3cret", " s3cret "}, []string{"", "S3cret", "s3cre", "s3cret1", "s3cret,s3cret"}},
		{Token, Signature{In: "header:X-Token", Prefix: "Bearer "}, "a b", []string{"Bearer a b"}, []string{"a b", "bearer a b", "Bearer a", "Bearer  a b"}},
		{Token, Signature{In: "header:X-Token", Split: ","}, "x", []string{"y,x", "x, y"}, []string{"xy"}},
		{Basic, Signature{In: "header:X-Token"}, "u:p:q", []string{"Basic dTpwOnE="}, []string{"dTpwOnE=", "Basic u:p:q", "Basic dTpwOnE", "Basic dTpwOnF=", "Basic dTpw", "Basic "}},
	} {
		s := plain()
		s.Verify = []Verify{{Kind: c.kind, Signature: c.sig}}
		p := build1(t, s, Settings{Secrets: Secrets("other:one", c.secret)})
		for _, text := range c.good {
			req := &hookonce.Request{Header: http.Header{"X-Token": {text}}, Body: []byte(`{"id":"1"}`), Now: now}
			d, err := p.Open(req)
			if err != nil || d.Proof.Covers != "nothing" || d.Proof.Secret != 2 || d.Events[0].Key != "1" || d.Events[0].KeySigned {
				t.Errorf("%s: %q: %+v, %v", c.kind, text, d, err)
			}
		}
		for _, text := range c.evil {
			if d, err := p.Open(&hookonce.Request{Header: http.Header{"X-Token": {text}}, Now: now}); err == nil {
				t.Errorf("%s: %q is accepted: %+v", c.kind, text, d)
			}
		}
		if d := open(t, p, "{}"); d.Proof.Secret != 1 {
			t.Errorf("%s: what is signed here has secret %d", c.kind, d.Proof.Secret)
		}
	}
	s := plain()
	s.Verify = []Verify{{Kind: Basic}}
	if _, err := New(s, Settings{Secrets: Secrets("user")}); err == nil || !strings.Contains(err.Error(), "user:password") {
		t.Error(err)
	}
	s.Verify = []Verify{{Kind: Token, Signature: Signature{In: "query:token"}}}
	p := build1(t, s, Settings{Secrets: Secrets("a&b=c")})
	req := &hookonce.Request{URL: "https://shop.example/in?x=1", Now: now}
	if err := p.Sign(req); err != nil || req.URL != "https://shop.example/in?x=1&token="+url.QueryEscape("a&b=c") {
		t.Error(err, req.URL)
	}
	if _, err := p.Open(req); err != nil {
		t.Error(err)
	}
}
