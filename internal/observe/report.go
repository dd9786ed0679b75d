package observe

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
)

// Report says what the application of one source does twice or loses, and what the gateway would have refused.
type Report struct {
	Source string    `json:"source"`
	Since  time.Time `json:"since"`
	// From and Until are when the first and the last request on record since then came; zero without any.
	From  time.Time `json:"from"`
	Until time.Time `json:"until"`
	// Requests is how many were forwarded, Unrecorded those of which nothing else is known, and Unread those that
	// could not be looked at.
	Requests   int64 `json:"requests"`
	Unrecorded int64 `json:"unrecorded"`
	Unread     Tally `json:"unread"`
	// Events are the distinct events with a key that came, and Copies how many more times they came than once.
	Events int64  `json:"events"`
	Copies Copies `json:"copies"`
	// Unkeyed are events without a key, and Notices those whose copies mean something.
	Unkeyed    int64 `json:"unkeyed"`
	Notices    int64 `json:"notices"`
	Handshakes int64 `json:"handshakes"`
	// Doubled are events that the application took on more than once: it answered 2xx to two requests at least.
	Doubled List `json:"doubled"`
	// Unanswered are events that it never took on. They are lost unless their sender tries again.
	Unanswered List `json:"unanswered"`
	// Conflicts are events that came with different content under one key.
	Conflicts List `json:"conflicts"`
	// Late are events whose signature was valid and whose signed time was not, where they are known.
	Late List `json:"late"`
	// Slow are events that the application took on after their sender had given up, which makes it send them again.
	Slow List `json:"slow"`
	// Forged are requests whose signature would have been refused, and Accepted those of them that the application
	// answered 2xx. Other are requests that would have been refused for something else: see
	// [Report.Untimely].
	Forged   Tally      `json:"forged"`
	Accepted int64      `json:"accepted_forgeries"`
	Proof    []Sighting `json:"forgeries"`
	Other    Tally      `json:"other"`
}

// Untimely divides Other: late are requests whose signature was valid and whose time was not, and
// whose events are not known, because nothing reads them then (compare Late); strange are those that
// no sender sends.
func (r *Report) Untimely() (late, strange Tally) {
	late, strange = Tally{}, Tally{}
	for reason, n := range r.Other {
		if untimely(reason) {
			late[reason] = n
		} else {
			strange[reason] = n
		}
	}
	return late, strange
}

// Copies are the requests for events that had come before.
type Copies struct {
	All int64 `json:"all"`
	// AfterSuccess came when the application had answered 2xx to an earlier one, AtOnce while an earlier one was under
	// way, and Retries after failures alone.
	AfterSuccess int64 `json:"after_success"`
	AtOnce       int64 `json:"at_once"`
	Retries      int64 `json:"retries"`
}

// Tally counts requests by reason.
type Tally map[string]int64

// List counts events, and has some of them as proof: the newest.
type List struct {
	Count  int64  `json:"count"`
	Events []Case `json:"events"`
}

// Case is one event, with all requests for it that are on record.
type Case struct {
	Key   string     `json:"key"`
	Type  string     `json:"type,omitempty"`
	Times int64      `json:"times"`
	Seen  []Sighting `json:"seen"`
}

// Sighting is one request.
type Sighting struct {
	At      time.Time `json:"at"`
	Status  int       `json:"status"`
	Failure string    `json:"failure,omitempty"`
	Reason  string    `json:"reason,omitempty"`
	// Took is the time until the answer, in milliseconds.
	Took int64 `json:"took_ms"`
	// Unheard is set if the sender had given up by then.
	Unheard bool `json:"unheard,omitempty"`
}

// maxSightings is how many requests for one event are shown: the first and the last ones.
const maxSightings = 20

// NewReport reads what is on record of a source since then, and shows at most limit events, or requests, of each kind.
func NewReport(ctx context.Context, s *Store, source string, since time.Time, limit int) (*Report, error) {
	w := &writer{
		r:     &Report{Source: source, Since: since.UTC(), Unread: Tally{}, Forged: Tally{}, Other: Tally{}, Proof: []Sighting{}},
		limit: limit,
	}
	for _, l := range w.lists() {
		l.Events = []Case{}
	}
	if err := s.Read(ctx, source, since, w.read); err != nil {
		return nil, err
	}
	w.judge()
	w.cutProof()
	return w.r, nil
}

// writer makes a report of observations in the order of [Store.Read].
type writer struct {
	r     *Report
	limit int
	group []Observation // of one key
}

func (w *writer) lists() []*List {
	r := w.r
	return []*List{&r.Doubled, &r.Unanswered, &r.Conflicts, &r.Late, &r.Slow}
}

// read takes the next observation.
func (w *writer) read(o Observation) error {
	if len(w.group) > 0 && w.group[0].Key != o.Key {
		w.judge()
	}
	if !o.ReceivedAt.Before(w.r.Since) {
		w.count(&o)
	}
	if o.Kind == Event && o.Key != "" {
		w.group = append(w.group, o)
	}
	return nil
}

// count adds an observation since then to the numbers of the report.
func (w *writer) count(o *Observation) {
	r := w.r
	if o.Kind == Gap {
		r.Unrecorded += o.Requests
		r.Requests += o.Requests
		return
	}
	r.Requests += o.Requests
	if r.From.IsZero() || o.ReceivedAt.Before(r.From) {
		r.From = o.ReceivedAt.UTC()
	}
	if o.ReceivedAt.After(r.Until) {
		r.Until = o.ReceivedAt.UTC()
	}
	switch {
	case o.Kind == Unread:
		r.Unread[o.Reason] += o.Requests
	case o.Kind == Notice:
		r.Notices++
	case o.Kind == Handshake:
		r.Handshakes += o.Requests
	case o.Kind == Refused:
		w.refused(o)
	case o.Key == "":
		r.Unkeyed++
	}
}

// refused counts a request that would have been refused.
func (w *writer) refused(o *Observation) {
	r := w.r
	if o.Reason == ReasonMethod || o.Reason == hookonce.ReasonHandshakeRefused || untimely(o.Reason) {
		r.Other[o.Reason] += o.Requests
		return
	}
	r.Forged[o.Reason] += o.Requests
	if o.done() {
		r.Accepted += o.Requests
	}
	if r.Proof = append(r.Proof, sighting(o)); len(r.Proof) > 2*w.limit {
		w.cutProof()
	}
}

// cutProof keeps the forgeries that the application took on, and of each kind those that came last.
func (w *writer) cutProof() {
	taken := func(s Sighting) int {
		if s.Status/100 == 2 {
			return 0
		}
		return 1
	}
	slices.SortStableFunc(w.r.Proof, func(a, b Sighting) int {
		return cmp.Or(taken(a)-taken(b), b.At.Compare(a.At))
	})
	w.r.Proof = w.r.Proof[:min(len(w.r.Proof), w.limit)]
}

// judge says what became of the events of one key, and at the end of all.
func (w *writer) judge() {
	group := w.group
	w.group = nil
	since := slices.IndexFunc(group, func(o Observation) bool { return !o.ReceivedAt.Before(w.r.Since) })
	if since < 0 {
		return
	}
	w.r.Events++
	var past past
	doubled, slow, conflict, late := false, false, false, false
	for i := range group {
		o := &group[i]
		now := i >= since
		if now && i > 0 {
			past.copied(o, &w.r.Copies)
		}
		past.add(o)
		doubled = doubled || now && o.done() && past.done > 1
		slow = slow || now && o.done() && o.Unheard
		conflict = conflict || now && !bytes.Equal(o.Digest, group[0].Digest)
		late = late || now && o.Reason != ""
	}
	for _, found := range []struct {
		is bool
		in *List
	}{{doubled, &w.r.Doubled}, {past.done == 0, &w.r.Unanswered}, {conflict, &w.r.Conflicts}, {late, &w.r.Late}, {slow, &w.r.Slow}} {
		if found.is {
			w.show(found.in, group)
		}
	}
}

// past is what the requests for one event had come to.
type past struct {
	done int
	at   time.Time // when the first success was answered
	last time.Time // when the last answer began
}

func (p *past) add(o *Observation) {
	at := o.answeredAt()
	if o.done() {
		if p.done++; p.at.IsZero() || at.Before(p.at) {
			p.at = at
		}
	}
	if at.After(p.last) {
		p.last = at
	}
}

// copied counts a copy by what the earlier requests had come to when it came.
func (p *past) copied(o *Observation, c *Copies) {
	c.All++
	switch {
	case p.done > 0 && !p.at.After(o.ReceivedAt):
		c.AfterSuccess++
	case p.last.After(o.ReceivedAt):
		c.AtOnce++
	default:
		c.Retries++
	}
}

// show adds a case to a list, which keeps those that came last.
func (w *writer) show(l *List, group []Observation) {
	l.Count++
	c := Case{Key: group[0].Key, Type: group[0].Type, Times: int64(len(group))}
	for i := range group {
		if i < maxSightings/2 || i >= len(group)-maxSightings/2 {
			c.Seen = append(c.Seen, sighting(&group[i]))
		}
	}
	at, _ := slices.BinarySearchFunc(l.Events, c, func(a, b Case) int { return b.last().Compare(a.last()) })
	l.Events = slices.Insert(l.Events, at, c)
	l.Events = l.Events[:min(len(l.Events), w.limit)]
}

func (c Case) last() time.Time { return c.Seen[len(c.Seen)-1].At }

func sighting(o *Observation) Sighting {
	return Sighting{At: o.ReceivedAt.UTC(), Status: o.Status, Failure: o.Failure, Reason: o.Reason, Took: o.Took.Milliseconds(), Unheard: o.Unheard}
}
