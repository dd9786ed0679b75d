package spec

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
)

// listed is a specification with a list of every part.
func listed() Spec {
	return Spec{
		Name:   "acme",
		Verify: []Verify{{Hash: SHA256, Key: KeyUTF8, Encoding: Hex, Signature: Signature{In: "header:X-Acme-Signature"}, Sign: []Value{"body"}}},
		Event:  Extract{Key: [][]Value{{"json:$.id"}}, Type: []Value{"json:$.type"}},
		Reconcile: &Reconcile{
			Servers:  []Server{{Name: "live", URL: "https://{site}.api.example.com/v1"}, {Name: "test", URL: "https://test.example.com"}},
			Places:   []Place{{Name: "shop", Path: "/shops/{shop}"}, {Name: "all", Path: "/all"}},
			Settings: []Setting{{Name: "site", Help: "the site"}, {Name: "shop", Help: "the shop", Allow: "/"}, {Name: "kinds", List: true, Optional: true}},
			Header:   map[string]Pattern{"Acme-Version": "2"},
			List: List{
				Path: "{place}/events?from={since}&to={until}&kind={kinds}", Items: "$.data", ID: "$.id", Sort: Newest,
				Page: &Page{Kind: PageCursor, In: "$.next", Param: "after"}, Event: &Recorded{Body: "$.event"},
			},
			Detail:    &Detail{Path: "{place}/events/{id}", Event: Recorded{Body: "$.request"}},
			Redeliver: &Redeliver{Path: "{place}/events/{id}/again", Body: `{"why": "{site}"}`},
			Window:    24 * time.Hour,
			Rate:      Rate{Requests: 1, Per: time.Second},
		},
	}
}

// TestReconcileFaults refuses what could send a token elsewhere, would never end, or finds no keys, and says what to do.
func TestReconcileFaults(t *testing.T) {
	if err := listed().Validate(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Spec, *Reconcile){
		"reconcile.servers: is missing":                                            func(_ *Spec, r *Reconcile) { r.Servers = nil },
		`reconcile.servers[0].name: "a b" is no name`:                              func(_ *Spec, r *Reconcile) { r.Servers[0].Name = "a b" },
		"reconcile.servers[1].url: \"http://test.example.com\" is not https":       func(_ *Spec, r *Reconcile) { r.Servers[1].URL = "http://test.example.com" },
		"has more than a host and a path":                                          func(_ *Spec, r *Reconcile) { r.Servers[1].URL = "https://me:secret@test.example.com" },
		"is no URL":                                                                func(_ *Spec, r *Reconcile) { r.Servers[1].URL = "test.example.com" },
		`reconcile.servers[0].url: "https://{site}": a setting is the first label`: func(_ *Spec, r *Reconcile) { r.Servers[0].URL = "https://{site}" },
		`"https://{site}.com": a setting is the first label`:                       func(_ *Spec, r *Reconcile) { r.Servers[0].URL = "https://{site}.com" },
		`"https://api.example.com/{site}": a setting is the first label`:           func(_ *Spec, r *Reconcile) { r.Servers[0].URL = "https://api.example.com/{site}" },
		`"https://api.{site}.example.com": a setting is the first label`:           func(_ *Spec, r *Reconcile) { r.Servers[0].URL = "https://api.{site}.example.com" },
		`"https://{site}x.example.com": a setting is the first label`:              func(_ *Spec, r *Reconcile) { r.Servers[0].URL = "https://{site}x.example.com" },
		`reconcile.places[0].path: "shops/{shop}" is no path below the server`:     func(_ *Spec, r *Reconcile) { r.Places[0].Path = "shops/{shop}" },
		"reconcile.places: {place} stands for one of the places":                   func(_ *Spec, r *Reconcile) { r.Places = nil },
		"reconcile.list.path: {other} is neither a setting nor known here":         func(_ *Spec, r *Reconcile) { r.List.Path += "&x={other}" },
		"reconcile.list.path: {id} is neither":                                     func(_ *Spec, r *Reconcile) { r.List.Path += "&x={id}" },
		"reconcile.redeliver.path: {since} is neither":                             func(_ *Spec, r *Reconcile) { r.Redeliver.Path += "?x={since}" },
		`reconcile.settings[0].name: "since" cannot be the name`:                   func(_ *Spec, r *Reconcile) { r.Settings[0].Name = "since" },
		`reconcile.settings[3].name: "shop" is there twice`:                        func(_ *Spec, r *Reconcile) { r.Settings = append(r.Settings, Setting{Name: "shop"}) },
		`reconcile.settings[3].name: {unused} stands nowhere`:                      func(_ *Spec, r *Reconcile) { r.Settings = append(r.Settings, Setting{Name: "unused"}) },
		`reconcile.auth.kind: there is no "digest"`:                                func(_ *Spec, r *Reconcile) { r.Auth.Kind = "digest" },
		"reconcile.auth.header: names the header of kind: header":                  func(_ *Spec, r *Reconcile) { r.Auth.Header = "X-Token" },
		`reconcile.auth.header: "X Token" is not a header name`:                    func(_ *Spec, r *Reconcile) { r.Auth = Auth{Kind: AuthHeader, Header: "X Token"} },
		"reconcile.auth.token_path: says where kind: oauth fetches":                func(_ *Spec, r *Reconcile) { r.Auth.Kind = AuthOAuth },
		`reconcile.auth.token_path: "//evil.example/token" would lead elsewhere`:   func(_ *Spec, r *Reconcile) { r.Auth = Auth{Kind: AuthOAuth, TokenPath: "//evil.example/token"} },
		"reconcile.header.authorization: is set by other means":                    func(_ *Spec, r *Reconcile) { r.Header = map[string]Pattern{"authorization": "x"} },
		"reconcile.header.X-A: is not a header":                                    func(_ *Spec, r *Reconcile) { r.Header = map[string]Pattern{"X-A": "a\nb"} },
		"reconcile.list.method: is DELETE":                                         func(_ *Spec, r *Reconcile) { r.List.Method = "DELETE" },
		"reconcile.list.body: belongs to POST":                                     func(_ *Spec, r *Reconcile) { r.List.Body = "{}" },
		"reconcile.list.body: is not JSON":                                         func(_ *Spec, r *Reconcile) { r.List.Method, r.List.Body = "POST", `{"from": "{since}"` },
		`reconcile.list.path: "events" is no path`:                                 func(_ *Spec, r *Reconcile) { r.List.Path = "events" },
		`reconcile.list.path: "{place}/../admin" would lead elsewhere`:             func(_ *Spec, r *Reconcile) { r.List.Path = "{place}/../admin" },
		`reconcile.list.items: "data" is no path`:                                  func(_ *Spec, r *Reconcile) { r.List.Items = "data" },
		`reconcile.list.items: "$.data[*]": [*] is for split.items only`:           func(_ *Spec, r *Reconcile) { r.List.Items = "$.data[*]" },
		`reconcile.list.id: "" is no path`:                                         func(_ *Spec, r *Reconcile) { r.List.ID = "" },
		`reconcile.list.unit: there is no "days"`:                                  func(_ *Spec, r *Reconcile) { r.List.Unit = "days" },
		`reconcile.list.sort: there is no "random"`:                                func(_ *Spec, r *Reconcile) { r.List.Sort = "random" },
		`reconcile.list.time.unit: there is no "days"`:                             func(_ *Spec, r *Reconcile) { r.List.Time = &ListedTime{In: "$.at", Unit: "days"} },
		"reconcile.list.delivered.is: is missing":                                  func(_ *Spec, r *Reconcile) { r.List.Delivered = &Condition{In: "$.ok"} },
		"reconcile.list.failures: says that nothing listed was delivered": func(_ *Spec, r *Reconcile) {
			r.List.Failures, r.List.Delivered = true, &Condition{In: "$.ok", Is: []string{"true"}}
		},
		`reconcile.list.page.kind: there is no "pages"`:                func(_ *Spec, r *Reconcile) { r.List.Page.Kind = "pages" },
		"reconcile.list.page.in: says where the answer has the cursor": func(_ *Spec, r *Reconcile) { r.List.Page.In = "" },
		"reconcile.list.page.param: names the parameter":               func(_ *Spec, r *Reconcile) { r.List.Page.Param = "" },
		"reconcile.list.page.without: names what cannot stand beside":  func(_ *Spec, r *Reconcile) { r.List.Page = &Page{Kind: PageLink, Without: []string{"since"}} },
		`reconcile.list.page.without[0]: "begin" is no parameter`:      func(_ *Spec, r *Reconcile) { r.List.Page.Without = []string{"begin"} },
		"reconcile.list.page.size: says how many entries":              func(_ *Spec, r *Reconcile) { r.List.Page = &Page{Kind: PageNumber, Param: "page"} },
		"reconcile.list.page.kind: a URL of the next page cannot carry the body of POST": func(_ *Spec, r *Reconcile) {
			r.List.Method, r.List.Body, r.List.Page = "POST", "{}", &Page{Kind: PageLink}
		},
		"reconcile.list.event: is missing":                                   func(_ *Spec, r *Reconcile) { r.List.Event = nil },
		"reconcile.detail: has the event's body":                             func(_ *Spec, r *Reconcile) { r.List.Event, r.List.Failures = nil, true },
		"reconcile.list.event.body: is missing":                              func(_ *Spec, r *Reconcile) { r.List.Event = &Recorded{} },
		"reconcile.list.event.header.Bad Name: is not a header name":         func(_ *Spec, r *Reconcile) { r.List.Event.Header = map[string]Path{"Bad Name": "$.id"} },
		"reconcile.list.event: leads to no key":                              func(s *Spec, _ *Reconcile) { s.Event.Key = [][]Value{{"header:X-Id"}} },
		"reconcile.list.event: leads to other keys":                          func(s *Spec, _ *Reconcile) { s.Event.Key = [][]Value{{"json:$.id"}, {"hash:json:$.data"}} },
		"reconcile.list.event: leads to other keys: a list may":              func(s *Spec, _ *Reconcile) { s.Dedup.OnRepeat = KeepLatest },
		"reconcile.list.event: nothing can be compared without a key":        func(s *Spec, _ *Reconcile) { s.Event.Key, s.Dedup.OnRepeat = nil, Off },
		"reconcile: one key is more than one event (on_repeat: keep_latest)": func(s *Spec, _ *Reconcile) { s.Dedup.OnRepeat = KeepLatest },
		"reconcile: one key is more than one event (on_repeat: coalesce)":    func(s *Spec, _ *Reconcile) { s.Dedup.OnRepeat = Coalesce },
		"reconcile.detail.event.body: is missing":                            func(_ *Spec, r *Reconcile) { r.Detail.Event = Recorded{Headers: "$.headers"} },
		"reconcile.redeliver.method: is GET":                                 func(_ *Spec, r *Reconcile) { r.Redeliver.Method = "GET" },
		"reconcile.redeliver.path: does not say which entry":                 func(_ *Spec, r *Reconcile) { r.Redeliver.Path = "/again" },
		"reconcile.redeliver.body: is not JSON":                              func(_ *Spec, r *Reconcile) { r.Redeliver.Body = "{id}{site}x" },
		"reconcile.redeliver.success: 302 is no success":                     func(_ *Spec, r *Reconcile) { r.Redeliver.Success = []int{302} },
		"reconcile.redeliver.rate: is so many requests in a time":            func(_ *Spec, r *Reconcile) { r.Redeliver.Rate = Rate{Requests: 5} },
		"reconcile.rate: is so many requests in a time":                      func(_ *Spec, r *Reconcile) { r.Rate = Rate{Per: time.Second} },
		"reconcile.window: is negative":                                      func(_ *Spec, r *Reconcile) { r.Window = -1 },
	} {
		s := listed()
		change(&s, s.Reconcile)
		if err := s.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestReconcileServers takes plain http for this machine alone.
func TestReconcileServers(t *testing.T) {
	for url, ok := range map[Pattern]bool{
		"https://api.example.com": true, "https://api.example.com:8443/v1": true, "http://127.0.0.1:8080": true, "http://localhost:1": true, "http://[::1]:1": true,
		"http://api.example.com": false, "http://127.0.0.1.example.com": false, "http://10.0.0.1": false, "ftp://127.0.0.1": false, "https://": false, "https://x/?a=b": false, "https://x/#a": false,
	} {
		if err := checkOrigin(url); (err == nil) != ok {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestCheckSettings says what is missing, unknown or has characters that it cannot have.
func TestCheckSettings(t *testing.T) {
	for _, c := range []struct {
		with map[string]string
		want string
	}{
		{map[string]string{"site": "acme", "shop": "a/b"}, ""},
		{map[string]string{"site": "acme", "shop": "1", "kinds": "a,b"}, ""},
		{map[string]string{"site": "acme", "place": "all"}, ""},
		{map[string]string{"server": "test", "site": "any.thing", "shop": "1"}, ""},
		{map[string]string{"shop": "1"}, "site: is missing; it is the site"},
		{map[string]string{"site": "acme"}, "shop: is missing; it is the shop"},
		{map[string]string{"site": "acme", "place": "all", "shop": "1"}, "shop: there is no such setting here; there are site, kinds"},
		{map[string]string{"site": "acme", "shop": "1", "other": "x"}, "other: there is no such setting here; there are site, shop, kinds"},
		{map[string]string{"site": "evil.example#", "shop": "1"}, "site:"},
		{map[string]string{"site": "a.b", "shop": "1"}, `site: "a.b" is no label of a host`},
		{map[string]string{"site": "-a", "shop": "1"}, "is no label of a host"},
		{map[string]string{"site": "acme", "shop": ".."}, `shop: ".." is no name, and would lead to another path`},
		{map[string]string{"site": "acme", "shop": "a b"}, `shop: ' ' is not taken here; it has letters, digits, dots, hyphens and underscores, and /`},
		{map[string]string{"site": "acme", "shop": "a?b"}, "shop: '?' is not taken here"},
		{map[string]string{"site": "acme", "shop": strings.Repeat("x", 257)}, "shop: has 257 bytes; at most 256 are taken"},
		{map[string]string{"site": "acme", "shop": "1", "place": "none"}, `place: there is no "none"; there are shop, all`},
		{map[string]string{"site": "acme", "shop": "1", "server": "prod"}, `server: there is no "prod"; there are live, test`},
		{map[string]string{"site": "acme", "shop": "1", "server": "https://evil.example"}, `server: there is no "https://evil.example"`},
	} {
		err := listed().Reconcile.CheckSettings(c.with)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%v: %v, want %s", c.with, err, c.want)
		}
	}
}

// TestSelfHosted takes a server of one's own where the sender's software runs there, and over TLS.
func TestSelfHosted(t *testing.T) {
	s := listed()
	s.Reconcile.SelfHosted = true
	for server, ok := range map[string]bool{
		"https://acme.internal:8443/api": true, "http://127.0.0.1:3000": true, "live": true,
		"http://acme.internal": false, "acme.internal": false, "https://{shop}.internal": false, "https://me@acme.internal": false, "file:///etc/passwd": false,
	} {
		if _, _, err := s.Reconcile.Base(map[string]string{"site": "acme", "shop": "1", "server": server}); (err == nil) != ok {
			t.Errorf("%s: %v", server, err)
		}
	}
	base, place, err := s.Reconcile.Base(map[string]string{"site": "ACME", "shop": "1"})
	if err != nil || base != "https://acme.api.example.com/v1" || place != "/shops/{shop}" {
		t.Errorf("%s %s %v", base, place, err)
	}
}

// TestListed extracts what Open would, without a digest and without claiming that anybody signed it.
func TestListed(t *testing.T) {
	s := listed()
	p, err := New(s, Settings{Secrets: Secrets("fake-secret")})
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"X-A": {"b"}}
	body := []byte(`{"id": "evt_1", "type": "paid"}`)
	got, err := p.Listed(header, body, now)
	want := []hookonce.Event{{Provider: "acme", Key: "evt_1", KeyOrigin: "json:$.id", Type: "paid", Body: body, Header: header}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Error(err, diff)
	}
	if got, err := p.Listed(nil, []byte("<html>"), now); err == nil || len(got) != 1 || got[0].Key != "" {
		t.Errorf("%v, %+v", err, got)
	}
	s.Reconcile = nil
	if p, err = New(s, Settings{Secrets: Secrets("fake-secret")}); err != nil {
		t.Fatal(err)
	}
	if got, err := p.Listed(header, body, now); !errors.Is(err, ErrNotListed) || got != nil {
		t.Errorf("without a list: %v, %+v", err, got)
	}
}

// TestListedID takes the identifier that is signed from its header, as Open does.
func TestListedID(t *testing.T) {
	s := listed()
	s.Verify[0].ID, s.Verify[0].Sign = "header:Webhook-Id", []Value{"id", "const:.", "body"}
	s.Event.Key = [][]Value{{"id"}}
	s.Reconcile.List.Event = &Recorded{Header: map[string]Path{"Webhook-Id": "$.id"}}
	p, err := New(s, Settings{Secrets: Secrets("fake-secret")})
	if err != nil {
		t.Fatal(err)
	}
	got, _ := p.Listed(http.Header{"Webhook-Id": {"msg_1"}}, nil, now)
	if len(got) != 1 || got[0].Key != "msg_1" || got[0].KeySigned {
		t.Errorf("%+v", got)
	}
}

// TestPattern replaces names in braces, and nothing of JSON's own.
func TestPattern(t *testing.T) {
	p := Pattern(`{"a": {}, "b": "{x}", "c": {"d": 1}} {y}`)
	if diff := cmp.Diff([]string{"x", "y"}, p.Names()); diff != "" {
		t.Error(diff)
	}
	got := p.Fill(map[string]string{"x": "{y}"}, strings.ToUpper)
	if want := `{"a": {}, "b": "{Y}", "c": {"d": 1}} `; got != want {
		t.Errorf("%s", got)
	}
}

// TestCondition takes what is listed, and what begins so before a star.
func TestCondition(t *testing.T) {
	c := &Condition{In: "$.status", Is: []string{"OK", "2*"}}
	for text, want := range map[string]bool{"OK": true, "200": true, "2": true, "ok": false, "": false, "500": false, "OK2": false} {
		if c.Holds(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
