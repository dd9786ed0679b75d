package provider

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// FuzzOpen sends arbitrary bodies and headers to every provider, once as they are and once signed: it
// never panics, a rejection has a reason, and whatever is accepted has storable keys.
func FuzzOpen(f *testing.F) {
	for _, v := range vectors(f) {
		for name, text := range v.Headers {
			f.Add(name, text, "application/json", v.Body)
		}
	}
	for _, body := range []string{
		"", "{}", "[]", `{"id":"a","id":"b"}`, `{"id":"\ud800"}`, `{"data":{"object":{"id":1}},"data":7}`, `{"id":{"id":`,
		`{"type":"url_verification","challenge":"c"}`, "payload=%7B%22event_id%22%3A1%7D", strings.Repeat("[", 3000),
	} {
		f.Add("X-GitHub-Delivery", "guid", "application/x-www-form-urlencoded", []byte(body))
	}
	var all []*Provider
	for _, name := range Names() {
		all = append(all, buildFake(f, name))
	}
	f.Fuzz(func(t *testing.T, name, text, contentType string, body []byte) {
		for _, p := range all {
			req := &hookonce.Request{URL: "https://shop.example/in", Header: http.Header{"Content-Type": {contentType}}, Body: body, Now: now}
			req.Header.Set(name, text)
			if _, err := p.Open(req); err == nil {
				t.Fatalf("%s: accepted without a signature", p.Name())
			} else if rej := (*hookonce.RejectError)(nil); !errors.As(err, &rej) || rej.Reason == "" || rej.Detail == "" {
				t.Fatalf("%s: %v", p.Name(), err)
			}
			if id := p.verifiers[0].id; id != nil {
				req.Header[id.text] = []string{"msg_1"}
			}
			if err := p.Sign(req); err != nil {
				t.Fatal(err)
			}
			d, err := p.Open(req)
			if err != nil {
				t.Fatalf("%s: %v", p.Name(), err)
			}
			checkDelivery(t, p, d)
		}
	})
}

// checkDelivery checks what holds for every delivery.
func checkDelivery(t *testing.T, p *Provider, d *hookonce.Delivery) {
	t.Helper()
	if (d.Reply == nil) == (len(d.Events) == 0) {
		t.Fatalf("%s: neither events nor a reply, or both: %+v", p.Name(), d)
	}
	for i := range d.Events {
		ev := d.Events[i]
		ev.Source = "source"
		if err := ev.Ref().Validate(); err != nil {
			t.Fatalf("%s: %v", p.Name(), err)
		}
		if d.Unreadable != nil && ev.Key != "" {
			t.Fatalf("%s: unreadable, but keyed %q", p.Name(), ev.Key)
		}
		if len(ev.Digest) != digestSize || (ev.Key == "") != (ev.KeyOrigin == "") {
			t.Fatalf("%s: %+v", p.Name(), ev)
		}
	}
}

// FuzzSignatureHeader puts arbitrary text into the signature's header: only a header that contains the
// genuine signature, under the right prefix, is accepted.
func FuzzSignatureHeader(f *testing.F) {
	for _, seed := range []string{"", "t=,v1=", "t=1760000000,v1=SIG,v0=x", "sha256=SIG", "SIG", "v1,SIG v1,SIG", "ts=1760000000;h1=SIG", ",,,", "t=1=2,v1==", "t=1760000000,t=1760000000,v1=SIG"} {
		f.Add(seed)
	}
	at := time.Unix(1_760_000_000, 0)
	f.Fuzz(func(t *testing.T, line string) {
		for _, name := range Names() {
			p := buildFake(t, name)
			v := &p.verifiers[0]
			req := &hookonce.Request{URL: "https://shop.example/in", Header: http.Header{}, Body: []byte(`{"id":"1"}`), Now: at}
			if v.id != nil {
				req.Header.Set(v.id.text, "msg_1")
			}
			if err := p.Sign(req); err != nil {
				t.Fatal(err)
			}
			genuine := req.Header.Get(v.header)
			sig := genuine[strings.LastIndex(genuine, v.signature.Prefix)+len(v.signature.Prefix):]
			text := strings.ReplaceAll(line, "SIG", sig)
			req.Header.Set(v.header, text)
			if _, err := p.Open(req); err == nil && !strings.Contains(text, v.signature.Prefix+sig) {
				t.Fatalf("%s: accepted %q", name, text)
			}
		}
	})
}

// FuzzParseValue: what parses means the same when it is written again.
func FuzzParseValue(f *testing.F) {
	for _, seed := range []string{"header:X-A?", "json:$.a.b", "const:v0:", "part:t=", "body", "ts", "json:$..", "header: ", "json:$.a?b?", "const:?"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parseValue(Value(text))
		if err != nil {
			return
		}
		again := v.origin
		if v.optional {
			again += "?"
		}
		if again != text {
			t.Fatalf("%q became %q", text, again)
		}
		if v.kind == kindHeader && strings.ContainsAny(v.text, " :\r\n") {
			t.Fatalf("%q is no header name", v.text)
		}
	})
}

// FuzzDocument compares the extractor with encoding/json, which knows the same documents: where the
// extractor finds text, the other finds the same text at the same path.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a"}`, `{"id":1.50}`, `{"data":{"object":{"id":"x"}}}`, `{"id":"a","id":"b"}`, `{"data":{},"data":{"object":{"id":"x"}}}`, `{"data":{"object":{"id":"x"}},"data":{}}`,
		`{"\u0069d":"\u0062"}`, ` {"id" : "a"} `, `{"id":"\/\b\f\n\r\t\""}`, `{"data":[{"object":{"id":1}}]}`, "{\"id\":\"\xff\"}", `{"id":"😀"}`, `{"id":"\ud83d\ude00"}`,
	} {
		f.Add([]byte(seed))
	}
	p := buildFake(f, "stripe")
	id := p.verifiers[0].keys[0].parts[0]
	object := p.extract.resource[0]
	f.Fuzz(func(t *testing.T, body []byte) {
		doc, err := p.tree.read(&hookonce.Request{Body: body}, "")
		if err != nil {
			return
		}
		for _, v := range []value{id, object} {
			if got, want := doc.text(v.node), reference(body, v.path); got != "" && got != want {
				t.Fatalf("%s: %q, want %q in %s", v.origin, got, want, body)
			}
		}
	})
}

// reference finds a string or number the way encoding/json does.
func reference(body []byte, path []string) string {
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(body, &object) != nil {
			return ""
		}
		body = object[name]
	}
	var text string
	if json.Unmarshal(body, &text) == nil {
		return text
	}
	var number json.Number
	if json.Unmarshal(body, &number) == nil {
		return number.String()
	}
	return ""
}
