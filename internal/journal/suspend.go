package journal

import "time"

// Suspend makes the journal take and hold nothing for a destination until the given time, by the decision
// of a breaker, and from then on one delivery at a time, which finds out whether the destination has
// recovered. The zero time ends that. What is held already stays with its receiver, who can hand it
// back. Only destinations that [Options.Destinations] names can be suspended.
//
// Suspend does not block and lasts as long as the process. Safe for concurrent use.
func (j *Journal) Suspend(destination string, until time.Time) {
	j.held.suspend(destination, until)
	j.schedule.note(until)
}

func (h *holds) suspend(destination string, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.shares[destination]; s != nil {
		s.until = until
	}
}
