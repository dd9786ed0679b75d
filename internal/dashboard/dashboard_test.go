package dashboard_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/net/html"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard"
	"github.com/hookonce/hookonce/internal/dashboard/dashboardtest"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
)

var update = flag.Bool("update", false, "write the golden files")

// pages are all of them, by the name of their golden file.
var pages = map[string]string{
	"now": "/", "alerts": "/alerts", "failures": "/failures", "failure": "/failures/ledger/status?status=500", "resolved": "/failures/audit/timeout", "refused": "/refused", "store": "/store", "events": "/events", "filter": "/events?state=failed&source=billing", "event": "/events/924305118331207681",
	"destinations": "/destinations", "destination": "/destinations/ledger", "paused": "/destinations/mail",
	"sources": "/sources", "source": "/sources/billing", "tail": "/tail?source=billing&type=invoice.*", "audit": "/audit", "configuration": "/configuration", "doctor": "/doctor",
}

// request returns one of a browser on this machine.
func request(method, path string, form url.Values) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host, r.RemoteAddr = "127.0.0.1:8081", "127.0.0.1:50000"
	r.Header.Set("Accept", "text/html,application/xhtml+xml")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://127.0.0.1:8081")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

// serve returns the answer of a dashboard.
func serve(d http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// Every page is what it was: see what a change changed, and write it with -update.
func TestGolden(t *testing.T) {
	for _, world := range []dashboardtest.World{dashboardtest.Calm, dashboardtest.Trouble} {
		d := dashboardtest.Dashboard(&dashboardtest.API{World: world})
		for name, path := range pages {
			if (name == "paused" || name == "failure") && world == dashboardtest.Calm {
				continue
			}
			w := serve(d, request("GET", path, nil))
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
			golden(t, string(world)+"-"+name+".html", stable(w.Body.Bytes()))
		}
	}
}

// A dashboard that nobody looks at takes little memory: templates are read with the first page that needs them.
func TestReadWhenAsked(t *testing.T) {
	if n := testing.AllocsPerRun(1, func() { dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Calm}) }); n > 1000 {
		t.Errorf("%.0f allocations before anybody asks for a page; want at most 1000", n)
	}
}

// The first visitors may come at once, each to another page.
func TestFirstPagesAtOnce(t *testing.T) {
	d := dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Trouble})
	var visitors sync.WaitGroup
	for name, path := range pages {
		for range 2 {
			visitors.Go(func() {
				if w := serve(d, request("GET", path, nil)); w.Code != http.StatusOK {
					t.Errorf("%s: %d %s", name, w.Code, w.Body)
				}
			})
		}
	}
	visitors.Wait()
}

// stable leaves out what changes with the assets, and lines with nothing in them.
func stable(page []byte) []byte {
	page = regexp.MustCompile(`(/assets/\w+)\.[0-9a-f]{10}`).ReplaceAll(page, []byte("$1.HASH"))
	return regexp.MustCompile(`\n\s*\n+`).ReplaceAll(page, []byte("\n"))
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is different; run go test ./internal/dashboard -update and look at what changed", file)
	}
}

// What others write is text in every page: no element, attribute or address comes of it.
func TestHostileTextsStayTexts(t *testing.T) {
	d, harmless := dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Hostile}), dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Trouble})
	shown := 0
	for name, path := range pages {
		hostile := serve(d, request("GET", path, nil)).Body
		if got, want := shape(t, hostile.String()), shape(t, serve(harmless, request("GET", path, nil)).Body.String()); !slices.Equal(got, want) {
			t.Errorf("%s has other elements than with harmless texts: %d and not %d", name, len(got), len(want))
		}
		shown += strings.Count(hostile.String(), "owned")
	}
	if shown < 20 {
		t.Errorf("the attack is in the pages %d times only", shown)
	}
	for _, path := range []string{"/events?type=" + url.QueryEscape(dashboardtest.Attack), "/events?since=" + url.QueryEscape(dashboardtest.Attack), "/nothing/" + url.PathEscape(dashboardtest.Attack), "/login?to=" + url.QueryEscape(dashboardtest.Attack)} {
		for _, tag := range shape(t, serve(d, request("GET", path, nil)).Body.String()) {
			if strings.HasPrefix(tag, "img") || strings.Contains(tag, "onerror") {
				t.Errorf("%s: there is %s", path, tag)
			}
		}
	}
}

// shape returns the elements of a page, each with the names of its attributes, and the addresses that are no path of ours.
func shape(t *testing.T, page string) (tags []string) {
	t.Helper()
	tree, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	for n := range tree.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		tag := n.Data
		for _, a := range n.Attr {
			tag += " " + a.Key
			if (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "/") && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("the address %q of <%s> is not within", a.Val, n.Data)
			}
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has %s, which the policy refuses", n.Data, a.Key)
			}
		}
		tags = append(tags, tag)
	}
	return tags
}

// A source says for how long its sender sends an event again, and that copies came later, only where they did.
func TestLateCopiesAreTold(t *testing.T) {
	d := dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Calm})
	for path, late := range map[string]bool{"/sources/shop": true, "/sources/billing": false} {
		body := serve(d, request("GET", path, nil)).Body.String()
		if !strings.Contains(body, "sends an event again for") || strings.Contains(body, "came later than that") != late {
			t.Errorf("%s: late %v:\n%s", path, late, body)
		}
	}
}

// Every page is its own JSON, and lets nothing in that is not ours.
func TestPagesAreData(t *testing.T) {
	d := dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Trouble})
	for name, path := range pages {
		r := request("GET", path, nil)
		r.Header.Set("Accept", "application/json")
		w := serve(d, r)
		var data map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &data); err != nil || w.Header().Get("Content-Type") != "application/json" || len(data) == 0 {
			t.Errorf("%s: %s %v %.200s", name, w.Header().Get("Content-Type"), err, w.Body)
		}
		for field, want := range map[string]string{"Content-Security-Policy": "default-src 'none'", "X-Frame-Options": "DENY", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"} {
			if !strings.HasPrefix(w.Header().Get(field), want) {
				t.Errorf("%s: %s is %q", name, field, w.Header().Get(field))
			}
		}
		if strings.Contains(w.Header().Get("Content-Security-Policy"), "unsafe") {
			t.Errorf("%s: the policy is %s", name, w.Header().Get("Content-Security-Policy"))
		}
	}
}

// A page that has not changed is not sent again, and assets are kept for ever under names that change with them.
func TestUnchangedPages(t *testing.T) {
	a := &dashboardtest.API{World: dashboardtest.Calm}
	d := dashboardtest.Dashboard(a)
	first := serve(d, request("GET", "/destinations", nil))
	again := request("GET", "/destinations", nil)
	again.Header.Set("If-None-Match", first.Header().Get("ETag"))
	if w := serve(d, again); w.Code != http.StatusNotModified || w.Body.Len() != 0 {
		t.Errorf("unchanged: %d with %d bytes", w.Code, w.Body.Len())
	}
	a.Change(dashboardtest.Trouble)
	if w := serve(d, again); w.Code != http.StatusOK {
		t.Errorf("changed: %d", w.Code)
	}
	for _, asset := range regexp.MustCompile(`/assets/[^"]+`).FindAllString(first.Body.String(), -1) {
		w := serve(d, request("GET", asset, nil))
		if w.Code != http.StatusOK || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
			t.Errorf("%s: %d, kept as %q", asset, w.Code, w.Header().Get("Cache-Control"))
		}
		if strings.HasSuffix(asset, ".js") && w.Body.Len() > 10<<10 {
			t.Errorf("the script has %d bytes; its bound is 10 KiB", w.Body.Len())
		}
	}
	if w := serve(d, request("GET", "/assets/app.css", nil)); w.Code != http.StatusNotFound {
		t.Errorf("an asset without its hash: %d", w.Code)
	}
}

// Who may not act does not: not with the role read, not from a page of another site, not without a token, and not with one in the address.
func TestWhoMayAct(t *testing.T) {
	const reader, operator = "a-fake-token-for-reading", "a-fake-token-for-operators"
	a := &dashboardtest.API{World: dashboardtest.Trouble}
	d := dashboardtest.Dashboard(a, api.Token{Name: "dashboard", Secret: reader, Role: api.Read}, api.Token{Name: "oncall", Secret: operator, Role: api.Operator})
	login := func(token string) *http.Cookie {
		w := serve(d, request("POST", "/login", url.Values{"token": {token}, "to": {"/events"}}))
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/events" {
			t.Fatalf("login: %d to %q", w.Code, w.Header().Get("Location"))
		}
		return w.Result().Cookies()[0]
	}
	replay := url.Values{"reason": {"the ledger is back"}, "step": {"do"}}
	for name, c := range map[string]struct {
		change func(*http.Request)
		status int
	}{
		"an operator":              {func(r *http.Request) { r.AddCookie(login(operator)) }, 200},
		"a program of an operator": {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+operator) }, 200},
		"a reader":                 {func(r *http.Request) { r.AddCookie(login(reader)) }, 403},
		"nobody":                   {func(*http.Request) {}, 303},
		"a token in the address":   {func(r *http.Request) { r.URL.RawQuery = "token=" + operator }, 303},
		"a page of another site": {func(r *http.Request) {
			r.AddCookie(login(operator))
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Origin", "https://evil.example")
		}, 403},
		"an old browser on another site": {func(r *http.Request) {
			r.AddCookie(login(operator))
			r.Header.Del("Sec-Fetch-Site")
			r.Header.Set("Origin", "https://evil.example")
		}, 403},
		"over a network in the clear": {func(r *http.Request) { r.AddCookie(login(operator)); r.RemoteAddr = "203.0.113.7:1" }, 303},
	} {
		before := len(a.Calls())
		r := request("POST", "/events/924305118331207681/replay", replay)
		c.change(r)
		w := serve(d, r)
		if acted := len(a.Calls()) > before; w.Code != c.status || acted != (c.status == 200) {
			t.Errorf("%s: %d, acted %t", name, w.Code, acted)
		}
	}
	if w := serve(d, request("GET", "/events?state=dead", nil)); w.Header().Get("Location") != "/login?to=%2Fevents%3Fstate%3Ddead" {
		t.Errorf("nobody is led to %q", w.Header().Get("Location"))
	}
	program := request("GET", "/events", nil)
	program.Header.Set("Accept", "application/json")
	if w := serve(d, program); w.Code != http.StatusUnauthorized || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("a program without a token: %d %s", w.Code, w.Header().Get("Content-Type"))
	}
}

// Login leads to pages of ours alone.
func TestLoginLeadsWithin(t *testing.T) {
	const token = "a-fake-token-for-operators"
	d := dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Calm}, api.Token{Name: "oncall", Secret: token, Role: api.Operator})
	for to, want := range map[string]string{"/events?state=dead": "/events?state=dead", "//evil.example": "/", "https://evil.example": "/", `/\evil.example`: "/", "": "/", "javascript:alert(1)": "/"} {
		w := serve(d, request("POST", "/login", url.Values{"token": {token}, "to": {to}}))
		if got := w.Header().Get("Location"); got != want {
			t.Errorf("%q leads to %q, want %q", to, got, want)
		}
	}
}

// What was refused of a source is read when somebody looks at that source, and of the others how much it was.
func TestRefusedReadsOneSource(t *testing.T) {
	told := &dashboardtest.API{World: dashboardtest.Trouble}
	var asked []string
	d := dashboard.New(dashboard.Options{
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/refusals") {
				asked = append(asked, r.URL.Path)
			}
			told.ServeHTTP(w, r)
		}),
		Guard: api.NewGuard(nil, api.GuardOptions{}),
	})
	for query, want := range map[string]string{
		"":               "[/api/v1/refusals /api/v1/sources/billing/refusals]",
		"?source=shop":   "[/api/v1/refusals /api/v1/sources/shop/refusals]",
		"?source=-":      "[/api/v1/refusals /api/v1/sources/-/refusals]",
		"?source=nobody": "[/api/v1/refusals]",
	} {
		asked = nil
		if w := serve(d, request("GET", "/refused"+query, nil)); w.Code != http.StatusOK || fmt.Sprint(asked) != want {
			t.Errorf("%q: %d, asked %v, want %s", query, w.Code, asked, want)
		}
	}
}

// A replay of all that matches is counted before it is done, and done with what was counted.
func TestReplayIsCountedFirst(t *testing.T) {
	a := &dashboardtest.API{World: dashboardtest.Trouble}
	d := dashboardtest.Dashboard(a)
	form := url.Values{"destination": {"ledger"}, "state": {"failed"}}
	counted := serve(d, request("POST", "/replay", form))
	if calls := a.Calls(); len(calls) != 1 || !strings.Contains(calls[0], `"dry_run":true`) || !strings.Contains(calls[0], `"filter":{"destination":"ledger","state":"failed"}`) {
		t.Errorf("the calls are %q", calls)
	}
	if text := counted.Body.String(); !strings.Contains(text, "1\u202f204\u00a0deliveries of 1\u202f190\u00a0events") || !strings.Contains(text, `name="destination" value="ledger"`) {
		t.Errorf("the page says %s", text)
	} else if !strings.Contains(text, "--dry-run") || strings.Contains(text, "--yes") {
		t.Errorf("the command beside a count does more: %s", text)
	}
	form.Set("step", "do")
	form.Set("reason", "the ledger is back")
	form.Set("rate", "50")
	if text := serve(d, request("POST", "/replay", form)).Body.String(); strings.Contains(text, "--dry-run") || !strings.Contains(text, "--yes") {
		t.Errorf("the command beside a replay does not do it: %s", text)
	}
	if calls := a.Calls(); len(calls) != 2 || !strings.Contains(calls[1], `"dry_run":false`) || !strings.Contains(calls[1], `"rate":50`) || !strings.Contains(calls[1], `"reason":"the ledger is back"`) {
		t.Errorf("the calls are %q", calls)
	}
}

// What a replay leaves alone because nobody would deliver it stands beside what it does.
func TestReplayToNobody(t *testing.T) {
	d := dashboard.New(dashboard.Options{
		API:   answering(&dashboardtest.API{World: dashboardtest.Trouble}, "/replay", api.ReplayResult{DryRun: true, Nowhere: map[string]int{"old": 2, "crm": 1}}),
		Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return dashboardtest.Now },
	})
	text := serve(d, request("POST", "/replay", url.Values{"state": {"dead"}})).Body.String()
	for _, want := range []string{"1\u00a0delivery to crm is left alone, because no gateway delivers there.", "2\u00a0deliveries to old are left alone"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not on the page: %s", want, text)
		}
	}
}

// A form says when it was made, wherever it begins: sent twice it delivers once. What came of a replay with force that failed is not
// known, and nobody is told that nothing was done.
func TestReplayFormIsSentTwice(t *testing.T) {
	a := &dashboardtest.API{World: dashboardtest.Trouble}
	d := dashboardtest.Dashboard(a)
	made := regexp.MustCompile(`name="made" value="([^"]+)"`)
	found := made.FindStringSubmatch(serve(d, request("GET", "/events/924305118331207681", nil)).Body.String())
	if found == nil || found[1] != "2026-11-22T14:30:00Z" {
		t.Fatalf("the form of an event says %q", found)
	}
	form := url.Values{"step": {"do"}, "reason": {"mended"}, "force": {"true"}, "made": {"2026-11-22T14:29:00.5Z"}}
	serve(d, request("POST", "/events/924305118331207681/replay", form))
	if calls := a.Calls(); !strings.Contains(calls[0], `"done_before":"2026-11-22T14:29:00.5Z"`) {
		t.Errorf("the calls are %q", calls)
	}
	for name, c := range map[string]struct {
		status        int
		force, soFar  string
		title, has    string
		path, without string
	}{
		"one, unknown":  {503, "true", "", "Not known whether it is delivered again", `href="/events/924305118331207681">Look at the event first`, "/events/924305118331207681/replay", "Not delivered again"},
		"one, refused":  {409, "true", "", "Not delivered again", "it says so", "/events/924305118331207681/replay", "Look at the event"},
		"many, unknown": {503, "true", `{"deliveries":7,"cursor":"x"}`, "Not known whether it is delivered again", "7\u00a0deliveries begin", "/replay", "may be delivered twice"},
		"many, stopped": {409, "", `{"deliveries":7,"cursor":"x"}`, "Stopped", "7\u00a0deliveries begin", "/replay", "Not delivered again"},
		"many, refused": {422, "", "", "Not delivered again", "it says so", "/replay", "Stopped"},
	} {
		failing := dashboard.New(dashboard.Options{
			API: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_ = json.NewEncoder(w).Encode(huma.ErrorModel{Status: c.status, Detail: "it says so"})
			}),
			Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return dashboardtest.Now },
		})
		form := url.Values{"step": {"do"}, "reason": {"mended"}, "force": {c.force}, "made": {"2026-11-22T14:29:00Z"}}
		if c.soFar != "" {
			form.Set("cursor", "x")
			form.Set("so_far", c.soFar)
		}
		text := serve(failing, request("POST", c.path, form)).Body.String()
		if !strings.Contains(text, "<h1>"+c.title+"</h1>") || !strings.Contains(text, c.has) || strings.Contains(text, c.without) {
			t.Errorf("%s: %s", name, text)
		}
		if c.soFar != "" && made.FindStringSubmatch(text) == nil {
			t.Errorf("%s: the form that goes on has forgotten when it began", name)
		}
	}
}

// What was mistyped in the form is there to be corrected, with the rest of the form, and nothing is said of deliveries.
func TestReplayFormIsMistyped(t *testing.T) {
	for rate, c := range map[string]struct{ says, calls string }{
		"50/s": {"rate: write how many become due in a second", ""}, "NaN": {"rate: write how many", ""},
		"0.001": {"rate: this is slower than", "/api/v1/replay"},
	} {
		var asked string
		d := dashboard.New(dashboard.Options{
			API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked = r.URL.Path
				w.WriteHeader(http.StatusUnprocessableEntity)
				_ = json.NewEncoder(w).Encode(huma.ErrorModel{Status: 422, Detail: "validation failed", Errors: []*huma.ErrorDetail{{Location: "body.rate", Message: "this is slower than one in a hundred seconds"}}})
			}),
			Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return dashboardtest.Now },
		})
		form := url.Values{"step": {"do"}, "source": {"billing"}, "state": {"dead"}, "reason": {"mended"}, "rate": {rate}, "made": {"2026-11-22T14:29:00Z"}}
		text := serve(d, request("POST", "/replay", form)).Body.String()
		if got := formOf(t, text, "do"); !reflect.DeepEqual(got, form) {
			t.Errorf("%s: the form has %v, want %v", rate, got, form)
		}
		if !strings.Contains(text, "<h1>Not delivered again</h1>") || !strings.Contains(text, c.says) || strings.Contains(text, "begin again") || asked != c.calls {
			t.Errorf("%s: asked is %q, and the page says %s", rate, asked, text)
		}
	}
}

// A replay of which the answer is lost is not said to have done nothing, whether or not the API may be asked again.
func TestReplayWhoseAnswerIsLost(t *testing.T) {
	for path, form := range map[string]url.Values{
		"/events/924305118331207681/replay": {}, "/replay": {"source": {"billing"}}, "/replay?goes-on": {"source": {"billing"}, "cursor": {"x"}, "so_far": {`{"deliveries":7}`}},
	} {
		told := &dashboardtest.API{World: dashboardtest.Trouble}
		d := dashboard.New(dashboard.Options{
			API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				told.ServeHTTP(httptest.NewRecorder(), r)
				w.Header().Set("Retry-After", "1")
				w.WriteHeader(http.StatusServiceUnavailable)
				_ = json.NewEncoder(w).Encode(huma.ErrorModel{Status: 503, Detail: "it is not known"})
			}),
			Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return dashboardtest.Now },
		})
		for step, title := range map[string]string{"do": "Not known whether it is delivered again", "count": "Deliver again?"} {
			form.Set("step", step)
			form.Set("reason", "mended")
			text := serve(d, request("POST", path, form)).Body.String()
			if !strings.Contains(text, "<h1>"+title+"</h1>") || strings.Contains(text, "0\u00a0deliveries") || len(told.Calls()) == 0 {
				t.Errorf("%s, %s: after %q the page says %s", path, step, told.Calls(), text)
			}
		}
	}
}

// A form that cannot be read, as one that is too long, asks for nothing: without its fields it would be about all events. What a
// replay that goes on carries is as long however many bodies are gone.
func TestReplayFormThatCannotBeRead(t *testing.T) {
	for _, path := range []string{"/replay", "/events/924305118331207681/replay"} {
		a := &dashboardtest.API{World: dashboardtest.Trouble}
		form := url.Values{"step": {"do"}, "reason": {"mended"}, "source": {"billing"}, "so_far": {strings.Repeat("x", frame.MaxForm)}}
		if w := serve(dashboardtest.Dashboard(a), request("POST", path, form)); w.Code != http.StatusBadRequest || len(a.Calls()) != 0 {
			t.Errorf("%s is answered %d after %q", path, w.Code, a.Calls())
		}
	}
	part := api.ReplayResult{Events: 500, Cursor: "x", Gone: 1, GoneEvents: []api.GoneEvent{{ID: "924305118331207681", Source: "billing", Key: "evt_gone"}}}
	d := dashboard.New(dashboard.Options{
		API: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if part.Events == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
			_ = json.NewEncoder(w).Encode(part)
			part = api.ReplayResult{}
		}),
		Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return dashboardtest.Now },
	})
	text := serve(d, request("POST", "/replay", url.Values{"source": {"billing"}})).Body.String()
	if !strings.Contains(text, `name="so_far" value="{&#34;events&#34;:500`) || strings.Contains(text, "evt_gone") {
		t.Errorf("the form that goes on: %s", text)
	}
}

// What has no delivery on record is not done everywhere: its form says why, and offers what is configured.
func TestEventThatWentNowhere(t *testing.T) {
	done := api.Event{ID: "924305118331207681", Source: "billing", State: "done", HasBody: true, ReceivedAt: dashboardtest.Now}
	unrouted, dropped, delivered := done, done, done
	unrouted.Unrouted, dropped.LogicalDuplicateOf = true, "924305118331207400"
	delivered.Unrouted, delivered.Deliveries = true, []api.Delivery{{Destination: "mail", State: "done"}}
	for why, event := range map[string]api.Event{
		"no route wanted it, so it was delivered nowhere": unrouted, "the same change had come as event 924305118331207400": dropped,
		"where it was delivered is not kept any more": done, "": delivered,
	} {
		d := dashboard.New(dashboard.Options{
			API:   answering(&dashboardtest.API{World: dashboardtest.Trouble}, "/events/924305118331207681", api.Detail{Event: event}),
			Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return dashboardtest.Now },
		})
		text := serve(d, request("GET", "/events/924305118331207681", nil)).Body.String()
		for part, want := range map[string]bool{"No delivery of it is on record: " + why + ". Delivering it": why != "", "<option>ledger</option>": why != "", `<input type="hidden" name="force" value="true">`: why != "", "It is done everywhere": why == "", ">ledger, where it never was</option>": why == "", ">mail, where it never was</option>": false} {
			if strings.Contains(text, part) != want {
				t.Errorf("it was delivered: %t (%s), and %q is there: %t", why == "", why, part, !want)
			}
		}
	}
}

// What no route wanted is found, and delivered to a destination that is named; the command does the same.
func TestWhatNoRouteWanted(t *testing.T) {
	a := &dashboardtest.API{World: dashboardtest.Trouble}
	d := dashboardtest.Dashboard(a)
	list := serve(d, request("GET", "/events?unrouted=true&source=billing", nil)).Body.String()
	for _, want := range []string{
		"hookonce events list --source billing --unrouted", `<input type="hidden" name="unrouted" value="true">`, `<select id="to" name="destination" required>`,
		`<input type="hidden" name="force" value="true">`, "All events that no route wanted with source billing, not just those on this page",
	} {
		if !strings.Contains(list, want) {
			t.Errorf("the list has no %s", want)
		}
	}
	form := url.Values{"unrouted": {"true"}, "source": {"billing"}, "force": {"true"}, "destination": {"ledger"}}
	counted := serve(d, request("POST", "/replay", form)).Body.String()
	if !strings.Contains(counted, "All events that no route wanted with source billing, to ledger.") || !strings.Contains(counted, `name="unrouted" value="true"`) ||
		!strings.Contains(counted, "events replay --source billing --destination ledger --unrouted --force") {
		t.Errorf("the page says %s", counted)
	}
	form.Set("step", "do")
	form.Set("reason", "the route had a slip")
	form.Set("made", regexp.MustCompile(`name="made" value="([^"]+)"`).FindStringSubmatch(counted)[1])
	done := serve(d, request("POST", "/replay", form))
	if text := done.Body.String(); done.Code != http.StatusOK || !strings.Contains(text, "<h1>Delivered again</h1>") || !strings.Contains(text, "All events that no route wanted with source billing, to ledger.") {
		t.Errorf("the page says %d %s", done.Code, text)
	}
	const call = `/api/v1/replay {"done_before":"2026-11-22T14:30:00Z","dry_run":%s,"filter":{"destination":"ledger","source":"billing","unrouted":true},"force":true,"rate":0,"reason":"%s"}`
	if calls, want := a.Calls(), []string{fmt.Sprintf(call, "true", "counting"), fmt.Sprintf(call, "false", "the route had a slip")}; !slices.Equal(calls, want) {
		t.Errorf("the calls are %q, want %q", calls, want)
	}
}

// A form has those delivered that the list shows. Of what no route wanted it has delivered what was not at the destination yet,
// whatever else became of it: where the list shows others there is no form, and a way to the list that has one.
func TestFormIsAboutTheList(t *testing.T) {
	d := dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Trouble})
	for query, want := range map[string]string{
		"":                              "<p>All events whose deliveries are failed or dead, not just those on this page.",
		"state=dead":                    "<p>All events with state dead, not just",
		"state=done":                    "<p>All events with state done, and what is done of those that have more open, not just",
		"state=done&destination=ledger": "<p>All events with state done, destination ledger, not just",
		"unrouted=true":                 "<p>All events that no route wanted, not just those on this page, to a destination where they were not delivered yet.",
		"unrouted=1&type=invoice.*":     "<p>All events that no route wanted with type invoice.*, not just those on this page, to a destination",
		"unrouted=true&state=failed":    "<p>All events that no route wanted with state failed, not just those on this page. They",
		"unrouted=true&error=dns&destination=mail":  "<p>All events that no route wanted with destination mail, error dns whose deliveries are failed or dead, not just",
		"unrouted=true&destination=ledger":          `<a href="/events?unrouted=true">Take them out`,
		"unrouted=true&state=done&source=shop":      `<a href="/events?source=shop&amp;unrouted=true">Take them out`,
		"unrouted=true&state=done&destination=mail": `<a href="/events?unrouted=true">Take them out`,
	} {
		text := serve(d, request("GET", "/events?"+query, nil)).Body.String()
		_, panel, _ := strings.Cut(text, `class="panel"`)
		form := strings.Contains(text, `<form method="post" action="/replay"`)
		if !strings.Contains(panel, want) || form == strings.Contains(want, "Take them out") || strings.Contains(panel, "selected") {
			t.Errorf("%s: a form: %t, %s; want %s", query, form, panel, want)
		}
	}
}

// What is neither yes nor no is refused: were it dropped, more would be chosen than somebody asks for.
func TestUnroutedIsYesOrNo(t *testing.T) {
	told := &dashboardtest.API{World: dashboardtest.Trouble}
	var asked string
	d := dashboard.New(dashboard.Options{
		API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/api/v1/events" {
				asked = r.URL.Query().Get("unrouted")
			}
			told.ServeHTTP(w, r)
		}),
		Guard: api.NewGuard(nil, api.GuardOptions{}),
	})
	for text, want := range map[string]string{
		"": "", "false": "", "0": "", "true": "true", "1": "true", " True ": "true", "yes": `"yes"`, "on": `"on"`, "perhaps": `"perhaps"`,
	} {
		asked = "nothing"
		list := serve(d, request("GET", "/events?unrouted="+url.QueryEscape(text), nil)).Body.String()
		if asked != strings.Trim(want, `"`) {
			t.Errorf("unrouted=%s: the list is asked for %q", text, asked)
		}
		if yes := want == "true"; strings.Contains(list, "--unrouted<") != yes || strings.Contains(list, "All events that no route wanted") != yes ||
			strings.Contains(list, `<option value="true" selected>no route did`) != yes {
			t.Errorf("unrouted=%s: the page says %s", text, list)
		}
		serve(d, request("POST", "/replay", url.Values{"unrouted": {text}, "force": {"true"}, "destination": {"ledger"}}))
		filter := `"filter":{"destination":"ledger"},`
		if want != "" {
			filter = `"filter":{"destination":"ledger","unrouted":` + want + `},`
		}
		if calls := told.Calls(); !strings.Contains(calls[len(calls)-1], filter) {
			t.Errorf("unrouted=%s: the replay is asked for with %s, want %s", text, calls[len(calls)-1], filter)
		}
	}
}

// What the API can choose events by, pages can: a field that they dropped would have more delivered again than is shown.
func TestFilterIsTheAPIs(t *testing.T) {
	d := dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Trouble})
	for i, filter := 0, reflect.TypeFor[api.Filter](); i < filter.NumField(); i++ {
		field := filter.Field(i)
		name, value := field.Tag.Get("query"), "1h"
		if field.Type.Kind() == reflect.Bool {
			value = "true"
		}
		text := serve(d, request("GET", "/events?"+name+"="+value, nil)).Body.String()
		if !strings.Contains(text, " --"+name) || !strings.Contains(text, `<input type="hidden" name="`+name+`"`) || !strings.Contains(text, ` id="f-`+name+`"`) {
			t.Errorf("%s is not on the page of events", name)
		}
	}
}

// What is looked at is shown as text, for a reason, to who may look, and kept by no browser.
func TestLookAtPayload(t *testing.T) {
	a := &dashboardtest.API{World: dashboardtest.Hostile}
	d := dashboardtest.Dashboard(a)
	for _, part := range []string{api.PartBody, api.PartHeaders} {
		w := serve(d, request("POST", "/events/924305118331207681/payload", url.Values{"part": {part}, "reason": {"ticket 4711"}}))
		if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" || !strings.Contains(w.Body.String(), "owned") {
			t.Errorf("%s: %d %v", part, w.Code, w.Header())
		}
		for _, tag := range shape(t, w.Body.String()) {
			if strings.HasPrefix(tag, "img") || strings.Contains(tag, "onerror") {
				t.Errorf("%s: there is %s", part, tag)
			}
		}
	}
	if calls := a.Calls(); len(calls) != 2 || calls[0] != `/api/v1/events/924305118331207681/payload {"part":"body","reason":"ticket 4711"}` {
		t.Errorf("the calls are %q", calls)
	}
	const reader, looker = "a-fake-token-for-reading", "a-fake-token-for-looking"
	d = dashboardtest.Dashboard(a, api.Token{Name: "r", Secret: reader, Role: api.Read}, api.Token{Name: "l", Secret: looker, Role: api.Read, Payloads: true})
	for token, status := range map[string]int{reader: http.StatusForbidden, looker: http.StatusOK} {
		r := request("POST", "/events/924305118331207681/payload", url.Values{"part": {"body"}, "reason": {"x"}})
		r.AddCookie(serve(d, request("POST", "/login", url.Values{"token": {token}})).Result().Cookies()[0])
		if w := serve(d, r); w.Code != status {
			t.Errorf("%s: %d", token, w.Code)
		}
	}
}

// The page says that what it shows is told to nobody, where alerts are switched off.
func TestAlertsThatAreSwitchedOff(t *testing.T) {
	for disabled, want := range map[bool]int{false: 0, true: 1} {
		w := serve(dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Trouble, Disabled: disabled}), request("GET", "/alerts", nil))
		if strings.Count(w.Body.String(), "<code>alerts.enabled</code> is false") != want {
			t.Errorf("switched off: %t, and the page says so: %t", disabled, want == 0)
		}
	}
}

// While the store is away the page has what is known of it, and the form to acknowledge that, without what happened before.
func TestAlertsWithoutTheirHistory(t *testing.T) {
	told := &dashboardtest.API{World: dashboardtest.Trouble}
	for status, want := range map[int]int{http.StatusServiceUnavailable: http.StatusOK, http.StatusUnprocessableEntity: http.StatusUnprocessableEntity} {
		d := dashboard.New(dashboard.Options{
			API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != api.Base+"/alerts/history" {
					told.ServeHTTP(w, r)
					return
				}
				w.WriteHeader(status)
				_ = json.NewEncoder(w).Encode(huma.ErrorModel{Status: status, Detail: "the store took too long"})
			}),
			Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return dashboardtest.Now },
		})
		w := serve(d, request("GET", "/alerts", nil))
		if w.Code != want {
			t.Errorf("the history is answered %d, the page %d", status, w.Code)
		}
		for _, part := range []string{`action="/alerts/silence"`, "What happened cannot be read now", "the store took too long"} {
			if want == http.StatusOK && !strings.Contains(w.Body.String(), part) {
				t.Errorf("the page lacks %q", part)
			}
		}
		if strings.Contains(w.Body.String(), "Nothing happened yet") {
			t.Error("it says that nothing happened")
		}
	}
}

// Each form of the page about alerts asks the API for what it says, with the reason, and needs no script.
func TestAlertForms(t *testing.T) {
	a := &dashboardtest.API{World: dashboardtest.Trouble}
	d := dashboardtest.Dashboard(a)
	for _, c := range []struct {
		path  string
		form  url.Values
		calls []string
		code  int
		shows string
	}{
		{"/alerts/acknowledge", url.Values{"alert": {"destination_failing/ledger"}, "reason": {" failing over "}}, []string{`/api/v1/alerts/acknowledge {"alert":"destination_failing/ledger","reason":"failing over"}`}, 303, ""},
		{"/alerts/silence", url.Values{"alert": {"paused/mail"}, "for": {"4h"}, "reason": {"moving"}}, []string{`/api/v1/alerts/silences {"alert":"paused/mail","reason":"moving","until":"2026-11-22T18:30:00Z"}`}, 303, ""},
		{"/alerts/silence", url.Values{"alert": {"paused/mail"}, "for": {"long"}, "reason": {"moving"}}, nil, 422, "for: write for how long"},
		{"/alerts/unsilence", url.Values{"id": {"7"}, "reason": {"moved"}}, []string{`/api/v1/alerts/silences/7/end {"reason":"moved"}`}, 303, ""},
		{"/sources/billing/dismiss", url.Values{"key": {"evt_1"}, "reason": {"a test"}}, []string{`/api/v1/sources/billing/missing/dismiss {"keys":["evt_1"],"reason":"a test"}`}, 303, ""},
		{"/sources/billing/dismiss", url.Values{"all": {"1"}, "made": {"2026-11-22T14:29:00.5Z"}, "reason": {"a test"}}, []string{`/api/v1/sources/billing/missing/dismiss {"all":true,"found_before":"2026-11-22T14:29:00.5Z","reason":"a test"}`}, 303, ""},
		{"/alerts/test", url.Values{"channel": {"team"}, "reason": {"test"}}, []string{`/api/v1/alerts/channels/team/test {"reason":"test"}`}, 200, "could not be told"},
	} {
		before := len(a.Calls())
		w := serve(d, request("POST", c.path, c.form))
		if calls := a.Calls()[before:]; !slices.Equal(calls, c.calls) {
			t.Errorf("%s asks for %q, want %q", c.path, calls, c.calls)
		}
		to, _, _ := strings.Cut(w.Header().Get("Location"), "?")
		if w.Code != c.code || !strings.Contains(w.Body.String(), c.shows) || w.Code == 303 && !strings.HasPrefix(c.path, to) {
			t.Errorf("%s: %d %s\n%s", c.path, w.Code, w.Header().Get("Location"), w.Body)
		}
	}
}

// The form that dismisses all is about what its page could show, and the page after it says how much that was.
func TestDismissAllIsAboutThePage(t *testing.T) {
	a := &dashboardtest.API{World: dashboardtest.Trouble}
	d := dashboardtest.Dashboard(a)
	text := serve(d, request("GET", "/sources/billing", nil)).Body.String()
	_, form, _ := strings.Cut(text, `<input type="hidden" name="all" value="1">`)
	if form, _, _ = strings.Cut(form, "</form>"); !strings.Contains(form, `name="made" value="2026-11-22T14:29:00Z"`) || strings.Contains(text, "dismissed.") {
		t.Errorf("the form of the page is %s", form)
	}
	w := serve(d, request("POST", "/sources/billing/dismiss", url.Values{"all": {"1"}, "made": {"2026-11-22T14:29:00Z"}, "reason": {"a test"}}))
	if text := serve(d, request("GET", w.Header().Get("Location"), nil)).Body.String(); !strings.Contains(text, "1\u00a0event is dismissed.") {
		t.Errorf("the page after it is %s", text)
	}
}

// The button beside each alert leads to a page that takes what its command says: those of the letters are those of all rules.
func TestNextStepsLeadSomewhere(t *testing.T) {
	letters, err := filepath.Glob("../alerting/letter/testdata/*.txt")
	if err != nil || len(letters) == 0 {
		t.Fatalf("there are no letters: %v", err)
	}
	var text []byte
	for _, name := range letters {
		letter, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, letter...)
	}
	told := &dashboardtest.API{World: dashboardtest.Trouble}
	var now api.Overview
	commands := map[string]bool{}
	for _, line := range regexp.MustCompile(`(?m)^Type: (.+)$`).FindAllStringSubmatch(string(text), -1) {
		if !commands[line[1]] {
			commands[line[1]] = true
			now.Verdict.Alerts = append(now.Verdict.Alerts, alert.Alert{Subject: "billing", Action: alert.Action{Label: "Next", Command: line[1]}})
		}
	}
	d := dashboard.New(dashboard.Options{API: answering(told, "/overview", now), Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return dashboardtest.Now }})
	buttons := regexp.MustCompile(`<p class="do"><a class="button" href="([^"]+)">`).FindAllStringSubmatch(serve(d, request("GET", "/", nil)).Body.String(), -1)
	if len(buttons) != len(commands) {
		t.Fatalf("%d buttons for %d commands", len(buttons), len(commands))
	}
	judging := behind(journaltest.NewMemory(), "billing")
	for i, b := range buttons {
		address := html.UnescapeString(b[1])
		d := dashboardtest.Dashboard(told)
		if strings.HasPrefix(address, "/events?") {
			d = judging // which knows what a filter may be
		}
		if w := serve(d, request("GET", address, nil)); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "cannot be used") {
			t.Errorf("%s leads to %s, which is answered %d: %s", now.Verdict.Alerts[i].Action.Command, address, w.Code, w.Body)
		}
	}
}

// answering returns an API that answers one question with this, and all others as another one does.
func answering(told http.Handler, path string, answer any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != api.Base+path {
			told.ServeHTTP(w, r)
			return
		}
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// folded returns what can be opened in a page, by its id, and complains of ids that are none or
// that two elements have.
func folded(t *testing.T, page string) map[string]string {
	t.Helper()
	tree, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	found, ids := map[string]string{}, map[string]bool{}
	for n := range tree.Descendants() {
		for _, a := range n.Attr {
			if a.Key != "id" {
				continue
			}
			if ids[a.Val] || a.Val == "" || strings.ContainsAny(a.Val, " \t\n\f\r") {
				t.Errorf("<%s> has the id %q, which is no id or not its own", n.Data, a.Val)
			}
			ids[a.Val] = true
			if n.Data == "details" {
				var text strings.Builder
				if err := html.Render(&text, n); err != nil {
					t.Fatal(err)
				}
				found[a.Val] = text.String()
			}
		}
	}
	return found
}

// What somebody has opened is about the same when the page is refreshed, whatever came above it
// meanwhile: the script opens again what has the same id, and whoever sends the form in it means
// what it was about before.
func TestWhatIsOpenStaysWhatItWas(t *testing.T) {
	at := dashboardtest.Now
	alerts := func(names ...string) (list api.AlertList) {
		for _, name := range names {
			list.Alerts = append(list.Alerts, api.AlertState{Name: name, State: "firing", Severity: "ticket", Headline: name, Since: at})
		}
		return list
	}
	missing := func(all ...api.MissingEvent) api.MissingList { return api.MissingList{Events: all} }
	event := func(all ...api.Attempt) api.Detail {
		return api.Detail{Event: api.Event{ID: "924305118331207681", Source: "billing", State: "failed", ReceivedAt: at}, Attempts: all}
	}
	failures := func(all ...api.FailureSample) api.FailureList {
		return api.FailureList{Open: []api.FailureGroup{{Destination: "ledger", Kind: "status", Status: 500, Count: 9, Since: at, Latest: at, Samples: all}}}
	}
	attempt := api.Attempt{Destination: "ledger", Number: 1, Outcome: "failed", Answer: "it is down", StartedAt: at.Add(time.Second)}
	earlier := api.Attempt{Destination: "mail", Number: 1, Outcome: "failed", Answer: "it hangs", StartedAt: at}
	sample, newer := api.FailureSample{ID: "1", Source: "billing", State: "failed", Answer: "it is down"}, api.FailureSample{ID: "2", Source: "billing", State: "failed", Answer: "it hangs"}
	for page, c := range map[string]struct {
		path        string
		first, then any
	}{
		"/alerts":                            {"/alerts", alerts("a rule/<b>"), alerts("store_away", "a rule/b", "a rule/<b>")},
		"/sources/billing":                   {"/sources/billing/missing", missing(api.MissingEvent{Key: "evt 1"}), missing(api.MissingEvent{Entry: "evt 1"}, api.MissingEvent{Key: "all"}, api.MissingEvent{Key: "why"}, api.MissingEvent{Key: "why-evt"}, api.MissingEvent{Key: "evt 1"})},
		"/events/924305118331207681":         {"/events/924305118331207681", event(attempt), event(earlier, attempt)},
		"/failures/ledger/status?status=500": {"/failures", failures(sample), failures(newer, sample)},
	} {
		show := func(answer any) map[string]string {
			d := dashboard.New(dashboard.Options{
				API:   answering(&dashboardtest.API{World: dashboardtest.Trouble}, c.path, answer),
				Guard: api.NewGuard(nil, api.GuardOptions{}), Now: func() time.Time { return at },
			})
			w := serve(d, request("GET", page, nil))
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", page, w.Code, w.Body)
			}
			return folded(t, w.Body.String())
		}
		before, after := show(c.first), show(c.then)
		if len(before) == 0 || len(after) <= len(before) {
			t.Errorf("%s: %d can be opened, and then %d", page, len(before), len(after))
		}
		for id, was := range before {
			if after[id] != was {
				t.Errorf("%s: what is open as %s was %s, and is then %s", page, id, was, after[id])
			}
		}
	}
}

// Each page has a key of its own, also where the library's pages are shown: the script goes to the
// first that has it.
func TestEachPageHasItsKey(t *testing.T) {
	d := dashboard.New(dashboard.Options{API: &dashboardtest.API{World: dashboardtest.Calm}, Guard: api.NewGuard(nil, api.GuardOptions{}), Library: http.NotFoundHandler()})
	body := serve(d, request("GET", "/sources", nil)).Body.String()
	places := regexp.MustCompile(`data-key="(\w)"[^>]*>([^<]+)</a>`).FindAllStringSubmatch(body, -1)
	has := map[string]string{}
	for _, p := range places {
		if other := has[p[1]]; other != "" {
			t.Errorf("%s and %s have the key %s", other, p[2], p[1])
		}
		has[p[1]] = p[2]
	}
	if n := strings.Count(body, "data-key="); n != len(places) || !strings.Contains(body, ">Library</a>") {
		t.Errorf("%d places have a key of one letter, of %d: %v", len(places), n, has)
	}
}
