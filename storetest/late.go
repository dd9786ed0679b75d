package storetest

import (
	"bytes"
	"errors"
	"sync"
	"testing"

	"github.com/hookonce/hookonce"
)

// late is a handler's error after which others get to the key before the trace is left: a store asks
// for the error's text between the rollback and the trace.
type late struct{ meanwhile func() }

func newLate(meanwhile func()) error { return &late{sync.OnceFunc(meanwhile)} }

func (e *late) Error() string {
	e.meanwhile()
	return "the connection broke"
}

// lateTrace is what becomes of the trace of a first attempt, by what happened meanwhile. What
// happened meanwhile began afresh, so its tokens start with 1 as well.
type lateTrace[Tx any] struct {
	name       string
	meanwhile  func(t *testing.T, f *txFixture[Tx])
	failed     hookonce.State // that is stored in the end when the attempt failed,
	gaveUp     hookonce.State // and when it failed for good
	token      int64
	unrecorded bool // the key belongs to somebody else, so that giving up is not on record
}

func lateTraces[Tx any]() []lateTrace[Tx] {
	fail := func(failures ...error) func(*testing.T, *txFixture[Tx]) {
		return func(t *testing.T, f *txFixture[Tx]) {
			for _, failure := range failures {
				_, err := f.run(t.Context(), request("evt_1"), failure)
				if !errors.Is(err, failure) {
					t.Fatalf("error is %v, want %v", err, failure)
				}
			}
		}
	}
	const failed, dead, processing, done = hookonce.StateFailed, hookonce.StateDead, hookonce.StateProcessing, hookonce.StateDone
	gaveUp := hookonce.Permanent(errDeclined)
	reached := func(t *testing.T, f *txFixture[Tx]) {
		req := otherContent("evt_1")
		ctx := hookonce.ContextWithPin(t.Context(), req.Ref)
		hookonce.PinRequest(ctx)
		_, err := f.run(ctx, req, errDeclined)
		refuses(t, err, errDeclined)
		if c := stored(t, f, req.Ref, failed, 1); c.Pinned != 1 {
			t.Fatalf("it is not pinned: %#v", c)
		}
	}
	return []lateTrace[Tx]{
		{"nothing", func(*testing.T, *txFixture[Tx]) {}, failed, dead, 1, false},
		{"a copy failed", fail(errDeclined), failed, dead, 1, false},
		{"a copy was given up", fail(gaveUp), dead, dead, 1, false},
		{"copies failed twice", fail(errDeclined, errDeclined), failed, failed, 2, true},
		{"a copy failed and was then given up", fail(errDeclined, gaveUp), dead, dead, 2, true},
		{"a copy is done", fail(nil), done, done, 1, true},
		{"other content reached the outside", reached, failed, failed, 1, true},
		{"a worker took a lease", leaseMeanwhile[Tx], processing, processing, 1, true},
		{"a worker let its lease run out", func(t *testing.T, f *txFixture[Tx]) {
			leaseMeanwhile(t, f)
			f.clock.Advance(2 * lease)
		}, processing, processing, 1, true},
	}
}

func leaseMeanwhile[Tx any](t *testing.T, f *txFixture[Tx]) {
	claim(t, f, request("evt_1"), hookonce.Acquired)
}

func lateCases[Tx any]() (cases []txCase[Tx]) {
	for _, l := range lateTraces[Tx]() {
		cases = append(cases,
			txCase[Tx]{"failed, meanwhile " + l.name, func(t *testing.T, f *txFixture[Tx]) {
				l.check(t, f, func(err error) error { return err }, l.failed, false)
			}},
			txCase[Tx]{"given up, meanwhile " + l.name, func(t *testing.T, f *txFixture[Tx]) {
				l.check(t, f, hookonce.Permanent, l.gaveUp, l.unrecorded)
			}})
	}
	return cases
}

func (l lateTrace[Tx]) check(t *testing.T, f *txFixture[Tx], mark func(error) error, state hookonce.State, lost bool) {
	var digest []byte // that somebody pinned the claim to
	failure := newLate(func() {
		l.meanwhile(t, f)
		if c, err := f.Lookup(t.Context(), request("evt_1").Ref); err == nil && c.Pinned != 0 {
			digest = c.Digest
		}
	})
	_, err := f.run(t.Context(), request("evt_1"), mark(failure))
	refuses(t, err, failure)
	if errors.Is(err, hookonce.ErrTraceLost) != lost {
		t.Fatalf("error is %v; want ErrTraceLost: %v", err, lost)
	}
	c := stored(t, f, request("evt_1").Ref, state, l.token)
	if digest != nil && !bytes.Equal(c.Digest, digest) {
		t.Fatalf("the trace replaced the content %q that the claim was pinned to (%#v)", digest, c)
	}
}
