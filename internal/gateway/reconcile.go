package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/schedule"
	"github.com/hookonce/hookonce/internal/refusals"
	"github.com/hookonce/hookonce/internal/tally"
	"github.com/hookonce/hookonce/provider/spec"
)

// reconciling compares sources with their senders' lists while a gateway runs. Nothing if it has not begun.
type reconciling struct {
	ctx      context.Context // of all that is under way, on the schedule or because somebody asked
	stop     context.CancelCauseFunc
	schedule *schedule.Schedule
	done     chan struct{} // closed when the schedule has ended; nil if it has not begun
}

// planReconcile turns what a source says of its sender's list into a source of the schedule.
func (p *plan) planReconcile(s *config.Source, before *plan) error {
	if !s.Reconcile.On() || s.Reconcile.Every == 0 {
		return nil
	}
	sender := before.sender(s) // the same where nothing of it changed: a run under way goes on
	if sender == nil {
		var err error
		if sender, err = s.NewProvider(); err != nil { // of its own: that of the endpoint may be wrapped
			return err
		}
	}
	p.reconciled = append(p.reconciled, schedule.Source{
		Name: s.Name, Provider: sender, With: s.Reconcile.Settings(), Token: s.Reconcile.Token.Reveal(), Types: s.Reconcile.Types,
		Every: s.Reconcile.Every, Lag: s.Reconcile.Lag, Remembered: p.cfg.RetentionOf(s).IDs,
		Redeliver: s.Reconcile.Action == config.Redeliver,
	})
	p.stored[s.Name] = s.Reconcile.Action == config.Ingest
	return nil
}

// sender returns whose list the source of that name is compared with, nil if it is not or its provider has changed.
func (p *plan) sender(s *config.Source) *spec.Provider {
	if !p.sameProvider(s) {
		return nil
	}
	i := slices.IndexFunc(p.reconciled, func(old schedule.Source) bool { return old.Name == s.Name })
	if i < 0 {
		return nil
	}
	return p.reconciled[i].Provider
}

// prepareReconcile makes what compares. What is observed from the start on is on record then.
func (g *Gateway) prepareReconcile(ctx context.Context) {
	g.reconciling.ctx, g.reconciling.stop = context.WithCancelCause(context.Background())
	o := schedule.Options{
		Store: g.store, Ledger: onRecord{g.known}, Sources: g.reconciled, Transport: senders{g},
		Found: g.foundMissing, Skipped: g.skipped, Now: g.opt.Now, Logger: g.opt.strange, Registerer: g.opt.Registry,
		Cells: g.cells.Cells != nil,
	}
	g.reconciling.schedule = schedule.New(o)
	g.reconciling.schedule.Observe(ctx)
}

// reconcile begins to compare. A reload ends what runs of a source that it changes.
func (g *Gateway) reconcile() {
	g.reconciling.done = make(chan struct{})
	go func() {
		defer close(g.reconciling.done)
		g.reconciling.schedule.Run(g.reconciling.ctx)
	}()
}

// foundMissing counts by the minute what a run found, and puts on record what it did.
func (g *Gateway) foundMissing(ctx context.Context, source string, n schedule.News) {
	g.tally.Counter(source, "", tally.Missing).Add(int64(n.Missing))
	g.tally.Counter(source, "", tally.Recovered).Add(int64(n.Recovered()))
	for _, a := range recovered(source, byGateway, n.Redelivered, n.Stored, g.opt.Now()) {
		ask, cancel := context.WithTimeout(ctx, auditTime)
		if err := g.store.RecordAudit(ask, a); err != nil {
			g.opt.strange.Warn("reconcile: what was done is not in the audit log, because the store does not answer", "source", source, "why", a.Reason, "count", a.Count, "error", err)
		}
		cancel()
	}
}

// skipped puts on record that nobody compares what was made in a time.
func (g *Gateway) skipped(ctx context.Context, source string, from, until time.Time, why schedule.Why) error {
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	return g.store.RecordAudit(ctx, journal.Audit{At: g.opt.Now(), By: byGateway, Action: journal.ActionReconcile, Filter: source, Reason: gap{from, until, why}.String()})
}

// byGateway is who did what nobody asked for.
const byGateway = "the gateway"

// gap is a time of which a source is not compared, as the audit log says it.
type gap struct {
	from, until time.Time // zero: it goes on
	why         schedule.Why
}

const (
	gapFrom  = "not compared: what its sender made from "
	gapUntil = " to "
	gapWhy   = ", because "
)

func (g gap) String() string {
	until := "now"
	if !g.until.IsZero() {
		until = g.until.UTC().Format(time.RFC3339)
	}
	return gapFrom + g.from.UTC().Format(time.RFC3339) + gapUntil + until + gapWhy + string(g.why)
}

// parseGap reads what [gap.String] wrote.
func parseGap(text string) (g gap, ok bool) {
	text, ok = strings.CutPrefix(text, gapFrom)
	times, why, is := strings.Cut(text, gapWhy)
	from, until, are := strings.Cut(times, gapUntil)
	var wrong [2]error
	g.from, wrong[0] = time.Parse(time.RFC3339, from)
	g.until, wrong[1] = time.Parse(time.RFC3339, until)
	g.why = schedule.Why(why)
	return g, ok && is && are && wrong == [2]error{}
}

// auditTime is how long putting an entry into the audit log may take.
const auditTime = 5 * time.Second

// recovered are the entries of the audit log about events that never arrived.
func recovered(source, by string, redelivered, stored int, now time.Time) (all []journal.Audit) {
	for _, did := range []struct {
		n   int
		why string
	}{
		{redelivered, "never arrived: its sender was asked to send it again"},
		{stored, "never arrived: stored from its sender's list"},
	} {
		if did.n > 0 {
			all = append(all, journal.Audit{At: now, By: by, Action: journal.ActionReconcile, Filter: source, Reason: did.why, Count: int64(did.n)})
		}
	}
	return all
}

// close ends what is under way, which another gateway goes on with. Who asked is told so: the admin listener waits for that.
func (r *reconciling) close() {
	if r.stop != nil {
		r.stop(ErrStopping)
	}
	if r.done != nil {
		<-r.done
	}
}

// reconciled returns the sources that are compared, and those that are observed, so that nobody compares them.
func (g *Gateway) reconciled() []schedule.Source {
	w := g.wired.Load()
	sources := make([]schedule.Source, len(w.reconciled))
	for i, s := range w.reconciled {
		sources[i] = s
		sources[i].Refused = func(_ context.Context, keys []string) (map[string]string, error) {
			last, _ := g.handler.Refusals().Of(s.Name)
			return refused(last, keys), nil
		}
		sources[i].Hold = func(ctx context.Context, missing []reconcile.Missing) (map[string]string, error) {
			found, err := w.underOthers(ctx, g.store, g.known, s.Name, missing)
			return held(found), err
		}
		if w.stored[s.Name] {
			sources[i].Ingest = g.ingestListed
		}
	}
	for i := range w.observed {
		sources = append(sources, schedule.Source{Name: w.observed[i].Name, Observed: true})
	}
	return sources
}

// refused says why the last request was refused that would have had a key, of what this gateway remembers, newest first. Nobody
// verified these keys: they are for people.
func refused(last []refusals.Refusal, keys []string) map[string]string {
	why := map[string]string{}
	for i := range last {
		r := &last[i]
		if _, newer := why[r.UnverifiedKey]; r.UnverifiedKey != "" && !newer && slices.Contains(keys, r.UnverifiedKey) {
			why[r.UnverifiedKey] = r.Words
		}
	}
	return why
}

// ingestListed stores an event from a list, which is delivered then as any other.
func (g *Gateway) ingestListed(ctx context.Context, ev hookonce.Event) (stored bool, err error) {
	result, err := g.handler.Ingest(ctx, &ev)
	return result.Status == journal.Accepted && err == nil, notOurs(err)
}

// notOurs says of an error that the event is another cell's to whoever compares.
func notOurs(err error) error {
	if errors.Is(err, cells.ErrElsewhere) {
		return fmt.Errorf("%w: %w", reconcile.ErrElsewhere, err)
	}
	return err
}

// senders carries requests to the APIs of senders, where deliveries may go.
type senders struct{ g *Gateway }

func (s senders) RoundTrip(r *http.Request) (*http.Response, error) {
	return s.g.wired.Load().senders.RoundTrip(r)
}

// onRecord is the journal as what is on record.
type onRecord struct{ known knower }

// knower is [journal.Reconciler.Known].
type knower func(ctx context.Context, source string, keys []string) (map[string]journal.Known, error)

// Known implements [reconcile.Ledger].
func (l onRecord) Known(ctx context.Context, source string, keys []string) (map[string]reconcile.Known, error) {
	found, err := l.known(ctx, source, keys)
	if err != nil {
		return nil, err
	}
	known := make(map[string]reconcile.Known, len(found))
	for key, k := range found {
		known[key] = reconcile.Known{ID: strconv.FormatInt(k.ID, 10), Received: k.ReceivedAt, Listed: k.Listed && !k.Verified, Status: string(k.State),
			Unfinished: k.State == journal.Dead || k.State == journal.Failed}
	}
	return known, nil
}
