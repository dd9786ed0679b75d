package tail

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// look looks at the store until nobody looks on any more.
func (f *Feed) look() {
	l := &looker{Feed: f, seen: map[int64]bool{}, at: position{last: map[int]int64{}}, open: map[int64]string{}}
	for f.wanted() {
		if l.once() {
			continue
		}
		select {
		case <-time.After(every):
		case <-f.ctx.Done():
		}
	}
}

// wanted reports whether somebody looks on. If not, nobody looks at the store from now on.
func (f *Feed) wanted() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.active = len(f.tails) > 0 && f.ctx.Err() == nil
	return f.active
}

// looker is what one goroutine remembers that looks at the store. An event that was not seen is new, whatever its identifier:
// commits become visible in another order than that of identifiers, but those of [Window] are looked at again and again.
type looker struct {
	*Feed
	seen map[int64]bool // of the window
	at   position
	open map[int64]string // the states of events that are not done, as they were told

	began   time.Time // of what is being read
	whole   bool      // it is the window
	next    int64     // where it goes on; 0: nothing is being read
	read    time.Time // when what was read last began; zero: nothing was
	readAll time.Time // and the window
	away    bool
}

// once reads a piece, and reports whether there is more at once.
func (l *looker) once() (more bool) {
	now := l.now()
	if l.next == 0 {
		l.start(now)
	}
	ctx, cancel := context.WithTimeout(l.ctx, askTime)
	defer cancel()
	found, err := l.records.Arrivals(ctx, l.next, piece)
	if err == nil {
		err = l.tell(ctx, found, now)
	}
	if err == nil && len(found) == piece {
		l.next = found[piece-1].ID + 1
		return true
	}
	if err == nil {
		err = l.follow(ctx, now)
	}
	l.next = 0
	if err != nil {
		l.lose(now)
		return false
	}
	l.finish(now)
	return false
}

// start begins to read: from where the last reading began, and what may have become visible since.
func (l *looker) start(now time.Time) {
	back, from := overlap, now
	reset := l.read.Round(0).Sub(now.Round(0)) > Window // by the time of day, in which identifiers are
	switch {
	case reset: // the clock was ahead, and what it took for told may be still to come
		l.at.floor = min(l.at.floor, journal.FirstID(now.Add(-Window)))
	case !l.read.IsZero() && l.read.Before(now):
		from = l.read
	}
	if l.whole = len(l.seen) <= maxRead || now.Sub(l.readAll) >= wholly || l.away || reset; l.whole {
		back = Window
	}
	l.began, l.next = now, max(l.at.floor, journal.FirstID(from.Add(-back)), 1)
	if l.read.IsZero() {
		l.at.floor = l.next
	}
}

// finish notes that all was read, and tells those who joined that they are told what comes.
func (l *looker) finish(now time.Time) {
	l.read = l.began
	if l.whole {
		l.readAll = l.began
		l.forget()
	}
	back := l.away
	l.away = false
	text := l.at.text()
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, told := range l.tails {
		if back {
			t.send(Message{Kind: Back, At: text}, now)
		}
		if !told {
			l.tails[t] = true
			s := &snapshot{at: position{l.at.floor, maps.Clone(l.at.last), l.at.count}}
			if t.after != nil {
				s.seen = maps.Clone(l.seen)
			}
			t.send(Message{Kind: joined, now: s}, now)
		}
		if t.missed > 0 || now.Sub(t.spoken) >= beatEvery {
			t.send(Message{Kind: Beat, At: text}, now)
		}
	}
}

// lose says that the store does not answer. What was not read is read when it does.
func (l *looker) lose(now time.Time) {
	if l.ctx.Err() != nil || l.away {
		return
	}
	l.away = true
	l.mu.Lock()
	defer l.mu.Unlock()
	for t := range l.tails {
		t.send(Message{Kind: Away}, now)
	}
}

// forget leaves what is older than the window, and the older half of too much.
func (l *looker) forget() {
	floor := journal.FirstID(l.read.Add(-Window))
	if len(l.seen) > maxSeen {
		floor = max(floor, slices.Sorted(maps.Keys(l.seen))[len(l.seen)-maxSeen/2])
	}
	maps.DeleteFunc(l.seen, func(id int64, _ bool) bool { return id < floor })
	maps.DeleteFunc(l.open, func(id int64, _ string) bool { return id < floor })
	l.at.forget(floor, len(l.seen))
}

// tell tells those of the events that are new. What is there when the first look is taken came before anybody looked on.
func (l *looker) tell(ctx context.Context, found []journal.Arrival, now time.Time) error {
	found = slices.DeleteFunc(found, func(a journal.Arrival) bool { return l.seen[a.ID] || a.ID < l.at.floor })
	told := l.told()
	looked := map[int64]bool{}
	if !l.read.IsZero() {
		for i := range found {
			if len(looked) < maxTold && slices.ContainsFunc(told, func(t *Tail) bool { return t.filter.wants(&found[i]) }) {
				looked[found[i].ID] = true
			}
		}
	}
	events, err := l.summaries(ctx, slices.Collect(maps.Keys(looked)))
	if err != nil {
		return err // they are new the next time
	}
	for i := range found {
		a := &found[i]
		l.seen[a.ID] = true
		l.at.pass(a.ID)
		if !l.read.IsZero() {
			l.tellOne(a, events[a.ID], told, looked[a.ID], now)
		}
	}
	if len(l.seen) > 2*maxSeen {
		l.forget()
	}
	return nil
}

// tellOne tells one event, whose summary is nil if it was not looked at or is not there any more.
func (l *looker) tellOne(a *journal.Arrival, s *journal.Summary, told []*Tail, looked bool, now time.Time) {
	for _, t := range told {
		switch {
		case !t.filter.wants(a):
		case !looked:
			t.missed++
		case s != nil && t.filter.in(s):
			t.send(Message{Kind: Arrived, Event: *s, At: l.at.text()}, now)
		}
	}
	if s != nil && len(s.Deliveries) > 0 && len(l.open) < maxOpen {
		l.open[a.ID] = states(s)
	}
}

// follow tells what has changed of the events that are not done.
func (l *looker) follow(ctx context.Context, now time.Time) error {
	events, err := l.summaries(ctx, slices.Sorted(maps.Keys(l.open)))
	if err != nil {
		return err
	}
	told := l.told()
	for _, id := range slices.Sorted(maps.Keys(l.open)) {
		s := events[id]
		if s == nil {
			delete(l.open, id)
			continue
		}
		if state := states(s); state != l.open[id] {
			l.open[id] = state
			for _, t := range told {
				if t.filter.wants(&journal.Arrival{ID: id, Source: s.Source, Type: s.Type}) && t.filter.in(s) {
					t.send(Message{Kind: Changed, Event: *s}, now)
				}
			}
		}
		if len(s.Deliveries) == 0 {
			delete(l.open, id)
		}
	}
	return nil
}

// states says how all deliveries of an event stand.
func states(s *journal.Summary) string {
	var b strings.Builder
	for _, d := range s.Deliveries {
		b.WriteString(d.Destination + "\x00" + string(d.State) + "\x00")
	}
	return b.String()
}

// told returns who is told what comes.
func (l *looker) told() (all []*Tail) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for t, told := range l.tails {
		if told {
			all = append(all, t)
		}
	}
	return all
}

// summaries returns those of the events by identifier. Of none nothing is asked.
func (l *looker) summaries(ctx context.Context, ids []int64) (map[int64]*journal.Summary, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	all, err := l.records.Summaries(ctx, ids)
	if err != nil {
		return nil, err
	}
	by := make(map[int64]*journal.Summary, len(all))
	for i := range all {
		by[all[i].ID] = &all[i]
	}
	return by, nil
}
