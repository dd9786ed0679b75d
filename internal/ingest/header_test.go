package ingest

import (
	"bufio"
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/textproto"
	"reflect"
	"strings"
	"testing"
)

// parse reads field lines with the standard library, whose reading of HTTP/1 is the yardstick.
func parse(t *testing.T, lines []byte) http.Header {
	t.Helper()
	r := textproto.NewReader(bufio.NewReader(io.MultiReader(bytes.NewReader(lines), strings.NewReader("\r\n"))))
	h, err := r.ReadMIMEHeader()
	if err != nil {
		t.Fatalf("%q is not HTTP/1 field lines: %v", lines, err)
	}
	return http.Header(h)
}

func TestEncodeHeader(t *testing.T) {
	h := http.Header{}
	for _, name := range []string{
		"Connection", "Content-Length", "Expect", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Authorization", "Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Proto", "Proxy-Authorization",
		"Proxy-Connection", "Hookonce-Key", "Hookonce-Source",
		"Hookonce_key", "Hookonce_Attempt", "Hookonce-Event_Type", "Idempotency_Key", "Transfer_Encoding", "X_Forwarded_For",
	} {
		h.Set(name, "withheld")
	}
	h["Connection"] = []string{"close, X-Hop", "x-other-hop"}
	h.Set("X-Hop", "withheld")
	h.Set("X-Other-Hop", "withheld")
	h.Set("X-Split", "a\r\nInjected: b")
	h["Bad Name"] = []string{"x"}
	want := http.Header{
		"Content-Type":     {"application/json"},
		"Content-Encoding": {"gzip"},
		"Stripe-Signature": {"t=1,v1=ab", "t=2,v1=cd"},
		"X-Empty":          {""},
		"X_plain":          {"1"},
		"Idempotency-Key":  {"replaced when the event is delivered"},
		"X-Latin":          {"caf\xe9"},
		"Cookie2":          {"kept: only the exact name is withheld"},
	}
	maps.Copy(h, want)
	if got := parse(t, encodeHeader(h, nil)); !reflect.DeepEqual(got, want) {
		t.Errorf("kept %q\nwant %q", got, want)
	}
}

func FuzzEncodeHeader(f *testing.F) {
	f.Add("X-A", "1", "2")
	f.Add("Connection", "x-a", "")
	f.Add("X-A", "a\r\nB: c", "\x00")
	f.Add("a b", "x", "y")
	f.Add("X:A", "x", "y")
	f.Add("", "x", "y")
	f.Add("Content-Length", "5", "6")
	f.Fuzz(func(t *testing.T, name, a, b string) {
		h := http.Header{textproto.CanonicalMIMEHeaderKey(name): {a, b}, "X-Fixed": {"1"}}
		lines := encodeHeader(h, nil)
		if got := bytes.Count(lines, []byte("\r\n")); got != bytes.Count(lines, []byte("\n")) || got > 3 {
			t.Fatalf("%q has %d lines", lines, got)
		}
		if kept := bytes.HasSuffix(lines, []byte("X-Fixed: 1\r\n")) || bytes.HasPrefix(lines, []byte("X-Fixed: 1\r\n")); !kept && name != "Connection" {
			t.Fatalf("%q lost a header", lines)
		}
		for line := range bytes.SplitAfterSeq(lines, []byte("\r\n")) {
			field, _, ok := bytes.Cut(line, []byte(": "))
			if len(line) > 0 && (!ok || withheld[string(field)] || len(field) == 0) {
				t.Fatalf("line %q", line)
			}
		}
	})
}
