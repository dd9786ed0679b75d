package spec

import (
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

// formats are senders with every format of signature, and with every place of the time.
func formats(t testing.TB) []*Provider {
	t.Helper()
	var all []*Provider
	for _, sig := range []Signature{
		{}, {Prefix: "sha256="}, {Split: ",", Prefix: "v1="}, {Split: " ", Prefix: "v1,"}, {Split: ","}, {Split: ";", Skip: 2, Prefix: "h1="}, {Repeated: true}, {In: "header:X-Signature-*"},
	} {
		all = append(all, build1(t, carried(sig), Settings{}))
		for _, in := range []Value{"part:t=", "entry:1"} {
			s := carried(sig)
			s.Verify[0].Time, s.Verify[0].Sign = &Timestamp{In: in, Past: time.Minute, Future: time.Minute}, []Value{"ts", "const:.", "body"}
			if sig.Split != "" {
				all = append(all, build1(t, s, Settings{}))
			}
		}
	}
	return all
}

// FuzzSignatureHeader puts arbitrary text where the signature belongs, in which SIG is the genuine one and
// NOW its time: only what contains the signature after its prefix is accepted.
func FuzzSignatureHeader(f *testing.F) {
	for _, seed := range []string{
		"", "t=,v1=", "t=NOW,v1=SIG,v0=x", "sha256=SIG", "SIG", "v1,SIG v1,SIG", "ts=NOW;h1=SIG", ";NOW;h1=SIG", ",,,", "t=1=2,v1==", "t=NOW,t=NOW,v1=SIG",
		"t=NOW,t=1,v1=SIG", "SIG,NOW", "v1=SIG,NOW", "t=NOW v1,SIG", "v1=sig", " SIG ", strings.Repeat("v1=0,", 99),
	} {
		f.Add(seed)
	}
	all := formats(f)
	f.Fuzz(func(t *testing.T, text string) {
		for _, p := range all {
			v := &p.verifiers[0]
			req := request(t, p, "{}")
			r := p.reading(req)
			genuine, err := v.carrier.line(r)
			if err != nil {
				t.Fatal(err)
			}
			var sig string
			for entry := range v.carrier.signatures(genuine) {
				if v.matcher.wellFormed(entry) {
					sig = entry
				}
			}
			line := strings.NewReplacer("SIG", sig, "NOW", Seconds.format(now)).Replace(text)
			if err := v.carrier.put(p, req, line); err != nil {
				t.Fatal(err)
			}
			d, err := p.Open(req)
			if err == nil && (!strings.Contains(line, v.carrier.prefix+sig) || v.ts != nil && !strings.Contains(line, Seconds.format(now))) {
				t.Fatalf("%q is accepted: %+v", line, d)
			}
			if rej := (*hookonce.RejectError)(nil); err != nil && (!errors.As(err, &rej) || rej.Reason == "" || rej.Detail == "") {
				t.Fatalf("%q: %v", line, err)
			}
		}
	})
}

// FuzzParseValue: what is parsed means the same when it is written again.
func FuzzParseValue(f *testing.F) {
	for _, seed := range []string{
		"header:X-A?", "header:X-*", "json:$.a.b", "json:$[0]", "json:$[*].x", "hash:json:$", "hash:form:a", "const:v0:", "part:t=", "entry:7", "body", "ts", "json:$..", "header: ", "json:$.a?b?", "const:?", "hash:hash:json:$.a",
	} {
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
		if second, err := parseValue(Value(again)); again != text || err != nil || !reflect.DeepEqual(v, second) {
			t.Fatalf("%q became %q: %+v and %+v, %v", text, again, v, second, err)
		}
		if v.kind == kindHeader && (v.text != http.CanonicalHeaderKey(v.text) || strings.ContainsAny(v.text, " :\r\n")) {
			t.Fatalf("%q is no header name", v.text)
		}
		for _, step := range v.path {
			if step == "" {
				t.Fatalf("%q has an empty step", text)
			}
		}
	})
}

// FuzzDocument compares what is found with encoding/json, which reads the same documents: where text is
// found, the other finds the same at the same path, and where the other finds text, it was found here or
// there is no telling which is meant.
func FuzzDocument(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a"}`, `{"id":1.50}`, `{"data":{"object":{"id":"x"}}}`, `{"id":"a","id":"b"}`, `{"data":{},"data":{"object":{"id":"x"}}}`, `{"data":{"object":{"id":"x"}},"data":{}}`,
		`{"\u0069d":"\u0062"}`, ` {"id" : "a"} `, `{"id":"\/\b\f\n\r\t\""}`, `{"data":[{"object":{"id":1}}]}`, "{\"id\":\"\xff\"}", `{"id":"😀"}`, `{"id":"\ud83d\ude00"}`, `{"id":"\ud83dx"}`, `{"list":[0,{"id":true}]}`, "[]", "null", `"a"`,
	} {
		f.Add([]byte(seed))
	}
	var paths tree
	var values []value
	for _, text := range []Value{"json:$.id", "json:$.data.object.id", "json:$.list[1].id", "hash:json:$.data"} {
		v, err := parseValue(text)
		if err != nil {
			f.Fatal(err)
		}
		paths.bind(&v)
		values = append(values, v)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		if checkJSON(body) != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q is no JSON", body)
		}
		doc := paths.find(string(body))
		for _, v := range values {
			want, isText := reference(body, v.path)
			exact, ok := doc.exact(v.node)
			text := doc.text(v.node)
			switch {
			case text != "" && (!utf8.ValidString(text) || strings.ContainsRune(text, utf8.RuneError)):
				t.Fatalf("%s: %q is no text in %s", v.origin, text, body)
			case text != "" && text != exact:
				t.Fatalf("%s: %q and %q in %s", v.origin, text, exact, body)
			case ok && exact != "" && exact != want:
				t.Fatalf("%s: %q, want %q in %s", v.origin, exact, want, body)
			case ok && isText && exact != want:
				t.Fatalf("%s: absent, want %q in %s", v.origin, want, body)
			}
		}
	})
}

// reference finds a string, number or boolean the way encoding/json does.
func reference(body []byte, path []string) (string, bool) {
	for _, name := range path {
		var object map[string]json.RawMessage
		var array []json.RawMessage
		switch {
		case name == "[1]" && json.Unmarshal(body, &array) == nil && len(array) > 1:
			body = array[1]
		case name != "[1]" && json.Unmarshal(body, &object) == nil && object[name] != nil:
			body = object[name]
		default:
			return "", false
		}
	}
	var text string
	if string(body) != "null" && json.Unmarshal(body, &text) == nil {
		return text, true
	}
	if len(body) > 0 && strings.IndexByte("{[n", body[0]) < 0 {
		return string(body), true
	}
	return "", false
}

// FuzzTimestamp compares times with arithmetic that has no bounds.
func FuzzTimestamp(f *testing.F) {
	for _, seed := range []string{"0", "1770091506", "-1", "9223372036854775808", "18446744073709551617", "1.5", "2026-02-03T04:05:06Z", "0000-01-01T00:00:00Z", "9999-12-31T23:59:60Z", "2026-02-03T04:05:06,5Z", strings.Repeat("1", 400)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for unit, most := range map[Unit]int64{Seconds: latest.Unix(), Millis: latest.UnixMilli()} {
			at, ok := unit.parse(text)
			want, isNumber := new(big.Int).SetString(text, 10)
			if ok != (isNumber && strings.Trim(text, "0123456789") == "") {
				t.Fatalf("%s: %q is a time: %v", unit, text, ok)
			}
			if got := map[Unit]int64{Seconds: at.Unix(), Millis: at.UnixMilli()}[unit]; ok && got != min(most, bounded(want)) {
				t.Fatalf("%s: %q is %v", unit, text, at)
			}
		}
		at, ok := RFC3339.parse(text)
		if ok && (at.Before(earliest) || at.After(latest)) {
			t.Fatalf("%q is %v", text, at)
		}
		if again, _ := RFC3339.parse(RFC3339.format(at)); ok && !again.Equal(at) {
			t.Fatalf("%q is %v, and then %v", text, at, again)
		}
	})
}

func bounded(n *big.Int) int64 {
	if n.IsInt64() {
		return n.Int64()
	}
	return 1<<63 - 1
}

// FuzzSortedForm compares the form with the one that net/url reads.
func FuzzSortedForm(f *testing.F) {
	for _, seed := range []string{"", "a=1&b=2", "b=2&a=1&a=0", "a=%zz", "a;b=1", "=1", "a+b=%26", "%ff=%ff", "%3fa=1"} {
		f.Add([]byte(seed))
	}
	p := build1(f, signing("", "sorted_form"), Settings{})
	f.Fuzz(func(t *testing.T, body []byte) {
		req := &hookonce.Request{Header: http.Header{"Content-Type": {formType}}, Body: body, Now: now}
		form, err := url.ParseQuery(string(body))
		if signErr := p.Sign(req); (signErr == nil) != (err == nil && !queryLike(form) || len(body) == 0) {
			t.Fatalf("%q: %v, %v", body, err, signErr)
		} else if signErr != nil {
			return
		}
		if _, err := p.Open(req); err != nil {
			t.Fatalf("%q: %v", body, err)
		}
		req.Body = []byte(form.Encode()) // the order of the fields does not count
		if _, err := p.Open(req); err != nil {
			t.Fatalf("%q: %v", req.Body, err)
		}
		req.Body = append(req.Body, "&added=1"...)
		rejected(t, p, req, hookonce.ReasonSignatureMismatch)
	})
}
