package recorder_test

import (
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/recorder"
)

// TestRecorderSendsWhatTheServerWould holds the recorder against net/http: what a handler writes comes out
// the same, sniffed type, clean header and all.
func TestRecorderSendsWhatTheServerWould(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"nothing":           func(w http.ResponseWriter, r *http.Request) {},
		"text":              func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") },
		"html, by its look": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") },
		"bytes":             func(w http.ResponseWriter, r *http.Request) { w.Write([]byte{0, 1, 2}) },
		"not sniffed": func(w http.ResponseWriter, r *http.Request) {
			w.Header()["Content-Type"] = nil
			io.WriteString(w, "hello")
		},
		"encoded": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			io.WriteString(w, "hello")
		},
		"status": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); io.WriteString(w, "{}") },
		"twice":  func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(201); w.WriteHeader(500) },
		"header after the status": func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(201)
			w.Header().Set("X-Late", "1")
		},
		"no content": func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(204) },
		"not modified": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Etag", `"1"`)
			w.WriteHeader(304)
		},
		"many values": func(w http.ResponseWriter, r *http.Request) {
			w.Header()["X-Many"] = []string{"a", "b", "a"}
			w.Header().Set("Set-Cookie", "a=b")
		},
		"odd names and values": func(w http.ResponseWriter, r *http.Request) {
			w.Header()["X-Lines"] = []string{"a\r\nX-Injected: 1"}
			w.Header()["a name"] = []string{"1"}
			w.Header()["Odd"] = []string{"caf\xe9 "}
		},
		"two writes": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, "<h1>")
			io.WriteString(w, "x</h1>")
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := wire(t, handle)
			got := wire(t, func(w http.ResponseWriter, r *http.Request) {
				rec := recorder.New(1 << 20)
				handle(rec, r)
				answer, err := rec.Answer()
				if err != nil {
					t.Fatal(err)
				}
				answer.Send(w)
			})
			if got != want {
				t.Errorf("recorded and sent:\n%s\nas the server sends it:\n%s", got, want)
			}
		})
	}
}

// wire returns the answer to a POST as it comes over the wire, but for the date.
func wire(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.Start()
	defer srv.Close()
	conn, err := net.Dial("tcp", srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "POST / HTTP/1.1\r\nHost: shop.example\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	whole, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(whole), "\r\n\r\n")
	lines := strings.Split(head, "\r\n")
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.HasPrefix(line, "Date:") })
	slices.Sort(lines[1:]) // the server writes its own fields last
	return fmt.Sprintf("%q\n%q", lines, body)
}

func TestRecorderLimit(t *testing.T) {
	rec := recorder.New(10)
	if n, err := rec.Write([]byte("0123456789")); n != 10 || err != nil {
		t.Fatalf("Write within the limit = %d, %v", n, err)
	}
	if n, err := rec.WriteString("x"); n != 0 || !errors.Is(err, recorder.ErrTooLarge) {
		t.Errorf("Write beyond the limit = %d, %v", n, err)
	}
	if _, err := rec.Write(nil); !errors.Is(err, recorder.ErrTooLarge) {
		t.Errorf("a later Write: %v", err)
	}
	if _, err := rec.Answer(); !errors.Is(err, recorder.ErrTooLarge) {
		t.Errorf("Answer: %v", err)
	}
}

func TestRecorderLimitCountsTheHeader(t *testing.T) {
	rec := recorder.New(100)
	rec.Header().Set("X-Large", strings.Repeat("x", 100))
	if _, err := rec.Answer(); !errors.Is(err, recorder.ErrTooLarge) {
		t.Errorf("Answer: %v", err)
	}
}

// What cannot be taken back is refused: flushing, taking the connection over, interim answers, trailers.
func TestRecorderKeepsEverythingBack(t *testing.T) {
	rec := recorder.New(100)
	control := http.NewResponseController(rec)
	if err := control.Flush(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("Flush: %v", err)
	}
	if _, _, err := control.Hijack(); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("Hijack: %v", err)
	}
	rec.WriteHeader(http.StatusEarlyHints)
	rec.WriteHeader(http.StatusSwitchingProtocols)
	rec.Header().Set("Trailer", "X-Sum")
	rec.WriteHeader(http.StatusAccepted)
	rec.Header().Set("X-Sum", "1")
	rec.Header().Set(http.TrailerPrefix+"X-More", "1")
	answer, err := rec.Answer()
	if err != nil || answer.Status != http.StatusAccepted || len(answer.Header) != 0 {
		t.Errorf("answer %+v, %v", answer, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("a status that is none was taken")
		}
	}()
	recorder.New(1).WriteHeader(99)
}

func TestRecorderHasNoBodyWhereThereIsNone(t *testing.T) {
	rec := recorder.New(100)
	rec.WriteHeader(http.StatusNoContent)
	if _, err := io.WriteString(rec, "x"); !errors.Is(err, http.ErrBodyNotAllowed) {
		t.Errorf("body of a 204: %v", err)
	}
	if answer, err := rec.Answer(); err != nil || len(answer.Body) != 0 {
		t.Errorf("answer %+v, %v", answer, err)
	}
}

// What was for the first client alone is not repeated.
func TestRepeatableLeavesOutWhatWasForOne(t *testing.T) {
	first := http.Header{
		"Set-Cookie": {"session=fake"}, "Connection": {"close, X-Hop", "x-other"}, "X-Hop": {"1"}, "X-Other": {"1"}, "Keep-Alive": {"5"},
		"Upgrade": {"h2c"}, recorder.Replayed: {"false"}, "Proxy-Authenticate": {"Basic"}, "X-Kept": {"1", "2"},
	}
	again := recorder.Repeatable(first)
	if len(again) != 1 || len(again["X-Kept"]) != 2 {
		t.Errorf("repeated: %v", again)
	}
	if len(first) != 9 {
		t.Errorf("the first header was changed: %v", first)
	}
}
