package spec

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

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
		_, err := p.Open(req)
		if text := err.Error(); strings.Contains(text, "where none is configured") != (c.registered == "") || !strings.Contains(text, "exactly the one registered") {
			t.Errorf("%+v: the hint is %v", c, err)
		}
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

// TestEscapesInTheSignedURL: those that the sender undoes are undone on both sides, and what is in the query is not signed
// by itself then: two queries are one text.
func TestEscapesInTheSignedURL(t *testing.T) {
	s := signing("|", "url", "body")
	s.Event.Key = [][]Value{{"query:id"}}
	for _, unescape := range []string{"", ":/"} {
		s.Verify[0].Unescape = unescape
		p := build1(t, s, Settings{})
		const address = "https://shop.example/in?id=a%3Ab%2Fc%20d%3A"
		want := address
		if unescape != "" {
			want = "https://shop.example/in?id=a:b/c%20d:"
		}
		req := &hookonce.Request{URL: address, Body: []byte("{}"), Now: now}
		if err := p.Sign(req); err != nil || req.Header.Get("X-Signature") != macOver(t, want+"|{}") {
			t.Errorf("%q: %v", unescape, err)
		}
		d, err := p.Open(req)
		if err != nil {
			t.Fatal(err)
		}
		if ev := d.Events[0]; ev.Key != "a:b/c d:" || ev.KeySigned != (unescape == "") || s.KeySigned()[0] != ev.KeySigned {
			t.Errorf("%q: key %q, signed %v, said to be %v", unescape, ev.Key, ev.KeySigned, s.KeySigned())
		}
	}
}

// TestEventsWithGET: what is in the query is the form of a POST.
func TestEventsWithGET(t *testing.T) {
	s := signing("", "method", "url", "body")
	s.Methods = []string{"POST", "GET"}
	s.Event.Key, s.Event.Type = [][]Value{{"form:id"}}, []Value{"form:type"}
	p := build1(t, s, Settings{URL: "https://shop.example/in?token=1"})
	req := &hookonce.Request{Method: "GET", URL: "http://inside/?token=1&id=a+b&type=c", Now: now}
	req.Header = http.Header{"X-Signature": {macOver(t, "GEThttps://shop.example/in?token=1&id=a+b&type=c")}}
	d, err := p.Open(req)
	if err != nil {
		t.Fatal(err)
	}
	if ev := d.Events[0]; ev.Key != "a b" || ev.Type != "c" || string(ev.Body) != "id=a+b&type=c" || ev.Header.Get("Content-Type") != formType {
		t.Errorf("%+v", ev)
	}
	cut := *req
	cut.URL, cut.Body = "http://inside/?token=1&id=a+b", []byte("&type=c")
	rejected(t, p, &cut, hookonce.ReasonSignatureMismatch)
	req.URL += "&id=x"
	rejected(t, p, req, hookonce.ReasonSignatureMismatch)
	for _, method := range []string{"PUT", "HEAD", "OPTIONS"} {
		req.Method = method
		rejected(t, p, req, hookonce.ReasonHandshakeRefused)
	}
	if methods := p.Profile().Methods; len(methods) != 1 || methods[0] != "GET" {
		t.Errorf("methods %v", methods)
	}
	if methods := build1(t, plain(), Settings{}).Profile().Methods; len(methods) > 0 {
		t.Errorf("methods %v without any", methods)
	}
}

// TestRulesWithAnIdentifier: one that asks for the signed identifier is for the ways of signing that have one.
func TestRulesWithAnIdentifier(t *testing.T) {
	s := signing(".", "id", "body")
	s.Verify = append(s.Verify, Verify{Kind: Token, Signature: Signature{In: "header:X-Token"}})
	s.Event.Key = [][]Value{{"id"}, {"header:X-Key"}}
	p := build1(t, s, Settings{})
	signed := &hookonce.Request{Body: []byte("{}"), Now: now, Header: http.Header{"X-Id": {"i"}, "X-Key": {"not the key"}}}
	if err := p.Sign(signed); err != nil {
		t.Fatal(err)
	}
	d, err := p.Open(signed)
	if err != nil {
		t.Fatal(err)
	}
	if ev := d.Events[0]; ev.Key != "i" || !ev.KeySigned {
		t.Errorf("%+v", ev)
	}
	sent := &hookonce.Request{Body: []byte("{}"), Now: now, Header: http.Header{"X-Token": {"fake"}, "X-Id": {"not the key"}, "X-Key": {"k"}}}
	if d, err = p.Open(sent); err != nil {
		t.Fatal(err)
	}
	if ev := d.Events[0]; ev.Key != "k" || ev.KeySigned {
		t.Errorf("%+v", ev)
	}
	if signed := s.KeySigned(); !signed[0] || signed[1] {
		t.Errorf("said to be signed: %v", signed)
	}
	s.Event.Key = [][]Value{{"id"}}
	if _, err := New(s, Settings{Secrets: Secrets("fake")}); err == nil {
		t.Error("events that a token vouches for have no rule at all")
	}
}

// TestTheSignedIdentifierIsThere: what is signed without one would have the key of all that is.
func TestTheSignedIdentifierIsThere(t *testing.T) {
	p := build1(t, signing(".", "id", "body"), Settings{})
	for _, id := range [][]string{nil, {""}} {
		req := signedAs(macOver(t, `.{"id":"1"}`), `{"id":"1"}`)
		req.Header["X-Id"] = id
		rejected(t, p, req, hookonce.ReasonSignatureMissing)
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

// itemwise is a sender that signs fields of each item.
func itemwise() Spec {
	s := batch("json:$.in.items[*]")
	s.Verify = []Verify{{
		Signature: Signature{In: "item:$.sig"}, Sign: []Value{"item:$.id", "item:$.sum.value", "item:$.note"}, Join: ":", Covers: CoversFields, PerItem: true,
	}}
	return s
}

// TestSignedFieldsHaveOneSpelling: some parsers do not tell upper from lower case in names, and take the
// last member that fits. None that was added to a signed request may fit.
func TestSignedFieldsHaveOneSpelling(t *testing.T) {
	p := build1(t, itemwise(), Settings{})
	genuine := string(request(t, p, `{"in":{"items":[{"id":"1","sum":{"value":5,"unit":"EUR"}}]}}`).Body)
	if _, err := p.Open(&hookonce.Request{Body: []byte(genuine), Now: now}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ after, add string }{
		{`"id":"1"`, `,"ID":"2"`},
		{`"id":"1"`, `,"Note":"x"`}, // which the sender left out
		{`"value":5`, `,"Value":500`},
		{`"value":5`, `,"VALUE":5`},
		{`"id":"1"`, `,"\u0053um":{"value":500}`},
		{`"id":"1"`, `,"ſum":{"value":500}`}, // a long s
	} {
		req := &hookonce.Request{Body: []byte(strings.Replace(genuine, c.after, c.after+c.add, 1)), Now: now}
		rejected(t, p, req, hookonce.ReasonSignatureMalformed)
	}
	for _, changed := range []string{
		strings.Replace(genuine, `"unit"`, `"Unit":"USD","unit"`, 1), // nobody signs that
		strings.Replace(genuine, `{"in"`, `{"other":1,"in"`, 1),
	} {
		if _, err := p.Open(&hookonce.Request{Body: []byte(changed), Now: now}); err != nil {
			t.Errorf("%s: %v", changed, err)
		}
	}
	// Where the body is signed as a whole the sender has written both.
	whole := build1(t, plain(), Settings{})
	if d := open(t, whole, `{"id":"1","ID":"2"}`); d.Events[0].Key != "1" {
		t.Errorf("key %q", d.Events[0].Key)
	}
}

// TestSignedItemsAreInTheirArray: a parser that finds items where there are none that are signed would
// hand on what nobody signed.
func TestSignedItemsAreInTheirArray(t *testing.T) {
	p := build1(t, itemwise(), Settings{})
	genuine := string(request(t, p, `{"in":{"items":[{"id":"1","sum":{"value":5}}]}}`).Body)
	item := strings.TrimSuffix(strings.TrimPrefix(genuine, `{"in":{"items":[`), `]}}`)
	const evil = `{"id":"2"}`
	for _, body := range []string{
		strings.TrimSuffix(genuine, "}}") + `,"Items":[` + evil + `]}}`,
		strings.TrimSuffix(genuine, "}}") + `},"IN":{"items":[` + evil + `]}}`,
		strings.TrimSuffix(item, "}") + `,"in":{"items":{"0":` + evil + `}}}`,
		strings.TrimSuffix(item, "}") + `,"In":{"items":[` + evil + `]}}`,
		item,
		`[` + genuine + `]`,
		`null`,
	} {
		rejected(t, p, &hookonce.Request{Body: []byte(body), Now: now}, hookonce.ReasonSignatureMissing)
	}
}

// TestSignedItemsAreCheckedAsTheyAreFound: the first that is wrong ends it, however many there are.
func TestSignedItemsAreCheckedAsTheyAreFound(t *testing.T) {
	p := build1(t, itemwise(), Settings{})
	genuine := string(request(t, p, `{"in":{"items":[{"id":"1"}]}}`).Body)
	item := strings.TrimSuffix(strings.TrimPrefix(genuine, `{"in":{"items":[`), `]}}`)
	many := func(n int, item string) *hookonce.Request {
		return &hookonce.Request{Body: []byte(`{"in":{"items":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}}`), Now: now}
	}
	one, all := many(1, "0"), many(1<<18, "0")
	rejected(t, p, all, hookonce.ReasonSignatureMissing)
	few := testing.AllocsPerRun(5, func() { p.Open(one) })
	if n := testing.AllocsPerRun(5, func() { p.Open(all) }); n > few+3 {
		t.Errorf("strangers cause %v allocations with one item, and %v with many", few, n)
	}
	if d, err := p.Open(many(maxItems, item)); err != nil || len(d.Events) != maxItems {
		t.Errorf("%d items: %v", maxItems, err)
	}
	if _, err := p.Open(many(maxItems+1, item)); err == nil || !strings.Contains(err.Error(), "more than 10000 items") {
		t.Errorf("%d items: %v", maxItems+1, err)
	}
	// Signed as a whole, too large a batch is an event by itself: it is not lost.
	whole := build1(t, batch("json:$.in.items[*]"), Settings{})
	if d := open(t, whole, string(many(maxItems+1, "1").Body)); len(d.Events) != 1 || d.Unreadable == nil {
		t.Error("too large a batch was taken apart, or lost")
	}
}

// TestTheTypeOfTheContentDecidesNothing: it is not signed, and a copy without a key passes through.
func TestTheTypeOfTheContentDecidesNothing(t *testing.T) {
	inField, fields := plain(), plain()
	inField.Form = "payload"
	fields.Event.Key = [][]Value{{"form:id"}}
	for body, s := range map[string]Spec{"payload=%7B%22id%22%3A%221%22%7D": inField, "id=1&text=a": fields} {
		p := build1(t, s, Settings{})
		for _, contentType := range []string{formType, "", "text/plain", "application/json", "nonsense"} {
			req := request(t, p, body)
			req.Header.Set("Content-Type", contentType)
			if d, err := p.Open(req); err != nil || d.Events[0].Key != "1" || d.Unreadable != nil {
				t.Errorf("%s as %q: %+v, %v", body, contentType, d, err)
			}
		}
	}
}

// TestBodiesAreNotCut: without a separator, the signature fits wherever somebody puts the boundary between
// the body and what is signed beside it. Cut JSON is no JSON, and refused.
func TestBodiesAreNotCut(t *testing.T) {
	const text = `x.1770091506{"id":"1","n":"a.b"}`
	for _, c := range []struct {
		sign []Value
		cuts []int // that leave the header as it would be sent, but one character
	}{
		{[]Value{"header:X-Free", "body"}, []int{1, 11, 13, 20, len(text) - 1, len(text)}},
		{[]Value{"id", "body"}, []int{1, 11, 13, 20, len(text) - 1, len(text)}},
		{[]Value{"ts", "const:-", "header:X-Free", "body"}, []int{1, 11, 13, 20}},
	} {
		s := signing("", c.sign...)
		s.Verify[0].Time = nil
		prefix := ""
		if c.sign[0] == "ts" {
			s.Verify[0].Time = &Timestamp{In: "header:X-Time", Past: time.Minute, Future: time.Minute}
			prefix = "1770091506-"
		}
		p := build1(t, s, Settings{})
		at := func(cut int) *hookonce.Request {
			req := signedAs(macOver(t, prefix+text), text[cut:])
			req.Header["X-Free"], req.Header["X-Id"], req.Header["X-Time"] = []string{text[:cut]}, []string{text[:cut]}, []string{"1770091506"}
			return req
		}
		if d, err := p.Open(at(12)); err != nil || d.Events[0].Key != "1" {
			t.Errorf("%v: %v", c.sign, err)
		}
		for _, cut := range c.cuts {
			if d, err := p.Open(at(cut)); err == nil {
				t.Errorf("%v: accepted with the body %s: %+v", c.sign, text[cut:], d)
			}
		}
	}
}

// TestBodiesAreNotContinued: the same for what is signed after the body.
func TestBodiesAreNotContinued(t *testing.T) {
	const body, free = `{"id":"1"}`, `0.1"}x`
	p := build1(t, signing("", "body", "header:X-Free"), Settings{})
	for cut := range len(body + free) {
		req := signedAs(macOver(t, body+free), (body + free)[:cut])
		req.Header.Set("X-Free", (body + free)[cut:])
		if _, err := p.Open(req); (err == nil) != (cut == len(body)) {
			t.Errorf("cut after %d: %v", cut, err)
		}
	}
}

// TestWaysAreNotMistaken: where a sender signs the body in one way, and more than it in another, with the same secret, all
// that was signed in the other way fits as a body into the first, without a time that grows old.
func TestWaysAreNotMistaken(t *testing.T) {
	const body = `1770091506.{"id":"1"}`
	for _, key := range []Value{"json:$.id", "header:X-Id"} {
		s := plain()
		s.Verify = append(s.Verify, Verify{
			Sign: []Value{"ts", "body"}, Join: ".", Signature: Signature{In: "header:X-New"},
			Time: &Timestamp{In: "header:X-Time", Past: 5 * time.Minute, Future: 5 * time.Minute},
		})
		s.Event.Key = [][]Value{{key}}
		p := build1(t, s, Settings{})
		genuine := &hookonce.Request{Header: http.Header{"X-New": {macOver(t, body)}, "X-Time": {"1770091506"}, "X-Id": {"1"}}, Body: []byte(`{"id":"1"}`), Now: time.Unix(1770091506, 0)}
		if d, err := p.Open(genuine); err != nil || d.Events[0].Key != "1" {
			t.Errorf("%s: %+v, %v", key, d, err)
		}
		later := signedAs(macOver(t, body), body)
		later.Now, later.Header["X-Id"] = genuine.Now.AddDate(3, 0, 0), []string{"2"}
		rejected(t, p, later, hookonce.ReasonSignatureMismatch)
		if d := open(t, p, `{"id":"1"}`); d.Proof.Covers != "body" {
			t.Errorf("%s: in the first way: %+v", key, d)
		}
	}
}

// TestSeparatorsSeparate: with one that the other parts do not contain, a body may be anything.
func TestSeparatorsSeparate(t *testing.T) {
	const form = "a=1.2&b=3"
	for _, c := range []struct {
		join     string
		sign     []Value
		id       string
		signed   string
		accepted bool
	}{
		{"", []Value{"id", "const:.", "body"}, "msg_1", "msg_1." + form, true},
		{".", []Value{"id", "body"}, "msg_1", "msg_1." + form, true},
		{"", []Value{"body", "const:.", "id"}, "msg_1", form + ".msg_1", true},
		{"", []Value{"method", "body"}, "msg_1", "POST" + form, true},
		{"", []Value{"id", "body"}, "msg_1", "msg_1" + form, false},
		{"", []Value{"id", "const:.", "body"}, "msg_1.a=1", "msg_1.a=1." + form, false},
		{".", []Value{"id", "body"}, "msg_1.a=1", "msg_1.a=1." + form, false},
	} {
		s := signing(c.join, c.sign...)
		s.Event.Key = [][]Value{{"json:$.id", "header:X-Id"}}
		p := build1(t, s, Settings{})
		req := signedAs(macOver(t, c.signed), form)
		req.Header.Set("X-Id", c.id)
		if _, err := p.Open(req); (err == nil) != c.accepted {
			t.Errorf("%v joined by %q: %v", c.sign, c.join, err)
		}
	}
}

// TestTimesAreTheirOwnSeparators where they would be too old or too young were they shorter or longer.
func TestTimesAreTheirOwnSeparators(t *testing.T) {
	for _, c := range []struct {
		time     Timestamp
		accepted bool
	}{
		{Timestamp{Past: time.Minute, Future: time.Minute}, true},
		{Timestamp{Unit: RFC3339}, true},
		{Timestamp{}, false},
		{Timestamp{Past: time.Minute}, false},
		{Timestamp{Future: time.Minute}, false},
	} {
		c.time.In = "header:X-Time"
		s := plain()
		s.Verify[0].Time, s.Verify[0].Sign = &c.time, []Value{"ts", "body"}
		p := build1(t, s, Settings{})
		if _, err := p.Open(request(t, p, "form=1")); (err == nil) != c.accepted {
			t.Errorf("%+v: %v", c.time, err)
		}
	}
	p := build1(t, stamped(Seconds, 0, 0), Settings{})
	rejected(t, p, signedAt(t, p, "01770091506"), hookonce.ReasonTimestampMissing)
}

// TestKeysAreSignedIfTheirEndIs: an id that takes what is signed beside it is another key.
func TestKeysAreSignedIfTheirEndIs(t *testing.T) {
	seconds := &Timestamp{In: "header:X-Time"}
	minutes := &Timestamp{In: "header:X-Time", Past: time.Minute, Future: time.Minute}
	for _, c := range []struct {
		join   string
		sign   []Value
		time   *Timestamp
		signed bool
	}{
		{"", []Value{"id", "ts", "body"}, seconds, false},
		{"", []Value{"id", "ts", "body"}, minutes, true},
		{"", []Value{"id", "const:.", "ts", "body"}, seconds, true},
		{".", []Value{"id", "ts", "body"}, seconds, true},
		{"", []Value{"id", "body"}, nil, true}, // see TestBodiesAreNotCut
		{"", []Value{"body", "id"}, nil, true},
		{"", []Value{"header:X-Free", "id", "const:.", "body"}, nil, false},
	} {
		s := signing(c.join, c.sign...)
		s.Verify[0].Time, s.Event.Key = c.time, [][]Value{{"id"}}
		p := build1(t, s, Settings{})
		req := &hookonce.Request{Header: http.Header{"X-Id": {"msg_1"}}, Body: []byte("{}"), Now: now}
		if err := p.Sign(req); err != nil {
			t.Fatal(err)
		}
		d, err := p.Open(req)
		if err != nil || d.Events[0].KeySigned != c.signed || s.KeySigned()[0] != c.signed {
			t.Errorf("%v joined by %q: %v, %v", c.sign, c.join, d, err)
		}
	}
	// The attack itself: a replay of the first request of the table under another key.
	p := build1(t, func() Spec {
		s := signing("", "id", "ts", "body")
		s.Verify[0].Time, s.Event.Key = seconds, [][]Value{{"id"}}
		return s
	}(), Settings{})
	for _, cut := range []int{4, 5} {
		text := fmt.Sprintf("msg_1%d", now.Unix())
		req := signedAs(macOver(t, text+"{}"), "{}")
		req.Header["X-Id"], req.Header["X-Time"] = []string{text[:cut]}, []string{text[cut:]}
		if d, err := p.Open(req); err != nil || d.Events[0].Key != text[:cut] || d.Events[0].KeySigned {
			t.Errorf("%v, %v", d, err)
		}
	}
}

// TestCutBodiesMakeNoHandshake: what marks one may stand in a header.
func TestCutBodiesMakeNoHandshake(t *testing.T) {
	s := signing("", "header:X-Free", "body")
	s.Handshakes = []Handshake{{When: []Match{{Value: "header:X-Kind", Is: "hello"}}, Body: "hello"}}
	p := build1(t, s, Settings{Handshakes: true})
	for body, greeted := range map[string]bool{`{"id":"1"}`: true, `"id":"1"}`: false} {
		free := strings.TrimSuffix(`a{"id":"1"}`, body)
		req := signedAs(macOver(t, `a{"id":"1"}`), body)
		req.Header["X-Free"], req.Header["X-Kind"] = []string{free}, []string{"hello"}
		if d, err := p.Open(req); (err == nil) != greeted || greeted && d.Handshake == nil {
			t.Errorf("%s: %v, %v", body, d, err)
		}
	}
}

// TestSortedFormsBindNoField: names and values run into each other, and into the URL.
func TestSortedFormsBindNoField(t *testing.T) {
	s := signing("", "url", "sorted_form")
	s.Verify[0].Covers, s.Event.Key = "", [][]Value{{"form:id"}}
	p := build1(t, s, Settings{})
	for body, key := range map[string]string{"id=1&state=paid": "1", "id=1statepaid": "1statepaid"} {
		req := signedAs(macOver(t, "https://shop.example/inid1statepaid"), body)
		req.URL = "https://shop.example/in"
		req.Header.Set("Content-Type", formType)
		d, err := p.Open(req)
		if err != nil || d.Events[0].Key != key || d.Events[0].KeySigned || d.Proof.Covers != string(CoversFields) {
			t.Errorf("%s: %+v, %v", body, d, err)
		}
	}
	if s.KeySigned()[0] {
		t.Error("listed as signed")
	}
	for name, body := range map[string]string{"?order": "%3Forder=1", "a&b": "a%26b=1", "a=b": "a%3Db=1", "a#": "a%23=1"} {
		req := signedAs(macOver(t, "https://shop.example/in"+name+"1"), body)
		req.URL = "https://shop.example/in"
		req.Header.Set("Content-Type", formType)
		rejected(t, p, req, hookonce.ReasonSignatureMalformed)
	}
	s.Verify[0].Covers = CoversBody
	if err := s.Validate(); err == nil {
		t.Error("covers: body is believed")
	}
}
