package traffic

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
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

// Volley sends the same request that many times at one instant. See [VolleyAt].
func Volley(ctx context.Context, t *Target, request []byte, copies int) ([]Answer, error) {
	return VolleyAt(ctx, slices.Repeat([]Shot{{t, request}}, copies))
}

// VolleyAt sends requests at one instant, each over a connection of its own:
// all connections are opened and all of each request but its last byte is sent; when every one is
// that far, the last bytes follow in one go. It returns one answer per shot, in their order. The error says that the
// volley could not be fired: a connection was refused or ctx ended before the release. When ctx ends
// after it, the shots without an answer carry the error.
func VolleyAt(ctx context.Context, shots []Shot) ([]Answer, error) {
	conns, err := aim(ctx, shots)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
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

// aim opens the connections and sends what comes before the release. The connections are returned
// with an error too, to be closed.
func aim(ctx context.Context, shots []Shot) ([]*Conn, error) {
	conns := make([]*Conn, 0, len(shots))
	for i := range shots {
		c, err := Open(ctx, shots[i].Target)
		if err != nil {
			return conns, fmt.Errorf("copy %d of %d: %w", i+1, len(shots), cause(ctx, err))
		}
		conns = append(conns, c)
	}
	var wg sync.WaitGroup
	for i, c := range conns {
		wg.Go(func() { _ = c.Send(shots[i].Request[:len(shots[i].Request)-1]) }) // as above
	}
	wg.Wait()
	return conns, context.Cause(ctx)
}

func (c *Conn) collect(ctx context.Context, released time.Time) Answer {
	r, err := c.Receive()
	if err != nil {
		return Answer{Err: cause(ctx, err), Latency: time.Since(released)}
	}
	return Answer{Status: r.Status, EventStatus: string(r.Field("Hookonce-Status")), Latency: time.Since(released)}
}
