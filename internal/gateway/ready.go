package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/problem"
)

const (
	pingTimeout = 2 * time.Second // how long a readiness check waits for the store
	readyFor    = time.Second     // how long what it came to is true
	saidFor     = time.Minute     // after which the log says again why the store cannot be written to
)

// readiness is what the last look at the store came to. To look costs the store a write, so that all who ask, however many,
// have it looked at once a second.
type readiness struct {
	guard    *api.Guard
	stopping *atomic.Bool
	observed func() bool // some source is in mode observe
	open     func() bool // some source is delivered past a store that is away
	now      func() time.Time
	log      *slog.Logger
	// These two are there when the store is open, and not asked for before.
	full func() bool
	ping func(context.Context) error

	mu     sync.Mutex // held while somebody looks: all others wait for that
	looked time.Time  // when the last look ended; zero: nobody has looked
	err    error
	said   string // in the log, and when
	saidAt time.Time
}

// check returns why the store cannot be written to.
func (r *readiness) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if d := r.now().Sub(r.looked); !r.looked.IsZero() && d >= 0 && d < readyFor {
		return r.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), pingTimeout) // not that of whoever asked first: others wait as well
	defer cancel()
	r.err = r.ping(ctx)
	r.looked = r.now()
	r.say()
	return r.err
}

// say writes the reason into the log if it is another one, or was not written for a while.
func (r *readiness) say() {
	if r.err == nil {
		r.said = ""
		return
	}
	if text := r.err.Error(); text != r.said || r.looked.Sub(r.saidAt) >= saidFor {
		r.said, r.saidAt = text, r.looked
		r.log.Error("gateway: not ready, because the store cannot be written to", "error", r.err)
	}
}

// ServeHTTP says whether senders should be led here: with a 503 no request of any source comes. Unlike that of /healthz it is no
// reason to restart the process, which would not bring the store back. Only who may look at everything is told what the
// store says, which may name users, hosts and files.
func (r *readiness) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	err := r.ready()
	if err == nil {
		fmt.Fprintln(w, "ready")
		return
	}
	if errors.Is(err, errStore) && !r.guard.Knows(req) {
		err = errStore
	}
	w.Header().Set("Retry-After", "1")
	(&problem.Details{Status: http.StatusServiceUnavailable, Detail: err.Error()}).Write(w)
}

// What strangers are told.
var (
	errFull  = errors.New("the queue is full: events arrive faster than the store commits them")
	errStore = errors.New("the store cannot be written to")
)

func (r *readiness) ready() error {
	switch {
	case r.stopping.Load():
		return ErrStopping
	case r.observed():
		return nil // senders to applications that are observed must not be sent elsewhere for a fault of ours
	}
	err := r.check()
	switch {
	case err != nil && away(err) && r.open():
		return nil // the store is away for all gateways on it, and no event would come that is delivered past it
	case r.full():
		return errFull
	case err != nil:
		return fmt.Errorf("%w: %w", errStore, err)
	}
	return nil
}

// away reports whether what keeps events from being stored is that the store is away: without its map a cell takes nothing, and a
// gateway takes nothing for the store of a cell that it is not of.
func away(err error) bool {
	return !errors.Is(err, cells.ErrNoMap) && !errors.Is(err, cells.ErrNotThisCell)
}
