package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/cmd/hookonce/internal/hammer"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
)

const fakeSecret = "whsec_bm90IGEgcmVhbCBzZWNyZXQ="

// hammered runs the command and returns its exit status and output.
func hammered(t *testing.T, args ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	w := &env{
		args: append([]string{"hookonce", "hammer"}, args...), environ: []string{"HAMMER_SECRET=" + fakeSecret},
		in: strings.NewReader(""), out: &stdout, err: &stderr,
	}
	return execute(w), stdout.String(), stderr.String()
}

func endpoint(t *testing.T, h http.Handler) string {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// careful is an endpoint that uses the library, with an effect that can be counted.
func careful(t *testing.T, handle func(context.Context, *memstore.Tx, *hookonce.Event) error) string {
	return endpoint(t, hookonce.Webhook(memstore.New(), "standard", provider.Standard(fakeSecret), handle,
		hookonce.WithLogger(slog.New(slog.DiscardHandler))))
}

// payments is a database with one table, as an application would have it.
type payments struct {
	*sql.DB
	dsn string
}

func openPayments(t *testing.T) payments {
	path := filepath.Join(t.TempDir(), "shop with spaces.db")
	u := url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: "_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)"}
	db, err := sql.Open("sqlite", u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	if _, err := db.Exec("CREATE TABLE payments (event TEXT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	return payments{db, "sqlite:" + path}
}

func (p payments) book(key string) error {
	_, err := p.Exec("INSERT INTO payments VALUES (?)", key)
	return err
}

const countPayments = "SELECT count(*) FROM payments WHERE event = '{{key}}'"

// naive is the handler that everybody writes first: look, then act. The copies of a round look
// together, so that the race is lost every time.
func (p payments) naive(t *testing.T, copies int) http.Handler {
	var mu sync.Mutex
	looking := map[string]*sync.WaitGroup{}
	meet := func(key string) *sync.WaitGroup {
		mu.Lock()
		defer mu.Unlock()
		if looking[key] == nil {
			looking[key] = &sync.WaitGroup{}
			looking[key].Add(copies)
		}
		return looking[key]
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := r.Header.Get("Webhook-Id")
		var n int
		if err := p.QueryRow("SELECT count(*) FROM payments WHERE event = ?", key).Scan(&n); err != nil {
			t.Error(err)
		}
		all := meet(key)
		all.Done()
		all.Wait()
		if n == 0 {
			if err := p.book(key); err != nil {
				t.Error(err)
			}
		}
	})
}

func writeFile(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestHammerFindsTheDouble(t *testing.T) {
	p := openPayments(t)
	status, out, errs := hammered(t, endpoint(t, p.naive(t, 10)), "--secret", "env:HAMMER_SECRET",
		"--copies", "10", "--rounds", "2", "--dsn", p.dsn, "--expect-sql", countPayments)
	if status != exitFailure || !strings.Contains(out, "DOUBLED: 2 of 2 events") || !strings.Contains(errs, "2 of 2 events took effect more than once") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// Copies go to all doors at one instant. What is new at two of them is doubled, and each door's part in it is told.
func TestHammerAtSeveralDoors(t *testing.T) {
	const copies, rounds = 7, 6
	done := func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil }
	one, other := careful(t, done), careful(t, done)
	for name, tt := range map[string]struct {
		doors                   []string
		status, news, doubled   int
		says, inEach, allOfThem string
	}{
		"of one":       {[]string{one, door(t, one)}, exitOK, rounds, 0, "ONCE, by the endpoint's own account", "", `all doors +42 +42 +6 +36 +0\n`},
		"of strangers": {[]string{one, other}, exitFailure, 2 * rounds, rounds, "DOUBLED: 6 of 6", ` +21 +21 +6 +15 +6\n`, `all doors +42 +42 +12 +30 +6\n`},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(slices.Clone(tt.doors), "--secret", fakeSecret, "--copies", strconv.Itoa(copies), "--rounds", strconv.Itoa(rounds))
			status, out, errs := hammered(t, args...)
			if status != tt.status || !strings.Contains(out, tt.says) || !regexp.MustCompile(tt.allOfThem).MatchString(out) {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
			for _, d := range tt.doors {
				if !regexp.MustCompile(regexp.QuoteMeta(d) + tt.inEach).MatchString(out) {
					t.Errorf("of %s is said\n%s; want %q", d, out, tt.inEach)
				}
			}
			_, out, _ = hammered(t, append(args, "--json")...)
			var report hammer.Report
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			want := hammer.Tally{Copies: copies * rounds, Acknowledged: copies * rounds, New: tt.news, Duplicates: copies*rounds - tt.news, Doubled: tt.doubled}
			if len(report.Doors) != 2 || report.Total != want || report.Doors[0].Copies != report.Doors[1].Copies {
				t.Errorf("the report is %+v, %+v; want %+v", report.Doors, report.Total, want)
			}
		})
	}
}

// door is another address of the same endpoint.
func door(t *testing.T, to string) string {
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	return endpoint(t, httputil.NewSingleHostReverseProxy(u))
}

// hangUp ends the request without an answer.
func hangUp(w http.ResponseWriter, r *http.Request) {
	_, _ = io.ReadAll(r.Body)
	c, _, _ := w.(http.Hijacker).Hijack()
	c.Close()
}

// alike reports whether text says that, wherever its lines end.
func alike(text, says string) bool {
	return strings.Contains(strings.Join(strings.Fields(text), " "), says)
}

// What is not acknowledged at one of the doors is never called recognised, and a door that acknowledges nothing fails.
func TestHammerAtDoorsThatRefuse(t *testing.T) {
	done := func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil }
	first := careful(t, done) // the other door of which answers after it
	var claimed sync.Map      // by event; closed when it is on record
	on := func(r *http.Request) chan struct{} {
		c, _ := claimed.LoadOrStore(r.Header.Get("Webhook-Id"), make(chan struct{}))
		return c.(chan struct{})
	}
	forward := func(r *http.Request) (*http.Response, error) {
		req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, first, r.Body)
		if err != nil {
			return nil, err
		}
		req.Header = r.Header.Clone()
		return http.DefaultClient.Do(req)
	}
	loses := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		res, err := forward(r)
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
		if res.Header.Get("Hookonce-Status") == "accepted" {
			close(on(r))
		}
		hangUp(w, r)
	}))
	after := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-on(r)
		res, err := forward(r)
		if err != nil {
			t.Error(err)
			return
		}
		res.Body.Close()
		w.Header().Set("Hookonce-Status", res.Header.Get("Hookonce-Status"))
	}))
	var odd atomic.Int64
	whole := careful(t, done)
	through := door(t, whole)
	for name, tt := range map[string]struct {
		doors  []string
		status int
		says   []string
		last   string
	}{
		"503": {[]string{whole, endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))}, exitFailure,
			[]string{"UNPROVEN: 3 events, 9 of 18 copies not acknowledged. Of 3 events one copy was accepted,", "REFUSED: %s acknowledged none of its 9 copies; the last answer there: 503."}, "503"},
		"hang-up": {[]string{whole, endpoint(t, http.HandlerFunc(hangUp))}, exitFailure,
			[]string{"UNPROVEN: 3 events, 9 of 18 copies", "REFUSED: %s acknowledged none of its 9 copies; the last answer there: no answer: EOF."}, "no answer: EOF"},
		"503 once": {[]string{whole, endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if odd.Add(1)%9 == 1 {
				w.WriteHeader(503)
				return
			}
			u, _ := url.Parse(through)
			httputil.NewSingleHostReverseProxy(u).ServeHTTP(w, r)
		}))}, exitOK, []string{"UNPROVEN: 3 events, 1 of 18 copies not acknowledged. Of 1 event one copy was accepted,"}, "503"},
		"stored, and the answer lost": {[]string{after, loses}, exitFailure,
			[]string{"UNPROVEN: 3 events, 9 of 18 copies not acknowledged. Of 3 events every copy that was acknowledged was a duplicate, so the new one is among those that were not", "REFUSED: %s"}, "no answer: EOF"},
		"no account at one": {[]string{whole, endpoint(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))}, exitOK,
			[]string{"UNPROVEN: 3 events, all copies acknowledged. Of 3 events one copy was accepted, and the answers do not say of every other one"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			args := append(slices.Clone(tt.doors), "--secret", fakeSecret, "--copies", "6", "--rounds", "3")
			status, out, errs := hammered(t, args...)
			if status != tt.status || alike(out, "every other one recognised") || alike(out, "ONCE") {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
			for _, says := range tt.says {
				if says := strings.ReplaceAll(says, "%s", tt.doors[1]); !alike(out, says) {
					t.Errorf("it is not said %q:\n%s", says, out)
				}
			}
			if told := strings.Contains(errs, tt.doors[1]+" acknowledged nothing; its last answer: "+tt.last); told != (tt.status == exitFailure) {
				t.Errorf("status %d with %q", status, errs)
			}
			odd.Store(0)
			_, out, _ = hammered(t, append(args, "--json")...)
			var report hammer.Report
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if report.OK != (tt.status == exitOK) || report.Results[hammer.Unproven] == 0 || report.Doors[1].LastRefusal != tt.last {
				t.Errorf("got %+v", report)
			}
		})
	}
}

// The count proves one effect, and a door that acknowledges nothing is a failure all the same.
func TestHammerCountsAtADoorThatRefuses(t *testing.T) {
	p := openPayments(t)
	one := careful(t, func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error { return p.book(ev.Key) })
	closed := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }))
	status, out, errs := hammered(t, one, closed, "--secret", fakeSecret, "--copies", "4", "--rounds", "2", "--settle", "1ms",
		"--dsn", p.dsn, "--expect-sql", countPayments)
	if status != exitFailure || !alike(out, "ONCE: 2 events, 8 requests, one effect each; 4 of 8 copies not acknowledged. REFUSED: "+closed) {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// What was found before a door went away is reported, doubles too, and so is the door.
func TestHammerReportsUntilADoorIsGone(t *testing.T) {
	done := func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil }
	one, other := careful(t, done), careful(t, done)
	for name, tt := range map[string]struct {
		behind  string
		doubled int
		says    string
	}{
		"of one":       {one, 0, "ONCE, by the endpoint's own account: one copy of each of 2 events"},
		"of strangers": {other, 2, "DOUBLED: 2 of 2 events"},
	} {
		for _, form := range []string{"text", "json"} {
			t.Run(name+", "+form, func(t *testing.T) {
				u, err := url.Parse(tt.behind)
				if err != nil {
					t.Fatal(err)
				}
				var copies atomic.Int64
				var dying *httptest.Server
				dying = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if copies.Add(1) == 4 { // of two rounds, and nobody is answered before
						dying.Listener.Close()
					}
					httputil.NewSingleHostReverseProxy(u).ServeHTTP(w, r)
				}))
				defer dying.Close()
				args := []string{one, dying.URL, "--secret", fakeSecret, "--copies", "4", "--rounds", "5"}
				if form == "json" {
					args = append(args, "--json")
				}
				status, out, errs := hammered(t, args...)
				stopped := "round 3 of 5: " + dying.URL + " cannot be sent to: connecting to"
				if status != exitFailure || !strings.Contains(errs, "stopped in "+stopped) || strings.Contains(errs, "2 of 2 events took effect more than once") != (tt.doubled > 0) {
					t.Errorf("status %d\n%s%s", status, out, errs)
				}
				if form == "text" {
					if !alike(out, "STOPPED in "+stopped) || !alike(out, tt.says) {
						t.Errorf("the report is\n%s", out)
					}
					return
				}
				var report hammer.Report
				if err := json.Unmarshal([]byte(out), &report); err != nil {
					t.Fatalf("%v in %s", err, out)
				}
				if len(report.Rounds) != 2 || report.Total.Doubled != tt.doubled || report.Total.Copies != 8 || report.OK || !strings.HasPrefix(report.Stopped, stopped) {
					t.Errorf("got %+v", report)
				}
			})
		}
	}
}

// Who interrupts is told what was found so far.
func TestHammerReportsUntilASignal(t *testing.T) {
	for rounds, says := range map[int]string{0: "", 2: "ONCE, by the endpoint's own account: one copy of each of 2 events"} {
		t.Run(strconv.Itoa(rounds), func(t *testing.T) {
			const copies = 3
			inner := hookonce.Webhook(memstore.New(), "standard", provider.Standard(fakeSecret),
				func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil }, hookonce.WithLogger(slog.New(slog.DiscardHandler)))
			var came atomic.Int64
			url := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n := came.Add(1)
				if n <= int64(rounds*copies) {
					inner.ServeHTTP(w, r)
					return
				}
				_, _ = io.ReadAll(r.Body)
				if n == int64(rounds*copies+1) {
					if p, err := os.FindProcess(os.Getpid()); err != nil || p.Signal(os.Interrupt) != nil {
						t.Error("no signal could be sent", err)
					}
				}
				<-r.Context().Done()
			}))
			status, out, errs := hammered(t, url, "--secret", fakeSecret, "--copies", strconv.Itoa(copies), "--rounds", "5", "--timeout", "5m")
			stopped := "round " + strconv.Itoa(rounds+1) + " of 5: received interrupt"
			if status != exitFailure || !alike(out, "STOPPED in "+stopped+".") || !alike(out, says) || alike(out, "NOT ACKNOWLEDGED") || !strings.Contains(errs, stopped) {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
		})
	}
}

func TestHammerFindsOnce(t *testing.T) {
	p := openPayments(t)
	url := careful(t, func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error { return p.book(ev.Key) })
	status, out, errs := hammered(t, url, "--secret", fakeSecret, "--settle", "50ms", "--seed", "7",
		"--dsn", p.dsn, "--expect-sql", countPayments)
	if status != exitOK || !strings.Contains(out, "ONCE: 4 events, 100 requests, one effect each.") || errs != "" {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
	if !strings.Contains(out, "1 accepted, 24 duplicate") {
		t.Errorf("the results are missing:\n%s", out)
	}
	for line := range strings.Lines(out) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
}

// A statement without the key is judged by its rise.
func TestHammerCountsTheRise(t *testing.T) {
	p := openPayments(t)
	if err := p.book("an earlier one"); err != nil {
		t.Fatal(err)
	}
	url := careful(t, func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error { return p.book(ev.Key) })
	status, out, errs := hammered(t, url, "--secret", fakeSecret, "--settle", "50ms", "--copies", "3",
		"--dsn", p.dsn, "--expect-sql", "SELECT count(*) FROM payments")
	if status != exitOK || !strings.Contains(out, "ONCE") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

func TestHammerFindsTheLost(t *testing.T) {
	p := openPayments(t)
	url := careful(t, func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil })
	status, out, errs := hammered(t, url, "--secret", fakeSecret, "--rounds", "1", "--wait", "100ms",
		"--dsn", p.dsn, "--expect-sql", countPayments)
	if status != exitFailure || !strings.Contains(out, "LOST: 1 of 1 event") || !strings.Contains(errs, "had no effect") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// Without a statement the endpoint's own account counts, and an endpoint that gives none proves nothing.
func TestHammerWithoutSQL(t *testing.T) {
	tests := map[string]struct {
		answer http.HandlerFunc
		status int
		says   string
		result hammer.Result
	}{
		"silent endpoint":     {func(w http.ResponseWriter, r *http.Request) {}, exitOK, "UNPROVEN", hammer.Unproven},
		"two accepted":        {func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Hookonce-Status", "accepted") }, exitFailure, "DOUBLED", hammer.Doubled},
		"signature rejected":  {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(401) }, exitFailure, "are --provider and --secret those of the endpoint?", hammer.Unacknowledged},
		"wrong path":          {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(404) }, exitFailure, "no endpoint for POST", hammer.Unacknowledged},
		"store down":          {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(503) }, exitFailure, "asks for a retry", hammer.Unacknowledged},
		"redirect is refusal": {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(302) }, exitFailure, "NOT ACKNOWLEDGED", hammer.Unacknowledged},
		"hang-up":             {hangUp, exitFailure, "no answer: EOF", hammer.Unacknowledged},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			url := endpoint(t, tt.answer)
			status, out, errs := hammered(t, url, "--secret", fakeSecret, "--copies", "2", "--rounds", "1")
			if status != tt.status || !strings.Contains(strings.ReplaceAll(out, "\n", " "), tt.says) {
				t.Errorf("status %d\n%s%s", status, out, errs)
			}
			_, out, _ = hammered(t, url, "--secret", fakeSecret, "--copies", "2", "--rounds", "1", "--json")
			if !regexp.MustCompile(`"seed": "[0-9]+"`).MatchString(out) { // a number of that size is another one where most programs read it
				t.Errorf("the seed is no text in\n%s", out)
			}
			var report hammer.Report
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v in %s", err, out)
			}
			if len(report.Rounds) != 1 || report.Rounds[0].Result != tt.result || report.OK != (tt.status == exitOK) {
				t.Errorf("got %+v", report)
			}
		})
	}
}

func TestHammerRefuses(t *testing.T) {
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	tests := map[string]struct {
		args   []string
		status int
		says   string
	}{
		"no URL":             {[]string{"--secret", "x"}, exitUsage, "the URL is missing"},
		"copies for one URL": {[]string{"http://a", "http://b", "--secret", "x", "--copies", "1"}, exitUsage, "there are 2 URLs"},
		"a second URL":       {[]string{"http://a", "b", "--secret", fakeSecret}, exitUsage, "must start with http:// or https://"},
		"no scheme":          {[]string{"localhost:8080", "--secret", fakeSecret}, exitUsage, "must start with http:// or https://"},
		"no secret":          {[]string{"http://a"}, exitUsage, "--secret is missing"},
		"secret not there":   {[]string{"http://a", "--secret", "env:NOT_SET"}, exitUsage, "NOT_SET is not set"},
		"secret malformed":   {[]string{"http://a", "--secret", "whsec_%%"}, exitUsage, "not base64"},
		"unknown provider":   {[]string{"http://a", "--secret", "x", "--provider", "strype"}, exitUsage, `did you mean "stripe"?`},
		"no copies":          {[]string{"http://a", "--secret", "x", "--copies", "0"}, exitUsage, "--copies is 0"},
		"no rounds":          {[]string{"http://a", "--secret", "x", "--rounds", "-1"}, exitUsage, "--rounds is -1"},
		"no time":            {[]string{"http://a", "--secret", "x", "--timeout", "0s"}, exitUsage, "--timeout is 0s"},
		"SQL without DSN":    {[]string{"http://a", "--secret", "x", "--expect-sql", "SELECT 1"}, exitUsage, "needs --dsn"},
		"DSN without SQL":    {[]string{"http://a", "--secret", "x", "--dsn", "sqlite:a"}, exitUsage, "needs --expect-sql"},
		"DSN of nothing":     {[]string{"http://a", "--secret", fakeSecret, "--expect-sql", "SELECT 1", "--dsn", "mysql://x"}, exitUsage, "names no store"},
		"no such file":       {[]string{"http://a", "--secret", fakeSecret, "--expect-sql", "SELECT 1", "--dsn", "sqlite:/no/such/file"}, exitUsage, "no such file"},
		"no such body":       {[]string{"http://a", "--secret", fakeSecret, "--body", "/no/such/file"}, exitUsage, "--body"},
		"body is no event":   {[]string{closed.URL, "--secret", "x", "--provider", "stripe", "--body", writeFile(t, "not JSON")}, exitUsage, "has no event in it"},
		"bad header":         {[]string{"http://a", "--secret", fakeSecret, "-H", "no colon"}, exitUsage, "write 'Name: value'"},
		"flags of another":   {[]string{"http://a", "--secret", fakeSecret, "--hmac-header", "X"}, exitUsage, "for --provider hmac"},
		"nobody listens":     {[]string{closed.URL, "--secret", fakeSecret}, exitUsage, closed.URL + " cannot be sent to: connecting to 127.0.0.1"},
		"a door is closed":   {[]string{endpoint(t, http.NotFoundHandler()), closed.URL, "--secret", fakeSecret}, exitUsage, closed.URL + " cannot be sent to: connecting to 127.0.0.1"},
		"the same body":      {[]string{endpoint(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})), "--provider", "stripe", "--secret", "x", "--body", writeFile(t, `{"id":"evt_1"}`)}, exitFailure, "put {{id}}"},
		"not a count":        {[]string{"http://a", "--secret", fakeSecret, "--dsn", openPayments(t).dsn, "--expect-sql", "SELECT 'many'"}, exitUsage, "must give one number"},
		"statement is wrong": {[]string{"http://a", "--secret", fakeSecret, "--dsn", openPayments(t).dsn, "--expect-sql", "SELECT count(*) FROM absent"}, exitUsage, "no such table"},
		"only reading":       {[]string{"http://a", "--secret", fakeSecret, "--dsn", openPayments(t).dsn, "--expect-sql", "DELETE FROM payments RETURNING 1"}, exitUsage, "readonly"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			status, out, errs := hammered(t, tt.args...)
			if status != tt.status || !strings.Contains(errs, tt.says) {
				t.Errorf("status %d, want %d with %q\n%s%s", status, tt.status, tt.says, out, errs)
			}
		})
	}
}

// A double that comes long after its round, when the next one is under way, is found at the end.
func TestHammerFindsTheLateDouble(t *testing.T) {
	p := openPayments(t)
	var earlier string
	url := careful(t, func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
		if earlier != "" {
			if err := p.book(earlier); err != nil {
				return err
			}
		}
		earlier = ev.Key
		return p.book(ev.Key)
	})
	status, out, errs := hammered(t, url, "--secret", fakeSecret, "--copies", "1", "--rounds", "2", "--settle", "1ms",
		"--dsn", p.dsn, "--expect-sql", countPayments)
	if status != exitFailure || !strings.Contains(out, "DOUBLED: 1 of 2 events") {
		t.Errorf("status %d\n%s%s", status, out, errs)
	}
}

// Copies that were all answered with an error may have had their effect nevertheless, even twice.
func TestHammerCountsEffectsBehindErrors(t *testing.T) {
	for times, want := range map[int]string{0: "NOT ACKNOWLEDGED", 1: "NOT ACKNOWLEDGED", 2: "DOUBLED"} {
		p := openPayments(t)
		url := endpoint(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for range times {
				if err := p.book(r.Header.Get("Webhook-Id")); err != nil {
					t.Error(err)
				}
			}
			w.WriteHeader(http.StatusInternalServerError)
		}))
		status, out, errs := hammered(t, url, "--secret", fakeSecret, "--copies", "1", "--rounds", "1", "--settle", "1ms",
			"--dsn", p.dsn, "--expect-sql", countPayments)
		if status != exitFailure || !strings.Contains(out, want) {
			t.Errorf("%d effects: status %d\n%s%s", times, status, out, errs)
		}
	}
}
