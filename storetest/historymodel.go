package storetest

import (
	"cmp"
	"fmt"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/hookonce/hookonce"
)

// kind is which method is called.
type kind string

const (
	claiming   kind = "claim"
	completing kind = "complete"
	failing    kind = "fail"
	extending  kind = "extend"
	lookingUp  kind = "look up"
	purging    kind = "purge"
)

// call is a call of a store: the method, the caller's clock, and the arguments of that method.
type call struct {
	kind          kind
	now           int64 // in microseconds, like all times here; zero: none
	event, digest string
	duration      time.Duration  // of the lease, or the extension
	claim         hookonce.Claim // whose outcome is recorded
	dead, forget  bool
	pin           bool // the claim, or its failure
	before        int64
	limit         int
}

// told is what the store answered.
type told struct {
	fault    fault
	verdict  hookonce.Verdict
	conflict bool
	stored   record
	purged   int
}

// fault is the error of an answer.
type fault string

const (
	staleToken     fault = "stale"
	noClaim        fault = "not found"
	unknownOutcome fault = "outcome unknown"
)

// record is a stored claim, in a form that can be compared. The zero record is none.
type record struct {
	state          hookonce.State
	token          int64
	lease          int64
	event, digest  string
	first, updated int64
	lastError      string
	pinned         int64
}

func recordOf(c hookonce.Claim) record {
	return record{c.State, c.Token, micros(c.Lease), c.Type, string(c.Digest), micros(c.FirstSeen), micros(c.UpdatedAt), c.LastError, c.Pinned}
}

// claim returns what the record says of content and pins, for [hookonce.Claim.VerdictFor].
func (r record) claim() hookonce.Claim {
	return hookonce.Claim{State: r.state, Lease: at(r.lease), Digest: []byte(r.digest), Pinned: r.pinned}
}

func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func at(micros int64) time.Time {
	if micros == 0 {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// model is what a store does with one claim, one call after the other.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init:              func() []any { return []any{record{}} },
		Step:              func(state, in, out any) []any { return in.(call).step(state.(record), out.(told)) },
		DescribeOperation: describe,
		DescribeState:     func(state any) string { return state.(record).String() },
	}
	return m.ToModel()
}

// step returns the records that may be stored after the call if it answered so; none if it cannot have.
func (in call) step(s record, a told) []any {
	next, want := in.rule(s)
	if in.kind == extending && a.fault == "" {
		want.stored = want.stored.lent()
		a.stored = a.stored.lent()
	}
	switch {
	case a.fault == unknownOutcome:
		return []any{s, next} // that it took effect, or not
	case in.kind == purging:
		return in.purge(s, a, next)
	case a.verdict == hookonce.Busy && a.stored.state == "":
		return []any{s} // the bounded wait was over before the store could look
	case a.verdict == hookonce.Duplicate && a.stored.token == 0: // a cache answered, which knows no more
		want.stored = record{state: want.stored.state, digest: want.stored.digest}
	}
	if a != want {
		return nil
	}
	return []any{next}
}

// lent is what an extension answers for: a database that cannot change and read in one statement may
// know the rest as somebody else left it a moment later.
func (r record) lent() record {
	return record{state: r.state, token: r.token, lease: r.lease, updated: r.updated}
}

// purge may pass over a claim that it could delete: its limit may be reached, or somebody at work on it.
func (in call) purge(s record, a told, next record) []any {
	switch a.purged {
	case 0:
		return []any{s}
	case historyClaims:
		if s == next {
			return nil // it cannot have deleted all of them
		}
		return []any{next}
	}
	return []any{s, next}
}

// rule is what the call does and answers when s is stored: the comments of [hookonce.Store].
func (in call) rule(s record) (next record, a told) {
	switch in.kind {
	case claiming:
		return in.decide(s)
	case lookingUp:
		if s.state == "" {
			return s, told{fault: noClaim}
		}
		return s, told{stored: s}
	case purging:
		if s.state == hookonce.StateDone && s.updated < in.before {
			return record{}, told{}
		}
		return s, told{}
	}
	switch {
	case s.state == "" && in.forgets():
		return s, told{}
	case s.state == "":
		return s, told{fault: noClaim}
	case s.token != in.claim.Token:
		return s, told{fault: staleToken}
	}
	return in.settle(s)
}

func (in call) decide(s record) (record, told) {
	conflict := s.digest != "" && in.digest != "" && s.digest != in.digest
	v := s.claim().VerdictFor(hookonce.ClaimRequest{Digest: []byte(in.digest)}, at(in.now))
	switch {
	case v != hookonce.Acquired:
		return s, told{verdict: v, conflict: conflict, stored: s}
	case s.state == "":
		s = record{token: 0, first: in.now}
	}
	s.state, s.token, s.updated, s.lease = hookonce.StateProcessing, s.token+1, in.now, 0
	if in.duration != 0 {
		s.lease = in.now + in.duration.Microseconds()
	}
	if in.event != "" {
		s.event = in.event
	}
	if in.digest != "" {
		s.digest = in.digest
	}
	if in.pin {
		s.pinned = cmp.Or(s.pinned, s.token)
	}
	return s, told{verdict: hookonce.Acquired, conflict: conflict, stored: s}
}

// settle is what complete, fail and extend do while the token is current.
func (in call) settle(s record) (record, told) {
	processing := s.state == hookonce.StateProcessing
	failed := s.state == hookonce.StateFailed || s.state == hookonce.StateDead
	switch {
	case in.kind == completing && s.state == hookonce.StateDone, in.kind == failing && failed:
		return s, told{}
	case !processing:
		return s, told{fault: staleToken}
	case in.forgets() && s.first != micros(in.claim.FirstSeen):
		return s, told{fault: staleToken} // it is somebody else's, who began anew
	case in.forgets():
		return record{}, told{}
	}
	s.updated = in.now
	switch in.kind {
	case completing:
		s.state, s.lease = hookonce.StateDone, 0
	case failing:
		f := in.failure()
		s.state, s.lease, s.lastError = f.State(), 0, f.Text()
		switch {
		case in.pin:
			s.pinned = cmp.Or(s.pinned, s.token)
		case s.pinned == s.token:
			s.pinned = 0
		}
	case extending:
		s.lease = in.now + in.duration.Microseconds()
		return s, told{stored: s}
	}
	return s, told{}
}

// failure is what a call records that fails.
func (in call) failure() hookonce.Failure {
	return hookonce.Failure{Err: errDeclined, Dead: in.dead, Pin: in.pin, Forget: in.forget}
}

func (in call) forgets() bool { return in.kind == failing && in.failure().Forgets(in.claim.Token) }

// describe tells a call and its answer in words.
func describe(in, out any) string {
	c, a := in.(call), out.(told)
	var what string
	switch c.kind {
	case claiming:
		what = fmt.Sprintf("claim type %q digest %q for %v (pin %v)", c.event, c.digest, c.duration, c.pin)
	case completing:
		what = fmt.Sprintf("complete token %d", c.claim.Token)
	case failing:
		what = fmt.Sprintf("fail token %d, first seen %s (dead %v, pin %v, forget %v)",
			c.claim.Token, clockTime(micros(c.claim.FirstSeen)), c.dead, c.pin, c.forget)
	case extending:
		what = fmt.Sprintf("extend token %d by %v", c.claim.Token, c.duration)
	case lookingUp:
		what = "look up"
	case purging:
		what = fmt.Sprintf("purge before %s, %d at most", clockTime(c.before), c.limit)
	}
	return fmt.Sprintf("at %s %s -> %s", clockTime(c.now), what, a)
}

// String tells the answer in words.
func (a told) String() string {
	switch {
	case a.fault != "":
		return string(a.fault)
	case a.verdict != 0:
		return fmt.Sprintf("%s (conflict %v), %s", a.verdict, a.conflict, a.stored)
	case a.stored.state != "":
		return a.stored.String()
	}
	return fmt.Sprintf("ok, %d purged", a.purged)
}

// String tells the record in words.
func (r record) String() string {
	if r.state == "" {
		return "nothing"
	}
	return fmt.Sprintf("%s, token %d, lease %s, type %q, digest %q, first %s, updated %s, error %q, pinned by %d",
		r.state, r.token, clockTime(r.lease), r.event, r.digest, clockTime(r.first), clockTime(r.updated), r.lastError, r.pinned)
}

func clockTime(micros int64) string {
	if micros == 0 {
		return "none"
	}
	return at(micros).Format("15:04:05.000000")
}
