package hookonce_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/memstore"
)

// TestStrangersWriteFewLines: what strangers send 2 000 times a second has some lines and their number, of a bounded
// length; the outcomes of events that are verified have a line each.
func TestStrangersWriteFewLines(t *testing.T) {
	testskip.Race(t)
	long := strings.Repeat("x", 60<<10)
	failing := func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error { return errors.New(long) }
	panicking := func(http.ResponseWriter, *http.Request, *memstore.Tx) error { panic(long) }
	scope := hookonce.WithScope(func(r *http.Request) (string, error) {
		if r.Header.Get("Away") != "" {
			return "", hookonce.RetryAfter(time.Second, errors.New(long))
		}
		return r.Header.Get("Tenant"), nil
	})
	webhook := func(l *slog.Logger) http.Handler {
		return hookonce.Webhook(memstore.New(), "sender", sender{}, new(ledger).handle, hookonce.WithLogger(l))
	}
	keyed := func(l *slog.Logger) http.Handler {
		return hookonce.Idempotent(memstore.New(), "charges", failing, hookonce.WithLogger(l), scope)
	}
	panics := func(l *slog.Logger) http.Handler {
		return hookonce.Idempotent(memstore.New(), "charges", panicking, hookonce.WithLogger(l), scope)
	}
	lease := func(l *slog.Logger) http.Handler {
		return hookonce.IdempotentLease(memstore.New(), "charges", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(long) }), hookonce.WithLogger(l), scope)
	}
	for name, c := range map[string]struct {
		handler func(*slog.Logger) http.Handler
		method  string
		header  func(n int) http.Header
	}{
		"forged":           {webhook, "POST", func(int) http.Header { return http.Header{"Sig": {long}} }},
		"provider panics":  {webhook, "POST", func(int) http.Header { return http.Header{"Sig": {"panic"}} }},
		"no key":           {keyed, "POST", func(int) http.Header { return nil }},
		"long key":         {keyed, "POST", func(int) http.Header { return http.Header{"Idempotency-Key": {long}, "Tenant": {"a"}} }},
		"unknown caller":   {keyed, "POST", func(int) http.Header { return http.Header{"Idempotency-Key": {"k"}} }},
		"scope away":       {keyed, "POST", func(int) http.Header { return http.Header{"Idempotency-Key": {"k"}, "Away": {"1"}} }},
		"handler fails":    {keyed, "POST", func(n int) http.Header { return http.Header{"Idempotency-Key": {fmt.Sprint(n)}, "Tenant": {"a"}} }},
		"lease, no key":    {lease, "POST", func(int) http.Header { return nil }},
		"lease, it panics": {lease, "POST", func(n int) http.Header { return http.Header{"Idempotency-Key": {fmt.Sprint(n)}, "Tenant": {"a"}} }},
		"handler panics":   {panics, "POST", func(n int) http.Header { return http.Header{"Idempotency-Key": {fmt.Sprint(n)}, "Tenant": {"a"}} }},
		"too large":        {webhook, "POST", func(int) http.Header { return http.Header{"Large": {"1"}} }},
		"method":           {webhook, "PUT", func(int) http.Header { return nil }},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				h := c.handler(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})))
				for n := range 2000 {
					r := httptest.NewRequest(c.method, "/", strings.NewReader("a 1"))
					r.Header = c.header(n)
					if r.Header == nil {
						r.Header = http.Header{}
					}
					if r.Header.Get("Large") != "" {
						r.ContentLength = hookonce.DefaultMaxBody + 1
					}
					h.ServeHTTP(httptest.NewRecorder(), r)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				lines := strings.Split(strings.TrimSpace(log.String()), "\n")
				if len(lines) > 2*(10+1) { // two kinds, with a line about how many were held back
					t.Errorf("%d lines, the last %.300s", len(lines), lines[len(lines)-1])
				}
				if len(lines) > 1 && !strings.Contains(lines[len(lines)-1], "suppressed=1990") {
					t.Errorf("the last line does not tell how many there were: %.300s", lines[len(lines)-1])
				}
				for _, line := range lines {
					if len(line) > 12<<10 {
						t.Errorf("a line of %d bytes: %.300s", len(line), line)
					}
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		h := webhook(slog.New(slog.NewTextHandler(&log, nil)))
		for range 100 {
			r := httptest.NewRequest("POST", "/", strings.NewReader("- 1"))
			r.Header.Set("Sig", "ok")
			h.ServeHTTP(httptest.NewRecorder(), r)
		}
		if n := strings.Count(log.String(), "webhook unkeyed"); n != 100 {
			t.Errorf("%d lines about 100 events", n)
		}
	})
}

// An observer that panics changes nothing, and is logged once, with where it comes from.
func TestObserverThatPanics(t *testing.T) {
	calls := 0
	observe := hookonce.WithObserver(func(context.Context, hookonce.Observation) {
		calls++
		if calls%2 == 0 {
			panic(http.ErrAbortHandler)
		}
		panic("a fault in the observer")
	})
	for name, c := range map[string]struct {
		run  func(hookonce.Option) int
		want int
	}{
		"Webhook": {func(logger hookonce.Option) int {
			return post(endpoint(memstore.New(), new(ledger).handle, observe, logger), "a 1").Code
		}, 200},
		"Webhook, two events": {func(logger hookonce.Option) int {
			return post(endpoint(memstore.New(), new(ledger).handle, observe, logger), "a 1\nb 1").Code
		}, 200},
		"Webhook, rejected": {func(logger hookonce.Option) int {
			return postSigned(t.Context(), endpoint(memstore.New(), new(ledger).handle, observe, logger), "forged", "a 1").Code
		}, 401},
		"Idempotent": {func(logger hookonce.Option) int {
			return buy(counter(memstore.New(), new(till).charge, observe, logger), "k1", "10").Code
		}, 201},
		"Idempotent, rejected": {func(logger hookonce.Option) int {
			return buy(counter(memstore.New(), new(till).charge, observe, logger), "", "10").Code
		}, 400},
		"IdempotentLease": {func(logger hookonce.Option) int {
			return buy(desk(memstore.New(), new(printer), observe, logger), "k1", "10").Code
		}, 201},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			calls = 0
			if got := c.run(hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))); got != c.want {
				t.Errorf("answered %d, want %d", got, c.want)
			}
			if n := strings.Count(log.String(), "the observer panicked"); n != calls || calls == 0 || !strings.Contains(log.String(), "options_test.go") {
				t.Errorf("%d calls, logged %s", calls, &log)
			}
		})
	}
}

func TestWebhookRefusesOptionsThatMakeNoSense(t *testing.T) {
	type option interface {
		hookonce.WebhookOption
		hookonce.WebhookLeaseOption
	}
	for name, c := range map[string]struct {
		option option
		named  string
	}{
		"no time":                 {hookonce.WithTimeout(0), "WithTimeout"},
		"negative wait":           {hookonce.WithWait(-time.Second), "WithWait"},
		"no body at all":          {hookonce.WithMaxBody(0), "WithMaxBody"},
		"no clock":                {hookonce.WithClock(nil), "WithClock"},
		"no logger":               {hookonce.WithLogger(nil), "WithLogger"},
		"no observer":             {hookonce.WithObserver(nil), "WithObserver"},
		"a URL without a scheme":  {hookonce.WithPublicURL("shop.example/secret"), "WithPublicURL"},
		"a URL of another scheme": {hookonce.WithPublicURL("ftp://shop.example/secret"), "WithPublicURL"},
		"a URL without a host":    {hookonce.WithPublicURL("https:///secret"), "WithPublicURL"},
		"a URL with a fragment":   {hookonce.WithPublicURL("https://shop.example/#secret"), "WithPublicURL"},
		"no URL":                  {hookonce.WithPublicURL("https://shop.example/%zz?secret"), "WithPublicURL"},
	} {
		for door, construct := range map[string]func(){
			"Webhook":      func() { endpoint(memstore.New(), new(ledger).handle, c.option) },
			"WebhookLease": func() { leased(memstore.New(), new(outside).handle, c.option) },
		} {
			func() {
				defer func() {
					if text := fmt.Sprint(recover()); !strings.Contains(text, c.named) || strings.Contains(text, "secret") {
						t.Errorf("%s, %s: the panic says %s", name, door, text)
					}
				}()
				construct()
			}()
		}
	}
	endpoint(memstore.New(), new(ledger).handle, hookonce.WithWait(0), hookonce.WithPublicURL("")) // does not wait, and knows no URL
}

// An option in the wrong place does not compile: its type can be assigned to the options of those constructors that it
// is for, and of no other. There is no option beside those of the table.
func TestOptionsFitTheirConstructors(t *testing.T) {
	constructors := map[string]reflect.Type{
		"Webhook":         reflect.TypeFor[hookonce.WebhookOption](),
		"WebhookLease":    reflect.TypeFor[hookonce.WebhookLeaseOption](),
		"Idempotent":      reflect.TypeFor[hookonce.IdempotentOption](),
		"IdempotentLease": reflect.TypeFor[hookonce.IdempotentLeaseOption](),
	}
	var (
		all    = []string{"Idempotent", "IdempotentLease", "Webhook", "WebhookLease"}
		events = []string{"Webhook", "WebhookLease"}
		keys   = []string{"Idempotent", "IdempotentLease"}
		leases = []string{"IdempotentLease", "WebhookLease"}
	)
	options := map[string]struct {
		option any
		fits   []string
	}{
		"WithTimeout":         {hookonce.WithTimeout, all},
		"WithWait":            {hookonce.WithWait, all},
		"WithMaxBody":         {hookonce.WithMaxBody, all},
		"WithClock":           {hookonce.WithClock, all},
		"WithLogger":          {hookonce.WithLogger, all},
		"WithObserver":        {hookonce.WithObserver, all},
		"WithPublicURL":       {hookonce.WithPublicURL, events},
		"WithUnkeyedRecord":   {hookonce.WithUnkeyedRecord, events},
		"WithScope":           {hookonce.WithScope, keys},
		"WithoutScope":        {hookonce.WithoutScope, keys},
		"WithStrictKey":       {hookonce.WithStrictKey, keys},
		"WithOptionalKey":     {hookonce.WithOptionalKey, keys},
		"WithMaxKey":          {hookonce.WithMaxKey, keys},
		"WithMaxResponse":     {hookonce.WithMaxResponse, keys},
		"WithFingerprint":     {hookonce.WithFingerprint, keys},
		"WithFingerprintFunc": {hookonce.WithFingerprintFunc, keys},
		"WithKeep":            {hookonce.WithKeep, keys},
		"WithDocumentation":   {hookonce.WithDocumentation, keys},
		"WithLease":           {hookonce.WithLease, leases},
	}
	for name, o := range options {
		var fits []string
		for constructor, wants := range constructors {
			if reflect.TypeOf(o.option).Out(0).AssignableTo(wants) {
				fits = append(fits, constructor)
			}
		}
		if slices.Sort(fits); !slices.Equal(fits, o.fits) {
			t.Errorf("%s fits %v; want %v", name, fits, o.fits)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "options.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "With") {
			if _, known := options[f.Name.Name]; !known {
				t.Errorf("%s is not in the table", f.Name.Name)
			}
		}
	}
}
