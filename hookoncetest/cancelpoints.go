package hookoncetest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"
)

// conditions are what happens to one delivery. The zero value is the happy path.
type conditions struct {
	cancelAt int           // the context ends when it is looked at for this time, from 1; 0: never
	after    time.Duration // the context ends so long after the delivery began; 0: never
	hangUp   bool          // when the context ends the sender is gone; else the server ended it, and the answer counts
	pause    time.Duration // the longest pause when the context is looked at
	failing  bool          // [Fail] fails
}

// cancelPoints is the context of one delivery. It is looked at between the steps of a handler: database
// drivers do before each round trip, and clients before each call. So the number of looks says how far
// the handler has come, and a delivery can be disturbed at every one of its steps without knowing them.
//
// A context that is derived from it answers for itself and does not ask it again, and package context has no way to be
// asked. Below such a one the steps are those at which it was derived, and [Fail]; the rest is a matter of time.
type cancelPoints struct {
	context.Context
	conditions
	cancel context.CancelFunc
	looks  atomic.Int64
	ended  atomic.Bool // by the conditions
}

func newCancelPoints(parent context.Context, c conditions) *cancelPoints {
	m := &cancelPoints{conditions: c}
	m.Context, m.cancel = context.WithCancel(parent)
	if c.after > 0 {
		timer := time.AfterFunc(c.after, m.end)
		context.AfterFunc(m.Context, func() { timer.Stop() })
	}
	return m
}

// end ends the context as the conditions have it.
func (m *cancelPoints) end() {
	m.ended.Store(true)
	m.cancel()
}

// maxPauses bounds the pauses of one delivery.
const maxPauses = 30

func (m *cancelPoints) look() {
	n := m.looks.Add(1)
	if n == int64(m.cancelAt) {
		m.end()
	}
	if n <= maxPauses && m.pause > 0 {
		time.Sleep(rand.N(m.pause)) // up to chance
	}
}

// Done implements [context.Context].
func (m *cancelPoints) Done() <-chan struct{} {
	m.look()
	return m.Context.Done()
}

// Err implements [context.Context].
func (m *cancelPoints) Err() error {
	m.look()
	return m.Context.Err()
}

type cancelPointsKey struct{}

// Value implements [context.Context].
func (m *cancelPoints) Value(key any) any {
	if key == (cancelPointsKey{}) {
		return m
	}
	return m.Context.Value(key)
}

// ErrPlanned is what [Fail] returns.
var ErrPlanned = errors.New("hookoncetest: a failure that the storm planned")

// Fail returns [ErrPlanned] when the storm has it that this attempt fails, and nil otherwise, outside of
// storms too. Call it in the fake that stands for what the handler calls, with the context that came from
// the request: so the storm sees what the endpoint answers when its work fails. By itself a
// storm only ends the request's context, which a handler may ignore.
func Fail(ctx context.Context) error {
	m, ok := ctx.Value(cancelPointsKey{}).(*cancelPoints)
	if !ok {
		return nil
	}
	m.look() // ctx may be derived, and then nothing else looks at m; and copies come in between
	if !m.failing {
		return nil
	}
	return ErrPlanned
}
