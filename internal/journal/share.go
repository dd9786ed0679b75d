package journal

import "time"

// share is what one destination may hold, and holds. The fields are guarded by the mutex of [holds].
type share struct {
	Destination
	name     string
	maxSlots int
	maxBytes int64
	step     int // how many come from the store at a time: the room that is left to it, too

	slots   int // offered ones included
	offered int // reserved for the take that is under way
	bytes   int64
	backlog bool      // the store has, or may have, due work that found no room in this share
	until   time.Time // suspended until then, and on probation from then on; zero: neither
	paused  bool      // by an operator
}

// minShare is how many deliveries a destination may hold however many destinations there are.
const minShare = 128

// newShares gives every destination its share of the bounds. One destination may have all of the
// slots; of several, none may have more than half of the bytes.
func newShares(opt Options) map[string]*share {
	shares := make(map[string]*share, len(opt.Destinations))
	for name, d := range opt.Destinations {
		s := newShare(name, opt)
		s.Destination = d
		s.maxSlots = max(minShare, opt.MaxHeld/len(opt.Destinations))
		if d.MaxHeld > 0 {
			s.maxSlots = d.MaxHeld
		}
		s.maxSlots = min(s.maxSlots, opt.MaxHeld)
		s.step = stepOf(s.maxSlots, opt.MaxBatch)
		if len(opt.Destinations) > 1 {
			s.maxBytes = max(1, opt.HeldBytes/2)
		}
		shares[name] = s
	}
	return shares
}

// newShare returns one that has everything.
func newShare(name string, opt Options) *share {
	return &share{name: name, maxSlots: opt.MaxHeld, maxBytes: opt.HeldBytes, step: stepOf(opt.MaxHeld, opt.MaxBatch)}
}

// stepOf is a quarter of the slots: fresh work leaves them to what waits in the store.
func stepOf(slots, batch int) int { return max(1, min(batch, slots/4)) }

// most is how many deliveries may be held: one, while it is not known whether the destination recovered.
func (s *share) most() int {
	if s.until.IsZero() {
		return s.maxSlots
	}
	return min(1, s.maxSlots)
}

// takes reports whether fresh work of this weight may be held.
func (s *share) takes(weight int64) bool {
	most := s.most()
	return s.slots < most && s.slots-s.offered < most-most/4 && s.bytes+weight <= s.maxBytes
}

// free returns how many slots can be offered to the store.
func (s *share) free() int {
	if s.bytes >= s.maxBytes {
		return 0
	}
	return max(0, min(s.step, s.most()-s.slots))
}

// worth reports whether there is room enough for asking the store.
func (s *share) worth() bool {
	most := s.most()
	return most-s.slots >= min(s.step, most) && s.bytes < s.maxBytes
}

func (s *share) add(slots int, bytes int64) {
	s.slots += slots
	s.bytes += bytes
}

func (s *share) offer(slots int) {
	s.slots += slots
	s.offered += slots
}

// settle ends an offer.
func (s *share) settle() {
	s.slots -= s.offered
	s.offered = 0
}

// suspended reports whether the destination is at rest.
func (s *share) suspended(now func() time.Time) bool {
	return s.paused || !s.until.IsZero() && now().Before(s.until)
}

// orders reports whether deliveries of this resource wait for each other.
func (s *share) orders(resource string) bool { return s.Ordered && resource != "" }

// compares reports whether a delivery may turn out to be stale, which the store has to say.
func (s *share) compares(resource string, rank int64) bool {
	return s.Stale && resource != "" && rank != 0
}
