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

// TestKeepLatest: the content is part of the key, so equal content is a copy and other content is not.
func TestKeepLatest(t *testing.T) {
	s := plain()
	s.Dedup.OnRepeat = KeepLatest
	whole := build1(t, s, Settings{})
	s.Dedup.Same = []Value{"json:$.id", "json:$.state"}
	some := build1(t, s, Settings{})
	key := func(p *Provider, body string) string { return open(t, p, body).Events[0].Key }
	first := `{"id":"1","state":"a","try":1}`
	for _, c := range []struct {
		p     *Provider
		other string
		equal bool
	}{
		{whole, first, true}, {whole, `{"id":"1","state":"a","try":2}`, false}, {whole, `{"id":"2","state":"a","try":1}`, false},
		{some, first, true}, {some, `{"try":2,"state":"a","id":"1"}`, true}, {some, `{"id":"1","state":"b","try":1}`, false}, {some, `{"id":"2","state":"a","try":1}`, false},
	} {
		if got, want := key(c.p, c.other), key(c.p, first); got == "" || (got == want) != c.equal {
			t.Errorf("%s has the key %q, and the first %q", c.other, got, want)
		}
	}
	ev := open(t, some, first).Events[0]
	if ev.KeyOrigin != "json:$.id + content" || !ev.KeySigned || ev.Coalesce {
		t.Errorf("%+v", ev)
	}
	if ev := open(t, some, `{"state":"a"}`).Events[0]; ev.Key != "" {
		t.Errorf("the content alone became the key %q", ev.Key)
	}
	s.Verify[0].Sign, s.Verify[0].Covers = []Value{"json:$.id"}, CoversFields
	if ev := open(t, build1(t, s, Settings{}), first).Events[0]; ev.Key == "" || ev.KeySigned {
		t.Error("content that is not signed is part of a key that is called signed")
	}
}

// TestKeepLatestInBatches: the content is that of the item, and not of what came with it.
func TestKeepLatestInBatches(t *testing.T) {
	s := batch("json:$.e[*]")
	s.Dedup.OnRepeat = KeepLatest
	p := build1(t, s, Settings{})
	a := open(t, p, `{"n":1,"e":[{"id":"1","v":1},{"id":"1","v":2}]}`).Events
	b := open(t, p, `{"n":2,"e":[{"id":"1","v":2}]}`).Events
	if a[0].Key == a[1].Key || a[1].Key != b[0].Key {
		t.Errorf("keys %q, %q and %q", a[0].Key, a[1].Key, b[0].Key)
	}
}

// TestOtherRepeats: coalescing events say so, and without recognition there is no key.
func TestOtherRepeats(t *testing.T) {
	s := plain()
	s.Dedup.OnRepeat = Coalesce
	p := build1(t, s, Settings{})
	if ev := open(t, p, `{"id":"1","n":1}`).Events[0]; ev.Key != "1" || !ev.Coalesce {
		t.Errorf("%+v", ev)
	}
	if ev := open(t, p, `{}`).Events[0]; ev.Key != "" || ev.Coalesce {
		t.Errorf("%+v", ev)
	}
	s.Dedup.OnRepeat, s.Event.Key = Off, nil
	if ev := open(t, build1(t, s, Settings{}), `{"id":"1"}`).Events[0]; ev.Key != "" || ev.KeyOrigin != "" {
		t.Errorf("%+v", ev)
	}
}

// TestSameContent: what is named counts, how it is spelt, and whether it is there; nothing else does.
func TestSameContent(t *testing.T) {
	s := plain()
	s.Dedup.Same = []Value{"json:$.a", "json:$.b.c", "header:X-Kind"}
	p := build1(t, s, Settings{})
	digest := func(body string) []byte { return open(t, p, body).Events[0].Digest }
	first := digest(`{"a":"1","b":{"c":2},"n":1}`)
	if !bytes.Equal(first, digest(`{"n":2,"b":{"x":0,"c":2},"a":"1"}`)) {
		t.Error("what is not named counts")
	}
	for _, body := range []string{
		`{"a":"1"}`, `{"b":{"c":2}}`, `{"a":1,"b":{"c":2}}`, `{"a":"1","b":{"c":2.0}}`, `{"a":"1","b":{"c":null}}`, `{"a":"12","b":{"c":""}}`,
		`{"a":"1","b":{"c":2},"a":"2"}`, `{"a":"2","b":{"c":2},"a":"1"}`, `{}`, `{"n":1}`,
	} {
		if bytes.Equal(first, digest(body)) {
			t.Errorf("%s is taken for the first", body)
		}
	}
	if bytes.Equal(digest(`{"a":1,"b":{"c":23}}`), digest(`{"a":12,"b":{"c":3}}`)) || bytes.Equal(digest(`{"a":1}`), digest(`{"b":{"c":1}}`)) {
		t.Error("it does not count where the content is")
	}
	if bytes.Equal(digest(`{"n":1}`), digest(`{"n":2}`)) || bytes.Equal(digest(`{"a":1,"a":2}`), digest(`{"a":2,"a":1}`)) {
		t.Error("where nothing named is there, or not one thing, the whole body counts")
	}
	req := request(t, p, `{"a":"1","b":{"c":2},"n":1}`)
	req.Header.Set("X-Kind", "x")
	if d, err := p.Open(req); err != nil || bytes.Equal(first, d.Events[0].Digest) || len(d.Events[0].Digest) != digestSize {
		t.Error(d, err)
	}
}

// TestKeyRules: the first rule of which all parts are there makes the key, and says where it came from.
func TestKeyRules(t *testing.T) {
	s := plain()
	s.Event.Key = [][]Value{{"header:X-Id", "json:$.n?"}, {"json:$.id"}, {"const:c", "form:f", "query:q"}}
	p := build1(t, s, Settings{URL: "https://shop.example/in"})
	for _, c := range []struct {
		id, url, contentType, body string
		key, origin                string
		signed                     bool
	}{
		{"a", "", "", `{"n":1}`, "1:a1:1", "header:X-Id + json:$.n", false}, {"a", "", "", `{"id":"9"}`, "1:a", "header:X-Id + json:$.n", false},
		{"", "", "", `{"id":"9","n":1}`, "9", "json:$.id", true}, {" ", "", "", `{"id":"9"}`, "9", "json:$.id", true},
		{"", "", "", `{"id":9}`, "9", "json:$.id", true}, {"", "", "", `{"id":true}`, "true", "json:$.id", true},
		{"", "", "", `{"id":"1:a"}`, "3:1:a", "json:$.id", true}, {"", "", "", `{"id":"1:a1:1"}`, "6:1:a1:1", "json:$.id", true},
		{"", "", "", `{"id":"a:1"}`, "a:1", "json:$.id", true},
		{"", "", "", `{"id":""}`, "", "", false}, {"", "", "", `{"id":" \t"}`, "", "", false}, {"", "", "", `{"id":{}}`, "", "", false}, {"", "", "", `{"id":["9"]}`, "", "", false},
		{"", "", "", `{"ID":"9"}`, "", "", false}, {"", "", "", `{"id":"9","id":"8"}`, "", "", false}, {"", "", "", `{"id":"9","\u0069d":"8"}`, "", "", false},
		{"", "https://shop.example/in?q=2", "", `{}`, "", "", false},
	} {
		req := request(t, p, c.body)
		req.URL = c.url
		req.Header.Set("Content-Type", c.contentType)
		if c.id != "" {
			req.Header.Set("X-Id", c.id)
		}
		d, err := p.Open(req)
		if err != nil {
			t.Fatal(err)
		}
		if ev := d.Events[0]; ev.Key != c.key || ev.KeyOrigin != c.origin || ev.KeySigned != c.signed {
			t.Errorf("%+v: key %q of %q, %v", c, ev.Key, ev.KeyOrigin, ev.KeySigned)
		}
	}
}

// TestFacts: every fact of an event, from every sort of place, with the first that is there.
func TestFacts(t *testing.T) {
	s := batch("json:$.e[*]")
	s.Event = Extract{
		Key:       [][]Value{{"item:$.id"}},
		AttemptID: []Value{"header:X-None", "header:X-Delivery"},
		Type:      []Value{"json:$.none", "json:$.type"}, Action: []Value{"item:$.action"},
		Time:     []Moment{{In: "item:$.none"}, {In: "item:$.at", Unit: Millis}, {In: "parent:$.at"}, {In: "ts"}},
		Resource: []Value{"parent:$.account"}, Tenant: []Value{"query:shop", "const:none"},
		Attempt: []Value{"header:X-Attempt"}, Reason: []Value{"json:$.why"},
	}
	s.Verify = timed().Verify
	s.Order = &Order{By: "item:$.version"}
	s.Dedup.Logical = []Logical{{Types: []string{"order.paid"}, Key: []Value{"item:$.order"}}, {Key: []Value{"item:$.id", "item:$.order"}}}
	p := build1(t, s, Settings{})
	req := request(t, p, `{"type":"order","why":"timeout","at":"1770091500.5","account":"acct","e":[{"id":1,"action":"paid","order":"o1","version":"007","at":1770091501007},{"id":2,"order":"o2","version":1.5},{"id":3,"at":"x"}]}`)
	req.URL = "https://shop.example/in?shop=s1"
	req.Header["X-Delivery"], req.Header["X-Attempt"] = []string{"d\x00\xff1"}, []string{"2"}
	d, err := p.Open(req)
	if err != nil {
		t.Fatal(err)
	}
	want := []hookonce.Event{
		{Key: "1", Type: "order.paid", Time: time.UnixMilli(1770091501007), Logical: "o1", Version: "7"},
		{Key: "2", Type: "order", Time: time.Unix(1770091500, 0), Logical: "1:22:o2"},
		{Key: "3", Type: "order", Time: time.Unix(1770091500, 0)},
	}
	for i, ev := range d.Events {
		w := want[i]
		if ev.Key != w.Key || ev.Type != w.Type || !ev.Time.Equal(w.Time) || ev.Logical != w.Logical || ev.Version != w.Version {
			t.Errorf("%d: %+v", i, ev)
		}
		if ev.Resource != "acct" || ev.Tenant != "s1" || ev.SenderAttempt != "2" || ev.SenderReason != "timeout" || ev.AttemptID != "d\uFFFD\uFFFD1" || ev.Provider != "plain" {
			t.Errorf("%d: %+v", i, ev)
		}
	}
}

// TestLongLabels are cut between characters.
func TestLongLabels(t *testing.T) {
	s := plain()
	s.Event.Type, s.Event.Resource = []Value{"json:$.type"}, []Value{"json:$.id"}
	ev := open(t, build1(t, s, Settings{}), `{"id":"`+strings.Repeat("é", 200)+`","type":"`+strings.Repeat("x", 300)+`"}`).Events[0]
	if ev.Resource != strings.Repeat("é", 127) || ev.Type != strings.Repeat("x", 255) {
		t.Errorf("%+v", ev)
	}
}

// TestForms: the document is in a field of a form, or the body is the document, or there is none.
func TestForms(t *testing.T) {
	s := plain()
	s.Form = "payload"
	s.Event.Key = [][]Value{{"json:$.id"}, {"form:id", "hash:form:text"}}
	p := build1(t, s, Settings{})
	for _, c := range []struct {
		contentType, body string
		key               string
		unreadable        bool
	}{
		{formType, "payload=%7B%22id%22%3A1%7D", "1", false}, {"APPLICATION/x-www-form-urlencoded;charset=utf-8", "x=y&payload=%7B%22id%22%3A1%7D", "1", false},
		{"", `{"id":2}`, "2", false}, {formType, `{"id":2}`, "2", false}, {formType, "x=y", "", false}, {formType, "payload=%7B%22id%22%3A1%7D&payload=%7B%7D", "", false},
		{formType, "id=5&text=a", "1:532:ca978112ca1bbdcafac231b39a23dc4d", false}, {formType, "id=5&text=", "", false}, {formType, "id=5&id=6&text=a", "", false},
		{formType, "payload=nonsense", "", true}, {formType, "payload=%zz", "", true}, {formType, "", "", false}, {formType, `{"id":`, "", false},
		// The type of the content is not signed, and decides nothing.
		{"", "payload=%7B%22id%22%3A1%7D", "1", false}, {"text/plain", "x=y&payload=%7B%22id%22%3A1%7D", "1", false}, {"text/plain", "id=5&text=a", "1:532:ca978112ca1bbdcafac231b39a23dc4d", false},
		{"application/json", "payload=%7B%22id%22%3A1%7D", "1", false}, {"", "x=y", "", false}, {"", "payload=%zz", "", true}, {"", `{"id":"="`, "", true}, {"", "Hello, World!", "", true},
	} {
		req := request(t, p, c.body)
		req.Header = http.Header{"Content-Type": {c.contentType}, "X-Signature": req.Header["X-Signature"]}
		d, err := p.Open(req)
		if err != nil || len(d.Events) != 1 || d.Events[0].Key != c.key || (d.Unreadable != nil) != c.unreadable {
			t.Errorf("%+v: %+v, %v", c, d, err)
		}
	}
}

// TestKeyRulesNameTheHeader: "id" alone tells nobody where the key is.
func TestKeyRulesNameTheHeader(t *testing.T) {
	s := plain()
	s.Verify[0].ID, s.Verify[0].Sign = "header:X-Id", []Value{"id", "body"}
	s.Event.Key = [][]Value{{"id"}, {"json:$.id", "json:$.n?"}}
	if got := fmt.Sprint(s.KeyRules()); got != "[[header:X-Id] [json:$.id json:$.n?]]" || s.Event.Key[0][0] != "id" {
		t.Error(got)
	}
}
