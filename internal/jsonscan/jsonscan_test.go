package jsonscan

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// texts are JSON and what is nearly JSON, in places that differ from one another in a byte.
var texts = []string{
	"", " ", "{}", "[]", "null", "true", "false", "nul", "nulls", "t", "0", "-0", "00", "01", "-", "+1", "1.", ".5", "1.5", "1e5", "1E+5",
	"1e", "1e-", "-1.25e-3", "1 2", "1,", `""`, `"`, `"a`, `"\`, `"\"`, `"\""`, `"\\"`, `"\x"`, `"\u00e4"`, `"\u00eg"`, `"\u00e"`,
	`"\ud83d\ude00 \ud83d"`, "\"a\x1fb\"", "\"a\x7fb\"", "\"a\x00b\"", "\"a\nb\"", "\"\xff\xc3\"", "\"12345678\"", "\"1234567\x1f\"", "\"12345678\x1f",
	"\"\u00e4\u00e4\u00e4\u00e4\\n\u00e4\"", `{"a":1}`, `{"a":1,}`, `{"a" : 1 , "b":[ ] }`, `{"a"}`, `{a:1}`, `{"a":}`, `{,}`, `{"a":1 "b":2}`,
	`{"a":1]`, `[1,2]`, `[1,]`, `[,1]`, `[1 2]`, `[1}`, `[`, `{`, `]`, `}`, `{"a":{"b":[1,{"c":null}]}}`, "\u00a01", "\ufeff1", "1\v", " \t\r\n1\n ",
	`{"a":[]`, `{"a":"b`, `[[[[]]]]`, `[[[[[]]]]]`, `{"a":{"a":{"a":{"a":{}}}}}`, `["\"[[[[" , "]"]`, strings.Repeat("[],", 9), `["` + strings.Repeat("{", 9),
	`{"id":"evt_1","type":"a.b","data":{"object":{"id":"x","n":-1.5e3}},"id":"evt_2"}`,
}

func TestCheck(t *testing.T) {
	for _, text := range texts {
		err := Check(text, 4)
		if deep := depth(text) > 4; json.Valid([]byte(text)) && errors.Is(err, ErrDeep) != deep || json.Valid([]byte(text)) != (err == nil) && !deep {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// depth is how deep a JSON text is nested, found in another way than the scanner's.
func depth(text string) int {
	d, most := json.NewDecoder(strings.NewReader(text)), 0
	for depth := 0; ; most = max(most, depth) {
		token, err := d.Token()
		if err != nil {
			return most
		}
		switch token {
		case json.Delim('['), json.Delim('{'):
			depth++
		case json.Delim(']'), json.Delim('}'):
			depth--
		}
	}
}

// TestDeep: as many levels as are allowed, one more, and so many that a stack without a bound would not hold them.
func TestDeep(t *testing.T) {
	for _, pair := range []string{"[]", "{}"} {
		opening, closing := pair[:1], pair[1:]
		if opening == "{" {
			opening = `{"a":`
		}
		for _, n := range []int{1, 999, 1000, 1001, 10_000_000} {
			text := strings.Repeat(opening, n) + "0" + strings.Repeat(closing, n)
			if err := Check(text, 1000); errors.Is(err, ErrDeep) != (n > 1000) || n <= 1000 && err != nil {
				t.Errorf("%d times %s: %v", n, pair, err)
			}
			s := New(text, 1000)
			dump(&s, new(strings.Builder))
			if err := s.End(); errors.Is(err, ErrDeep) != (n > 1000) || n <= 1000 && err != nil {
				t.Errorf("%d times %s, member by member: %v", n, pair, err)
			}
		}
	}
}

// dump writes what it is led through.
func dump(s *Scanner, out *strings.Builder) {
	begin := s.At()
	switch s.Begins() {
	case '{':
		for name := range s.Members {
			fmt.Fprintf(out, "%q:", name)
			dump(s, out)
		}
	case '[':
		for i := range s.Elements {
			fmt.Fprintf(out, "%d:", i)
			dump(s, out)
		}
	default:
		s.Skip()
		fmt.Fprintf(out, "%s,", s.text[begin:s.At()])
		return
	}
	out.WriteString(";")
}

// walked writes what dump writes, with encoding/json as the parser of everything.
func walked(raw json.RawMessage, out *strings.Builder) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	switch token, _ := d.Token(); token {
	case json.Delim('{'):
		for d.More() {
			from := d.InputOffset()
			if _, err := d.Token(); err != nil {
				panic(err)
			}
			name := strings.TrimLeft(string(raw[from:d.InputOffset()]), ", \t\r\n") // as it is written
			fmt.Fprintf(out, "%q:", name[1:len(name)-1])
			member(d, out)
		}
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			fmt.Fprintf(out, "%d:", i)
			member(d, out)
		}
	default:
		fmt.Fprintf(out, "%s,", strings.Trim(string(raw), " \t\r\n"))
		return
	}
	out.WriteString(";")
}

func member(d *json.Decoder, out *strings.Builder) {
	var raw json.RawMessage
	if err := d.Decode(&raw); err != nil {
		panic(err)
	}
	walked(raw, out)
}

func TestLed(t *testing.T) {
	for _, text := range texts {
		agree(t, text)
	}
}

// agree holds the scanner against encoding/json: what is JSON, and what is in it.
func agree(t *testing.T, text string) {
	t.Helper()
	const levels = 100
	valid := json.Valid([]byte(text))
	err := Check(text, levels)
	if deep := errors.Is(err, ErrDeep); !deep && valid != (err == nil) || deep && valid && depth(text) <= levels {
		t.Errorf("%q: %v, and encoding/json says %t", text, err, valid)
	}
	var got, want strings.Builder
	s := New(text, levels)
	dump(&s, &got)
	if led := s.End(); led != err {
		t.Errorf("%q: %v, and %v member by member", text, err, led)
	}
	if err != nil {
		return
	}
	if walked(json.RawMessage(text), &want); got.String() != want.String() {
		t.Errorf("%q:\n%s\nencoding/json:\n%s", text, got.String(), want.String())
	}
}

// TestLeft: who has seen enough leaves the loop, and what is behind it is not looked at.
func TestLeft(t *testing.T) {
	s := New(`{"a":[1,2],"b":`, 10)
	for name := range s.Members {
		if name != "a" {
			t.Error(name)
		}
		for i := range s.Elements {
			if s.Skip(); i == 0 {
				break
			}
		}
		break
	}
	if s.Begins() != ',' {
		t.Errorf("stopped at %d", s.At())
	}
}

// FuzzCheck: every text is JSON for the scanner if it is for encoding/json, and has the same in it.
func FuzzCheck(f *testing.F) {
	for _, text := range texts {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) { agree(t, text) })
}

// BenchmarkCheck reads an event of 2 KB, with white space as senders write it, and short strings.
func BenchmarkCheck(b *testing.B) {
	text := `{"id": "evt_1", "data": [` + strings.Repeat("\n  "+`{"object": "charge", "amount": -12.50, "paid": true, "at": 1700000000},`, 28) + ` null]}`
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if err := Check(text, 1000); err != nil {
			b.Fatal(err)
		}
	}
}
