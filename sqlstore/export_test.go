package sqlstore

import "time"

// WithPatience is how long a commit may take.
func WithPatience(d time.Duration) Option { return func(s *Store) { s.patience = d } }
