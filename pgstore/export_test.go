package pgstore

import "time"

// WithLooks makes Await look for itself at that interval alone.
func WithLooks(d time.Duration) Option { return func(s *Store) { s.looks = looks{d, d} } }
