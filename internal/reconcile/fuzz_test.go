package reconcile

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// FuzzPage takes answers apart as a server may make them: whatever they are, nothing panics, what is read is bounded, and the next
// page is at the same server.
func FuzzPage(f *testing.F) {
	f.Add([]byte(`{"data": [{"id": 1, "at": "2000-01-01T00:00:00Z", "event": {"id": "a"}}], "next": "x"}`), "", uint8(0))
	f.Add([]byte(`{"data": [{"id": ".."}], "next": "https://evil.example/"}`), "", uint8(3))
	f.Add([]byte(`{"data": null, "next": [{"rel": "next", "href": "/events?x"}]}`), "", uint8(3))
	f.Add([]byte(`[]`), `<https://api.example.com/events?page=2>; rel="next", <x>; rel="last"`, uint8(2))
	f.Add([]byte(`{"data": []}`), `<//evil.example/>; title="a, \\"b"; REL=next`, uint8(2))
	f.Add([]byte(`{"data": [1, [], {}, null, "x"]}`), "", uint8(1))
	kinds := []spec.Page{
		{Kind: spec.PageCursor, In: "$.next", Param: "after"},
		{Kind: spec.PageLastID, Param: "after"},
		{Kind: spec.PageLink},
		{Kind: spec.PageURL, In: "$.next"},
		{Kind: spec.PageNumber, Param: "page", Size: 1},
		{Kind: spec.PageOffset, Param: "offset", Size: 1},
	}
	f.Fuzz(func(t *testing.T, body []byte, link string, kind uint8) {
		l := fuzzed(t, kinds[int(kind)%len(kinds)])
		p, err := parsePage(body, &l.client.spec.List)
		if err != nil {
			if !errors.Is(err, ErrLies) {
				t.Error(err)
			}
			return
		}
		page, _ := l.read(p)
		if len(page.Entries)+page.Repeated != len(p.items) || len(p.items) > maxPerPage {
			t.Errorf("%d and %d of %d entries", len(page.Entries), page.Repeated, len(p.items))
		}
		for _, e := range page.Entries {
			if len(e.ID) > maxID || e.ID == ".." || strings.ContainsAny(e.ID, "\r\n") {
				t.Errorf("the id %q", e.ID)
			}
		}
		next, err := l.next(l.first(), p, &answer{header: http.Header{"Link": {link}}})
		if err != nil || next == nil {
			return
		}
		u, err := url.Parse(next.url)
		if err != nil || u.Scheme != "https" || u.Host != "api.example.com" || u.User != nil {
			t.Errorf("the next page is at %q, %v", next.url, err)
		}
	})
}

// fuzzed returns a lister whose pages are of that kind.
func fuzzed(t *testing.T, page spec.Page) *Lister {
	p, err := spec.New(spec.Spec{
		Name: "acme",
		Verify: []spec.Verify{{
			Hash: spec.SHA256, Key: spec.KeyUTF8, Encoding: spec.Hex, Signature: spec.Signature{In: "header:X-Acme-Signature"}, Sign: []spec.Value{"body"},
		}},
		Event: spec.Extract{Key: [][]spec.Value{{"json:$.id"}}},
		Reconcile: &spec.Reconcile{
			Servers: []spec.Server{{Name: "live", URL: "https://api.example.com"}},
			List: spec.List{
				Path: "/events", Items: "$.data", Page: &page, ID: "$.id", Sort: spec.Newest,
				Time: &spec.ListedTime{In: "$.at"}, Event: &spec.Recorded{Body: "$.event", Headers: "$.headers"},
			},
		},
	}, spec.Settings{Secrets: spec.Secrets("fake-secret")})
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewLister(Options{Source: "a", Provider: p, Token: "fake-token", Since: time.Unix(946684800, 0), Until: time.Unix(946771200, 0)})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestLink finds the next page among the links of a header.
func TestLink(t *testing.T) {
	for line, want := range map[string]string{
		`<https://a/?page=2>; rel="next"`:                                  "https://a/?page=2",
		`<https://a/?page=9>; rel="last", <https://a/?page=2>; rel="next"`: "https://a/?page=2",
		`<https://a/?x=1,2>; title="a, <b>"; rel=next`:                     "https://a/?x=1,2",
		`<https://a/>; rel="prev next"`:                                    "https://a/",
		`<https://a/>; rel="prev"; rel="next"`:                             "",
		`<https://a/>; rel="nextish"`:                                      "",
		`<https://a/>`:                                                     "",
		`<https://a/`:                                                      "",
		``:                                                                 "",
	} {
		if got := linkNext(http.Header{"Link": {line}}); got != want {
			t.Errorf("%s: %q", line, got)
		}
	}
}

// TestTimes reads times in the units of senders; what is none is no time.
func TestTimes(t *testing.T) {
	at := time.Date(1999, 12, 31, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		text string
		unit spec.Unit
		want time.Time
	}{
		{"946641600", spec.Seconds, at}, {"946641600.9", spec.Seconds, at}, {"946641600000", spec.Millis, at},
		{"1999-12-31T12:00:00Z", spec.RFC3339, at}, {"1999-12-31T14:00:00.000+02:00", spec.RFC3339, at},
		{"", spec.Seconds, time.Time{}}, {"0", spec.Seconds, time.Time{}}, {"-5", spec.Millis, time.Time{}}, {"yesterday", spec.RFC3339, time.Time{}},
	} {
		if got := parseTime(c.text, c.unit); !got.Equal(c.want) {
			t.Errorf("%q in %s: %v", c.text, c.unit, got)
		}
	}
}
