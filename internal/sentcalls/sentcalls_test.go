package sentcalls_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/sentcalls"
)

func request(t *testing.T, url, body string, change ...func(*http.Request)) *http.Request {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range change {
		f(r)
	}
	return r
}

func TestCompare(t *testing.T) {
	const url = "https://pay.example/charges"
	with := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	var s sentcalls.Set
	first := request(t, url, "10", with("Currency", "EUR"))
	for name, c := range map[string]struct {
		call *http.Request
		how  string
	}{
		"the same again":             {request(t, url, "10", with("Currency", "EUR")), ""},
		"the same at another time":   {request(t, url, "10", with("Currency", "EUR"), with("Date", "now"), with("Traceparent", "1")), ""},
		"a name in other letters":    {request(t, url, "10", func(r *http.Request) { r.Header["cURRENCY"] = []string{"EUR"} }), ""},
		"another query":              {request(t, url+"?a", "10", with("Currency", "EUR")), "has another query"},
		"another body":               {request(t, url, "20", with("Currency", "EUR")), "has another body"},
		"another field":              {request(t, url, "10", with("Currency", "EUR"), with("Buyer", "a")), "has another header field Buyer"},
		"another value of a field":   {request(t, url, "10", with("Currency", "USD")), "has another header field Currency"},
		"without a field":            {request(t, url, "10"), "lacks the header field Currency"},
		"a body that is a stream":    {request(t, url, "10", with("Currency", "EUR"), func(r *http.Request) { r.GetBody = nil }), "cannot be compared with the first, because a body can be read only once (GetBody is nil)"},
		"to another address, a call": {request(t, url, "30"), ""},
	} {
		address := "charges"
		if strings.HasPrefix(name, "to another address") {
			address = "refunds"
		}
		if how, err := s.Compare("charges", first); how != "" || err != nil {
			t.Fatalf("the first: %q, %v", how, err)
		}
		if how, err := s.Compare(address, c.call); how != c.how || err != nil {
			t.Errorf("%s: %q, %v; want %q", name, how, err, c.how)
		}
	}
	if rest, err := io.ReadAll(first.Body); string(rest) != "10" || err != nil {
		t.Errorf("of the first body %q is left, %v", rest, err)
	}
}

func TestCompareABodyThatCannotBeRead(t *testing.T) {
	var s sentcalls.Set
	gone := errors.New("gone")
	call := request(t, "https://pay.example", "10", func(r *http.Request) {
		r.GetBody = func() (io.ReadCloser, error) { return nil, gone }
	})
	if _, err := s.Compare("charges", call); !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}
