package specyaml

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce/provider/spec"
)

func TestParse(t *testing.T) {
	got, err := Parse([]byte(`
name: acme
verify:
  - signature: {in: header:X-Acme-Signature, split: ",", prefix: v1=}
    time: {in: part:t=, past: 5m}
    sign: [ts, const:., body]
event:
  key: [[json:$.id], ["header:X-Acme-Id", "json:$.items[0]?"]]
dedup:
  on_repeat: keep_latest
  stable_on_retry: yes
limits:
  retry: 3d
  manual: 1d12h
  max_body: 2097152
order:
  by: json:$.version
  advisory: true
handshakes:
  - when: [{value: json:$.type, is: 1}]
    unsigned: true
    echo: json:$.challenge
example:
  header: {X-Acme-Id: "{{id}}"}
  body: |
    {"id": "{{id}}"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := spec.Spec{
		Name: "acme",
		Verify: []spec.Verify{{
			Signature: spec.Signature{In: "header:X-Acme-Signature", Split: ",", Prefix: "v1="},
			Time:      &spec.Timestamp{In: "part:t=", Past: 5 * time.Minute},
			Sign:      []spec.Value{"ts", "const:.", "body"},
		}},
		Event:      spec.Extract{Key: [][]spec.Value{{"json:$.id"}, {"header:X-Acme-Id", "json:$.items[0]?"}}},
		Dedup:      spec.Dedup{OnRepeat: spec.KeepLatest, Retry: spec.Stable},
		Limits:     spec.Limits{Retry: 72 * time.Hour, Manual: 36 * time.Hour, MaxBody: 2 << 20},
		Order:      &spec.Order{By: "json:$.version", Advisory: true},
		Handshakes: []spec.Handshake{{When: []spec.Match{{Value: "json:$.type", Is: "1"}}, Unsigned: true, Echo: "json:$.challenge"}},
		Example:    spec.Template{Header: map[string]string{"X-Acme-Id": "{{id}}"}, Body: "{\"id\": \"{{id}}\"}\n"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", `1:1: there is no specification here`},
		{"no mapping", "- a", `1:1: is a list; write settings`},
		{"no YAML", "name: [", `this is not YAML`},
		{"two documents", "name: a\n---\nname: b", `a second document begins here`},
		{"unknown field", "name: a\nverifi: []", `2:1: there is no "verifi" here; did you mean "verify"?`},
		{"unknown field below", "verify:\n  - hsah: sha256", `2:5: verify[0]: there is no "hsah" here; did you mean "hash"?`},
		{"nothing near", "zzzzzz: 1", `there is no "zzzzzz" here; write one of name, title,`},
		{"set twice", "name: a\ntitle: b\nname: c", `3:1: "name" is set twice, first in line 1`},
		{"bad word", "verify:\n  - hash: sha265", `2:11: verify[0].hash: there is no "sha265"; did you mean "sha256"?`},
		{"wrong case", "verify:\n  - encoding: Base64", `did you mean "base64"?`},
		{"bad value", "event: {type: [jsn:$.type]}", `1:16: event.type[0]: "jsn:$.type": no such kind of value`},
		{"bad path", "event: {key: [[json:id]]}", `event.key[0][0]: "json:id": a JSON path begins with $.`},
		{"value for list", "event:\n  type: json:$.type", `event.type: is a single value; write a list, as in ["json:$.type"]`},
		{"list for lists", "event:\n  key: [json:$.id]", `event.key[0]: is a single value; write a list, as in ["json:$.id"]`},
		{"list for value", "name: [a]", `1:7: name: is a list; write a single value`},
		{"empty", "name:", `name: is empty; write a single value`},
		{"unquoted colon", "verify:\n  - sign: [{const:v0: 1}]", `put in quotes`},
		{"no duration", "limits: {retry: 3 days}", `limits.retry: "3 days" is not a duration`},
		{"no number", "answer: {status: ok}", `answer.status: "ok" is not a whole number`},
		{"number too large", "limits: {max_body: 99999999999999999999}", `is not a whole number`},
		{"no bool", "split: {lines: yep}", `split.lines: "yep" is neither true nor false`},
		{"code", "verify:\n  - scheme: paypal", `verify[0].scheme: code exists in the catalogue only`},
		{"kind of code", "verify:\n  - kind: code", `verify[0].kind: "code" cannot be written here; write one of hmac, hash, ed25519, ecdsa, rsa, jwt, http_signature, token, basic`},
		{"unknown kind", "verify:\n  - kind: rot13", `verify[0].kind: there is no "rot13"; write one of hmac, hash, ed25519, ecdsa, rsa, jwt, http_signature, token, basic`},
		{"kind of a challenge", "handshakes:\n  - code: {kind: jwt}", `handshakes[0].code.kind: "jwt" cannot be written here; write one of hmac, hash`},
		{"alias", "name: &a b\ntitle: *a", `is an anchor, an alias`},
		{"map", "example: {header: [a]}", `example.header: is a list; write names and values`},
		{"key of a map", "? [a]\n: b", `2:1: this is not YAML`},
		{"merge", "<<: {name: a}", `1:1: this cannot be a key`},
		{"too large", "name: " + strings.Repeat("a", maxText), `a specification at most`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse([]byte(c.text))
			var faults spec.Faults
			if !errors.As(err, &faults) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

// A colon without a space after it makes no pair, wherever it is.
func TestParseColons(t *testing.T) {
	want, err := Parse([]byte("event:\n  key:\n    - - \"hash:json:$.data\"\n      - \"const:v0:\"\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`event: {key: [[hash:json:$.data, "const:v0:"]]}`,
		"event:\n  key: [[hash:json:$.data, 'const:v0:']]",
		"event:\n  key:\n    - [hash:json:$.data, \"const:v0:\"]",
	} {
		if got, err := Parse([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s\nis read as %q, %v", text, got.Event.Key, err)
		}
	}
}

func TestParseFindsAllFaults(t *testing.T) {
	_, err := Parse([]byte("nam: a\nverify:\n  - hash: sha265\n    encoding: hexx\nlimits: {retry: soon}\n"))
	var faults spec.Faults
	if !errors.As(err, &faults) || len(faults) != 4 {
		t.Fatalf("%v", err)
	}
	for i, want := range []spec.Fault{{Line: 1, Column: 1}, {Line: 3, Column: 11, Field: "verify[0].hash"}, {Line: 4, Column: 15, Field: "verify[0].encoding"}, {Line: 5, Column: 17, Field: "limits.retry"}} {
		got := faults[i]
		got.Text = ""
		if got != want {
			t.Errorf("fault %d: %+v, want %+v", i, got, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"name: a", "verify: [{sign: [body]}]", "a: &b c\n<<: *b", "? [a]\n: b", "- - -", "{", "name: |\n  a\n  b", "name: |\n 0\n  ", "event: {key: [[json:$.id?]]}",
		"limits: {retry: 3d}", "a:\n\tb: c", "---\n...\n---", "!!str a: b", "name: .inf", "example: {header: {a: b}}",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		first, err := Parse([]byte(text))
		if err != nil {
			var faults spec.Faults
			if !errors.As(err, &faults) || len(faults) == 0 {
				t.Errorf("no place: %v", err)
			}
			return
		}
		again, err := Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := Parse(again)
		if err != nil || !reflect.DeepEqual(normal(first), normal(second)) {
			t.Errorf("%v\n%s\nis read as\n%+v", err, again, second)
		}
	})
}

// normal returns the specification as it prints: what is empty is left out.
func normal(s spec.Spec) string {
	text, err := Marshal(s)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// TestTokensCanBeVerified: a text has no way of naming the library that its kind needs.
func TestTokensCanBeVerified(t *testing.T) {
	s, err := Parse([]byte("name: a\nverify: [{kind: jwt, algorithms: [HS256], time: {in: claim:iat, past: 5m}}]\nevent: {key: [[json:$.id]]}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := spec.New(s, spec.Settings{Secrets: spec.Secrets("a fake secret of thirty-two bytes")}); err != nil {
		t.Error(err)
	}
	s.Verify[0].Tokens = nil
	if _, err := spec.New(s, spec.Settings{Secrets: spec.Secrets("a fake secret of thirty-two bytes")}); err == nil || !strings.Contains(err.Error(), "provider/spec/jose") {
		t.Errorf("without the library: %v", err)
	}
	if _, err := Parse([]byte("verify: [{\"-\": 1}]")); err == nil {
		t.Error("a field without a name was set")
	}
}
