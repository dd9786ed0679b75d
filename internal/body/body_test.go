package body_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/hookonce/hookonce/internal/body"
)

// purse is a Memory of so many bytes.
type purse struct{ free, most, held int64 }

func (p *purse) Take(n int64) bool {
	if n > p.free {
		return false
	}
	p.free, p.held = p.free-n, p.held+n
	p.most = max(p.most, p.held)
	return true
}

func (p *purse) Give(n int64) { p.free, p.held = p.free+n, p.held-n }

// Both ways of reading refuse a body for the same reasons.
func TestReasons(t *testing.T) {
	refused := errors.New("refused in front")
	for name, c := range map[string]struct {
		body     io.Reader
		announce int64 // -1: unknown
		want     error
	}{
		"as long as the limit":          {strings.NewReader("12345678"), 8, nil},
		"as long, of unknown length":    {strings.NewReader("12345678"), -1, nil},
		"empty, of unknown length":      {strings.NewReader(""), -1, nil},
		"a byte at a time":              {iotest.OneByteReader(strings.NewReader("12345678")), 8, nil},
		"announced as larger":           {iotest.ErrReader(errors.New("it was read")), 9, body.ErrTooLarge},
		"larger, of unknown length":     {strings.NewReader("123456789"), -1, body.ErrTooLarge},
		"beyond the limit of another":   {http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("12345678")), 4), 8, body.ErrTooLarge},
		"the connection breaks":         {io.MultiReader(strings.NewReader("123"), iotest.ErrReader(io.ErrUnexpectedEOF)), 8, body.ErrTruncated},
		"it does not arrive in time":    {io.MultiReader(strings.NewReader("123"), iotest.ErrReader(os.ErrDeadlineExceeded)), 8, body.ErrSlow},
		"a handler in front refuses it": {iotest.ErrReader(refused), 8, refused},
	} {
		for way, read := range map[string]func(*http.Request) ([]byte, error){
			"Read":      func(r *http.Request) ([]byte, error) { return body.Read(r, 8, nil) },
			"ReadWhole": func(r *http.Request) ([]byte, error) { return body.ReadWhole(r, 8) },
		} {
			if s, ok := c.body.(io.Seeker); ok {
				_, _ = s.Seek(0, io.SeekStart)
			}
			r := httptest.NewRequest(http.MethodPost, "/", io.NopCloser(c.body))
			r.ContentLength = c.announce
			t.Run(name+", "+way, func(t *testing.T) {
				if got, err := read(r); !errors.Is(err, c.want) {
					t.Errorf("read %q, %v; want %v", got, err, c.want)
				}
			})
			if _, again := c.body.(io.Seeker); !again {
				break // others are read once
			}
		}
	}
}

// A reader that the server frames says so itself; here it does not.
func TestReadOfLessThanWasAnnounced(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("123"))
	r.ContentLength = 8
	if _, err := body.Read(r, 8, nil); !errors.Is(err, body.ErrTruncated) {
		t.Errorf("Read: %v", err)
	}
}

// Memory is taken as the body grows: announcing much costs nothing, and what is held in the end is the capacity.
func TestMemoryGrowsWithWhatWasReceived(t *testing.T) {
	const limit = 1 << 20
	for name, c := range map[string]struct {
		sent     int
		announce int64
		held     int64
	}{
		"announced, and nothing sent": {0, limit, 0},
		"a little of much":            {100, limit, 4 << 10},
		"small":                       {100, 100, 100},
		"all of much":                 {limit, limit, limit},
		"of unknown length":           {10 << 10, -1, 16 << 10},
	} {
		m := &purse{free: 4 * limit}
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", c.sent)))
		r.ContentLength = c.announce
		read, _ := body.Read(r, limit, m)
		if m.held != c.held || len(read) != c.sent || m.most >= 2*limit || c.sent > 0 && int64(cap(read)) != m.held {
			t.Errorf("%s: %d bytes are held for %d of %d, %d at the most; want %d", name, m.held, len(read), cap(read), m.most, c.held)
		}
	}
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat("x", 8<<10)))
	if _, err := body.Read(r, limit, &purse{free: 4 << 10}); !errors.Is(err, body.ErrNoMemory) {
		t.Errorf("without memory: %v", err)
	}
}

// A sender that reads nothing before it has written everything receives the answer to a body that is refused.
func TestSenderOfARefusedBodyReadsWhy(t *testing.T) {
	const sent = 8 << 20 // more than sockets buffer
	for name, c := range map[string]struct {
		chunked bool
		after   func(w http.ResponseWriter, r *http.Request)
	}{
		"announced":         {false, body.Linger},
		"of unknown length": {true, body.Linger},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, err := body.Read(r, 1<<10, nil)
				if !errors.Is(err, body.ErrTooLarge) {
					t.Errorf("Read: %v", err)
				}
				w.Header().Set("Connection", "close")
				w.Header().Set("Content-Length", "3")
				w.WriteHeader(http.StatusRequestEntityTooLarge)
				_, _ = io.WriteString(w, "why")
				c.after(w, r)
			}))
			defer srv.Close()
			conn, err := net.Dial("tcp", srv.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			head := fmt.Sprintf("Content-Length: %d", sent)
			if c.chunked {
				head = "Transfer-Encoding: chunked"
			}
			fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: shop.example\r\n%s\r\n\r\n", head)
			if c.chunked {
				fmt.Fprintf(conn, "%x\r\n", sent)
			}
			if _, err := io.WriteString(conn, strings.Repeat("x", sent)); err != nil {
				t.Fatalf("sending: %v", err)
			}
			res, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if why, err := io.ReadAll(res.Body); res.StatusCode != 413 || string(why) != "why" || err != nil {
				t.Errorf("answered %d %q, %v", res.StatusCode, why, err)
			}
		})
	}
}
