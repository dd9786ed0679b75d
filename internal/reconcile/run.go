package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider/spec"
)

// The bounds of what waits for the second look.
const (
	maxPending      = 20_000   // events
	maxPendingBytes = 64 << 20 // of their bodies, where they are to be stored
)

// forgetting is how long before its key is forgotten an event is not asked about any more: the sender's clock may be ahead, so
// that it came before it was made.
const forgetting = 10 * time.Minute

// Run reads the list, compares it with what is on record, and acts on what is missing. What it found is returned with an error,
// too: with that of a context that ended, of a list that broke off, of a ledger that could not be asked. Events that were
// missing then were still looked up a second time and acted on, unless that is what failed.
//
// Errors are [ErrLies], [ErrRights] and [*AnswerError] where the sender's API is at fault, and those of the options: they are
// returned without a report, before anything is asked.
func Run(ctx context.Context, opts Options) (*Report, error) {
	if err := opts.check(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	began := opts.Now()
	if opts.Until.Before(opts.Since) {
		return nil, errors.New("until is before since")
	}
	c, err := newClient(&opts)
	if err != nil {
		return nil, err
	}
	if err := c.canAct(); err != nil {
		return nil, err
	}
	r := &run{opts: &opts, began: began, client: c, lister: newLister(c, &opts), pending: map[string]*pending{}, decided: map[sum]struct{}{}, again: map[string]error{}}
	r.ranged = c.ranged()
	r.report = &Report{Source: opts.Source, Provider: opts.Provider.Name(), Until: opts.Until, Window: c.spec.Window, Events: []Missing{}}
	r.report.Since, r.report.Cut = r.lister.Since()
	if opts.Until.Before(r.report.Since) {
		return nil, r.report.BeforeList()
	}
	r.report.Settled = r.report.Since
	return r.report, r.run(ctx)
}

// check refuses options that make no run.
func (o *Options) check() error {
	switch {
	case o.Source == "" || o.Provider == nil || o.Ledger == nil || o.Since.IsZero():
		return errors.New("a run needs source, provider, ledger and since")
	case o.Redeliver && o.Ingest != nil:
		return errors.New("redeliver and ingest exclude each other: what the sender sends again would be stored before it comes")
	}
	return nil
}

// canAct refuses actions that the sender does not offer.
func (c *client) canAct() error {
	switch {
	case c.opts.Redeliver && c.spec.Redeliver == nil:
		return fmt.Errorf("%s documents no API that sends an event again; store what is missing from the list instead", c.opts.Provider.Name())
	case c.opts.Ingest != nil && (c.spec.List.Event == nil || c.spec.List.Event.Body == "" && c.spec.Detail == nil):
		return fmt.Errorf("the list of %s does not have the events themselves, so none can be stored", c.opts.Provider.Name())
	}
	return nil
}

// run is a run while it lasts.
type run struct {
	opts   *Options
	client *client
	lister *Lister
	report *Report

	pending map[string]*pending // by key: not on record at the first look
	order   []string            // of their keys
	lost    []*pending          // without a key, and not delivered
	bytes   int                 // of the bodies in pending
	decided map[sum]struct{}    // keys that are counted
	again   map[string]error    // what was sent again, and what came of it
	stopped error               // why nothing more is sent again or stored
	young   time.Time           // of the oldest event that was too young to be missing when it was looked up
	read    time.Time           // the time of the entry that was read last
	began   time.Time           // by our clock
	done    int
	todo    int
	ranged  bool // the sender alone keeps the list to the range: it is asked for that, and says no times
}

// pending is an event that was not on record at the first look.
type pending struct {
	missing Missing
	event   hookonce.Event
	whole   bool   // the event has its body
	again   string // see Entry
}

// run reads, compares, and looks a second time.
func (r *run) run(ctx context.Context) error {
	var failed error
	for page, err := range r.lister.Pages(ctx) {
		if err != nil {
			failed = err
			break
		}
		r.report.Pages++
		if failed = r.page(ctx, page); failed != nil {
			break
		}
		r.progress()
	}
	// What was found counts, whatever ended the reading; a context that ended allows no second look.
	failed = cmp.Or(failed, r.settle(ctx))
	r.undelivered(ctx)
	failed = cmp.Or(failed, r.stopped)
	r.report.Answered, r.report.Ahead = r.lister.answered, r.lister.ahead
	if failed == nil {
		r.report.Settled = r.until()
		if !r.young.IsZero() && r.young.Before(r.report.Settled) { // it has grown old since, but nobody looked again
			r.report.Settled = r.young
		}
	}
	return failed
}

// ranged reports whether a list keeps to a range that nobody else could hold it to, because it has no times.
func (c *client) ranged() bool {
	l := c.spec.List
	return l.Time == nil && slices.Contains(slices.Concat(l.Path.Names(), l.Body.Names()), "since")
}

// undated reports whether nobody knows when an event was made, so that it may be from before the range, and have been done by somebody
// else.
func (r *run) undated(m *Missing) bool {
	return !r.ranged && (m.Time.IsZero() || m.Time.Before(r.report.Since.Truncate(time.Second)))
}

// tooYoung reports whether an event may be under way, and remembers the oldest of those.
func (r *run) tooYoung(p *pending) bool {
	at := p.missing.Time
	if !at.After(r.until()) {
		return false
	}
	if r.young.IsZero() || at.Before(r.young) {
		r.young = at
	}
	return true
}

// forgotten reports whether the key of an event may have been on record and be forgotten by now. It is asked after the key was
// looked up, so that what is remembered now was remembered then.
func (r *run) forgotten(p *pending) bool {
	keep, at := r.opts.Remembered, p.missing.Time
	return keep > 0 && !at.IsZero() && at.Before(r.opts.Now().Add(min(forgetting, keep/8)-keep))
}

// until is the time before which an event can be missing. It goes by the sender's clock where ours is ahead of it: what is made until
// ours is right again would count as compared. What was made since the run began may not have been listed yet.
func (r *run) until() time.Time {
	until := r.report.Until
	for _, ours := range []time.Time{r.began, r.opts.Now().Add(-r.opts.Lag)} {
		if at := ours.Add(-r.lister.ahead); at.Before(until) {
			until = at
		}
	}
	return until
}

func (r *run) progress() {
	rep := r.report
	r.opts.Progress(Progress{
		Pages: rep.Pages, Entries: rep.Entries, Listed: rep.Listed, Missing: rep.Missing + len(r.pending),
		At: r.read, Done: r.done, Todo: r.todo,
	})
}

// page compares the events of one page.
func (r *run) page(ctx context.Context, page Page) error {
	r.report.Repeated += page.Repeated
	r.report.Entries += len(page.Entries) + page.Repeated
	var fresh []*pending
	for i := range page.Entries {
		e := &page.Entries[i]
		r.read = e.Time
		if len(e.Events) == 0 && r.inRange(e.Time) {
			r.unkeyed(e, hookonce.Event{})
		}
		for _, event := range e.Events {
			if at := timeOf(e, event); !r.inRange(at) && !(e.Time.IsZero() && at.Before(r.report.Since)) {
				continue // what is older by its own time alone may have been sent since
			}
			if p := r.take(e, event); p != nil {
				fresh = append(fresh, p)
			}
		}
	}
	for chunk := range slices.Chunk(fresh, MaxKeys) {
		known, err := r.look(ctx, chunk)
		if err != nil {
			return err
		}
		for _, p := range chunk {
			r.firstLook(p, known)
		}
	}
	if len(r.pending) >= maxPending || r.bytes >= maxPendingBytes {
		return r.settle(ctx)
	}
	return nil
}

// timeOf is when an event was made, as far as the list says: when its entry was, or else what it says itself.
func timeOf(e *Entry, event hookonce.Event) time.Time {
	if e.Time.IsZero() {
		return event.Time
	}
	return e.Time
}

// inRange reports whether a time is in the range. It may be cut off at the second. What is undated is looked up as well.
func (r *run) inRange(at time.Time) bool {
	return at.IsZero() || !at.Before(r.report.Since.Truncate(time.Second)) && !at.After(r.report.Until)
}

// take counts an event, and returns it if it is to be compared: if it has a key, and that for the first time. Of several entries
// about one event the newest counts, and any of them can say that it was delivered.
func (r *run) take(e *Entry, event hookonce.Event) *pending {
	if event.Key == "" {
		r.unkeyed(e, event)
		return nil
	}
	if p := r.pending[event.Key]; p != nil {
		p.merge(e, event)
		r.keep(p, e, event)
		return nil
	}
	id := sumOf([]byte(event.Key))
	if _, is := r.decided[id]; is {
		return nil
	}
	r.decided[id] = struct{}{}
	r.report.Listed++
	if !wanted(r.opts.Types, event.Type) {
		r.report.Other++
		return nil
	}
	p := &pending{missing: missingOf(e, event), again: e.Again}
	r.keep(p, e, event)
	r.pending[p.missing.Key] = p
	return p
}

// merge adds what another entry says of the same event. One that can be sent again counts before others, then the newest.
func (p *pending) merge(e *Entry, event hookonce.Event) {
	was := p.missing
	if better := e.Again != ""; better != (p.again != "") && better || better == (p.again != "") && e.Time.After(was.Time) {
		p.missing, p.again = missingOf(e, event), e.Again
	}
	if was.Delivery == Delivered || e.Delivery == Delivered {
		p.missing.Delivery = Delivered
	}
}

// keep keeps the body of the event, if it is to be stored and an entry has all of it.
func (r *run) keep(p *pending, e *Entry, event hookonce.Event) {
	if r.opts.Ingest != nil && e.Whole && !p.whole {
		p.event, p.whole = event, true
		r.bytes += len(event.Body)
	}
}

// missingOf says what an entry has of an event, in texts of their own: a part of a body would keep all of it in memory.
func missingOf(e *Entry, event hookonce.Event) Missing {
	return Missing{
		Key: strings.Clone(event.Key), Type: strings.Clone(event.Type), Resource: strings.Clone(event.Resource), Tenant: strings.Clone(event.Tenant),
		Time: timeOf(e, event), Entry: e.ID, Delivery: e.Delivery,
	}
}

// unkeyed counts an event that cannot be compared.
func (r *run) unkeyed(e *Entry, event hookonce.Event) {
	r.report.Listed++
	if !wanted(r.opts.Types, event.Type) {
		r.report.Other++
		return
	}
	p := &pending{missing: missingOf(e, event), again: e.Again}
	if e.Delivery == Undelivered && r.opts.OnlyDated && r.undated(&p.missing) {
		r.report.Undated++
		return
	}
	r.report.Unkeyed++
	if e.Delivery == Undelivered && len(r.lost) < MaxMissing {
		r.lost = append(r.lost, p)
	}
}

// look asks what is on record.
func (r *run) look(ctx context.Context, some []*pending) (map[string]Known, error) {
	keys := make([]string, len(some))
	for i, p := range some {
		keys[i] = p.missing.Key
	}
	known, err := r.opts.Ledger.Known(ctx, r.opts.Source, keys)
	if err != nil {
		return nil, fmt.Errorf("looking up what is on record: %w", err)
	}
	return known, nil
}

// firstLook keeps what is not on record for the second look.
func (r *run) firstLook(p *pending, known map[string]Known) {
	if k, is := known[p.missing.Key]; is {
		r.known(p, k)
		delete(r.pending, p.missing.Key)
		r.bytes -= len(p.event.Body)
		return
	}
	r.order = append(r.order, p.missing.Key)
}

// known counts an event that is on record.
func (r *run) known(p *pending, k Known) {
	r.report.Known++
	if !k.Unfinished {
		return
	}
	if r.report.NotDone++; len(r.report.Unfinished) < MaxMissing {
		m := &p.missing
		r.report.Unfinished = append(r.report.Unfinished, Unfinished{Key: m.Key, Type: m.Type, Time: m.Time, Status: k.Status, Error: k.Error})
	}
}

// settle looks a second time at what was not on record, and acts on what still is not.
func (r *run) settle(ctx context.Context) error {
	var all []*pending
	for _, key := range r.order {
		all = append(all, r.pending[key])
	}
	r.oldestFirst(all)
	// Events of a page that could not be looked up at all are neither known nor missing.
	r.pending, r.order, r.bytes = map[string]*pending{}, nil, 0
	if r.acts() {
		r.todo += len(all)
	}
	for chunk := range slices.Chunk(all, MaxKeys) {
		if err := r.secondLook(ctx, chunk); err != nil {
			return err
		}
	}
	return nil
}

// oldestFirst brings events into the order in which they happened, as far as the list tells.
func (r *run) oldestFirst(all []*pending) {
	if r.client.spec.List.Sort == spec.Newest {
		slices.Reverse(all)
	}
	slices.SortStableFunc(all, func(a, b *pending) int { return a.missing.Time.Compare(b.missing.Time) })
}

// undelivered reports what has no key and was not delivered, and has it sent again. What is young may be under way.
func (r *run) undelivered(ctx context.Context) {
	r.oldestFirst(r.lost)
	for _, p := range r.lost {
		if r.tooYoung(p) {
			continue
		}
		if r.opts.Redeliver {
			switch m := &p.missing; {
			case r.opts.Hold != nil && r.undated(m):
				m.Outcome, m.Why = Held, whyUndated
			case r.opts.Asked != nil && m.Entry != "" && r.opts.Asked(*m):
				m.Outcome = Redelivered
			}
			r.todo++
			r.act(ctx, p)
		}
		r.report.Undelivered = append(r.report.Undelivered, p.missing)
	}
}

// secondLook tells what came meanwhile from what is too young, and from what is missing.
func (r *run) secondLook(ctx context.Context, some []*pending) error {
	known, err := r.look(ctx, some)
	if err != nil {
		return err
	}
	var missing []*pending
	for _, p := range some {
		switch k, is := known[p.missing.Key]; {
		case is:
			r.known(p, k)
			r.report.Late++
		case r.tooYoung(p):
			r.report.Young++
		case r.forgotten(p):
			r.report.Forgotten++
		case r.opts.OnlyDated && r.undated(&p.missing):
			r.report.Undated++
		default:
			missing = append(missing, p)
			continue
		}
		if r.acts() {
			r.todo--
		}
	}
	if len(missing) == 0 {
		return nil
	}
	refused, err := r.refusals(ctx, missing)
	if err != nil {
		return err
	}
	held := r.hold(ctx, missing, refused)
	for _, p := range missing {
		if why, is := held[p.missing.Key]; is {
			p.missing.Outcome, p.missing.Why = Held, why
		}
		r.report.Missing++
		if p.missing.Refused = refused[p.missing.Key]; p.missing.Refused != "" {
			r.report.Refused++
		}
		r.act(ctx, p)
		if len(r.report.Events) < MaxMissing {
			r.report.Events = append(r.report.Events, p.missing)
		}
	}
	return nil
}

// hold asks whether something may be done about what is missing, and returns why not, by key.
func (r *run) hold(ctx context.Context, missing []*pending, refused map[string]string) (held map[string]string) {
	if r.opts.Hold == nil || !r.acts() || r.stopped != nil {
		return nil
	}
	all := make([]Missing, len(missing))
	for i, p := range missing {
		all[i] = p.missing
		all[i].Refused = refused[p.missing.Key]
	}
	held, r.stopped = r.opts.Hold(ctx, all)
	for i := range all {
		if _, is := held[all[i].Key]; !is && r.undated(&all[i]) {
			if held == nil {
				held = map[string]string{}
			}
			held[all[i].Key] = whyUndated
		}
	}
	return held
}

// whyUndated is why nothing is done about what is undated.
const whyUndated = "nobody knows when it was made"

// refusals asks why what is missing was refused.
func (r *run) refusals(ctx context.Context, missing []*pending) (map[string]string, error) {
	if r.opts.Refused == nil {
		return nil, nil
	}
	keys := make([]string, len(missing))
	for i, p := range missing {
		keys[i] = p.missing.Key
	}
	why, err := r.opts.Refused(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("asking what was refused: %w", err)
	}
	return why, nil
}
