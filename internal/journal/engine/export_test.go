package engine

// Tracked returns how many deliveries the journal remembers; leaks show here.
func (j *Engine) Tracked() int {
	j.held.mu.Lock()
	defer j.held.mu.Unlock()
	return len(j.held.items)
}
