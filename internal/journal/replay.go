package journal

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Replay says which deliveries begin again, and on whose account. The filter's Destination and State
// choose among the deliveries of each event: without them, all that are failed or dead are replayed.
type Replay struct {
	Filter
	// EventID is the only event to look at. 0: those that the filter matches.
	EventID int64
	// Only are the events to look at among those, ascending. Nil: all of them.
	Only []int64
	// Chosen says by what else somebody chose them, for the record.
	Chosen string
	// Force replays what is done as well, or alone if State is [Done]. The destination is told. With an
	// EventID and a Destination it is delivered there even if it never was. What Unrouted matches is delivered to
	// the Destination where it never was, and what is done there is left alone.
	Force bool
	// DoneBefore leaves alone what was done then or later. Zero: nothing. So a request that comes twice delivers once: what the
	// first of them began is open, or was done later.
	DoneBefore time.Time
	// Start is when the first delivery is due.
	Start time.Time
	// Rate is how many of them become due in a second. 0: all at Start. Those that have a resource are due
	// at Start whatever it is: one that waits would hold up all younger ones of its resource.
	Rate float64
	// Delivers are the destinations that a gateway delivers to: what went to others is left alone, because nobody would make
	// it. Nil: all.
	Delivers []string
	// Ordered are those that deliver in order; the [Journal] adds the ones that it knows.
	Ordered []string
	// By is who asks for it, and Reason why.
	By, Reason string
	// Audit is the record that this call continues, as [Replayed] named it; its Start counts. 0: it begins
	// one.
	Audit int64
	// After continues behind this event.
	After int64
	// DryRun only counts.
	DryRun bool

	asked time.Time // when this call is made, if it continues: see Begun
}

// ErrNoReplay says that there is no entry of the audit log of the replay that a call of [Records.Replay] wants to
// continue: another number, filter or person.
var ErrNoReplay = errors.New("journal: there is no such replay to continue")

// states returns the states of open deliveries that are replayed.
func (r *Replay) states() []State {
	switch r.State {
	case "":
		return []State{Failed, Dead}
	case Failed, Dead:
		return []State{r.State}
	}
	return nil
}

// Done reports whether finished deliveries are replayed.
func (r *Replay) Done() bool { return r.Force && (r.State == "" || r.State == Done) && !r.ByError() }

// anew reports whether events are delivered to the destination that never were.
func (r *Replay) anew() bool {
	return r.Done() && r.Destination != "" && (r.EventID != 0 || r.Unrouted)
}

// Window returns the identifiers to look at: from first on, and below end.
func (r *Replay) Window() (first, end int64) {
	first, end = r.Filter.Window()
	first = max(first, r.After+1)
	if r.EventID != 0 {
		first, end = max(first, r.EventID), min(end, r.EventID+1)
	}
	if n := len(r.Only); n > 0 {
		first, end = max(first, r.Only[0]), min(end, r.Only[n-1]+1)
	}
	return first, end
}

// Scope returns the events to look at: those of the filter, whatever their deliveries, if finished ones
// are replayed, and otherwise those with a delivery that is.
func (r *Replay) Scope() (states []State, all bool) { return r.states(), r.Done() || r.EventID != 0 }

// Begun returns the record of a replay that goes on, which read finds by its number, and takes the start of the first
// call from it, as far as deliveries are due by it: what this call begins waits since this call's own Start. Of a replay that
// begins it returns an empty one.
func (r *Replay) Begun(read func() ([]Audit, error)) (Audit, error) {
	if r.Audit == 0 {
		return Audit{}, nil
	}
	audits, err := read()
	if err != nil {
		return Audit{}, err
	}
	if len(audits) == 0 || !audits[0].Continues(r) {
		return Audit{}, ErrNoReplay
	}
	r.asked, r.Start = r.Start, audits[0].At
	return audits[0], nil
}

// Text returns the filter as the audit log keeps it.
func (r *Replay) Text() string {
	text, _ := json.Marshal(struct { // which cannot fail: there are only texts, numbers and truths in it
		Filter
		Since   string `json:"since,omitempty"`
		Until   string `json:"until,omitempty"`
		EventID int64  `json:"event,omitempty,string"`
		Chosen  string `json:"chosen,omitempty"`
		Force   bool   `json:"force,omitempty"`
	}{r.Filter, timeText(r.Since), timeText(r.Until), r.EventID, r.Chosen, r.Force})
	return string(text)
}

// timeText writes a time, in any year, unlike its JSON form, which ends at 9999. The zero time is nothing.
func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// Due returns when the n-th delivery of the replay is due, from 0, with the resource whose ordering group it is in,
// or "".
func (r *Replay) Due(n int, resource string) time.Time {
	if r.Rate <= 0 || resource != "" {
		return r.Start
	}
	return r.Start.Add(time.Duration(float64(n) / r.Rate * float64(time.Second)))
}

// Replayed is what came of a call of [Records.Replay].
type Replayed struct {
	Events     int // that were looked at
	Deliveries int // that begin again, or would
	Forced     int // those of them that were done; what is delivered for the first time is none
	// Destinations are how many of them each destination gets.
	Destinations map[string]int
	Open         int // deliveries that were left alone because they are pending or processing
	Later        int // and because they were done at [Replay.DoneBefore] or later
	// Nowhere are how many were left alone of each destination that is none of [Replay.Delivers]. Nil: none.
	Nowhere map[string]int
	// Looked are these events, by identifier.
	Looked []Named
	// Gone are events that would be delivered again if their bodies were still there.
	Gone []Named
	// Next continues: pass it as After. 0: all events were looked at.
	Next int64
	// Audit is the number in the audit log; 0 after a dry run, or if nothing begins again.
	Audit int64
}

// Named names an event.
type Named struct {
	EventID     int64
	Source, Key string
}

// Plan is what a replay does with some events. Stores make it from what they find and carry it out.
type Plan struct {
	Replayed
	Redrive []Delivery // failed and dead ones, as they will be; Token is not set
	Create  []Delivery // to be made anew, with a token above all earlier ones
}

// Idle reports whether a plan changes nothing and ends a replay that has no entry of the audit log yet: then it
// needs none.
func (p *Plan) Idle(r *Replay) bool { return r.Audit == 0 && p.Deliveries == 0 && p.Next == 0 }

// Candidate is an event that a replay looks at, with all its deliveries: the finished ones are those with
// an attempt that succeeded, under the highest token that an attempt had.
type Candidate struct {
	ID          int64
	Source, Key string
	Resource    string
	HasBody     bool
	Deliveries  []Delivery
}

// begin makes a delivery begin again as the n-th of the replay.
func (r *Replay) begin(p *Plan, c Candidate, d Delivery, n int) {
	fresh := Delivery{EventID: d.EventID, Destination: d.Destination, State: Pending, Group: d.Group}
	if d.State == Done && slices.Contains(r.Ordered, d.Destination) {
		fresh.Group = GroupOf(c.Source, c.Resource)
	}
	fresh.Due = r.Due(n, fresh.Group)
	if fresh.WaitsSince = fresh.Due; r.asked.After(fresh.Due) {
		fresh.WaitsSince = r.asked
	}
	if d.State != Done {
		p.Redrive = append(p.Redrive, fresh)
		return
	}
	// The next token but one: the last attempt may still wait for being recorded in its process, which
	// takes a delivery that it gets under the next token for the one that it holds.
	fresh.Token, fresh.Forced = d.Token+1, true
	p.Create = append(p.Create, fresh)
}

// Plan decides what to do with the candidates, which are sorted by identifier. n is how many deliveries
// the replay has made due before.
func (r *Replay) Plan(found []Candidate, n int) *Plan {
	p := &Plan{Replayed: Replayed{Destinations: map[string]int{}}}
	for _, c := range found {
		p.Events++
		p.Looked = append(p.Looked, Named{c.ID, c.Source, c.Key})
		r.plan(p, c, n)
	}
	p.Deliveries = len(p.Redrive) + len(p.Create)
	return p
}

// Step is the Plan for the first limit of the candidates that one look found, and where the next look begins.
// more says that the look stopped at identifier end, and there may be others from there on.
func (r *Replay) Step(found []Candidate, n, limit int, more bool, end int64) *Plan {
	next := int64(0)
	switch {
	case len(found) > limit:
		found = found[:limit]
		next = found[limit-1].ID
	case more:
		next = end - 1
	}
	p := r.Plan(found, n)
	p.Next = next
	return p
}

func (r *Replay) plan(p *Plan, c Candidate, n int) {
	deliveries := slices.DeleteFunc(slices.Clone(c.Deliveries), func(d Delivery) bool {
		return r.Destination != "" && d.Destination != r.Destination
	})
	fresh := r.anew() && len(deliveries) == 0
	if fresh {
		deliveries = []Delivery{{EventID: c.ID, Destination: r.Destination, State: Done}}
	}
	slices.SortFunc(deliveries, func(a, b Delivery) int { return cmp.Compare(a.Destination, b.Destination) })
	gone := !c.HasBody && r.Done() && len(deliveries) == 0 // its attempts went with the body
	for _, d := range deliveries {
		again := slices.Contains(r.states(), d.State) && r.MatchError(&d) || d.State == Done && r.Done() && (fresh || !r.Unrouted)
		switch {
		case d.State == Pending || d.State == Processing:
			p.Open++
		case again && d.State == Done && !fresh && !r.DoneBefore.IsZero() && !d.Ended.Before(r.DoneBefore):
			p.Later++
		case again && !c.HasBody:
			gone = true
		case again && r.Delivers != nil && !slices.Contains(r.Delivers, d.Destination):
			if p.Nowhere == nil {
				p.Nowhere = map[string]int{}
			}
			p.Nowhere[d.Destination]++
		case again:
			if d.State == Done && !fresh {
				p.Forced++
			}
			r.begin(p, c, d, n+len(p.Redrive)+len(p.Create))
			p.Destinations[d.Destination]++
		}
	}
	if gone {
		p.Gone = append(p.Gone, Named{c.ID, c.Source, c.Key})
	}
}
