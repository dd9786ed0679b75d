package journal

import (
	"time"
)

// Suspend makes the journal take and hold nothing for a destination until the given time: it is at rest,
// by the decision of an operator or of a breaker. What is held already stays with its receiver, who can
// hand it back. A time that is zero or has passed resumes the destination. Destinations that
// [Options.Destinations] does not name are never suspended.
//
// Suspend does not block and lasts as long as the process. Safe for concurrent use.
func (j *Journal) Suspend(destination string, until time.Time) {
	j.held.suspend(destination, until)
	j.schedule.note(until)
}

func (h *holds) suspend(destination string, until time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.suspended[destination] = until
}

// awake returns the names of the destinations that are not suspended at now; nil when all are served.
func (j *Journal) awake(now time.Time) []string {
	if j.opt.Destinations == nil {
		return nil
	}
	j.held.mu.Lock()
	defer j.held.mu.Unlock()
	names := []string{}
	for name := range j.opt.Destinations {
		if !now.Before(j.held.suspended[name]) {
			names = append(names, name)
		}
	}
	return names
}
