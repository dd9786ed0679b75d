package pgstore

import (
	"context"
	"time"
)

// WithLooks makes Await look for itself at that interval alone.
func WithLooks(d time.Duration) Option { return func(s *Store) { s.looks = looks{d, d} } }

// WithPatience is how long a handler may go on after its context has ended.
func WithPatience(d time.Duration) Option { return func(s *Store) { s.patience = d } }

// ErrPooled is what ListenOnce returns behind a pooler.
var ErrPooled = errPooled

// ListenOnce listens on one connection until it breaks.
func (s *Store) ListenOnce(ctx context.Context) error { return s.listenOnce(ctx) }

// QueryOrChange is whether a query may go without BEGIN and COMMIT, and Plain whether a batch may.
var QueryOrChange = queryOrChange

// Plain reports it.
func Plain(b *Batch) bool { return b.plain() }
