package year

import "math"

// Shrink returns a plan that is as small as it gets and still breaks a law. breaks plays a plan, as often as it takes to
// believe it, and is asked at most so many times.
func Shrink(p *Plan, most int, breaks func(*Plan) bool) *Plan {
	try := func(q *Plan) bool {
		if most <= 0 {
			return false
		}
		most--
		return breaks(q)
	}
	for smaller := true; smaller; {
		smaller = false
		for _, q := range halves(p) {
			if try(q) {
				p, smaller = q, true
				break
			}
		}
	}
	return p
}

// halves returns plans that lack a part of p: first large parts, and then single ones.
func halves(p *Plan) (all []*Plan) {
	none := func(int) bool { return false }
	if len(p.Later) > 0 {
		q := *p
		q.Later = p.Later[:len(p.Later)-1]
		all = append(all, &q)
	}
	for _, part := range parts(len(p.Steps)) {
		all = append(all, p.without(none, part))
	}
	for _, part := range parts(len(p.Events)) {
		if q := p.without(part, none); len(q.Events) > 0 {
			all = append(all, q)
		}
	}
	for i := range p.Events {
		if e := simpler(p.Events[i]); e != nil {
			q := p.without(none, none)
			q.Events[i] = *e
			all = append(all, q)
		}
	}
	return all
}

// parts divides n things into halves, quarters and so on.
func parts(n int) (all []func(int) bool) {
	for size := int(math.Ceil(float64(n) / 2)); size >= 1 && n > 0; size /= 2 {
		for begin := 0; begin < n; begin += size {
			all = append(all, func(i int) bool { return i >= begin && i < begin+size })
		}
	}
	return all
}

// simpler returns an event with fewer copies. Nil: it has none.
func simpler(e Event) *Event {
	switch {
	case len(e.Again) > 0:
		e.Again = e.Again[:len(e.Again)-1]
	case len(e.Via) > 1:
		e.Via = e.Via[:1]
	case e.Forged:
		e.Forged = false
	case e.More > 0:
		e.More /= 2
	case e.Conflict:
		e.Conflict = false
	default:
		return nil
	}
	return &e
}
