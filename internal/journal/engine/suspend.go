package engine

import "github.com/hookonce/hookonce/internal/journal"

// strangers bounds the deliveries of fresh events that are held in addition to [journal.Rest.Most].
const strangers = 3

// Suspend makes the journal bring little for a destination, or nothing, as r says, by the decision of whoever
// delivers. The zero Rest ends that. What is held already stays with its receiver, who can hand it back. Only
// destinations that [Options.Destinations] names can be suspended.
//
// Suspend does not block and lasts as long as the process. Safe for concurrent use.
func (j *Engine) Suspend(destination string, r journal.Rest) {
	j.held.suspend(destination, r)
	j.schedule.note(r.Until)
}

func (h *holds) suspend(destination string, r journal.Rest) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if s := h.shares[destination]; s != nil {
		s.rest = r
	}
}
