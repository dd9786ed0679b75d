package deliver

import (
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

// class are the deliveries that may fail for the same reason: of one source and type, first attempts apart from
// further ones.
type class struct {
	key      classKey
	waiting  []queued // from front on
	front    int
	underway int
	failures int       // in a row
	slow     int       // of those, the ones that took long
	since    time.Time // the first of them
	troubled time.Time // the last failure after several in a row, for which the events may be to blame
	stuck    time.Time // the same of failures that took long
	began    time.Time // the last attempt
	last     *journal.Work
	ended    bool // the last attempt has
}

type classKey struct {
	source, kind string
	retry        bool
}

// queued is one delivery that waits for its turn.
type queued struct {
	work  *journal.Work
	place uint64
}

const (
	maxClasses = 64              // of one send queue; what is beyond shares one
	inARow     = 3               // failures: others go first, and of the class the newest
	slowly     = time.Second     // a failure that takes as long holds up others
	patience   = 3               // so many others go first, and then one of what fails
	troubled   = time.Minute     // for which what failed is remembered
	anyway     = 5 * time.Minute // after so long one of what takes long goes before others
	maxSlow    = 64              // of a class that hinders for longer wait here; the others in the journal
)

// fails reports whether nothing but failures is known of the class lately: several, or one that took long.
func (c *class) fails() bool { return c.failures >= inARow || c.slow > 0 }

// lately reports whether a time was not long ago.
func lately(t, now time.Time) bool { return !t.IsZero() && now.Sub(t) < troubled }

// pending returns for how long the last attempt may still turn out to be a quick one. Zero: it has ended, or takes
// long.
func (c *class) pending(now time.Time) time.Duration {
	if c.ended {
		return 0
	}
	return max(0, slowly-now.Sub(c.began))
}

// hinders reports whether attempts of the class take long, and fail.
func (c *class) hinders() bool { return c.slow >= inARow }

func (c *class) len() int { return len(c.waiting) - c.front }

// learn follows the end of an attempt.
func (c *class) learn(s retry.Signal, began, now time.Time) {
	switch {
	case s == retry.Success:
		c.failures, c.slow = 0, 0
	case s != retry.NoSignal:
		poison := s == retry.Declined || s == retry.Faulty
		if c.failures++; c.failures >= inARow && poison {
			c.troubled = now
		}
		if now.Sub(began) < slowly {
			return
		}
		if c.slow++; c.slow == 1 {
			c.since = now
		}
		if c.hinders() && poison {
			c.stuck = now
		}
	}
}

func (c *class) push(q queued) {
	if c.front > len(c.waiting)/2 && len(c.waiting) == cap(c.waiting) { // rather than grow
		n := copy(c.waiting, c.waiting[c.front:])
		clear(c.waiting[n:])
		c.waiting, c.front = c.waiting[:n], 0
	}
	c.waiting = append(c.waiting, q)
}

// pop takes the one that waits for longest, or after several failures in a row the newest event: what came after a
// burst of poison is not behind all of it.
func (c *class) pop(now time.Time) queued {
	if !lately(c.troubled, now) {
		return c.shift()
	}
	newest := c.front
	for i := c.front; i < len(c.waiting); i++ {
		if c.waiting[i].work.EventID > c.waiting[newest].work.EventID {
			newest = i
		}
	}
	c.waiting[newest], c.waiting[c.front] = c.waiting[c.front], c.waiting[newest]
	return c.shift()
}

// shift takes the oldest.
func (c *class) shift() queued {
	q := c.waiting[c.front]
	c.waiting[c.front] = queued{}
	if c.front++; c.front == len(c.waiting) {
		c.waiting, c.front = c.waiting[:0], 0
	}
	return q
}

// fairQueue is what waits before a destination, by class.
type fairQueue struct {
	classes map[classKey]*class
	len     int
	places  uint64
	passed  int                  // others that went before what fails, in a row
	ranked  map[string]*versions // by ordering group, of what waits and has a rank
}

// versions are the deliveries of one resource that wait. The journal said of each whether it is stale when it handed it
// out; what is delivered while it waits, nobody but the queue can tell it.
type versions struct {
	waiting   int
	delivered hookonce.Rank // the newest meanwhile
}

// class returns that of a delivery.
func (f *fairQueue) class(w *journal.Work) *class {
	key := classKey{w.Source, w.Type, w.Tries > 1}
	c := f.classes[key]
	if c != nil {
		return c
	}
	if len(f.classes) >= maxClasses {
		f.sweep()
	}
	if len(f.classes) >= maxClasses {
		key = classKey{retry: key.retry}
		if c = f.classes[key]; c != nil {
			return c
		}
	}
	c = &class{key: key}
	if f.classes == nil {
		f.classes = map[classKey]*class{}
	}
	f.classes[key] = c
	return c
}

// sibling returns the class of the first attempts for one of further ones; else c itself.
func (f *fairQueue) sibling(c *class) *class {
	if c.key.retry {
		if first := f.classes[classKey{source: c.key.source, kind: c.key.kind}]; first != nil {
			return first
		}
	}
	return c
}

// sweep forgets classes of which nothing is known.
func (f *fairQueue) sweep() {
	for key, c := range f.classes {
		if c.len() == 0 && c.underway == 0 && !c.fails() {
			delete(f.classes, key)
		}
	}
}

func (f *fairQueue) add(w *journal.Work) *class {
	c := f.class(w)
	f.places++
	c.push(queued{w, f.places})
	f.len++
	if of := ranked(w); of != "" {
		if f.ranked == nil {
			f.ranked = map[string]*versions{}
		}
		if f.ranked[of] == nil {
			f.ranked[of] = &versions{}
		}
		f.ranked[of].waiting++
	}
	return c
}

// left counts a delivery that does not wait any more, and says so in it if a newer version was delivered meanwhile.
func (f *fairQueue) left(w *journal.Work) *journal.Work {
	f.len--
	of := ranked(w)
	if v := f.ranked[of]; v != nil {
		w.Stale = w.Stale || older(w.Rank, v.delivered)
		if v.waiting--; v.waiting == 0 {
			delete(f.ranked, of)
		}
	}
	return w
}

// delivered compares what waits with a version that was delivered.
func (f *fairQueue) delivered(w *journal.Work) {
	if v := f.ranked[ranked(w)]; v != nil && w.Rank.Supersedes(v.delivered) {
		v.delivered = w.Rank
	}
}

// ranked names the ordering group of a delivery whose versions can be compared; empty: they cannot.
func ranked(w *journal.Work) string {
	if w.Rank.IsZero() {
		return ""
	}
	return w.Group()
}

// older is the rule of [journal.NewerSQL].
func older(r, than hookonce.Rank) bool { return r.Kind == than.Kind && r.N < than.N }

// next returns the class whose turn it is among those that may begin; nil if none may. What fails goes after the
// others, but for every fourth turn, or if it takes long for one in a while.
func (f *fairQueue) next(now time.Time, may func(*class) bool) *class {
	var well, failing *class
	for _, c := range f.classes {
		if c.len() == 0 || !may(c) {
			continue
		}
		best := &well
		if c.fails() || f.sibling(c).fails() {
			best = &failing
		}
		if *best == nil || c.waiting[c.front].place < (*best).waiting[(*best).front].place {
			*best = c
		}
	}
	switch {
	case well == nil:
		return failing
	case failing == nil:
	case failing.slow == 0 && f.passed >= patience, failing.slow > 0 && now.Sub(failing.began) >= anyway:
		return failing
	}
	return well
}

// take takes a delivery of a class.
func (f *fairQueue) take(c *class, now time.Time) *journal.Work {
	if f.passed++; c.fails() {
		f.passed = 0
	}
	return f.left(c.pop(now).work)
}

// drain takes everything that waits.
func (f *fairQueue) drain() (all []*journal.Work) {
	for _, c := range f.classes {
		for c.len() > 0 {
			all = append(all, f.left(c.shift().work))
		}
	}
	return all
}

// excess takes from a class that failed so often in a row what should not wait here, because it may be more than
// there is room for: the oldest.
func (f *fairQueue) excess(c *class, inARow int) (all []*journal.Work) {
	for c.slow >= inARow && c.len() > maxSlow {
		all = append(all, f.left(c.shift().work))
	}
	return all
}
