package hookonce_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

func TestIdempotentFingerprint(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"body":         func(r *http.Request) { r.Body, r.ContentLength = io.NopCloser(strings.NewReader("11")), 2 },
		"method":       func(r *http.Request) { r.Method = http.MethodPut },
		"path":         func(r *http.Request) { r.URL.Path = "/refunds" },
		"query":        func(r *http.Request) { r.URL.RawQuery = "dry=1" },
		"content type": setHeader("Content-Type", "text/html"),
	} {
		t.Run(name, func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge)
			first := buy(h, "k1", "10")
			wantAnswer(t, buy(h, "k1", "10", change), 422, "idempotency-key-reused")
			wantReplay(t, buy(h, "k1", "10", setHeader("User-Agent", "other"), setHeader("Traceparent", "00-1")), first)
			s.want(t, "10")
		})
	}
}

func TestIdempotentFingerprintOfChosenHeaders(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.charge, hookonce.WithFingerprint("api-version"))
	first := buy(h, "k1", "10", setHeader("Api-Version", "1"))
	wantAnswer(t, buy(h, "k1", "10", setHeader("Api-Version", "2")), 422, "idempotency-key-reused")
	wantReplay(t, buy(h, "k1", "10", setHeader("Api-Version", "1"), setHeader("Content-Type", "text/html")), first)
}

// Which field says it counts, and not only that one of them does; and so does how often.
func TestIdempotentFingerprintTellsChosenHeadersApart(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"another field": setHeader("X-To", "a"),
		"both fields":   func(r *http.Request) { r.Header["X-From"], r.Header["X-To"] = []string{"a"}, []string{"a"} },
		"said twice":    func(r *http.Request) { r.Header["X-From"] = []string{"a", "a"} },
		"neither field": func(*http.Request) {},
	} {
		h := counter(memstore.New(), new(till).charge, hookonce.WithFingerprint("X-From", "X-To"))
		buy(h, "k1", "10", setHeader("X-From", "a"))
		if w := buy(h, "k1", "10", change); w.Code != 422 {
			t.Errorf("%s: answered %d", name, w.Code)
		}
	}
}

// multipartOf is a form with the given boundary, of parts of a header and a content each.
func multipartOf(boundary string, parts ...[2]string) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "--%s\r\n%s\r\n\r\n%s\r\n", boundary, p[0], p[1])
	}
	return b.String() + "--" + boundary + "--\r\n"
}

func asForm(boundary string) func(*http.Request) {
	return setHeader("Content-Type", "multipart/form-data; boundary="+boundary)
}

// A form that is sent again has another boundary, and is the same request if its parts are.
func TestIdempotentMultipartCopies(t *testing.T) {
	kind := [2]string{`Content-Disposition: form-data; name="kind"`, "invoice"}
	file := [2]string{"Content-Disposition: form-data; name=\"file\"; filename=\"a\"\r\nContent-Type: text/plain", "10\r\n--not-a-boundary\r\n"}
	first := multipartOf("b1", kind, file)
	for name, c := range map[string]struct {
		body, boundary string
		same           bool
	}{
		"the same":          {first, "b1", true},
		"another boundary":  {multipartOf("b2", kind, file), "b2", true},
		"quoted boundary":   {multipartOf("b 3", kind, file), `"b 3"`, true},
		"a header's name":   {multipartOf("b2", [2]string{strings.ToLower(kind[0]), kind[1]}, file), "b2", true},
		"another content":   {multipartOf("b2", kind, [2]string{file[0], "11"}), "b2", false},
		"another file name": {multipartOf("b2", kind, [2]string{strings.Replace(file[0], `"a"`, `"b"`, 1), file[1]}), "b2", false},
		"another type":      {multipartOf("b2", kind, [2]string{strings.Replace(file[0], "plain", "html", 1), file[1]}), "b2", false},
		"another order":     {multipartOf("b2", file, kind), "b2", false},
		"a part less":       {multipartOf("b2", kind), "b2", false},
		"a part more":       {multipartOf("b2", kind, file, kind), "b2", false},
		"cut off":           {strings.TrimSuffix(first, "--b1--\r\n"), "b1", false},
		"no form":           {first, "elsewhere", false},
		"another charset":   {first, "b1; charset=utf-8", false},
	} {
		t.Run(name, func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge)
			answer := buy(h, "k1", first, asForm("b1"))
			again := buy(h, "k1", c.body, asForm(c.boundary))
			if !c.same {
				wantAnswer(t, again, 422, "idempotency-key-reused")
				return
			}
			wantReplay(t, again, answer)
		})
	}
}

// What is no form that parses is compared byte by byte, and so is JSON.
func TestIdempotentComparesByteByByte(t *testing.T) {
	whole := multipartOf("b1", [2]string{"A: 1", "x"})
	many := multipartOf("b1", slices.Repeat([][2]string{{"A: 1", "x"}}, 1001)...)
	for name, c := range map[string]struct{ first, second, contentType string }{
		"a form without its end": {strings.TrimSuffix(whole, "--b1--\r\n"), strings.TrimSuffix(whole, "--b1--\r\n") + " ", "multipart/form-data; boundary=b1"},
		"what is no form":        {"10", "11", "multipart/form-data; boundary=b1"},
		"a form of many parts":   {many, many + " ", "multipart/form-data; boundary=b1"},
		"a form without a type":  {whole, whole + " ", "multipart/form-data"},
		"JSON":                   {`{"a":1}`, `{"a": 1}`, "application/json"},
	} {
		h := counter(memstore.New(), new(till).charge)
		first := buy(h, "k1", c.first, setHeader("Content-Type", c.contentType))
		wantReplay(t, buy(h, "k1", c.first, setHeader("Content-Type", c.contentType)), first)
		if w := buy(h, "k1", c.second, setHeader("Content-Type", c.contentType)); w.Code != 422 {
			t.Errorf("%s: answered %d", name, w.Code)
		}
	}
}

// A program says what counts, and method, path and query do in any case.
func TestIdempotentFingerprintFunc(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.charge, hookonce.WithFingerprintFunc(func(r *http.Request, body []byte) []byte {
		if read, err := io.ReadAll(r.Body); err != nil || string(read) != string(body) {
			t.Errorf("the function reads %q, %v", read, err)
		}
		var order struct{ Item, Amount json.RawMessage } // and not sent_at
		if err := json.Unmarshal(body, &order); err != nil {
			return body
		}
		counts, _ := json.Marshal(order)
		return counts
	}))
	first := buy(h, "k1", `{"item":"a","amount":10,"sent_at":1}`)
	wantReplay(t, buy(h, "k1", `{"sent_at":2, "item":"a", "amount":10}`, setHeader("Content-Type", "text/html")), first)
	wantAnswer(t, buy(h, "k1", `{"item":"a","amount":11,"sent_at":1}`), 422, "idempotency-key-reused")
	wantAnswer(t, buy(h, "k1", `{"item":"a","amount":10}`, func(r *http.Request) { r.URL.RawQuery = "dry=1" }), 422, "idempotency-key-reused")
	wantAnswer(t, buy(h, "k1", `{"item":"a","amount":10}`, func(r *http.Request) { r.Method = http.MethodPut }), 422, "idempotency-key-reused")
	s.want(t, `{"item":"a","amount":10,"sent_at":1}`)
}
