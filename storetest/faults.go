package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func faultCases[Tx any]() []txCase[Tx] {
	var cases []txCase[Tx]
	for name, persisted := range map[string]bool{"failed, not persisted": false, "failed, but persisted": true} {
		cases = append(cases,
			txCase[Tx]{"commit " + name, func(t *testing.T, f *txFixture[Tx]) { faultCommit(t, f, persisted) }},
			txCase[Tx]{"commit of a second attempt " + name, func(t *testing.T, f *txFixture[Tx]) { faultCommitAgain(t, f, persisted) }},
			txCase[Tx]{"commit without a key " + name, func(t *testing.T, f *txFixture[Tx]) { faultCommitUnkeyed(t, f, persisted) }},
			txCase[Tx]{"claim " + name, func(t *testing.T, f *txFixture[Tx]) { faultClaim(t, f, persisted) }},
			txCase[Tx]{"complete " + name, func(t *testing.T, f *txFixture[Tx]) { faultComplete(t, f, persisted) }},
			txCase[Tx]{"fail " + name, func(t *testing.T, f *txFixture[Tx]) { faultFail(t, f, persisted) }},
			txCase[Tx]{"commit of an attempt that reached the outside " + name, func(t *testing.T, f *txFixture[Tx]) { faultCommitPinned(t, f, persisted) }},
			txCase[Tx]{"trace after the handler's own commit " + name, func(t *testing.T, f *txFixture[Tx]) { faultTraceOfTheTorn(t, f, persisted) }},
			txCase[Tx]{"forgetting " + name, func(t *testing.T, f *txFixture[Tx]) { faultForget(t, f, persisted) }},
			txCase[Tx]{"purge " + name, func(t *testing.T, f *txFixture[Tx]) { faultPurge(t, f, persisted) }},
		)
	}
	return cases
}

// unknown runs req while the commit fails, and checks that the outcome is called unknown.
func (f *txFixture[Tx]) unknown(t testing.TB, req hookonce.ClaimRequest, persisted bool) {
	t.Helper()
	f.db.FailCommit(persisted)
	refuses(t, errorOf(f.run(t.Context(), req, nil)), hookonce.ErrUnknownOutcome)
}

// faultCommit checks that the sender's retry reads the truth: it runs the handler if the first
// commit did not persist, and is a duplicate if it did.
func faultCommit[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	f.unknown(t, req, persisted)
	f.retry(t, req, persisted)
}

func faultCommitAgain[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	refuses(t, errorOf(f.run(t.Context(), req, errDeclined)), errDeclined)
	if !f.ahead {
		f.unknown(t, req, persisted)
		f.retry(t, req, persisted)
		return
	}
	// What is lost of one that ran ahead is that the event is not new; unless that is told before what is cut is sent.
	f.db.FailCommit(persisted)
	c, err := f.run(t.Context(), req, nil)
	if err != nil {
		refuses(t, err, hookonce.ErrUnknownOutcome)
	} else if c.Token != 2 {
		t.Fatalf("token is %d, want 2", c.Token)
	}
	f.retry(t, req, err == nil)
}

func (f *txFixture[Tx]) retry(t testing.TB, req hookonce.ClaimRequest, persisted bool) {
	t.Helper()
	c := f.runs(t, req, map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[persisted])
	f.effects(t, map[string]int{req.Key: 1})
	stored(t, f, req.Ref, hookonce.StateDone, c.Token)
}

// faultCommitUnkeyed shows the price of having no key: the retry cannot know.
func faultCommitUnkeyed[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.unknown(t, request(""), persisted)
	f.runs(t, request(""), hookonce.Unkeyed)
	f.effects(t, map[string]int{"": map[bool]int{true: 2, false: 1}[persisted]})
}

// failing runs write while the next write fails, and checks that its error claims no knowledge.
// It reports false where the store's test has no such fault.
func (f *txFixture[Tx]) failing(t testing.TB, persisted bool, write func() error) bool {
	t.Helper()
	if f.db.FailWrite == nil {
		return false
	}
	f.db.FailWrite(persisted)
	err := write()
	if err == nil {
		t.Fatal("a write that failed was reported as a success")
	}
	for _, known := range []error{hookonce.ErrStale, hookonce.ErrNotFound, hookonce.ErrBusy, hookonce.ErrInvalidRef} {
		if errors.Is(err, known) {
			t.Fatalf("a write that failed was reported as %v", err)
		}
	}
	return true
}

// faultClaim checks that a claim whose answer was lost is not lost: its lease runs out.
func faultClaim[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	if !f.failing(t, persisted, func() error { return errorOf(f.Claim(t.Context(), req)) }) {
		return
	}
	if !persisted {
		absent(t, f, req.Ref)
		claim(t, f, req, hookonce.Acquired)
		return
	}
	claim(t, f, req, hookonce.Busy)
	f.clock.Advance(lease)
	if c := claim(t, f, req, hookonce.Acquired); c.Token != 2 {
		t.Fatalf("token is %d, want 2", c.Token)
	}
}

func faultComplete[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	if !f.failing(t, persisted, func() error { return f.Complete(t.Context(), c) }) {
		return
	}
	stored(t, f, c.Ref, map[bool]hookonce.State{true: hookonce.StateDone, false: hookonce.StateProcessing}[persisted], 1)
	ok(t, f.Complete(t.Context(), c))
	stored(t, f, c.Ref, hookonce.StateDone, 1)
}

func faultFail[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	failure := hookonce.Failure{Err: errDeclined}
	if !f.failing(t, persisted, func() error { return f.Fail(t.Context(), c, failure) }) {
		return
	}
	stored(t, f, c.Ref, map[bool]hookonce.State{true: hookonce.StateFailed, false: hookonce.StateProcessing}[persisted], 1)
	ok(t, f.Fail(t.Context(), c, failure))
	stored(t, f, c.Ref, hookonce.StateFailed, 1)
}

// faultCommitPinned checks that an attempt whose outcome is unknown is bound to its content, unless it is done.
func faultCommitPinned[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	f.db.FailCommit(persisted)
	refuses(t, f.reach(t, req, func(context.CancelFunc) error { return nil }), hookonce.ErrUnknownOutcome)
	f.idle(t, f, otherContent("evt_1"), map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Pinned}[persisted])
	f.runs(t, req, map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[persisted])
	f.effects(t, map[string]int{req.Key: 1})
}

// faultTraceOfTheTorn checks that the trace which opens a claim again that the handler committed is not given up.
func faultTraceOfTheTorn[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	if f.db.FailWrite == nil || f.db.Exec == nil {
		return
	}
	req := request("evt_1")
	_, err := f.Within(t.Context(), req, func(tx Tx, _ hookonce.Claim) error {
		_ = f.db.Exec(t.Context(), tx, "COMMIT")
		f.db.FailWrite(persisted)
		return errDeclined
	})
	refuses(t, err, errDeclined)
	f.runs(t, req, hookonce.Acquired)
	f.effects(t, map[string]int{req.Key: 1})
}

// faultForget checks that a failure can be repeated although nothing may be left of the claim.
func faultForget[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	c := claim(t, f, pinning("evt_1"), hookonce.Acquired)
	if !f.failing(t, persisted, func() error { return f.Fail(t.Context(), c, forget) }) {
		return
	}
	ok(t, f.Fail(t.Context(), c, forget))
	absent(t, f, c.Ref)
}

// faultPurge checks that what a purge may have deleted is not counted as deleted, and that the next one goes on from the truth.
func faultPurge[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	ref := finish(t, f, "evt_1")
	f.clock.Advance(time.Second)
	req := before(f.clock.Now(), 10)
	var deleted int
	if !f.failing(t, persisted, func() (err error) { deleted, err = f.Purge(t.Context(), req); return err }) {
		return
	}
	if deleted != 0 {
		t.Fatalf("a purge that failed counts %d", deleted)
	}
	purgeOf(t, f, req, map[bool]int{true: 0, false: 1}[persisted])
	absent(t, f, ref)
}

// bothWays makes a case of each way in which a write can fail.
func bothWays[Tx any](what string, run func(t *testing.T, f *txFixture[Tx], persisted bool)) []txCase[Tx] {
	return []txCase[Tx]{
		{what + " failed, not persisted", func(t *testing.T, f *txFixture[Tx]) { run(t, f, false) }},
		{what + " failed, but persisted", func(t *testing.T, f *txFixture[Tx]) { run(t, f, true) }},
	}
}

func responseFaultCases[Tx any]() []txCase[Tx] {
	return append(bothWays("commit of a response", faultKeep[Tx]), bothWays("completion with a response", faultCompleteWith[Tx])...)
}

// lose runs work for the key in a transaction whose commit fails.
func (f *txFixture[Tx]) lose(t testing.TB, key string, persisted bool, work func(context.Context, Tx) error) {
	t.Helper()
	f.db.FailCommit(persisted)
	refuses(t, errorOf(f.Within(t.Context(), request(key), func(tx Tx, _ hookonce.Claim) error { return work(t.Context(), tx) })), hookonce.ErrUnknownOutcome)
}

// faultKeep checks that the response shares the fate of the claim and the effect.
func faultKeep[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	req := request("evt_1")
	f.db.FailCommit(persisted)
	refuses(t, errorOf(f.answer(t, req, response("first"), nil)), hookonce.ErrUnknownOutcome)
	if !persisted {
		silent(t, f, req.Ref)
	}
	c, err := f.answer(t, req, response("second"), nil)
	ok(t, err)
	verdict(t, c, map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[persisted])
	responds(t, f, req.Ref, response(map[bool]string{true: "first", false: "second"}[persisted]))
	f.effects(t, map[string]int{"evt_1": 1})
}

func faultCompleteWith[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	c := claim(t, f, request("evt_1"), hookonce.Acquired)
	if !f.failing(t, persisted, func() error { return keeps(t, f).CompleteWith(t.Context(), c, response("first")) }) {
		return
	}
	if !persisted {
		stored(t, f, c.Ref, hookonce.StateProcessing, 1)
		silent(t, f, c.Ref)
	}
	ok(t, keeps(t, f).CompleteWith(t.Context(), c, response("second")))
	stored(t, f, c.Ref, hookonce.StateDone, 1)
	responds(t, f, c.Ref, response(map[bool]string{true: "first", false: "second"}[persisted]))
}

func guardFaultCases[Tx any]() []txCase[Tx] {
	return append(bothWays("commit of a version", faultNewer[Tx]), bothWays("commit of a move", faultTransition[Tx])...)
}

func faultNewer[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.newer(t, "order-1", 1, true)
	f.lose(t, "evt_1", persisted, f.versions(t, "order-1", hookonce.Version(2)))
	f.newer(t, "order-1", 2, !persisted)
}

func faultTransition[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.moves(t, "order-1", "", "open", "open", hookonce.Moved)
	f.lose(t, "evt_1", persisted, f.transitions(t, "order-1", "open", "paid"))
	f.moves(t, "order-1", "open", "paid", "paid", hookonce.MoveOf(!persisted, "paid", "paid"))
}

func outboxFaultCases[Tx any]() (cases []txCase[Tx]) {
	for what, run := range map[string]func(*testing.T, *txFixture[Tx], bool){
		"commit of an effect": faultEnqueue[Tx],
		"taking":              faultTake[Tx],
		"completion":          faultCompleteEffect[Tx],
		"failure":             faultFailEffect[Tx],
		"extension":           faultExtendEffect[Tx],
		"redrive":             faultRedrive[Tx],
	} {
		cases = append(cases, bothWays(what, run)...)
	}
	return cases
}

// faultEnqueue checks that the effect is there if and only if the claim is done, whatever the caller was
// told.
func faultEnqueue[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	enqueue := f.enqueues(t, asks("evt_1", ""))
	f.lose(t, "evt_1", persisted, enqueue)
	if !persisted {
		f.take(t, 1, 0)
	}
	c, err := f.Within(t.Context(), request("evt_1"), func(tx Tx, _ hookonce.Claim) error { return enqueue(t.Context(), tx) })
	ok(t, err)
	verdict(t, c, map[bool]hookonce.Verdict{true: hookonce.Duplicate, false: hookonce.Acquired}[persisted])
	f.takeOne(t)
}

// faultTake checks that effects whose taking was not answered are not lost: their lease runs out.
func faultTake[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.enqueue(t, asks("evt_1", ""), asks("evt_2", ""))
	if !f.failing(t, persisted, func() error { return errorOf(f.outbox(t).TakeEffects(t.Context(), taking(2))) }) {
		return
	}
	token := int64(1)
	if persisted {
		f.take(t, 2, 0)
		f.clock.Advance(lease)
		token = 2
	}
	for _, e := range f.take(t, 2, 2) {
		if e.Token != token {
			t.Fatalf("token is %d, want %d", e.Token, token)
		}
	}
}

// faultOutcome checks that an outcome that was not answered can be recorded again, and is on record once.
func (f *txFixture[Tx]) faultOutcome(t testing.TB, persisted bool, state hookonce.State, end func(hookonce.QueuedEffect) error) {
	t.Helper()
	f.enqueue(t, asks("evt_1", ""))
	e := f.takeOne(t)
	if !f.failing(t, persisted, func() error { return end(e) }) {
		return
	}
	f.only(t, map[bool]hookonce.State{true: state, false: hookonce.StateProcessing}[persisted])
	ok(t, end(e))
	f.only(t, state)
}

func faultCompleteEffect[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.faultOutcome(t, persisted, hookonce.StateDone, ends(t, f)[hookonce.StateDone])
}

func faultFailEffect[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.faultOutcome(t, persisted, hookonce.StateFailed, ends(t, f)[hookonce.StateFailed])
}

func faultExtendEffect[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	f.enqueue(t, asks("evt_1", ""))
	e := f.takeOne(t)
	extend := func() error { return errorOf(f.outbox(t).ExtendEffect(t.Context(), e, time.Hour)) }
	if !f.failing(t, persisted, extend) {
		return
	}
	want := map[bool]time.Duration{true: time.Hour, false: lease}[persisted]
	if got := f.only(t, hookonce.StateProcessing).Lease.Sub(f.clock.Now()); got != want {
		t.Fatalf("the lease ends in %v, want %v", got, want)
	}
	ok(t, extend())
}

func faultRedrive[Tx any](t *testing.T, f *txFixture[Tx], persisted bool) {
	id := f.dead(t, "evt_1").ID
	if !f.failing(t, persisted, func() error { return f.outbox(t).RedriveEffect(t.Context(), id) }) {
		return
	}
	f.only(t, map[bool]hookonce.State{true: hookonce.StateFailed, false: hookonce.StateDead}[persisted])
}

func traceCases[Tx any]() []txCase[Tx] {
	return []txCase[Tx]{
		{"describes the failed attempt", traceDescribes[Tx]},
		{"counts attempts", traceCounts[Tx]},
		{"keeps what can be kept of the text", traceText[Tx]},
		{"fences off the lease that it took over", traceFences[Tx]},
		{"never overwrites done work", traceAfterDone[Tx]},
		{"never overwrites a newer attempt", traceAfterTakeover[Tx]},
	}
}

func traceDescribes[Tx any](t *testing.T, f *txFixture[Tx]) {
	req, first := request("evt_1"), f.clock.Now()
	_, err := f.Within(t.Context(), req, func(Tx, hookonce.Claim) error {
		f.clock.Advance(time.Second)
		return errDeclined
	})
	refuses(t, err, errDeclined)
	got := lookup(t, f, req.Ref)
	contains(t, got.LastError, errDeclined.Error())
	got.LastError = ""
	same(t, "trace", got, hookonce.Claim{
		Ref: req.Ref, State: hookonce.StateFailed, Token: 1, Type: req.Type, Digest: req.Digest,
		FirstSeen: first, UpdatedAt: f.clock.Now(),
	})
}

func traceCounts[Tx any](t *testing.T, f *txFixture[Tx]) {
	req, first := request("evt_1"), f.clock.Now()
	for attempt := range int64(3) {
		refuses(t, errorOf(f.run(t.Context(), req, errDeclined)), errDeclined)
		got := stored(t, f, req.Ref, hookonce.StateFailed, attempt+1)
		if !got.FirstSeen.Equal(first) || !got.UpdatedAt.Equal(f.clock.Now()) {
			t.Fatalf("first seen %v, updated at %v; want %v and %v", got.FirstSeen, got.UpdatedAt, first, f.clock.Now())
		}
		f.clock.Advance(time.Second)
	}
}

func traceText[Tx any](t *testing.T, f *txFixture[Tx]) {
	for text, want := range awkwardTexts() {
		req := request("evt_1")
		_, err := f.Within(t.Context(), req, func(Tx, hookonce.Claim) error { return errors.New(text) })
		if err == nil || errors.Is(err, hookonce.ErrTraceLost) {
			t.Fatalf("error is %v, want the handler's", err)
		}
		kept(t, lookup(t, f, req.Ref).LastError, want)
	}
}

func traceFences[Tx any](t *testing.T, f *txFixture[Tx]) {
	old := claim(t, f, request("evt_1"), hookonce.Acquired)
	f.clock.Advance(lease)
	refuses(t, errorOf(f.run(t.Context(), request("evt_1"), errDeclined)), errDeclined)
	stored(t, f, old.Ref, hookonce.StateFailed, 2)
	refuses(t, f.Complete(t.Context(), old), hookonce.ErrStale)
}

// traceAfterDone lets a copy wait for the failing one. Whether the copy commits before or after the
// trace is written, the work is done in the end.
func traceAfterDone[Tx any](t *testing.T, f *txFixture[Tx]) {
	for range rounds {
		req := request("evt_" + f.clock.Now().Format("150405"))
		release, first := f.hold(t, req)
		second := f.follow(t, req)
		release <- errDeclined
		f.gaveUp(t, <-first)
		ok(t, (<-second).err)
		if c := lookup(t, f, req.Ref); c.State != hookonce.StateDone {
			t.Fatalf("the effect happened, but a trace made the claim %#v", c)
		}
		f.clock.Advance(time.Second)
	}
}

// traceAfterTakeover is the same with a copy that claims with a lease.
func traceAfterTakeover[Tx any](t *testing.T, f *txFixture[Tx]) {
	s := f.another(time.Minute)
	for range rounds {
		req := request("evt_" + f.clock.Now().Format("150405"))
		release, first := f.hold(t, req)
		second := make(chan outcome, 1)
		go func() {
			c, err := s.Claim(t.Context(), req)
			second <- outcome{c, err}
		}()
		release <- errDeclined
		f.gaveUp(t, <-first)
		o := <-second
		ok(t, o.err)
		verdict(t, o.claim, hookonce.Acquired)
		ok(t, f.Complete(t.Context(), o.claim))
		f.clock.Advance(time.Second)
	}
}
