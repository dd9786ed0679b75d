package hookonce_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
)

// sender is a provider for tests: the header Sig must say "ok", every line of the body is an event
// "key content", and a body "hello" is a handshake.
type sender struct{}

func (sender) Profile() hookonce.Profile { return hookonce.Profile{Name: "sender"} }

func (sender) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	if req.Header.Get("Sig") == "panic" {
		panic("a fault in the provider")
	}
	if req.Header.Get("Sig") != "ok" {
		return nil, &hookonce.RejectError{Reason: hookonce.ReasonSignatureMismatch, Detail: "header Sig"}
	}
	if string(req.Body) == "hello" {
		return &hookonce.Verified{Handshake: &hookonce.Answer{Status: 200, ContentType: "text/plain", Body: []byte("<hi>")}}, nil
	}
	d := &hookonce.Verified{}
	for line := range strings.Lines(string(req.Body)) {
		key, content, _ := strings.Cut(strings.TrimSpace(line), " ")
		if key == "-" {
			key = ""
		}
		d.Events = append(d.Events, hookonce.Event{Provider: "sender", Key: key, Type: "test", Digest: []byte(content), Body: []byte(line), Header: req.Header})
	}
	return d, nil
}

// ledger is the effect: what committed, in order.
type ledger struct {
	mu   sync.Mutex
	rows []string
	runs atomic.Int64
}

func (l *ledger) add(tx *memstore.Tx, ev *hookonce.Event) {
	row := fmt.Sprintf("%s#%d", ev.Key, ev.Attempt)
	tx.OnCommit(func() { l.mu.Lock(); l.rows = append(l.rows, row); l.mu.Unlock() })
}

func (l *ledger) handle(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
	l.runs.Add(1)
	l.add(tx, ev)
	return nil
}

func (l *ledger) want(t *testing.T, rows ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got, want := strings.Join(l.rows, " "), strings.Join(rows, " "); got != want {
		t.Errorf("effects: %q, want %q", got, want)
	}
}

type handleFunc = func(context.Context, *memstore.Tx, *hookonce.Event) error

func endpoint(store hookonce.TxStore[*memstore.Tx], handle handleFunc, opts ...hookonce.WebhookOption) http.Handler {
	quiet := hookonce.WithLogger(slog.New(slog.DiscardHandler))
	return endpointOf(store, "sender", handle, append([]hookonce.WebhookOption{quiet}, opts...)...)
}

func endpointOf(store hookonce.TxStore[*memstore.Tx], source string, handle handleFunc, opts ...hookonce.WebhookOption) http.Handler {
	return hookonce.Webhook(store, source, sender{}, handle, opts...)
}

func post(h http.Handler, body string) *httptest.ResponseRecorder {
	return postSigned(context.Background(), h, "ok", body)
}

func postSigned(ctx context.Context, h http.Handler, sig, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Sig", sig)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func want(t *testing.T, w *httptest.ResponseRecorder, code int, status string) {
	t.Helper()
	if w.Code != code || w.Header().Get("Hookonce-Status") != status {
		t.Errorf("answered %d %q, want %d %q; body %s", w.Code, w.Header().Get("Hookonce-Status"), code, status, w.Body)
	}
	if retry := w.Header().Get("Retry-After"); (code == 503) != (retry != "") {
		t.Errorf("answer %d with Retry-After %q", code, retry)
	}
}

func TestWebhookAcceptsOnce(t *testing.T) {
	var l ledger
	h := endpoint(memstore.New(), l.handle)
	want(t, post(h, "a 1"), 200, "accepted")
	want(t, post(h, "a 1"), 200, "duplicate")
	want(t, post(h, "b 1"), 200, "accepted")
	l.want(t, "a#1", "b#1")
}

// ahead runs handlers before it knows whether there is anything to do, as stores may.
type ahead struct{ *memstore.Store }

func (s ahead) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	_ = fn(nil, hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Acquired, Token: 1})
	return s.Store.Within(ctx, req, fn)
}

// An observer hears which attempts were first ones, and of copies that none was made.
func TestObservationsCountAttempts(t *testing.T) {
	t.Run("under the claim", func(t *testing.T) { countAttempts(t, memstore.New()) })
	t.Run("ahead of the claim", func(t *testing.T) { countAttempts(t, ahead{memstore.New()}) })
}

func countAttempts(t *testing.T, store hookonce.TxStore[*memstore.Tx]) {
	out := errors.New("out of stock")
	var seen []string
	h := endpoint(store, func(context.Context, *memstore.Tx, *hookonce.Event) error { return out }, hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) {
		seen = append(seen, fmt.Sprint(o.Status, " ", o.Attempt))
	}))
	post(h, "a 1")
	post(h, "a 1")
	out = nil
	post(h, "a 1")
	post(h, "a 1")
	postSigned(t.Context(), h, "forged", "a 1")
	if want := []string{"failed 1", "failed 2", "accepted 3", "duplicate 0", "rejected 0"}; !slices.Equal(seen, want) {
		t.Errorf("observed %v, want %v", seen, want)
	}
}

func TestWebhookVerifiesBeforeItClaims(t *testing.T) {
	var l ledger
	h := endpoint(memstore.New(), l.handle)
	w := postSigned(context.Background(), h, "forged", "a 1")
	want(t, w, 401, "")
	if !strings.Contains(w.Body.String(), hookonce.ReasonSignatureMismatch) {
		t.Errorf("the answer does not name the reason: %s", w.Body)
	}
	want(t, post(h, "a 1"), 200, "accepted")
	l.want(t, "a#1")
}

func TestWebhookAnswersCopiesAfterTheCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		release := make(chan struct{})
		h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			<-release
			return l.handle(ctx, tx, ev)
		})
		answers := make(chan *httptest.ResponseRecorder, 25)
		for range cap(answers) {
			go func() { answers <- post(h, "a 1") }()
		}
		synctest.Wait()
		if len(answers) != 0 {
			t.Fatalf("%d copies were answered before the commit", len(answers))
		}
		close(release)
		statuses := map[string]int{}
		for range cap(answers) {
			w := <-answers
			if w.Code != 200 {
				t.Errorf("answered %d: %s", w.Code, w.Body)
			}
			statuses[w.Header().Get("Hookonce-Status")]++
		}
		if statuses["accepted"] != 1 || statuses["duplicate"] != 24 || l.runs.Load() != 1 {
			t.Errorf("statuses %v, %d runs; want 1 accepted, 24 duplicates, 1 run", statuses, l.runs.Load())
		}
	})
}

func TestWebhookWaitsForACopyBoundedly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		release := make(chan struct{})
		h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			<-release
			return l.handle(ctx, tx, ev)
		}, hookonce.WithWait(2*time.Second))
		first := make(chan *httptest.ResponseRecorder)
		go func() { first <- post(h, "a 1") }()
		synctest.Wait()
		want(t, post(h, "a 1"), 503, "busy")
		close(release)
		want(t, <-first, 200, "accepted")
		want(t, post(h, "a 1"), 200, "duplicate")
		l.want(t, "a#1")
	})
}

func TestWebhookRetriesFailedWork(t *testing.T) {
	var l ledger
	store := memstore.New()
	fault := errors.New("the card network is away")
	h := endpoint(store, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		l.add(tx, ev)
		return fault
	})
	w := post(h, "a 1")
	want(t, w, 503, "failed")
	if strings.Contains(w.Body.String(), fault.Error()) {
		t.Errorf("the answer tells the provider the cause: %s", w.Body)
	}
	c, err := store.Lookup(t.Context(), hookonce.Ref{Source: "sender", Key: "a"})
	if err != nil || c.State != hookonce.StateFailed || c.Token != 1 || !strings.Contains(c.LastError, fault.Error()) {
		t.Errorf("trace of the failure: %+v, %v", c, err)
	}
	fault = nil
	want(t, post(h, "a 1"), 200, "accepted")
	l.want(t, "a#2")
}

func TestWebhookCopiesShareAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var runs atomic.Int64
		release := make(chan struct{})
		h := endpoint(memstore.New(), func(context.Context, *memstore.Tx, *hookonce.Event) error {
			runs.Add(1)
			<-release
			return errors.New("no")
		})
		answers := make(chan *httptest.ResponseRecorder, 10)
		for range cap(answers) {
			go func() { answers <- post(h, "a 1") }()
		}
		synctest.Wait()
		close(release)
		for range cap(answers) {
			want(t, <-answers, 503, "failed")
		}
		if runs.Load() != 1 {
			t.Errorf("a failing handler ran %d times for copies that arrived together", runs.Load())
		}
	})
}

func TestWebhookPermanentFailure(t *testing.T) {
	for name, cause := range map[string]error{
		"of its own":                     errors.New("no such order"),
		"over a claim that it lost":      overtaken(t, errors.New("no paper")),
		"over a commit that is in doubt": hookonce.ErrUnknownOutcome,
	} {
		t.Run(name, func(t *testing.T) {
			var l ledger
			store := memstore.New()
			fault := hookonce.Permanent(cause)
			h := endpoint(store, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
				l.add(tx, ev)
				return fault
			})
			want(t, post(h, "a 1"), 200, "dead")
			wantState(t, store, "a", hookonce.StateDead, cause.Error())
			// Without a key there is nowhere to record the failure: acknowledging would lose the event.
			want(t, post(h, "- 1"), 503, "failed")

			fault = nil
			want(t, post(h, "a 1"), 200, "accepted")
			l.want(t, "a#2")
		})
	}
}

// That one content was given up says nothing of another that waited for it under the same key: the
// sender may have corrected what it sent. It is handled, once, and copies of what was given up are
// not.
func TestWebhookOtherContentThanWasGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		var given atomic.Int64
		release := make(chan struct{})
		h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			if string(ev.Digest) == "1" {
				given.Add(1)
				<-release
				return hookonce.Permanent(errors.New("no such order"))
			}
			return l.handle(ctx, tx, ev)
		})
		var wg sync.WaitGroup
		wg.Go(func() { want(t, post(h, "a 1"), 200, "dead") })
		synctest.Wait()
		corrected := make(chan string, 2)
		wg.Go(func() { want(t, post(h, "a 1"), 200, "dead") })
		for range cap(corrected) {
			wg.Go(func() {
				w := post(h, "a 2")
				corrected <- fmt.Sprint(w.Code, " ", w.Header().Get("Hookonce-Status"))
			})
		}
		synctest.Wait()
		close(release)
		wg.Wait()
		got := []string{<-corrected, <-corrected}
		if slices.Sort(got); !slices.Equal(got, []string{"200 accepted", "200 duplicate"}) || given.Load() != 1 || l.runs.Load() != 1 {
			t.Errorf("answered %v after %d runs; what was given up ran %d times", got, l.runs.Load(), given.Load())
		}
		l.want(t, "a#2")
		want(t, post(h, "a 1"), 200, "conflict")
	})
}

// Who waits for several, one after the other, waits no longer for all of them.
func TestWebhookOtherContentsWaitBoundedly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			if string(ev.Digest) == "1" {
				time.Sleep(1500 * time.Millisecond)
				return hookonce.Permanent(errors.New("no such order"))
			}
			time.Sleep(10 * time.Second)
			return l.handle(ctx, tx, ev)
		}, hookonce.WithWait(2*time.Second))
		start := time.Now()
		var wg sync.WaitGroup
		wg.Go(func() { want(t, post(h, "a 1"), 200, "dead") })
		synctest.Wait()
		answers := make(chan string, 2)
		for _, body := range []string{"a 2", "a 3"} {
			wg.Go(func() {
				w := post(h, body)
				answers <- fmt.Sprint(w.Code, " ", w.Header().Get("Hookonce-Status"), " after ", time.Since(start))
			})
		}
		wg.Wait()
		got := []string{<-answers, <-answers}
		if slices.Sort(got); !slices.Equal(got, []string{"200 accepted after 11.5s", "503 busy after 2s"}) {
			t.Errorf("answered %q", got)
		}
		l.want(t, "a#2")
	})
}

// A worker takes a lease between the rollback and the trace: nothing says that the event was given up,
// and the worker may still fail. So it is whatever the handler met.
func TestWebhookPermanentFailureThatIsNotOnRecord(t *testing.T) {
	for name, met := range map[string]error{"nothing": nil, "a claim that it lost": overtaken(t, errors.New("no paper"))} {
		t.Run(name, func(t *testing.T) {
			store := memstore.New()
			h := endpoint(store, func(context.Context, *memstore.Tx, *hookonce.Event) error {
				return hookonce.Permanent(errors.Join(met, textFunc(sync.OnceValue(func() string {
					ref := hookonce.Ref{Source: "sender", Key: "a"}
					if c, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: ref}); err != nil || c.Verdict != hookonce.Acquired {
						t.Errorf("Claim = %+v, %v", c, err)
					}
					return "no such order"
				}))))
			})
			want(t, post(h, "a 1"), 503, "failed")
			want(t, post(h, "a 1"), 503, "busy")
		})
	}
}

// textFunc is an error whose text is computed when a store asks for it, after the rollback.
type textFunc func() string

func (f textFunc) Error() string { return f() }

func TestWebhookRetryAfter(t *testing.T) {
	h := endpoint(memstore.New(), func(context.Context, *memstore.Tx, *hookonce.Event) error {
		return fmt.Errorf("limits: %w", hookonce.RetryAfter(90*time.Second+time.Millisecond, errors.New("rate limited")))
	})
	if got := post(h, "a 1").Header().Get("Retry-After"); got != "91" {
		t.Errorf("Retry-After %q, want 91", got)
	}
	for _, none := range []time.Duration{0, -time.Second} {
		h := endpoint(memstore.New(), func(context.Context, *memstore.Tx, *hookonce.Event) error {
			return hookonce.RetryAfter(none, errors.New("rate limited"))
		})
		want(t, post(h, "a 1"), 503, "failed")
	}
}

// A handler that claims something else and finds it busy has failed; nobody else has its event.
func TestWebhookHandlerMeetsABusyClaim(t *testing.T) {
	h := endpoint(memstore.New(), func(context.Context, *memstore.Tx, *hookonce.Event) error {
		return hookonce.RetryAfter(time.Minute, hookonce.ErrBusy)
	})
	w := post(h, "a 1")
	want(t, w, 503, "failed")
	if got := w.Header().Get("Retry-After"); got != "60" {
		t.Errorf("Retry-After %q, want the handler's 60", got)
	}
}

func TestWebhookPanicIsAFailure(t *testing.T) {
	var l ledger
	store := memstore.New()
	broken := true
	h := endpoint(store, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		l.add(tx, ev)
		if broken {
			panic("nil map")
		}
		return nil
	})
	want(t, post(h, "a 1"), 503, "failed")
	if c, err := store.Lookup(t.Context(), hookonce.Ref{Source: "sender", Key: "a"}); err != nil || c.State != hookonce.StateFailed {
		t.Errorf("trace of the panic: %+v, %v", c, err)
	}
	broken = false
	want(t, post(h, "a 1"), 200, "accepted")
	l.want(t, "a#2")
}

func TestWebhookOutlivesTheSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		release := make(chan struct{})
		h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			<-release
			if err := ctx.Err(); err != nil {
				return err
			}
			return l.handle(ctx, tx, ev)
		})
		ctx, hangUp := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { postSigned(ctx, h, "ok", "a 1"); close(done) }()
		synctest.Wait()
		hangUp()
		close(release)
		<-done
		l.want(t, "a#1")
		want(t, post(h, "a 1"), 200, "duplicate")
	})
}

func TestWebhookHandlerTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		store := memstore.New()
		slow := true
		h := endpoint(store, func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			l.add(tx, ev)
			if slow {
				<-ctx.Done() // and then pretends that all is well
			}
			return nil
		}, hookonce.WithTimeout(5*time.Second))
		want(t, post(h, "a 1"), 503, "failed")
		slow = false
		want(t, post(h, "a 1"), 200, "accepted")
		l.want(t, "a#2")
	})
}

// lostCommit is a store whose next commit is reported as unknown, after or before it happened.
type lostCommit struct {
	*memstore.Store
	next      bool
	persisted bool
}

func (s *lostCommit) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	if !s.next {
		return s.Store.Within(ctx, req, fn)
	}
	s.next = false
	if s.persisted {
		c, _ := s.Store.Within(ctx, req, fn)
		return c, fmt.Errorf("connection reset: %w", hookonce.ErrUnknownOutcome)
	}
	return hookonce.Claim{Ref: req.Ref, Verdict: hookonce.Acquired}, fmt.Errorf("connection reset: %w", hookonce.ErrUnknownOutcome)
}

func TestWebhookUnknownCommit(t *testing.T) {
	for persisted, second := range map[bool]string{true: "duplicate", false: "accepted"} {
		t.Run(fmt.Sprintf("persisted=%v", persisted), func(t *testing.T) {
			var l ledger
			h := endpoint(&lostCommit{Store: memstore.New(), next: true, persisted: persisted}, l.handle)
			want(t, post(h, "a 1"), 503, "failed")
			want(t, post(h, "a 1"), 200, second)
			l.want(t, "a#1")
		})
	}
}

func TestWebhookUnkeyedIsNeverCollapsed(t *testing.T) {
	var l ledger
	h := endpoint(memstore.New(), l.handle)
	for range 3 {
		want(t, post(h, "- same"), 200, "unkeyed")
	}
	l.want(t, "#0", "#0", "#0")
}

func TestWebhookUnkeyedDoNotWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		release := make(chan struct{})
		h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
			l.runs.Add(1)
			<-release
			l.add(tx, ev)
			return nil
		})
		answers := make(chan *httptest.ResponseRecorder, 3)
		for range cap(answers) {
			go func() { answers <- post(h, "- same") }()
		}
		synctest.Wait()
		if n := l.runs.Load(); n != 3 {
			t.Errorf("%d of 3 events without a key run side by side", n)
		}
		close(release)
		for range cap(answers) {
			want(t, <-answers, 200, "unkeyed")
		}
		l.want(t, "#0", "#0", "#0")
	})
}

// The sender is told, and so are those who only see the log or the metrics: an event of theirs was not handled.
func TestWebhookFlagsConflicts(t *testing.T) {
	var l ledger
	var log bytes.Buffer
	var seen []string
	h := endpoint(memstore.New(), l.handle,
		hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) { seen = append(seen, o.Status) }))
	want(t, post(h, "a 1"), 200, "accepted")
	want(t, post(h, "a 1"), 200, "duplicate")
	if log.Len() > 0 {
		t.Errorf("the log says %s", &log)
	}
	want(t, post(h, "a 2"), 200, "conflict")
	l.want(t, "a#1")
	if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, `level=WARN msg="webhook conflict"`) || !strings.Contains(line, "key=a ") {
		t.Errorf("the log says %q", line)
	}
	if got := strings.Join(seen, " "); got != "accepted duplicate conflict" {
		t.Errorf("observed %s", got)
	}
}

// gated holds up Within until it is opened.
type gated struct {
	*memstore.Store
	open chan struct{}
}

func (g gated) Within(ctx context.Context, req hookonce.ClaimRequest, fn func(*memstore.Tx, hookonce.Claim) error) (hookonce.Claim, error) {
	<-g.open
	return g.Store.Within(ctx, req, fn)
}

// Copies that wait for a first one that turns out to be a copy itself are held against the content
// that is stored, not against that of the one they waited for.
func TestWebhookFlagsConflictsOfCopiesThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		store := memstore.New()
		want(t, post(endpoint(store, l.handle), "a 1"), 200, "accepted")
		g := gated{store, make(chan struct{})}
		h := endpoint(g, l.handle)
		var wg sync.WaitGroup
		wg.Go(func() { want(t, post(h, "a 2"), 200, "conflict") })
		synctest.Wait()
		wg.Go(func() { want(t, post(h, "a 2"), 200, "conflict") })
		wg.Go(func() { want(t, post(h, "a 1"), 200, "duplicate") })
		synctest.Wait()
		close(g.open)
		wg.Wait()
		l.want(t, "a#1")
	})
}

func TestWebhookSourcesDoNotShareKeys(t *testing.T) {
	var l ledger
	store := memstore.New()
	live := endpointOf(store, "live", l.handle)
	testing := endpointOf(store, "test", l.handle)
	want(t, post(live, "a 1"), 200, "accepted")
	want(t, post(testing, "a 1"), 200, "accepted")
	l.want(t, "a#1", "a#1")
}

// lazy is a sender whose batches are built one by one.
type lazy struct {
	sender
	built *[]string // what was built, and what was handled
	panic bool      // after the last
}

func (l lazy) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	d, err := l.sender.Open(req)
	if err != nil || !req.Lazy {
		return d, err
	}
	events := d.Events
	d.Events, d.Batch = nil, &hookonce.Batch{Len: len(events), All: func(yield func(*hookonce.Event) bool) {
		for i := range events {
			*l.built = append(*l.built, "build "+events[i].Key)
			if !yield(&events[i]) {
				return
			}
		}
		if l.panic {
			panic("a fault in the provider")
		}
	}}
	return d, nil
}

// The events of a batch are built when it is their turn, so that a large one does not take up many times its memory.
func TestWebhookTakesABatchOneByOne(t *testing.T) {
	var steps []string
	handle := func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
		steps = append(steps, "handle "+ev.Source+" "+ev.Key)
		return nil
	}
	h := hookonce.Webhook(memstore.New(), "src", lazy{built: &steps}, handle)
	want(t, post(h, "a 1\nb 1\na 1"), 200, "accepted")
	if got, want := strings.Join(steps, ", "), "build a, handle src a, build b, handle src b, build a"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	var seen []string
	h = hookonce.Webhook(memstore.New(), "src", lazy{built: &steps, panic: true}, handle, quiet, hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) {
		seen = append(seen, o.Source+" "+o.Status)
	}))
	want(t, post(h, "a 1\nb 1"), 503, "failed")
	if want := []string{"src accepted", "src accepted", "src failed"}; !slices.Equal(seen, want) {
		t.Errorf("observed %v, want %v", seen, want)
	}
}

func TestWebhookBatchHandlesEveryEvent(t *testing.T) {
	var l ledger
	broken := true
	h := endpoint(memstore.New(), func(ctx context.Context, tx *memstore.Tx, ev *hookonce.Event) error {
		if ev.Key == "b" && broken {
			return errors.New("b is broken")
		}
		return l.handle(ctx, tx, ev)
	})
	want(t, post(h, "a 1\nb 1\nc 1"), 503, "failed")
	l.want(t, "a#1", "c#1")
	broken = false
	want(t, post(h, "a 1\nb 1\nc 1"), 200, "accepted")
	l.want(t, "a#1", "c#1", "b#2")
	want(t, post(h, ""), 200, "accepted") // an empty batch is acknowledged
}

func TestWebhookHandshakeStoresNothing(t *testing.T) {
	var l ledger
	h := endpoint(memstore.New(), l.handle)
	w := post(h, "hello")
	if w.Code != 200 || w.Body.String() != "<hi>" || w.Header().Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("handshake answered %d %v %s", w.Code, w.Header(), w.Body)
	}
	l.want(t)
}

func TestWebhookBadRequests(t *testing.T) {
	var l ledger
	h := endpoint(memstore.New(), l.handle, hookonce.WithMaxBody(8))
	request := func(method string, body io.Reader) *http.Request {
		r := httptest.NewRequest(method, "/", body)
		r.Header.Set("Sig", "ok")
		return r
	}
	panics := request("POST", strings.NewReader("a 1"))
	panics.Header.Set("Sig", "panic")
	for name, c := range map[string]struct {
		r    *http.Request
		code int
	}{
		"method":           {request("GET", nil), 405},
		"announced size":   {request("POST", strings.NewReader("a 1234567890")), 413},
		"unannounced size": {request("POST", io.MultiReader(strings.NewReader("a 1234567890"))), 413},
		"truncated":        {request("POST", io.MultiReader(strings.NewReader("a"), brokenReader{})), 400},
		"provider panics":  {panics, 503},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, c.r)
			want(t, w, c.code, "")
			if ct := w.Header().Get("Content-Type"); ct != "application/problem+json" {
				t.Errorf("Content-Type %q", ct)
			}
		})
	}
	l.want(t)
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// A provider that sends large bodies is not held to the default limit: a body that is refused is an
// event that is lost, where the provider does not retry.
func TestWebhookReadsWhatTheProviderSends(t *testing.T) {
	p := provider.GitHub("fake-secret")
	h := hookonce.Webhook(memstore.New(), p.Name(), p, func(context.Context, *memstore.Tx, *hookonce.Event) error { return nil },
		hookonce.WithLogger(slog.New(slog.DiscardHandler)))
	body := `{"action":"` + strings.Repeat("a", hookonce.DefaultMaxBody) + `"}`
	req := &hookonce.Request{Header: http.Header{"X-Github-Delivery": {"d1"}}, Body: []byte(body)}
	if err := p.Sign(req); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(body))
	r.Header = req.Header
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	want(t, w, 200, "accepted")
}

func TestWebhookLogsNeitherBodiesNorSignatures(t *testing.T) {
	var log bytes.Buffer
	var l ledger
	var seen []string
	h := hookonce.Webhook(memstore.New(), "sender", sender{}, l.handle,
		hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))),
		hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) { seen = append(seen, o.Status) }))
	post(h, "a body-of-the-event")
	post(h, "a body-of-the-event")
	postSigned(context.Background(), h, "forged-signature", "a body-of-the-event")
	if s := log.String(); strings.Contains(s, "body-of-the-event") || strings.Contains(s, "forged-signature") {
		t.Errorf("the log holds a body or a signature:\n%s", s)
	}
	if n := strings.Count(log.String(), "key=a"); n != 2 {
		t.Errorf("%d lines about two copies of an event:\n%s", n, log.String())
	}
	if got := strings.Join(seen, " "); got != "accepted duplicate rejected" {
		t.Errorf("observed %q", got)
	}
}

// odd is a provider with an answer of its own.
type odd struct {
	sender
	ok    hookonce.Answer
	reply *hookonce.Answer
}

func (p odd) Profile() hookonce.Profile {
	return hookonce.Profile{Name: "sender", Acknowledgement: p.ok}
}

func (p odd) Open(req *hookonce.Request) (*hookonce.Verified, error) {
	switch string(req.Body) {
	case "nothing":
		return nil, nil
	case "hello":
		return &hookonce.Verified{Handshake: p.reply}, nil
	}
	return p.sender.Open(req)
}

// A sender is acknowledged as its profile says. A profile by which it would send each event again is a mistake in the
// program, and found before there is one.
func TestWebhookAcknowledgesAsTheProviderSays(t *testing.T) {
	for name, c := range map[string]struct {
		ok          hookonce.Answer
		status      int
		body, media string
	}{
		"nothing":       {hookonce.Answer{}, 200, "", ""},
		"no status":     {hookonce.Answer{Body: []byte("<ok>")}, 200, "<ok>", "text/plain; charset=utf-8"},
		"a type":        {hookonce.Answer{Body: []byte("{}"), ContentType: "application/json"}, 200, "{}", "application/json"},
		"202":           {hookonce.Answer{Status: 202}, 202, "", ""},
		"a fault":       {hookonce.Answer{Status: 500, Body: []byte("fault")}, 0, "", ""},
		"a redirection": {hookonce.Answer{Status: 302}, 0, "", ""},
		"no HTTP":       {hookonce.Answer{Status: 42}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if panicked := recover() != nil; panicked != (c.status == 0) {
					t.Errorf("panicked: %v", panicked)
				}
			}()
			var l ledger
			w := post(hookonce.Webhook(memstore.New(), "sender", odd{ok: c.ok}, l.handle, quiet), "a 1")
			want(t, w, c.status, "accepted")
			if w.Body.String() != c.body || w.Header().Get("Content-Type") != c.media {
				t.Errorf("answered %q as %q", w.Body, w.Header().Get("Content-Type"))
			}
			l.want(t, "a#1")
		})
	}
}

// undecided is a provider that cannot tell now whether a request is authentic, as where a certificate cannot be fetched.
type undecided struct{ sender }

func (undecided) Open(*hookonce.Request) (*hookonce.Verified, error) {
	return nil, errors.New("the certificate cannot be fetched")
}

// What a provider cannot decide, or makes no sense of, before anything is claimed is our fault: it is answered 503, and is in the log, as
// an error, and in the metrics.
func TestWebhookProviderThatMakesNoSense(t *testing.T) {
	var log strings.Builder
	var seen []hookonce.Observation
	opts := []hookonce.WebhookOption{
		hookonce.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		hookonce.WithObserver(func(_ context.Context, o hookonce.Observation) { seen = append(seen, o) }),
	}
	for _, c := range []struct {
		p              hookonce.Provider
		sig, body, why string
	}{
		{odd{}, "ok", "nothing", "neither a verified request nor an error"},
		{odd{reply: &hookonce.Answer{Status: 42}}, "ok", "hello", "the status 42"},
		{odd{reply: &hookonce.Answer{Status: 199}}, "ok", "hello", "the status 199"},
		{odd{reply: &hookonce.Answer{Status: 600}}, "ok", "hello", "the status 600"},
		{odd{reply: &hookonce.Answer{Status: 1000}}, "ok", "hello", "the status 1000"},
		{sender{}, "panic", "a 1", "a fault in the provider"},
		{undecided{}, "ok", "a 1", "the certificate cannot be fetched"},
	} {
		log.Reset()
		seen = nil
		var l ledger
		w := postSigned(t.Context(), hookonce.Webhook(memstore.New(), "sender", c.p, l.handle, opts...), c.sig, c.body)
		want(t, w, 503, "")
		if line := log.String(); strings.Count(line, "\n") != 1 || !strings.Contains(line, `level=ERROR msg="webhook rejected" source=sender reason=undecided status=503 `) || !strings.Contains(line, c.why) {
			t.Errorf("%s: logged %s", c.why, line)
		}
		if len(seen) != 1 || seen[0].Status != "rejected" || seen[0].Reason != hookonce.ReasonUndecided || seen[0].Err == nil || !strings.Contains(seen[0].Err.Error(), c.why) {
			t.Errorf("%s: observed %+v", c.why, seen)
		}
		if strings.Contains(w.Body.String(), c.why) {
			t.Errorf("the answer tells the cause: %s", w.Body)
		}
		l.want(t)
	}
}
