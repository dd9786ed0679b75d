//go:build linux

package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/traffic"
)

// Every request of the corpus, signed ahead or on the way, is one that the provider accepts, with a
// key of its own.
func TestCorpusIsGenuine(t *testing.T) {
	target, err := traffic.ParseTarget("http://127.0.0.1:1/in/bench")
	if err != nil {
		t.Fatal(err)
	}
	for _, cycle := range []bool{false, true} {
		c, err := newCorpus(target, 9, 3, cycle, 0)
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]int{}
		var buf []byte
		for range 6 {
			buf = c.request(buf)
			r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(buf)))
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(r.Body)
			if err != nil || len(body) != bodySize || !json.Valid(body) {
				t.Fatalf("%d bytes of body, %v", len(body), err)
			}
			d, err := benchProvider().Open(&hookonce.Request{Method: r.Method, Header: r.Header, Body: body, Now: time.Now()})
			if err != nil {
				t.Fatal(err)
			}
			keys[d.Events[0].Key]++
		}
		if want := map[bool]int{false: 6, true: 3}[cycle]; len(keys) != want {
			t.Errorf("cycle %v: %d keys, want %d", cycle, len(keys), want)
		}
	}
}

// With several sources the requests go to one after the other, and are as genuine.
func TestCorpusOfSeveralSources(t *testing.T) {
	target, err := traffic.ParseTarget("http://127.0.0.1:1" + sourcePath(0))
	if err != nil {
		t.Fatal(err)
	}
	c, err := newCorpus(target, 9, 1, false, 3)
	if err != nil {
		t.Fatal(err)
	}
	var buf []byte
	for i := range 6 {
		buf = c.request(buf)
		r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(buf)))
		if err != nil {
			t.Fatal(err)
		}
		if r.URL.Path != sourcePath(i%3) {
			t.Errorf("request %d goes to %s, want %s", i, r.URL.Path, sourcePath(i%3))
		}
	}
}

func TestSpread(t *testing.T) {
	of := func(rates ...float64) spread {
		var all []sample
		for _, r := range rates {
			all = append(all, sample{Rate: r})
		}
		return spreadOf(all, func(s sample) float64 { return s.Rate })
	}
	for _, tt := range []struct{ got, want spread }{
		{of(), spread{}},
		{of(3), spread{3, 3, 3}},
		{of(5, 1, 3), spread{3, 1, 5}},
		{of(4, 1, 2, 9), spread{3, 1, 9}},
	} {
		if tt.got != tt.want {
			t.Errorf("got %v, want %v", tt.got, tt.want)
		}
	}
}

// The ratios follow from the medians: C = 60, B = 30 make L = 20.
func TestReport(t *testing.T) {
	samples := map[string][]sample{
		"a": {{Rate: 60, HalfP99: 2 * time.Millisecond}}, "b1": {{Rate: 30}}, "d": {{Rate: 5}},
		"e": {{Rate: 18, HalfP99: 5 * time.Millisecond, Idle: 20 << 20, Loaded: 99 << 20}, {Rate: 18, Start: 50 * time.Millisecond, Loaded: 80 << 20}},
	}
	chosen, err := choose("a,b,d,e", false)
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(options{rounds: 1, duration: time.Second}, chosen, samples)
	var out strings.Builder
	if err := r.markdown(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"| e | **hookonce, SQLite** | 18 (18–18) | 0.30 | 0.90 |",
		"L on sqlite, 1/(1/C + 1/B): 20 per second.",
		"hookonce to the hand-written handler, SQLite: 3.60",
		"at most 99 MiB under load; start-up on an existing database 50 ms",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if _, err := json.Marshal(r); err != nil {
		t.Error(err)
	}
}

func TestChoose(t *testing.T) {
	for only, want := range map[string]int{"": len(rows) - 4, "a": 1, "b": 2, "g1,i": 5} {
		if got, err := choose(only, false); err != nil || len(got) != want {
			t.Errorf("%q: %d rows, %v", only, len(got), err)
		}
	}
	if _, err := choose("l2", false); err == nil {
		t.Error("a row that needs a large database was chosen without one")
	}
	if got, err := choose("l", true); err != nil || len(got) != 2 {
		t.Errorf("large: %d rows, %v", len(got), err)
	}
	if _, err := choose("z", true); err == nil {
		t.Error("an unknown row was chosen")
	}
}

func TestSinkCountsPosts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s := new(sink)
	go s.accept(l)
	address := "http://" + l.Addr().String() + "/"
	for range 3 {
		res, err := http.Post(address, "text/plain", strings.NewReader("body"))
		if err != nil || res.StatusCode != http.StatusOK {
			t.Fatal(res, err)
		}
		res.Body.Close()
	}
	if n, err := counted(address); err != nil || n != 3 {
		t.Errorf("counted %d, %v", n, err)
	}
}

func FuzzSwallow(f *testing.F) {
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\nhi"))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"))
	f.Add([]byte("POST / HTTP/1.1\r\nContent-Length: -7\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		post, err := swallow(bufio.NewReader(bytes.NewReader(in)))
		if err == nil && post && !bytes.HasPrefix(in, []byte("POST ")) {
			t.Error("a POST that is none")
		}
	})
}
