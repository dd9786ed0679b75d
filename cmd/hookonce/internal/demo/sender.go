package demo

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/traffic"
	"github.com/hookonce/hookonce/provider/spec"
)

// sender is the simulated provider. Like a real one it goes on until an event is acknowledged.
type sender struct {
	target   *traffic.Target
	url      string
	provider *spec.Provider

	mu     sync.Mutex
	random *rand.Rand // for the waits between retries
}

const (
	parallel = 16 // events under way at once
	// senderTimeout is how long the provider waits for an answer, and senderPatience how long it goes on.
	senderTimeout  = 2 * time.Second
	senderPatience = 2 * time.Minute
)

// play sends every event of the chapter until it is acknowledged, in their order, many side by side.
func (s *sender) play(ctx context.Context, c *chapter) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, event := range c.events {
		g.Go(func() error { return s.deliver(ctx, c, event) })
	}
	return g.Wait()
}

// deliver goes through the planned steps, and then retries until some delivery was acknowledged.
func (s *sender) deliver(ctx context.Context, c *chapter, event *sale) error {
	acknowledged := false
	for _, step := range event.steps {
		if err := pause(ctx, step.wait); err != nil {
			return err
		}
		ok, err := s.send(ctx, c, event, step)
		if err != nil {
			return err
		}
		acknowledged = acknowledged || ok
	}
	for deadline := time.Now().Add(senderPatience); !acknowledged; {
		if time.Now().After(deadline) {
			return fmt.Errorf("event %s was not acknowledged in %v", event.id, senderPatience)
		}
		if err := pause(ctx, s.backOff()); err != nil {
			return err
		}
		var err error
		if acknowledged, err = s.send(ctx, c, event, step{copies: 1}); err != nil {
			return err
		}
	}
	return nil
}

// send does one step and reports whether a copy was acknowledged. A delivery that goes wrong is no
// error: it is what the demo is about.
func (s *sender) send(ctx context.Context, c *chapter, event *sale, step step) (bool, error) {
	now := time.Now()
	req := &hookonce.Request{
		Method: http.MethodPost, URL: s.url, Now: now, Body: event.body(now),
		Header: http.Header{"Content-Type": {"application/json"}, "Webhook-Id": {event.id}},
	}
	if err := s.provider.Sign(req); err != nil {
		return false, err
	}
	raw := s.target.Request(req.Header, req.Body)
	c.sent.Add(int64(step.copies))
	if step.hangUp {
		return false, traffic.HangUp(ctx, s.target, raw)
	}
	waiting, cancel := context.WithTimeout(ctx, senderTimeout)
	defer cancel()
	answers, err := traffic.Volley(waiting, s.target, raw, step.copies)
	if ctx.Err() == nil && outOfTime(waiting, err) {
		return false, nil // the gateway was too busy to be connected to in time
	}
	if err != nil {
		return false, err
	}
	for _, a := range answers {
		if a.Status/100 == 2 {
			return true, nil
		}
	}
	return false, nil
}

// outOfTime reports whether err is what came of it that the time of ctx is over. A connection keeps that time by a timer of its
// own, which may be the first to ring.
func outOfTime(ctx context.Context, err error) bool {
	var late net.Error
	return err != nil && (ctx.Err() != nil || errors.As(err, &late) && late.Timeout())
}

func (s *sender) backOff() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(20+s.random.IntN(60)) * time.Millisecond
}

// pause waits, and returns the cause when ctx ends first.
func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
