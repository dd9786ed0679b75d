package hookonce_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
)

func TestJoinKey(t *testing.T) {
	if a, b := hookonce.JoinKey("ab", "c"), hookonce.JoinKey("a", "bc"); a == b {
		t.Errorf("different parts give one key %q", a)
	}
	// Without an end to the length, "1"+"1"+"19"+y reads like "11"+...: lengths that run into contents.
	y := "abcdefghi9jklmnopqr"
	if a, b := hookonce.JoinKey("1", y), hookonce.JoinKey("19"+y[:9], y[10:]); a == b {
		t.Errorf("different parts give one key %q", a)
	}
	if k := hookonce.JoinKey("shop", "", "1"); k != "" {
		t.Errorf("a missing part gives key %q, want none", k)
	}
	if k := hookonce.JoinKey("evt_1"); k != "evt_1" {
		t.Errorf("a single part gives key %q, want it unchanged", k)
	}
}

func TestNormalKey(t *testing.T) {
	long := strings.Repeat("k", hookonce.MaxKeyLen)
	for _, key := range []string{"", "evt_1", long, "clé"} {
		if got := hookonce.NormalKey(key); got != key {
			t.Errorf("NormalKey(%q) = %q, want it unchanged", key, got)
		}
	}
	seen := map[string]string{}
	for _, key := range []string{long + "k", long + "l", "a\x00b", "a\nb", "\xff", "\xfe", hookonce.NormalKey(long + "k")} {
		got := hookonce.NormalKey(key)
		if err := (hookonce.Ref{Source: "s", Key: got}).Validate(); err != nil {
			t.Errorf("NormalKey(%q): %v", key, err)
		}
		if other, ok := seen[got]; ok {
			t.Errorf("%q and %q have one key", key, other)
		}
		seen[got] = key
	}
}

func TestRefValidate(t *testing.T) {
	for _, r := range []hookonce.Ref{{}, {Key: "k"}, {Source: "s\x00"}, {Source: "s", Key: "\xff"}, {Source: "s", Key: strings.Repeat("k", 256)}} {
		if err := r.Validate(); !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("%q: %v, want ErrInvalidRef", r, err)
		}
	}
	if err := (hookonce.Ref{Source: "s"}).Validate(); err != nil {
		t.Errorf("an unkeyed reference is valid: %v", err)
	}
}

func FuzzJoinKey(f *testing.F) {
	f.Add("ab", "c", "a", "bc")
	f.Add("1:a", "b", "1", "a1:b")
	f.Fuzz(func(t *testing.T, a, b, c, d string) {
		one, two := hookonce.NormalKey(hookonce.JoinKey(a, b)), hookonce.NormalKey(hookonce.JoinKey(c, d))
		if one != "" && one == two && (a != c || b != d) {
			t.Errorf("(%q, %q) and (%q, %q) have one key %q", a, b, c, d, one)
		}
	})
}

func TestFailureKeepsWhatCanBeStored(t *testing.T) {
	const max, lock = hookonce.MaxErrorLen, "\U0001F512"
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"card declined", "card declined"},
		{"a\x00b\xffc", "a\uFFFDb\uFFFDc"},
		{strings.Repeat("x", max), strings.Repeat("x", max)},
		{strings.Repeat("x", max+1), strings.Repeat("x", max)},
		{"ab" + strings.Repeat(lock, max), "ab" + strings.Repeat(lock, (max-2)/4)},
	} {
		if got := (hookonce.Failure{Err: errors.New(c.text)}).Text(); got != c.want {
			t.Errorf("the text of %.40q is %.40q (%d bytes), want %.40q (%d bytes)", c.text, got, len(got), c.want, len(c.want))
		}
	}
	if got := (hookonce.Failure{}).Text(); got != "" {
		t.Errorf("no error has the text %q", got)
	}
}

func FuzzFailureText(f *testing.F) {
	for _, seed := range []string{"", "card declined", "\x00\xff", strings.Repeat("ä", hookonce.MaxErrorLen)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := hookonce.Failure{Err: errors.New(text)}.Text()
		if len(got) > hookonce.MaxErrorLen || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("%q cannot be stored", got)
		}
	})
}

func TestFailureState(t *testing.T) {
	for dead, want := range map[bool]hookonce.State{false: hookonce.StateFailed, true: hookonce.StateDead} {
		if got := (hookonce.Failure{Dead: dead}).State(); got != want {
			t.Errorf("dead %v: state %s, want %s", dead, got, want)
		}
	}
}

// Whoever looks at the error alone must not take work that is held for work that is done.
func TestVerdictErr(t *testing.T) {
	for v, want := range map[hookonce.Verdict]error{
		hookonce.Acquired: nil, hookonce.Duplicate: nil, hookonce.Busy: hookonce.ErrBusy, hookonce.Unkeyed: nil,
		hookonce.Pinned: hookonce.ErrPinned,
	} {
		if err := v.Err(); err != want {
			t.Errorf("%v: %v, want %v", v, err, want)
		}
	}
}

// bank charges once per Idempotency-Key, and answers a repeated one with what it charged first.
type bank map[string]string

func (b bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	amount, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	if len(r.Header["Idempotency-Key"]) > 1 {
		http.Error(w, "two keys", http.StatusBadRequest)
		return
	}
	if _, known := b[key]; !known {
		b[key] = string(amount)
	}
	fmt.Fprint(w, "charged ", b[key])
}

// order charges the amount that the request names, at the bank at url.
func order(client *http.Client, url string, w io.Writer, r *http.Request) error {
	amount, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	call, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, strings.NewReader(string(amount)))
	if err != nil {
		return err
	}
	answer, err := client.Do(call)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	fmt.Fprintf(w, "order of %s: %s", amount, text)
	return err
}

// A request fails after the bank was charged, because the answer was lost. The client sends another amount under
// the same key: it must not get the first charge's answer.
func TestChangedRequestAfterOutboundCall(t *testing.T) {
	lost := errors.New("the answer was lost")
	for name, open := range map[string]func(client *http.Client, url string, fails *bool) http.Handler{
		"in a transaction": func(client *http.Client, url string, fails *bool) http.Handler {
			return counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
				if err := order(client, url, w, r); err != nil || !*fails {
					return err
				}
				return lost
			})
		},
		"under a lease": func(client *http.Client, url string, fails *bool) http.Handler {
			return desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if *fails {
					_ = order(client, url, io.Discard, r)
					w.WriteHeader(503)
					return
				}
				_ = order(client, url, w, r)
			}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			charges := bank{}
			server := httptest.NewServer(charges)
			defer server.Close()
			fails := true
			h := open(&http.Client{Transport: hookonce.Transport(server.Client().Transport)}, server.URL, &fails)
			if w := buy(h, "k1", "100"); w.Code != 503 {
				t.Fatalf("the first request was answered %d %s", w.Code, w.Body)
			}
			fails = false
			w := buy(h, "k1", "200")
			wantAnswer(t, w, 422, "idempotency-key-reused")
			for _, hint := range []string{"may have had effects outside", "send the same request again", "a new operation needs a new key"} {
				if !strings.Contains(w.Body.String(), hint) {
					t.Errorf("the answer does not say %q: %s", hint, w.Body)
				}
			}
			if w := buy(h, "k1", "100"); w.Code != 200 || w.Body.String() != "order of 100: charged 100" {
				t.Errorf("the same request was answered %d %s", w.Code, w.Body)
			}
			if w := buy(h, "k2", "200"); w.Code != 200 || w.Body.String() != "order of 200: charged 200" {
				t.Errorf("another key was answered %d %s", w.Code, w.Body)
			}
			if len(charges) != 2 {
				t.Errorf("charges: %v", charges)
			}
		})
	}
}

// However an attempt ends that has reached the outside.
func TestIdempotentPinsHoweverAnAttemptEnds(t *testing.T) {
	cause := errors.New("the card network is away")
	for name, end := range map[string]func(http.ResponseWriter) error{
		"error":           func(http.ResponseWriter) error { return cause },
		"permanent error": func(http.ResponseWriter) error { return hookonce.Permanent(cause) },
		"forgotten error": func(http.ResponseWriter) error { return hookonce.Forget(cause) },
		"429":             func(w http.ResponseWriter) error { w.WriteHeader(429); return nil },
		"503":             func(w http.ResponseWriter) error { w.WriteHeader(503); return nil },
		"oversize": func(w http.ResponseWriter) error {
			_, err := io.WriteString(w, strings.Repeat("x", 2000))
			return err
		},
		"panic":       func(http.ResponseWriter) error { panic(cause) },
		"abort":       func(http.ResponseWriter) error { panic(http.ErrAbortHandler) },
		"exit":        func(http.ResponseWriter) error { runtime.Goexit(); return nil },
		"lost commit": func(http.ResponseWriter) error { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			lose := name == "lost commit"
			store := memstore.New(memstore.WithCommit(func(persist func()) error {
				if lose {
					return errAway
				}
				persist()
				return nil
			}))
			first := true
			var s till
			h := counter(store, func(w http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
				if !first {
					return s.charge(w, r, tx)
				}
				hookonce.PinRequest(r.Context())
				return end(w)
			}, hookonce.WithMaxResponse(1000))
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				defer func() { _ = recover() }() // as the server does
				buy(h, "k1", "10")
			}()
			<-ended
			first, lose = false, false
			wantAnswer(t, buy(h, "k1", "11"), 422, "idempotency-key-reused")
			wantAnswer(t, buy(h, "k1", "10"), 201, "")
			s.want(t, "10")
		})
	}
}

// Reading, and calls that were never sent, bind nothing.
func TestIdempotentIsNotPinnedByWhatReachesNothing(t *testing.T) {
	w := new(wire)
	fails := true
	var s till
	h := counter(memstore.New(), func(rw http.ResponseWriter, r *http.Request, tx *memstore.Tx) error {
		if !fails {
			return s.charge(rw, r, tx)
		}
		w.call(r.Context(), t, "GET", charges, "")
		req := charge(t, r.Context(), "a", func(r *http.Request) {
			r.GetBody = func() (io.ReadCloser, error) { return nil, errAway }
		})
		_, err := hookonce.Transport(w).RoundTrip(req)
		return err
	})
	wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
	fails = false
	wantAnswer(t, buy(h, "k1", "11"), 201, "")
	s.want(t, "11")
}

// A call with a key of its own reaches the outside as any other.
func TestIdempotentIsPinnedByCallsWithKeysOfTheirOwn(t *testing.T) {
	w := new(wire)
	h := counter(memstore.New(), func(_ http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
		w.send(t, charge(t, r.Context(), "a", func(r *http.Request) { r.Header.Set("Idempotency-Key", "mine") }))
		return errors.New("the answer was lost")
	})
	wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
	wantAnswer(t, buy(h, "k1", "11"), 422, "idempotency-key-reused")
}

// Work in work: both reached the outside.
func TestPinRequestPinsTheWorkAround(t *testing.T) {
	outer, inner := hookonce.Ref{Source: "billing", Key: "outer"}, hookonce.Ref{Source: "billing", Key: "inner"}
	ctx := hookonce.ContextWithPin(t.Context(), outer)
	nested := hookonce.ContextWithPin(ctx, inner)
	hookonce.PinRequest(nested)
	for _, c := range []struct {
		ctx  context.Context
		ref  hookonce.Ref
		want bool
	}{{ctx, outer, true}, {nested, inner, true}, {ctx, inner, false}, {t.Context(), outer, false}} {
		if got := hookonce.FailureOf(c.ctx, c.ref, errAway).Pin; got != c.want {
			t.Errorf("%s: pinned %v, want %v", c.ref, got, c.want)
		}
	}
	hookonce.PinRequest(t.Context()) // nothing to pin
}

// A provider that corrects what it sent must not be locked out.
func TestWebhookIsNeverPinned(t *testing.T) {
	w := new(wire)
	fails := true
	h := endpoint(memstore.New(), func(ctx context.Context, _ *memstore.Tx, _ *hookonce.Event) error {
		w.call(ctx, t, "POST", charges, "x")
		hookonce.PinRequest(ctx)
		if fails {
			return errors.New("the answer was lost")
		}
		return nil
	})
	want(t, post(h, "a 1"), 503, "failed")
	fails = false
	want(t, post(h, "a 2"), 200, "accepted")
}

// Under a lease, only a refusal frees the key for another request, and only if nothing came of earlier ones.
func TestIdempotentLeasePinsWhatFailed(t *testing.T) {
	for status, free := range map[int]bool{
		401: true, 403: true, 407: true, 425: true, 429: true,
		408: false, 409: false, 500: false, 502: false, 503: false,
	} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			var p printer
			answer, reach := status, false
			h := desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if reach {
					hookonce.PinRequest(r.Context())
				}
				if answer != 0 {
					w.WriteHeader(answer)
					return
				}
				p.ServeHTTP(w, r)
			}), hookonce.WithKeep(func(int) bool { return false }))
			buy(h, "k1", "10")
			buy(h, "k2", "10")
			answer = 0
			if w := buy(h, "k1", "11"); (w.Code == 201) != free || (w.Code == 422) == free {
				t.Errorf("another request was answered %d %s", w.Code, w.Body)
			}
			// A refusal after an attempt that came further, and one after a call.
			answer = 500
			buy(h, "k2", "10")
			answer, reach = status, true
			buy(h, "k2", "10")
			buy(h, "k3", "10")
			answer, reach = 0, false
			wantAnswer(t, buy(h, "k2", "11"), 422, "idempotency-key-reused")
			wantAnswer(t, buy(h, "k3", "11"), 422, "idempotency-key-reused")
			wantAnswer(t, buy(h, "k2", "10"), 201, "")
		})
	}
}

// The process dies in the middle of the work: its claim keeps what it was for.
func TestIdempotentLeasePinsWhoDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		store := memstore.New()
		wantAnswer(t, buy(desk(faulty{Store: store, completeWith: away, fail: away}, &p), "k1", "10"), 503, "unavailable")
		wantAnswer(t, buy(desk(store, &p), "k1", "11"), 409, "request-in-progress")
		time.Sleep(hookonce.DefaultLease)
		wantAnswer(t, buy(desk(store, &p), "k1", "11"), 422, "idempotency-key-reused")
		wantAnswer(t, buy(desk(store, &p), "k1", "10"), 201, "")
		p.want(t, 2)
	})
}

// late is a store whose answer to a claim is so long on its way.
func late(d time.Duration) faulty {
	store := faulty{Store: memstore.New()}
	store.claim = func(persist func() error) error {
		err := persist()
		time.Sleep(d)
		return err
	}
	return store
}

// The same for work under a lease without a request.
func TestUnderLeaseThatCameLateIsNotPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := late(2 * time.Second)
		ref := hookonce.Ref{Source: "jobs", Key: "j1"}
		req := hookonce.ClaimRequest{Ref: ref, Lease: time.Second, Digest: []byte("10"), Pin: true}
		if _, err := hookonce.UnderLease(t.Context(), store, req, func(context.Context, hookonce.Claim) error {
			t.Error("the work was begun after the end of its lease")
			return nil
		}); err == nil {
			t.Error("nothing was done, and nothing said so")
		}
		if c, err := store.Lookup(t.Context(), ref); err != nil || c.State != hookonce.StateFailed || c.Pinned != 0 {
			t.Errorf("the claim is %s, pinned by attempt %d, %v", c.State, c.Pinned, err)
		}
	})
}

// A claim that came too late was not begun, and binds nobody.
func TestIdempotentLeaseThatCameLateIsNotPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		store := late(2 * time.Second)
		wantAnswer(t, buy(desk(store, &p, hookonce.WithLease(time.Second)), "k1", "10"), 503, "unavailable")
		wantAnswer(t, buy(desk(store.Store, &p), "k1", "11"), 201, "")
		p.want(t, 1)
	})
}

// Work that ran past the end of its lease has begun, even if nobody took it over: here the claim was so long on
// its way that there was no time to extend it.
func TestIdempotentLeasePinsWhatLostItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p printer
		store := late(2500 * time.Millisecond)
		slow := desk(store, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			p.ServeHTTP(w, r)
		}), hookonce.WithTimeout(time.Hour), hookonce.WithLease(3*time.Second))
		wantAnswer(t, buy(slow, "k1", "10"), 503, "answer-incomplete")
		wantAnswer(t, buy(desk(store.Store, &p), "k1", "11"), 422, "idempotency-key-reused")
		wantAnswer(t, buy(desk(store.Store, &p), "k1", "10"), 201, "")
		p.want(t, 2)
	})
}

// The log says once what a call inside a transaction means, and to whom it was. Under a lease it is in order, and without a
// key there is nothing to record too late.
func TestTransportWarnsInTransactions(t *testing.T) {
	var log strings.Builder
	logger := hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
	w := new(wire)
	tx := counter(memstore.New(), func(_ http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
		hookonce.PinRequest(r.Context())
		w.call(r.Context(), t, "GET", charges, "")
		if log.Len() > 0 {
			t.Errorf("logged before a call was made: %s", &log)
		}
		w.call(r.Context(), t, "POST", charges, "secret")
		return nil
	}, logger, hookonce.WithOptionalKey())
	buy(tx, "", "10")
	buy(tx, "k1", "10")
	once := log.String()
	for _, text := range []string{"level=WARN", "source=idempotency", "host=api.example", "Enqueue", "IdempotentLease"} {
		if !strings.Contains(once, text) {
			t.Errorf("the warning lacks %q: %s", text, once)
		}
	}
	if strings.Contains(once, "secret") || strings.Count(once, "\n") != 1 {
		t.Errorf("logged %s", once)
	}
	log.Reset()
	lease := desk(memstore.New(), http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		w.call(r.Context(), t, "POST", charges, "x")
	}), logger)
	buy(lease, "k1", "10")
	if log.Len() > 0 {
		t.Errorf("under a lease it is logged %s", &log)
	}
}

// Whoever is not let in leaves nothing, and nobody else is kept out by that.
func TestForgottenFailuresLeaveNothing(t *testing.T) {
	store := memstore.New()
	var ref hookonce.Ref
	fault := error(nil)
	h := counter(store, func(_ http.ResponseWriter, r *http.Request, _ *memstore.Tx) error {
		ref, _ = hookonce.RefFrom(r.Context())
		return fault
	})
	for _, c := range []struct {
		err  error
		want error
	}{{hookonce.Forget(errAway), hookonce.ErrNotFound}, {errAway, nil}, {hookonce.Forget(errAway), nil}} {
		fault = c.err
		wantAnswer(t, buy(h, "k1", "10"), 503, "unavailable")
		if _, err := store.Lookup(t.Context(), ref); !errors.Is(err, c.want) {
			t.Errorf("after %v: %v, want %v", c.err, err, c.want)
		}
	}
	if hookonce.Forget(nil) != nil || !errors.Is(hookonce.Forget(errAway), errAway) {
		t.Error("Forget loses the error, or makes one")
	}
}

// Two callers who both write "1" are two here, and two at the bank, also where a proxy or a handler hands on the
// header that came in, in whatever spelling. A key of the handler's own stays.
func TestTransportReplacesTheKeyThatCameIn(t *testing.T) {
	var url string
	client := &http.Client{Transport: hookonce.Transport(nil)}
	byHand := func(line string) func(w http.ResponseWriter, r *http.Request) error {
		return func(w http.ResponseWriter, r *http.Request) error {
			call, err := http.NewRequestWithContext(r.Context(), http.MethodPost, url, r.Body)
			if err != nil {
				return err
			}
			call.Header = http.Header{line: r.Header["Idempotency-Key"]}
			if line == "own" {
				call.Header = http.Header{"Idempotency-Key": {line}}
			}
			answer, err := client.Do(call)
			if err != nil {
				return err
			}
			defer answer.Body.Close()
			_, err = io.Copy(w, answer.Body)
			return err
		}
	}
	proxied := func(w http.ResponseWriter, r *http.Request) error {
		to, err := neturl.Parse(url)
		if err != nil {
			return err
		}
		proxy := httputil.NewSingleHostReverseProxy(to)
		proxy.Transport = client.Transport
		proxy.ServeHTTP(w, r)
		return nil
	}
	for name, c := range map[string]struct {
		handle  func(w http.ResponseWriter, r *http.Request) error
		key     string
		charges int
	}{
		"a proxy":                        {proxied, "1", 2},
		"a proxy, and a quoted key":      {proxied, `"1"; v=1`, 2},
		"a handler":                      {byHand("Idempotency-Key"), "1", 2},
		"a handler, in another spelling": {byHand("idempotency-key"), "1", 2},
		"a key of the handler's own":     {byHand("own"), "1", 1},
	} {
		for door, h := range map[string]http.Handler{
			"Idempotent": counter(memstore.New(), func(w http.ResponseWriter, r *http.Request, _ *memstore.Tx) error { return c.handle(w, r) }),
			"IdempotentLease": desk(memstore.New(), http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := c.handle(w, r); err != nil {
					panic(err)
				}
			})),
		} {
			books := bank{}
			srv := httptest.NewServer(books)
			url = srv.URL
			for tenant, amount := range map[string]string{"acme": "100", "globex": "200"} {
				w := buy(h, c.key, amount, func(r *http.Request) { r.Header.Set("Tenant", tenant) })
				if c.charges == 2 && w.Body.String() != "charged "+amount {
					t.Errorf("%s, %s: %s was answered %d %s, want %s charged", name, door, tenant, w.Code, w.Body, amount)
				}
			}
			srv.Close()
			if len(books) != c.charges || c.charges == 1 && books["own"] == "" {
				t.Errorf("%s, %s: the bank has the charges %v, want %d", name, door, books, c.charges)
			}
		}
	}
}
