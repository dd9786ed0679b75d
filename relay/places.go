package relay

import "sync"

// places are where the handlers of one Run are called. Names share them, and a place is kept for
// each name that has no effect under way, as long as these are no more than half of all: however
// many effects of a name hang, the others go on.
type places struct {
	names []string
	total int
	freed wake // a handler has returned

	mu    sync.Mutex
	taken map[string]int // how many handlers of each name are called
	used  int            // of all names
}

func newPlaces(names []string, total int) *places {
	return &places{names: names, total: total, freed: make(wake, 1), taken: map[string]int{}}
}

// room returns the names that there is room for, and how many effects of these, however they are
// divided among the names; 0: none. What is freed later is told in freed.
func (p *places) room() (names []string, limit int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.freed:
	default:
	}
	var idle []string
	for _, name := range p.names {
		if p.taken[name] == 0 {
			idle = append(idle, name)
		}
	}
	free, kept := p.total-p.used, len(idle)
	if kept == len(p.names) {
		kept-- // for whichever name the first effect is of
	}
	if limit = free - min(kept, p.total/2); limit > 0 {
		return p.names, limit
	}
	return idle, min(free, 1)
}

// enter takes a place for an effect of that name, until leave is called.
func (p *places) enter(name string) (leave func()) {
	p.add(name, 1)
	return func() {
		p.add(name, -1)
		p.freed.up()
	}
}

func (p *places) add(name string, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken[name] += n
	p.used += n
}

// busy returns how many handlers are called.
func (p *places) busy() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.used
}
