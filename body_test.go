package hookonce_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// summed is a provider whose signature is a plain checksum of the body.
type summed struct{ sender }

func (summed) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	if req.Header.Get("Sig") != checksum(req.Body) {
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonSignatureMismatch, Detail: "header Sig"}
	}
	return &hookonce.Verified{Events: []hookonce.Event{{Provider: "sender", Key: req.Header.Get("Idempotency-Key"), Body: req.Body}}}, nil
}

func checksum(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}

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

// send posts a body to h, in a request that may be changed before, on a server with a middleware, and returns the status.
func send(t *testing.T, h http.Handler, do func(*http.Request), body []byte, kind string, chunked bool, change ...func(*http.Request)) int {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		do(r)
		h.ServeHTTP(w, r)
	}))
	defer srv.Close()
	var from io.Reader = bytes.NewReader(body)
	if chunked {
		from = struct{ io.Reader }{from}
	}
	req, err := http.NewRequest(http.MethodPost, srv.URL, from)
	must(err)
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Idempotency-Key", "k1")
	req.Header.Set("Sig", checksum([]byte(plain)))
	for _, f := range change {
		f(req)
	}
	res, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// A body that a middleware has read, or cut, is our fault and not the sender's: 503, and the log says who is to
// blame and what to do. One that it has replaced with a whole one is taken, whatever its length.
func TestBodyThatAMiddlewareTouched(t *testing.T) {
	for name, c := range inFront {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			logger := hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelError})))
			body := c.body
			if body == nil {
				body = []byte(plain)
			}
			var s till
			for door, h := range map[string]http.Handler{
				"Idempotent": counter(memstore.New(), s.charge, logger),
				"Webhook":    hookonce.Webhook(memstore.New(), "summed", summed{}, new(ledger).handle, logger),
			} {
				log.Reset()
				status := send(t, h, c.do, body, c.kind, false)
				if taken := status == 200 || status == 201; taken != c.whole || !taken && status != 503 {
					t.Errorf("%s: answered %d", door, status)
				}
				if named := strings.Contains(log.String(), "level=ERROR") && strings.Contains(log.String(), "middleware"); named == c.whole {
					t.Errorf("%s: logged %s", door, &log)
				}
			}
			if c.whole {
				s.want(t, plain)
			} else {
				s.want(t)
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
			body := c.body
			if body == nil {
				body = []byte(plain)
			}
			for _, expect := range []string{"", "100-continue"} {
				var s till
				h := counter(memstore.New(), s.charge)
				ask := func(r *http.Request) { r.Header.Set("Expect", expect) }
				if status := send(t, h, do, body, c.kind, true, ask); status != 503 {
					t.Errorf("Idempotent: answered %d", status)
				}
				webhook := hookonce.Webhook(memstore.New(), "summed", summed{}, new(ledger).handle)
				if status := send(t, webhook, do, body, c.kind, true, ask); status != 503 {
					t.Errorf("Webhook: answered %d", status)
				}
				restored := func(r *http.Request) { do(r); r.Body = io.NopCloser(bytes.NewReader(body)) }
				if status := send(t, h, restored, body, c.kind, true, ask); status != 201 {
					t.Errorf("restored: answered %d", status)
				}
				s.want(t, string(body))
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
			var s till
			ask := func(r *http.Request) { r.Header.Set("Expect", expect) }
			if status := send(t, counter(memstore.New(), s.charge), c.do, []byte(c.body), "", true, ask); status != 201 {
				t.Errorf("%s: answered %d", name, status)
			}
			s.want(t, c.body)
		}
	}
}

// Over HTTP/2, too.
func TestBodyOverHTTP2WithoutALengthThatAMiddlewareRead(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.charge)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/reads" {
			readAll(r.Body)
		}
		h.ServeHTTP(w, r)
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	for path, want := range map[string]int{"/reads": 503, "/leaves": 201} {
		req, err := http.NewRequest(http.MethodPost, srv.URL+path, struct{ io.Reader }{strings.NewReader(plain)})
		must(err)
		req.Header.Set("Idempotency-Key", path[1:])
		res, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.ProtoMajor != 2 || res.StatusCode != want {
			t.Errorf("%s: answered %s %d, want %d", path, res.Proto, res.StatusCode, want)
		}
	}
	s.want(t, plain)
}
