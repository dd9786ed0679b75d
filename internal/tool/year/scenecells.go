package year

import (
	"strconv"
	"time"
)

// everybody has the gateways of all cells read another map at once.
const everybody = "all"

// evenly are weights by which each cell owns as much as the others, and without takes from one what it owns.
const evenly = 0b010101

func without(cell int) int { return evenly &^ (3 << (2 * cell)) }

// inCells divides the gateways among cells. The first one owns all at first, and a moment later each has its part.
func (d *drawing) inCells() {
	d.plan.Cells, d.plan.File, d.plan.Gateways = pick(d, []int{1, 1}, []int{1, 1}, []int{2, 1}, []int{1, 2}, []int{1, 1, 1}), false, 0
	for _, n := range d.plan.Cells {
		d.plan.Gateways += n
	}
	d.step(Step{At: Span(1500 * time.Millisecond), Do: "map/raise", On: d.on(), With: everybody, N: evenly})
}

// cellsGateways are the gateways of a cell.
func (d *drawing) cellsGateways(cell int) (all []string) {
	for i := range d.plan.Gateways {
		if d.plan.cellOf(i) == cell {
			all = append(all, gatewayName(i))
		}
	}
	return all
}

func (d *drawing) cell() int { return d.IntN(len(d.plan.Cells)) }

// raise has another map introduced: by one gateway, from which the others learn of it, or by all.
func (d *drawing) raise(at Span) {
	s := Step{At: at, Do: "map/raise", On: d.on(), N: d.IntN(64)}
	if d.chance(3) {
		s.With = everybody
	}
	d.step(s)
}

// between disturbs what is between two cells, or a whole cell.
func (d *drawing) between(at Span) {
	a := d.cell()
	b := (a + 1 + d.IntN(len(d.plan.Cells)-1)) % len(d.plan.Cells)
	from, to := d.cellsGateways(a), d.cellsGateways(b)
	last := d.within(time.Second, pick(d, 5*time.Second, 40*time.Second))
	switch d.IntN(6) {
	case 0, 1:
		for _, f := range from {
			for _, t := range to {
				d.step(Step{At: at, Do: "part", On: f, With: t, For: last})
			}
		}
	case 2:
		for range 1 + d.IntN(3) {
			d.step(Step{At: at, Do: "wire/" + pick(d, wireRequest, wireHalf, wireAnswer, wireSlow, wireLate), On: pick(d, from...), With: pick(d, to...), For: d.within(100*time.Millisecond, 8*time.Second)})
		}
	case 3:
		for _, f := range from {
			d.step(Step{At: at, Do: "away", On: f, For: last})
		}
	case 4:
		d.step(Step{At: at, Do: "stall", On: pick(d, from...), For: d.within(500*time.Millisecond, 15*time.Second)})
	default:
		d.step(Step{At: at, Do: "disk/" + pick(d, diskFail, diskLost, diskSilent, diskLate, diskSlow), On: pick(d, from...), With: pick(d, "maps", "raise", "raise", "known", "known", "confirm"), For: d.within(500*time.Millisecond, 8*time.Second)})
	}
}

// moves has copies of events come to all doors, for a time in which the map changes, and things happen between the cells.
func (d *drawing) moves(at Span) {
	for range 1 + d.IntN(3) {
		d.raise(at + d.within(2*time.Second, 20*time.Second))
	}
	for range d.IntN(3) {
		d.between(at + d.within(0, 25*time.Second))
	}
	if d.chance(4) {
		d.step(Step{At: at + d.within(0, 20*time.Second), Do: pick(d, "kill", "upgrade"), On: d.on(), For: d.within(10*time.Millisecond, 5*time.Second)})
	}
	d.several(at, 5+d.IntN(6), time.Duration(100+d.IntN(2500))*time.Millisecond, func(_ int, e *Event) { d.widely(e, 40*time.Second) })
}

// widely has an event come to any doors, and again.
func (d *drawing) widely(e *Event, again time.Duration) {
	e.Direct = false
	e.Again = nil
	for range 1 + d.IntN(3) {
		e.Again = append(e.Again, d.within(time.Second, again))
	}
}

// divided has requests with many events come, of which each cell has some, while one of the cells is disturbed.
func (d *drawing) divided(at Span) {
	for range 1 + d.IntN(2) {
		d.between(at + d.within(0, 8*time.Second))
	}
	if d.chance(2) {
		d.step(Step{At: at + d.within(0, 8*time.Second), Do: "kill", On: d.on(), For: d.within(time.Second, 20*time.Second)})
	}
	d.several(at+Span(500*time.Millisecond), 2+d.IntN(3), 3*time.Second, func(_ int, e *Event) {
		e.Source, e.More = "payments", 2+d.IntN(11)
		d.widely(e, time.Minute)
	})
}

// fence has another map introduced in one cell while copies of events come to the doors of all, and a store takes its time: what
// one cell stores, another one asks for at the same moment.
func (d *drawing) fence(at Span) {
	begin, slow := at+Span(3*time.Second), d.cell()
	d.step(Step{At: at, Do: "map/raise", On: d.on(), With: everybody, N: evenly})
	for _, gw := range d.cellsGateways(slow) {
		d.step(Step{At: at + Span(2*time.Second), Do: "lag", On: gw, N: 50 + d.IntN(350), For: Span(5 * time.Second)})
		for range 1 + d.IntN(3) {
			d.step(Step{At: begin - Span(400*time.Millisecond), Do: "disk/" + pick(d, diskSlow, diskSlow, diskSlow, diskLate), On: gw, With: "accept", For: d.within(500*time.Millisecond, 2*time.Second)})
		}
		for range d.IntN(12) { // and it learns of the map late
			d.step(Step{At: begin - Span(100*time.Millisecond), Do: "disk/" + pick(d, diskFail, diskFail, diskSlow), On: gw, With: "raise", For: d.within(500*time.Millisecond, 2*time.Second)})
		}
	}
	first := pick(d, d.cellsGateways((slow+1)%len(d.plan.Cells))...)
	d.step(Step{At: begin, Do: "map/raise", On: first, N: without(slow)})
	d.several(begin-Span(500*time.Millisecond), 8+d.IntN(8), time.Duration(50+d.IntN(150))*time.Millisecond, func(_ int, e *Event) {
		e.Source, e.More, e.Keyed = pick(d, "orders", "orders", "orders", "billing"), 0, true
		d.widely(e, 10*time.Second)
		e.Via = nil
		for cell := range d.plan.Cells {
			gw, _ := strconv.Atoi(pick(d, d.cellsGateways(cell)...)[len("gw"):])
			e.Via = append(e.Via, gw)
		}
	})
}

// silent has keys move to another cell, and copies of them come while that cannot ask the former owner.
func (d *drawing) silent(at Span) {
	former := d.cell()
	d.step(Step{At: at - Span(time.Second), Do: "map/raise", On: d.on(), With: everybody, N: evenly})
	d.several(at, 5+d.IntN(4), 300*time.Millisecond, func(_ int, e *Event) {
		e.Keyed = true
		d.widely(e, 10*time.Second)
		e.Again[0] = d.within(8*time.Second, 20*time.Second)
	})
	d.step(Step{At: at + Span(5*time.Second), Do: "map/raise", On: d.on(), With: everybody, N: without(former)})
	from, last := d.cellsGateways(former), d.within(10*time.Second, 30*time.Second)
	switch what := d.IntN(4); what {
	case 0: // its gateways are, and its store is not
		for _, gw := range from {
			d.step(Step{At: at + Span(7*time.Second), Do: "away", On: gw, For: last})
		}
	case 1:
		for _, gw := range from {
			d.step(Step{At: at + Span(7*time.Second), Do: "kill", On: gw, For: last})
		}
	default:
		for other := range d.plan.Gateways {
			for _, gw := range from {
				if d.plan.cellOf(other) != former {
					d.step(Step{At: at + Span(7*time.Second), Do: "part", On: gw, With: gatewayName(other), For: last})
				}
			}
		}
	}
}

// database sets the clock of a gateway's database, which may be off by any time: right or not, it ends no asking early, as long as
// those of the gateways are right.
func (d *drawing) database(at Span, gateway string) {
	most := pick(d, 200, int(maxSkew/time.Second), 2*24*3600, 60*24*3600)
	d.step(Step{At: at, Do: "database/clock", On: gateway, N: pick(d, 0, d.IntN(2*most+1)-most, -most, most)})
}

// databases has a cell's keys move while clocks of databases are late, and copies of them come, when most of the time is over for
// which ids are remembered, to databases whose clocks are right by then, or ahead: what goes by one of them alone asks nobody.
func (d *drawing) databases(at Span) {
	d.step(Step{At: at - Span(time.Second), Do: "map/raise", On: d.on(), With: everybody, N: evenly})
	const day = 24 * 3600
	for cell := range d.plan.Cells {
		gw := d.cellsGateways(cell)[0]
		d.step(Step{At: at, Do: "database/clock", On: gw, N: -day * (20 + d.IntN(40))})
		d.step(Step{At: at + d.within(70*time.Second, 100*time.Second), Do: "database/clock", On: gw, N: day * pick(d, 0, 20+d.IntN(40))})
	}
	d.several(at, 4+d.IntN(4), time.Second, func(_ int, e *Event) {
		e.Keyed = true
		d.widely(e, 10*time.Second)
	})
	d.step(Step{At: at + Span(20*time.Second), Do: "map/raise", On: d.on(), With: everybody, N: without(d.cell())})
	d.plan.Later = []Span{pick(d, Span(80*24*time.Hour), Span(88*24*time.Hour))}
}

// retired has the map change, and copies of all come when most of the time is over for which ids are remembered.
func (d *drawing) retired(at Span) {
	d.several(at, 4+d.IntN(4), time.Second, func(_ int, e *Event) {
		e.Keyed = true
		d.widely(e, 10*time.Second)
	})
	d.raise(at + Span(20*time.Second))
	d.plan.Later = []Span{pick(d, Span(50*24*time.Hour), Span(80*24*time.Hour), Span(88*24*time.Hour))}
}

// losses has a cell be lost for good, while events come, and copies of those that it had.
func (d *drawing) losses(at Span) {
	gone := pick(d, d.cellsGateways(d.cell())...)
	d.several(at, 4+d.IntN(4), time.Second, func(_ int, e *Event) { d.widely(e, 90*time.Second) })
	d.step(Step{At: at + d.within(5*time.Second, 15*time.Second), Do: "cell/lost", On: gone, For: d.within(time.Second, 40*time.Second)})
	if d.chance(2) {
		d.raise(at + d.within(0, 40*time.Second))
	}
	d.several(at+Span(20*time.Second), 2+d.IntN(3), 5*time.Second, func(_ int, e *Event) { d.widely(e, 40*time.Second) })
}
