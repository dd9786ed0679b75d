package year

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/tally"
)

// ledger has what happened, as somebody sees it who sees everything: no process reads it.
type ledger struct {
	mu      sync.Mutex
	begin   time.Time
	lines   []string
	broken  []string       // laws, in the order in which they were
	counts  map[string]int // of faults that fired, and of what happened
	store   reading
	homes   map[string]string // the cell of a machine
	cells   map[string]*cellFact
	routes  func(number int64) []hookonce.Cell // the map of a number
	events  map[string]*fact                   // by name
	stored  map[ref]*record                    // by key: what is on record, or was
	ids     map[int64]*record
	harm    []harm // what disturbed
	skewed  bool   // clocks differ by more than a second or two
	paused  map[place]time.Time
	larges  []time.Time             // requests of several events
	told    map[place]string        // the gateway that was told to pause a destination
	short   map[string][2]time.Time // since when and until when a machine has no descriptors
	retain  time.Duration
	holders map[journal.DeliveryID]holder
	given   map[journal.DeliveryID]int // how often a store gave it to a process
}

// harm is something that disturbs.
type harm struct {
	what string
	at   time.Time
}

// ref is a key in its source.
type ref struct{ source, key string }

// place is a destination, as the gateways of a cell see it.
type place struct{ cell, destination string }

// fact is one event, as its sender means it.
type fact struct {
	Event
	called   string // Event has the name of the first of its request
	acked    []time.Time
	past     []time.Time          // acknowledged with nothing on record
	answer   string               // of the application, that its sender read
	effects  map[string]int       // by application
	attempts map[string][]attempt // by destination
	stored   int                  // how many times, of one without a key
	came     int                  // requests that an application without a gateway got, of one without a key
}

// attempt is a request that arrived at a destination.
type attempt struct {
	at, end time.Time
	from    string
	number  int64  // of the record; 0: it goes past the store
	key     string // the Idempotency-Key
	status  int    // 0: it is under way
	answer  string
	forced  bool
	skewed  bool
}

func (a attempt) took() bool { return a.status/100 == 2 }

// took reports whether a destination has taken what is on record. What went past the store had no number there.
func (f *fact) took(at string, rec *record) bool {
	return slices.ContainsFunc(f.attempts[at], func(a attempt) bool { return a.took() && (a.number == rec.id || a.number == 0) })
}

// taken is under how many Idempotency-Keys a destination has taken an event. Whoever goes by those has as many events.
func (f *fact) taken(at string) int {
	keys := map[string]bool{}
	for _, a := range f.attempts[at] {
		if a.took() {
			keys[a.key] = true
		}
	}
	return len(keys)
}

// record is an event that a store has.
type record struct {
	id     int64
	ref    ref
	event  string
	at     time.Time
	order  int // of becoming durable
	to     []string
	purged bool
	cell   string // that has it
	past   bool   // it was delivered past the store before
	lost   bool   // its cell was given up
}

// holder is the process that a store has given a delivery.
type holder struct {
	who   string
	token int64
	at    time.Time
	turns int // how often it was given away at that moment
}

func newLedger(store reading) *ledger {
	return &ledger{begin: time.Now(), counts: map[string]int{}, store: store, events: map[string]*fact{}, stored: map[ref]*record{}, ids: map[int64]*record{},
		homes: map[string]string{}, cells: map[string]*cellFact{}, paused: map[place]time.Time{}, told: map[place]string{}, short: map[string][2]time.Time{}, holders: map[journal.DeliveryID]holder{}, given: map[journal.DeliveryID]int{}}
}

// log writes a line of the trace.
func (l *ledger) log(who, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.logLocked(who, what)
}

func (l *ledger) logLocked(who, what string) {
	l.lines = append(l.lines, fmt.Sprintf("%-16s %-14s %s", stamp(time.Since(l.begin)), who, what))
}

// stamp is a time in a trace: days, and the time of the day.
func stamp(d time.Duration) string {
	day := 24 * time.Hour
	return fmt.Sprintf("%3dd %s", d/day, time.Time{}.Add(d%day).Format("15:04:05.000"))
}

// fired counts that something happened that the plan wanted, and that it disturbs.
func (l *ledger) fired(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what]++
	l.harm = append(l.harm, harm{what, time.Now()})
}

// count counts what disturbs nothing.
func (l *ledger) count(what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[what]++
}

// breaks says that a law is broken.
func (l *ledger) breaks(law, format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.breaksLocked(law, format, args...)
}

func (l *ledger) breaksLocked(law, format string, args ...any) {
	text := law + ": " + fmt.Sprintf(format, args...)
	l.broken = append(l.broken, text)
	l.logLocked("LAW BROKEN", text)
}

// disturbed reports whether anything of these kinds disturbed near a moment.
func (l *ledger) disturbed(at time.Time, before, after time.Duration, kinds ...string) bool {
	return slices.ContainsFunc(l.harm, func(h harm) bool {
		near := !h.at.Before(at.Add(-before)) && !h.at.After(at.Add(after))
		return near && slices.ContainsFunc(kinds, func(kind string) bool { return strings.HasPrefix(h.what, kind) })
	})
}

// The marks that a body has after the name of its event.
const (
	forgedMark   = "~forged"
	conflictMark = "~conflict"
)

// named returns the name that a body bears.
func named(body []byte) string {
	_, rest, found := strings.Cut(string(body), `"simulation":"`)
	if !found {
		return ""
	}
	name, _, _ := strings.Cut(rest, `"`)
	return name
}

// allNamed returns the names that a body of several events bears.
func allNamed(body []byte) (all []string) {
	for _, rest := range strings.Split(string(body), `"simulation":"`)[1:] {
		name, _, _ := strings.Cut(rest, `"`)
		all = append(all, name)
	}
	return all
}

func base(name string) string {
	name, _, _ = strings.Cut(name, "~")
	return name
}

// accepted books what a store has made durable.
func (l *ledger) accepted(who string, batch []*journal.Record, results []journal.Result) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range results {
		name := named(batch[i].Body)
		f := l.events[base(name)]
		switch {
		case r.Err != nil:
			l.logLocked(who, fmt.Sprintf("refused by the store: %s: %v", name, r.Err))
			continue
		case f == nil:
			l.breaksLocked("verify first", "%s has stored what nobody sent: %q", who, name)
			continue
		case strings.HasSuffix(name, forgedMark):
			l.breaksLocked("verify first", "%s has stored a forged body: %s", who, name)
		}
		l.counts["stored/"+string(r.Status)]++
		l.logLocked(who, fmt.Sprintf("stored %s as %s, id %d", name, r.Status, r.ID))
		if r.Status != journal.Accepted && r.Status != journal.Unkeyed {
			continue
		}
		at := ref{batch[i].Source, batch[i].Key}
		rec := &record{id: r.ID, ref: at, event: name, at: time.Now(), order: len(l.ids), to: slices.Clone(batch[i].Destinations), cell: l.home(who), past: batch[i].CellMap == journal.AnyCellMap}
		l.placed(who, rec, batch[i])
		l.ids[r.ID] = rec
		for _, to := range batch[i].Hold {
			id := journal.DeliveryID{EventID: r.ID, Destination: to}
			l.holders[id] = holder{who, 1, time.Now(), 1}
			l.given[id]++
		}
		if r.Status == journal.Unkeyed {
			f.stored++
			continue
		}
		if old := l.stored[at]; old != nil && !old.purged && !l.excused(old, rec, batch[i]) {
			l.breaksLocked("one claim", "%s is stored a second time, as %d %s beside %d %s", name, r.ID, rec.cell, old.id, old.cell)
		}
		l.stored[at] = rec
	}
}

// circles is how often a delivery is given away at one moment before somebody says so.
const circles = 100

// taken books what a store has given to a process. It reports whether work goes in circles and no time passes: then nothing
// else ever happens, unless whoever asks is held up.
func (l *ledger) taken(who string, work []*journal.Work) (circling bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, w := range work {
		id := journal.DeliveryID{EventID: w.EventID, Destination: w.Destination}
		h := holder{who, w.Token, time.Now(), 1}
		if before := l.holders[id]; before.at.Equal(h.at) {
			h.turns += before.turns
		}
		l.holders[id] = h
		l.given[id]++
		if circling = circling || h.turns >= circles; h.turns == circles {
			l.breaksLocked("nothing goes in circles", "%s takes %s for %s and hands it back %d times at one moment", who, named(w.Body), w.Destination, circles)
		}
		l.logLocked(who, fmt.Sprintf("takes %s for %s, token %d", named(w.Body), w.Destination, w.Token))
	}
	return circling
}

// finished books outcomes that are durable.
func (l *ledger) finished(who string, outcomes []journal.Outcome, applied []bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, o := range outcomes {
		rec := l.ids[o.EventID]
		if rec == nil {
			continue
		}
		l.logLocked(who, fmt.Sprintf("recorded %s at %s: %s, token %d, current %t %s", rec.event, o.Destination, o.State, o.Token, applied[i], o.Error))
		if applied[i] {
			l.counts["recorded/"+string(o.State)]++
		}
		id := journal.DeliveryID{EventID: o.EventID, Destination: o.Destination}
		if applied[i] && o.State == journal.Dead {
			if l.given[id] < attempts && o.Status != 410 && time.Since(rec.at) < 6*24*time.Hour {
				l.breaksLocked("losing is worse", "%s is given up at %s after %d attempts of %d: %s", rec.event, o.Destination, l.given[id], attempts, o.Error)
			}
		}
		if applied[i] && (o.State == journal.Dead || o.State == journal.Failed) {
			l.ours(who, rec, o)
		}
		if applied[i] && o.State == journal.Done {
			l.delivered(rec, o)
		}
	}
}

// delivered checks that what is recorded as done was taken.
func (l *ledger) delivered(rec *record, o journal.Outcome) {
	f := l.events[base(rec.event)]
	if !f.took(o.Destination, rec) && o.Error == "" {
		l.breaksLocked("losing is worse", "%s is recorded as done at %s, which has not taken it as %d", rec.event, o.Destination, rec.id)
	}
}

// openWork names the deliveries that are not done.
func (l *ledger) openWork() map[journal.DeliveryID]journal.State {
	open := map[journal.DeliveryID]journal.State{}
	for _, d := range l.store.Deliveries() {
		open[journal.DeliveryID{EventID: d.EventID, Destination: d.Destination}] = d.State
	}
	return open
}

// purged checks what a step of a purge has left.
func (l *ledger) purged(who string, p journal.Purge, purged journal.Purged, before map[journal.DeliveryID]journal.State) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if purged.Deleted > 0 {
		l.counts["purged/"+fmt.Sprint(p.Kind)] += purged.Deleted
		l.logLocked(who, fmt.Sprintf("purged %d of kind %v", purged.Deleted, p.Kind))
	}
	if p.Kind != journal.KindIDs {
		return
	}
	for id, state := range before { // what is dead nobody finishes meanwhile
		rec := l.ids[id.EventID]
		if l.isLost(rec.cell) {
			continue
		}
		if _, there := l.store.Lookup(rec.ref.source, rec.ref.key); state == journal.Dead && rec.ref.key != "" && !there {
			l.breaksLocked("open work is never purged", "%s forgot %s, which is dead at %s", who, rec.event, id.Destination)
		}
	}
	for at, rec := range l.stored {
		_, there := l.store.Lookup(at.source, at.key)
		age := time.Since(rec.at)
		switch {
		case there || rec.purged || l.isLost(rec.cell):
		case age < l.retain-maxSkew-time.Minute:
			l.breaksLocked("ids outlive the provider's windows", "%s forgot %s after %v; it is to be kept for %v", who, rec.event, age, l.retain)
			fallthrough
		default:
			rec.purged = true
		}
	}
}

// arrived books a request at a destination, and returns its number. It says what it is that arrived.
func (l *ledger) arrived(at, from, name string, h http.Header) (f *fact, n int) {
	key, forced := h.Get(header.IdempotencyKey), h.Get(header.HookonceForced) != ""
	number, _ := strconv.ParseInt(h.Get(header.HookonceEventID), 10, 64)
	l.mu.Lock()
	defer l.mu.Unlock()
	f = l.events[base(name)]
	if f == nil || strings.HasSuffix(name, forgedMark) {
		l.breaksLocked("verify first", "%s got a body that no sender sent: %q", at, name)
		return nil, 0
	}
	l.logLocked(at, fmt.Sprintf("gets %s from %s, key %s, attempt %s", name, from, key, h.Get(header.HookonceAttempt)))
	l.counts["attempts/"+at]++
	before := f.attempts[at]
	this := attempt{at: time.Now(), from: from, number: number, key: key, forced: forced, skewed: l.skewed}
	f.attempts[at] = append(before, this)
	l.ownKey(at, name, f, this, before)
	known, here := pauseKnown, place{l.home(from), at}
	if told, _, _ := strings.Cut(from, "/"); told == l.told[here] {
		known = time.Second
	}
	if since, paused := l.paused[here]; paused && time.Since(since) > known && !l.disturbed(time.Now(), time.Minute, 0, "disk/", "wire/") {
		l.breaksLocked("paused is paused", "%s got %s %v after it was paused", at, name, time.Since(since))
	}
	if rec := l.recordOf(f, name); rec != nil {
		if h.Get(header.HookonceUnprotected) == "" { // what goes past the store has no token
			l.fenced(at, from, rec, h.Get(header.HookonceAttempt))
		}
		l.inOrder(at, rec)
	}
	if f.Keyed {
		l.alone(at, from, name, before)
	}
	if !forced && f.Keyed {
		l.repeated(at, name, before)
	}
	return f, len(before)
}

// ownKey checks that all attempts at an event have the same Idempotency-Key, and that what is on record without a key shares that
// with nothing else: whoever goes by it would take the one for a copy of the other.
func (l *ledger) ownKey(at, name string, f *fact, this attempt, before []attempt) {
	other := func(a attempt) bool { return a.key != this.key && (f.Keyed || a.number == this.number) }
	shared := func(a attempt) bool { return a.key == this.key && !f.Keyed && a.number != this.number }
	if slices.ContainsFunc(before, other) {
		l.breaksLocked("a stable key", "%s got %s as %d under the Idempotency-Key %s, and under another one before", at, name, this.number, this.key)
	}
	if slices.ContainsFunc(before, shared) {
		l.breaksLocked("losing is worse", "%s got %s as %d, which has no key, under the Idempotency-Key %s of another one", at, name, this.number, this.key)
	}
}

// recordOf is what is on record of an event that arrived. Nil: it has no key, or nothing is.
func (l *ledger) recordOf(f *fact, name string) *record {
	if rec := l.keyed(f); rec != nil && f.Keyed && rec.event == name {
		return rec
	}
	return nil
}

// fenced checks that nobody attempts what the store has given to another process.
func (l *ledger) fenced(at, from string, rec *record, attempt string) {
	own, is := l.holders[journal.DeliveryID{EventID: rec.id, Destination: at}]
	switch token, _ := strconv.ParseInt(attempt, 10, 64); {
	case !is, own.who == from, own.token <= token, time.Since(own.at) < 3*time.Second:
	case l.skewed || l.disturbed(time.Now(), time.Minute, 0, "wire/"):
	default:
		l.breaksLocked("a lease that was lost is not used", "%s attempts %s at %s under token %d, and %s has it under %d since %s", from, rec.event, at, token, own.who, own.token, stamp(own.at.Sub(l.begin)))
	}
}

// inOrder checks that the older events of the same resource came first, to the destination that has an order.
func (l *ledger) inOrder(at string, rec *record) {
	if at != plain || l.skewed || l.disturbed(time.Now(), time.Minute, 0, "wire/") {
		return
	}
	f := l.events[base(rec.event)]
	for _, d := range l.store.Deliveries() {
		older := l.ids[d.EventID]
		if d.Destination != at || older == nil || older.cell != rec.cell || older.id >= rec.id || older.order > rec.order || d.State == journal.Dead || d.Origin != journal.OriginFresh {
			continue
		}
		if other := l.events[base(older.event)]; ordered(f.Source) && other.Source == f.Source && other.Object == f.Object {
			l.breaksLocked("order by resource", "%s got %s before %s, which is older, about the same, and %s", at, rec.event, older.event, d.State)
		}
	}
}

// lives is how often a key was stored, because it was forgotten in between.
func (l *ledger) lives(f *fact) (n int) {
	for _, rec := range l.ids {
		if base(rec.event) == f.called {
			n++
		}
	}
	return n
}

// alone checks that nobody attempts what another process is attempting.
func (l *ledger) alone(at, from, name string, before []attempt) {
	for _, a := range before {
		if a.status == 0 && a.from != from && time.Since(a.at) < shortestTimeout-time.Second && !a.skewed && !l.skewed &&
			!l.disturbed(time.Now(), time.Minute, 0, "disk/", "process/", "wire/", "network/", "operator/", "application/dies", "application/commit") {
			l.breaksLocked("a lease that is kept is not taken over", "%s got %s from %s, while the attempt of %s since %s is under way", at, name, from, a.from, stamp(a.at.Sub(l.begin)))
		}
	}
}

// repeated checks that an event which was taken does not come again, unless something happened at that time.
func (l *ledger) repeated(at, name string, before []attempt) {
	lives := l.lives(l.events[base(name)])
	for _, a := range before {
		if !a.took() || a.end.Sub(a.at) > 7*time.Second || a.skewed || l.skewed {
			continue
		}
		if lives > 1 || l.disturbed(a.end, time.Minute, time.Minute, "disk/", "process/", "wire/", "network/", "operator/", "application/dies", "application/commit") {
			continue
		}
		l.breaksLocked("no repetition without a reason", "%s got %s again, which it took at %s when nothing was disturbed", at, name, stamp(a.end.Sub(l.begin)))
		return
	}
}

// answered books what a destination answered.
func (l *ledger) answered(at string, f *fact, n, status int, answer string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f.attempts[at][n].status, f.attempts[at][n].end, f.attempts[at][n].answer = status, time.Now(), answer
	l.logLocked(at, fmt.Sprintf("answers %d to %s", status, f.called))
	if taken := f.taken(at); at == claiming && f.effects[at] < taken {
		l.breaksLocked("nothing is acknowledged before it is durable", "%s answered %d to %s, which it has taken under %d Idempotency-Keys and with %d effects", at, status, f.called, taken, f.effects[at])
	}
}

// effect books that what an application does for an event is committed.
func (l *ledger) effect(at, name string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.events[base(name)]
	f.effects[at]++
	l.counts["effects"]++
	l.logLocked(at, "effect of "+name)
	if strings.HasSuffix(name, forgedMark) {
		l.breaksLocked("verify first", "%s has the effect of a forged body: %s", at, name)
	}
	most := 1
	if !f.Keyed {
		most = f.stored + f.came
	}
	if f.effects[at] > most {
		l.breaksLocked("one effect", "%s has the effect of %s %d times", at, name, f.effects[at])
	}
	if rec := l.keyed(f); rec != nil && f.Keyed && rec.event != name {
		l.breaksLocked("the first copy stands", "%s has the effect of %s, and %s is on record", at, name, rec.event)
	}
}

// keyed returns what is on record of an event with a key.
func (l *ledger) keyed(f *fact) *record {
	for _, rec := range l.stored {
		if base(rec.event) == f.called {
			return rec
		}
	}
	return nil
}

// acked books that a sender read a success. The dead are deliveries that were given up when it sent.
func (l *ledger) acked(name string, got reply, dead map[journal.DeliveryID]int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.events[base(name)]
	status := got.status
	l.logLocked(f.Source, fmt.Sprintf("reads %d to %s %s", status, name, got.answer))
	l.counts["acked"]++
	f.acked = append(f.acked, time.Now())
	rec := l.keyed(f)
	switch {
	case strings.HasSuffix(name, forgedMark):
		l.breaksLocked("verify first", "a forged copy of %s was answered %d", name, status)
	case f.Direct:
		l.ackedDirectly(f, name, status)
	case f.Source == open && f.Keyed && rec == nil:
		l.ackedPast(f, name, got)
	case f.Keyed && rec == nil: // one that was forgotten may be remembered in memory as done
		l.breaksLocked("nothing is acknowledged before it is durable", "%s was answered %d, and is not on record", name, status)
	case f.Keyed && f.Source != open && l.isLost(rec.cell) && time.Since(l.cells[rec.cell].lost) > 15*time.Second:
		l.breaksLocked("nothing is acknowledged before it is durable", "%s was answered %d, and is on record in %s alone, which is lost", name, status, rec.cell)
	case !f.Keyed && f.stored < len(f.acked):
		l.breaksLocked("nothing is acknowledged before it is durable", "%s was answered %d for the %d. time, and is on record %d times", name, status, len(f.acked), f.stored)
	}
	if f.Source == synchronous && !f.Direct && f.Keyed && rec != nil {
		l.replied(f, rec, name, got)
	}
	if f.Source == open && l.disturbed(time.Now(), 2*time.Minute, 0, "disk/") {
		return // what was delivered past the store meanwhile is recorded later
	}
	for _, d := range l.store.Deliveries() {
		if rec != nil && d.EventID == rec.id && d.State == journal.Dead && dead[journal.DeliveryID{EventID: d.EventID, Destination: d.Destination}] == d.Token && d.Token > 0 {
			l.breaksLocked("failed work can be tried again", "a copy of %s was answered %d, and its delivery to %s stays dead", name, status, d.Destination)
		}
	}
}

// deadAt returns the deliveries of events that are given up, with their tokens.
func (l *ledger) deadAt(names []string) map[journal.DeliveryID]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	dead := map[journal.DeliveryID]int64{}
	for _, d := range l.store.Deliveries() {
		if rec := l.ids[d.EventID]; d.State == journal.Dead && rec != nil && slices.Contains(names, rec.event) {
			dead[journal.DeliveryID{EventID: d.EventID, Destination: d.Destination}] = d.Token
		}
	}
	return dead
}

// settle checks, when all is quiet, that nothing that was acknowledged is lost.
func (l *ledger) settle() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.recorded()
	dead := map[journal.DeliveryID]bool{}
	for _, d := range l.store.Deliveries() {
		if d.State == journal.Dead {
			dead[journal.DeliveryID{EventID: d.EventID, Destination: d.Destination}] = true
			continue
		}
		rec := l.ids[d.EventID]
		l.breaksLocked("all comes to an end", "%s at %s is %s although nothing has been disturbed for long; due %v, last error %q", rec.event, d.Destination, d.State, d.Due.Sub(l.begin), d.LastError)
	}
	for _, rec := range slices.SortedFunc(maps.Values(l.ids), func(a, b *record) int { return cmp.Compare(a.order, b.order) }) {
		f := l.events[base(rec.event)]
		for _, at := range rec.to {
			if l.isLost(rec.cell) {
				break
			}
			if !f.took(at, rec) && !dead[journal.DeliveryID{EventID: rec.id, Destination: at}] && !rec.purged {
				l.breaksLocked("losing is worse", "%s is on record as %d, and %s has not taken it", rec.event, rec.id, at)
			}
		}
	}
}

// counted checks what was counted of what was stored: exactly that, unless a process died with what it had not handed over, or
// could not do so.
func (l *ledger) counted(points []tally.Point) {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := int64(0)
	for _, p := range points {
		counts += p.N
	}
	stored := int64(l.counts["stored/accepted"] + l.counts["stored/unkeyed"])
	exact := time.Since(l.begin) < tally.KeepHours && !slices.ContainsFunc(l.harm, func(h harm) bool {
		return slices.ContainsFunc([]string{"disk/", "process/dies"}, func(kind string) bool { return strings.HasPrefix(h.what, kind) })
	})
	l.logLocked("", fmt.Sprintf("%d events are stored, and %d are counted", stored, counts))
	if counts > stored || exact && counts != stored {
		l.breaksLocked("what is counted happened", "%d events were stored, and %d counted", stored, counts)
	}
	if exact {
		l.counts["statistics/exact"]++
	}
}

// maxSkew is how far clocks are off at most.
const maxSkew = 3 * time.Hour

// pauseKnown is how long after an operator's word nothing is attempted any more. By the gateway that heard it, nothing is at once.
const pauseKnown = 20 * time.Second
