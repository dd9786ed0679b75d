package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/closest"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/schedule"
	"github.com/hookonce/hookonce/provider/spec"
)

// ErrInUse says that a gateway has the file of the store, in which nobody else can look.
var ErrInUse = sqlite.ErrInUse

// Comparison is what a source is asked for beside the gateways, see [Beside.Reconcile].
type Comparison struct {
	Source string
	// Since, Until, Redeliver and Progress are as in [reconcile.Options].
	Since, Until time.Time
	Redeliver    bool
	Progress     func(reconcile.Progress)
	// Ingest has missing events stored, which the gateways on the store deliver.
	Ingest bool
	// Really does it although it may be done twice: the keys are on record under another source (see [ErrRenamed]), or the events were
	// made while requests went past the gateway.
	Really bool
	// Refused says why requests to the source were refused, by the key that they would have had. Its error is in the report and
	// ends nothing. Nil: nobody is asked.
	Refused func(ctx context.Context, source string, keys []string) (map[string]string, error)
}

// ErrRenamed says that what is missing is on record under another source, of which this one has the sender's events since: what would
// be stored, or sent again, would be delivered a second time.
var ErrRenamed = errors.New("nothing was done about them")

// Beside is a process beside the gateways on a store. It compares sources with their senders' lists and delivers nothing.
type Beside struct {
	plan  *plan
	store *journalStore
	ids   *journal.IDs
	opt   Options
	cells *cells.Cells // nil: there are none
}

// OpenBeside opens the store of a configuration. Close must be called. The error is one line for people; a file that a gateway
// has is [ErrInUse].
func OpenBeside(ctx context.Context, cfg *config.Config, o Options) (*Beside, error) {
	b := &Beside{opt: o.withDefaults()}
	var err error
	if b.plan, err = newPlan(cfg, nil); err != nil {
		return nil, err
	}
	if b.store, b.ids, err = openExisting(ctx, b.plan.store, b.opt); err != nil {
		return nil, err
	}
	if err := b.openCells(ctx); err != nil {
		return nil, errors.Join(err, b.store.Close())
	}
	return b, nil
}

// openCells looks at the cells that the store belongs with.
func (b *Beside) openCells(ctx context.Context) error {
	if b.plan.cell.name == "" {
		return b.store.withoutCells(ctx)
	}
	look, err := b.plan.cellOptions(b.store, b.store.Known, b.opt)
	if err == nil {
		b.cells, err = cells.Look(ctx, look)
	}
	return err
}

// Close closes the store.
func (b *Beside) Close() error {
	if b.cells != nil {
		b.cells.Close()
		b.plan.cell.peers.CloseIdleConnections()
	}
	return b.store.Close()
}

// known is what is on record of keys, in any cell.
func (b *Beside) known(ctx context.Context, source string, keys []string) (map[string]journal.Known, error) {
	if b.cells == nil {
		return b.store.Known(ctx, source, keys)
	}
	return b.cells.KnownAnywhere(ctx, source, keys)
}

// Reconcile compares one source. Its results are those of [reconcile.Run]; a nil report says that nothing was asked.
func (b *Beside) Reconcile(ctx context.Context, c Comparison) (*reconcile.Report, error) {
	r, err := b.plan.compare(ctx, c, b.opt, b.store, b.known, b.ingest)
	if r == nil {
		return nil, err
	}
	return r, errors.Join(err, conclude(ctx, b.store, c, r, err == nil, "hookonce reconcile", b.opt.Now()))
}

// concluder is what remembers what a comparison did.
type concluder interface {
	journal.MissingKeeper
	RecordAudit(ctx context.Context, a journal.Audit) error
}

// conclude puts on record, also if ctx ended, what a comparison did, and on whose account. through says that it came to its end.
func conclude(ctx context.Context, store concluder, c Comparison, r *reconcile.Report, through bool, by string, now time.Time) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	for _, a := range recovered(c.Source, by, r.Redelivered, r.Stored, now) {
		if failed := store.RecordAudit(ctx, a); failed != nil {
			err = errors.Join(err, fmt.Errorf("what was done is not in the audit log: %w", failed))
		}
	}
	if through && err == nil && c.Until.IsZero() && r.Missing == r.Stored+r.Arrived && len(r.Undelivered) == 0 {
		err = foundNothing(ctx, store, r, by, now)
	}
	return err
}

// foundNothing ends the count of events that gateways found missing and that there was no room for, if the run looked at all of
// them.
func foundNothing(ctx context.Context, store journal.MissingKeeper, r *reconcile.Report, by string, now time.Time) error {
	_, err := store.DismissMissing(ctx, journal.Dismissal{Source: r.Source, Since: r.Since, At: now, By: by, Reason: "compared again: nothing is missing"})
	if err != nil {
		return fmt.Errorf("what was missing before is still counted: %w", err)
	}
	return nil
}

// ingest stores an event from a list, which the gateways on the store deliver, unless it belongs to another cell.
func (b *Beside) ingest(ctx context.Context, ev hookonce.Event) (stored bool, err error) {
	i := slices.IndexFunc(b.plan.ingest.Sources, func(s ingest.Source) bool { return s.Name == ev.Source })
	if i < 0 {
		return false, fmt.Errorf("%w: %q", ingest.ErrNoSource, ev.Source)
	}
	entry, err := ingest.NewLister(b.plan.ingest.Sources[i]).Event(&ev, b.opt.Now())
	if err != nil {
		return false, err
	}
	if b.cells != nil {
		p, err := b.cells.Place(ctx, ev.Source, &hookonce.Verified{Events: []hookonce.Event{ev}}, nil, nil)
		if err == nil {
			err = p.Stranger()
		}
		if err != nil {
			return false, notOurs(err)
		}
		entry.CellMap = p.Map
	}
	store := engine.Beside{Store: b.store, Notifier: b.store.notifier, Destinations: b.plan.journal.Destinations, IDs: b.ids, Now: b.opt.Now}
	results, err := store.Ingest(ctx, []*journal.Event{entry})
	if err != nil {
		return false, err
	}
	return results[0].Status == journal.Accepted && results[0].Err == nil, results[0].Err
}

// ingester stores an event from a list, and reports whether it did.
type ingester func(context.Context, hookonce.Event) (bool, error)

// recorder is what has on record how sources were compared.
type recorder interface {
	journal.Reconciler
	Audits(ctx context.Context, before int64, limit int) ([]journal.Audit, error)
}

// compare compares one source of the plan.
func (p *plan) compare(ctx context.Context, c Comparison, o Options, store recorder, known knower, ingest ingester) (*reconcile.Report, error) {
	s, err := p.comparable(c.Source)
	if err != nil {
		return nil, err
	}
	sender, err := s.NewProvider()
	if err != nil {
		return nil, err
	}
	if ids := p.cfg.RetentionOf(s).IDs; ids > 0 && c.Since.Before(o.Now().Add(-ids)) {
		return nil, fmt.Errorf("since: ids of source %q are remembered for %s, so that what came before cannot be told from what never arrived; ask for less", s.Name, spec.FormatDuration(ids))
	}
	opts := reconcile.Options{
		Source: s.Name, Provider: sender, With: s.Reconcile.Settings(), Token: s.Reconcile.Token.Reveal(), Types: s.Reconcile.Types,
		Ledger: onRecord{known}, Since: c.Since, Until: c.Until, Lag: lag(s), Remembered: p.cfg.RetentionOf(s).IDs, Redeliver: c.Redeliver, Progress: c.Progress,
		Now: o.Now, Transport: p.senders, Log: o.Logger,
	}
	if c.Ingest {
		opts.Ingest = ingest
	}
	if !c.Really {
		gaps := sync.OnceValues(func() ([]gap, error) {
			past, err := observedSince(ctx, store, s.Name, c.Since)
			if edge := o.Now().Add(-p.cfg.RetentionAudits); p.cfg.RetentionAudits > 0 && c.Since.Before(edge) {
				past = append(past, gap{from: c.Since.Truncate(time.Second), until: edge, why: unaudited})
			}
			return past, err
		})
		opts.Hold = func(ctx context.Context, missing []reconcile.Missing) (map[string]string, error) {
			found, err := p.underOthers(ctx, store, known, s.Name, missing)
			past, failed := gaps()
			why := madeIn(past, missing)
			maps.Copy(why, held(found))
			return why, cmp.Or(err, failed, p.renamed(ctx, store, s.Name, found, len(missing)))
		}
	}
	var unknown error
	if c.Refused != nil {
		opts.Refused = func(ctx context.Context, keys []string) (why map[string]string, err error) {
			why, err = c.Refused(ctx, s.Name, keys)
			unknown = cmp.Or(unknown, err)
			return why, nil
		}
	}
	r, err := reconcile.Run(ctx, opts)
	if r != nil && unknown != nil {
		r.RefusedUnknown = unknown.Error()
	}
	return r, err
}

// unaudited is why of what was made longer ago than the audit log goes back nobody knows whether it was observed.
const unaudited schedule.Why = "the audit log, which would say that requests went past the gateway, does not go back so far (retention.audits)"

// auditPage is how many entries of the audit log are read at once.
const auditPage = 1000

// observedSince returns when, since a time, requests of a source went past the gateway: what was made then is not on record and may
// have been done. The last is first.
func observedSince(ctx context.Context, store recorder, source string, since time.Time) (gaps []gap, err error) {
	marks, err := store.Marks(ctx)
	for _, m := range marks {
		if from, is := schedule.ObservedSince(m); is && m.Source == source {
			gaps = append(gaps, gap{from: from, why: schedule.Observed})
		}
	}
	for before, more := int64(0), err == nil; more; {
		var page []journal.Audit
		page, err = store.Audits(ctx, before, auditPage)
		lately := false // something of the page was written since then: gaps are when they are over, by clocks that may differ
		for _, a := range page {
			g, is := parseGap(a.Reason)
			if is && a.Action == journal.ActionReconcile && a.Filter == source && g.why == schedule.Observed && !g.until.Before(since) {
				gaps = append(gaps, g)
			}
			before, lately = a.ID, lately || a.At.After(since.Add(-journal.MuchAhead))
		}
		more = lately && len(page) == auditPage
	}
	if err != nil {
		return nil, fmt.Errorf("looking for when the source was observed: %w", err)
	}
	return gaps, nil
}

// madeIn says why nothing is done about missing events that were made in one of the gaps, by their keys. One of which nobody knows when
// it was made may have been.
func madeIn(gaps []gap, missing []reconcile.Missing) map[string]string {
	why := map[string]string{}
	for i := range missing {
		at := missing[i].Time
		for _, g := range gaps {
			if at.IsZero() || !at.Before(g.from) && (g.until.IsZero() || !at.After(g.until)) {
				why[missing[i].Key] = "it may have been delivered: " + g.String()
			}
		}
	}
	return why
}

// underOthers returns where missing events are on record under other sources of the same sender: under the name that this one has had,
// or has had in between. What came under it would be delivered a second time, because a key belongs to its source. A source of another
// provider can have the same keys by chance.
func (p *plan) underOthers(ctx context.Context, store journal.Reconciler, known knower, source string, missing []reconcile.Missing) (map[string]journal.Elsewhere, error) {
	keys := make([]string, len(missing))
	for i := range missing {
		keys[i] = missing[i].Key
	}
	found, err := store.KnownElsewhere(ctx, source, p.strangers(source), keys)
	if err == nil && p.cell.name != "" {
		err = p.underOthersAnywhere(ctx, store, known, source, keys, found)
	}
	if err != nil {
		return nil, fmt.Errorf("looking for them under other sources: %w", err)
	}
	return found, nil
}

// underOthersAnywhere adds what other cells have: the same key under another name may belong to another cell. Asked about are the
// sources that are configured, and those that ever were compared.
func (p *plan) underOthersAnywhere(ctx context.Context, store journal.Reconciler, known knower, source string, keys []string, found map[string]journal.Elsewhere) error {
	marks, err := store.Marks(ctx)
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range marks {
		names[marks[i].Source] = true
	}
	for i := range p.cfg.Sources {
		names[p.cfg.Sources[i].Name] = true
	}
	delete(names, source)
	for _, name := range p.strangers(source) {
		delete(names, name)
	}
	for name := range names {
		has, err := known(ctx, name, keys)
		if err != nil {
			return err
		}
		for key, k := range has {
			if k.ReceivedAt.After(found[key].ReceivedAt) {
				found[key] = journal.Elsewhere{Source: name, ReceivedAt: k.ReceivedAt}
			}
		}
	}
	return nil
}

// strangers are the sources whose events are certainly of another sender: of one that is not configured nobody knows.
func (p *plan) strangers(source string) (names []string) {
	of := map[string]string{}
	for i := range p.cfg.Sources {
		of[p.cfg.Sources[i].Name] = p.cfg.Sources[i].Provider
	}
	for name, provider := range of {
		if provider != of[source] {
			names = append(names, name)
		}
	}
	return names
}

// held says why nothing is done about events that another source has.
func held(found map[string]journal.Elsewhere) map[string]string {
	why := map[string]string{}
	for key, e := range found {
		why[key] = fmt.Sprintf("on record under %s, received at %s", e.Source, e.ReceivedAt.UTC().Format(time.RFC3339))
	}
	return why
}

// renamed refuses to do something about any event where some of those that are missing are on record under another source, which had them
// when this one had none yet: it is likely to be the same source under its old name.
func (p *plan) renamed(ctx context.Context, store journal.Reconciler, source string, found map[string]journal.Elsewhere, missing int) error {
	var last journal.Elsewhere
	for _, e := range found {
		if e.ReceivedAt.After(last.ReceivedAt) {
			last = e
		}
	}
	count := len(found)
	if count == 0 {
		return nil
	}
	if before, err := store.HasBefore(ctx, source, last.ReceivedAt); err != nil || before {
		return err
	}
	return fmt.Errorf("%w: %d of %d events that are missing at %s are on record under %s, the last of them received at %s, and %s has none from before; if it is the same source under a new name, choose --since after that; else say --really",
		ErrRenamed, count, missing, source, last.Source, last.ReceivedAt.UTC().Format(time.RFC3339), source)
}

// comparable returns a source that can be compared, or says why it cannot.
func (p *plan) comparable(name string) (*config.Source, error) {
	i := slices.IndexFunc(p.cfg.Sources, func(s config.Source) bool { return s.Name == name })
	if i < 0 {
		return nil, p.noSource(name)
	}
	s := &p.cfg.Sources[i]
	if why := incomparable(s); why != "" {
		return nil, fmt.Errorf("source %q: %s", name, why)
	}
	return s, nil
}

// incomparable says why a source cannot be compared with its sender's list, and what to do. It is empty if it can be.
func incomparable(s *config.Source) string {
	if s.Reconcile.On() {
		return ""
	}
	if s.Mode == config.Observe {
		return "with mode: observe nothing is recorded that a list could be held against"
	}
	if sender, listed := s.Lists(); !listed {
		return fmt.Sprintf("no API of %s is known that lists its events; compare its objects with yours instead, by the time of their last change", sender)
	}
	return `it says nothing of its sender's list; write reconcile: {token: "env:NAME", every: 15m} there`
}

// notCompared says why gateways do not compare a source by themselves, and what to do. It is empty if they do.
func notCompared(s *config.Source) string {
	why := incomparable(s)
	if why == "" && s.Reconcile.Every == 0 {
		why = "its reconcile says nothing of every; write every: 15m there, or ask with hookonce reconcile --source " + s.Name + " --since 48h"
	}
	return why
}

// noSource says that there is none of that name, and which was meant or which there are.
func (p *plan) noSource(name string) error {
	var names []string
	for i := range p.cfg.Sources {
		names = append(names, p.cfg.Sources[i].Name)
	}
	text := fmt.Sprintf("there is no source %q in the configuration", name)
	if near, ok := closest.Word(name, names); ok {
		return fmt.Errorf("%s; did you mean %q?", text, near)
	}
	if len(names) > 0 && len(names) <= 10 {
		text += "; it has " + strings.Join(names, ", ")
	}
	return errors.New(text)
}

// lag is how old an event of a source is before it can be missing, as [reconcile.Options] has it.
func lag(s *config.Source) time.Duration {
	if s.Reconcile.Lag == 0 {
		return -1
	}
	return s.Reconcile.Lag
}
