package traffic

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestConnCarriesSeveralRequests(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for range 3 { // several flushes make net/http answer in chunks
			_, _ = w.Write(body)
			_ = http.NewResponseController(w).Flush()
		}
	})
	tg := target(t, s.URL+"/in/shop?x=1")
	c, err := Open(t.Context(), tg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, body := range []string{"a", "bc"} {
		if err := c.Send(tg.Request(nil, []byte(body))); err != nil {
			t.Fatal(err)
		}
		r, err := c.Receive()
		if err != nil || r.Status != 200 || string(r.Body) != body+body+body {
			t.Errorf("got %d %q, %v", r.Status, r.Body, err)
		}
	}
}

func TestHangUp(t *testing.T) {
	got := make(chan string, 1)
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- string(body)
	})
	tg := target(t, s.URL)
	if err := HangUp(t.Context(), tg, tg.Request(nil, []byte("two"))); err != nil || <-got != "two" {
		t.Errorf("hanging up: %v", err)
	}
}

// The bytes are what net/http reads, whatever the values contain.
func TestRequest(t *testing.T) {
	tg := target(t, "http://shop.example/in/a%2Fb?q=1")
	header := http.Header{"Webhook-Id": {"msg_1"}, "A": {"x", "y\r\nEvil: 1"}, "Host": {"other"}, "Content-Length": {"7"}}
	raw := tg.Request(header, []byte("{}"))
	if !bytes.Equal(raw, tg.Request(header, []byte("{}"))) {
		t.Error("equal input gave different bytes")
	}
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || string(body) != "{}" || r.Host != "shop.example" || r.RequestURI != "/in/a%2Fb?q=1" || r.ContentLength != 2 {
		t.Errorf("got %+v with %q, %v", r, body, err)
	}
	if r.Header.Get("Evil") != "" || len(r.Header["A"]) != 2 || r.Header.Get("Webhook-Id") != "msg_1" {
		t.Errorf("header %v", r.Header)
	}
}

func TestParseTarget(t *testing.T) {
	for raw, address := range map[string]string{
		"http://127.0.0.1:8080/in/x": "127.0.0.1:8080",
		"http://example.com":         "example.com:80",
		"https://example.com/a":      "example.com:443",
		"http://[::1]/":              "[::1]:80",
	} {
		if tg, err := ParseTarget(raw); err != nil || tg.Address() != address {
			t.Errorf("%s: %v, %v", raw, tg, err)
		}
	}
	for _, raw := range []string{"", "localhost:8080/x", "ftp://x/", "http://", "http://user:pw@x/", "http://x:y/", "://", "x/?pw", "http:///?pw", "http://a b/?pw"} {
		if _, err := ParseTarget(raw); !errors.Is(err, ErrURL) || strings.Contains(err.Error(), "pw") {
			t.Errorf("%q: %v", raw, err)
		}
	}
}
