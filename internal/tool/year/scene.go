package year

import "time"

// scene is what belongs together: each of it is rare where every step stands alone.
type scene struct {
	name string
	draw func(d *drawing, at Span)
	file bool // as often as not it is one for the file of SQLite
	// cells says that there are some.
	cells bool
}

var scenes = []scene{
	{name: "hang-ups", draw: (*drawing).hangUps}, {name: "pause", draw: (*drawing).pause}, {name: "replay", draw: (*drawing).replay},
	{name: "order", draw: (*drawing).order, file: true}, {name: "held", draw: (*drawing).held, file: true},
	{name: "unfinished", draw: (*drawing).unfinished}, {name: "claims", draw: (*drawing).claims}, {name: "commits", draw: (*drawing).commits},
	{name: "descriptors", draw: (*drawing).scarcity}, {name: "clocks", draw: (*drawing).clocks},
	{name: "outage", draw: (*drawing).outage, file: true}, {name: "answers", draw: (*drawing).replies, file: true},
	{name: "moves", draw: (*drawing).moves, cells: true}, {name: "divided", draw: (*drawing).divided, cells: true},
	{name: "forwarded", draw: (*drawing).replies, cells: true}, {name: "retired", draw: (*drawing).retired, cells: true},
	{name: "lost", draw: (*drawing).losses, cells: true}, {name: "fence", draw: (*drawing).fence, cells: true},
	{name: "silent", draw: (*drawing).silent, cells: true}, {name: "databases", draw: (*drawing).databases, cells: true},
}

// Scene draws a plan in which nothing else happens, a few times.
func (s scene) Scene(seed uint64) *Plan {
	d := newDrawing(seed)
	if s.file && d.chance(2) {
		d.plan.Gateways, d.plan.File = 1, true
	}
	apart := Span(6 * time.Minute)
	if s.cells { // which say a lot to each other while nothing happens
		d.inCells()
		apart = Span(150 * time.Second)
	}
	for i := range Span(3) {
		s.draw(d, Span(4*time.Second)+i*apart)
	}
	return d.plan.sorted()
}

// several draws events of one kind, one after another.
func (d *drawing) several(at Span, n int, apart time.Duration, change func(i int, e *Event)) {
	for i := range n {
		d.event(at + Span(i)*Span(apart))
		change(i, &d.plan.Events[len(d.plan.Events)-1])
	}
}

// hangUps has senders hang up at a gateway whose store takes its time, so that what they sent waits for others.
func (d *drawing) hangUps(at Span) {
	gw := d.gateway()
	d.step(Step{At: at, Do: "lag", On: gatewayName(gw), N: 100 + d.IntN(300), For: Span(10 * time.Second)})
	large := d.IntN(4)
	d.several(at+Span(10*time.Millisecond), 3+d.IntN(5), time.Duration(5+d.IntN(100))*time.Millisecond, func(i int, e *Event) {
		e.Via, e.Direct, e.More = []int{gw}, false, 0
		if i == large { // its second part comes to the store when the sender may be gone
			e.Source, e.More = "payments", 3+d.IntN(4)
		}
		if !d.chance(3) {
			e.HangUp = d.within(5*time.Millisecond, pick(d, 100*time.Millisecond, time.Second))
		}
	})
}

// pause has a destination paused, while events come to the gateway that was told so, and to others.
func (d *drawing) pause(at Span) {
	to, gw, last := pick(d, claiming, plain), d.gateway(), d.within(40*time.Second, 5*time.Minute)
	d.step(Step{At: at, Do: "operator/reload", On: gatewayName(gw), N: variantSlow})
	d.step(Step{At: at + Span(time.Second), Do: "application/slow", On: to, N: 3 + d.IntN(4), For: Span(10 * time.Second)})
	d.several(at+Span(2*time.Second), 4+d.IntN(5), time.Duration(d.IntN(500))*time.Millisecond, func(_ int, e *Event) {
		e.Direct = false
		e.Via = []int{gw}
	})
	d.step(Step{At: at + d.within(4*time.Second, 8*time.Second), Do: "operator/pause", On: gatewayName(gw), With: to, For: last})
	d.several(at+d.within(3*time.Second, 9*time.Second), 2+d.IntN(3), 9*time.Second, func(_ int, e *Event) {
		e.Direct = false
		e.Via = []int{pick(d, gw, d.gateway())}
	})
}

// replay has a delivery begin again that was done, while a copy of its event is on its way to the store and back.
func (d *drawing) replay(at Span) {
	gw := d.gateway()
	on, again := gatewayName(gw), d.within(2*time.Second, 8*time.Second)
	d.event(at)
	e := &d.plan.Events[len(d.plan.Events)-1]
	e.Source, e.More, e.Keyed, e.Direct, e.Conflict, e.Forged = pick(d, "billing", "storefront"), 0, true, false, false, false
	e.Via, e.Again = []int{gw}, nil
	d.step(Step{At: at + again - Span(500*time.Millisecond), Do: "disk/" + diskKept, On: on, With: "accept", For: d.within(time.Second, 4*time.Second)})
	for range d.plan.Gateways { // of the later copies, one comes to each gateway
		e.Again = append(e.Again, again)
		again = d.within(15*time.Second, time.Minute)
	}
	e.Again = append(e.Again, again)
	d.step(Step{At: at + e.Again[0] + d.within(-200*time.Millisecond, 900*time.Millisecond), Do: "operator/force", On: pick(d, on, d.on()), With: plain})
	d.step(Step{At: at + e.Again[0] - Span(300*time.Millisecond), Do: "application/gone", On: plain, N: 1 + d.IntN(3)})
}

// order has events about the same thing come to the destination that wants them in order, which refuses some, and has the
// gateway begin anew meanwhile.
func (d *drawing) order(at Span) {
	source, object := pick(d, "billing", "storefront"), 1+d.IntN(2)
	d.step(Step{At: at, Do: "application/fails", On: plain, N: pick(d, 1, 2, 4, 8, 15)})
	d.several(at+Span(100*time.Millisecond), 3+d.IntN(4), time.Duration(1+d.IntN(4000))*time.Millisecond, func(_ int, e *Event) {
		e.Source, e.More, e.Object, e.Keyed, e.Direct = source, 0, object, true, false
	})
	for range 1 + d.IntN(3) {
		d.step(Step{At: at + d.within(time.Second, 30*time.Second), Do: pick(d, "kill", "upgrade"), On: d.on(), For: d.within(10*time.Millisecond, 5*time.Second)})
	}
}

// held has leases extended while attempts take long and fail, and some of what extends them is late.
func (d *drawing) held(at Span) {
	to := pick(d, claiming, plain)
	d.step(Step{At: at, Do: "application/slow", On: to, N: 2 + d.IntN(6), For: Span(time.Minute)})
	d.step(Step{At: at, Do: "application/fails", On: to, N: 5 + d.IntN(15)})
	d.several(at+Span(100*time.Millisecond), 1+d.IntN(3), time.Second, func(_ int, e *Event) { e.Direct = false })
	for range 2 + d.IntN(6) {
		d.step(Step{At: at + d.within(time.Second, 40*time.Second), Do: "disk/" + pick(d, diskLate, diskLate, diskLate, diskLost, diskFail), On: d.on(), With: "extend",
			For: d.within(2*time.Second, 20*time.Second)})
	}
}

// unfinished has a gateway stopped that may not wait for its attempts.
func (d *drawing) unfinished(at Span) {
	to := pick(d, claiming, plain)
	d.step(Step{At: at, Do: "application/slow", On: to, N: 4 + d.IntN(4), For: Span(20 * time.Second)})
	d.several(at+Span(100*time.Millisecond), 1+d.IntN(4), time.Second, func(_ int, e *Event) { e.Direct = false })
	d.step(Step{At: at + d.within(time.Second, 8*time.Second), Do: "upgrade", On: d.on(), N: 1 + d.IntN(3), For: d.within(10*time.Millisecond, 5*time.Second)})
}

// descriptors has a gateway run out of them.
func (d *drawing) descriptors(at Span) {
	d.step(Step{At: at, Do: "descriptors", On: d.on(), For: d.within(5*time.Second, pick(d, 30*time.Second, 10*time.Minute))})
}

// scarcity has a gateway run out of descriptors while it has events to deliver.
func (d *drawing) scarcity(at Span) {
	d.descriptors(at)
	d.several(at+Span(100*time.Millisecond), 2+d.IntN(4), 2*time.Second, func(_ int, e *Event) { e.Direct = false })
}

// claims has handlers work for longer than those wait who asked for it, and events without a key come beside each other.
func (d *drawing) claims(at Span) {
	to := pick(d, claiming, direct)
	d.step(Step{At: at, Do: "application/holds", On: to, N: pick(d, 5, 9, 12, 15), For: d.within(5*time.Second, 30*time.Second)})
	d.several(at+Span(100*time.Millisecond), 2+d.IntN(4), time.Second, func(i int, e *Event) {
		e.Direct, e.Keyed = to == direct, i > 1
	})
}

// commits has commits fail, or seem to, while events come.
func (d *drawing) commits(at Span) {
	gw := d.gateway()
	for range 2 + d.IntN(4) {
		d.step(Step{At: at + d.within(0, 10*time.Second), Do: "disk/" + pick(d, diskFail, diskFail, diskFail, diskLost, diskStall, diskSilent, diskKept), On: gatewayName(gw), With: "accept",
			For: d.within(time.Second, 4*time.Second)})
	}
	d.several(at+Span(100*time.Millisecond), 3+d.IntN(4), 2*time.Second, func(_ int, e *Event) { e.Via, e.Direct = append(e.Via[:1], gw), false })
}

// clocks has events come to a gateway some time after its clock was set.
func (d *drawing) clocks(at Span) {
	gw := d.gateway()
	d.step(Step{At: at, Do: "clock", On: gatewayName(gw), N: pick(d, -1, 1) * (70 + d.IntN(200))})
	d.several(at+d.within(125*time.Second, 150*time.Second), 2+d.IntN(3), 2*time.Second, func(_ int, e *Event) { e.Via, e.Direct = []int{gw}, false })
}

// outage has a gateway lose its store, or the answers of that, while events come that may go past it, each in several copies.
func (d *drawing) outage(at Span) {
	gw := d.gateway()
	if d.chance(2) {
		d.step(Step{At: at, Do: "away", On: gatewayName(gw), For: d.within(3*time.Second, 40*time.Second)})
	} else {
		for range 2 + d.IntN(6) {
			d.step(Step{At: at, Do: "disk/" + pick(d, diskFail, diskLost, diskStall, diskSilent, diskLate), On: gatewayName(gw), With: "accept", For: d.within(time.Second, 20*time.Second)})
		}
	}
	if d.chance(3) {
		d.step(Step{At: at + d.within(0, 5*time.Second), Do: "application/" + pick(d, "fails", "slow"), On: claiming, N: 1 + d.IntN(4), For: Span(10 * time.Second)})
	}
	if d.chance(4) {
		d.step(Step{At: at + d.within(time.Second, 30*time.Second), Do: pick(d, "kill", "upgrade"), On: gatewayName(gw), For: Span(time.Second)})
	}
	d.several(at+Span(100*time.Millisecond), 2+d.IntN(4), 3*time.Second, func(i int, e *Event) {
		e.Source, e.More, e.Direct, e.Via = open, 0, false, e.Via[:1]
		e.Via[0] = gw
		for range d.IntN(3) {
			e.Via = append(e.Via, gw)
		}
		if d.chance(2) {
			e.Again = append(e.Again, d.within(time.Second, time.Minute))
		}
	})
}

// replies has senders wait for the answer of an application that takes its time, in copies at once and later ones.
func (d *drawing) replies(at Span) {
	if d.chance(2) {
		d.step(Step{At: at, Do: "application/" + pick(d, "slow", "holds", "fails"), On: claiming, N: 1 + d.IntN(8), For: d.within(5*time.Second, 30*time.Second)})
	}
	switch on := d.on(); d.IntN(4) {
	case 0:
		d.step(Step{At: at, Do: "wire/" + pick(d, wireAnswer, wireSlow, wireLate), On: on, With: claiming, For: d.within(time.Second, 10*time.Second)})
	case 1:
		d.step(Step{At: at, Do: "disk/" + pick(d, diskLost, diskFail, diskSilent, diskKept), On: on, With: "finish", For: d.within(time.Second, 4*time.Second)})
	case 2:
		d.step(Step{At: at + d.within(time.Second, 10*time.Second), Do: "kill", On: on, For: Span(time.Second)})
	}
	d.several(at+Span(100*time.Millisecond), 2+d.IntN(3), 2*time.Second, func(_ int, e *Event) {
		e.Source, e.More, e.Direct = synchronous, 0, false
		for range 1 + d.IntN(3) {
			e.Via = append(e.Via, d.gateway())
		}
		e.Again = append(e.Again, d.within(time.Second, time.Minute))
	})
}
