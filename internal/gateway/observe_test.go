package gateway

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/observe"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// observed returns settings with one source in mode observe, called "orders".
func observed(store config.Store, to string) *config.Config {
	cfg := configured(store, to)
	cfg.Sources[0].Mode = config.Observe
	return cfg
}

// report waits until so many requests are on record, and returns the report about them.
func report(t *testing.T, cfg *config.Config, requests int64) *observe.Report {
	t.Helper()
	store, err := OpenObservations(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for deadline := time.Now().Add(patience); ; <-time.After(20 * time.Millisecond) {
		r, err := observe.NewReport(t.Context(), store, "orders", time.Now().Add(-time.Hour), 1000)
		switch {
		case err == nil && r.Requests >= requests:
			return r
		case time.Now().After(deadline):
			t.Fatalf("%d requests are not on record: %+v, %v", requests, r, err)
		}
	}
}

// mirror is an application that notes requests as it gets them. Their path says what it answers.
type mirror struct {
	*httptest.Server
	got chan string
}

func newMirror(t *testing.T) *mirror {
	m := &mirror{got: make(chan string, 16)}
	m.Server = httptest.NewServer(m)
	t.Cleanup(m.Close)
	return m
}

func (m *mirror) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("X-Refuse") != "" {
		m.note(r, []byte("not read"))
		w.Header()["Date"] = nil
		w.WriteHeader(http.StatusExpectationFailed)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		body = fmt.Appendf(body, "%v", err)
	}
	m.note(r, body)
	w.Header().Set("Set-Cookie", "session=fake")
	w.Header()["X-Twice"] = []string{"a", "b"}
	switch r.URL.Query().Get("answer") {
	case "bare":
		w.Header()["Content-Type"], w.Header()["Date"] = nil, nil
		io.WriteString(w, "<html>")
	case "empty":
		w.WriteHeader(http.StatusNoContent)
	case "redirect":
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	case "stream":
		for i := range 3 {
			fmt.Fprint(w, i)
			w.(http.Flusher).Flush()
		}
	case "large":
		w.Write(bytes.Repeat([]byte("0123456789abcdef"), 1<<17))
	case "teapot":
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTeapot)
		io.WriteString(w, "short and stout")
	default:
		io.WriteString(w, "ok")
	}
}

func (m *mirror) note(r *http.Request, body []byte) {
	sum := string(body)
	if len(sum) > 100 {
		sum = fmt.Sprintf("%d bytes, %.20q", len(sum), sum)
	}
	text := fmt.Sprintf("%s %s %s\nHost: %s\nlength %d, transfer %v\n", r.Method, r.RequestURI, r.Proto, r.Host, r.ContentLength, r.TransferEncoding)
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		text += fmt.Sprintf("%s: %q\n", name, r.Header[name])
	}
	m.got <- text + "\n" + sum
}

// exchangeRaw sends text to an address and returns the answer, as a person would compare it.
func exchangeRaw(t *testing.T, address, method, text string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	go io.WriteString(conn, text)
	res, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if len(body) > 100 {
		body = fmt.Appendf(nil, "%d bytes, %.20q", len(body), body)
	}
	out := fmt.Sprintf("%s\n", res.Status)
	for _, name := range slices.Sorted(maps.Keys(res.Header)) {
		value := fmt.Sprintf("%q", res.Header[name])
		if name == "Date" {
			value = "some time"
		}
		if name != "Content-Length" {
			out += name + ": " + value + "\n"
		}
	}
	return fmt.Sprintf("%s\n%s %v", out, body, err)
}

// The application sees what it would see without us, and its sender what it would hear: whatever the method, the
// headers, the body and its framing are, and whether the store is there or not.
func TestObserveChangesNothing(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	large := strings.Repeat("0123456789abcdef", 1<<17)
	cases := map[string]struct{ method, target, header, body string }{
		"a signed event":      {"POST", "", "Content-Type: application/json\r\nX-Signature: 00\r\nContent-Length: 10\r\n", `{"id":"a"}`},
		"credentials":         {"POST", "", "Authorization: Bearer fake\r\nCookie: a=1; b=2\r\nContent-Length: 1\r\n", "x"},
		"no user agent":       {"POST", "", "Content-Length: 1\r\n", "x"},
		"encodings":           {"POST", "", "User-Agent: Stripe/1.0\r\nAccept: */*; q=0.5\r\nAccept-Encoding: br\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n", "\x1f\x8b\x00"},
		"a header twice":      {"POST", "", "X-A: 1\r\nX-A: 2\r\nx-lower: L\r\nContent-Length: 1\r\n", "x"},
		"our own headers":     {"POST", "", "Hookonce-Key: k\r\nIdempotency-Key: \"k\"\r\nWebhook-Id: msg_1\r\nContent-Length: 1\r\n", "x"},
		"of a proxy":          {"POST", "", "X-Forwarded-For: 192.0.2.1, 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: a.example\r\nForwarded: for=192.0.2.1\r\nX-Real-Ip: 192.0.2.1\r\nContent-Length: 1\r\n", "x"},
		"a query":             {"POST", "?a=1&b=%2F;c&a=2", "Content-Length: 1\r\n", "x"},
		"an empty query":      {"POST", "?", "Content-Length: 1\r\n", "x"},
		"an empty body":       {"POST", "", "Content-Length: 0\r\n", ""},
		"chunks":              {"POST", "", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"},
		"a large body":        {"POST", "?answer=large", fmt.Sprintf("Content-Length: %d\r\n", len(large)), large},
		"asking first":        {"POST", "", "Expect: 100-continue\r\nX-Refuse: yes\r\nContent-Length: 10\r\n", ""},
		"GET":                 {"GET", "?challenge=1", "", ""},
		"HEAD":                {"HEAD", "", "", ""},
		"PUT":                 {"PUT", "", "Content-Length: 1\r\n", "x"},
		"PATCH":               {"PATCH", "", "Content-Length: 1\r\n", "x"},
		"DELETE":              {"DELETE", "", "", ""},
		"DELETE with a body":  {"DELETE", "", "Content-Length: 1\r\n", "x"},
		"OPTIONS":             {"OPTIONS", "", "Origin: https://a.example\r\n", ""},
		"a method of its own": {"PROPFIND", "", "", ""},
		"a bare answer":       {"POST", "?answer=bare", "Content-Length: 1\r\n", "x"},
		"an empty answer":     {"POST", "?answer=empty", "Content-Length: 1\r\n", "x"},
		"a redirect":          {"POST", "?answer=redirect", "Content-Length: 1\r\n", "x"},
		"a streamed answer":   {"POST", "?answer=stream", "Content-Length: 1\r\n", "x"},
		"a refusal":           {"POST", "?answer=teapot", "Content-Length: 1\r\n", "x"},
	}
	app := newMirror(t)
	direct := strings.TrimPrefix(app.URL, "http://")
	compare := func(t *testing.T, g *Gateway) {
		for name, c := range cases {
			for _, host := range []string{"hooks.example.com", ""} { // that of a proxy in front, and that of whoever answers
				send := func(address, path string) (seen, heard string) {
					heard = exchangeRaw(t, address, c.method, fmt.Sprintf("%s %s%s HTTP/1.1\r\nHost: %s\r\n%s\r\n%s", c.method, path, c.target, cmp.Or(host, address), c.header, c.body))
					return <-app.got, heard
				}
				seen, heard := send(direct, "/hooks")
				seenBehind, heardBehind := send(g.Addr().String(), "/in/orders")
				if diff := gocmp.Diff(seen, seenBehind); diff != "" {
					t.Errorf("%s, Host %q: the application sees (-without us +with us):\n%s", name, host, diff)
				}
				if diff := gocmp.Diff(heard, heardBehind); diff != "" {
					t.Errorf("%s, Host %q: the sender hears (-without us +with us):\n%s", name, host, diff)
				}
			}
		}
	}
	t.Run("postgres", func(t *testing.T) {
		cluster := pgtest.Start(t, pgtest.Options{})
		cfg := observed(config.Store{Driver: config.Postgres, DSN: cluster.DSN(t)}, app.URL+"/hooks")
		g := start(t, cfg)
		compare(t, g)
		if err := cluster.Kill(); err != nil {
			t.Fatal(err)
		}
		compare(t, g)
		if err := cluster.Restart(); err != nil {
			t.Fatal(err)
		}
		if r := report(t, cfg, int64(4*len(cases))); r.Requests != int64(4*len(cases)) || r.Unrecorded != 0 {
			t.Errorf("%d requests on record and %d that are not, want %d and none", r.Requests, r.Unrecorded, 4*len(cases))
		}
	})
	t.Run("sqlite", func(t *testing.T) {
		store := sqliteStore(t)
		g := start(t, observed(store, app.URL+"/hooks"))
		compare(t, g)
		if err := os.Rename(store.DSN, store.DSN+".gone"); err != nil {
			t.Fatal(err)
		}
		if err := g.store.Close(); err != nil {
			t.Fatal(err)
		}
		compare(t, g)
	})
}

// An application with a certificate of a private CA, and one that asks for a certificate, is reached as it is when events are
// delivered to it, and a reload takes other certificates.
func TestObserveOverTLS(t *testing.T) {
	t.Parallel()
	app := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	app.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	app.Config.ErrorLog = log.New(io.Discard, "", 0) // of handshakes that are meant to fail
	app.StartTLS()
	t.Cleanup(app.Close)
	cert, key := selfSigned(t)
	stranger, _ := selfSigned(t)
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: app.Certificate().Raw})
	store := sqliteStore(t).DSN
	parse := func(ca []byte) *config.Config {
		cfg, err := config.Load(config.Input{Path: "hookonce.yaml", Data: fmt.Appendf(nil, `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
store: sqlite:%s
sources:
  - name: orders
    provider: hmac
    secrets: ["literal-secret-of-orders"]
    mode: observe
    to: {url: "%s", tls: {ca: ca.pem, cert: cert.pem, key: key.pem}}
`, store, app.URL), ReadFile: func(name string) ([]byte, error) {
			return map[string][]byte{"ca.pem": ca, "cert.pem": cert, "key.pem": key}[name], nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	e, c := startEdited(t, parse(own)), client(t)
	ask := func(want int) {
		t.Helper()
		res, err := c.Post("http://"+e.Addr().String()+"/in/orders", "application/json", strings.NewReader(`{"id":"a"}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		_, _ = io.Copy(io.Discard, res.Body)
		if res.StatusCode != want {
			t.Errorf("answered %d, want %d", res.StatusCode, want)
		}
	}
	ask(http.StatusTeapot)
	for _, step := range []struct {
		ca   []byte
		want int
	}{{stranger, http.StatusBadGateway}, {own, http.StatusTeapot}} {
		e.next.Store(parse(step.ca))
		if _, err := e.Reload(t.Context(), "test"); err != nil {
			t.Fatal(err)
		}
		ask(step.want)
	}
}

// What the application answers 500 to while it is observed, and also what it answered 200 to, is new when the mode is
// another: an observation is no claim.
func TestObserveIsNoClaim(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSink(t)
		app.answer = func(id string, times int) int {
			if id == "fails" && times == 1 {
				return http.StatusInternalServerError
			}
			return http.StatusOK
		}
		cfg, c := observed(store, app.URL), client(t)
		g := start(t, cfg)
		for id, want := range map[string]int{"fails": 500, "works": 200} {
			if r, err := post(t, c, g, cfg.Sources[0], event(id)); err != nil || r.status != want || r.verdict != "" {
				t.Errorf("%s: %+v, %v, want %d and nothing of ours", id, r, err, want)
			}
		}
		if r := report(t, cfg, 2); r.Unanswered.Count != 1 || r.Unanswered.Events[0].Key != "fails" || r.Events != 2 {
			t.Errorf("report %+v", r)
		}
		closeNow(t, g)
		cfg.Sources[0].Mode = config.Async
		g = start(t, cfg)
		for _, id := range []string{"fails", "works"} {
			if r := insist(t, c, g, cfg.Sources[0], event(id)); r.verdict != "accepted" {
				t.Errorf("%s, after the switch: %+v, want accepted", id, r)
			}
		}
		app.await(t, "both once more", func() bool { return app.seen["fails"] == 2 && app.seen["works"] == 2 })
	})
}

// A storm of copies, at once and later, of failures and of forgeries: the report has the numbers of its sender.
func TestObserveReportEqualsTheTruth(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store config.Store) {
		app := newSink(t)
		app.answer = func(id string, times int) int {
			switch {
			case strings.HasPrefix(id, "lost"), strings.HasPrefix(id, "flaky") && times == 1:
				return http.StatusServiceUnavailable
			}
			return http.StatusOK
		}
		cfg, c := observed(store, app.URL), client(t)
		g := start(t, cfg)
		type sent struct {
			id   string
			body []byte
		}
		const each = 20
		var first, again []sent
		for i := range each {
			for _, kind := range []string{"once", "twice", "flaky", "lost", "changed"} {
				id := fmt.Sprintf("%s-%d", kind, i)
				first = append(first, sent{id, event(id)})
				switch kind {
				case "twice", "flaky", "lost":
					again = append(again, sent{id, event(id)})
				case "changed":
					again = append(again, sent{id, fmt.Appendf(nil, `{"id":%q,"type":"order.paid","amount":2}`, id)})
				}
			}
		}
		round := func(all []sent) {
			rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
			var senders sync.WaitGroup
			for _, s := range all {
				senders.Go(func() {
					if _, err := post(t, c, g, cfg.Sources[0], s.body); err != nil {
						t.Error(err)
					}
				})
			}
			senders.Wait()
		}
		round(first)
		round(again)
		for range each {
			if _, err := postSigned(c, g, "orders", http.Header{"X-Signature": {"00"}}, event("forged")); err != nil {
				t.Error(err)
			}
		}
		if _, err := post(t, c, g, cfg.Sources[0], event("")); err != nil {
			t.Error(err)
		}
		r := report(t, cfg, int64(len(first)+len(again)+each+1))
		got := map[string]int64{
			"requests": r.Requests, "events": r.Events, "copies": r.Copies.All, "after success": r.Copies.AfterSuccess, "retries": r.Copies.Retries, "at once": r.Copies.AtOnce,
			"doubled": r.Doubled.Count, "unanswered": r.Unanswered.Count, "conflicts": r.Conflicts.Count, "forged": r.Forged[hookonce.ReasonSignatureMalformed],
			"accepted": r.Accepted, "unkeyed": r.Unkeyed, "unrecorded": r.Unrecorded, "unread": int64(len(r.Unread)),
		}
		want := map[string]int64{
			"requests": 10*each + 1, "events": 5 * each, "copies": 4 * each, "after success": 2 * each, "retries": 2 * each, "at once": 0,
			"doubled": 2 * each, "unanswered": each, "conflicts": each, "forged": each,
			"accepted": each, "unkeyed": 1, "unrecorded": 0, "unread": 0,
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("the report differs from the truth (-truth +report):\n%s", diff)
		}
		for _, d := range r.Doubled.Events {
			if !strings.HasPrefix(d.Key, "twice") && !strings.HasPrefix(d.Key, "changed") || d.Times != 2 || len(d.Seen) != 2 || d.Seen[0].Status != 200 || d.Seen[0].At.After(d.Seen[1].At) {
				t.Errorf("doubled: %+v", d)
			}
		}
	})
}

// A gateway that starts while the store is away serves what is observed, and the rest when the store is there.
func TestObserveStartsWithoutTheStore(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	cluster := pgtest.Start(t, pgtest.Options{})
	app := newSink(t)
	cfg := observed(config.Store{Driver: config.Postgres, DSN: cluster.DSN(t)}, app.URL)
	letters := source("letters", app.URL)
	letters.Provider, letters.Secrets = "brevo", []settings.Secret{settings.Literal("user:not-a-real-password")}
	cfg.Sources = append(cfg.Sources, source("mail", app.URL), letters)
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	g, c := start(t, cfg), client(t)
	if r, err := post(t, c, g, cfg.Sources[0], event("early")); err != nil || r.status != 200 || app.count() != 1 {
		t.Errorf("observed: %+v, %v, and the application got %d", r, err, app.count())
	}
	if r, err := postSigned(c, g, "letters", http.Header{}, event("letter")); err != nil || r.status != 429 || r.retry == "" {
		t.Errorf("of a sender that comes again after 429 alone: %+v, %v", r, err)
	}
	if _, text := get(t, c, g, "/api/v1/overview"); !strings.Contains(text, `"refused_by_us":1`) {
		t.Errorf("that a sender was refused is told nobody: %s", text)
	}
	const rejected = `hookonce_rejected_total{reason="store",source="letters"} 1`
	if text := scraped(t, g); !strings.Contains(text, rejected) {
		t.Errorf("that a sender was refused is not counted: %s", text)
	}
	if r, err := postOnce(t, c, g, cfg.Sources[1], event("mail")); err != nil || r.status != 503 || r.retry == "" {
		t.Errorf("not observed: %+v, %v, want a retryable 503", r, err)
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/api/v1/events": 503} {
		if res, text := get(t, c, g, path); res.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", path, res.StatusCode, text, want)
		}
	}
	if err := cluster.Restart(); err != nil {
		t.Fatal(err)
	}
	if r := insist(t, c, g, cfg.Sources[1], event("mail")); r.verdict != "accepted" {
		t.Errorf("not observed, with the store: %+v", r)
	}
	if r, err := post(t, c, g, cfg.Sources[0], event("later")); err != nil || r.status != 200 {
		t.Errorf("observed, with the store: %+v, %v", r, err)
	}
	if text := scraped(t, g); !strings.Contains(text, rejected) {
		t.Errorf("what was refused before the store was there is not counted any more: %s", text)
	}
	if r := report(t, cfg, 2); r.Events != 2 || r.Unrecorded != 0 {
		t.Errorf("report %+v", r)
	}
	if res, text := get(t, c, g, "/api/v1/events"); res.StatusCode != 200 {
		t.Errorf("the API answers %d %s", res.StatusCode, text)
	}
}

// A gateway that waits for the store from its start on tells that it is away, and once it is there that it is back: each of them
// once, and both are on record then.
func TestObserveTellsThatTheStoreIsAway(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	cluster, in, app := pgtest.Start(t, pgtest.Options{}), newIncidents(t), newSink(t)
	cfg := observed(config.Store{Driver: config.Postgres, DSN: cluster.DSN(t)}, app.URL)
	cfg.Notify = []config.Channel{in.channel()}
	if err := cluster.Kill(); err != nil {
		t.Fatal(err)
	}
	var ahead atomic.Int64
	g, err := Start(t.Context(), cfg, Options{Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	pass := func(a *alerting.Alerting) {
		ahead.Add(int64(2 * time.Minute))
		a.Evaluate(t.Context()) // what it finds is sent by itself
	}
	hear := func() {
		t.Helper()
		select {
		case <-in.heard:
		case <-time.After(patience):
			t.Fatal("nobody is told")
		}
	}
	pass(g.opening.alerting) // it is pending
	pass(g.opening.alerting)
	hear()
	if err := cluster.Restart(); err != nil {
		t.Fatal(err)
	}
	<-g.opening.done
	for range 5 {
		pass(g.alerting)
	}
	hear()
	in.mu.Lock()
	defer in.mu.Unlock()
	keys := slices.Compact(in.keys) // a lease ends by this clock while the message is under way: it may come again
	if first, last := in.told[0], in.told[len(in.told)-1]; len(keys) != 2 || first.Type != "alert.firing" || last.Type != "alert.resolved" || first.Data.Alerts[0].Rule != "store_away" {
		t.Errorf("under %q it is told %+v", in.keys, in.told)
	}
	if res, text := get(t, client(t), g, "/api/v1/alerts/history?alert=store_away"); res.StatusCode != 200 || strings.Count(text, `"fired"`) != 1 || strings.Count(text, `"resolved"`) != 1 {
		t.Errorf("on record: %d %s", res.StatusCode, text)
	}
}

// lineByLine is called with the message of every line of a log, by whoever writes it, who waits for
// it.
type lineByLine func(message string)

func (l lineByLine) Enabled(context.Context, slog.Level) bool         { return true }
func (l lineByLine) Handle(_ context.Context, line slog.Record) error { l(line.Message); return nil }
func (l lineByLine) WithAttrs([]slog.Attr) slog.Handler               { return l }
func (l lineByLine) WithGroup(string) slog.Handler                    { return l }

// Why the store cannot be opened is told by the last attempt, and not by the one at the start: somebody mends what it says.
func TestObserveSaysWhyTheStoreIsAway(t *testing.T) {
	t.Parallel()
	const first, second = "the database system is starting up", "the database system is in recovery mode"
	var now atomic.Value // what the database says
	now.Store(first)
	database, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { database.Close() })
	go func() {
		for {
			c, err := database.Accept()
			if err != nil {
				return
			}
			asked := pgproto3.NewBackend(c, c)
			if _, err := asked.ReceiveStartupMessage(); err == nil {
				asked.Send(&pgproto3.ErrorResponse{Severity: "FATAL", Code: "57P03", Message: now.Load().(string)})
				_ = asked.Flush()
			}
			c.Close()
		}
	}()
	var ahead atomic.Int64
	changed := make(chan struct{})
	tellChanged := sync.OnceFunc(func() { close(changed) })
	g, err := Start(t.Context(), observed(config.Store{Driver: config.Postgres, DSN: "postgres://nobody@" + database.Addr().String() + "/nothing?sslmode=disable"}, newSink(t).URL), Options{
		Now: func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) },
		Logger: slog.New(lineByLine(func(message string) {
			if strings.HasPrefix(message, "gateway: the store cannot be opened") && now.Swap(second) == second {
				tellChanged()
			}
		})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	select {
	case <-changed:
	case <-time.After(patience):
		t.Fatal("the store was not asked again")
	}
	ahead.Store(int64(time.Minute)) // what was known at the start is old
	if _, text := get(t, client(t), g, "/api/v1/overview"); !strings.Contains(text, second) || strings.Contains(text, first) {
		t.Errorf("it says %s", text)
	}
}

// A database that answers again, and is gone at the next question, keeps no observed application
// from being served: the start goes on at the next try, with nothing left of the one that failed.
func TestObserveStartsAtTheNextTry(t *testing.T) {
	t.Parallel()
	for name, question := range map[string]string{
		"whose it is":    "coalesce((SELECT cell FROM",
		"what is paused": "SELECT destination, paused_at, paused_by, reason FROM",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsn, err := url.Parse(pgtest.DSN(t))
			if err != nil {
				t.Fatal(err)
			}
			proxy := cutproxy.New(t, dsn.Host, testdb.Messages)
			dsn.Host = proxy.Addr()
			app := newSink(t)
			cfg := observed(config.Store{Driver: config.Postgres, DSN: dsn.String()}, app.URL)
			cfg.Sources = append(cfg.Sources, source("mail", app.URL))
			asks := func(message []byte) bool { return message[0] == 'P' && bytes.Contains(message, []byte(question)) }
			failed, again := make(chan struct{}), make(chan struct{})
			heldUp := sync.OnceFunc(func() { close(failed); <-again })
			o := Options{Logger: slog.New(lineByLine(func(message string) {
				switch {
				case strings.HasPrefix(message, "gateway: the store is away"): // since it was asked at the start
					proxy.Fail(asks, false)
				case strings.HasPrefix(message, "gateway: the store cannot be opened"): // at the next try either
					heldUp()
				}
			}))}
			proxy.Fail(asks, false)
			g, err := Start(t.Context(), cfg, o)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { closeNow(t, g) })
			goOn := sync.OnceFunc(func() { close(again) })
			t.Cleanup(goOn)
			select {
			case <-failed:
			case err := <-g.failed:
				t.Fatal(err)
			case <-time.After(patience):
				t.Fatal("the store was not asked again")
			}
			c := client(t)
			if r, err := post(t, c, g, cfg.Sources[0], event("meanwhile")); err != nil || r.status != 200 || app.count() != 1 {
				t.Errorf("observed: %+v, %v, and the application got %d", r, err, app.count())
			}
			if r, err := postOnce(t, c, g, cfg.Sources[1], event("mail")); err != nil || r.status != 503 || r.retry == "" {
				t.Errorf("not observed: %+v, %v, want a retryable 503", r, err)
			}
			goOn()
			if r := insist(t, c, g, cfg.Sources[1], event("mail")); r.verdict != "accepted" {
				t.Errorf("not observed, with the store: %+v", r)
			}
			if r, err := post(t, c, g, cfg.Sources[0], event("later")); err != nil || r.status != 200 {
				t.Errorf("observed, with the store: %+v, %v", r, err)
			}
		})
	}
}

// What a database may answer otherwise a moment later is waited for; what somebody has to correct
// stops a start.
func TestPasses(t *testing.T) {
	for err, want := range map[error]bool{
		io.ErrUnexpectedEOF:            true,
		context.DeadlineExceeded:       true,
		&pgconn.PgError{Code: "57P03"}: true,  // it is starting up
		&pgconn.PgError{Code: "57014"}: true,  // its statement_timeout
		&pgconn.PgError{Code: "53300"}: true,  // too many connections
		&pgconn.PgError{Code: "55P03"}: true,  // others hold the lock, as when a map of cells is introduced
		&pgconn.PgError{Code: "40P01"}: true,  // a deadlock
		&pgconn.PgError{Code: "42501"}: false, // no right
		&pgconn.PgError{Code: "3D000"}: false, // no such database
		hookonce.ErrSchemaNewer:        false,
		errNoCells:                     false,
		cells.ErrNotThisCell:           false,
		cells.ErrConflict:              false,
		cells.ErrFirstMap:              false,
		cells.ErrHasEvents:             false,
	} {
		if got := passes(explain(config.Store{}, fmt.Errorf("cells: %w", err))); got != want {
			t.Errorf("%v passes: %v, want %v", err, got, want)
		}
	}
}

// Such a gateway stops as any other; and one whose store has to be corrected does not start.
func TestObserveStopsWithoutTheStore(t *testing.T) {
	t.Parallel()
	app := newSink(t)
	g := start(t, observed(config.Store{Driver: config.Postgres, DSN: "postgres://nobody@127.0.0.1:1/nothing?sslmode=disable"}, app.URL))
	if r, err := post(t, client(t), g, source("orders", ""), event("early")); err != nil || r.status != 200 {
		t.Errorf("%+v, %v", r, err)
	}
	for path, want := range map[string]string{"/": "The store is away since", "/api/v1/overview": "Nothing is known of it yet.", "/api/v1/sources": `"orders"`} {
		if res, text := get(t, client(t), g, path); res.StatusCode != 200 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, res.StatusCode, text)
		}
	}
	closeNow(t, g)
	bad := observed(config.Store{Driver: config.SQLite, DSN: t.TempDir() + "/missing/hookonce.db"}, app.URL)
	if _, err := Start(t.Context(), bad, Options{}); err == nil || !strings.Contains(err.Error(), "create it") {
		t.Errorf("started, or failed with %v", err)
	}
}
