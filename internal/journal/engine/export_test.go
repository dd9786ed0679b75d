package engine

// Tracked returns how many deliveries the engine remembers; leaks show here.
func (e *Engine) Tracked() int { return e.inflight.Remembered() }
