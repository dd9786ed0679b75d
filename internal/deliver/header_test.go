package deliver

import (
	"bufio"
	"io"
	"net/http"
	"net/textproto"
	"reflect"
	"strings"
	"testing"
)

func TestDecodeHeader(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		want        http.Header
	}{
		{"nothing", "", http.Header{}},
		{"as stored", "Content-Type: application/json\r\nX-A: 1\r\nX-A: 2\r\nX-B: \r\n",
			http.Header{"Content-Type": {"application/json"}, "X-A": {"1", "2"}, "X-B": {""}}},
		{"three values", "X-A: 1\r\nX-B: 4\r\nX-A: 2\r\nX-A: 3\r\nX-B: 5\r\n",
			http.Header{"X-A": {"1", "2", "3"}, "X-B": {"4", "5"}}},
		{"other spelling", "x-a:1\r\n", http.Header{"X-A": {"1"}}},
		{"bytes above ASCII", "X-A: caf\xe9\r\n", http.Header{"X-A": {"caf\xe9"}}},
		{"last line without an end", "X-A: 1\r\nX-B: 2", http.Header{"X-A": {"1"}, "X-B": {"2"}}},
		{"of one hop", "Connection: x\r\nHost: evil\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\nTE: x\r\n" +
			"Upgrade: h2c\r\nKeep-Alive: 1\r\nProxy-Authorization: x\r\nTrailer: x\r\nExpect: 100-continue\r\nX-A: 1\r\n",
			http.Header{"X-A": {"1"}}},
		{"not field lines", "no colon\r\n: no name\r\na b: c\r\nX-Nul: \x00\r\nX-LF: a\nb\r\nX-A: 1\r\n",
			http.Header{"X-A": {"1"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := decodeHeader([]byte(c.lines), nil); !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzDecodeHeader: whatever is stored, the result can be sent and reads back the same.
func FuzzDecodeHeader(f *testing.F) {
	f.Add([]byte("Content-Type: application/json\r\nX-A: 1\r\nX-A: 2\r\n"))
	f.Add([]byte("Host: x\r\ncontent-length: 5\r\n"))
	f.Add([]byte("X-A: \t1 \r\n\r\nX-B:2"))
	f.Add([]byte("X-A: a\rb\r\nX-B\x00: 1\r\n"))
	f.Fuzz(func(t *testing.T, lines []byte) {
		h := decodeHeader(lines, nil)
		var b strings.Builder
		if err := h.Write(&b); err != nil {
			t.Fatal(err)
		}
		r := textproto.NewReader(bufio.NewReader(io.MultiReader(strings.NewReader(b.String()), strings.NewReader("\r\n"))))
		back, err := r.ReadMIMEHeader()
		if err != nil {
			t.Fatalf("%q decodes to %q, which can not be sent: %v", lines, h, err)
		}
		if len(h) > 0 && !reflect.DeepEqual(http.Header(back), h) {
			t.Fatalf("%q decodes to %q and arrives as %q", lines, h, back)
		}
		for name := range h {
			if notForwarded[name] {
				t.Fatalf("%q is forwarded", name)
			}
		}
	})
}
