package spec

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

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
