package spec

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
)

// TestEveryFormOfValue: how each is parsed.
func TestEveryFormOfValue(t *testing.T) {
	for _, c := range []struct {
		text Value
		want value
	}{
		{"header:X-GitHub-Delivery", value{kind: kindHeader, text: "X-Github-Delivery"}},
		{"header:x-a?", value{kind: kindHeader, text: "X-A", optional: true}},
		{"header:X-Sig-*", value{kind: kindHeader, text: "X-Sig-*"}},
		{"json:$.data.object.id", value{kind: kindJSON, path: []string{"data", "object", "id"}}},
		{"json:$.a?", value{kind: kindJSON, path: []string{"a"}, optional: true}},
		{"json:$[0].a-b[12][3].c d", value{kind: kindJSON, path: []string{"[0]", "a-b", "[12]", "[3]", "c d"}}},
		{"json:$.e[*].c[*]", value{kind: kindJSON, path: []string{"e", "[*]", "c", "[*]"}}},
		{"json:$.é:x", value{kind: kindJSON, path: []string{"é:x"}}},
		{"item:$.pspReference", value{kind: kindItem, path: []string{"pspReference"}}},
		{"parent:$.realmId", value{kind: kindParent, path: []string{"realmId"}}},
		{"form:MessageSid", value{kind: kindForm, text: "MessageSid"}},
		{"form:a b:c?", value{kind: kindForm, text: "a b:c", optional: true}},
		{"query:challenge", value{kind: kindQuery, text: "challenge"}},
		{"hash:json:$.data", value{kind: kindJSON, path: []string{"data"}, hashed: true}},
		{"hash:json:$", value{kind: kindJSON, path: []string{}, hashed: true}},
		{"hash:item:$", value{kind: kindItem, path: []string{}, hashed: true}},
		{"hash:parent:$.a?", value{kind: kindParent, path: []string{"a"}, hashed: true, optional: true}},
		{"hash:form:payload", value{kind: kindForm, text: "payload", hashed: true}},
		{"const:v0:", value{kind: kindConst, text: "v0:"}},
		{"const:?", value{kind: kindConst, text: "?"}},
		{"const: ", value{kind: kindConst, text: " "}},
		{"part:t=", value{kind: kindPart, text: "t="}},
		{"part:t?", value{kind: kindPart, text: "t?"}},
		{"entry:0", value{kind: kindEntry, text: "0"}},
		{"entry:99", value{kind: kindEntry, text: "99", entry: 99}},
		{"claim:iat", value{kind: kindClaim, text: "iat"}},
		{"body", value{kind: kindBody}}, {"url", value{kind: kindURL}}, {"method", value{kind: kindMethod}}, {"sorted_form", value{kind: kindSortedForm}},
		{"ts", value{kind: kindTS}}, {"id", value{kind: kindID}}, {"secret", value{kind: kindSecret}}, {"echo", value{kind: kindEcho}}, {"token", value{kind: kindToken}},
	} {
		got, err := parseValue(c.text)
		c.want.origin = string(c.text)
		if c.want.optional {
			c.want.origin = strings.TrimSuffix(c.want.origin, "?")
		}
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v; want %+v", c.text, got, err, c.want)
		}
		if v, optional := cutOptional(c.text); optional != c.want.optional || string(v) != c.want.origin {
			t.Errorf("%s without its mark is %s", c.text, v)
		}
	}
}

// TestEveryValueIsRead: what each finds in one request.
func TestEveryValueIsRead(t *testing.T) {
	s := timed()
	s.Split, s.Event.Key = &Split{Items: []Value{"json:$.e[*]"}}, nil
	s.Verify[0].ID = "header:X-Id"
	s.Verify[0].Sign = append(s.Verify[0].Sign, "id")
	p := build1(t, s, Settings{URL: "https://shop.example/in"})
	const document = `{"a":{"b":[10,{"c":"x\u0026y"}]},"t":true,"n":null,"o":{},"e":[{"i":1.0}],"d":1,"d":2}`
	values := map[Value]string{
		"header:X-Id": "msg_1", "header:x-id": "msg_1", "header:X-Two": "", "header:X-Same": "a", "header:X-None": "",
		"json:$.a.b[0]": "10", "json:$.a.b[1].c": "x&y", "json:$.a.b[2]": "", "json:$.a.b": "", "json:$.t": "true", "json:$.n": "", "json:$.o": "", "json:$.d": "", "json:$.e[0].i": "1.0",
		"item:$.i": "1.0", "parent:$.a.b[0]": "10",
		"hash:json:$.a.b[0]": "4a44dc15364204a80fe80e9039455cc1", "hash:json:$.n": "", "hash:json:$.o": "", "hash:json:$.d": "", "hash:item:$": "",
		"query:q": "1 2", "query:two": "", "query:none": "", "const:v0:": "v0:", "form:f": "",
		"id": "msg_1", "ts": "1770091506", "url": "https://shop.example/in?q=1+2&two=1&two=2", "method": "POST", "body": document,
	}
	parsed := map[Value]value{}
	for text := range values {
		v, err := parseValue(text)
		if err != nil {
			t.Fatal(err)
		}
		p.layout.bind(&v)
		parsed[text] = v
	}
	req := &hookonce.Request{
		URL: "http://seen.example/?q=1+2&two=1&two=2", Body: []byte(document), Now: now,
		Header: http.Header{"X-Id": {"msg_1"}, "X-Two": {"a", "b"}, "X-Same": {"a", "a"}},
	}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	r := p.reading(req)
	proof, err := p.authenticate(r)
	if err != nil {
		t.Fatal(err)
	}
	r.signed = proof.signed
	items, err := p.layout.splitter.items(req.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.enter(items[0])
	values["hash:item:$"] = r.get(&value{kind: kindItem, hashed: true})
	if len(values["hash:item:$"]) != 2*digestSize {
		t.Error("the whole item has no digest")
	}
	for text, want := range values {
		v := parsed[text]
		if got := r.get(&v); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// TestFieldsOfForms: of a field that occurs twice nobody knows which one is meant.
func TestFieldsOfForms(t *testing.T) {
	p := build1(t, plain(), Settings{})
	req := &hookonce.Request{Header: http.Header{"Content-Type": {formType}}, Body: []byte("b=2&a=1+%26&c=&b=2&d=1&d=2")}
	r := p.reading(req)
	for text, want := range map[Value]string{"form:a": "1 &", "form:b": "2", "form:c": "", "form:d": "", "form:e": "", "sorted_form": "a1 &b2b2cd1d2", "hash:form:b": "d4735e3a265e16eee03f59718b9b5d03"} {
		v, err := parseValue(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.get(&v); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
}

// TestLowerCaseIsSigned: what the sender writes in capitals and signs in lower case verifies in either spelling, and nothing else does.
func TestLowerCaseIsSigned(t *testing.T) {
	s := plain()
	s.Verify[0].Sign, s.Verify[0].Covers = []Value{"const:id:", "lower:query:data.id", "const:;"}, CoversFields
	p := build1(t, s, Settings{})
	req := &hookonce.Request{Method: "POST", URL: "https://shop.example/in?data.id=ORD01JQ", Header: http.Header{}, Body: []byte(`{"id":"1"}`), Now: now}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	for url, want := range map[string]bool{
		"https://shop.example/in?data.id=ORD01JQ": true, "https://shop.example/in?data.id=ord01jq": true,
		"https://shop.example/in?data.id=ORD01JR": false, "https://shop.example/in": false,
	} {
		req.URL = url
		if _, err := p.Open(req); (err == nil) != want {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, v := range []Value{"lower:const:A", "lower:body", "lower:ts", "lower:hash:json:$.id", "hash:lower:json:$.id", "lower:", "lower:parent:$.id"} {
		if v.Check() == nil {
			t.Errorf("%s is taken", v)
		}
	}
	s = plain()
	s.Event.Key = [][]Value{{"lower:json:$.id"}}
	if _, err := New(s, Settings{Secrets: Secrets("fake")}); err == nil || !strings.Contains(err.Error(), "for what is signed") {
		t.Errorf("a key in lower case: %v", err)
	}
}

// TestWholeDocumentsDigest never changes: digests that are on record were made of the document with the white space behind
// it, and without that before it.
func TestWholeDocumentsDigest(t *testing.T) {
	s := plain()
	s.Event.Key = [][]Value{{"hash:json:$"}}
	p := build1(t, s, Settings{})
	for body, of := range map[string]string{" {\"id\":\"a\"} \r\n": "{\"id\":\"a\"} \r\n", "\t[1, 2]\n\n": "[1, 2]\n\n", "\n\"a\" ": `"a"`, " -1.50\n": "-1.50"} {
		sum := sha256.Sum256([]byte(of))
		if key := open(t, p, body).Events[0].Key; key != hex.EncodeToString(sum[:digestSize]) {
			t.Errorf("%q has the digest %s", body, key)
		}
	}
}
