package traffic

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		in      string
		eof     bool
		status  int
		body    string
		closes  bool
		rest    string
		partial bool
		bad     bool
	}{
		"length":                 {in: "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhiHTTP", status: 200, body: "hi", rest: "HTTP"},
		"no reason phrase":       {in: "HTTP/1.1 204\r\n\r\n", status: 204},
		"bare line feeds":        {in: "HTTP/1.1 503 No\nContent-Length: 1\n\nx", status: 503, body: "x"},
		"names ignore case":      {in: "HTTP/1.1 200 OK\r\ncontent-LENGTH:3\r\n\r\nabc", status: 200, body: "abc"},
		"chunked":                {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\nnext", status: 200, body: "abc0123456789", rest: "next"},
		"interim answer":         {in: "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200},
		"connection close":       {in: "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", status: 200, closes: true},
		"version 1.0":            {in: "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", status: 200, closes: true},
		"version 1.0 kept alive": {in: "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", status: 200},
		"until the end":          {in: "HTTP/1.1 200 OK\r\n\r\nall of it", eof: true, status: 200, body: "all of it", closes: true},
		"not the end yet":        {in: "HTTP/1.1 200 OK\r\n\r\nall of", partial: true},
		"nothing":                {in: "", partial: true},
		"half a header":          {in: "HTTP/1.1 200 OK\r\nContent-Le", partial: true},
		"half a body":            {in: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", partial: true},
		"half a chunk":           {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde", partial: true},
		"half a trailer":         {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nT: ", partial: true},
		"cut off":                {in: "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", eof: true, bad: true},
		"not HTTP":               {in: "SSH-2.0-OpenSSH_9.2p1 Debian\r\n\r\n", bad: true},
		"HTTP 2":                 {in: "HTTP/2 200 OK please\r\n\r\n", bad: true},
		"status not a number":    {in: "HTTP/1.1 2x0 OK\r\n\r\n", bad: true},
		"status too long":        {in: "HTTP/1.1 2000 OK\r\n\r\n", bad: true},
		"status too small":       {in: "HTTP/1.1 099 OK\r\n\r\n", bad: true},
		"length not a number":    {in: "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", bad: true},
		"length enormous":        {in: "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n", bad: true},
		"unknown coding":         {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", bad: true},
		"chunk size missing":     {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n", bad: true},
		"chunk size enormous":    {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n", bad: true},
		"chunk too long":         {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n", bad: true},
		"endless header":         {in: "HTTP/1.1 200 OK\r\n" + strings.Repeat("A: b\r\n", MaxHead), bad: true},
		"endless size line":      {in: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", MaxHead+1), bad: true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r, n, err := Parse([]byte(tt.in), tt.eof)
			switch {
			case tt.bad:
				if !errors.Is(err, ErrMalformed) {
					t.Fatalf("got %+v, %d, %v; want ErrMalformed", r, n, err)
				}
				return
			case err != nil:
				t.Fatal(err)
			case tt.partial:
				if n != 0 {
					t.Fatalf("took %d bytes of an answer that is not complete", n)
				}
				return
			}
			if r.Status != tt.status || string(r.Body) != tt.body || r.Close != tt.closes || tt.in[n:] != tt.rest {
				t.Errorf("got %d %q close=%v rest %q", r.Status, r.Body, r.Close, tt.in[n:])
			}
		})
	}
}

func TestResponseField(t *testing.T) {
	r := Response{Header: []byte("Hookonce-Status-More: no\r\nhookonce-status:  duplicate \r\nHookonce-Status: second\r\n\r\n")}
	if got := string(r.Field("Hookonce-Status")); got != "duplicate" {
		t.Errorf("got %q", got)
	}
	if got := r.Field("Retry-After"); got != nil {
		t.Errorf("got %q for a field that is not there", got)
	}
}

// What net/http writes is read back, and no shorter prefix passes for an answer.
func TestParseReadsWhatNetHTTPWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := rapid.SliceOfN(rapid.Byte(), 0, 300).Draw(t, "body")
		want := &http.Response{
			ProtoMajor: 1, ProtoMinor: 1, StatusCode: rapid.IntRange(200, 599).Draw(t, "status"),
			Body: io.NopCloser(bytes.NewReader(body)), Request: &http.Request{Method: "POST"},
			Header: http.Header{"Hookonce-Status": {"accepted"}}, ContentLength: int64(len(body)),
		}
		if want.StatusCode == 204 || want.StatusCode == 304 {
			body, want.Body, want.ContentLength = nil, http.NoBody, 0
		} else if rapid.Bool().Draw(t, "chunked") {
			want.ContentLength, want.TransferEncoding = -1, []string{"chunked"}
		}
		var wire bytes.Buffer
		if err := want.Write(&wire); err != nil {
			t.Fatal(err)
		}
		r, n, err := Parse(wire.Bytes(), false)
		if err != nil || n != wire.Len() || r.Status != want.StatusCode || !bytes.Equal(r.Body, body) || string(r.Field("hookonce-status")) != "accepted" {
			t.Fatalf("%q\ngave %+v, %d, %v", wire.Bytes(), r, n, err)
		}
		cut := rapid.IntRange(0, n-1).Draw(t, "cut")
		if _, n, err := Parse(wire.Bytes()[:cut], false); n != 0 || err != nil {
			t.Fatalf("the first %d bytes of %q gave %d, %v", cut, wire.Bytes(), n, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		"HTTP/1.1 503 Service Unavailable\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 204 \r\nConnection: keep-alive\r\n\r\n",
		"HTTP/1.1 200 OK\n\nuntil the end",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
	} {
		f.Add([]byte(seed), false)
		f.Add([]byte(seed), true)
	}
	f.Fuzz(func(t *testing.T, in []byte, eof bool) {
		r, n, err := Parse(in, eof)
		switch {
		case n < 0 || n > len(in):
			t.Fatalf("took %d of %d bytes", n, len(in))
		case err != nil && (n != 0 || !errors.Is(err, ErrMalformed)):
			t.Fatalf("%d bytes, %v", n, err)
		case err == nil && n == 0 && eof:
			t.Fatal("still waiting at the end of input")
		case n == 0:
			return
		case r.Status < 200 || r.Status > 999 || len(r.Body) > MaxBody:
			t.Fatalf("got %+v", r)
		}
		if eof {
			return
		}
		for cut := range n {
			if _, n, err := Parse(in[:cut], false); n != 0 || err != nil {
				t.Fatalf("the first %d bytes gave %d, %v", cut, n, err)
			}
		}
	})
}
