package body_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/body"
)

// zipped is body as gzip makes it.
func zipped(body string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = z.Write([]byte(body))
	_ = z.Close()
	return b.Bytes()
}

// deflated is body as DEFLATE makes it, with more round it than the format needs.
func deflated(body string) []byte {
	var b bytes.Buffer
	z, err := flate.NewWriter(&b, flate.NoCompression)
	must(err)
	_, _ = z.Write([]byte(body))
	_ = z.Close()
	return b.Bytes()
}

// What stands in front of a handler and touches the body, and whether the handler is given all of it.
var inFront = map[string]struct {
	do    func(r *http.Request)
	body  []byte // what is sent; plain if nil
	kind  string // its Content-Type
	whole bool
}{
	"nothing": {do: func(*http.Request) {}, whole: true},
	"a limit that is not reached": {do: func(r *http.Request) {
		r.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(r.Body, 1<<20), r.Body}
	}, whole: true},
	"a limit of net/http":  {do: func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 1<<20) }, whole: true},
	"reads and restores":   {do: func(r *http.Request) { r.Body = io.NopCloser(bytes.NewReader(readAll(r.Body))) }, whole: true},
	"copies what is read":  {do: func(r *http.Request) { r.Body = io.NopCloser(io.TeeReader(r.Body, io.Discard)) }, whole: true},
	"parses another form":  {do: func(r *http.Request) { _ = r.ParseForm() }, whole: true},
	"decompresses":         {do: decompress(func(z io.Reader) io.Reader { return z }), body: zipped(plain), whole: true},
	"decompresses, closes": {do: decompress(func(z io.Reader) io.Reader { return struct{ io.Reader }{z} }), body: zipped(plain), whole: true},
	"decompresses and limits": {do: decompress(func(z io.Reader) io.Reader { return io.LimitReader(z, 1<<20) }),
		body: zipped(plain), whole: true},
	"decompresses into memory": {do: decompress(func(z io.Reader) io.Reader { return bytes.NewReader(readAll(z)) }), body: zipped(plain)},
	"decompresses into memory and says so": {do: func(r *http.Request) {
		decompress(func(z io.Reader) io.Reader { return bytes.NewReader(readAll(z)) })(r)
		r.ContentLength = -1
	}, body: zipped(plain), whole: true},
	"decompresses, restores the beginning": {do: decompress(func(z io.Reader) io.Reader { return io.LimitReader(z, 3) }), body: zipped(plain)},
	"inflates":                             {do: func(r *http.Request) { r.Body = flate.NewReader(r.Body) }, body: deflated(plain), whole: true},
	"restores the beginning":               {do: func(r *http.Request) { r.Body = beginning(r.Body, 3) }},
	"restores the beginning of an encoded body": {do: func(r *http.Request) {
		r.Header.Set("Content-Encoding", "gzip")
		r.Body = beginning(r.Body, 3)
	}},
	"a reader that is a function":                      {do: func(r *http.Request) { r.Body = function(r.Body.Read) }, whole: true},
	"a reader that is a function and forgets the rest": {do: func(r *http.Request) { r.Body = function(beginning(r.Body, 3).Read) }},
	"decompresses and drops":                           {do: decompress(func(z io.Reader) io.Reader { readAll(z); return z }), body: zipped(plain)},
	"reads and drops":                                  {do: func(r *http.Request) { readAll(r.Body) }},
	"reads the beginning":                              {do: func(r *http.Request) { _, _ = r.Body.Read(make([]byte, 1)) }},
	"reads the beginning through a limit": {do: func(r *http.Request) {
		r.Body = http.MaxBytesReader(nil, r.Body, 1<<20)
		_, _ = r.Body.Read(make([]byte, 1))
	}},
	"cuts":               {do: func(r *http.Request) { r.Body = io.NopCloser(io.LimitReader(r.Body, 3)) }},
	"closes":             {do: func(r *http.Request) { r.Body.Close() }},
	"takes away":         {do: func(r *http.Request) { r.Body = http.NoBody }},
	"leaves none":        {do: func(r *http.Request) { r.Body = nil }},
	"parses a form":      {do: func(r *http.Request) { _ = r.ParseForm() }, kind: "application/x-www-form-urlencoded"},
	"parses a multipart": {do: func(r *http.Request) { _ = r.ParseMultipartForm(1 << 20) }, body: form("b1", "invoice"), kind: "multipart/form-data; boundary=b1"},
}

// beginning is what a middleware restores that reads the first bytes for its log.
func beginning(r io.Reader, n int64) io.ReadCloser {
	return io.NopCloser(bytes.NewReader(readAll(io.LimitReader(r, n))))
}

// function is a body whose type is no struct.
type function func([]byte) (int, error)

func (f function) Read(p []byte) (int, error) { return f(p) }
func (f function) Close() error               { return nil }

const plain = `amount=10`

func readAll(r io.Reader) []byte { b, _ := io.ReadAll(r); return b }

// decompress is a middleware that leaves the length of what was sent behind.
func decompress(wrap func(io.Reader) io.Reader) func(*http.Request) {
	return func(r *http.Request) {
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			panic(err)
		}
		r.Header.Del("Content-Encoding")
		r.Body = io.NopCloser(wrap(z))
	}
}

// form is a multipart form with one field.
func form(boundary, value string) []byte {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	must(w.SetBoundary(boundary), w.WriteField("kind", value), w.Close())
	return b.Bytes()
}

func must(errs ...error) {
	if err := errors.Join(errs...); err != nil {
		panic(err)
	}
}

// send posts a body, in a request that may be changed before, to a server with a middleware, and returns what
// ReadWhole returns behind it.
func send(t *testing.T, do func(*http.Request), sent []byte, kind string, chunked bool, change ...func(*http.Request)) (string, error) {
	t.Helper()
	var read []byte
	var failed error
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		do(r)
		read, failed = body.ReadWhole(r, 1<<20)
	}))
	defer srv.Close()
	var from io.Reader = bytes.NewReader(sent)
	if chunked {
		from = struct{ io.Reader }{from}
	}
	req, err := http.NewRequest(http.MethodPost, srv.URL, from)
	must(err)
	req.Header.Set("Content-Type", kind)
	for _, f := range change {
		f(req)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return string(read), failed
}

// A body that a middleware has read, or cut, is told from one that it has replaced with a whole one, whatever the
// length of that.
func TestBodyThatAMiddlewareTouched(t *testing.T) {
	for name, c := range inFront {
		t.Run(name, func(t *testing.T) {
			sent := c.body
			if sent == nil {
				sent = []byte(plain)
			}
			read, err := send(t, c.do, sent, c.kind, false)
			switch {
			case !c.whole && !errors.Is(err, body.ErrTouched):
				t.Errorf("read %q, %v", read, err)
			case c.whole && (read != plain || err != nil):
				t.Errorf("read %q, %v", read, err)
			}
		})
	}
}

// Without a length, what was parsed as a form shows, and so does that the server's reader was read to its end.
func TestBodyWithoutALengthThatAMiddlewareParsed(t *testing.T) {
	through := func(do func(*http.Request)) func(*http.Request) {
		return func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 1<<20); do(r) }
	}
	for name, do := range map[string]func(r *http.Request){
		"parses a form":                   inFront["parses a form"].do,
		"parses a multipart":              inFront["parses a multipart"].do,
		"closes":                          inFront["closes"].do,
		"cuts":                            inFront["cuts"].do,
		"reads and drops":                 inFront["reads and drops"].do,
		"reads and drops through a limit": through(inFront["reads and drops"].do),
	} {
		t.Run(name, func(t *testing.T) {
			c := inFront[name]
			sent := c.body
			if sent == nil {
				sent = []byte(plain)
			}
			for _, expect := range []string{"", "100-continue"} {
				ask := func(r *http.Request) { r.Header.Set("Expect", expect) }
				if read, err := send(t, do, sent, c.kind, true, ask); !errors.Is(err, body.ErrTouched) {
					t.Errorf("read %q, %v", read, err)
				}
				restored := func(r *http.Request) { do(r); r.Body = io.NopCloser(bytes.NewReader(sent)) }
				if read, err := send(t, restored, sent, c.kind, true, ask); read != string(sent) || err != nil {
					t.Errorf("restored: read %q, %v", read, err)
				}
			}
		})
	}
}

// A body without a length is taken if nothing was read of it, if it is empty, and if what was read stands in front
// of the rest again.
func TestBodyWithoutALength(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(r *http.Request)
		body string
	}{
		"untouched": {func(*http.Request) {}, plain},
		"empty":     {func(*http.Request) {}, ""},
		"a limit":   {func(r *http.Request) { r.Body = http.MaxBytesReader(nil, r.Body, 1<<20) }, plain},
		"the beginning is put back": {func(r *http.Request) {
			rest := r.Body
			r.Body = io.NopCloser(io.MultiReader(beginning(rest, 3), rest))
		}, plain},
	} {
		for _, expect := range []string{"", "100-continue"} {
			ask := func(r *http.Request) { r.Header.Set("Expect", expect) }
			if read, err := send(t, c.do, []byte(c.body), "", true, ask); read != c.body || err != nil {
				t.Errorf("%s: read %q, %v", name, read, err)
			}
		}
	}
}

// Over HTTP/2, too.
func TestBodyOverHTTP2WithoutALengthThatAMiddlewareRead(t *testing.T) {
	outcomes := make(chan error, 1)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reads" {
			readAll(r.Body)
		}
		_, err := body.ReadWhole(r, 1<<20)
		outcomes <- err
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	for path, want := range map[string]error{"/reads": body.ErrTouched, "/leaves": nil} {
		res, err := srv.Client().Post(srv.URL+path, "", struct{ io.Reader }{strings.NewReader(plain)})
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if err := <-outcomes; res.ProtoMajor != 2 || !errors.Is(err, want) {
			t.Errorf("%s: %s, %v; want %v", path, res.Proto, err, want)
		}
	}
}
