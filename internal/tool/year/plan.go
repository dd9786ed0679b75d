package year

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Plan is all that happens in one play. Times count from its beginning.
type Plan struct {
	// Seed is what it was drawn from. 0: somebody wrote it.
	Seed uint64 `json:"seed,omitempty"`
	// Found says which law it once broke, and how.
	Found    string `json:"found,omitempty"`
	Gateways int    `json:"gateways"`
	// Cells are how many of the gateways, from the first one on, each cell has. Empty: all are on one store, and there are no cells.
	Cells []int `json:"cells,omitempty"`
	// File has the one gateway keep its journal in a file of SQLite, and not in memory.
	File   bool    `json:"file,omitempty"`
	Events []Event `json:"events"`
	Steps  []Step  `json:"steps"`
	// Later is when, after all has come to rest, copies of everything come once more, and nothing is disturbed.
	Later []Span `json:"later,omitempty"`
}

// Event is one event, with all the copies that its sender makes.
type Event struct {
	N      int    `json:"n"`
	Source string `json:"source"`
	Keyed  bool   `json:"keyed"`
	// Direct says that it goes to the application that verifies and claims for itself, and to no gateway.
	Direct bool `json:"direct,omitempty"`
	// More are how many events come in the same requests besides.
	More int `json:"more,omitempty"`
	// Object is the number of what it is about.
	Object int  `json:"object"`
	At     Span `json:"at"`
	// Via are the gateways that get a copy at the same moment.
	Via []int `json:"via"`
	// Forged says that a forged copy comes just before, Conflict that one with the same key and another body comes after.
	Forged   bool `json:"forged,omitempty"`
	Conflict bool `json:"conflict,omitempty"`
	// Again is when copies come, after the first success.
	Again []Span `json:"again,omitempty"`
	// HangUp is after what time the sender of the very first copy hangs up. 0: it waits.
	HangUp Span `json:"hang_up,omitempty"`
}

// kind is its type. Of those of the source that is open, some are of a type that is not.
func (e *Event) kind() string {
	if e.Source == open && e.N%4 != 0 {
		return "cart.kept"
	}
	return "order.paid"
}

func (e *Event) name() string { return "e" + strconv.Itoa(e.N) }

// names are those of all events that its requests have. The others are not in the plan.
func (e *Event) names() []string {
	all := []string{e.name()}
	for i := range e.More {
		all = append(all, e.name()+"."+strconv.Itoa(i+1))
	}
	return all
}

// Step is one thing that happens besides.
type Step struct {
	At Span   `json:"at"`
	Do string `json:"do"`
	// On is a machine, and With another one, or a call of the store.
	On   string `json:"on,omitempty"`
	With string `json:"with,omitempty"`
	For  Span   `json:"for,omitempty"`
	N    int    `json:"n,omitempty"`
}

// Span is a time, in a plan that people read.
type Span time.Duration

// MarshalText implements [encoding.TextMarshaler].
func (s Span) MarshalText() ([]byte, error) { return []byte(time.Duration(s).String()), nil }

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *Span) UnmarshalText(text []byte) error {
	d, err := time.ParseDuration(string(text))
	*s = Span(d)
	return err
}

// String is how a trace begins that somebody reads.
func (p *Plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "plan of seed %d: %d gateways in cells of %v, %d events, %d steps\n", p.Seed, p.Gateways, p.Cells, len(p.Events), len(p.Steps))
	for _, e := range p.Events {
		line, _ := json.Marshal(e)
		fmt.Fprintf(&b, "  event %s\n", line)
	}
	for _, s := range p.Steps {
		line, _ := json.Marshal(s)
		fmt.Fprintf(&b, "  step  %s\n", line)
	}
	return b.String()
}

// end is when the last of it begins.
func (p *Plan) end() (last time.Duration) {
	for _, e := range p.Events {
		last = max(last, time.Duration(e.At))
	}
	for _, s := range p.Steps {
		last = max(last, time.Duration(s.At)+time.Duration(s.For))
	}
	return last
}

// without returns the plan without some of its events and steps.
func (p *Plan) without(events, steps func(i int) bool) *Plan {
	q := *p
	q.Events, q.Steps = nil, nil
	for i, e := range p.Events {
		if !events(i) {
			q.Events = append(q.Events, e)
		}
	}
	for i, s := range p.Steps {
		if !steps(i) {
			q.Steps = append(q.Steps, s)
		}
	}
	return &q
}

// The machines besides the gateways, which are gw0, gw1 and so on.
const (
	claiming = "shop"  // claims what it gets, with the library
	plain    = "books" // does not, and is delivered to in the order of resources
	direct   = "till"  // has senders come to itself, with the library and no gateway
	senders  = "senders"
)

func gatewayName(i int) string { return "gw" + strconv.Itoa(i) }

// cellOf is the number of the cell that a gateway belongs to; 0 if there are none.
func (p *Plan) cellOf(gateway int) int {
	for cell, n := range p.Cells {
		if gateway < n {
			return cell
		}
		gateway -= n
	}
	return 0
}

// destinationsOf are those that the events of a source are for.
func destinationsOf(source string) []string {
	if !ordered(source) {
		return []string{claiming}
	}
	return []string{claiming, plain}
}

// ordered reports whether the events of a source say what they are about, by which they are delivered in order.
func ordered(source string) bool { return source == "billing" || source == "storefront" }

// apart reports whether the keys of a source's events tell their contents apart: other content is another event there.
func apart(source string) bool { return kinds[source] == "shopify" }

// The sources that are not like the others.
const (
	synchronous = "calls" // whose senders get the answer of the application
	open        = "carts" // whose events are delivered past a store that is away
)

// sources are the names of all.
func sources() []string {
	return []string{"billing", "calls", "carts", "orders", "payments", "storefront"}
}

// sorted puts what happens first in front.
func (p *Plan) sorted() *Plan {
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return int(a.At - b.At) })
	return p
}
