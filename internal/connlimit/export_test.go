package connlimit

// Large returns how many requests with a large header are under way.
func (l *Listener) Large() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.large
}

// Working returns on how many connections it is not the peer's turn.
func (l *Listener) Working() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.open
	for _, q := range l.pending {
		for c := q.first; c != nil; c = c.links[all].next {
			n--
		}
	}
	return n
}
