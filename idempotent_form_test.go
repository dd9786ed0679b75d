package hookonce_test

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// The form that a middleware has parsed, which put the body back, is there for the handler with its files.
func TestIdempotentLeavesTheFilesOfAMiddleware(t *testing.T) {
	opens := func(t *testing.T, r *http.Request) {
		f, _, err := r.FormFile("file")
		if err != nil {
			t.Errorf("the file is gone: %v", err)
			return
		}
		f.Close()
	}
	fingerprint := hookonce.WithFingerprintFunc(func(_ *http.Request, body []byte) []byte { return body })
	for name, handler := range map[string]func(*testing.T) http.Handler{
		"Idempotent": func(t *testing.T) http.Handler {
			return counter(memstore.New(), func(_ http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
				opens(t, r)
				return nil
			}, fingerprint)
		},
		"IdempotentLease": func(t *testing.T) http.Handler {
			return desk(memstore.New(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { opens(t, r) }), fingerprint)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			next := handler(t)
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				whole, err := io.ReadAll(r.Body)
				r.Body = io.NopCloser(bytes.NewReader(whole))
				if err = errors.Join(err, r.ParseMultipartForm(1)); err != nil {
					t.Error(err)
				}
				r.Body = io.NopCloser(bytes.NewReader(whole))
				next.ServeHTTP(w, r)
			}))
			defer srv.Close()
			r := upload(t, srv.URL)
			answer, err := srv.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode != http.StatusOK {
				t.Errorf("answered %s", answer.Status)
			}
		})
	}
}

// What a handler, or the function of WithFingerprintFunc, parses of a form into temporary files is
// deleted when it has ended, however that is. The server deletes those of its own request alone,
// and theirs is a copy.
func TestIdempotentDeletesTheFilesOfForms(t *testing.T) {
	type parseFunc = func(*http.Request)
	doors := map[string]func(parse parseFunc, end func() error) http.Handler{
		"Idempotent": func(parse parseFunc, end func() error) http.Handler {
			return counter(memstore.New(), func(_ http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
				parse(r)
				return end()
			})
		},
		"IdempotentLease": func(parse parseFunc, end func() error) http.Handler {
			return desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				parse(r)
				if end() != nil {
					w.WriteHeader(http.StatusServiceUnavailable)
				}
			}))
		},
		"WithFingerprintFunc": func(parse parseFunc, end func() error) http.Handler {
			return counter(memstore.New(), new(till).charge, hookonce.WithFingerprintFunc(func(r *http.Request, body []byte) []byte {
				parse(r)
				_ = end()
				return body
			}))
		},
	}
	for name, end := range map[string]func() error{
		"returns": func() error { return nil },
		"fails":   func() error { return errors.New("the disk of the archive is full") },
		"panics":  func() error { panic("a fault in the handler") },
		"aborts":  func() error { panic(http.ErrAbortHandler) },
	} {
		for door, handler := range doors {
			t.Run(door+" "+name, func(t *testing.T) {
				dir := t.TempDir()
				t.Setenv("TMPDIR", dir)
				files := func() int {
					there, err := os.ReadDir(dir)
					if err != nil {
						t.Error(err)
					}
					return len(there)
				}
				parses := 0
				srv := httptest.NewUnstartedServer(handler(func(r *http.Request) {
					parses++
					if err := r.ParseMultipartForm(1); err != nil || files() == 0 {
						t.Errorf("the form is parsed into %d files: %v", files(), err)
					}
				}, end))
				srv.Config.ErrorLog = log.New(io.Discard, "", 0)
				srv.Start()
				defer srv.Close()
				r := upload(t, srv.URL)
				if answer, err := srv.Client().Do(r); err == nil { // it is none where the connection is cut
					answer.Body.Close()
				}
				srv.Close() // which waits for the handler
				if n := files(); n != 0 || parses == 0 {
					t.Errorf("%d files are left of %d forms", n, parses)
				}
			})
		}
	}
}

// upload is a request under a key with a file in a form.
func upload(t *testing.T, url string) *http.Request {
	t.Helper()
	form := multipartOf("b1", [2]string{`Content-Disposition: form-data; name="file"; filename="a"`, strings.Repeat("x", 1<<10)})
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	asForm("b1")(r)
	r.Header.Set("Idempotency-Key", "k1")
	return r
}
