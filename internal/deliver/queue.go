package deliver

import (
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// class are the deliveries that may fail for the same reason: of one source and type, first attempts apart from
// further ones.
type class struct {
	key      classKey
	waiting  []queued // from front on
	front    int
	underway int
	slow     int       // failures in a row that took long
	since    time.Time // the first of them
	last     time.Time // the last failure that took long
}

type classKey struct {
	source, kind string
	retry        bool
}

// queued is one delivery that waits for its turn.
type queued struct {
	work  *journal.Work
	place uint64
	at    time.Time
}

const (
	maxClasses = 64               // of one lane; what is beyond shares one
	slowly     = time.Second      // a failure that takes as long holds up others
	slowInARow = 3                // so many, and the class gets only a share
	patience   = 10 * time.Second // for which what is slow lets others go first
	troubled   = time.Minute      // after a slow failure the newest go first
	maxSlow    = 64               // of a class that hinders for longer wait here; the others in the journal
)

// hinders reports whether attempts of the class take long, and fail.
func (c *class) hinders() bool { return c.slow >= slowInARow }

func (c *class) len() int { return len(c.waiting) - c.front }

// learn follows the end of an attempt.
func (c *class) learn(v verdict, began, now time.Time) {
	switch {
	case v == success:
		c.slow = 0
	case v != unknown && now.Sub(began) >= slowly:
		c.last = now
		if c.slow++; c.slow == 1 {
			c.since = now
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

// pop takes the one that waits for longest, or the newest event after a slow failure: what came after a burst of
// those is not behind all of it.
func (c *class) pop(now time.Time) queued {
	if c.last.IsZero() || now.Sub(c.last) >= troubled {
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

// queue is what waits before a destination, by class.
type queue struct {
	classes map[classKey]*class
	len     int
	places  uint64
}

// class returns that of a delivery.
func (q *queue) class(w *journal.Work) *class {
	key := classKey{w.Source, w.Type, w.Tries > 1}
	c := q.classes[key]
	if c != nil {
		return c
	}
	if len(q.classes) >= maxClasses {
		q.sweep()
	}
	if len(q.classes) >= maxClasses {
		key = classKey{retry: key.retry}
		if c = q.classes[key]; c != nil {
			return c
		}
	}
	c = &class{key: key}
	if q.classes == nil {
		q.classes = map[classKey]*class{}
	}
	q.classes[key] = c
	return c
}

// sweep forgets classes of which nothing is known.
func (q *queue) sweep() {
	for key, c := range q.classes {
		if c.len() == 0 && c.underway == 0 && !c.hinders() {
			delete(q.classes, key)
		}
	}
}

func (q *queue) add(w *journal.Work, now time.Time) *class {
	c := q.class(w)
	q.places++
	c.push(queued{w, q.places, now})
	q.len++
	return c
}

// next returns the class whose turn it is among those that may begin; nil if none may. What is slow and fails
// goes after the others, until it has waited for long.
func (q *queue) next(now time.Time, may func(*class) bool) (best *class) {
	var hinders bool
	for _, c := range q.classes {
		if c.len() == 0 || !may(c) {
			continue
		}
		h := c.hinders() && now.Sub(c.waiting[c.front].at) < patience
		if best == nil || hinders && !h || h == hinders && c.waiting[c.front].place < best.waiting[best.front].place {
			best, hinders = c, h
		}
	}
	return best
}

// take takes a delivery of a class.
func (q *queue) take(c *class, now time.Time) *journal.Work {
	q.len--
	return c.pop(now).work
}

// drain takes everything that waits.
func (q *queue) drain() (all []*journal.Work) {
	for _, c := range q.classes {
		for c.len() > 0 {
			all = append(all, c.shift().work)
		}
	}
	q.len = 0
	return all
}

// excess takes from a class that failed so often in a row that nothing else was tried of it what should not wait
// here, because it may be more than there is room for: the oldest.
func (q *queue) excess(c *class, inARow int) (all []*journal.Work) {
	for c.slow >= inARow && c.len() > maxSlow {
		all = append(all, c.shift().work)
		q.len--
	}
	return all
}
