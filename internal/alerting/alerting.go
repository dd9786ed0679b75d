package alerting

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/overview"
)

// Every is how often alerts are evaluated, at the same moments by all gateways.
const Every = 15 * time.Second

const (
	askTime   = 5 * time.Second // for one evaluation, or one word with the store
	awayTime  = 2 * time.Second // for one that people wait for, while it is known that something is wrong with the store
	housework = time.Hour       // between two times that what is old is forgotten
)

// Settings are what may change while the gateway runs.
type Settings struct {
	// Off is set if nothing is evaluated. What was to be told is told.
	Off bool
	// Rules change what fires, and Policy when it moves and is told.
	Rules  alert.Settings
	Policy Policy
	// Addresses are who is told.
	Addresses []Address
	// Name tells this installation from others whose receivers are the same. Empty: there are none.
	Name string
	// Keep is for how long it is on record what happened. Zero: for ever.
	Keep time.Duration
}

// Options are what an [Alerting] stands on. All are needed unless it is said otherwise.
type Options struct {
	// Store remembers alerts. Nil: it is not there yet. Then what is wrong with it is judged and told, and nothing else.
	Store journal.Alerter
	// Local remembers what is wrong with the store. Nil: it begins with nothing. Whoever evaluates later with the same one goes on,
	// and tells nothing again.
	Local *journal.AlertMemory
	// Snapshot returns how all stands.
	Snapshot func(context.Context) (*overview.Snapshot, error)
	// Settings returns what holds now. It is called often.
	Settings func() Settings
	// Gateway is the name of this one for people.
	Gateway string
	// Healthy is called after an evaluation that the store took, if nothing pages, and not waited for: it bounds its own time,
	// and what is under way already. Its context ends when the gateway stops. Nil: nobody is.
	Healthy    func(context.Context)
	Now        func() time.Time
	Logger     *slog.Logger
	Registerer prometheus.Registerer
}

// Alerting evaluates and tells. Its methods are safe for concurrent use.
type Alerting struct {
	opt     Options
	metrics *metrics
	local   *journal.AlertMemory // what is wrong with the store
	senders []*sender
	// of what is local, and of what the store has; nil: there is no store
	sendLocal, sendStored *sender

	stop    context.CancelFunc // nil: it did not start
	running sync.WaitGroup

	turn     sync.Mutex // one evaluation at a time
	silences []journal.Silence
	attended []journal.Alert // local ones that somebody acknowledged, as the store has them
	failing  failing
	cleaned  time.Time
}

// failing says since when the store does not take alerts.
type failing struct {
	since time.Time // zero: it does
	err   error
}

// New returns what evaluates when it is told to, or by itself from [Alerting.Start] on.
func New(o Options) *Alerting {
	a := &Alerting{opt: o, metrics: newMetrics(o.Registerer), local: cmp.Or(o.Local, &journal.AlertMemory{})}
	sending := func(q journal.Alerter) *sender {
		s := &sender{queue: q, opt: &a.opt, metrics: a.metrics, wake: make(chan struct{}, 1)}
		a.senders = append(a.senders, s)
		return s
	}
	if o.Store != nil {
		a.sendStored = sending(o.Store)
	}
	a.sendLocal = sending(a.local)
	return a
}

// Start begins to evaluate every [Every], and to tell. Close must be called.
func (a *Alerting) Start() {
	ctx, cancel := context.WithCancel(context.Background())
	a.stop = cancel
	a.running.Go(func() {
		for {
			now := time.Now()
			timer := time.NewTimer(now.Truncate(Every).Add(Every).Sub(now))
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
				a.Evaluate(ctx)
			}
		}
	})
	for _, s := range a.senders {
		a.running.Go(func() { s.run(ctx) })
	}
}

// Close ends what Start began. What is not told yet stays on record, unless it is about the store.
func (a *Alerting) Close() {
	if a.stop != nil {
		a.stop()
		a.running.Wait()
	}
}

// Desk returns what people use.
func (a *Alerting) Desk() *Desk { return &Desk{Store: a.opt.Store, Local: a.local, Now: a.opt.Now} }

// Flush tells what has to be told now, and waits for it.
func (a *Alerting) Flush(ctx context.Context) {
	for _, s := range a.senders {
		s.flush(ctx)
	}
}

// Evaluate moves the alerts by how all stands now.
func (a *Alerting) Evaluate(caller context.Context) {
	a.turn.Lock()
	defer a.turn.Unlock()
	set := a.opt.Settings()
	if set.Off {
		a.metrics.clear()
		return
	}
	ctx, cancel := context.WithTimeout(caller, askTime)
	defer cancel()
	s, err := a.opt.Snapshot(ctx)
	if err != nil || s == nil {
		return // the gateway stops
	}
	now, verdict := a.opt.Now(), set.Rules.Judge(s)
	var local, others []alert.Alert
	for _, found := range verdict.Alerts {
		if isLocal[found.Rule] {
			local = append(local, found)
		} else {
			others = append(others, found)
		}
	}
	if len(local) == 0 && a.opt.Store != nil { // a store that is away is not asked
		if a.failing.err = a.move(ctx, set, now, others, set.Rules.Blind(s)); a.failing.err == nil {
			a.failing.since = time.Time{}
		} else if a.failing.since.IsZero() {
			a.failing.since = now
		}
		if found := a.failing.alert(s.Config); found != nil && caller.Err() == nil && // not ctx: a store that hangs has used it up
			on(set.Rules, found.Rule) {
			local = append(local, *found)
		}
	}
	a.moveLocal(set, now, local)
	if a.failing.err == nil && verdict.Healthy && a.opt.Healthy != nil {
		a.running.Go(func() { a.opt.Healthy(caller) })
	}
}

// alert is what is wrong if the store does not take alerts. The configuration is that of [alert.Typed].
func (f *failing) alert(config string) *alert.Alert {
	if f.err == nil {
		return nil
	}
	return &alert.Alert{Rule: alert.Unrecorded, Severity: alert.Page, Since: f.since.UTC(),
		Headline: "Nobody is told of what is wrong, because it cannot be put on record since " + f.since.UTC().Format("2006-01-02 15:04:05Z") + ": " + f.err.Error() + ".",
		Action:   alert.Action{Label: "Ask the doctor", Command: alert.Typed("hookonce doctor", config)}}
}

func on(s alert.Settings, rule string) bool { return !s[rule].Off }

// isLocal has the rules that are judged and told without the store.
var isLocal = func() map[string]bool {
	all := map[string]bool{}
	for _, r := range alert.Rules() {
		all[r.Name] = r.Local
	}
	return all
}()

// Local reports whether a rule is judged and told without the store.
func Local(rule string) bool { return isLocal[rule] }

// evaluation returns one by the settings.
func (a *Alerting) evaluation(set *Settings, now time.Time) evaluation {
	return evaluation{Policy: set.Policy, rules: set.Rules.Rules(), now: now, name: set.Name, gateway: a.opt.Gateway, addresses: set.Addresses, key: numbered}
}

// move has the store move the alerts that are not local, and take what happened to those that are.
func (a *Alerting) move(ctx context.Context, set Settings, now time.Time, holds []alert.Alert, blind []alert.Rule) error {
	was, err := a.local.Alerts(ctx)
	if err != nil {
		return err
	}
	happened, err := a.local.AlertHistory(ctx, journal.AlertFilter{}, 0, 1000)
	if err != nil {
		return err
	}
	done := a.local.Audits() // what people did while the store was away
	told := false
	_, err = a.opt.Store.ChangeAlerts(ctx, false, func(b *journal.AlertBook) (*journal.AlertChanges, error) {
		a.silences, a.attended = slices.Clone(b.Silences), attended(b)
		e := a.evaluation(&set, now)
		e.blind = blind
		e.correct(b)
		whole := *b
		e.local = e.aboutTheStore(&whole, was)
		b.Alerts = slices.DeleteFunc(slices.Clone(b.Alerts), func(a journal.Alert) bool { return isLocal[a.Rule] })
		e.book = b
		e.advance(holds)
		a.metrics.count(b, &e.changes)
		e.takeOver(&whole, was, happened)
		e.changes.Audits = done
		if now.Sub(a.cleaned) >= housework {
			e.changes.Abandon, a.cleaned = now.Add(-2*giveUp), now
			if set.Keep > 0 {
				e.changes.Forget = now.Add(-set.Keep)
			}
		}
		told = len(e.changes.Notices) > 0
		return &e.changes, nil
	})
	if err != nil {
		a.cleaned = time.Time{}
		a.opt.Logger.Warn("alerting: what is wrong could not be put on record; it is tried again", "error", err)
		return err
	}
	a.local.TakeAudits(done) // after an error all the same they may be on record, and are there twice then
	a.metrics.evaluated.Set(float64(now.Unix()))
	if told {
		a.sendStored.up()
	}
	return nil
}

// takeOver puts on record what happened to local alerts. What another gateway has put there of the same trouble stands. That
// it is over is told here if nobody did who was there: its process came to an end before.
func (e *evaluation) takeOver(book, local *journal.AlertBook, happened []journal.AlertRecord) {
	e.key = windowed
	for i := range book.Alerts {
		a := &book.Alerts[i]
		here := local.Find(a.AlertID)
		fires := here != nil && here.State == journal.AlertFiring
		if isLocal[a.Rule] && !fires && e.now.Sub(a.Seen) >= 2*orDefault(e.KeepFiring, DefaultKeepFiring) {
			e.miss(a)
		}
	}
	for _, a := range local.Alerts {
		if a.Fired.IsZero() || a.State == journal.AlertPending {
			continue
		}
		known := book.Find(a.AlertID)
		same := known != nil && a.Fired.Sub(known.Fired).Abs() < window
		if same && known.State == journal.AlertFiring && a.State == journal.AlertFiring {
			lasts := *known // with what people did about it there
			acknowledged := attend(&lasts, &a)
			if acknowledged {
				e.takeRecords(happened, &a, journal.AlertAcknowledged)
			}
			if acknowledged || a.Seen.Sub(known.Seen) >= rewrite {
				lasts.Seen, lasts.Body = a.Seen, a.Body
				e.changes.Put = append(e.changes.Put, lasts)
			}
			continue
		}
		if known != nil && (same && (known.State == a.State || a.State == journal.AlertFiring) || !same && a.Fired.Before(known.Fired)) {
			continue
		}
		if known != nil { // what waits to be told of it has that number at most
			a.Transition = max(a.Transition, known.Transition)
		}
		e.changes.Put = append(e.changes.Put, a)
		if same && known.AckBy != "" {
			e.takeRecords(happened, &a, journal.AlertEnded)
		} else if same {
			e.takeRecords(happened, &a, journal.AlertAcknowledged, journal.AlertEnded)
		} else {
			e.takeRecords(happened, &a)
		}
	}
}

// takeRecords puts on record what happened to a local alert since it fires: some events, or none given, all.
func (e *evaluation) takeRecords(happened []journal.AlertRecord, a *journal.Alert, events ...journal.AlertEvent) {
	f := journal.AlertFilter{Rule: a.Rule, Subject: a.Subject, Events: events}
	for _, r := range slices.Backward(happened) {
		if f.Matches(&r) && r.AlertID == a.AlertID && !r.At.Before(a.Fired) {
			r.Text += " (recorded afterwards by " + e.gateway + ")"
			e.changes.Records = append(e.changes.Records, r)
		}
	}
}

// attended returns the local alerts that fire, and that somebody acknowledged.
func attended(b *journal.AlertBook) (all []journal.Alert) {
	for _, a := range b.Alerts {
		if isLocal[a.Rule] && a.State == journal.AlertFiring && a.AckBy != "" {
			all = append(all, a)
		}
	}
	return all
}

// moveLocal moves what is wrong with the store, in memory.
func (a *Alerting) moveLocal(set Settings, now time.Time, holds []alert.Alert) {
	told := false
	_, err := a.local.ChangeAlerts(context.Background(), false, func(b *journal.AlertBook) (*journal.AlertChanges, error) {
		e := a.evaluation(&set, now)
		e.key, e.book = windowed, b
		e.correct(b)
		b.Silences = append(b.Silences, a.silences...)
		e.attend(a.attended)
		e.advance(holds)
		told = len(e.changes.Notices) > 0
		a.metrics.countLocal(b, &e.changes)
		return &e.changes, nil
	})
	if err == nil && told {
		a.sendLocal.up()
	}
}

// Desk is where people look at alerts and decide about them.
type Desk struct {
	Store journal.Alerter
	// Local has what is wrong with the store, see [Alerting.Desk]. Nil: nobody knows.
	Local journal.Alerter
	Now   func() time.Time
}

// NewDesk returns a desk over what a store remembers.
func NewDesk(store journal.Alerter, now func() time.Time) *Desk { return &Desk{Store: store, Now: now} }

// local returns what this process knows of the store itself, and whether anything of it fires. It is asked without the deadline
// of who asks, which a store that hangs may have used up.
func (d *Desk) local(ctx context.Context) (book *journal.AlertBook, fires bool, err error) {
	if d.Local == nil {
		return &journal.AlertBook{}, false, nil
	}
	if book, err = d.Local.Alerts(context.WithoutCancel(ctx)); err != nil {
		return nil, false, err
	}
	return book, slices.ContainsFunc(book.Alerts, func(a journal.Alert) bool { return a.State == journal.AlertFiring }), nil
}

// patient returns how long the store may take for an answer, which is not all of the time that there is: it may hang.
func patient(ctx context.Context, fires bool) (context.Context, context.CancelFunc) {
	if fires {
		return context.WithTimeout(ctx, awayTime)
	}
	return context.WithTimeout(ctx, askTime)
}

// Alerts returns what is remembered, with what this process knows of the store itself. While the store is away that is all.
func (d *Desk) Alerts(ctx context.Context) (*journal.AlertBook, error) {
	local, fires, err := d.local(ctx)
	if err != nil {
		return nil, err
	}
	ask, cancel := patient(ctx, fires)
	defer cancel()
	book, err := d.Store.Alerts(ask)
	if err != nil && !fires {
		return nil, err
	}
	if err != nil {
		book = &journal.AlertBook{Waiting: map[string]int{}}
	}
	for name, n := range local.Waiting {
		book.Waiting[name] += n
	}
	for _, a := range local.Alerts {
		if known := book.Find(a.AlertID); known != nil {
			if a.State == journal.AlertResolved && !a.Fired.After(known.Fired) {
				continue // another gateway saw more of it
			}
			attend(&a, known)
		}
		book.Alerts = append(slices.DeleteFunc(book.Alerts, func(b journal.Alert) bool { return b.AlertID == a.AlertID }), a)
	}
	slices.SortFunc(book.Alerts, func(a, b journal.Alert) int { return a.Compare(b.AlertID) })
	return book, nil
}

// Tried returns what is on record last of each address that was told, or could not be: see [journal.AlertRecord.Address]. Of
// addresses that were told nothing for long there may be none. While the store is away it is what was told without it.
func (d *Desk) Tried(ctx context.Context) map[string]journal.AlertRecord {
	all := map[string]journal.AlertRecord{}
	_, fires, _ := d.local(ctx)
	ask, cancel := patient(ctx, fires)
	defer cancel()
	for _, from := range []journal.Alerter{d.Store, d.Local} {
		for _, events := range [][]journal.AlertEvent{{journal.AlertDelayed, journal.AlertNotTold}, {journal.AlertTold}} { // many are told of much
			if from == nil {
				continue
			}
			found, _ := from.AlertHistory(ask, journal.AlertFilter{Events: events}, 0, lastTried) // of what is in memory, also afterwards
			for _, r := range found {
				name, _ := r.Address()
				if known, is := all[name]; !is || r.At.After(known.At) {
					all[name] = r
				}
			}
		}
	}
	return all
}

// lastTried is among how many of the latest records is looked for what addresses were told.
const lastTried = 200

// History returns what happened to alerts, see [journal.Alerter].
func (d *Desk) History(ctx context.Context, f journal.AlertFilter, before int64, limit int) ([]journal.AlertRecord, error) {
	_, fires, _ := d.local(ctx)
	ask, cancel := patient(ctx, fires)
	defer cancel()
	return d.Store.AlertHistory(ask, f, before, limit)
}

// Acknowledge says that somebody takes care of an alert: it is not repeated until it is resolved, and is told again only if it
// becomes more severe. An error is [journal.ErrNoAlert] unless it fires.
func (d *Desk) Acknowledge(ctx context.Context, id journal.AlertID, by, reason string) error {
	to := d.Store
	if isLocal[id.Rule] {
		local, _, err := d.local(ctx)
		if err != nil {
			return err
		}
		if here := local.Find(id); here != nil && here.State == journal.AlertFiring { // else another gateway put it on record
			to = d.Local
		}
	}
	_, err := to.ChangeAlerts(ctx, false, func(b *journal.AlertBook) (*journal.AlertChanges, error) {
		known := b.Find(id)
		if known == nil || known.State != journal.AlertFiring {
			return nil, journal.ErrNoAlert
		}
		now, a := d.Now(), *known
		a.AckBy, a.AckReason, a.AckAt = by, reason, now
		return &journal.AlertChanges{
			Put:     []journal.Alert{a},
			Records: []journal.AlertRecord{{AlertID: id, At: now, Event: journal.AlertAcknowledged, Transition: a.Transition, Severity: a.Severity, Text: reason, By: by}},
			Audits:  []journal.Audit{{At: now, By: by, Reason: reason, Action: journal.ActionAcknowledge, Filter: id.Fingerprint()}},
		}, nil
	})
	return err
}

// sentTwice is how much later a silence is asked for once more that was asked for already: a form that was sent twice, or an
// answer that was lost. Of two silences one would go on when somebody ends the other.
const sentTwice = time.Minute

// Silence keeps alerts from being told until then, and returns the silence, which may be one that was asked for a moment ago.
// That one is resolved is told all the same, to whoever was told of it.
func (d *Desk) Silence(ctx context.Context, s journal.Silence) (journal.Silence, error) {
	var changes *journal.AlertChanges
	_, err := d.Store.ChangeAlerts(ctx, false, func(b *journal.AlertBook) (*journal.AlertChanges, error) {
		s.At = d.Now()
		if i := slices.IndexFunc(b.Silences, func(of journal.Silence) bool {
			return of.Rule == s.Rule && of.Subject == s.Subject && of.By == s.By && of.Reason == s.Reason &&
				s.At.Sub(of.At).Abs() < sentTwice && s.Until.Sub(of.Until).Abs() < sentTwice
		}); i >= 0 {
			changes = &journal.AlertChanges{Silence: b.Silences[i : i+1]}
			return &journal.AlertChanges{}, nil
		}
		changes = d.about(&s, journal.AlertSilenced, journal.ActionSilence, s.By, s.Reason)
		changes.Records[0].Text = "until " + s.Until.UTC().Format(time.RFC3339) + ": " + s.Reason
		changes.Silence = []journal.Silence{s}
		return changes, nil
	})
	if err != nil {
		return s, err
	}
	return changes.Silence[0], nil
}

// Unsilence ends a silence. An error is [journal.ErrNoAlert] if there is none.
func (d *Desk) Unsilence(ctx context.Context, id int64, by, reason string) error {
	_, err := d.Store.ChangeAlerts(ctx, false, func(b *journal.AlertBook) (*journal.AlertChanges, error) {
		i := slices.IndexFunc(b.Silences, func(s journal.Silence) bool { return s.ID == id })
		if i < 0 {
			return nil, journal.ErrNoAlert
		}
		changes := d.about(&b.Silences[i], journal.AlertUnsilenced, journal.ActionUnsilence, by, reason)
		changes.Unsilence = []int64{id}
		return changes, nil
	})
	return err
}

// about returns what is on record of a silence.
func (d *Desk) about(s *journal.Silence, event journal.AlertEvent, action journal.Action, by, reason string) *journal.AlertChanges {
	now := d.Now()
	return &journal.AlertChanges{
		Records: []journal.AlertRecord{{AlertID: journal.AlertID{Rule: s.Rule, Subject: s.Subject}, At: now, Event: event, Text: reason, By: by}},
		Audits:  []journal.Audit{{At: now, By: by, Reason: reason, Action: action, Filter: cmp.Or(s.Rule, "*") + "/" + cmp.Or(s.Subject, "*")}},
	}
}
