package api

import (
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
)

// Event is what a list says about an event.
type Event struct {
	ID                 string     `json:"id" doc:"Identifier in the journal; grows with time." example:"924305118331207681"`
	Source             string     `json:"source"`
	Key                string     `json:"key,omitempty" doc:"Recognises copies. Missing: the event has none."`
	Type               string     `json:"type,omitempty"`
	State              string     `json:"state" enum:"pending,processing,done,failed,dead" doc:"That of the delivery which needs most attention."`
	ReceivedAt         time.Time  `json:"received_at"`
	Resource           string     `json:"resource,omitempty" doc:"What the event is about."`
	Rank               int64      `json:"rank,omitempty" doc:"How new that is: a version, or a time in microseconds."`
	LogicalDuplicateOf string     `json:"logical_duplicate_of,omitempty" doc:"Identifier of an earlier event for the same change."`
	HasBody            bool       `json:"has_body" doc:"False: the body was deleted, and the event cannot be delivered again."`
	Unrouted           bool       `json:"unrouted,omitempty" doc:"No route wanted it when it came: it is stored, and was delivered nowhere unless somebody replayed it."`
	Reconciled         bool       `json:"reconciled,omitempty" doc:"It was stored from the provider's list of events, because no webhook had brought it."`
	Deliveries         []Delivery `json:"deliveries" nullable:"false" doc:"In a list only those that are not done."`
}

// Delivery is one destination of an event.
type Delivery struct {
	Destination string     `json:"destination"`
	State       string     `json:"state" enum:"pending,processing,done,failed,dead"`
	Attempts    int64      `json:"attempts" doc:"How many were begun so far."`
	Tries       int        `json:"tries" doc:"Attempts since the event was accepted or last re-driven. Without those of unknown outcome: cut off, or never begun."`
	NextTry     *time.Time `json:"next_try,omitempty" doc:"When it is tried next at the earliest."`
	WaitsFor    string     `json:"waits_for,omitempty" enum:"resume,configuration,probe" doc:"What it waits for although its time has come, said where one event is shown: that its paused destination is resumed, that a gateway has the destination in its configuration, or that a probe of a destination that is ill succeeds, the next of which is made at next_try."`
	HeldUntil   *time.Time `json:"held_until,omitempty" doc:"While processing: when another process may take over."`
	LastError   string     `json:"last_error,omitempty"`
	ErrorKind   string     `json:"error_kind,omitempty" doc:"That in one word: the error of a filter."`
	Forced      bool       `json:"forced,omitempty" doc:"It was done, and is delivered again on purpose."`
}

// Detail is all that is known about an event.
type Detail struct {
	Event
	BodyBytes int64      `json:"body_bytes"`
	Vouched   bool       `json:"vouched,omitempty" doc:"A signature with a shared secret vouches for the event."`
	Secret    int        `json:"secret,omitempty" doc:"Number, from 1, of the source's secret that it was made with. Missing with vouched: that is not configured any more."`
	Payload   Form       `json:"payload,omitempty" enum:"masked,full" doc:"How you may look at body and headers, with POST /events/{id}/payload. Missing: you may not."`
	Attempts  []Attempt  `json:"attempts" nullable:"false" doc:"Oldest first, the latest 200."`
	Sightings []Sighting `json:"sightings" nullable:"false" doc:"Later copies, oldest first."`
}

// Attempt is one try at a delivery.
type Attempt struct {
	Destination string    `json:"destination"`
	Number      int64     `json:"number"`
	Outcome     string    `json:"outcome" enum:"done,failed,dead"`
	Status      int       `json:"status,omitempty" doc:"Of the destination's answer. Missing: there was none."`
	Error       string    `json:"error,omitempty"`
	ErrorKind   string    `json:"error_kind,omitempty" doc:"That in one word: the error of a filter."`
	Answer      string    `json:"answer,omitempty" doc:"How the destination's answer begins."`
	StartedAt   time.Time `json:"started_at"`
	LatencyMS   float64   `json:"latency_ms"`
}

// Sighting is when copies of an event came that were not delivered.
type Sighting struct {
	Kind   string    `json:"kind" enum:"duplicate,conflict,redriven"`
	First  time.Time `json:"first"`
	Last   time.Time `json:"last"`
	Copies int       `json:"copies"`
}

func newEvent(s *journal.Summary) Event {
	e := Event{
		ID: journal.IDText(s.ID), Source: s.Source, Key: s.Key, Type: s.Type, State: string(s.State()),
		ReceivedAt: s.ReceivedAt.UTC(), Resource: s.Resource, Rank: s.Rank, HasBody: s.HasBody, Unrouted: s.Unrouted, Reconciled: s.Listed, Deliveries: []Delivery{},
	}
	if s.LogicalDuplicateOf != 0 {
		e.LogicalDuplicateOf = journal.IDText(s.LogicalDuplicateOf)
	}
	for _, d := range s.Deliveries {
		e.Deliveries = append(e.Deliveries, newDelivery(d))
	}
	return e
}

func newDelivery(d journal.Delivery) Delivery {
	out := Delivery{
		Destination: d.Destination, State: string(d.State), Attempts: d.Token, Tries: d.Tries,
		LastError: d.LastError, ErrorKind: string(d.Kind), Forced: d.Forced,
	}
	if due := d.Due.UTC(); d.State == journal.Processing {
		out.HeldUntil = &due
	} else if !d.Due.IsZero() {
		out.NextTry = &due
	}
	return out
}

func newDetail(h *journal.History) Detail {
	d := Detail{Event: newEvent(&h.Summary), BodyBytes: h.Size, Vouched: h.Vouched != 0, Attempts: []Attempt{}, Sightings: []Sighting{}}
	for _, done := range h.Finished {
		d.Deliveries = append(d.Deliveries, newDelivery(done))
	}
	for _, a := range h.Attempts {
		d.Attempts = append(d.Attempts, Attempt{
			Destination: a.Destination, Number: a.Token, Outcome: string(a.State), Status: a.Status, Error: a.Error,
			ErrorKind: string(a.Kind), Answer: answerText(a.Excerpt), StartedAt: a.Started.UTC(),
			LatencyMS: float64(a.Duration.Microseconds()) / 1000,
		})
	}
	for _, s := range h.Duplicates {
		d.Sightings = append(d.Sightings, Sighting{string(s.Kind), s.First.UTC(), s.Last.UTC(), s.Copies})
	}
	return d
}

// Nowhere says why no delivery of the event is on record. It says nothing if there are some. Attempts have a period of their own, and
// with them goes what is known of deliveries that are done.
func (d Detail) Nowhere() string {
	switch {
	case len(d.Deliveries) > 0:
		return ""
	case d.Unrouted:
		return journal.Unrouted + ", so it was delivered nowhere"
	case d.LogicalDuplicateOf != "":
		return "the same change had come as event " + d.LogicalDuplicateOf
	}
	return "where it was delivered is not kept any more"
}

// due returns the open deliveries whose time has come.
func (d *Detail) due(now time.Time) []*Delivery {
	var all []*Delivery
	for i := range d.Deliveries {
		if next := d.Deliveries[i].NextTry; next != nil && !next.After(now) {
			all = append(all, &d.Deliveries[i])
		}
	}
	return all
}

// held says what the delivery waits for although its time has come.
func (d *Delivery) held(to *fleet.Destination) {
	d.WaitsFor = to.WaitsFor()
	if d.WaitsFor == fleet.WaitsForProbe && to.Health.Probe != nil {
		d.NextTry = to.Health.Probe
	}
}

// Next is when a delivery is tried next, or what it waits for although its time has come: in words, and a time that
// follows them if there is one.
type Next struct {
	Words string
	At    *time.Time
}

// Next says when the delivery is tried next, or nothing if it is not.
func (d *Delivery) Next(now time.Time) Next {
	coming := d.NextTry != nil && d.NextTry.After(now)
	switch {
	case d.WaitsFor == fleet.WaitsForResume:
		return Next{Words: "when it is resumed"}
	case d.WaitsFor == fleet.WaitsForConfiguration:
		return Next{Words: "not while the destination is not configured"}
	case d.WaitsFor == fleet.WaitsForProbe && coming:
		return Next{"when a probe succeeds, the next at", d.NextTry}
	case d.WaitsFor == fleet.WaitsForProbe:
		return Next{Words: "as a probe, or when one succeeds"}
	case d.NextTry == nil || coming:
		return Next{At: d.NextTry}
	}
	return Next{Words: "now"}
}

// answerText is how a destination's answer begins, as a text.
func answerText(excerpt []byte) string { return strings.ToValidUTF8(string(excerpt), "\uFFFD") }
