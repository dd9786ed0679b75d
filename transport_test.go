package hookonce_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

// wire is the network: it keeps the keys and bodies that came.
type wire struct {
	mu     sync.Mutex
	keys   []string
	bodies []string
}

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	key, given := req.Header["Idempotency-Key"]
	if given && len(key) > 0 && key[0] == "" {
		key = []string{"an empty one"}
	}
	w.keys = append(w.keys, strings.Join(key, ","))
	w.bodies = append(w.bodies, string(body))
	return &http.Response{StatusCode: 200, Body: http.NoBody, Request: req}, nil
}

// call makes one request through a Transport over w, and returns the key that came.
func (w *wire) call(ctx context.Context, t *testing.T, method, url, body string) string {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(ctx, method, url, r)
	if err != nil {
		t.Fatal(err)
	}
	return w.send(t, req)
}

func (w *wire) send(t *testing.T, req *http.Request) string {
	t.Helper()
	if _, err := hookonce.Transport(w).RoundTrip(req); err != nil {
		t.Fatal(err)
	}
	return w.keys[len(w.keys)-1]
}

const charges = "https://api.example/v1/charges"

func attempt(key string) context.Context {
	return hookonce.ContextWithRef(context.Background(), hookonce.Ref{Source: "billing", Key: key})
}

// These keys are in the hands of others: changing one repeats effects after an update. What the request says
// is no part of them.
func TestOutboundKeysNeverChange(t *testing.T) {
	w := new(wire)
	for _, body := range []string{`{"amount":1}`, `{"amount":2}`, ``} {
		if got := w.call(attempt("evt_1"), t, "POST", charges, body); got != "439644a094d726d7bb58f2b77c2523e6" {
			t.Errorf("the key of %q = %s", body, got)
		}
	}
	if got := w.call(hookonce.WithStep(attempt("evt_1"), "fee"), t, "POST", charges, ""); got != "e7f171d918a83564796438479cf7d00b" {
		t.Errorf("the key of a step = %s", got)
	}
}

func TestRequestsThatGetNoKey(t *testing.T) {
	background := context.Background()
	for _, c := range []struct {
		name   string
		ctx    context.Context
		method string
		header http.Header
		want   string
	}{
		{"no work", background, "POST", nil, ""},
		{"a step without work", hookonce.WithStep(background, "fee"), "POST", nil, ""},
		{"work without a key", attempt(""), "POST", nil, ""},
		{"work without a source", hookonce.ContextWithRef(background, hookonce.Ref{Key: "evt_1"}), "POST", nil, ""},
		{"reading", attempt("evt_1"), "GET", nil, ""},
		{"the default method", attempt("evt_1"), "", nil, ""},
		{"asking", attempt("evt_1"), "HEAD", nil, ""},
		{"set already", attempt("evt_1"), "POST", http.Header{"Idempotency-Key": {"mine"}}, "mine"},
		{"suppressed", attempt("evt_1"), "POST", http.Header{"Idempotency-Key": nil}, ""},
		{"set in another spelling", attempt("evt_1"), "POST", http.Header{"idempotency-key": {"mine"}}, ""},
		{"set already, and an empty step", hookonce.WithStep(hookonce.WithStep(attempt("evt_1"), "fee"), ""), "POST", http.Header{"Idempotency-Key": {"mine"}}, "mine"},
		{"set already, and a step without work", hookonce.WithStep(background, "fee"), "POST", http.Header{"Idempotency-Key": {"mine"}}, "mine"},
		{"set already, and a step of work without a key", hookonce.WithStep(attempt(""), "fee"), "POST", http.Header{"Idempotency-Key": {"mine"}}, "mine"},
	} {
		req, err := http.NewRequestWithContext(c.ctx, c.method, charges, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Method = c.method
		if c.header != nil {
			req.Header = c.header
		}
		if got := new(wire).send(t, req); got != c.want {
			t.Errorf("%s: key %q, want %q", c.name, got, c.want)
		}
	}
}

// A client that makes up a key for each call of its own calls under that of the step: a handler that runs again would charge
// again. So it is with every other key, also that which came in.
func TestNamedCallsHaveTheKeyOfTheirStep(t *testing.T) {
	for whose, header := range map[string]func() http.Header{
		"no key":                      func() http.Header { return http.Header{} },
		"a random one":                func() http.Header { return http.Header{"Idempotency-Key": {rand.Text()}} },
		"a random one, spelled lower": func() http.Header { return http.Header{"idempotency-key": {rand.Text()}} },
		"one that stays the same":     func() http.Header { return http.Header{"Idempotency-Key": {"mine"}} },
		"the one that came in":        func() http.Header { return http.Header{"Idempotency-Key": {"k1"}} },
		"none, by intent":             func() http.Header { return http.Header{"Idempotency-Key": nil} },
	} {
		w := new(wire)
		call := func(ctx context.Context) error {
			for _, step := range []string{"charge", "fee"} {
				w.send(t, charge(t, hookonce.WithStep(ctx, step), "a", func(r *http.Request) { r.Header = header() }))
			}
			return errAway
		}
		webhook := endpoint(memstore.New(), func(ctx context.Context, _ *memstore.Tx, _ *hookonce.Event) error { return call(ctx) })
		webhookLease := leased(memstore.New(), func(ctx context.Context, _ *hookonce.Event) error { return call(ctx) })
		idempotent := counter(memstore.New(), func(_ http.ResponseWriter, r *http.Request, _ *memstore.Tx) error { return call(r.Context()) })
		idempotentLease := desk(memstore.New(), http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
			call(r.Context())
			rw.WriteHeader(http.StatusServiceUnavailable)
		}))
		for door, deliver := range map[string]func() *httptest.ResponseRecorder{
			"Webhook":         func() *httptest.ResponseRecorder { return post(webhook, "k1 1") },
			"WebhookLease":    func() *httptest.ResponseRecorder { return post(webhookLease, "k1 1") },
			"Idempotent":      func() *httptest.ResponseRecorder { return buy(idempotent, "k1", "10") },
			"IdempotentLease": func() *httptest.ResponseRecorder { return buy(idempotentLease, "k1", "10") },
		} {
			w.keys = nil
			deliver()
			deliver()
			if len(w.keys) != 4 || !slices.Equal(w.keys[:2], w.keys[2:]) || w.keys[0] == w.keys[1] || len(w.keys[0]) != 32 || len(w.keys[1]) != 32 {
				t.Errorf("%s, %s: the keys of two calls of two attempts: %q", whose, door, w.keys)
			}
		}
	}
}

func TestMutationsGetKeys(t *testing.T) {
	seen := map[string]bool{}
	for _, method := range []string{"POST", "PATCH", "PUT", "DELETE"} {
		seen[new(wire).call(attempt("evt_1"), t, method, charges, "")] = true
	}
	if len(seen) != 4 || seen[""] {
		t.Errorf("keys: %v", seen)
	}
}

// calls is what a handler does in one attempt.
func calls(t *testing.T, key string) []string {
	w, ctx := new(wire), attempt(key)
	w.call(ctx, t, "POST", charges, "a")
	w.call(ctx, t, "PUT", charges, "a")
	w.call(ctx, t, "DELETE", charges+"/1", "")
	w.call(ctx, t, "DELETE", charges+"/2", "")
	w.call(ctx, t, "POST", strings.Replace(charges, "api", "eu.api", 1), "a")
	w.call(hookonce.WithStep(ctx, "fee"), t, "POST", charges, "a")
	w.call(hookonce.WithStep(ctx, "tax"), t, "POST", charges, "a")
	return w.keys
}

// A re-run repeats every key, and another event has none of them.
func TestReRunsRepeatTheirKeys(t *testing.T) {
	first := calls(t, "evt_1")
	if again := calls(t, "evt_1"); !slices.Equal(first, again) {
		t.Errorf("keys %v, then %v", first, again)
	}
	all := slices.Concat(first, calls(t, "evt_2"))
	slices.Sort(all)
	if different := slices.Compact(slices.Clone(all)); len(different) != len(all) || all[0] == "" {
		t.Errorf("different calls share a key: %v", all)
	}
}

// A client that tries the same call again, below or above, repeats its key: also after other calls.
func TestRepeatedCallsRepeatTheirKey(t *testing.T) {
	w, ctx := new(wire), attempt("evt_1")
	a := w.call(ctx, t, "POST", charges, "a")
	b := w.call(ctx, t, "POST", charges+"/b", "b")
	if a == b || w.call(ctx, t, "POST", charges, "a") != a || w.call(ctx, t, "POST", charges+"/b", "b") != b {
		t.Errorf("keys: %v", w.keys)
	}
	step := hookonce.WithStep(ctx, "fee")
	if w.call(step, t, "POST", charges, "c") != w.call(step, t, "POST", charges, "d") {
		t.Error("calls of one step have different keys")
	}
}

// refused sends two requests to one address, and checks that the second is not sent, and why.
func refused(t *testing.T, first, second *http.Request, why string) {
	t.Helper()
	w := new(wire)
	w.send(t, first)
	body := &closer{Reader: second.Body}
	second.Body = body
	_, err := hookonce.Transport(w).RoundTrip(second)
	if !errors.Is(err, hookonce.ErrUnnamedCall) || !strings.Contains(err.Error(), why) || !strings.Contains(err.Error(), "WithStep") {
		t.Errorf("the second call: %v; want an error that says %q and what to do", err, why)
	}
	if err != nil && strings.Contains(err.Error(), "secret") {
		t.Errorf("the error tells what the call said: %v", err)
	}
	if len(w.keys) != 1 || !body.closed {
		t.Errorf("%d calls were sent, the body was closed: %v", len(w.keys), body.closed)
	}
}

// charge builds a request; changes are applied to it.
func charge(t *testing.T, ctx context.Context, body string, changes ...func(*http.Request)) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", charges, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, change := range changes {
		change(req)
	}
	return req
}

// A client whose retry loop writes the time into the body: its retries would be further charges.
func TestTransportRetryWithTimestampIsRefused(t *testing.T) {
	ctx := attempt("evt_1")
	refused(t, charge(t, ctx, `{"secret":100,"at":1}`), charge(t, ctx, `{"secret":100,"at":2}`), "another body")
	w, named := new(wire), hookonce.WithStep(attempt("evt_1"), "charge")
	for _, body := range []string{`{"amount":100,"at":1}`, `{"amount":100,"at":2}`, `{"amount":100,"at":3}`} {
		w.send(t, charge(t, named, body))
	}
	if len(w.keys) != 3 || len(slices.Compact(slices.Clone(w.keys))) != 1 || w.keys[0] == "" {
		t.Errorf("a named call and its retries have the keys %q", w.keys)
	}
}

// A body with a sequence id that counts across attempts, or is drawn at random: the second attempt has the key
// of the first, also where it calls nothing before, or something else.
func TestTransportBodyWithSequenceId(t *testing.T) {
	w := new(wire)
	first := w.send(t, charge(t, attempt("evt_1"), `{"seq":1}`))
	ctx := attempt("evt_1")
	w.call(ctx, t, "POST", charges+"/lookup", `{"seq":2}`)
	if again := w.send(t, charge(t, ctx, `{"seq":3}`)); again != first || first == "" {
		t.Errorf("the keys are %q and %q", first, again)
	}
}

// Calls that differ only in a header are different calls, such as charges on behalf of two accounts.
func TestTransportCallsThatDifferInAHeaderAreRefused(t *testing.T) {
	on := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, name := range []string{"Stripe-Account", "Authorization", "Content-Type", "Cookie", "X-Tenant"} {
		ctx := attempt("evt_1")
		refused(t, charge(t, ctx, "a", on(name, "secret-a")), charge(t, ctx, "a", on(name, "secret-b")), "another header field "+name)
		ctx = attempt("evt_1")
		refused(t, charge(t, ctx, "a"), charge(t, ctx, "a", on(name, "secret-b")), "another header field "+name)
		ctx = attempt("evt_1")
		refused(t, charge(t, ctx, "a", on(name, "secret-a")), charge(t, ctx, "a"), "lacks the header field "+name)
	}
	for _, name := range []string{"Date", "Traceparent", "tracestate", "Baggage", "X-Request-ID", "User-Agent", "Referer"} {
		w, ctx := new(wire), attempt("evt_1")
		first := w.send(t, charge(t, ctx, "a", on(name, "a")))
		if again := w.send(t, charge(t, ctx, "a", on(name, "b"))); again != first {
			t.Errorf("%s makes it another call", name)
		}
	}
	w, ctx := new(wire), attempt("evt_1")
	seller := w.send(t, charge(t, hookonce.WithStep(ctx, "seller"), "a", on("Stripe-Account", "acct_1")))
	if platform := w.send(t, charge(t, hookonce.WithStep(ctx, "platform"), "a")); platform == seller {
		t.Errorf("calls with steps of their own share the key %s", seller)
	}
}

func TestTransportCallsThatDifferInTheQueryAreRefused(t *testing.T) {
	ctx := attempt("evt_1")
	refused(t, charge(t, ctx, "a"), charge(t, ctx, "a", func(r *http.Request) { r.URL.RawQuery = "secret=1" }), "another query")
}

// Of different calls to one address at the same time one is sent, whichever it is.
func TestTransportConcurrentCallsAreRefusedAlike(t *testing.T) {
	w, ctx := new(wire), attempt("evt_1")
	var all sync.WaitGroup
	var refusals atomic.Int64
	for i := range 20 {
		req := charge(t, ctx, fmt.Sprint(i))
		all.Go(func() {
			if _, err := hookonce.Transport(w).RoundTrip(req); errors.Is(err, hookonce.ErrUnnamedCall) {
				refusals.Add(1)
			}
		})
	}
	all.Wait()
	if len(w.keys) != 1 || refusals.Load() != 19 {
		t.Errorf("%d calls were sent and %d refused", len(w.keys), refusals.Load())
	}
}

// The innermost step counts, an empty one is none, and none reaches into other work.
func TestStepsNest(t *testing.T) {
	w, ctx := new(wire), attempt("evt_1")
	plain := w.call(ctx, t, "POST", charges, "")
	fee := hookonce.WithStep(ctx, "fee")
	tax := w.call(hookonce.WithStep(ctx, "tax"), t, "POST", charges, "")
	if got := w.call(hookonce.WithStep(fee, "tax"), t, "POST", charges, ""); got != tax {
		t.Errorf("key %s, want that of the inner step", got)
	}
	if got := w.call(hookonce.WithStep(fee, ""), t, "POST", charges, ""); got != plain {
		t.Errorf("key %s, want that without a step", got)
	}
	other := hookonce.ContextWithRef(fee, hookonce.Ref{Source: "billing", Key: "evt_1"})
	if got := w.call(other, t, "POST", charges, ""); got != plain {
		t.Errorf("key %s, want that without a step", got)
	}
}

// A body that can be read only once is not read for the key. A second one cannot be compared with it.
func TestTransportBodiesThatAreReadOnce(t *testing.T) {
	stream := func(ctx context.Context) *http.Request {
		return charge(t, ctx, "stream", func(r *http.Request) { r.GetBody = nil })
	}
	w := new(wire)
	if key := w.send(t, stream(attempt("evt_1"))); key == "" || w.bodies[0] != "stream" {
		t.Errorf("key %q, body %q", key, w.bodies[0])
	}
	ctx := attempt("evt_1")
	refused(t, stream(ctx), stream(ctx), "read only once")
	ctx = attempt("evt_1")
	refused(t, charge(t, ctx, "a"), stream(ctx), "read only once")
	ctx = attempt("evt_1")
	refused(t, stream(ctx), charge(t, ctx, "a"), "read only once")
}

// The contract of RoundTripper: the request is not changed, its body is closed, and arrives whole.
func TestRequestsAreNotChanged(t *testing.T) {
	body := &closer{Reader: strings.NewReader("a")}
	req, err := http.NewRequestWithContext(attempt("evt_1"), "POST", charges, body)
	if err != nil {
		t.Fatal(err)
	}
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("a")), nil }
	w := new(wire)
	if key := w.send(t, req); key == "" || len(req.Header) > 0 || w.bodies[0] != "a" || !body.closed {
		t.Errorf("key %q; afterwards the header is %v and closed %v; body %q came", key, req.Header, body.closed, w.bodies)
	}
	req.Header = nil
	if key := w.send(t, req); key == "" || req.Header != nil {
		t.Errorf("key %q; afterwards the header is %v", key, req.Header)
	}
}

type closer struct {
	io.Reader
	closed bool
}

func (c *closer) Close() error {
	c.closed = true
	return nil
}

func TestBodiesThatCanNotBeReadTwice(t *testing.T) {
	broken := errors.New("the tape is torn")
	for name, again := range map[string]func() (io.ReadCloser, error){
		"opening": func() (io.ReadCloser, error) { return nil, broken },
		"reading": func() (io.ReadCloser, error) { return io.NopCloser(&failing{broken}), nil },
	} {
		body := &closer{Reader: strings.NewReader("a")}
		req, err := http.NewRequestWithContext(attempt("evt_1"), "POST", charges, body)
		if err != nil {
			t.Fatal(err)
		}
		req.GetBody = again
		w := new(wire)
		if _, err := hookonce.Transport(w).RoundTrip(req); !errors.Is(err, broken) || !body.closed || len(w.keys) > 0 {
			t.Errorf("%s: %v; closed %v, sent %d", name, err, body.closed, len(w.keys))
		}
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

// Calls at the same time to different addresses, or of different steps, have the keys that they have one
// after the other.
func TestCallsAtOnce(t *testing.T) {
	handle := func(start func(func())) []string {
		w, ctx := new(wire), attempt("evt_1")
		roundTrip := func(ctx context.Context, url, body string) func() {
			req, err := http.NewRequestWithContext(ctx, "POST", url, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			return func() { hookonce.Transport(w).RoundTrip(req) }
		}
		for _, path := range strings.Fields("a b c d e f g h") {
			start(roundTrip(ctx, charges+"/"+path, "x"))
			start(roundTrip(hookonce.WithStep(ctx, path), charges, path))
			start(roundTrip(ctx, charges, "the same"))
		}
		start(nil)
		slices.Sort(w.keys)
		return w.keys
	}
	inTurn := handle(func(f func()) {
		if f != nil {
			f()
		}
	})
	var all sync.WaitGroup
	atOnce := handle(func(f func()) {
		if f == nil {
			all.Wait()
			return
		}
		all.Go(f)
	})
	if !slices.Equal(inTurn, atOnce) || len(slices.Compact(slices.Clone(atOnce))) != 17 {
		t.Errorf("keys %v, in turn %v", atOnce, inTurn)
	}
}

// Over a real client and server: a redirect has the key of its own address, and what came in never goes out.
func TestOutboundKeysOverTheWire(t *testing.T) {
	var got wire
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		got.RoundTrip(r)
		switch r.URL.Path {
		case "/moved":
			http.Redirect(rw, r, "/charges", http.StatusTemporaryRedirect)
		case "/seen":
			http.Redirect(rw, r, "/charges", http.StatusSeeOther)
		}
	}))
	defer server.Close()
	client := &http.Client{Transport: hookonce.Transport(nil)}
	defer client.CloseIdleConnections()
	h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		for _, path := range []string{"/moved", "/seen", "/charges"} {
			req, err := http.NewRequestWithContext(ctx, "POST", server.URL+path, bytes.NewReader([]byte("x")))
			if err != nil {
				return err
			}
			answer, err := client.Do(req)
			if err != nil {
				return err
			}
			answer.Body.Close()
		}
		return nil
	})
	want(t, post(h, "a 1"), 200, "accepted")
	if len(got.keys) != 5 {
		t.Fatalf("%d requests came", len(got.keys))
	}
	moved, redirected, seen, asked, direct := got.keys[0], got.keys[1], got.keys[2], got.keys[3], got.keys[4]
	if redirected != direct || moved == redirected || moved == seen || asked != "" || slices.Contains(got.keys, "a") {
		t.Errorf("keys: %v", got.keys)
	}
}

// outbound is what a handler asks of others.
type outbound struct{ method, host, path, query, body, step string }

var outbounds = rapid.SliceOf(rapid.Custom(func(t *rapid.T) outbound {
	text := func(name string) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, name) }
	return outbound{
		method: rapid.SampledFrom([]string{"POST", "PUT"}).Draw(t, "method"),
		host:   rapid.SampledFrom([]string{"a.example", "A.example", "b.example"}).Draw(t, "host"),
		path:   text("path"), query: text("query"), body: text("body"), step: text("step"),
	}
}))

// identity is what the key of a call is made of.
func (o outbound) identity() outbound {
	if o.step != "" {
		return outbound{step: o.step}
	}
	return outbound{method: o.method, host: strings.ToLower(o.host), path: o.path}
}

// content is what must be the same in calls without a step that are the same call.
func (o outbound) content() outbound {
	if o.step != "" {
		return outbound{}
	}
	return outbound{query: o.query, body: o.body}
}

// send returns the key that came; empty if the call was refused.
func (o outbound) send(t *rapid.T, ctx context.Context, w *wire) string {
	if o.step != "" {
		ctx = hookonce.WithStep(ctx, o.step)
	}
	req, err := http.NewRequestWithContext(ctx, o.method, "https://"+o.host+"/"+o.path+"?"+o.query, strings.NewReader(o.body))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hookonce.Transport(w).RoundTrip(req); err != nil {
		if !errors.Is(err, hookonce.ErrUnnamedCall) {
			t.Fatal(err)
		}
		return ""
	}
	return w.keys[len(w.keys)-1]
}

// Whatever a handler calls: the same calls have the same keys, within an attempt and when it runs again as far
// as it came, calls with other names or addresses, or those of another event, never do, and calls that nothing
// but their content tells apart are refused.
func TestKeysOfAnyCalls(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		calls := outbounds.Draw(t, "calls")
		w, ctx := new(wire), attempt("evt_1")
		keys, owners, contents := map[outbound]string{}, map[string]outbound{}, map[outbound]outbound{}
		var got []string
		for _, call := range calls {
			key, id := call.send(t, ctx, w), call.identity()
			got = append(got, key)
			first, known := contents[id]
			if !known {
				contents[id], first = call.content(), call.content()
			}
			if (key == "") != (first != call.content()) {
				t.Fatalf("%+v has key %q after a call with %+v", call, key, first)
			}
			if key == "" {
				continue
			}
			if first, known := keys[id]; known && first != key {
				t.Fatalf("%+v has key %s, and had %s", call, key, first)
			}
			if owner, taken := owners[key]; taken && owner != id {
				t.Fatalf("%+v and %+v share the key %q", owner, id, key)
			}
			keys[id], owners[key] = key, id
		}
		again, other := new(wire), new(wire)
		ctx, others := attempt("evt_1"), attempt("evt_2")
		for i, call := range calls[:rapid.IntRange(0, len(calls)).Draw(t, "crash")] {
			if key := call.send(t, ctx, again); key != got[i] {
				t.Fatalf("call %d has key %s when it runs again, and had %s", i, key, got[i])
			}
			if owner, taken := owners[call.send(t, others, other)]; taken {
				t.Fatalf("another event has the key of %+v", owner)
			}
		}
	})
}
