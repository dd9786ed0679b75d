package header

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEncode(t *testing.T) {
	h := http.Header{"X-B": {"2", "1"}, "X-A": {"a: b"}, "X-None": nil, "no:name": {"1"}, "no name": {"1"}, "": {"1"}, "X-Break": {"a\r\nX-C: b"}}
	const want = "X-A: a: b\r\nX-B: 2\r\nX-B: 1\r\nX-Break: a  X-C: b\r\n"
	if got := string(Encode(h)); got != want {
		t.Errorf("Encode = %q, want %q", got, want)
	}
}

func TestDecodeSkipsWhatIsNoLine(t *testing.T) {
	got := Decode([]byte("X-A: 1\r\nno colon\r\nX-B: \r\n"))
	if d := cmp.Diff(got, http.Header{"X-A": {"1"}, "X-B": {""}}); d != "" {
		t.Error(d)
	}
}

// Values survive whatever their bytes are, as long as they are one line.
func FuzzValues(f *testing.F) {
	for _, v := range []string{"", " ", "a", " a ", "\x00\xff\x80", "a: b", "\t", "caf\xe9", "\U0001F512"} {
		f.Add(v, "b")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		h := Decode(Encode(http.Header{"X-Odd": {a, b}}))
		again := Decode(Encode(h))
		if d := cmp.Diff(h, again); d != "" || len(h["X-Odd"]) != 2 {
			t.Fatalf("%q and %q became %q: %s", a, b, h, d)
		}
		oneLine := strings.NewReplacer("\r", " ", "\n", " ")
		for i, v := range []string{a, b} {
			if h["X-Odd"][i] != oneLine.Replace(v) {
				t.Fatalf("%q became %q", v, h["X-Odd"][i])
			}
		}
	})
}

// Whatever stands in the table is read without a panic, and what was read can be kept again.
func FuzzDecode(f *testing.F) {
	for _, lines := range []string{"", "X-A: 1\r\n", "X-A: 1", ": 1\r\n", "no colon\r\n", "X A: 1\r\n", "X-A:1\r\n", "\r\n\r\n", "X-A: \x00\xff\r\n"} {
		f.Add([]byte(lines))
	}
	f.Fuzz(func(t *testing.T, lines []byte) {
		once := Decode(Encode(Decode(lines)))
		if d := cmp.Diff(Decode(Encode(once)), once); d != "" {
			t.Fatalf("%q: %s", lines, d)
		}
	})
}
