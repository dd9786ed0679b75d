package traffic

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
)

// Answer is what one copy of a volley was answered.
type Answer struct {
	// Status is the HTTP status; 0 when there was no answer.
	Status int
	// EventStatus is the Hookonce-Status header, empty when there is none.
	EventStatus string
	// Latency is the time from the release of the volley to the end of the answer.
	Latency time.Duration
	// Err says why there was no answer.
	Err error
}

// Shot is one request of a volley.
type Shot struct {
	Target  *Target
	Request []byte
}

// ShotError says which shot kept a volley from being fired. No request of the volley was complete.
type ShotError struct {
	Shot, Of int // counted from 0
	Err      error
}

func (e *ShotError) Error() string { return fmt.Sprintf("copy %d of %d: %v", e.Shot+1, e.Of, e.Err) }
func (e *ShotError) Unwrap() error { return e.Err }

// opening is how many connections are opened at once: as many as no usual server's backlog is too short for.
const opening = 100

// Volley sends the same request that many times at one instant. See [VolleyAt].
func Volley(ctx context.Context, t *Target, request []byte, copies int) ([]Answer, error) {
	return VolleyAt(ctx, slices.Repeat([]Shot{{t, request}}, copies))
}

// VolleyAt sends requests at one instant, each over a connection of its own:
// all connections are opened and all of each request but its last byte is sent; when every one is
// that far, the last bytes follow in one go. It returns one answer per shot, in their order. The error says that the
// volley could not be fired: a connection was refused, which is a [ShotError], or ctx ended before the release. When
// ctx ends after it, the shots without an answer carry the error.
func VolleyAt(ctx context.Context, shots []Shot) ([]Answer, error) {
	conns := make([]*Conn, len(shots))
	defer func() {
		for _, c := range conns {
			if c != nil {
				_ = c.Close()
			}
		}
	}()
	err := aim(ctx, shots, conns)
	if err != nil {
		return nil, err
	}
	released := time.Now()
	for i, c := range conns {
		_ = c.Send(shots[i].Request[len(shots[i].Request)-1:]) // a server that answered early shows in its answer
	}
	answers := make([]Answer, len(shots))
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() { answers[i] = c.collect(ctx, released) })
	}
	wg.Wait()
	return answers, nil
}

// aim opens the connections and sends what comes before the release. The first shot for which that fails ends it for all,
// so that one target that does not answer holds nobody up for longer than another one's refusal takes.
func aim(ctx context.Context, shots []Shot, conns []*Conn) error {
	failed := func(i int, err error) error { return &ShotError{i, len(shots), cause(ctx, err)} }
	all, dialing := errgroup.WithContext(ctx)
	all.SetLimit(opening)
	for i := range shots {
		all.Go(func() error {
			c, err := open(ctx, dialing, shots[i].Target)
			if err != nil {
				return failed(i, err)
			}
			conns[i] = c
			return nil
		})
	}
	if err := all.Wait(); err != nil {
		return err
	}
	var sending errgroup.Group
	for i, c := range conns {
		sending.Go(func() error {
			err := c.Send(shots[i].Request[:len(shots[i].Request)-1])
			if err != nil && ctx.Err() != nil {
				return failed(i, err)
			}
			return nil // as above
		})
	}
	if err := sending.Wait(); err != nil {
		return err
	}
	return context.Cause(ctx)
}

func (c *Conn) collect(ctx context.Context, released time.Time) Answer {
	r, err := c.Receive()
	if err != nil {
		return Answer{Err: cause(ctx, err), Latency: time.Since(released)}
	}
	return Answer{Status: r.Status, EventStatus: string(r.Field("Hookonce-Status")), Latency: time.Since(released)}
}
