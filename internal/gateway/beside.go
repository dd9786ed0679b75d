package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/closest"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/ingest"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/reconcile"
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
}

// Beside is a process beside the gateways on a store. It compares sources with their senders' lists and delivers nothing.
type Beside struct {
	plan  *plan
	store *journalStore
	ids   *journal.IDs
	opt   Options
}

// OpenBeside opens the store of a configuration. Close must be called. The error is one line for people; a file that a gateway
// has is [ErrInUse].
func OpenBeside(ctx context.Context, cfg *config.Config, o Options) (*Beside, error) {
	b := &Beside{opt: o.withDefaults()}
	var err error
	if b.plan, err = newPlan(cfg, nil); err != nil {
		return nil, err
	}
	if b.store, b.ids, err = openStore(ctx, b.plan.store, b.opt); err != nil {
		return nil, err
	}
	return b, nil
}

// Close closes the store.
func (b *Beside) Close() error { return b.store.Close() }

// Reconcile compares one source. Its results are those of [reconcile.Run]; a nil report says that nothing was asked.
func (b *Beside) Reconcile(ctx context.Context, c Comparison) (*reconcile.Report, error) {
	r, err := b.plan.compare(ctx, c, b.opt, b.store.Known, b.ingest)
	if r == nil {
		return nil, err
	}
	record, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditTime)
	defer cancel()
	for _, a := range recovered(c.Source, "hookonce reconcile", r.Redelivered, r.Stored, b.opt.Now()) {
		if failed := b.store.RecordAudit(record, a); failed != nil {
			err = errors.Join(err, fmt.Errorf("what was done is not in the audit log: %w", failed))
		}
	}
	return r, err
}

// ingest stores an event from a list, which the gateways on the store deliver.
func (b *Beside) ingest(ctx context.Context, ev hookonce.Event) (stored bool, err error) {
	i := slices.IndexFunc(b.plan.ingest.Sources, func(s ingest.Source) bool { return s.Name == ev.Source })
	if i < 0 {
		return false, fmt.Errorf("%w: %q", ingest.ErrNoSource, ev.Source)
	}
	entry, err := ingest.NewLister(b.plan.ingest.Sources[i]).Event(&ev, b.opt.Now())
	if err != nil {
		return false, err
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

// compare compares one source of the plan.
func (p *plan) compare(ctx context.Context, c Comparison, o Options, known knower, ingest ingester) (*reconcile.Report, error) {
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
	return reconcile.Run(ctx, opts)
}

// comparable returns a source that can be compared, or says why it cannot.
func (p *plan) comparable(name string) (*config.Source, error) {
	i := slices.IndexFunc(p.cfg.Sources, func(s config.Source) bool { return s.Name == name })
	if i < 0 {
		return nil, p.noSource(name)
	}
	s := &p.cfg.Sources[i]
	if !s.Reconcile.On() {
		if sender, err := s.NewProvider(); err == nil && sender.Spec().Reconcile == nil {
			return nil, fmt.Errorf("source %q: no API of %s is known that lists its events; compare its objects with yours instead, by the time of their last change", name, cmp.Or(sender.Spec().Title, sender.Name()))
		}
		return nil, fmt.Errorf("source %q says nothing of its sender's list; write reconcile: {token: \"env:NAME\"} there", name)
	}
	return s, nil
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
