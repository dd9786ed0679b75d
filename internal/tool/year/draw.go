package year

import (
	"math/rand/v2"
	"slices"
	"time"
)

// Draw draws a plan from a seed.
func Draw(seed uint64) *Plan {
	d := newDrawing(seed)
	if !d.plan.File && d.chance(4) {
		d.inCells()
	}
	begin := 3 * time.Second
	for range 1 + d.IntN(3) {
		length := time.Duration(30+d.IntN(150)) * time.Second
		d.chapter(begin, length)
		begin += length + 10*time.Second
		if d.chance(2) {
			last := pick(d, time.Hour, 6*time.Hour, 30*time.Hour, 9*24*time.Hour, 40*24*time.Hour, 100*24*time.Hour)
			d.step(Step{At: Span(begin), Do: "night", For: Span(last)})
			begin += last + 5*time.Second
		}
	}
	for range d.IntN(3) {
		d.plan.Later = append(d.plan.Later, pick(d, Span(time.Minute), Span(2*time.Hour), Span(8*24*time.Hour), Span(80*24*time.Hour), Span(95*24*time.Hour), Span(95*24*time.Hour)))
	}
	return d.plan.sorted()
}

func newDrawing(seed uint64) *drawing {
	d := &drawing{Rand: rand.New(rand.NewPCG(seed, 0x796561725f5f)), plan: &Plan{Seed: seed}}
	d.plan.Gateways = 1 + d.IntN(3)
	d.plan.File = d.plan.Gateways == 1 && d.chance(3)
	return d
}

// drawing makes a plan.
type drawing struct {
	*rand.Rand
	plan *Plan
}

// chance is true once in n times.
func (d *drawing) chance(n int) bool { return d.IntN(n) == 0 }

func pick[T any](d *drawing, from ...T) T { return from[d.IntN(len(from))] }

func (d *drawing) step(s Step) { d.plan.Steps = append(d.plan.Steps, s) }

func (d *drawing) gateway() int { return d.IntN(d.plan.Gateways) }
func (d *drawing) on() string   { return gatewayName(d.gateway()) }
func (d *drawing) within(a, b time.Duration) Span {
	return Span((a + time.Duration(d.Int64N(int64(b-a)))).Truncate(time.Millisecond))
}

// chapter is a time in which much happens.
func (d *drawing) chapter(begin, length time.Duration) {
	at := func() Span { return Span(begin) + d.within(0, length) }
	for range 2 + d.IntN(12) {
		d.event(at())
	}
	kinds := []func(Span){d.disk, d.disk, d.disk, d.wire, d.wire, d.process, d.process, d.clock, d.application, d.application, d.application, d.operator, d.descriptors}
	// A few kinds of trouble at a time: with all of them at once everything is excused, and nothing can be told.
	if len(d.plan.Cells) > 0 {
		kinds = append(kinds, d.between, d.between, d.raise, d.raise, d.raise)
	}
	some := []func(Span){pick(d, kinds...), pick(d, kinds...), pick(d, kinds...)}[:1+d.IntN(3)]
	for range d.IntN(24) {
		pick(d, some...)(at())
	}
	if d.chance(2) {
		pick(d, slices.DeleteFunc(slices.Clone(scenes), func(s scene) bool { return s.cells && len(d.plan.Cells) == 0 })...).draw(d, at())
	}
}

func (d *drawing) event(at Span) {
	e := Event{N: len(d.plan.Events) + 1, Direct: d.chance(6), Source: pick(d, sources()...), Keyed: !d.chance(8), Object: 1 + d.IntN(2), At: at}
	if e.Source == "payments" {
		e.More = pick(d, 0, 1, 3, 7, 12)
	}
	for range pick(d, 1, 1, 1, 2, 3) {
		e.Via = append(e.Via, d.gateway())
	}
	e.Forged = d.chance(6)
	e.Conflict = e.Keyed && d.chance(10)
	for range pick(d, 0, 0, 1, 2) {
		e.Again = append(e.Again, d.within(time.Second, pick(d, 10*time.Second, time.Minute, 10*time.Minute)))
	}
	d.plan.Events = append(d.plan.Events, e)
}

func (d *drawing) disk(at Span) {
	s := Step{At: at, On: d.on(), With: pick(d, "accept", "accept", "accept", "take", "finish", "finish", "finish", "finish", "extend", "duplicates", "notify", "purge", "pauses", "tallies", "statuses", "announce")}
	s.Do = "disk/" + pick(d, diskFail, diskLost, diskLost, diskStall, diskSilent, diskLate, diskSlow, diskKept, diskBefore, diskAfter)
	switch s.Do {
	case "disk/" + diskLate:
		s.For = d.within(time.Second, 30*time.Second)
	case "disk/" + diskSlow, "disk/" + diskKept:
		s.For = d.within(10*time.Millisecond, 9*time.Second)
	}
	d.step(s)
	if d.chance(6) {
		d.step(Step{At: at, Do: "away", On: s.On, For: d.within(time.Second, time.Minute)})
	}
}

func (d *drawing) wire(at Span) {
	s := Step{At: at, Do: "wire/" + pick(d, wireRequest, wireHalf, wireAnswer, wireAnswer, wireSlow, wireLate)}
	if d.chance(2) {
		s.On, s.With = senders, pick(d, d.on(), d.on(), d.on(), direct)
	} else {
		s.On, s.With = d.on(), pick(d, claiming, plain)
	}
	if s.Do == "wire/"+wireSlow || s.Do == "wire/"+wireLate {
		s.For = d.within(time.Second, 20*time.Second)
	}
	if d.chance(6) {
		s.Do, s.For = "part", d.within(time.Second, time.Minute)
	}
	d.step(s)
}

func (d *drawing) process(at Span) {
	s := Step{At: at, Do: pick(d, "kill", "kill", "upgrade"), On: d.on(), For: d.within(10*time.Millisecond, pick(d, time.Second, time.Minute))}
	if s.Do == "upgrade" {
		s.N = pick(d, 0, 0, 1, 3, 8)
	}
	d.step(s)
}

func (d *drawing) clock(at Span) {
	if len(d.plan.Cells) > 0 && d.chance(2) {
		d.database(at, d.on())
		return
	}
	most := pick(d, 3, 30, 200, int(maxSkew/time.Second))
	d.step(Step{At: at, Do: "clock", On: d.on(), N: d.IntN(2*most+1) - most})
}

func (d *drawing) application(at Span) {
	s := Step{At: at, On: pick(d, claiming, plain, direct)}
	switch s.Do = "application/" + pick(d, "fails", "fails", "gone", "gone", "slow", "slow", "holds", "holds", "dies", commitFails, commitLost, commitBefore, commitAfter); s.Do {
	case "application/fails":
		s.N = pick(d, 1, 2, 5, 20, 60)
	case "application/gone":
		s.N = 1
	case "application/slow":
		s.N, s.For = pick(d, 1, 3, 6, 6, 10, 20), d.within(time.Second, 30*time.Second)
	case "application/holds":
		s.On, s.N, s.For = pick(d, claiming, claiming, direct), pick(d, 3, 9, 12, 15, 25), d.within(time.Second, 30*time.Second)
	case "application/dies":
		s.For = d.within(100*time.Millisecond, 30*time.Second)
	default:
		s.On = pick(d, claiming, claiming, direct)
	}
	d.step(s)
}

func (d *drawing) operator(at Span) {
	s := Step{At: at, Do: "operator/" + pick(d, "pause", "replay", "force", "reload"), On: d.on(), With: pick(d, claiming, plain), N: d.IntN(variants)}
	if s.Do == "operator/pause" {
		s.For = d.within(time.Second, 2*time.Minute)
	}
	d.step(s)
}
