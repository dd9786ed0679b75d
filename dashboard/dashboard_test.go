package dashboard_test

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"
	_ "modernc.org/sqlite"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/dashboard"
	"github.com/hookonce/hookonce/internal/dashboard/dashboardtest"
	"github.com/hookonce/hookonce/schema"
	"github.com/hookonce/hookonce/sqlstore"
)

var update = flag.Bool("update", false, "write the golden files")

// pages are all of them, by the name of their golden file.
var pages = map[string]string{
	"now": "/", "claims": "/claims", "stuck": "/claims?state=stuck", "wrong": "/claims?state=done", "claim": "/claim?source=shop&key=evt_stuck", "failed": "/claim?source=billing&key=evt_failed",
	"outbox": "/outbox", "dead": "/outbox?show=dead", "effect": "/effect?id=7", "guards": "/guards", "states": "/guards?kind=states", "reconciliations": "/reconciliations",
}

func request(method, path string, form url.Values) *http.Request {
	r := httptest.NewRequest(method, path, strings.NewReader(form.Encode()))
	r.Host, r.RemoteAddr = "admin.example", "203.0.113.7:50000"
	r.Header.Set("Accept", "text/html")
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://admin.example")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return r
}

func serve(d http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	d.ServeHTTP(w, r)
	return w
}

// Every page is what it was: see what a change changed, and write it with -update.
func TestGolden(t *testing.T) {
	for _, world := range []dashboardtest.World{dashboardtest.Calm, dashboardtest.Trouble} {
		d := dashboardtest.Library(&dashboardtest.Store{World: world}, world == dashboardtest.Trouble)
		for name, path := range pages {
			w := serve(d, request("GET", path, nil))
			if w.Code != http.StatusOK {
				t.Fatalf("%s: %d %s", path, w.Code, w.Body)
			}
			got := regexp.MustCompile(`(assets/\w+)\.[0-9a-f]{10}`).ReplaceAll(w.Body.Bytes(), []byte("$1.HASH"))
			got = regexp.MustCompile(`\n\s*\n+`).ReplaceAll(got, []byte("\n"))
			file := filepath.Join("testdata", string(world)+"-"+name+".html")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is different (%v); run go test ./dashboard -update and look at what changed", file, err)
			}
		}
	}
}

// shape returns the elements of a page with their attributes' names, and complains of addresses that lead elsewhere.
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
			if (a.Key == "href" || a.Key == "src" || a.Key == "action") && !strings.HasPrefix(a.Val, "./") && !strings.HasPrefix(a.Val, "../") && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("the address %q of <%s> is not relative", a.Val, n.Data)
			}
			if a.Key == "style" || strings.HasPrefix(a.Key, "on") {
				t.Errorf("<%s> has %s, which the policy refuses", n.Data, a.Key)
			}
		}
		tags = append(tags, tag)
	}
	return tags
}

// What senders and handlers write is text in every page: no element, attribute or address comes of it.
func TestHostileTextsStayTexts(t *testing.T) {
	hostile, harmless := dashboardtest.Library(&dashboardtest.Store{World: dashboardtest.Hostile}, true), dashboardtest.Library(&dashboardtest.Store{World: dashboardtest.Trouble}, true)
	shown := 0
	for name, path := range pages {
		page := serve(hostile, request("GET", path, nil)).Body.String()
		if got, want := shape(t, page), shape(t, serve(harmless, request("GET", path, nil)).Body.String()); !slices.Equal(got, want) {
			t.Errorf("%s has other elements than with harmless texts: %d and not %d", name, len(got), len(want))
		}
		shown += strings.Count(page, "owned")
	}
	if shown < 20 {
		t.Errorf("the attack is in the pages %d times only", shown)
	}
	for _, path := range []string{"/claims?key=" + url.QueryEscape(dashboardtest.Attack), "/claims?older=" + url.QueryEscape(dashboardtest.Attack), "/guards?from=" + url.QueryEscape(dashboardtest.Attack), "/outbox?name=" + url.QueryEscape(dashboardtest.Attack)} {
		for _, tag := range shape(t, serve(harmless, request("GET", path, nil)).Body.String()) {
			if strings.HasPrefix(tag, "img") {
				t.Errorf("%s: there is %s", path, tag)
			}
		}
	}
}

// Every page is its own JSON, and lets nothing in that is not ours.
func TestPagesAreData(t *testing.T) {
	d := dashboardtest.Library(&dashboardtest.Store{World: dashboardtest.Trouble}, false)
	for name, path := range pages {
		r := request("GET", path, nil)
		r.Header.Set("Accept", "application/json")
		w := serve(d, r)
		var data map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &data); err != nil || len(data) == 0 {
			t.Errorf("%s: %v %.200s", name, err, w.Body)
		}
		for field, want := range map[string]string{"Content-Security-Policy": "default-src 'none'", "X-Frame-Options": "DENY", "Cache-Control": "no-store"} {
			if !strings.HasPrefix(w.Header().Get(field), want) {
				t.Errorf("%s: %s is %q", name, field, w.Header().Get(field))
			}
		}
	}
}

// Who is not let in sees nothing; who may only look changes nothing, and neither does a page of another site.
func TestWhoMayLookAndAct(t *testing.T) {
	form := url.Values{"id": {"7"}, "reason": {"the mailbox is back"}}
	cross := func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }
	old := func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", "https://evil.example")
	}
	for name, c := range map[string]struct {
		act    bool
		form   url.Values
		change func(*http.Request)
		status int
	}{
		"who may act":                    {true, form, nil, 303},
		"who may look":                   {false, form, nil, 403},
		"a page of another site":         {true, form, cross, 403},
		"an old browser on another site": {true, form, old, 403},
		"without a reason":               {true, url.Values{"id": {"7"}}, nil, 422},
		"with a reason that is no text":  {true, url.Values{"id": {"7"}, "reason": {"why\x00"}}, nil, 422},
		"of an effect that is not":       {true, url.Values{"id": {"99"}, "reason": {"why"}}, nil, 404},
	} {
		store := &dashboardtest.Store{World: dashboardtest.Trouble}
		r := request("POST", "/effect", c.form)
		if c.change != nil {
			c.change(r)
		}
		w := serve(dashboardtest.Library(store, c.act), r)
		if acted := len(store.Calls()) > 0; w.Code != c.status || acted != (c.status == 303) {
			t.Errorf("%s: %d, acted %t", name, w.Code, acted)
		}
	}
	store := &dashboardtest.Store{World: dashboardtest.Trouble}
	nobody := dashboard.Handler(store, func(*http.Request) (string, bool) { return "", false }, dashboard.WithActions(func(*http.Request) bool { return true }))
	for _, r := range []*http.Request{request("GET", "/", nil), request("GET", "/claims", nil), request("POST", "/effect", form), request("GET", "/nothing", nil)} {
		if w := serve(nobody, r); w.Code != http.StatusForbidden || strings.Contains(w.Body.String(), "evt_") || strings.Contains(w.Body.String(), "<nav") {
			t.Errorf("nobody at %s: %d %s", r.URL, w.Code, w.Body)
		}
	}
	if len(store.Calls()) > 0 {
		t.Errorf("nobody changed %q", store.Calls())
	}
	def := dashboard.Handler(store, func(*http.Request) (string, bool) { return "ann", true })
	if w := serve(def, request("POST", "/effect", form)); w.Code != http.StatusForbidden || len(store.Calls()) > 0 {
		t.Errorf("without WithActions: %d, %q", w.Code, store.Calls())
	}
	for name, make := range map[string]func(){
		"no store": func() { dashboard.Handler(nil, dashboard.Local) }, "no guard": func() { dashboard.Handler(store, nil) },
		"no right":  func() { dashboard.Handler(store, dashboard.Local, dashboard.WithActions(nil)) },
		"no record": func() { dashboard.Handler(store, dashboard.Local, dashboard.WithRecord(nil)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			make()
		}()
	}
}

// What somebody does is on record before it is done, and is not done if it cannot be. What is refused leaves no record.
func TestChangesAreOnRecord(t *testing.T) {
	effect, claim := url.Values{"id": {"7"}, "reason": {"the mailbox is back"}}, url.Values{"source": {"shop"}, "key": {"evt_stuck"}, "attempt": {"2"}, "reason": {"its process died"}}
	for path, c := range map[string]struct {
		form    url.Values
		refused url.Values // there is nothing to do
		want    dashboard.Change
	}{
		"/effect": {effect, url.Values{"id": {"8"}, "reason": {"why"}},
			dashboard.Change{By: "ann", Reason: "the mailbox is back", Action: dashboard.Redrive, What: "effect 7, mail.receipt, of evt_dead from billing"}},
		"/claim": {claim, url.Values{"source": {"shop"}, "key": {"evt_held"}, "attempt": {"2"}, "reason": {"why"}},
			dashboard.Change{By: "ann", Reason: "its process died", Action: dashboard.GiveBack, What: "claim of evt_stuck from shop, attempt 2"}},
	} {
		for _, broken := range []error{nil, errors.New("the disk is full")} {
			var log bytes.Buffer
			var found []dashboard.Change
			store := &dashboardtest.Store{World: dashboardtest.Trouble}
			d := dashboard.Handler(store, func(*http.Request) (string, bool) { return "ann", true }, dashboard.WithActions(func(*http.Request) bool { return true }),
				dashboard.WithClock(func() time.Time { return dashboardtest.Now }), dashboard.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
				dashboard.WithRecord(func(_ context.Context, c dashboard.Change) error {
					if n := len(store.Calls()); n > 0 {
						t.Errorf("%s: it was done before it was on record", path)
					}
					found = append(found, c)
					return broken
				}))
			if w := serve(d, request("POST", path, c.refused)); w.Code != http.StatusConflict || len(found) > 0 {
				t.Errorf("%s: what cannot be done is answered %d, on record %+v", path, w.Code, found)
			}
			w := serve(d, request("POST", path, c.form))
			status, calls := http.StatusSeeOther, 1
			if broken != nil {
				status, calls = http.StatusServiceUnavailable, 0
			}
			if w.Code != status || len(store.Calls()) != calls || !slices.Equal(found, []dashboard.Change{c.want}) {
				t.Errorf("%s, with %v: %d, did %q, on record %+v", path, broken, w.Code, store.Calls(), found)
			}
			for _, want := range []string{"by=ann", string(c.want.Action), c.want.What, c.want.Reason} {
				if !strings.Contains(log.String(), want) {
					t.Errorf("%s, with %v: the log lacks %s: %s", path, broken, want, log.String())
				}
			}
			if strings.Contains(w.Body.String(), "disk") {
				t.Errorf("the visitor reads %s", w.Body)
			}
		}
	}
}

// uncounted is a store whose tallies cannot be read.
type uncounted struct{ *dashboardtest.Store }

func (uncounted) Tallies(context.Context, hookonce.TallyQuery) ([]hookonce.Tally, error) {
	return nil, errors.New("permission denied for table tallies")
}

// That it is not known how much happens is said, and the rest of the page is there.
func TestPageWithoutTallies(t *testing.T) {
	store := &dashboardtest.Store{World: dashboardtest.Trouble}
	for want, c := range map[string]struct {
		store hookonce.Inspector
		log   string
	}{
		"What programs counted cannot be read; the log says why.": {uncounted{store}, "permission denied"},
		"This store does not keep what programs count.":           {struct{ hookonce.Inspector }{store}, ""},
	} {
		var log bytes.Buffer
		d := dashboard.Handler(c.store, func(*http.Request) (string, bool) { return "ann", true },
			dashboard.WithClock(func() time.Time { return dashboardtest.Now }), dashboard.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		w := serve(d, request("GET", "/", nil))
		if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, want) || !strings.Contains(body, "stuck") || strings.Contains(body, "permission") {
			t.Errorf("%d, without %q: %s", w.Code, want, body)
		}
		if (c.log == "") != (log.Len() == 0) || !strings.Contains(log.String(), c.log) {
			t.Errorf("the log has %q, want %q", log.String(), c.log)
		}
		r := request("GET", "/", nil)
		r.Header.Set("Accept", "application/json")
		var now struct {
			Uncounted string
			Happened  []any
			Claims    []any
		}
		if err := json.Unmarshal(serve(d, r).Body.Bytes(), &now); err != nil || now.Uncounted != want || now.Happened == nil || len(now.Happened) > 0 || len(now.Claims) == 0 {
			t.Errorf("to programs it says %+v, %v", now, err)
		}
	}
	if w := serve(dashboardtest.Library(store, false), request("GET", "/", nil)); strings.Contains(w.Body.String(), "the log says why") || strings.Contains(w.Body.String(), "does not keep") {
		t.Error("what is known is said not to be")
	}
}

// standing is a store in which all stands so.
type standing struct {
	*dashboardtest.Store
	claims     []hookonce.ClaimCount
	effects    []hookonce.EffectCount
	reconciled []hookonce.Reconciliation
}

func (s standing) CountClaims(context.Context, int) ([]hookonce.ClaimCount, error) {
	return s.claims, nil
}
func (s standing) CountEffects(context.Context, int) ([]hookonce.EffectCount, error) {
	return s.effects, nil
}
func (s standing) Reconciliations(context.Context, int) ([]hookonce.Reconciliation, error) {
	return s.reconciled, nil
}

// Page one begins with what needs somebody now, wherever it is found, and so do the sentences
// below, however many there are. What a reconciliation found needs somebody for seven days.
func TestTheWorstIsSaidFirst(t *testing.T) {
	const day = 24 * time.Hour
	at := func(age time.Duration) time.Time { return dashboardtest.Now.Add(-age) }
	doubled := func(age time.Duration) []hookonce.Reconciliation {
		return []hookonce.Reconciliation{{At: at(age), Question: hookonce.ReconcileQuestion{Table: "payments"}, Doubled: 2}}
	}
	lost := func(n int64, fault string, age time.Duration) []hookonce.Reconciliation {
		r := hookonce.Reconciliation{At: at(age), Question: hookonce.ReconcileQuestion{Table: "orders"}, Fault: fault}
		if fault == "" {
			r.Lost = &n
		}
		return []hookonce.Reconciliation{r}
	}
	dead := []hookonce.ClaimCount{{Source: "billing", State: hookonce.StateDead, N: 1, Oldest: at(time.Hour)}}
	stuck := []hookonce.ClaimCount{{Source: "billing", State: hookonce.StateProcessing, N: 1, Lapsed: 1, Oldest: at(time.Hour)}}
	late := hookonce.EffectCount{Name: "crm", Open: 1, Late: 1, Due: at(20 * time.Minute)}
	given := make([]hookonce.EffectCount, 30)
	for i := range given {
		given[i] = hookonce.EffectCount{Name: fmt.Sprint("mail.", i), Dead: 1}
	}
	for name, c := range map[string]struct {
		standing
		level, headline, second string
	}{
		"all is well":                {standing{}, "good", "Everything is well", ""},
		"a claim that is dead":       {standing{claims: dead}, "ticket", "1 event was given up.", ""},
		"and an effect that is late": {standing{claims: dead, effects: []hookonce.EffectCount{late}}, "page", "Effects crm are not carried out: the first is due for 20 min", "1 event was given up."},
		"the last of many":           {standing{claims: dead, effects: append(given, late)}, "page", "Effects crm are not carried out", "1 event was given up."},
		"two that need somebody":     {standing{claims: stuck, effects: append(given, late)}, "page", "1 claim is stuck", "Effects crm are not carried out"},
		"doubled six days ago":       {standing{claims: dead, reconciled: doubled(6 * day)}, "page", "In payments, 2 events have more than one effect", "1 event was given up."},
		"doubled seven days ago":     {standing{reconciled: doubled(7 * day)}, "page", "In payments, 2 events have more than one effect", ""},
		"lost six days ago":          {standing{claims: dead, reconciled: lost(40, "", 6*day)}, "ticket", "In orders, 40 events that are done have no effect", "1 event was given up."},
		"lost eight days ago":        {standing{reconciled: lost(40, "", 8*day)}, "good", "Everything is well", ""},
		"nothing is lost":            {standing{reconciled: lost(0, "", day)}, "good", "Everything is well", ""},
		"it could not be compared":   {standing{reconciled: lost(0, "no such column", day)}, "ticket", "In orders, it is not known whether events that are done lack their effects", ""},
		"doubled eight days ago":     {standing{reconciled: doubled(8 * day)}, "good", "Everything is well", ""},
	} {
		c.Store = &dashboardtest.Store{World: dashboardtest.Calm}
		d := dashboard.Handler(c.standing, func(*http.Request) (string, bool) { return "ann", true }, dashboard.WithClock(func() time.Time { return dashboardtest.Now }))
		r := request("GET", "/", nil)
		r.Header.Set("Accept", "application/json")
		var now struct {
			Level, Headline string
			Also            []string
			Reconciliations []any
		}
		text := strings.ReplaceAll(serve(d, r).Body.String(), "\u00a0", " ") // which does not break
		if err := json.Unmarshal([]byte(text), &now); err != nil {
			t.Fatal(name, err)
		}
		now.Also = append(now.Also, "")
		if now.Level != c.level || !strings.HasPrefix(now.Headline, c.headline) || !strings.HasPrefix(now.Also[0], c.second) || (now.Also[0] == "") != (c.second == "") || len(now.Reconciliations) != len(c.reconciled) {
			t.Errorf("%s: %+v", name, now)
		}
	}
}

// What somebody has opened of what reconciliations found is the same when there is a newer one.
func TestWhatIsOpenStaysWhatItWas(t *testing.T) {
	found := func(age time.Duration, event string) hookonce.Reconciliation {
		return hookonce.Reconciliation{At: dashboardtest.Now.Add(-age), Question: hookonce.ReconcileQuestion{Table: "payments"}, Doubled: 1, Found: []hookonce.Reconciled{{Event: event, Rows: 2}}}
	}
	open := func(all ...hookonce.Reconciliation) map[string]string {
		body := serve(dashboard.Handler(standing{Store: &dashboardtest.Store{World: dashboardtest.Calm}, reconciled: all}, func(*http.Request) (string, bool) { return "ann", true }),
			request("GET", "/reconciliations", nil)).Body.String()
		of := map[string]string{}
		for _, d := range regexp.MustCompile(`(?s)<details id="([^"]+)">(.*?)</details>`).FindAllStringSubmatch(body, -1) {
			of[d[1]] = d[2]
		}
		return of
	}
	before, after := open(found(time.Hour, "evt_1")), open(found(time.Minute, "evt_2"), found(time.Hour, "evt_1"))
	if len(before) != 1 || len(after) != 2 {
		t.Fatalf("%d can be opened, and then %d", len(before), len(after))
	}
	for id, was := range before {
		if after[id] != was {
			t.Errorf("what is open as %s was %s, and is then %s", id, was, after[id])
		}
	}
}

// processing is a store in which so many claims are stuck, all of which changed after the one that is held.
type processing struct {
	*dashboardtest.Store
	stuck int
	held  bool
}

func (s processing) ListClaims(_ context.Context, q hookonce.ClaimQuery) (found []hookonce.Claim, err error) {
	for i := range s.stuck + 1 {
		c := hookonce.Claim{Ref: hookonce.Ref{Source: "shop", Key: fmt.Sprint("evt_", i)}, State: hookonce.StateProcessing, UpdatedAt: dashboardtest.Now.Add(-time.Hour - time.Duration(i)*time.Second)}
		if i < s.stuck {
			c.Lease = dashboardtest.Now.Add(-time.Minute)
		} else if !s.held {
			break
		}
		if len(found) < q.Limit && (q.After == nil || c.UpdatedAt.Before(q.After.UpdatedAt)) {
			found = append(found, c)
		}
	}
	return found, nil
}

// What is held is found below what is stuck, on the page before it or after it, and that there is none is only said where there is.
func TestHeldBelowStuck(t *testing.T) {
	for name, c := range map[string]struct {
		store processing
		pages []string // what they say, one after the other
	}{
		"none is held":            {processing{stuck: 120}, []string{"No claim matches."}},
		"below more than a page":  {processing{stuck: 120, held: true}, []string{"evt_120"}},
		"at the end of a page":    {processing{stuck: 49, held: true}, []string{"evt_49"}},
		"below more than is seen": {processing{stuck: 1100, held: true}, []string{"None of the 1\u202f000 that were looked at is held; older ones may be.", "evt_1100"}},
	} {
		c.store.Store = new(dashboardtest.Store)
		d := dashboard.Handler(c.store, func(*http.Request) (string, bool) { return "oncall", true }, dashboard.WithClock(func() time.Time { return dashboardtest.Now }))
		address := "/claims?state=held"
		for _, want := range c.pages {
			body := serve(d, request("GET", address, nil)).Body.String()
			if !strings.Contains(body, want) || strings.Contains(body, "evt_0") || want != "No claim matches." && strings.Contains(body, "No claim matches.") {
				_, list, _ := strings.Cut(body, `<section id="list"`)
				t.Errorf("%s: the page does not say %q: %s", name, want, list)
			}
			if next := regexp.MustCompile(`href="([^"]+)" rel="next"`).FindStringSubmatch(body); next != nil {
				address = strings.TrimPrefix(html.UnescapeString(next[1]), ".")
			} else if address = ""; want != c.pages[len(c.pages)-1] {
				t.Errorf("%s: no page follows", name)
			}
		}
	}
}

// This machine is let in under its own names, and nobody who comes through a proxy.
func TestLocal(t *testing.T) {
	for name, c := range map[string]struct {
		remote, host, header string
		in                   bool
	}{
		"this machine":                {"127.0.0.1:5000", "localhost:8082", "", true},
		"this machine, by address":    {"[::1]:5000", "[::1]:8082", "", true},
		"another machine":             {"203.0.113.7:5000", "localhost:8082", "", false},
		"a name that leads here":      {"127.0.0.1:5000", "evil.example", "", false},
		"a name that begins like one": {"127.0.0.1:5000", "127.0.0.1.evil.example:8082", "", false},
		"a proxy on this machine":     {"127.0.0.1:5000", "localhost", "X-Forwarded-For", false},
		"a proxy that says so alone":  {"127.0.0.1:5000", "localhost", "Via", false},
		"HTTP/1.0, as of nginx":       {"127.0.0.1:5000", "127.0.0.1:8082", "HTTP/1.0", false},
		"this machine, without port":  {"[::1]:5000", "[::1]", "", true},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr, r.Host = c.remote, c.host
		if c.header == "HTTP/1.0" {
			r.Proto, r.ProtoMajor, r.ProtoMinor = c.header, 1, 0
		} else if c.header != "" {
			r.Header.Set(c.header, "203.0.113.7")
		}
		if _, in := dashboard.Local(r); in != c.in {
			t.Errorf("%s: let in %t", name, in)
		}
	}
}

// Below a path of its own every address leads to what is there, and nowhere else.
func TestMountedBelowAPath(t *testing.T) {
	mux := http.NewServeMux()
	mux.Handle("/admin/hookonce/", http.StripPrefix("/admin/hookonce", dashboardtest.Library(&dashboardtest.Store{World: dashboardtest.Trouble}, true)))
	for _, path := range pages {
		base, _ := url.Parse("http://admin.example/admin/hookonce" + path)
		body := serve(mux, request("GET", base.RequestURI(), nil)).Body.String()
		links := regexp.MustCompile(`(?:href|src)="([^"#]+)"`).FindAllStringSubmatch(body, -1)
		if len(links) < 8 {
			t.Errorf("%s has %d links", path, len(links))
		}
		for _, link := range links {
			to, err := base.Parse(html.UnescapeString(link[1]))
			if err != nil || !strings.HasPrefix(to.Path, "/admin/hookonce/") {
				t.Errorf("%s leads to %s (%v)", path, to, err)
				continue
			}
			if w := serve(mux, request("GET", to.RequestURI(), nil)); w.Code != http.StatusOK {
				t.Errorf("%s leads to %s, which answers %d", path, to, w.Code)
			}
		}
	}
	w := serve(mux, request("POST", "/admin/hookonce/effect", url.Values{"id": {"7"}, "reason": {"it is back"}}))
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "./effect?id=7" {
		t.Errorf("a change leads to %d %q", w.Code, w.Header().Get("Location"))
	}
}

// What people do takes effect in a real database: a stuck claim is given back and its pin stays, and a dead effect is due again.
func TestActions(t *testing.T) {
	ctx, now := t.Context(), time.Date(2026, 11, 23, 4, 0, 0, 0, time.UTC)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "app.db")+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := schema.Migrate(ctx, db, schema.SQLite, ""); err != nil {
		t.Fatal(err)
	}
	store := sqlstore.New(db, sqlstore.SQLite, sqlstore.WithClock(func() time.Time { return now }))
	ref := hookonce.Ref{Source: "billing", Key: "evt/1?&"}
	if _, err := store.Claim(ctx, hookonce.ClaimRequest{Ref: ref, Lease: time.Minute, Digest: []byte("d"), Pin: true}); err != nil {
		t.Fatal(err)
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(store.Enqueue(ctx, tx, hookonce.Effect{Ref: ref, Name: "mail"}), tx.Commit()); err != nil {
		t.Fatal(err)
	}
	taken, err := store.TakeEffects(ctx, hookonce.TakeRequest{Names: []string{"mail"}, Limit: 1, Lease: time.Minute})
	if err != nil || len(taken) != 1 {
		t.Fatal(taken, err)
	}
	if err := store.FailEffect(ctx, taken[0], hookonce.Failure{Err: errors.New("550"), Dead: true}, time.Time{}); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	d := dashboard.Handler(store, func(*http.Request) (string, bool) { return "ann", true }, dashboard.WithActions(func(*http.Request) bool { return true }),
		dashboard.WithClock(func() time.Time { return now }), dashboard.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	give := url.Values{"source": {ref.Source}, "key": {ref.Key}, "attempt": {"1"}, "reason": {"its process died"}}
	if w := serve(d, request("POST", "/claim", give)); w.Code != http.StatusConflict {
		t.Errorf("a claim that is held: %d", w.Code)
	}
	now = now.Add(time.Hour)
	stale := url.Values{"source": {ref.Source}, "key": {ref.Key}, "attempt": {"2"}, "reason": {"its process died"}}
	if w := serve(d, request("POST", "/claim", stale)); w.Code != http.StatusConflict {
		t.Errorf("another attempt: %d", w.Code)
	}
	w := serve(d, request("POST", "/claim", give))
	if w.Code != http.StatusSeeOther {
		t.Fatalf("a stuck claim: %d %s", w.Code, w.Body)
	}
	if w := serve(d, request("GET", strings.TrimPrefix(w.Header().Get("Location"), "."), nil)); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "given back by ann: its process died") {
		t.Errorf("its page: %d %s", w.Code, w.Body)
	}
	if c, err := store.Lookup(ctx, ref); err != nil || c.State != hookonce.StateFailed || c.Pinned != 1 {
		t.Errorf("the claim is %+v, %v", c, err)
	}
	if w := serve(d, request("POST", "/effect", url.Values{"id": {"1"}, "reason": {"the mailbox is back"}})); w.Code != http.StatusSeeOther {
		t.Errorf("a dead effect: %d %s", w.Code, w.Body)
	}
	if again, err := store.TakeEffects(ctx, hookonce.TakeRequest{Names: []string{"mail"}, Limit: 1, Lease: time.Minute}); err != nil || len(again) != 1 || again[0].Tries != 1 {
		t.Errorf("taken again: %+v, %v", again, err)
	}
	for _, want := range []string{"by=ann", `reason="its process died"`, `reason="the mailbox is back"`, "attempt 1", "effect 1, mail"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %s: %s", want, log.String())
		}
	}
	if w := serve(d, request("GET", "/claims?source=billing&older=30m", nil)); w.Code != 200 || strings.Contains(w.Body.String(), "evt/1") {
		t.Errorf("a filter by age shows what changed a moment ago")
	}
	if _, err := db.Exec("DROP TABLE hookonce_claims"); err != nil {
		t.Fatal(err)
	}
	if w := serve(d, request("GET", "/", nil)); w.Code != http.StatusServiceUnavailable && w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "no such table") {
		t.Errorf("without tables: %d %s", w.Code, w.Body)
	}
}
