package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

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
		_, err := f.run(t.Context(), req, errDeclined)
		refuses(t, err, errDeclined)
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
	_, err := f.run(t.Context(), request("evt_1"), errDeclined)
	refuses(t, err, errDeclined)
	stored(t, f, old.Ref, hookonce.StateFailed, 2)
	refuses(t, f.Complete(t.Context(), old), hookonce.ErrStale)
}

// rounds is how often a race is run; one of its two endings is the interesting one.
const rounds = 10

// traceAfterDone lets a copy wait for the failing one. Whether the copy commits before or after the
// trace is written, the work is done in the end.
func traceAfterDone[Tx any](t *testing.T, f *txFixture[Tx]) {
	for range rounds {
		req := request("evt_" + f.clock.Now().Format("150405"))
		release, first := f.hold(t, req)
		second := f.follow(t, req)
		release <- errDeclined
		refuses(t, (<-first).err, errDeclined)
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
		refuses(t, (<-first).err, errDeclined)
		o := <-second
		ok(t, o.err)
		verdict(t, o.claim, hookonce.Acquired)
		ok(t, f.Complete(t.Context(), o.claim))
		f.clock.Advance(time.Second)
	}
}
