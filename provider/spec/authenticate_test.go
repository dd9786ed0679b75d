package spec

import (
	"bytes"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// macOver returns the signature of that text under the usual secret.
func macOver(t testing.TB, text string) string {
	t.Helper()
	return request(t, build1(t, plain(), Settings{}), text).Header.Get("X-Signature")
}

// signing is a sender that signs those values.
func signing(join string, sign ...Value) Spec {
	s := plain()
	s.Verify[0].Sign, s.Verify[0].Join, s.Verify[0].Covers = sign, join, CoversFields
	for _, v := range sign {
		if v == "body" {
			s.Verify[0].Covers = CoversBody
		}
		if v == "id" {
			s.Verify[0].ID = "header:X-Id"
		}
	}
	return s
}

const formType = "application/x-www-form-urlencoded"

// TestWhatIsSigned: each value in the text that the sender signs.
func TestWhatIsSigned(t *testing.T) {
	for _, c := range []struct {
		join        string
		sign        []Value
		contentType string
		body        string
		want        string
	}{
		{"", []Value{"body"}, "", "a\x00\xff", "a\x00\xff"},
		{".", []Value{"id", "body"}, "", "{}", "msg_1.{}"},
		{"|", []Value{"method", "url", "body"}, "", "{}", "POST|https://shop.example/in?a=1&b=2|{}"},
		{"", []Value{"const:v0:", "body", "const:?"}, "", "{}", "v0:{}?"},
		{":", []Value{"header:X-Id", "header:X-None", "body"}, "", "{}", "msg_1::{}"},
		{":", []Value{"query:b", "query:c", "body"}, "", "{}", "2::{}"},
		{":", []Value{"json:$.a", "json:$.b", "json:$.c.d", "json:$.e[1]", "json:$.none"}, "", `{"a":"x\u00e9\"","b":1.50,"c":{"d":true},"e":[0,null]}`, "xé\":1.50:true::"},
		{"", []Value{"url", "sorted_form"}, formType, "b=2&a=1+1&B=%C3%A9&a=0&c", "https://shop.example/in?a=1&b=2Béa1 1a0b2c"},
		{"", []Value{"url", "sorted_form"}, formType, "", "https://shop.example/in?a=1&b=2"},
		{"&", []Value{"form:a", "form:b"}, formType, "b=2&a=1", "1&2"},
	} {
		p := build1(t, signing(c.join, c.sign...), Settings{})
		req := &hookonce.Request{
			URL: "https://shop.example/in?a=1&b=2", Body: []byte(c.body), Now: now,
			Header: http.Header{"X-Id": {"msg_1"}, "Content-Type": {c.contentType}, "X-Signature": {macOver(t, c.want)}},
		}
		if _, err := p.Open(req); err != nil {
			t.Errorf("%v: %v", c.sign, err)
		}
		genuine := req.Header.Get("X-Signature")
		if err := p.Sign(req); err != nil || req.Header.Get("X-Signature") != genuine {
			t.Errorf("%v is signed in another way than it is verified: %v", c.sign, err)
		}
	}
}

// TestTheSignedURL is the one that was registered, with what the sender adds to its query; without one it
// is that of the request.
func TestTheSignedURL(t *testing.T) {
	for _, c := range []struct{ registered, seen, want string }{
		{"", "http://10.0.0.1:8080/in?a=1", "http://10.0.0.1:8080/in?a=1"},
		{"https://shop.example/in", "http://10.0.0.1:8080/in", "https://shop.example/in"},
		{"https://shop.example/in", "http://10.0.0.1:8080/other?a=1", "https://shop.example/in?a=1"},
		{"https://shop.example/in?k=v", "http://10.0.0.1:8080/in", "https://shop.example/in?k=v"},
		{"https://shop.example/in?k=v", "http://10.0.0.1:8080/in?k=v&a=1", "https://shop.example/in?k=v&a=1"},
		{"https://shop.example/in?k=v", "", "https://shop.example/in?k=v"},
	} {
		p := build1(t, signing("", "url", "body"), Settings{URL: c.registered})
		req := signedAs(macOver(t, c.want+"{}"), "{}")
		req.URL = c.seen
		if _, err := p.Open(req); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		req.Header.Set("X-Signature", macOver(t, c.want+"/{}"))
		rejected(t, p, req, hookonce.ReasonSignatureMismatch)
	}
	for _, bad := range []string{"shop.example/in", "/in", "ftp://shop.example/in", "https:///in", "https://shop.example/in#x", "https://shop.example/%zz"} {
		if _, err := New(signing("", "url", "body"), Settings{Secrets: Secrets("fake"), URL: bad}); err == nil || !strings.Contains(err.Error(), "absolute http") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	p := build1(t, signing("", "url", "body"), Settings{})
	if err := p.Sign(&hookonce.Request{}); err == nil || !strings.Contains(err.Error(), "URL") {
		t.Error(err)
	}
	_, err := p.Open(signedAs(macOver(t, "{}?"), "{}"))
	if err == nil || !strings.Contains(err.Error(), "is not configured") {
		t.Errorf("the hint is missing: %v", err)
	}
}

// TestNothingIsAddedToSignedFields: a field that the sender left out stays out. Taken for absent, what
// has two values, or none that is text, would be read by others and signed by nobody.
func TestNothingIsAddedToSignedFields(t *testing.T) {
	fields := signing(":", "json:$.a", "json:$.b.c", "header:X-Extra", "query:q", "form:f")
	p := build1(t, fields, Settings{})
	genuine := func(query, body string) *hookonce.Request {
		req := signedAs(macOver(t, "1::::"), body)
		req.URL = "https://shop.example/in" + query
		return req
	}
	for _, body := range []string{`{"a":"1"}`, `{"a":1,"b":null}`, `{"a":"1","b":{"c":""}}`, `{"a":"1","b":{"c":null}}`, `{"a":"1","a":"1"}`, `{"a":"1","x":"y"}`} {
		if _, err := p.Open(genuine("", body)); err != nil {
			t.Errorf("%s: %v", body, err)
		}
	}
	for _, body := range []string{
		`{"a":"1","b":{"c":"x","c":"y"}}`, `{"a":"1","b":{"c":{}}}`, `{"a":"1","b":{"c":[]}}`, `{"a":"1","b":{"c":["x"]}}`, `{"a":"1","b":{"c":"x"},"b":{"c":"y"}}`,
		`{"a":"1","b":{"c":"\ud800"}}`, "{\"a\":\"1\",\"b\":{\"c\":\"\xff\"}}", `{"a":"1","a":"2"}`, `{"a":["1"]}`,
	} {
		rejected(t, p, genuine("", body), hookonce.ReasonSignatureMalformed)
	}
	rejected(t, p, genuine("?q=1&q=2", `{"a":"1"}`), hookonce.ReasonSignatureMalformed)
	req := genuine("", `{"a":"1"}`)
	req.Header["X-Extra"] = []string{"x", "y"}
	rejected(t, p, req, hookonce.ReasonSignatureMalformed)
	rejected(t, p, genuine("", `{"a":"1","b":{"c":"x"}}`), hookonce.ReasonSignatureMismatch)
}

// TestABodyThatIsNoFormIsNotSignedAsOne: the type of the content is not signed.
func TestABodyThatIsNoFormIsNotSignedAsOne(t *testing.T) {
	p := build1(t, signing("", "url", "sorted_form"), Settings{URL: "https://shop.example/in"})
	for _, c := range []struct{ contentType, body, want string }{
		{formType, "", ""}, {"", "", ""},
		{"application/json", `{"id":"1"}`, hookonce.ReasonSignatureMalformed}, {"", "a=1", hookonce.ReasonSignatureMalformed},
		{formType, "a=%zz", hookonce.ReasonSignatureMalformed}, {formType, "a=1", hookonce.ReasonSignatureMismatch},
	} {
		req := signedAs(macOver(t, "https://shop.example/in"), c.body)
		req.Header.Set("Content-Type", c.contentType)
		if c.want != "" {
			rejected(t, p, req, c.want)
		} else if _, err := p.Open(req); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestReplacementCharacters: U+FFFD is signed like any other where the sender wrote it, and is part of no
// key: what it replaced at the sender may have differed.
func TestReplacementCharacters(t *testing.T) {
	s := signing(":", "json:$.id", "json:$.name")
	p := build1(t, s, Settings{})
	for _, name := range []string{"\uFFFD", `\ufffd`, `\uFFFD`} {
		d, err := p.Open(signedAs(macOver(t, "1:a\uFFFDb"), `{"id":"1","name":"a`+name+`b"}`))
		if err != nil || d.Events[0].Key != "1" || !d.Events[0].KeySigned {
			t.Errorf("%q: %v, %v", name, d, err)
		}
	}
	for _, name := range []string{`\ud800`, `\uDFFF`, `\ud800\u0041`, "\xff", "\xed\xa0\x80", "\uFFFD\xff", `\ud83d\ude00\ufffd`} {
		rejected(t, p, signedAs(macOver(t, "1:\uFFFD"), `{"id":"1","name":"`+name+`"}`), hookonce.ReasonSignatureMalformed)
	}
	d, err := p.Open(signedAs(macOver(t, "\uFFFD:"), `{"id":"\ufffd"}`))
	if err != nil || d.Events[0].Key != "" {
		t.Errorf("%+v, %v", d, err)
	}
}

// TestOpenLeavesTheRequestAlone: it belongs to the caller, whatever comes out.
func TestOpenLeavesTheRequestAlone(t *testing.T) {
	p := build1(t, batch("json:$.e[*]"), Settings{})
	req := request(t, p, ` {"e":[{"id":"1"},{"id":"2"}]} `)
	body, header := bytes.Clone(req.Body), req.Header.Clone()
	d, err := p.Open(req)
	if err != nil || !bytes.Equal(req.Body, body) || len(req.Header) != len(header) || req.Header.Get("X-Signature") != header.Get("X-Signature") {
		t.Error(err, req)
	}
	clear(req.Body)
	if d.Events[0].Key != "1" || d.Events[1].Key != "2" {
		t.Errorf("the keys are views of the body: %+v", d.Events)
	}
}
