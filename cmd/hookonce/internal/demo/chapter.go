package demo

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/hookonce/hookonce/internal/traffic"
)

// chapter is one kind of trouble, and the events that meet it.
type chapter struct {
	title  string
	events []*sale
	sent   atomic.Int64 // deliveries so far
}

// sale is an event of the demo with everything that will go wrong on its way. It is planned in full
// before the storm begins, so that a seed gives the same storm every time.
type sale struct {
	id    string
	order int
	cents int64
	steps []step
	shop  shopFault

	visits atomic.Int64 // attempts that reached the shop
}

// step is one thing that the provider does with an event.
type step struct {
	wait   time.Duration // before it
	copies int           // sent at one instant
	hangUp bool          // the provider does not wait for the answer
}

// shopFault is what is wrong with the shop when it handles an event, in the first so many attempts.
type shopFault struct {
	kind  faultKind
	times int64
}

type faultKind int

const (
	healthy    faultKind = iota
	fails                // rolls back and answers an error
	dropsReply           // commits, and the connection breaks before the answer
	slow                 // takes longer than the sender waits
)

// chapters plans the storm.
func chapters(r *rand.Rand, seed uint64, scale float64) []*chapter {
	once := []step{{copies: 1}}
	plans := []struct {
		title  string
		events int
		plan   func(s *sale)
	}{
		{"one delivery each", 60, func(s *sale) { s.steps = once }},
		{"8 copies at one instant", 40, func(s *sale) { s.steps = []step{{copies: 8}} }},
		{"acknowledgement lost, sent again", 50, func(s *sale) { s.steps = impatient(r) }},
		{"copies 50 ms and 500 ms later", 40, func(s *sale) { s.steps = late() }},
		{"newest first, each one twice", 60, func(s *sale) { s.steps = []step{{copies: 1}, {copies: 1}} }},
		{"shop answers 500, then recovers", 40, func(s *sale) { s.steps, s.shop = once, shopFault{fails, 1 + r.Int64N(2)} }},
		{"shop commits, connection drops", 40, func(s *sale) { s.steps, s.shop = once, shopFault{dropsReply, 1} }},
		{"shop slower than anyone waits", 12, func(s *sale) { s.steps, s.shop = once, shopFault{slow, 1} }},
		{"all of it at once", 80, func(s *sale) { s.steps, s.shop = anything(r) }},
	}
	var all []*chapter
	order := 0
	for _, p := range plans {
		c := &chapter{title: p.title}
		for range max(int(float64(p.events)*scale), 2) {
			s := &sale{id: traffic.EventID(seed, order), order: 1001 + order, cents: 100 + r.Int64N(20_000)}
			p.plan(s)
			c.events = append(c.events, s)
			order++
		}
		all = append(all, c)
	}
	newest := all[4].events
	for i, j := 0, len(newest)-1; i < j; i, j = i+1, j-1 {
		newest[i], newest[j] = newest[j], newest[i]
	}
	return all
}

// impatient sends once or twice without waiting for the answer, and then properly.
func impatient(r *rand.Rand) []step {
	steps := []step{{copies: 1, hangUp: true}}
	if r.IntN(3) == 0 {
		steps = append(steps, step{wait: time.Duration(r.IntN(5)) * time.Millisecond, copies: 1, hangUp: true})
	}
	return append(steps, step{wait: time.Duration(r.IntN(20)) * time.Millisecond, copies: 1})
}

func late() []step {
	return []step{{copies: 1}, {wait: 50 * time.Millisecond, copies: 1}, {wait: 450 * time.Millisecond, copies: 2}}
}

// anything draws from all that the other chapters do.
func anything(r *rand.Rand) ([]step, shopFault) {
	steps := [][]step{{{copies: 1}}, {{copies: 2 + r.IntN(9)}}, impatient(r), late()}[r.IntN(4)]
	if r.IntN(2) == 0 {
		steps = append([]step{{wait: time.Duration(r.IntN(200)) * time.Millisecond, copies: 1, hangUp: r.IntN(2) == 0}}, steps...)
	}
	faults := []shopFault{{}, {}, {fails, 1}, {dropsReply, 1}, {slow, 1}}
	return steps, faults[r.IntN(len(faults))]
}

// body is the event as the provider sends it.
func (s *sale) body(at time.Time) []byte {
	return fmt.Appendf(nil, `{"type":"order.paid","timestamp":%q,"data":{"order":%d,"amount_cents":%d,"currency":"EUR"}}`,
		at.UTC().Format(time.RFC3339), s.order, s.cents)
}

// tally is what is counted of one or more chapters.
type tally struct {
	events, sent, visits int
	effects              int   // entries in the ledger
	doubled, lost        int   // events with more than one, and with none
	late                 int   // events with none that the gateway still means to deliver
	sold, booked         int64 // cents, by the provider's account and by the ledger
}

// duplicates are the deliveries after the first of their event.
func (t tally) duplicates() int { return t.sent - t.events }
