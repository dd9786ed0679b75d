package storetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func withinCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"claim and effect commit together", withinCommits[Tx]},
		{"claim and effect roll back together", withinRollsBack[Tx]},
		{"a failed event is tried again", withinRedrives[Tx]},
		{"a panic rolls back and goes on", withinPanics[Tx]},
		{"a goroutine that ends rolls back", withinExits[Tx]},
		{"an ended context rolls back", withinCancelled[Tx]},
		{"an ended context rolls back even if the handler does not mind", withinCancelledUnheeded[Tx]},
		{"a duplicate runs nothing", withinDuplicate[Tx]},
		{"an expired lease is taken over", withinTakeover[Tx]},
		{"an event without a key runs without a claim", withinUnkeyed[Tx]},
		{"a failed event without a key leaves nothing", withinUnkeyedFails[Tx]},
		{"several claims commit together", withinSeveral[Tx]},
		{"a handler's error comes with the claim that was won", withinOwnError[Tx]},
		{"a handler that ends its transaction and fails is run again", withinEndsAndFails[Tx]},
		{"a handler that ends its transaction is no success", withinEndsAndSucceeds[Tx]},
		{"a type that no text can hold is no obstacle", withinStrangeType[Tx]},
	}
}

// done runs req and checks that it was won with the given token.
func (f *txFixture[Tx]) done(t testing.TB, req hookonce.ClaimRequest, token int64) {
	t.Helper()
	f.runs(t, req, hookonce.Acquired)
	stored(t, f, req.Ref, hookonce.StateDone, token)
}

func withinCommits[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	want := hookonce.Claim{
		Ref: req.Ref, Verdict: hookonce.Acquired, State: hookonce.StateDone, Token: 1,
		Type: req.Type, Digest: req.Digest, FirstSeen: f.clock.Now(), UpdatedAt: f.clock.Now(),
	}
	got, err := f.Within(t.Context(), req, func(tx Tx, c hookonce.Claim) error {
		same(t, "the handler's claim", c, want)
		return f.db.Effect(t.Context(), tx, req.Key)
	})
	ok(t, err)
	same(t, "returned claim", got, want)
	want.Verdict = 0
	same(t, "stored claim", lookup(t, f, req.Ref), want)
	f.effects(t, map[string]int{"evt_1": 1})
}

func withinRollsBack[Tx any](t *testing.T, f *txFixture[Tx]) {
	for state, failure := range map[hookonce.State]error{
		hookonce.StateFailed: errDeclined,
		hookonce.StateDead:   hookonce.Permanent(errDeclined),
	} {
		req := request(string(state))
		_, err := f.run(t.Context(), req, hookonce.RetryAfter(time.Minute, failure))
		refuses(t, err, errDeclined)
		if d, _ := hookonce.RetryDelay(err); d != time.Minute || hookonce.IsPermanent(err) != (state == hookonce.StateDead) {
			t.Fatalf("the marks on the handler's error are lost: %v", err)
		}
		stored(t, f, req.Ref, state, 1)
	}
	f.effects(t, nil)
}

func withinRedrives[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	for _, failure := range []error{errDeclined, hookonce.Permanent(errDeclined)} {
		refuses(t, errorOf(f.run(t.Context(), req, failure)), errDeclined)
	}
	f.done(t, req, 3)
	f.effects(t, map[string]int{"evt_1": 1})
	if c := lookup(t, f, req.Ref); c.LastError == "" {
		t.Fatalf("the last failure is forgotten: %#v", c)
	}
}

func withinPanics[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	p := recovered(func() {
		_, _ = f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
			ok(t, f.db.Effect(t.Context(), tx, req.Key))
			panic(errDeclined)
		})
	})
	if p != any(errDeclined) {
		t.Fatalf("panicked with %v, want the handler's value", p)
	}
	f.effects(t, nil)
	contains(t, stored(t, f, req.Ref, hookonce.StateFailed, 1).LastError, errDeclined.Error())
	f.done(t, req, 2)
}

// ownEnds are what a handler may end its transaction with by itself. Where a database does not know a statement it fails, which the
// handlers here hide.
var ownEnds = [][]string{{"COMMIT"}, {"COMMIT", "BEGIN"}, {"COMMIT AND CHAIN"}, {"ROLLBACK"}, {"ROLLBACK AND CHAIN"}}

// ending has the effect, ends the transaction with statements, and tries to have the effect once more. It reports whether one of
// the statements was carried out.
func (f *txFixture[Tx]) ending(t testing.TB, tx Tx, key string, statements []string) (ended bool) {
	ok(t, f.db.Effect(t.Context(), tx, key))
	for _, s := range statements {
		ended = f.db.Exec(t.Context(), tx, s) == nil || ended
	}
	_ = f.db.Effect(t.Context(), tx, key)
	return ended
}

// withinEndsAndFails checks that what a handler did not do for its failure is done by the next copy, whatever it had made
// durable before: to lose it would be worse than to repeat the rest.
func withinEndsAndFails[Tx any](t *testing.T, f *txFixture[Tx]) {
	if f.db.Exec == nil {
		return
	}
	for _, statements := range ownEnds {
		for name, failure := range map[string]error{
			"fails": errDeclined, "gives up": hookonce.Permanent(errDeclined), "forgets": hookonce.Forget(errDeclined), "panics": nil,
		} {
			req := request(fmt.Sprint(statements, " ", name))
			for range 2 {
				var err error
				p := recovered(func() {
					_, err = f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
						f.ending(t, tx, req.Key, statements)
						if failure == nil {
							panic(errDeclined)
						}
						return failure
					})
				})
				if failure == nil && p != any(errDeclined) || failure != nil && (!errors.Is(err, errDeclined) || errors.Is(err, hookonce.ErrTraceLost)) {
					t.Fatalf("%s: panicked with %v, error is %v", req.Key, p, err)
				}
				if failure != nil && hookonce.IsPermanent(err) != hookonce.IsPermanent(failure) {
					t.Fatalf("%s: the mark on the handler's error is lost: %v", req.Key, err)
				}
			}
			f.runs(t, req, hookonce.Acquired)
			f.runs(t, req, hookonce.Duplicate)
		}
	}
}

// withinEndsAndSucceeds checks that a copy is a duplicate only if all of the work is there.
func withinEndsAndSucceeds[Tx any](t *testing.T, f *txFixture[Tx]) {
	if f.db.Exec == nil {
		return
	}
	for _, statements := range ownEnds {
		req := request(fmt.Sprint(statements))
		ended := false
		_, err := f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
			ended = f.ending(t, tx, req.Key, statements)
			return nil
		})
		if err == nil && ended || errors.Is(err, hookonce.ErrUnknownOutcome) {
			t.Fatalf("%s: error is %v", req.Key, err)
		}
		effects, err := f.db.Effects(t.Context())
		ok(t, err)
		c, err := f.run(t.Context(), req, nil)
		ok(t, err)
		if c.Verdict == hookonce.Duplicate && effects[req.Key] != 2 {
			t.Fatalf("%s: the copy is a duplicate, and %d of 2 effects happened", req.Key, effects[req.Key])
		}
	}
}

func withinExits[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	for attempt := range int64(2) {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_, _ = f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
				defer runtime.Goexit()
				return f.db.Effect(t.Context(), tx, req.Key)
			})
		}()
		<-ended
		f.effects(t, nil)
		stored(t, f, req.Ref, hookonce.StateFailed, attempt+1)
	}
	f.done(t, req, 3)
}

func withinCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.cancelled(t, func(ctx context.Context) error { return ctx.Err() })
}

func withinCancelledUnheeded[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.cancelled(t, func(context.Context) error { return nil })
}

// cancelled ends the context while the handler runs, which then returns what result says.
func (f *txFixture[Tx]) cancelled(t *testing.T, result func(context.Context) error) {
	req := request("evt_1")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := f.Within(ctx, req, func(tx Tx, _ hookonce.Claim) error {
		ok(t, f.db.Effect(ctx, tx, req.Key))
		cancel()
		return result(ctx)
	})
	refuses(t, err, context.Canceled)
	stored(t, f, req.Ref, hookonce.StateFailed, 1)
	f.done(t, req, 2)
	f.effects(t, map[string]int{"evt_1": 1})
}

func withinDuplicate[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.done(t, request("evt_1"), 1)
	for _, req := range []hookonce.ClaimRequest{request("evt_1"), otherContent("evt_1")} {
		unchanged(t, f, req.Ref, func() {
			c := f.idle(t, f, req, hookonce.Duplicate)
			conflict(t, c, string(req.Digest) != string(request("").Digest))
		})
	}
	f.effects(t, map[string]int{"evt_1": 1})
}

// withinOwnError has the handler return the error of a claim that is held: the verdict tells the two apart.
func withinOwnError[Tx any](t *testing.T, f *txFixture[Tx]) {
	for key, want := range map[string]hookonce.Verdict{"evt_1": hookonce.Acquired, "": hookonce.Unkeyed} {
		var held hookonce.Claim
		c, err := f.Within(t.Context(), request(key), func(_ Tx, c hookonce.Claim) error {
			held = c
			return hookonce.ErrBusy
		})
		refuses(t, err, hookonce.ErrBusy)
		verdict(t, c, want)
		same(t, "the claim beside the error", c, held)
	}
}

func withinStrangeType[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	req.Type = "paid\x00 \xff"
	refuses(t, errorOf(f.run(t.Context(), req, errDeclined)), errDeclined)
	stored(t, f, req.Ref, hookonce.StateFailed, 1)
	f.done(t, req, 2)
}

func withinTakeover[Tx any](t *testing.T, f *txFixture[Tx]) {
	old := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, old.Ref, func() { f.idle(t, f, request("evt_1"), hookonce.Busy) })
	f.clock.Advance(lease)
	f.done(t, request("evt_1"), 2)
	refuses(t, f.Complete(t.Context(), old), hookonce.ErrStale)

	req := request("evt_2")
	req.Lease = 0
	claim(t, f, req, hookonce.Acquired)
	f.clock.Advance(365 * 24 * time.Hour)
	f.idle(t, f, req, hookonce.Busy)
}

func withinUnkeyed[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("")
	for range 2 {
		f.runs(t, req, hookonce.Unkeyed)
	}
	absent(t, f, req.Ref)
	f.effects(t, map[string]int{"": 2})
}

func withinUnkeyedFails[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("")
	refuses(t, errorOf(f.run(t.Context(), req, errDeclined)), errDeclined)
	p := recovered(func() {
		_, _ = f.Within(t.Context(), req, func(Tx, hookonce.Claim) error { panic("at the disco") })
	})
	if p != any("at the disco") {
		t.Fatalf("panicked with %v, want the handler's value", p)
	}
	absent(t, f, req.Ref)
	f.effects(t, nil)
}

func withinSeveral[Tx any](t *testing.T, f *txFixture[Tx]) {
	both := func(failure error) error {
		_, err := f.Within(t.Context(), request("order"), func(tx Tx, _ hookonce.Claim) error {
			c, err := f.ClaimTx(t.Context(), tx, request("payment"))
			ok(t, err)
			verdict(t, c, hookonce.Acquired)
			return errors.Join(f.db.Effect(t.Context(), tx, "both"), failure)
		})
		return err
	}
	refuses(t, both(errDeclined), errDeclined)
	absent(t, f, request("payment").Ref)
	ok(t, both(nil))
	stored(t, f, request("order").Ref, hookonce.StateDone, 2)
	stored(t, f, request("payment").Ref, hookonce.StateDone, 1)
	f.effects(t, map[string]int{"both": 1})
}

func refusedCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"a key that cannot be stored", refusedInvalid[Tx]},
		{"a context that has ended", refusedCancelled[Tx]},
	}
}

func refusedInvalid[Tx any](t *testing.T, f *txFixture[Tx]) {
	for name, ref := range invalidRefs() {
		_, err := f.Within(t.Context(), hookonce.ClaimRequest{Ref: ref}, func(Tx, hookonce.Claim) error {
			return fmt.Errorf("%s: the handler ran", name)
		})
		refuses(t, err, hookonce.ErrInvalidRef)
		absent(t, f, ref)

		tx, err := f.db.Begin(t.Context())
		ok(t, err)
		refuses(t, errorOf(f.ClaimTx(t.Context(), tx, hookonce.ClaimRequest{Ref: ref})), hookonce.ErrInvalidRef)
		ok(t, f.db.Rollback(t.Context(), tx))
	}
}

func refusedCancelled[Tx any](t *testing.T, f *txFixture[Tx]) {
	_, err := f.Within(ended(t), request("evt_1"), func(Tx, hookonce.Claim) error {
		t.Error("the handler ran")
		return nil
	})
	refuses(t, err, context.Canceled)
	absent(t, f, request("evt_1").Ref)
}

func claimTxCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"the claim is done when the caller commits", claimTxCommits[Tx]},
		{"the claim is gone when the caller rolls back", claimTxRollsBack[Tx]},
		{"a failed claim is failed again after a rollback", claimTxRestores[Tx]},
		{"a duplicate is a duplicate", claimTxDuplicate[Tx]},
		{"a transaction sees its own claims", claimTxTwice[Tx]},
		{"a lease elsewhere is busy until it expires", claimTxBusy[Tx]},
		{"a claim without a deadline is never stolen", claimTxUnlimited[Tx]},
		{"other content is a conflict", claimTxConflict[Tx]},
		{"no key, no claim", claimTxUnkeyed[Tx]},
	}
}

// inTx begins a transaction, claims in it, and ends it with end.
func (f *txFixture[Tx]) inTx(t testing.TB, req hookonce.ClaimRequest, want hookonce.Verdict, end func(context.Context, Tx) error) hookonce.Claim {
	t.Helper()
	tx, err := f.db.Begin(t.Context())
	ok(t, err)
	c, err := f.ClaimTx(t.Context(), tx, req)
	if !errors.Is(err, want.Err()) {
		_ = f.db.Rollback(t.Context(), tx)
		t.Fatalf("ClaimTx: %v, want %v", err, want.Err())
	}
	if want == hookonce.Acquired || want == hookonce.Unkeyed {
		ok(t, f.db.Effect(t.Context(), tx, req.Key))
	}
	ok(t, end(t.Context(), tx))
	verdict(t, c, want)
	return c
}

func claimTxCommits[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	want := hookonce.Claim{
		Ref: req.Ref, Verdict: hookonce.Acquired, State: hookonce.StateDone, Token: 1,
		Type: req.Type, Digest: req.Digest, FirstSeen: f.clock.Now(), UpdatedAt: f.clock.Now(),
	}
	same(t, "claim", f.inTx(t, req, hookonce.Acquired, f.db.Commit), want)
	want.Verdict = 0
	same(t, "stored claim", lookup(t, f, req.Ref), want)
	f.effects(t, map[string]int{"evt_1": 1})
}

func claimTxRollsBack[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	f.inTx(t, req, hookonce.Acquired, f.db.Rollback)
	absent(t, f, req.Ref)
	f.effects(t, nil)
	f.inTx(t, req, hookonce.Acquired, f.db.Commit)
	stored(t, f, req.Ref, hookonce.StateDone, 1)
}

func claimTxRestores[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	ok(t, f.Fail(t.Context(), claim(t, f, req, hookonce.Acquired), hookonce.Failure{Err: errDeclined}))
	unchanged(t, f, req.Ref, func() {
		if c := f.inTx(t, req, hookonce.Acquired, f.db.Rollback); c.Token != 2 {
			t.Fatalf("token is %d, want 2", c.Token)
		}
	})
	f.inTx(t, req, hookonce.Acquired, f.db.Commit)
	stored(t, f, req.Ref, hookonce.StateDone, 2)
}

func claimTxDuplicate[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.done(t, request("evt_1"), 1)
	unchanged(t, f, request("evt_1").Ref, func() {
		f.inTx(t, request("evt_1"), hookonce.Duplicate, f.db.Commit)
	})
}

func claimTxTwice[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	tx, err := f.db.Begin(t.Context())
	ok(t, err)
	for _, want := range []hookonce.Verdict{hookonce.Acquired, hookonce.Duplicate} {
		c, err := f.ClaimTx(t.Context(), tx, req)
		ok(t, err)
		verdict(t, c, want)
	}
	ok(t, f.db.Commit(t.Context(), tx))
	stored(t, f, req.Ref, hookonce.StateDone, 1)
}

func claimTxBusy[Tx any](t *testing.T, f *txFixture[Tx]) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	unchanged(t, f, c.Ref, func() { f.inTx(t, request("evt_1"), hookonce.Busy, f.db.Commit) })
	f.clock.Advance(lease)
	f.inTx(t, request("evt_1"), hookonce.Acquired, f.db.Commit)
	refuses(t, f.Complete(t.Context(), c), hookonce.ErrStale)
	stored(t, f, c.Ref, hookonce.StateDone, 2)
}

func claimTxUnlimited[Tx any](t *testing.T, f *txFixture[Tx]) {
	req := request("evt_1")
	req.Lease = 0
	claim(t, f, req, hookonce.Acquired)
	f.clock.Advance(10 * 365 * 24 * time.Hour)
	unchanged(t, f, req.Ref, func() { f.inTx(t, req, hookonce.Busy, f.db.Commit) })
}

func claimTxConflict[Tx any](t *testing.T, f *txFixture[Tx]) {
	ok(t, f.Fail(t.Context(), claim(t, f, request("evt_1"), hookonce.Acquired), hookonce.Failure{}))
	conflict(t, f.inTx(t, otherContent("evt_1"), hookonce.Acquired, f.db.Commit), true)
	conflict(t, f.inTx(t, otherContent("evt_1"), hookonce.Duplicate, f.db.Commit), false)
	conflict(t, f.inTx(t, request("evt_1"), hookonce.Duplicate, f.db.Commit), true)
}

func claimTxUnkeyed[Tx any](t *testing.T, f *txFixture[Tx]) {
	f.inTx(t, request(""), hookonce.Unkeyed, f.db.Commit)
	absent(t, f, request("").Ref)
	f.effects(t, map[string]int{"": 1})
}

// inside runs work in a transaction of the driver, and commits it, or rolls it back for work's error.
func (f *txFixture[Tx]) inside(t testing.TB, work func(Tx) error) error {
	return f.insideOf(t.Context(), work)
}

func (f *txFixture[Tx]) insideOf(ctx context.Context, work func(Tx) error) error {
	tx, err := f.db.Begin(ctx)
	if err != nil {
		return err
	}
	if err := work(tx); err != nil {
		_ = f.db.Rollback(context.WithoutCancel(ctx), tx)
		return err
	}
	return f.db.Commit(ctx, tx)
}

// maxRetries bounds how often a transaction is tried again that the database gave up for another one's
// sake. Each time the other one went on, so more than the number of racers is not needed.
const maxRetries = 10 * racers

// retried is inside, tried again like a program does that meets a database's refusal to serialize: an error
// that wraps none of the package's says that nothing is known, and nothing happened after a rollback.
func (f *txFixture[Tx]) retried(t testing.TB, work func(Tx) error) (err error) {
	for range maxRetries {
		if err = f.inside(t, work); err == nil || isAnswer(err) {
			return err
		}
	}
	return err
}

// isAnswer reports whether err is one of those that callers tell apart.
func isAnswer(err error) bool {
	for _, target := range []error{
		hookonce.ErrInvalidRef, hookonce.ErrBusy, hookonce.ErrStale, hookonce.ErrNotFound, hookonce.ErrEffectExists,
		hookonce.ErrSchemaMissing, errDeclined,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// holdTx runs work in a transaction and keeps that open. Finish ends the transaction, with a commit or a
// rollback, and may be called once.
func (f *txFixture[Tx]) holdTx(t testing.TB, work func(context.Context, Tx) error) (finish func(commit bool)) {
	t.Helper()
	tx, err := f.db.Begin(t.Context())
	ok(t, err)
	if err := work(t.Context(), tx); err != nil {
		_ = f.db.Rollback(t.Context(), tx)
		t.Fatalf("unexpected error: %v", err)
	}
	return func(commit bool) {
		t.Helper()
		if commit {
			ok(t, f.db.Commit(t.Context(), tx))
			return
		}
		ok(t, f.db.Rollback(t.Context(), tx))
	}
}

// mustWait checks that a transaction does not get through work while another one is open: it runs into the
// end of a short context instead of getting an answer.
func (f *txFixture[Tx]) mustWait(t testing.TB, work func(context.Context, Tx) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), shortWait)
	defer cancel()
	var through bool
	err := f.insideOf(ctx, func(tx Tx) error {
		err := work(ctx, tx)
		through = err == nil
		return errors.Join(err, errDeclined)
	})
	if through {
		t.Fatal("it did not wait for the other transaction")
	}
	if err == nil {
		t.Fatal("a transaction that had to wait ended without an error")
	}
}

// bank charges once per Idempotency-Key, and answers a repeated one with what it charged first.
type bank struct {
	mu      sync.Mutex
	charged map[string]string
}

func (b *bank) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	amount, _ := io.ReadAll(r.Body)
	key := r.Header.Get("Idempotency-Key")
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, known := b.charged[key]; !known {
		b.charged[key] = string(amount)
	}
	fmt.Fprint(w, "charged ", b.charged[key])
}

// changedRequestAfterOutboundCall lets a request fail after the bank has charged for it. Another one under the
// same key must not be told that this was its charge.
func changedRequestAfterOutboundCall[Tx any](t *testing.T, f *txFixture[Tx]) {
	charges := httptest.NewServer(&bank{charged: map[string]string{}})
	defer charges.Close()
	client := &http.Client{Transport: hookonce.Transport(charges.Client().Transport)}
	lost := errors.New("the answer was lost")
	shop := hookonce.Idempotent(keeper(t, f.TxStore), "orders", func(w http.ResponseWriter, r *http.Request, tx Tx) error {
		amount, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		call, err := http.NewRequestWithContext(r.Context(), http.MethodPost, charges.URL, strings.NewReader(string(amount)))
		if err != nil {
			return err
		}
		answer, err := client.Do(call)
		if err != nil {
			return err
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		order := fmt.Sprintf("order of %s: %s", amount, text)
		fmt.Fprint(w, order)
		return errors.Join(err, f.db.Effect(r.Context(), tx, order), lost)
	}, hookonce.WithoutScope(), hookonce.WithLogger(slog.New(slog.DiscardHandler)))

	order := func(amount string, status int) string {
		r := httptest.NewRequest(http.MethodPost, "/orders", strings.NewReader(amount))
		r.Header.Set("Idempotency-Key", "k1")
		w := httptest.NewRecorder()
		shop.ServeHTTP(w, r)
		if w.Code != status {
			t.Fatalf("the order of %s was answered %d %s, want %d", amount, w.Code, w.Body, status)
		}
		return w.Body.String()
	}
	order("100", 503)
	lost = nil
	contains(t, order("200", 422), "idempotency-key-reused")
	contains(t, order("100", 200), "order of 100: charged 100")
	f.effects(t, map[string]int{"order of 100: charged 100": 1})
	contains(t, order("200", 422), "idempotency-key-reused")
}
