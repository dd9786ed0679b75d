package browser

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/dashboardtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

var screenshots = flag.String("screenshots", "", "write pictures of the pages into this `folder`; with -run TestScreenshots")

// patience bounds each step in the browser, its start included. It is there for what hangs: a page takes a second at most
// on a quiet machine, and many on a busy one.
const patience = 3 * time.Minute

// browser is one tab, and what it complained about.
type browser struct {
	ctx context.Context // see step
	*testing.T

	mu       sync.Mutex
	wrong    []string
	requests int
	bytes    float64
}

// open starts a browser.
func open(t *testing.T) *browser {
	t.Helper()
	leaves, err := os.MkdirTemp("", "browser") // it may be writing there still when the test ends, which t.TempDir takes for a failure
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(leaves) })
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Env("TMPDIR="+leaves), chromedp.WSURLReadTimeout(patience))
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	b := &browser{ctx: ctx, T: t}
	b.call(chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *log.EventEntryAdded:
			b.wrong = append(b.wrong, string(e.Entry.Source)+": "+e.Entry.Text)
		case *runtime.EventExceptionThrown:
			b.wrong = append(b.wrong, fmt.Sprint(*e.ExceptionDetails))
		case *runtime.EventConsoleAPICalled:
			if e.Type == "error" {
				b.wrong = append(b.wrong, fmt.Sprint("console: ", e.Args))
			}
		case *page.EventJavascriptDialogOpening:
			b.wrong = append(b.wrong, "a dialog: "+e.Message)
		case *network.EventLoadingFinished:
			b.requests++
			b.bytes += e.EncodedDataLength
		}
	}))
	return b
}

// step returns the context of one step.
func (b *browser) step() (context.Context, context.CancelFunc) {
	return context.WithTimeout(b.ctx, patience)
}

// run takes actions, each of which is a step.
func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.Helper()
	for _, action := range actions {
		get(b, action)
	}
}

// get returns what an action, which is a step, comes to.
func get[T any](b *browser, action chromedp.Action[T]) T {
	b.Helper()
	ctx, cancel := b.step()
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	b.call(err)
	return result
}

// call ends the test if something in the browser failed.
func (b *browser) call(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// eval returns what a script comes to in the page.
func eval[T any](b *browser, script string) T {
	b.Helper()
	return get(b, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
}

// await waits until a script comes to something true.
func (b *browser) await(script string) {
	b.Helper()
	get(b, chromedp.Poll[bool](script, chromedp.WithPollingTimeout(0)))
}

// complaints returns what was wrong since the last time.
func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	wrong := b.wrong
	b.wrong = nil
	return wrong
}

// look sets how the page is looked at.
func (b *browser) look(theme string, width int64) {
	b.Helper()
	b.run(chromedp.EmulateViewport(width, 900))
	ctx, cancel := b.step()
	defer cancel()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	b.call(err)
}

// pages are all of them.
var pages = map[string]string{
	"now": "/", "alerts": "/alerts", "failures": "/failures", "failure": "/failures/ledger/status?status=500", "resolved": "/failures/audit/timeout", "refused": "/refused", "store": "/store", "events": "/events", "filter": "/events?state=failed&source=billing&seen=conflict", "event": "/events/924305118331207681",
	"destinations": "/destinations", "destination": "/destinations/ledger", "paused": "/destinations/mail",
	"sources": "/sources", "source": "/sources/billing", "tail": "/tail", "audit": "/audit", "configuration": "/configuration", "doctor": "/doctor",
	"missing": "/nothing",
}

// libraryPages are those of the dashboard of a store of the library.
var libraryPages = map[string]string{
	"now": "/", "claims": "/claims", "wrong": "/claims?state=done", "claim": "/claim?source=shop&key=evt_stuck", "failed": "/claim?source=billing&key=evt_failed",
	"outbox": "/outbox?name=crm.update", "dead": "/outbox?show=dead", "effect": "/effect?id=7", "guards": "/guards", "states": "/guards?kind=states", "reconciliations": "/reconciliations",
}

// serve returns the address of the dashboard in a world.
func serve(t *testing.T, world dashboardtest.World, tokens ...api.Token) (string, *dashboardtest.API) {
	a := &dashboardtest.API{World: world}
	s := httptest.NewServer(dashboardtest.Dashboard(a, tokens...))
	t.Cleanup(s.Close)
	return s.URL, a
}

// axe returns the script that looks whether everybody can use a page.
func axe(t *testing.T) string {
	t.Helper()
	script, err := os.ReadFile("node/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("axe-core is missing (%v): make browser installs it", err)
	}
	return string(script)
}

// violations is what axe finds in a page.
func (b *browser) violations(script string) (found []string) {
	b.Helper()
	eval[int](b, script+"; 0")
	text := eval[string](b, `axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa"], resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations.map((v) => v.id + ": " + v.nodes.map((n) => n.target.join(" ") + " " + (n.any[0]?.message || n.failureSummary)).slice(0, 3).join("; "))))`)
	if err := json.Unmarshal([]byte(text), &found); err != nil {
		b.Fatal(err)
	}
	return found
}

// A look is how somebody looks at a page: in light or dark, on a telephone or on a large screen.
type look struct {
	theme string
	width int64
}

// everyLook has each theme and each width, otherLooks what is left.
var everyLook, otherLooks = []look{{"light", 400}, {"dark", 1400}}, []look{{"dark", 400}, {"light", 1400}}

// Every page can be used by everybody, in light and dark, on a telephone and on a large screen, and nothing in it is refused by its policy.
func TestPages(t *testing.T) { usable(t, everyLook) }

// The same of the dashboard of a store of the library, below a path of its own.
func TestLibraryPages(t *testing.T) {
	testskip.Long(t)
	libraryUsable(t, everyLook)
}

func TestPagesInOtherLooks(t *testing.T) {
	testskip.Long(t)
	usable(t, otherLooks)
	libraryUsable(t, otherLooks)
}

func usable(t *testing.T, looks []look) {
	b, script := open(t), axe(t)
	address, _ := serve(t, dashboardtest.Trouble)
	for name, path := range pages {
		b.usable(script, name, address+path, looks)
	}
}

func libraryUsable(t *testing.T, looks []look) {
	b, script := open(t), axe(t)
	s := httptest.NewServer(http.StripPrefix("/admin/hookonce", dashboardtest.Library(&dashboardtest.Store{World: dashboardtest.Trouble}, true)))
	t.Cleanup(s.Close)
	for name, path := range libraryPages {
		b.usable(script, name, s.URL+"/admin/hookonce"+path, looks)
	}
}

func (b *browser) usable(script, name, address string, looks []look) {
	b.Helper()
	for _, l := range looks {
		b.look(l.theme, l.width)
		b.complaints()
		b.run(chromedp.Navigate(address))
		for _, v := range b.violations(script) {
			b.Errorf("%s, %s, %d: %s", name, l.theme, l.width, v)
		}
		if eval[bool](b, "document.documentElement.scrollWidth > innerWidth") {
			b.Errorf("%s, %s, %d: the page is wider than the window", name, l.theme, l.width)
		}
		for _, c := range b.complaints() {
			if name != "missing" || !strings.Contains(c, "404") {
				b.Errorf("%s, %s, %d: %s", name, l.theme, l.width, c)
			}
		}
	}
}

// What others write never becomes a part of the page.
func TestHostileTexts(t *testing.T) {
	b := open(t)
	address, _ := serve(t, dashboardtest.Hostile)
	for name, path := range pages {
		b.run(chromedp.Navigate(address + path))
		owned, foreign := eval[string](b, "document.title"), eval[int](b, `document.querySelectorAll("img, iframe, script:not([src^='/assets/']), [onerror], [href^='javascript:']").length`)
		if owned == "owned" || foreign > 0 {
			t.Errorf("%s: the title is %q, and %d elements are not ours", name, owned, foreign)
		}
		for _, c := range b.complaints() {
			if name != "missing" {
				t.Errorf("%s: %s", name, c)
			}
		}
	}
}

// Each action can be taken with the keyboard alone.
func TestKeyboard(t *testing.T) {
	b := open(t)
	address, a := serve(t, dashboardtest.Trouble)
	b.look("light", 1400)
	expect := func(what, call string) {
		t.Helper()
		calls := a.Calls()
		if len(calls) == 0 || !strings.Contains(calls[len(calls)-1], call) {
			t.Errorf("%s: the calls are %q", what, calls)
		}
	}
	b.run(chromedp.Navigate(address + "/events?state=failed"))
	b.tabTo("button[name=step]")
	b.enter()
	expect("counting", `"dry_run":true`)
	b.focus("#reason") // which the page gives it
	b.run(chromedp.KeyEvent("the ledger is back"))
	b.tabTo("button[value=do]")
	b.enter()
	expect("replaying", `"reason":"the ledger is back"`)
	b.run(chromedp.Navigate(address + "/destinations/ledger"))
	b.tabTo("#reason")
	b.run(chromedp.KeyEvent("maintenance"))
	b.enter()
	expect("pausing", `/pause {"reason":"maintenance"}`)
	b.run(chromedp.Navigate(address + "/destinations/mail"))
	b.tabTo("#reason")
	b.run(chromedp.KeyEvent("the provider is migrated"))
	b.tabTo("form[action$='/resume'] button")
	b.enter()
	expect("resuming", `/destinations/mail/resume {"reason":"the provider is migrated"}`)
	b.run(chromedp.Navigate(address + "/events/924305118331207681"))
	b.tabTo("#look-reason")
	b.run(chromedp.KeyEvent("a ticket"))
	b.enter()
	expect("looking", `/payload {"part":"body","reason":"a ticket"}`)
	b.run(chromedp.Navigate(address + "/events/924305118331207681"))
	b.tabTo("#reason")
	b.run(chromedp.KeyEvent("the ledger is back"))
	b.tabTo("form[action$='/replay'] button")
	b.enter()
	expect("replaying one", `/events/924305118331207681/replay {`)
	b.run(chromedp.Navigate(address + "/"))
	b.tabTo("#issues .do a")
	b.enter()
	if where := eval[string](b, "location.pathname"); where == "/" {
		t.Error("the first step of page one leads nowhere")
	}
	b.run(chromedp.Navigate(address + "/alerts"))
	b.tabTo("#firing li:nth-child(2) summary")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.tabTo("#firing li:nth-child(2) form[action$='/silence'] input[name=reason]")
	b.run(chromedp.KeyEvent("the mail provider moves"))
	b.enter()
	expect("silencing", `/alerts/silences {"alert":`)
	b.run(chromedp.Navigate(address+"/events"), chromedp.KeyEvent("g"), chromedp.KeyEvent("d"), chromedp.WaitVisible("#destinations"))
	b.run(chromedp.KeyEvent("?"), chromedp.WaitVisible("dialog[open]"), chromedp.KeyEvent(kb.Escape), chromedp.WaitNotPresent("dialog[open]"))
}

// No page can be shown inside another one, where somebody could be made to press its buttons.
func TestFraming(t *testing.T) {
	b := open(t)
	address, a := serve(t, dashboardtest.Trouble)
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><title>evil</title><iframe src="%[1]s/"></iframe><iframe src="%[1]s/destinations/mail"></iframe>`, address)
	}))
	defer evil.Close()
	b.run(chromedp.Navigate(evil.URL))
	refused := func() (n int) {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, w := range b.wrong {
			if strings.Contains(w, "frame-ancestors") {
				n++
			}
		}
		return n
	}
	late, cancel := b.step()
	defer cancel()
	for refused() < 2 { // what the browser says of it comes later than the page
		if _, err := chromedp.Run(late, chromedp.Evaluate[bool]("true")); err != nil {
			t.Fatalf("the browser refused %d frames of 2: %q", refused(), b.complaints())
		}
	}
	if len(a.Calls()) > 0 {
		t.Errorf("the calls are %q", a.Calls())
	}
}

// At 3 a.m. each question is answered in three clicks from page one at most.
func TestThreeClicks(t *testing.T) {
	b := open(t)
	address, _ := serve(t, dashboardtest.Trouble)
	for question, walk := range map[string]struct {
		clicks []string // what is followed, one after the other
		answer string   // what the last page says
	}{
		"a destination is down":         {[]string{"#issues .do a[href*='ledger']", "button[value=count]"}, "deliveries of"},
		"a customer was charged twice":  {[]string{"nav a[href='/events']", "[href='/events/924305118331207681']"}, "copies"},
		"the sender says that we fail":  {[]string{"#sources a[href^='/refused']"}, "signed with another one"},
		"one event was never processed": {[]string{"nav a[href='/events']", "[href='/events?state=dead']", "tbody a[href^='/events/']"}, "Where it goes"},
	} {
		if len(walk.clicks) > 3 {
			t.Errorf("%s takes %d clicks", question, len(walk.clicks))
		}
		b.run(chromedp.Navigate(address + "/"))
		for _, click := range walk.clicks {
			if !eval[bool](b, fmt.Sprintf("document.querySelector(%q) !== null", click)) {
				t.Fatalf("%s: there is no %s in %s", question, click, eval[string](b, "location.href"))
			}
			eval[int](b, fmt.Sprintf("document.querySelector(%q).focus(); 0", click))
			b.enter()
		}
		if text := eval[string](b, "document.querySelector('main').textContent"); !strings.Contains(text, walk.answer) {
			t.Errorf("%s: %s does not say %q", question, eval[string](b, "location.href"), walk.answer)
		}
	}
}

// tabTo presses the tab key until an element has the focus.
func (b *browser) tabTo(selector string) {
	b.Helper()
	for range 200 {
		b.run(chromedp.KeyEvent(kb.Tab))
		if eval[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	b.Fatalf("%s is not reached by the tab key", selector)
}

// focus waits until an element has the focus.
func (b *browser) focus(selector string) {
	b.Helper()
	eval[bool](b, fmt.Sprintf(`new Promise(done => {
		const look = () => document.activeElement?.matches(%q) ? done(true) : setTimeout(look, 5)
		look()
	})`, selector))
}

// enter presses the enter key, and waits for the page that follows.
func (b *browser) enter() {
	b.Helper()
	ctx, cancel := b.step()
	defer cancel()
	if _, err := chromedp.RunResponse(ctx, chromedp.KeyEvent(kb.Enter)); err != nil {
		b.Fatal(err)
	}
}

// A page is refreshed, but not what somebody uses: a region with the focus stays, and what is open stays open.
func TestRefresh(t *testing.T) {
	b := open(t)
	address, a := serve(t, dashboardtest.Calm)
	look := func() { eval[bool](b, `document.dispatchEvent(new Event("visibilitychange"))`) }
	b.run(chromedp.Navigate(address + "/destinations"))
	eval[int](b, `document.querySelector("#destinations a").focus(); 0`)
	a.Change(dashboardtest.Trouble)
	look()
	b.await(`performance.getEntriesByType("resource").some((e) => e.initiatorType === "fetch" && e.responseEnd)`)
	if text := eval[string](b, `document.querySelector("#destinations").textContent`); strings.Contains(text, "paused") {
		t.Error("what has the focus was replaced")
	}
	eval[int](b, "document.activeElement.blur(); 0")
	look()
	b.await(`document.querySelector("#destinations").textContent.includes("paused")`)
	b.run(chromedp.Navigate(address + "/events/924305118331207681"))
	eval[int](b, `document.querySelector("#timeline details").open = true; 0`)
	a.Change(dashboardtest.Hostile)
	look()
	b.await(`document.querySelector("#timeline").textContent.includes("<script>") && document.querySelector("#timeline details[open]") !== null`)
	for _, c := range b.complaints() {
		t.Error(c)
	}
}

// A page that cannot be refreshed says so: that there is no answer only where there is none, and otherwise what is answered, with a
// way to the page that says why.
func TestStale(t *testing.T) {
	b := open(t)
	var status atomic.Int64 // 0: the page; -1: no answer
	pages := dashboardtest.Dashboard(&dashboardtest.API{World: dashboardtest.Calm})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch n := int(status.Load()); n {
		case 0:
			pages.ServeHTTP(w, r)
		case -1:
			panic(http.ErrAbortHandler)
		default:
			http.Error(w, "The store is away.", n)
		}
	}))
	t.Cleanup(s.Close)
	b.run(chromedp.Navigate(s.URL + "/destinations"))
	for _, c := range []struct {
		status int64
		note   string
		link   bool
	}{
		{503, "This page cannot be shown anew: the answer is 503. What you see is from ", true},
		{-1, "There is no answer. What you see is from ", false},
		{502, "There is no answer. What you see is from ", false},
		{404, "This page cannot be shown anew: the answer is 404. What you see is from ", true},
		{0, "", false},
		{503, "This page cannot be shown anew: the answer is 503. What you see is from ", true},
	} {
		status.Store(c.status)
		b.await(fmt.Sprintf(`document.dispatchEvent(new Event("visibilitychange")) && (document.getElementById("stale")?.textContent ?? "").startsWith(%[1]q) && (%[1]q !== "" || !document.getElementById("stale"))`, c.note))
		if link := eval[bool](b, `Boolean(document.querySelector("#stale a"))`); link != c.link {
			t.Errorf("%d: a link to the page that says why: %t", c.status, link)
		}
	}
	eval[int](b, `document.querySelector("#stale a").focus(); 0`)
	b.enter()
	b.await(`document.body.textContent.includes("The store is away.")`)
}

// Whoever logs in by a form is let in, and out again.
func TestLogin(t *testing.T) {
	b := open(t)
	const token = "a-fake-token-for-reading"
	address, _ := serve(t, dashboardtest.Trouble, api.Token{Name: "dashboard", Secret: token, Role: api.Read})
	b.run(chromedp.Navigate(address+"/destinations/ledger"), chromedp.WaitVisible("#token"), chromedp.KeyEvent(token))
	b.enter()
	where, forms := eval[string](b, "location.href"), eval[int](b, `document.querySelectorAll("main form[method=post]").length`)
	if where != address+"/destinations/ledger" || forms != 0 {
		t.Errorf("it leads to %s, where who may only read finds %d forms", where, forms)
	}
	for _, v := range b.complaints() {
		if !strings.Contains(v, "favicon") {
			t.Error(v)
		}
	}
}

// pictures are those that pages of the documentation show: the page, and how it is looked at.
var pictures = []struct {
	name, path, theme string
	width             int64
}{
	{"now", "/", "light", 1280},
	{"now-dark", "/", "dark", 1280},
	{"now-narrow", "/", "light", 400},
	{"alerts", "/alerts", "light", 1280},
	{"failure", "/failures/ledger/status?status=500", "light", 1280},
	{"refused", "/refused", "light", 1280},
	{"events", "/events", "light", 1280},
	{"event", "/events/924305118331207681", "light", 1280},
	{"destination", "/destinations/ledger", "dark", 1280},
	{"source", "/sources/billing", "light", 1280},
	{"store", "/store", "dark", 1280},
}

// TestScreenshots makes the pictures, with -screenshots.
func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		t.Skip("make screenshots makes them")
	}
	b := open(t)
	address, _ := serve(t, dashboardtest.Trouble)
	for _, p := range pictures {
		b.look(p.theme, p.width)
		b.run(chromedp.Navigate(address + p.path))
		picture := get(b, chromedp.FullScreenshot(100))
		if err := os.WriteFile(filepath.Join(*screenshots, p.name+".png"), smaller(t, picture), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// smaller returns a picture with the 256 colours that it has most of: pages have few.
func smaller(t *testing.T, picture []byte) []byte {
	t.Helper()
	full, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	often, b := map[color.Color]int{}, full.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			often[full.At(x, y)]++
		}
	}
	colours := slices.SortedFunc(maps.Keys(often), func(a, b color.Color) int { return cmp.Compare(often[b], often[a]) })
	few := image.NewPaletted(b, color.Palette(colours[:min(len(colours), 256)]))
	nearest := map[color.Color]uint8{}
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			c := full.At(x, y)
			i, known := nearest[c]
			if !known {
				i = uint8(few.Palette.Index(c))
				nearest[c] = i
			}
			few.SetColorIndex(x, y, i)
		}
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, few); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// What comes is put on top of what came, what changes is changed in its place, until somebody stops it.
func TestTail(t *testing.T) {
	b := open(t)
	address, a := serve(t, dashboardtest.Trouble)
	b.run(chromedp.Navigate(address + "/tail"))
	b.await(`document.querySelector("tbody tr").textContent.includes("evt_live") && document.querySelector("[data-id='924305118331207681']").textContent.includes("done")`)
	if n := eval[int](b, `document.querySelectorAll("tbody tr").length`); n != 5 {
		t.Errorf("there are %d rows", n)
	}
	b.run(chromedp.KeyEvent("p"))
	b.await(`document.getElementById("said").textContent === "Paused."`)
	a.Change(dashboardtest.Hostile)
	b.tabTo("#stop")
	b.run(chromedp.KeyEvent(kb.Enter))
	b.await(`document.querySelector("tbody tr").textContent.includes("<script>")`)
	if eval[string](b, "document.title") == "owned" || eval[int](b, `document.querySelectorAll("img, main script").length`) > 0 {
		t.Error("what others wrote is a part of the page")
	}
	for _, c := range b.complaints() {
		t.Error(c)
	}
}
