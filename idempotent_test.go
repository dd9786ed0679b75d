package hookonce_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// till takes charges: every run writes one, and answers with its number.
type till struct {
	mu      sync.Mutex
	charges []string // committed, in order
	runs    atomic.Int64
}

func (s *till) charge(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
	n := s.runs.Add(1)
	body, err := io.ReadAll(r.Body)
	tx.OnCommit(func() { s.mu.Lock(); s.charges = append(s.charges, string(body)); s.mu.Unlock() })
	w.Header().Set("Location", fmt.Sprintf("/charges/ch_%d", n))
	w.Header().Set("Set-Cookie", "session=fake")
	w.Header()["X-Many"] = []string{"a", "b"}
	w.WriteHeader(http.StatusCreated)
	fmt.Fprintf(w, "charge %d of %s \x00\xff", n, body)
	return err
}

func (s *till) want(t *testing.T, charges ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if got, want := strings.Join(s.charges, " "), strings.Join(charges, " "); got != want {
		t.Errorf("charges %q, want %q", got, want)
	}
}

type chargeFunc = func(http.ResponseWriter, *http.Request, *memstore.Tx) error

var quiet = hookonce.WithLogger(slog.New(slog.DiscardHandler))

// counter returns the endpoint of a till, for the caller that the header Tenant names.
func counter(store hookonce.TxResponseStore[*memstore.Tx], handle chargeFunc, opts ...hookonce.IdempotentOption) http.Handler {
	return hookonce.Idempotent(store, "idempotency", handle, append([]hookonce.IdempotentOption{quiet, hookonce.WithScope(tenant)}, opts...)...)
}

func tenant(r *http.Request) (string, error) { return cmp.Or(r.Header.Get("Tenant"), "acme"), nil }

// buy sends a request with a key; changes are applied to it before.
func buy(h http.Handler, key, body string, changes ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "/charges?dry=0", strings.NewReader(body))
	r.Header.Set("Content-Type", "text/plain")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	for _, change := range changes {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func setHeader(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

// wantAnswer checks the status, and that faults are problem documents which say where to read on.
func wantAnswer(t *testing.T, w *httptest.ResponseRecorder, status int, kind string) {
	t.Helper()
	var doc struct{ Type, Title, Detail, Documentation string }
	if kind != "" {
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("no problem document: %v, %s", err, w.Body)
		}
		if doc.Title == "" || doc.Detail == "" || doc.Documentation == "" || !strings.Contains(w.Header().Get("Link"), "<"+doc.Documentation+`>; rel="describedby"`) {
			t.Errorf("the problem %+v with Link %q does not say what to do", doc, w.Header().Get("Link"))
		}
		kind = "urn:hookonce:problem:" + kind
	}
	if w.Code != status || doc.Type != kind {
		t.Errorf("answered %d %q, want %d %q; body %s", w.Code, doc.Type, status, kind, w.Body)
	}
	retry := w.Header().Get("Retry-After") != ""
	if kind != "" && retry != (status == http.StatusConflict || status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable) {
		t.Errorf("answer %d with Retry-After %q", status, w.Header().Get("Retry-After"))
	}
}

// wantReplay checks that w is the answer that first was.
func wantReplay(t *testing.T, w, first *httptest.ResponseRecorder) {
	t.Helper()
	if w.Header().Get("Idempotency-Replayed") != "true" || first.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("replayed: %q, after %q", w.Header().Get("Idempotency-Replayed"), first.Header().Get("Idempotency-Replayed"))
	}
	if w.Code != first.Code || w.Body.String() != first.Body.String() {
		t.Errorf("replayed %d %q, first was %d %q", w.Code, w.Body, first.Code, first.Body)
	}
	want := first.Header().Clone()
	want.Del("Set-Cookie")
	want.Set("Idempotency-Replayed", "true")
	if got := fmt.Sprint(w.Header()); got != fmt.Sprint(want) {
		t.Errorf("replayed header %v, want %v", got, want)
	}
}

func TestIdempotentRunsOnceAndReplays(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.charge)
	first := buy(h, "k1", "10")
	wantAnswer(t, first, 201, "")
	if first.Header().Get("Set-Cookie") == "" {
		t.Error("the first answer lacks its cookie")
	}
	wantReplay(t, buy(h, "k1", "10"), first)
	wantReplay(t, buy(h, `"k1"`, "10"), first)
	wantAnswer(t, buy(h, "k2", "10"), 201, "")
	s.want(t, "10", "10")
}

// A body that says something else after the first came to nothing is a new request.
func TestIdempotentRunsOtherContentAfterAFailure(t *testing.T) {
	var s till
	fail := true
	h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		if fail {
			return errors.New("the card network is away")
		}
		return s.charge(w, r, tx)
	})
	wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
	fail = false
	first := buy(h, "k1", "11")
	wantAnswer(t, first, 201, "")
	wantReplay(t, buy(h, "k1", "11"), first)
	wantAnswer(t, buy(h, "k1", "10"), 422, "idempotency-key-reused")
	s.want(t, "11")
}

func TestIdempotentKeepsCallersApart(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.charge)
	acme := buy(h, "k1", "10")
	other := buy(h, "k1", "10", setHeader("Tenant", "globex"))
	wantAnswer(t, other, 201, "")
	if other.Body.String() == acme.Body.String() || other.Header().Get("Idempotency-Replayed") != "" {
		t.Errorf("globex was given the answer to acme: %s", other.Body)
	}
	wantReplay(t, buy(h, "k1", "10"), acme)
	wantReplay(t, buy(h, "k1", "10", setHeader("Tenant", "globex")), other)
	s.want(t, "10", "10")
}

func TestIdempotentRefusesCallersItDoesNotKnow(t *testing.T) {
	var s till
	var scope string
	var fault error
	h := counter(memstore.New(), s.charge, hookonce.WithScope(func(*http.Request) (string, error) { return scope, fault }))
	wantAnswer(t, buy(h, "k1", "10"), 403, "caller-unknown")
	scope, fault = "acme", errors.New("no such account")
	wantAnswer(t, buy(h, "k1", "10"), 403, "caller-unknown")
	fault = hookonce.RetryAfter(7*time.Second, errors.New("the directory is away"))
	w := buy(h, "k1", "10")
	wantAnswer(t, w, 503, "unavailable")
	if w.Header().Get("Retry-After") != "7" {
		t.Errorf("Retry-After %q", w.Header().Get("Retry-After"))
	}
	fault = nil
	wantAnswer(t, buy(h, "k1", "10"), 201, "")
	s.want(t, "10")
}

func TestIdempotentKeyIsRequired(t *testing.T) {
	var s till
	store := memstore.New()
	h := counter(store, s.charge)
	wantAnswer(t, buy(h, "", "10"), 400, "idempotency-key-missing")
	wantAnswer(t, buy(h, `"k1`, "10"), 400, "idempotency-key-malformed")
	wantAnswer(t, buy(h, "k1", "10", func(r *http.Request) { r.Header.Add("Idempotency-Key", "k2") }), 400, "idempotency-key-malformed")
	wantAnswer(t, buy(h, strings.Repeat("k", 256), "10"), 400, "idempotency-key-malformed")
	wantAnswer(t, buy(counter(store, s.charge, hookonce.WithStrictKey()), "k1", "10"), 400, "idempotency-key-malformed")
	wantAnswer(t, buy(counter(store, s.charge, hookonce.WithMaxKey(1)), "k1", "10"), 400, "idempotency-key-malformed")
	s.want(t)
}

func TestIdempotentKeyIsOptional(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.charge, hookonce.WithOptionalKey())
	for range 2 {
		w := buy(h, "", "10")
		wantAnswer(t, w, 201, "")
		if w.Header().Get("Idempotency-Replayed") != "" {
			t.Error("an answer without a key was replayed")
		}
	}
	wantAnswer(t, buy(h, `""`, "10"), 400, "idempotency-key-malformed")
	s.want(t, "10", "10")
}

func TestIdempotentRefusesMethodsWithoutEffect(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.charge)
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "TRACE"} {
		w := buy(h, "k1", "10", func(r *http.Request) { r.Method = method })
		wantAnswer(t, w, 405, "method-not-allowed")
		if w.Header().Get("Allow") != "POST, PUT, PATCH, DELETE" {
			t.Errorf("%s: Allow %q", method, w.Header().Get("Allow"))
		}
	}
	s.want(t)
}

// The handler reads the raw body as often as it likes, and everything that it does with its context knows
// what is being worked on.
func TestIdempotentHandlerGetsTheRequest(t *testing.T) {
	h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		first, _ := io.ReadAll(r.Body)
		again, err := r.GetBody()
		if err != nil {
			return err
		}
		second, _ := io.ReadAll(again)
		ref, ok := hookonce.RefFrom(r.Context())
		fresh, err := hookonce.Once(r.Context(), tx, "fee", "po_1")
		fmt.Fprintf(w, "%s %s %d %v %v %s %v %v", first, second, r.ContentLength, r.TransferEncoding, ok, ref.Source, ref.Key != "", fresh)
		return err
	})
	if w := buy(h, "k1", "10"); w.Body.String() != "10 10 2 [] true idempotency true true" {
		t.Errorf("the handler saw %s", w.Body)
	}
	if w := buy(h, "k2", "10", func(r *http.Request) { r.ContentLength, r.TransferEncoding = -1, []string{"chunked"} }); w.Body.String() != "10 10 2 [] true idempotency true false" {
		t.Errorf("the handler saw %s of what came in chunks", w.Body)
	}
}

func TestIdempotentBodies(t *testing.T) {
	var s till
	h := counter(memstore.New(), s.charge, hookonce.WithMaxBody(4))
	wantAnswer(t, buy(h, "k1", "12345"), 413, "body-too-large")
	wantAnswer(t, buy(h, "k1", "12345", func(r *http.Request) { r.ContentLength = -1 }), 413, "body-too-large")
	wantAnswer(t, buy(h, "k1", "123", func(r *http.Request) { r.Body = io.NopCloser(broken{}) }), 400, "body-truncated")
	// Somebody in front has read the body, so that different requests would look alike: see body_test.go.
	wantAnswer(t, buy(h, "k1", "123", func(r *http.Request) { r.Body = http.NoBody }), 503, "unavailable")
	wantAnswer(t, buy(h, "k1", "a=1", setHeader("Content-Type", "application/x-www-form-urlencoded"), func(r *http.Request) {
		r.ContentLength = -1
		_ = r.FormValue("tenant")
	}), 503, "unavailable")
	wantAnswer(t, buy(h, "k1", ""), 201, "")
	wantAnswer(t, buy(h, "k2", "1234", func(r *http.Request) { r.ContentLength = -1 }), 201, "")
	s.want(t, "", "1234")
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// What the handler's errors become, and that nothing stays of the attempt but its trace.
func TestIdempotentFailures(t *testing.T) {
	cause := errors.New("the card network is away")
	for name, c := range map[string]struct {
		err    error
		status int
		kind   string
		retry  string
		state  hookonce.State
	}{
		"error":                                {cause, 503, "unavailable", "10", hookonce.StateFailed},
		"error with a delay":                   {hookonce.RetryAfter(90*time.Second, cause), 503, "unavailable", "90", hookonce.StateFailed},
		"error with any delay":                 {hookonce.RetryAfter(math.MaxInt64, cause), 503, "unavailable", "9223372037", hookonce.StateFailed},
		"error with a no delay":                {hookonce.RetryAfter(-time.Second, cause), 503, "unavailable", "10", hookonce.StateFailed},
		"permanent":                            {hookonce.Permanent(cause), 500, "failed", "", hookonce.StateDead},
		"permanent, over a claim that it lost": {hookonce.Permanent(overtaken(t, cause)), 500, "failed", "", hookonce.StateDead},
	} {
		t.Run(name, func(t *testing.T) {
			var s till
			store := memstore.New()
			var ref hookonce.Ref
			fault := c.err
			h := counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
				ref, _ = hookonce.RefFrom(r.Context())
				return cmp.Or(fault, s.charge(w, r, tx))
			})
			w := buy(h, "k1", "10")
			wantAnswer(t, w, c.status, c.kind)
			if w.Header().Get("Retry-After") != c.retry || strings.Contains(w.Body.String(), "card") {
				t.Errorf("Retry-After %q, body %s", w.Header().Get("Retry-After"), w.Body)
			}
			if trace, err := store.Lookup(t.Context(), ref); err != nil || trace.State != c.state || !strings.Contains(trace.LastError, "card network") {
				t.Errorf("trace %+v, %v", trace, err)
			}
			s.want(t)
			fault = nil
			wantAnswer(t, buy(h, "k1", "10"), 201, "")
			s.want(t, "10")
		})
	}
}

func TestIdempotentDiscardsWhatAFailedHandlerWrote(t *testing.T) {
	var s till
	h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		return errors.Join(s.charge(w, r, tx), errors.New("too late"))
	})
	w := buy(h, "k1", "10")
	wantAnswer(t, w, 503, "unavailable")
	if w.Header().Get("Location") != "" || strings.Contains(w.Body.String(), "charge") {
		t.Errorf("the client sees the answer of a failed handler: %v %s", w.Header(), w.Body)
	}
	s.want(t)
}

func TestIdempotentPanic(t *testing.T) {
	var s till
	var fault any = "a fault in the handler"
	h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		err := s.charge(w, r, tx)
		if fault != nil {
			panic(fault)
		}
		return err
	})
	wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
	fault = http.ErrAbortHandler
	func() {
		defer func() {
			if p := recover(); p != http.ErrAbortHandler {
				t.Errorf("recovered %v, want the handler's wish to cut the connection", p)
			}
		}()
		buy(h, "k1", "10")
	}()
	s.want(t)
	fault = nil
	wantAnswer(t, buy(h, "k1", "10"), 201, "")
	s.want(t, "10")
}

// Which answers are kept, and that the work under the others is undone.
func TestIdempotentKeeps(t *testing.T) {
	for status, kept := range map[int]bool{
		200: true, 204: true, 302: true, 400: true, 402: true, 404: true, 409: true, 422: true,
		401: false, 403: false, 407: false, 408: false, 425: false, 429: false, 500: false, 502: false, 503: false, 599: false,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var s till
			h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
				n := s.runs.Load() + 1
				w.Header().Set("Retry-After", "3")
				w.Header().Set("X-Run", fmt.Sprint(n))
				w.WriteHeader(status)
				return s.charge(w, r, tx)
			})
			first, second := buy(h, "k1", "10"), buy(h, "k1", "10")
			if first.Code != status || first.Header().Get("Retry-After") != "3" || second.Code != status {
				t.Errorf("answered %d %v and %d, want %d of the handler", first.Code, first.Header(), second.Code, status)
			}
			if replayed := second.Header().Get("Idempotency-Replayed") == "true"; replayed != kept || (second.Header().Get("X-Run") == "1") != kept {
				t.Errorf("replayed %v, run %s", replayed, second.Header().Get("X-Run"))
			}
			if kept {
				s.want(t, "10")
			} else {
				s.want(t)
			}
		})
	}
}

// A policy can keep more or less, but no success is given and undone.
func TestIdempotentKeepsByPolicy(t *testing.T) {
	for _, c := range []struct {
		status     int
		keep, kept bool
	}{{500, true, true}, {429, true, true}, {404, false, false}, {200, false, true}, {303, false, true}} {
		var s till
		h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
			w.WriteHeader(c.status)
			return s.charge(w, r, tx)
		}, hookonce.WithKeep(func(int) bool { return c.keep }))
		buy(h, "k1", "10")
		buy(h, "k1", "10")
		if got := s.runs.Load() == 1; got != c.kept {
			t.Errorf("%d with the policy %v: %d runs", c.status, c.keep, s.runs.Load())
		}
	}
}

func TestIdempotentOptionsThatMakeNoSense(t *testing.T) {
	scope := hookonce.WithScope(tenant)
	for text, opts := range map[string][]hookonce.IdempotentOption{
		"needs WithScope":            {},
		"contradict":                 {scope, hookonce.WithoutScope()},
		"WithScope, which says":      {hookonce.WithScope(nil)},
		"WithMaxKey(0)":              {scope, hookonce.WithMaxKey(0)},
		"WithMaxResponse(-1)":        {scope, hookonce.WithMaxResponse(-1)},
		"WithKeep":                   {scope, hookonce.WithKeep(nil)},
		"WithFingerprint":            {scope, hookonce.WithFingerprint("a b")},
		"return r.Host":              {scope, hookonce.WithFingerprint("content-type", "host")},
		"belong to the connection":   {scope, hookonce.WithFingerprint("Transfer-Encoding")},
		"WithFingerprintFunc contra": {scope, hookonce.WithFingerprint("Api-Version"), hookonce.WithFingerprintFunc(func(*http.Request, []byte) []byte { return nil })},
		"WithFingerprintFunc does":   {scope, hookonce.WithFingerprintFunc(nil)},
		"WithDocumentation":          {scope, hookonce.WithDocumentation("docs/idempotency.md")},
		"WithWait":                   {scope, hookonce.WithWait(-1)},
		"WithTimeout":                {scope, hookonce.WithTimeout(0)},
		"WithClock, WithLogger and ": {scope, hookonce.WithLogger(nil)},
	} {
		func() {
			defer func() {
				if p := recover(); p == nil || !strings.Contains(fmt.Sprint(p), text) {
					t.Errorf("%q: panicked with %v", text, p)
				}
			}()
			hookonce.Idempotent(memstore.New(), "idempotency", new(till).charge, opts...)
		}()
	}
}

func TestIdempotentObserves(t *testing.T) {
	var s till
	var seen []string
	observe := hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) {
		seen = append(seen, strings.TrimSpace(o.Status+" "+o.Reason+" "+o.Type))
	})
	fault := error(nil)
	h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		return errors.Join(fault, s.charge(w, r, tx))
	}, observe, hookonce.WithOptionalKey())
	mux := http.NewServeMux()
	mux.Handle("/charges", h)
	buy(mux, "k1", "10")
	buy(mux, "k1", "10")
	buy(mux, "k1", "11")
	buy(mux, "", "10")
	buy(mux, `"`, "10")
	fault = errors.New("the card network is away")
	buy(mux, "k2", "10")
	want := "accepted  /charges, duplicate  /charges, conflict  /charges, unkeyed  /charges, rejected key_malformed, failed  /charges"
	if got := strings.Join(seen, ", "); got != want {
		t.Errorf("observed %s\nwant     %s", got, want)
	}
}

func TestIdempotentLogsNoSecrets(t *testing.T) {
	var log strings.Builder
	var s till
	h := counter(memstore.New(), s.charge, hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		hookonce.WithScope(func(r *http.Request) (string, error) { return r.Header.Get("Authorization"), nil }))
	for _, body := range []string{"secret-body", "secret-body", "secret-other"} {
		buy(h, "k1", body, setHeader("Authorization", "Bearer secret-token"))
	}
	buy(h, "k1", "secret-body")
	if strings.Contains(log.String(), "secret") || strings.Count(log.String(), "\n") != 4 {
		t.Errorf("logged:\n%s", &log)
	}
}

// What a middleware in front has set stays, on the first answer and on copies, unless the handler says otherwise.
func TestIdempotentAnswerJoinsTheHeadersOfMiddlewares(t *testing.T) {
	h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		w.Header()["Vary"] = []string{"Accept", "Origin"}
		w.Header()["Set-Cookie"] = []string{"charge=fake"}
		w.Header().Set("Cache-Control", "no-store")
		w.Header()["X-Many"] = []string{"a", "b", "a"}
		return nil
	})
	front := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Vary"] = []string{"Origin"}
		w.Header()["Set-Cookie"] = []string{"session=fake"}
		w.Header()["Link"] = []string{"</style.css>; rel=preload"}
		w.Header().Set("Cache-Control", "public")
		w.Header().Set("X-Trace", "1")
		w.Header()["X-Many"] = []string{"c"}
		h.ServeHTTP(w, r)
	})
	want := http.Header{
		"Vary": {"Origin", "Accept"}, "Set-Cookie": {"session=fake", "charge=fake"}, "Link": {"</style.css>; rel=preload"},
		"Cache-Control": {"no-store"}, "X-Trace": {"1"}, "X-Many": {"a", "b", "a"}, "Content-Length": {"0"}, "Content-Type": nil,
	}
	if got := buy(front, "k1", "10").Header(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("first answer\n%v\nwant\n%v", got, want)
	}
	want.Set("Idempotency-Replayed", "true")
	want["Set-Cookie"] = []string{"session=fake"}
	if got := buy(front, "k1", "10").Header(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("copy\n%v\nwant\n%v", got, want)
	}
	if links := buy(front, "k1", "11").Header()["Link"]; len(links) != 2 {
		t.Errorf("a fault with the links %q", links)
	}
}

// TestIdempotencyKeyDraft goes through draft-ietf-httpapi-idempotency-key-header-07, section by section. It
// has expired without becoming an RFC.
func TestIdempotencyKeyDraft(t *testing.T) {
	for _, c := range []struct {
		section, says string
		check         func(t *testing.T)
	}{
		{"2.1 Syntax", "the key is an item of structured fields that is a string", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge, hookonce.WithStrictKey())
			wantAnswer(t, buy(h, `"8e03978e-40d5-43dd-bc93-6894a57f9324"`, "10"), 201, "")
			for _, malformed := range []string{"8e03978e", "?1", "1", `("a")`, `"a", "b"`, `'a'`, `"a`} {
				wantAnswer(t, buy(h, malformed, "10"), 400, "idempotency-key-malformed")
			}
			s.want(t, "10")
		}},
		{"2.2 Uniqueness", "a key must not be used again with another payload", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge)
			buy(h, `"a"`, "10")
			wantAnswer(t, buy(h, `"a"`, "11"), 422, "idempotency-key-reused")
			s.want(t, "10")
		}},
		{"2.3 Validity and expiry", "the server may forget keys, and says when", func(t *testing.T) {
			var s till
			store := memstore.New()
			h := counter(store, s.charge)
			buy(h, `"a"`, "10")
			if n, err := store.Purge(t.Context(), hookonce.PurgeRequest{Before: time.Now(), Limit: 10}); n != 1 || err != nil {
				t.Fatalf("purged %d, %v", n, err)
			}
			wantAnswer(t, buy(h, `"a"`, "11"), 201, "")
			s.want(t, "10", "11")
		}},
		{"2.4 Fingerprint", "a fingerprint of the request tells a copy from another request", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge)
			first := buy(h, `"a"`, "10")
			wantReplay(t, buy(h, `"a"`, "10", setHeader("Date", "Sat, 21 Nov 2026 12:00:00 GMT")), first)
			wantAnswer(t, buy(h, `"a"`, "10 "), 422, "idempotency-key-reused")
		}},
		{"2.5 Responsibilities of the client", "a client that does not know what came of a request sends it again, as it was", func(t *testing.T) {
			var s till
			store := memstore.New()
			cut := store.With(memstore.WithCommit(func(persist func()) error { persist(); return errAway }))
			wantAnswer(t, buy(counter(cut, s.charge), `"a"`, "10"), 503, "unavailable")
			wantAnswer(t, buy(counter(store, s.charge), `"a"`, "10"), 201, "")
			s.want(t, "10")
		}},
		{"2.6 First time request", "it is processed normally", func(t *testing.T) {
			var s till
			w := buy(counter(memstore.New(), s.charge), `"a"`, "10")
			wantAnswer(t, w, 201, "")
			if w.Header().Get("Location") != "/charges/ch_1" || w.Header().Get("Idempotency-Replayed") != "" {
				t.Errorf("header %v", w.Header())
			}
			s.want(t, "10")
		}},
		{"2.6 Duplicate request (retry)", "it gets the result of the completed one, success or error", func(t *testing.T) {
			var s till
			status := http.StatusPaymentRequired
			h := counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
				w.WriteHeader(status)
				return s.charge(w, r, tx)
			})
			first := buy(h, `"a"`, "10")
			wantAnswer(t, first, 402, "")
			status = http.StatusCreated
			wantReplay(t, buy(h, `"a"`, "10"), first)
			first = buy(h, `"b"`, "10")
			wantReplay(t, buy(h, `"b"`, "10"), first)
		}},
		{"2.6 Concurrent request", "it is answered with a conflict while the first is processed", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s till
				gate := make(chan struct{})
				h := counter(memstore.New(), heldBack(gate, s.charge))
				first := at(1, `"a"`, "10", h)
				synctest.Wait()
				wantAnswer(t, buy(h, `"a"`, "10"), 409, "request-in-progress")
				close(gate)
				<-first
				s.want(t, "10")
			})
		}},
		{"2.7 Error handling", "400 without a key that is required, 422 for a key used otherwise, 409 while outstanding, each with a link to the documentation", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge, hookonce.WithDocumentation("https://developer.example.com/idempotency"))
			buy(h, `"a"`, "10")
			for title, w := range map[string]*httptest.ResponseRecorder{
				"Idempotency-Key is missing":      buy(h, "", "10"),
				"Idempotency-Key is already used": buy(h, `"a"`, "11"),
			} {
				anchor := map[int]string{400: "idempotency-key-missing", 422: "idempotency-key-reused"}[w.Code]
				if !strings.Contains(w.Body.String(), `"title":"`+title+`"`) || !strings.Contains(w.Body.String(), "https://developer.example.com/idempotency#"+anchor) {
					t.Errorf("%d: %s", w.Code, w.Body)
				}
				if link := w.Header().Get("Link"); link != `<https://developer.example.com/idempotency#`+anchor+`>; rel="describedby"; type="text/html"` {
					t.Errorf("Link %q", link)
				}
			}
		}},
		{"5 Security considerations", "keys are scoped to callers, so that guessing one reveals nothing", func(t *testing.T) {
			TestIdempotentReplayToAnotherPrincipal(t)
		}},
		{"5 Security considerations", "keys that cannot be one are not stored", func(t *testing.T) {
			var s till
			h := counter(memstore.New(), s.charge)
			wantAnswer(t, buy(h, strings.Repeat("k", 256), "10"), 400, "idempotency-key-malformed")
			s.want(t)
		}},
	} {
		t.Run(c.section+": "+c.says, c.check)
	}
}
