package alerting

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/testskip"
)

var began = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// receiver is an address: it remembers what it got, and is down when it is told to be.
type receiver struct {
	mu   sync.Mutex
	down error
	got  []Message
	all  []Message // those that it refused among them
	lost bool      // the next answer, although the message arrived
}

func (r *receiver) Notify(_ context.Context, m Message) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, m)
	if r.down != nil {
		return r.down
	}
	r.got = append(r.got, m)
	if r.lost {
		r.lost = false
		return errors.New("the connection was reset")
	}
	return nil
}

// incidents are what a receiver that keeps the keys of alerts, which a webhook has, makes of it: "state subject", each key once.
func (r *receiver) incidents() (all []string) {
	keys := map[string]bool{}
	for _, m := range r.got {
		for _, n := range m.Notifications {
			if !keys[n.Key] {
				keys[n.Key] = true
				all = append(all, string(n.State)+" "+n.Fingerprint)
			}
		}
	}
	return all
}

// world is a clock, a store, how all stands, and gateways that look at it.
type world struct {
	*testing.T
	now      time.Time
	store    journal.Alerter
	snapshot overview.Snapshot
	settings Settings
	ops      *receiver
	gateways []*Alerting
}

func newWorld(t *testing.T, gateways int) *world {
	w := &world{T: t, now: began, store: &journal.AlertMemory{}, ops: &receiver{}}
	w.settings.Addresses = []Address{{Name: "ops", Severities: []alert.Severity{alert.Page, alert.Ticket}, Notifier: w.ops}}
	for i := range gateways {
		w.gateways = append(w.gateways, w.gateway(fmt.Sprint("gw-", i)))
	}
	return w
}

// through is the store of the world, whichever that is at the moment.
type through struct{ w *world }

func (s through) ChangeAlerts(ctx context.Context, try bool, change func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	return s.w.store.ChangeAlerts(ctx, try, change)
}
func (s through) Alerts(ctx context.Context) (*journal.AlertBook, error) {
	return s.w.store.Alerts(ctx)
}
func (s through) AlertHistory(ctx context.Context, f journal.AlertFilter, before int64, limit int) ([]journal.AlertRecord, error) {
	return s.w.store.AlertHistory(ctx, f, before, limit)
}
func (s through) TakeNotices(ctx context.Context, now, lease time.Time, addresses []string, limit int) ([]journal.Notice, error) {
	return s.w.store.TakeNotices(ctx, now, lease, addresses, limit)
}
func (s through) FinishNotices(ctx context.Context, outcomes []journal.NoticeOutcome) ([]bool, error) {
	return s.w.store.FinishNotices(ctx, outcomes)
}

func (w *world) gateway(name string) *Alerting {
	late := time.Duration(len(w.gateways)) * 2 * time.Second // no two look at the same moment
	return New(Options{Store: through{w}, Gateway: name, Now: func() time.Time { return w.now.Add(late) }, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
		Settings: func() Settings { return w.settings },
		Snapshot: func(context.Context) (*overview.Snapshot, error) {
			s := w.snapshot
			s.At = w.now
			return &s, nil
		}})
}

// dead makes so many deliveries of each destination dead.
func (w *world) dead(n int64, destinations ...string) {
	w.snapshot.Destinations = nil
	for _, name := range destinations {
		w.snapshot.Destinations = append(w.snapshot.Destinations, overview.DestinationState{Destination: fleet.Destination{Name: name}, Dead: n})
	}
}

// pass lets time pass, with an evaluation by every gateway every 15 seconds.
func (w *world) pass(d time.Duration) {
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(Every)
		for _, g := range w.gateways {
			g.Evaluate(w.Context())
		}
		for _, g := range w.gateways {
			g.Flush(w.Context())
		}
	}
}

// told expects these to be all that the receiver ever heard.
func (w *world) told(want ...string) {
	w.Helper()
	if got := w.ops.incidents(); !slices.Equal(got, want) {
		w.Fatalf("at %v it was told %q, want %q", w.now.Sub(began), got, want)
	}
}

func (w *world) messages(want int) {
	w.Helper()
	if got := len(w.ops.got); got != want {
		w.Fatalf("at %v there were %d messages, want %d: %q", w.now.Sub(began), got, want, w.ops.incidents())
	}
}

func (w *world) state(rule, subject string, want journal.AlertState) *journal.Alert {
	w.Helper()
	b, err := w.store.Alerts(w.Context())
	if err != nil {
		w.Fatal(err)
	}
	a := b.Find(journal.AlertID{Rule: rule, Subject: subject})
	if a == nil || a.State != want {
		w.Fatalf("%s/%s is %+v, want it %s", rule, subject, a, want)
	}
	return a
}

func (w *world) happened(rule string) (all []string) {
	h, err := w.store.AlertHistory(w.Context(), journal.AlertFilter{Rule: rule}, 0, 1000)
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range slices.Backward(h) {
		all = append(all, string(r.Event))
	}
	return all
}

// An alert that holds fires once it holds long enough, goes on for a while after it held last, and is told once and when it is over.
func TestLifeCycle(t *testing.T) {
	w := newWorld(t, 1)
	w.settings.Rules = alert.Settings{"died": {For: ptr(time.Minute)}}
	w.dead(1, "ledger")
	w.pass(time.Minute)
	w.state("died", "ledger", journal.AlertPending)
	w.told()
	w.pass(Every)
	w.state("died", "ledger", journal.AlertFiring)
	w.told("firing died/ledger")
	w.pass(time.Hour)
	w.dead(0)
	w.pass(4 * time.Minute) // it flaps
	w.dead(1, "ledger")
	w.pass(time.Minute)
	w.dead(0)
	w.pass(DefaultKeepFiring - Every)
	w.state("died", "ledger", journal.AlertFiring)
	w.told("firing died/ledger")
	w.pass(Every)
	w.state("died", "ledger", journal.AlertResolved)
	w.told("firing died/ledger", "resolved died/ledger")
	if got := w.happened("died"); !slices.Equal(got, []string{"fired", "told", "resolved", "told"}) {
		t.Errorf("on record: %q", got)
	}
	w.dead(1, "ledger")
	w.pass(30 * time.Second) // shorter than it has to
	w.dead(0)
	w.pass(time.Hour)
	w.messages(2)
	w.dead(1, "ledger")
	w.pass(2 * time.Minute)
	w.told("firing died/ledger", "resolved died/ledger", "firing died/ledger")
}

func ptr[T any](v T) *T { return &v }

// What lasts is told again after a day, or four hours if it pages, and no more once somebody acknowledged it; that it became
// worse is told at once, also then.
func TestRepeatsEscalationAndAcknowledgement(t *testing.T) {
	testskip.Long(t)
	w := newWorld(t, 1)
	desk := w.gateways[0].Desk()
	w.dead(1, "ledger")
	w.pass(DefaultRepeatTicket)
	w.told("firing died/ledger")
	w.pass(Every)
	w.told("firing died/ledger", "repeat died/ledger")
	id := journal.AlertID{Rule: "died", Subject: "ledger"}
	if err := desk.Acknowledge(t.Context(), id, "ada", "I look at it"); err != nil {
		t.Fatal(err)
	}
	w.pass(2 * DefaultRepeatTicket)
	w.messages(2)
	w.snapshot.Destinations[0].Hour.Dead = 11
	w.pass(Every)
	w.told("firing died/ledger", "repeat died/ledger", "firing died/ledger")
	if last := w.ops.got[2].Notifications[0]; last.Severity != alert.Page {
		t.Errorf("it became worse: %+v", last)
	}
	w.pass(time.Minute)
	w.snapshot.Destinations[0].Hour.Dead = 0
	w.pass(time.Minute)
	w.snapshot.Destinations[0].Hour.Dead = 11 // to and fro
	w.pass(time.Minute)
	w.messages(3)
	w.dead(0)
	w.pass(DefaultKeepFiring + Every)
	w.messages(4)
	if a := w.state("died", "ledger", journal.AlertResolved); a.AckBy != "" {
		t.Errorf("it is acknowledged still: %+v", a)
	}
	if err := desk.Acknowledge(t.Context(), id, "ada", ""); !errors.Is(err, journal.ErrNoAlert) {
		t.Errorf("what is over can be acknowledged: %v", err)
	}
	w.dead(1, "ledger")
	w.pass(Every)
	w.messages(5)
	w.dead(20, "ledger")
	w.snapshot.Destinations[0].Hour.Dead = 20
	w.pass(DefaultRepeatPage + 2*Every)
	w.messages(7) // worse, and again
}

// Who acknowledged a page that then fell to a ticket knows nothing of another cause that makes it a
// page again: it is told, and is not acknowledged any more. To and fro is quiet for as long as
// between two times that a page is told.
func TestAcknowledgedPageThatEasedPagesAgain(t *testing.T) {
	testskip.Long(t)
	w := newWorld(t, 2)
	id := journal.AlertID{Rule: "died", Subject: "ledger"}
	lately := func(dead int64, d time.Duration) {
		w.Helper()
		w.dead(500, "ledger")
		w.snapshot.Destinations[0].Hour.Dead = dead
		w.pass(d)
	}
	acknowledge := func() {
		w.Helper()
		if err := w.gateways[0].Desk().Acknowledge(t.Context(), id, "ada", "I look at it"); err != nil {
			t.Fatal(err)
		}
	}
	lately(11, time.Minute)
	acknowledge()
	lately(0, DefaultRepeatTicket)
	lately(11, Every)
	w.told("firing died/ledger", "firing died/ledger")
	if last := w.ops.got[1].Notifications[0]; last.Severity != alert.Page {
		t.Errorf("it is a page again: %+v", last)
	}
	if a := w.state("died", "ledger", journal.AlertFiring); a.AckBy != "" {
		t.Errorf("it is acknowledged still: %+v", a)
	}
	h, err := w.store.AlertHistory(t.Context(), journal.AlertFilter{Events: []journal.AlertEvent{journal.AlertEscalated}}, 0, 9)
	if err != nil || len(h) != 1 || !strings.HasSuffix(h[0].Text, "(no longer acknowledged by ada)") {
		t.Errorf("on record: %+v, %v", h, err)
	}
	// A moment as a ticket ends nothing, and what comes soon after it was told waits for its time.
	acknowledge()
	for range 10 {
		lately(0, DefaultKeepFiring-Every)
		lately(11, DefaultKeepFiring-Every)
	}
	if a := w.state("died", "ledger", journal.AlertFiring); a.AckBy != "ada" {
		t.Errorf("to and fro ended it: %+v", a)
	}
	w.messages(2)
	lately(0, time.Hour)
	lately(11, Every)
	w.messages(2)
	if a := w.state("died", "ledger", journal.AlertFiring); a.AckBy != "" {
		t.Errorf("it is acknowledged still: %+v", a)
	}
	lately(11, DefaultRepeatPage)
	w.messages(3)
	// What a pause hides is not less severe for that.
	acknowledge()
	w.snapshot.Destinations[0].Pause = &fleet.Pause{At: w.now, By: "bob", Reason: "upgrade"}
	w.pass(2 * DefaultKeepFiring)
	lately(11, Every)
	if a := w.state("died", "ledger", journal.AlertFiring); a.AckBy != "ada" {
		t.Errorf("a pause ended it: %+v", a)
	}
	w.messages(3)
}

// That nobody knows whether something is wrong is no end of it: it goes on to fire, and who
// acknowledged it still does. It ends when the store answers again and it is over, or where another
// gateway knows.
func TestABlindGatewayEndsNothing(t *testing.T) {
	w := newWorld(t, 1)
	g := w.gateways[0]
	var beats atomic.Int64
	g.opt.Healthy = func(context.Context) { beats.Add(1) }
	w.dead(1, "ledger")
	w.snapshot.Sources = []overview.SourceState{{Name: "orders", Hour: overview.Intake{Conflicts: 3}}}
	w.pass(time.Minute)
	w.told("firing conflict/orders", "firing died/ledger")
	if err := g.Desk().Acknowledge(t.Context(), journal.AlertID{Rule: "died", Subject: "ledger"}, "ada", "I look at it"); err != nil {
		t.Fatal(err)
	}
	// It was restarted, and counts nothing for as long as the store is too slow for that.
	w.dead(0)
	w.snapshot.Sources = nil
	w.snapshot.Parts = []overview.Part{{Name: overview.PartOpen, Error: "timeout"}, {Name: overview.PartMinutes, Read: w.now}}
	g.running.Wait()
	beats.Store(0)
	w.pass(DefaultKeepFiring + Every)
	g.running.Wait()
	w.told("firing conflict/orders", "firing died/ledger", "firing store_unread/", "resolved conflict/orders")
	if a := w.state("died", "ledger", journal.AlertFiring); a.AckBy != "ada" {
		t.Errorf("it is not acknowledged any more: %+v", a)
	}
	if n := beats.Load(); n > 0 {
		t.Errorf("it said %d times that all is well", n)
	}
	w.snapshot.Parts[0] = overview.Part{Name: overview.PartOpen, Read: w.now}
	w.pass(Every)
	g.running.Wait()
	w.state("died", "ledger", journal.AlertResolved)
	if beats.Load() == 0 {
		t.Error("it does not say that all is well")
	}
	// One that sees ends what another one is blind for.
	w.dead(1, "ledger")
	w.pass(Every)
	w.state("died", "ledger", journal.AlertFiring)
	w.dead(0)
	w.snapshot.Parts[0].Error = "timeout"
	seeing := w.gateway("seeing")
	seeing.opt.Snapshot = func(context.Context) (*overview.Snapshot, error) { return &overview.Snapshot{At: w.now}, nil }
	w.gateways = append(w.gateways, seeing)
	w.pass(DefaultKeepFiring + Every)
	w.state("died", "ledger", journal.AlertResolved)
}

// What was pending when the store ceased to answer has to hold anew, for as long as it has to.
func TestWhatIsPendingIsNotKeptByBlindness(t *testing.T) {
	w := newWorld(t, 1)
	w.settings.Rules = alert.Settings{"died": {For: ptr(time.Minute)}}
	w.dead(1, "ledger")
	w.pass(30 * time.Second)
	w.dead(0)
	w.snapshot.Parts = []overview.Part{{Name: overview.PartOpen, Error: "timeout"}}
	w.pass(lapse + Every)
	w.state("died", "ledger", journal.AlertResolved)
	w.dead(1, "ledger")
	w.snapshot.Parts = nil
	w.pass(30 * time.Second)
	w.state("died", "ledger", journal.AlertPending)
}

// How long an alert goes on, and when it is told again, is as it is configured.
func TestPolicy(t *testing.T) {
	w := newWorld(t, 1)
	w.settings.Policy = Policy{KeepFiring: 20 * time.Minute, RepeatPage: time.Hour, RepeatTicket: 2 * time.Hour}
	w.dead(1, "ledger", "mail")
	w.snapshot.Destinations[0].Hour.Dead = 11 // which pages
	w.pass(time.Hour)
	w.told("firing died/ledger", "firing died/mail")
	w.pass(Every)
	w.told("firing died/ledger", "firing died/mail", "repeat died/ledger")
	w.pass(time.Hour)
	w.told("firing died/ledger", "firing died/mail", "repeat died/ledger", "repeat died/ledger", "repeat died/mail")
	w.dead(0)
	w.pass(20*time.Minute - Every)
	w.state("died", "ledger", journal.AlertFiring)
	w.messages(3)
	w.pass(Every)
	w.state("died", "ledger", journal.AlertResolved)
	w.messages(4)
}

// What one of several gateways sees fires, though the others, which take turns with it, do not; what nobody sees any more is over.
func TestSeenByOneOfSeveral(t *testing.T) {
	w := newWorld(t, 3)
	for _, g := range w.gateways[1:] {
		g.opt.Snapshot = func(context.Context) (*overview.Snapshot, error) { return &overview.Snapshot{At: w.now}, nil }
	}
	w.settings.Rules = alert.Settings{"died": {For: ptr(time.Minute)}}
	w.dead(1, "ledger")
	w.pass(30 * time.Second)
	w.state("died", "ledger", journal.AlertPending)
	w.dead(0)
	w.pass(lapse + Every)
	w.state("died", "ledger", journal.AlertResolved)
	w.dead(1, "ledger")
	w.pass(time.Minute + Every)
	w.told("firing died/ledger")
}

// What is silenced, follows from something else, or is for those who look is not told; when the silence ends it is.
func TestSilenceAndCause(t *testing.T) {
	w := newWorld(t, 1)
	desk := w.gateways[0].Desk()
	s, err := desk.Silence(t.Context(), journal.Silence{Subject: "ledger", Until: w.now.Add(time.Hour), By: "ada", Reason: "moving"})
	if err != nil || s.ID == 0 {
		t.Fatal(s, err)
	}
	w.now = w.now.Add(time.Second) // the form is sent twice: whoever ends one silence has ended both
	if twice, err := desk.Silence(t.Context(), journal.Silence{Subject: "ledger", Until: w.now.Add(time.Hour), By: "ada", Reason: "moving"}); err != nil || twice.ID != s.ID {
		t.Errorf("asked twice: %+v, %v; want silence %d", twice, err, s.ID)
	}
	w.now = w.now.Add(-time.Second)
	w.dead(1, "ledger", "mail")
	w.pass(time.Hour - Every)
	w.told("firing died/mail")
	w.pass(2 * Every)
	w.told("firing died/mail", "firing died/ledger")
	if s, err = desk.Silence(t.Context(), journal.Silence{Rule: "died", Until: w.now.Add(48 * time.Hour), By: "ada", Reason: "known"}); err != nil {
		t.Fatal(err)
	}
	w.pass(26 * time.Hour)
	w.messages(2)
	if err := desk.Unsilence(t.Context(), s.ID, "ada", "done"); err != nil {
		t.Fatal(err)
	}
	if err := desk.Unsilence(t.Context(), s.ID, "ada", "done"); !errors.Is(err, journal.ErrNoAlert) {
		t.Errorf("again: %v", err)
	}
	w.pass(Every)
	w.messages(3) // both are repeated, in one
	if err != nil || len(w.ops.got[2].Notifications) != 2 {
		t.Errorf("%+v", w.ops.got[2])
	}
	pause := &fleet.Pause{At: w.now, By: "bob", Reason: "upgrade"}
	old := w.now.Add(-time.Hour)
	w.snapshot.Destinations = []overview.DestinationState{{Destination: fleet.Destination{Name: "hub", Pause: pause}, Oldest: &old, Since: &old, Backlog: 5, Dead: 3}}
	w.pass(time.Hour)
	if got := w.ops.incidents(); len(got) != 6 || slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, "/hub") }) {
		t.Errorf("a pause is told, or what follows from it: %q", got)
	}
	w.state("backlog_old", "hub", journal.AlertFiring)
	w.snapshot.Destinations[0].Pause, w.snapshot.Destinations[0].Health = nil, &fleet.Health{State: "ill"}
	w.pass(time.Hour)
	if got := w.ops.incidents(); got[len(got)-1] != "firing destination_failing/hub" || slices.Contains(got, "firing backlog_old/hub") {
		t.Errorf("of an illness, and what follows from it: %q", got)
	}
}

// All of one rule is one message.
func TestOneMessageForEachRule(t *testing.T) {
	w := newWorld(t, 1)
	var names []string
	for i := range MaxSubjects + 10 {
		names = append(names, fmt.Sprintf("d%02d", i))
	}
	w.dead(1, names...)
	w.snapshot.Sources = []overview.SourceState{{Name: "orders", Hour: overview.Intake{Conflicts: 3}}}
	w.pass(Every)
	w.messages(3)
	if n := len(w.ops.incidents()); n != len(names)+1 {
		t.Errorf("%d alerts were told", n)
	}
}

// Three gateways tell each alert once, also when one of them is killed while it sends, and a message whose answer was lost
// comes again under its keys.
func TestThreeGateways(t *testing.T) {
	w := newWorld(t, 3)
	w.dead(1, "ledger")
	w.pass(Every)
	w.messages(1)
	// One takes what has to be told, and is never heard of again.
	w.dead(1, "ledger", "mail")
	w.now = w.now.Add(Every)
	w.gateways[0].Evaluate(t.Context())
	if taken, err := w.store.TakeNotices(t.Context(), w.now, w.now.Add(leaseTime), []string{"ops"}, 9); len(taken) != 1 || err != nil {
		t.Fatal(taken, err)
	}
	w.gateways = w.gateways[1:]
	w.pass(leaseTime - Every)
	w.messages(1)
	w.pass(2 * Every)
	w.told("firing died/ledger", "firing died/mail")
	w.ops.lost = true
	w.dead(0)
	w.pass(time.Hour)
	w.told("firing died/ledger", "firing died/mail", "resolved died/ledger", "resolved died/mail")
	w.messages(4)
	if a, b := w.ops.got[2], w.ops.got[3]; a.Key != b.Key {
		t.Errorf("sent again under %q, before under %q", b.Key, a.Key)
	}
}

// away is a store that does not answer.
type away struct{ err error }

func (a away) ChangeAlerts(context.Context, bool, func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	return false, a.err
}
func (a away) Alerts(context.Context) (*journal.AlertBook, error) { return nil, a.err }
func (a away) AlertHistory(context.Context, journal.AlertFilter, int64, int) ([]journal.AlertRecord, error) {
	return nil, a.err
}
func (a away) TakeNotices(context.Context, time.Time, time.Time, []string, int) ([]journal.Notice, error) {
	return nil, a.err
}
func (a away) FinishNotices(context.Context, []journal.NoticeOutcome) ([]bool, error) {
	return nil, a.err
}

// hangs is a store that does not answer before nobody waits any more.
type hangs struct{}

func (hangs) ChangeAlerts(ctx context.Context, _ bool, _ func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	<-ctx.Done()
	return false, ctx.Err()
}
func (hangs) Alerts(ctx context.Context) (*journal.AlertBook, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (hangs) AlertHistory(ctx context.Context, _ journal.AlertFilter, _ int64, _ int) ([]journal.AlertRecord, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (hangs) TakeNotices(ctx context.Context, _, _ time.Time, _ []string, _ int) ([]journal.Notice, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}
func (hangs) FinishNotices(ctx context.Context, _ []journal.NoticeOutcome) ([]bool, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// What concerns the store is shown and acknowledged while it is away, also if it hangs, in less than the time of who asks; what
// was told without it is known. Where nothing is known to be wrong with it, it is waited for longer, and its error is told.
func TestPeopleAreAnsweredWithoutTheStore(t *testing.T) {
	for name, store := range map[string]journal.Alerter{"it fails": away{errors.New("gone")}, "it hangs": hangs{}} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, 1)
			w.store = store
			desk := w.gateways[0].Desk()
			ask := func(what string, within time.Duration, wanted bool, question func(context.Context) error) {
				t.Helper()
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				if err := question(ctx); (err == nil) != wanted || time.Since(began) > within {
					t.Errorf("%s: %s: %v after %v", name, what, err, time.Since(began))
				}
			}
			list := func(ctx context.Context) error {
				_, err := desk.Alerts(ctx)
				return err
			}
			ask("alerts, of which none is known", askTime, false, list)
			w.snapshot.Store.Away = &overview.Trouble{Since: w.now, Error: "gone"}
			w.pass(5 * time.Minute)
			ask("alerts", awayTime, true, list)
			ask("acknowledge", 0, true, func(ctx context.Context) error {
				return desk.Acknowledge(ctx, journal.AlertID{Rule: "store_away"}, "ada", "I look at it")
			})
			ask("who was told", awayTime, true, func(ctx context.Context) error {
				if told := desk.Tried(ctx)["ops"]; told.Event != journal.AlertTold {
					return fmt.Errorf("%+v", told)
				}
				return nil
			})
			ask("history", awayTime, false, func(ctx context.Context) error {
				_, err := desk.History(ctx, journal.AlertFilter{}, 0, 10)
				return err
			})
			late, cancel := context.WithCancel(t.Context())
			cancel()
			if book, err := desk.Alerts(late); err != nil || len(book.Alerts) != 1 || book.Alerts[0].AckBy != "ada" {
				t.Errorf("%s: whoever asks too late sees %+v, %v", name, book, err)
			}
		})
	}
}

// A store that is away for ten minutes under three gateways is one incident for a receiver that groups by key, and hides the
// rest; it is on record when the store is back, once.
func TestStoreAway(t *testing.T) {
	w := newWorld(t, 3)
	w.pass(Every)
	store, gone := w.store, errors.New("connection refused")
	w.store, w.snapshot.Store.Away = away{gone}, &overview.Trouble{Since: w.now, Error: gone.Error()}
	w.dead(1, "ledger")
	w.pass(10 * time.Minute)
	w.told("firing store_away/")
	w.messages(3) // one of each gateway, under one key
	book, err := w.gateways[0].Desk().Alerts(t.Context())
	if err != nil || len(book.Alerts) != 1 || book.Alerts[0].State != journal.AlertFiring {
		t.Errorf("people see %+v, %v", book, err)
	}
	w.store, w.snapshot.Store.Away = store, nil
	w.pass(DefaultKeepFiring + 2*Every)
	w.told("firing store_away/", "firing died/ledger", "resolved store_away/")
	if got := w.happened("store_away"); !slices.Equal(got, []string{"fired", "told", "resolved"}) {
		t.Errorf("on record: %q", got)
	}
	w.state("store_away", "", journal.AlertResolved)
	// Later it is another incident.
	w.store, w.snapshot.Store.Away = away{gone}, &overview.Trouble{Since: w.now, Error: gone.Error()}
	w.pass(2 * time.Minute)
	w.told("firing store_away/", "firing died/ledger", "resolved store_away/", "firing store_away/")
}

// A silence of the store, whose end is announced, holds while the store is away and cannot be asked for it. Afterwards each repeat
// has a key of its own, the same at all gateways.
func TestSilencedStoreAway(t *testing.T) {
	w := newWorld(t, 2)
	if _, err := w.gateways[0].Desk().Silence(t.Context(), journal.Silence{Rule: "store_away", Until: w.now.Add(time.Hour), By: "ada", Reason: "a new disk"}); err != nil {
		t.Fatal(err)
	}
	w.pass(Every)
	w.store, w.snapshot.Store.Away = away{errors.New("gone")}, &overview.Trouble{Since: w.now, Error: "gone"}
	w.pass(50 * time.Minute)
	w.told()
	w.pass(20 * time.Minute)
	w.told("firing store_away/")
	w.pass(2 * DefaultRepeatPage)
	w.told("firing store_away/", "repeat store_away/", "repeat store_away/")
}

// A gateway that is gone before it could tell that the store is back leaves that to whoever comes after it.
func TestStoreAwayAndGatewayGone(t *testing.T) {
	w := newWorld(t, 1)
	w.snapshot.Store.Away = &overview.Trouble{Since: w.now, Error: "gone"}
	w.pass(2 * time.Minute)
	w.snapshot.Store.Away = nil
	w.pass(Every)
	w.state("store_away", "", journal.AlertFiring)
	w.gateways = []*Alerting{w.gateway("next")}
	w.pass(15 * time.Minute)
	w.told("firing store_away/", "resolved store_away/")
	w.state("store_away", "", journal.AlertResolved)
}

// A store that answers and takes no alerts is told without it.
func TestUnrecorded(t *testing.T) {
	w := newWorld(t, 1)
	w.pass(Every)
	evaluated := w.now
	w.store = away{errors.New("permission denied for table alerts")}
	w.pass(30 * time.Second)
	w.told()
	w.pass(time.Minute)
	w.told("firing alerts_unrecorded/")
	if n := w.ops.got[0].Notifications[0]; !strings.Contains(n.Headline, "permission denied") {
		t.Errorf("%+v", n)
	}
	if at := testutil.ToFloat64(w.gateways[0].metrics.evaluated); at != float64(evaluated.Unix()) {
		t.Errorf("it says that it evaluated last at %v, and did at %v", at, evaluated.Unix())
	}

	w = newWorld(t, 1)
	w.settings.Rules = alert.Settings{"alerts_unrecorded": {Off: true}}
	w.store = away{errors.New("permission denied for table alerts")}
	w.pass(time.Hour)
	w.told()
}

// An address that is down for an hour hears afterwards how all stands, in one message for each rule: nothing is lost, and what
// happened meanwhile is not told one by one.
func TestAddressDownForAnHour(t *testing.T) {
	w := newWorld(t, 2)
	w.ops.down = errors.New("503")
	for range 6 {
		w.dead(1, "ledger", "mail")
		w.pass(5 * time.Minute)
		w.dead(1, "mail")
		w.pass(5*time.Minute + Every)
	}
	w.dead(1, "mail", "hub")
	w.pass(Every)
	w.messages(0)
	w.ops.down = nil
	w.pass(mostWait)
	w.messages(1)
	w.told("firing died/hub", "resolved died/ledger", "firing died/mail")
	if book, _ := w.store.Alerts(t.Context()); book.Waiting["ops"] != 0 {
		t.Errorf("%v wait", book.Waiting)
	}
}

// However many subjects wait for an address that is down, each is tried, and it has its rest between two tries.
func TestManySubjectsForAnAddressThatIsDown(t *testing.T) {
	w := newWorld(t, 1)
	w.ops.down = errors.New("503")
	var names []string
	for i := range MaxSubjects + 10 {
		names = append(names, fmt.Sprintf("d%02d", i))
	}
	w.dead(1, names...)
	w.pass(time.Hour)
	tried := map[string]bool{}
	for _, m := range w.ops.all {
		for _, n := range m.Notifications {
			tried[n.Subject] = true
		}
	}
	if most := 2 * int(time.Hour/mostWait+5); len(tried) != len(names) || len(w.ops.all) > most {
		t.Errorf("in an hour %d of %d subjects were tried, in %d messages, want at most %d", len(tried), len(names), len(w.ops.all), most)
	}
	w.ops.down = nil
	w.pass(mostWait + Every)
	if n := len(w.ops.incidents()); n != len(names) {
		t.Errorf("%d of %d were told", n, len(names))
	}
}

// An alert that was forgotten and fires anew has another key than before, although its numbers begin again.
func TestKeysAfterForgetting(t *testing.T) {
	w := newWorld(t, 1)
	w.settings.Keep = time.Hour
	for range 2 {
		w.dead(1, "ledger")
		w.pass(time.Minute)
		w.dead(0)
		w.pass(4 * time.Hour)
		if got := w.happened("died"); len(got) > 0 {
			t.Errorf("for an hour it is on record, and after four there is %q", got)
		}
	}
	w.told("firing died/ledger", "resolved died/ledger", "firing died/ledger", "resolved died/ledger")
}

// Who is down for days is given up, and that is on record.
func TestAddressGone(t *testing.T) {
	testskip.Long(t)
	w := newWorld(t, 1)
	w.ops.down = errors.New("404 no such channel")
	w.settings.Policy.RepeatTicket = 30 * 24 * time.Hour
	w.dead(1, "ledger")
	w.pass(giveUp + mostWait + time.Minute)
	got := slices.DeleteFunc(w.happened("died"), func(event string) bool { return event == "delayed" })
	if !slices.Equal(got, []string{"fired", "not told"}) {
		t.Errorf("on record: %q", got)
	}
	if last := w.gateways[0].Desk().Tried(t.Context()); last["ops"].Event != journal.AlertNotTold || last["ops"].Text != "ops: 404 no such channel" {
		t.Errorf("its last error is %+v", last)
	}
	w.ops.down = nil
	w.pass(time.Hour)
	w.messages(0)
}

// What an address could not be told waits for it for as long as it is tried, however short the time is for which things are on
// record.
func TestWhatIsNotToldOutlivesTheRecord(t *testing.T) {
	w := newWorld(t, 1)
	w.settings.Keep = time.Hour
	w.ops.down = errors.New("503")
	w.dead(1, "ledger")
	w.pass(3 * time.Hour)
	w.ops.down = nil
	w.pass(mostWait)
	w.told("firing died/ledger")
}

// An alert whose end could not be told yet keeps its numbers, however short the time is for which
// things are on record: that it fires anew is told, and not that it is over.
func TestWhatIsNotToldKeepsItsNumbers(t *testing.T) {
	w := newWorld(t, 1)
	w.settings.Keep = time.Minute
	w.ops.down = errors.New("503")
	w.dead(1, "ledger")
	w.pass(Every)
	w.dead(0)
	w.pass(3 * time.Hour)
	w.state("died", "ledger", journal.AlertResolved)
	w.dead(1, "ledger")
	w.pass(Every)
	w.ops.down = nil
	w.pass(mostWait)
	w.told("firing died/ledger")
	w.dead(0)
	w.pass(2 * housework)
	w.told("firing died/ledger", "resolved died/ledger")
	if book, err := w.store.Alerts(t.Context()); err != nil || len(book.Alerts) != 0 {
		t.Errorf("what was told is remembered: %+v, %v", book, err)
	}
}

// An address that is taken out of the configuration and put back later is told how things are, and not how they were; what waits
// for one that stays away goes in the end.
func TestAddressTakenOutAndPutBack(t *testing.T) {
	testskip.Long(t)
	w := newWorld(t, 1)
	w.settings.Policy.RepeatTicket = 30 * 24 * time.Hour
	w.settings.Rules = alert.Settings{"conflict": {Off: true}}
	w.ops.down = errors.New("503")
	w.dead(1, "ledger")
	w.pass(Every)
	addresses := w.settings.Addresses
	w.settings.Addresses, w.ops.down = nil, nil
	w.pass(giveUp)
	w.settings.Addresses = addresses
	w.pass(time.Minute)
	w.messages(0)
	h, err := w.store.AlertHistory(t.Context(), journal.AlertFilter{Events: []journal.AlertEvent{journal.AlertNotTold}}, 0, 9)
	if err != nil || len(h) != 1 || !strings.HasPrefix(h[0].Text, "ops: it waited") {
		t.Errorf("on record: %+v, %v", h, err)
	}

	w = newWorld(t, 1)
	w.ops.down = errors.New("503")
	w.dead(1, "ledger")
	w.pass(Every)
	w.settings.Addresses = nil
	w.pass(2*giveUp - time.Hour)
	for _, want := range []int{1, 0} {
		if book, err := w.store.Alerts(t.Context()); err != nil || book.Waiting["ops"] != want {
			t.Errorf("%v wait, want %d (%v)", book.Waiting, want, err)
		}
		w.pass(2 * housework)
	}
}

// Why an address could not be told is known until it was told, whichever gateway tried, and however much others are told.
func TestLastErrorOfAnAddress(t *testing.T) {
	testskip.Long(t)
	w := newWorld(t, 2)
	busy := &receiver{}
	w.settings.Addresses = append(w.settings.Addresses, Address{Name: "busy", Severities: []alert.Severity{alert.Ticket}, Notifier: busy})
	last := func(gateway int, event journal.AlertEvent, why string) {
		t.Helper()
		r := w.gateways[gateway].Desk().Tried(t.Context())["ops"]
		if _, is := r.Address(); r.Event != event || !strings.HasPrefix(is, why) {
			t.Errorf("on record is %+v, want %s, %q", r, event, why)
		}
	}
	w.ops.down = errors.New("it answered 401 Unauthorized")
	w.dead(1, "ledger")
	w.pass(Every)
	last(0, journal.AlertDelayed, "it answered 401 Unauthorized")
	last(1, journal.AlertDelayed, "it answered 401 Unauthorized")
	var names []string
	for i := range 2 * lastTried {
		names = append(names, fmt.Sprint("d", i))
	}
	w.settings.Addresses[0].Severities = []alert.Severity{alert.Page}
	w.dead(1, append(names, "ledger")...)
	w.pass(Every)
	if len(busy.got) < 8 {
		t.Fatalf("others were told %d messages", len(busy.got))
	}
	last(0, journal.AlertDelayed, "it answered 401 Unauthorized")
	w.ops.down = nil
	w.pass(mostWait)
	last(0, journal.AlertTold, "")
	// While the store is away, of what is told without it; and of that when it is back.
	store := w.store
	w.ops.down = errors.New("no route to host")
	w.store, w.snapshot.Store.Away = away{errors.New("gone")}, &overview.Trouble{Since: w.now, Error: "gone"}
	w.pass(2 * time.Minute)
	last(1, journal.AlertDelayed, "no route to host")
	w.store = store
	if book, err := w.gateways[1].Desk().Alerts(t.Context()); err != nil || book.Waiting["ops"] != 1 {
		t.Errorf("the store is back, and there wait %v, %v", book.Waiting, err)
	}
	w.store, w.ops.down = away{errors.New("gone")}, nil
	w.pass(mostWait)
	last(1, journal.AlertTold, "")
	w.store, w.snapshot.Store.Away = store, nil
	w.gateways = append(w.gateways, w.gateway("next"))
	w.pass(Every)
	last(2, journal.AlertTold, "")
}

// What somebody acknowledges while the store is away holds there; when the store is back it is on record, in the audit log, too,
// and holds at all gateways.
func TestAcknowledgedWhileTheStoreIsAway(t *testing.T) {
	w := newWorld(t, 3)
	memory := journaltest.NewMemory()
	w.store = memory
	w.pass(Every)
	id := journal.AlertID{Rule: "store_away"}
	leave := func(d time.Duration) {
		w.store, w.snapshot.Store.Away = away{errors.New("gone")}, &overview.Trouble{Since: w.now, Error: "gone"}
		w.pass(d)
	}
	leave(2 * time.Minute)
	w.messages(3)
	if err := w.gateways[2].Desk().Acknowledge(t.Context(), id, "ada", "I look at it"); err != nil {
		t.Fatal(err)
	}
	w.store, w.snapshot.Store.Away = memory, nil
	all := w.gateways
	w.gateways = all[2:]
	w.pass(Every)
	if book, err := all[0].Desk().Alerts(t.Context()); err != nil || book.Find(id).AckBy != "ada" {
		t.Errorf("a gateway that did not evaluate since shows %+v, %v", book, err)
	}
	w.gateways = all
	w.pass(Every)
	if a := w.state("store_away", "", journal.AlertFiring); a.AckBy != "ada" {
		t.Errorf("on record: %+v", a)
	}
	audits, err := memory.Audits(t.Context(), 0, 9)
	if err != nil || len(audits) != 1 || audits[0].By != "ada" || audits[0].Action != journal.ActionAcknowledge || audits[0].Filter != "store_away/" {
		t.Errorf("the audit log: %+v, %v", audits, err)
	}
	if n := strings.Count(strings.Join(w.happened("store_away"), " "), "acknowledged"); n != 1 {
		t.Errorf("on record %d times: %q", n, w.happened("store_away"))
	}
	leave(DefaultRepeatPage + time.Hour)
	if got := w.ops.incidents(); slices.Contains(got, "repeat store_away/") {
		t.Errorf("it was told again: %q", got)
	}
	for i, g := range w.gateways {
		if book, err := g.Desk().Alerts(t.Context()); err != nil || book.Find(id).AckBy != "ada" {
			t.Errorf("at gateway %d: %+v, %v", i, book, err)
		}
	}
}

// Who has nobody told of something, and who ends that, is in the audit log.
func TestSilencesAreInTheAuditLog(t *testing.T) {
	w := newWorld(t, 1)
	memory := journaltest.NewMemory()
	w.store = memory
	desk := w.gateways[0].Desk()
	s, err := desk.Silence(t.Context(), journal.Silence{Subject: "ledger", Until: w.now.Add(time.Hour), By: "ada", Reason: "moving"})
	if err != nil {
		t.Fatal(err)
	}
	if err := desk.Unsilence(t.Context(), s.ID, "bob", "moved"); err != nil {
		t.Fatal(err)
	}
	audits, err := memory.Audits(t.Context(), 0, 9)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range slices.Backward(audits) {
		got = append(got, fmt.Sprintf("%s %s %s: %s", a.By, a.Action, a.Filter, a.Reason))
	}
	if want := []string{"ada silence */ledger: moving", "bob unsilence */ledger: moved"}; !slices.Equal(got, want) {
		t.Errorf("the audit log: %q, want %q", got, want)
	}
}

// Audits that wait for the store are bounded, and the oldest go.
func TestWaitingAuditsAreBounded(t *testing.T) {
	m := &journal.AlertMemory{}
	for i := range 1_010 {
		if _, err := m.ChangeAlerts(t.Context(), false, func(*journal.AlertBook) (*journal.AlertChanges, error) {
			return &journal.AlertChanges{Audits: []journal.Audit{{At: began.Add(time.Duration(i) * time.Second), By: "ada"}}}, nil
		}); err != nil {
			t.Fatal(err)
		}
	}
	all := m.Audits()
	if len(all) != 1000 || !all[0].At.Equal(began.Add(10*time.Second)) {
		t.Errorf("%d wait, from %v on", len(all), all[0].At)
	}
	m.TakeAudits(all[:999])
	if left := m.Audits(); len(left) != 1 || left[0] != all[999] {
		t.Errorf("%d are left", len(left))
	}
}

// An installation that has a name has it in every key and fingerprint, so that two may tell the same people.
func TestInstallationsHaveNames(t *testing.T) {
	w := newWorld(t, 1)
	w.settings.Name = "eu-west"
	w.dead(1, "ledger")
	w.pass(Every)
	w.store, w.snapshot.Store.Away = away{errors.New("gone")}, &overview.Trouble{Since: w.now, Error: "gone"}
	w.pass(2 * time.Minute)
	w.told("firing eu-west:died/ledger", "firing eu-west:store_away/")
	for _, m := range w.ops.got {
		if n := m.Notifications[0]; n.Installation != "eu-west" || !strings.HasPrefix(n.Key, n.Fingerprint+"@") || !strings.HasPrefix(m.Key, n.Key) {
			t.Errorf("it is told %+v", n)
		}
	}
}

// The heartbeat beats while nothing pages and what is wrong can be put on record. Else it is silent, for those who go by it.
func TestHeartbeatIsSilent(t *testing.T) {
	w := newWorld(t, 1)
	g, beats, store := w.gateways[0], 0, w.store
	g.opt.Healthy = func(context.Context) { beats++ }
	for _, step := range []struct {
		name string
		set  func()
		want int
	}{
		{"all is well", func() {}, 1},
		{"there is a ticket", func() { w.dead(1, "ledger") }, 1},
		{"something pages", func() { w.dead(40, "ledger"); w.snapshot.Destinations[0].Hour.Dead = 40 }, 0},
		{"it is over", func() { w.dead(0) }, 1},
		{"nobody knows what failed, which is no page", func() { w.snapshot.Parts = []overview.Part{{Name: overview.PartFailures, Error: "timeout"}} }, 1},
		{"nobody knows what is open, which may page", func() { w.snapshot.Parts[0].Name = overview.PartOpen }, 0},
		{"everybody knows", func() { w.snapshot.Parts[0] = overview.Part{Name: overview.PartOpen, Read: began} }, 1},
		{"nothing can be put on record", func() { w.store = away{errors.New("permission denied")} }, 0},
		{"it can", func() { w.store = store }, 1},
		{"the store is away", func() { w.snapshot.Store.Away = &overview.Trouble{Since: w.now, Error: "gone"} }, 0},
	} {
		beats = 0
		step.set()
		w.pass(Every)
		g.running.Wait()
		if beats != step.want {
			t.Errorf("%s: it beats %d times, want %d", step.name, beats, step.want)
		}
	}
}

// A gateway that runs tells an address of each thing that happens, not of the first alone.
func TestRunningGatewayTells(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		g := w.gateways[0]
		g.opt.Now = time.Now
		var mu sync.Mutex // of the snapshot
		look := g.opt.Snapshot
		g.opt.Snapshot = func(ctx context.Context) (*overview.Snapshot, error) {
			mu.Lock()
			defer mu.Unlock()
			return look(ctx)
		}
		g.Start()
		defer g.Close()
		for i, names := range [][]string{{"ledger"}, {"ledger", "mail"}, {"ledger", "mail", "hub"}} {
			mu.Lock()
			w.dead(1, names...)
			mu.Unlock()
			time.Sleep(2 * Every)
			synctest.Wait()
			w.ops.mu.Lock()
			told := len(w.ops.got)
			w.ops.mu.Unlock()
			if told != i+1 {
				t.Fatalf("after %d alerts there were %d messages", i+1, told)
			}
		}
	})
}

// deaf is an address that never takes a message.
type deaf struct{}

func (deaf) Notify(ctx context.Context, _ Message) error {
	<-ctx.Done()
	return errors.New(strings.Repeat("it said a lot, ", 1000))
}

// An address that takes no message is waited for as long as nobody else sends it, and what it says is shortened before it is kept.
func TestAddressThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.settings.Addresses[0].Notifier = deaf{}
		w.dead(1, "ledger")
		g := w.gateways[0]
		g.Evaluate(t.Context())
		began := time.Now()
		g.Flush(t.Context())
		if took := time.Since(began); took != sendTime || took >= leaseTime {
			t.Errorf("it was waited for during %v", took)
		}
		last := g.Desk().Tried(t.Context())["ops"]
		if last.Event != journal.AlertDelayed || len(last.Text) > len("ops: ")+maxError || !strings.HasPrefix(last.Text, "ops: it said a lot") {
			t.Errorf("on record are %d bytes: %+v", len(last.Text), last)
		}
	})
}

// The heartbeat is not waited for, and has its time, however much of its own an evaluation has used.
func TestHeartbeatHasATimeOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		g := w.gateways[0]
		w.store = slow{w.store, 4 * time.Second}
		beat := make(chan time.Duration, 1)
		g.opt.Healthy = func(ctx context.Context) {
			began := time.Now()
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Second):
			}
			beat <- time.Since(began)
		}
		began := time.Now()
		g.Evaluate(t.Context())
		if took := time.Since(began); took != 4*time.Second {
			t.Errorf("the evaluation took %v", took)
		}
		if had := <-beat; had != 10*time.Second {
			t.Errorf("the heartbeat had %v", had)
		}
	})
}

// slow is a store that takes its time.
type slow struct {
	journal.Alerter
	time time.Duration
}

func (s slow) ChangeAlerts(ctx context.Context, try bool, change func(*journal.AlertBook) (*journal.AlertChanges, error)) (bool, error) {
	time.Sleep(s.time)
	return s.Alerter.ChangeAlerts(ctx, try, change)
}

// What is switched off is over; with alerts off nothing moves; who is added later hears of what fires if nobody did.
func TestReload(t *testing.T) {
	w := newWorld(t, 1)
	addresses := w.settings.Addresses
	w.settings.Addresses = nil
	w.dead(1, "ledger")
	w.pass(time.Hour)
	w.settings.Addresses = addresses
	w.pass(Every)
	w.told("firing died/ledger")
	w.settings.Off = true
	w.dead(0)
	w.pass(time.Hour)
	w.state("died", "ledger", journal.AlertFiring)
	w.settings.Off = false
	w.dead(1, "ledger")
	w.settings.Rules = alert.Settings{"died": {Off: true}}
	w.pass(DefaultKeepFiring + Every)
	w.told("firing died/ledger", "resolved died/ledger")
}

// A store that does not answer in time is told like one that says no. That the gateway stops is no fault of the store.
func TestUnrecordedWhenTheStoreHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		w.store = hangs{}
		w.pass(2 * time.Minute)
		w.told("firing alerts_unrecorded/")
		stopping, stop := context.WithCancel(t.Context())
		stop()
		w = newWorld(t, 1)
		w.store = hangs{}
		for range 10 {
			w.now = w.now.Add(Every)
			w.gateways[0].Evaluate(stopping)
		}
		w.gateways[0].Flush(t.Context())
		w.told()
	})
}

// A store that comes and goes is one incident for as long as it does, also on record.
func TestStoreComesAndGoes(t *testing.T) {
	w := newWorld(t, 1)
	store, gone := w.store, errors.New("connection refused")
	for range 10 {
		w.store, w.snapshot.Store.Away = away{gone}, &overview.Trouble{Since: w.now, Error: gone.Error()}
		w.pass(2 * time.Minute)
		w.store, w.snapshot.Store.Away = store, nil
		w.pass(time.Minute)
		w.told("firing store_away/")
		w.state("store_away", "", journal.AlertFiring)
	}
	if a := w.state("store_away", "", journal.AlertFiring); w.now.Sub(a.Seen) > 2*time.Minute {
		t.Errorf("it was seen last %v ago", w.now.Sub(a.Seen))
	}
	w.pass(DefaultKeepFiring)
	w.told("firing store_away/", "resolved store_away/")
}

// What an illness hid is not told when it ends, while the last of it passes; what stays is told once the illness is over. What
// becomes more severe than its cause is told at once.
func TestRecoveryIsNoAlarm(t *testing.T) {
	w := newWorld(t, 1)
	old := w.now.Add(-time.Hour)
	w.snapshot.Destinations = []overview.DestinationState{{Destination: fleet.Destination{Name: "hub", Health: &fleet.Health{State: "ill"}}, Oldest: &old, Since: &old, Backlog: 5}}
	hub := &w.snapshot.Destinations[0]
	w.pass(10 * time.Minute)
	hub.Health = nil
	w.pass(4 * time.Minute)
	w.told("firing destination_failing/hub")
	w.pass(leftover)
	w.told("firing destination_failing/hub", "resolved destination_failing/hub")
	w.pass(leftover)
	w.told("firing destination_failing/hub", "resolved destination_failing/hub", "firing backlog_old/hub")

	w = newWorld(t, 1)
	w.snapshot.Destinations = []overview.DestinationState{{Destination: fleet.Destination{Name: "hub", Pause: &fleet.Pause{At: w.now}}, Oldest: &old, Since: &old, Backlog: 5}}
	w.pass(10 * time.Minute)
	w.snapshot.Destinations[0].Pause = nil
	w.pass(4 * time.Minute)
	w.told()

	w = newWorld(t, 1)
	w.dead(2, "hub")
	hub = &w.snapshot.Destinations[0]
	hub.Failures, hub.Hour.Done = []overview.Failure{{Type: "refund", Dead: 2, Error: "422"}}, 9
	w.pass(time.Minute)
	w.told("firing type_fails/hub")
	hub.Dead, hub.Hour.Dead = 40, 40
	w.pass(Every)
	w.told("firing type_fails/hub", "firing died/hub")
}

// What was refused, and waits, because the store or a cell was away is not told when that is over: five minutes are counted that
// go back up to six. What stays is.
func TestWhatWasRefusedIsNoAlarm(t *testing.T) {
	for rule, away := range map[string]func(*overview.Snapshot, bool){
		"store_away/": func(s *overview.Snapshot, is bool) {
			if s.Store.Away = nil; is {
				s.Store.Away = &overview.Trouble{Since: began, Error: "gone"}
			}
		},
		"store_unwritable/": func(s *overview.Snapshot, is bool) {
			if s.Store.Unwritable = nil; is {
				s.Store.Unwritable = &overview.Trouble{Since: began, Error: "read-only"}
			}
		},
		"cell_away/b": func(s *overview.Snapshot, is bool) {
			if s.Cells = []overview.CellState{{Name: "b"}}; is {
				s.Cells[0].Error = "gone"
			}
		},
	} {
		t.Run(rule, func(t *testing.T) {
			w := newWorld(t, 2)
			refused := func(n int64) {
				w.snapshot.Sources = []overview.SourceState{{Name: "billing", Five: overview.Intake{Ours: n, OursBy: map[string]int64{"timeout": n}}}}
			}
			away(&w.snapshot, true)
			refused(9)
			old := began.Add(-time.Hour)
			if rule != "cell_away/b" {
				w.snapshot.Destinations = []overview.DestinationState{{Destination: fleet.Destination{Name: "hub"}, Oldest: &old, Since: &old, Backlog: 5}}
			}
			w.pass(10 * time.Minute)
			away(&w.snapshot, false)
			w.pass(6 * time.Minute)
			refused(0)
			w.snapshot.Destinations = nil
			w.pass(20 * time.Minute)
			w.told("firing "+rule, "resolved "+rule)
			away(&w.snapshot, true)
			refused(9)
			w.pass(10 * time.Minute)
			away(&w.snapshot, false)
			w.pass(DefaultKeepFiring + leftover + 2*Every)
			w.told("firing "+rule, "resolved "+rule, "firing "+rule, "resolved "+rule, "firing senders_refused/")
		})
	}
}

// What is wrong now is told, also right after the store was away.
func TestFullQueueAfterAnOutageIsTold(t *testing.T) {
	w := newWorld(t, 1)
	w.snapshot.Store.Away = &overview.Trouble{Since: began, Error: "gone"}
	w.pass(10 * time.Minute)
	w.snapshot.Store.Away, w.snapshot.Store.Full = nil, &overview.Trouble{Since: w.now}
	w.pass(2 * time.Minute)
	w.told("firing store_away/", "firing senders_refused/")
}

// What held for a moment, long after it had fired, does not hide others as what has fired.
func TestWhatDidNotFireAgainHidesNothing(t *testing.T) {
	w := newWorld(t, 1)
	refused := func(n int64) {
		w.snapshot.Sources = []overview.SourceState{{Name: "billing", Five: overview.Intake{Ours: n, OursBy: map[string]int64{"timeout": n}}}}
	}
	refused(9)
	w.pass(5 * time.Minute)
	refused(0)
	w.pass(20 * time.Minute)
	w.told("firing senders_refused/", "resolved senders_refused/")
	if a := w.state("senders_refused", "", journal.AlertResolved); a.Fired.IsZero() {
		t.Error("it has fired")
	}
	refused(9)
	w.pass(Every)
	refused(0)
	w.pass(DefaultKeepFiring)
	if a := w.state("senders_refused", "", journal.AlertResolved); !a.Fired.IsZero() {
		t.Errorf("it fired at %v", a.Fired)
	}
}

// First attempts that fail are told once there was time to find out why: nobody is paged for what follows from a destination
// that is ill. What nothing explains is told.
func TestFirstAttemptsWaitForTheirCause(t *testing.T) {
	w := newWorld(t, 1)
	failing := overview.Outcomes{First: 20, FirstFailed: 10}
	w.snapshot.Destinations = []overview.DestinationState{{Destination: fleet.Destination{Name: "hub"}, Hour: failing, Five: failing}}
	w.pass(3 * Every)
	w.told()
	w.snapshot.Destinations[0].Health = &fleet.Health{State: "ill"} // the breaker has seen enough
	w.pass(10 * time.Minute)
	w.told("firing destination_failing/hub")

	w = newWorld(t, 1)
	w.snapshot.Destinations = []overview.DestinationState{{Destination: fleet.Destination{Name: "hub"}, Hour: failing, Five: failing}}
	w.pass(time.Minute + Every)
	w.told("firing first_attempts_fail/hub")
}

// Who heard of a ticket, and who of the page that it became, hear that it is over; and a page that somebody acknowledged as a
// ticket is not.
func TestAllWhoHeardHearTheEnd(t *testing.T) {
	w := newWorld(t, 1)
	pager := &receiver{}
	w.settings.Addresses = []Address{
		{Name: "team", Severities: []alert.Severity{alert.Ticket}, Notifier: w.ops},
		{Name: "pager", Severities: []alert.Severity{alert.Page}, Notifier: pager},
	}
	w.dead(1, "ledger")
	w.pass(Every)
	if err := w.gateways[0].Desk().Acknowledge(t.Context(), journal.AlertID{Rule: "died", Subject: "ledger"}, "ada", "I look at it"); err != nil {
		t.Fatal(err)
	}
	w.snapshot.Destinations[0].Hour.Dead = 11
	w.pass(Every)
	if a := w.state("died", "ledger", journal.AlertFiring); a.AckBy != "" || a.AckReason != "" || !a.AckAt.IsZero() {
		t.Errorf("it is acknowledged still: %+v", a)
	}
	h, err := w.store.AlertHistory(t.Context(), journal.AlertFilter{Rule: "died"}, 0, 100)
	if err != nil || !slices.ContainsFunc(h, func(r journal.AlertRecord) bool {
		return r.Event == journal.AlertEscalated && strings.Contains(r.Text, "no longer acknowledged by ada")
	}) {
		t.Errorf("on record: %+v, %v", h, err)
	}
	w.dead(0)
	w.pass(DefaultKeepFiring + Every)
	w.told("firing died/ledger", "resolved died/ledger")
	if got := pager.incidents(); !slices.Equal(got, []string{"firing died/ledger", "resolved died/ledger"}) {
		t.Errorf("the pager was told %q", got)
	}
	// What begins anew was not told to anybody.
	w.settings.Rules = alert.Settings{"died": {For: ptr(time.Minute)}}
	w.dead(1, "ledger")
	w.pass(Every)
	if a := w.state("died", "ledger", journal.AlertPending); !a.Told.IsZero() || a.ToldAs != "" {
		t.Errorf("it was told: %+v", a)
	}
}

// A clock that was an hour ahead and is set back stops nothing: what is over is told, what is pending fires.
func TestClockSetBack(t *testing.T) {
	w := newWorld(t, 1)
	w.settings.Rules = alert.Settings{"died": {For: ptr(time.Minute)}}
	w.dead(1, "ledger")
	w.now = w.now.Add(time.Hour)
	w.pass(2 * time.Minute)
	w.dead(1, "ledger", "mail")
	w.pass(Every)
	w.told("firing died/ledger")
	w.now = w.now.Add(-time.Hour)
	w.dead(1, "mail")
	w.pass(2 * time.Minute)
	w.state("died", "mail", journal.AlertFiring)
	w.pass(DefaultKeepFiring)
	w.state("died", "ledger", journal.AlertResolved)
	w.snapshot.Store.Away = &overview.Trouble{Since: w.now, Error: "gone"} // in memory, too
	w.now = w.now.Add(time.Hour)
	w.pass(2 * time.Minute)
	w.now = w.now.Add(-time.Hour)
	w.snapshot.Store.Away = nil
	w.pass(DefaultKeepFiring + time.Minute)
	if got := w.ops.incidents(); got[len(got)-1] != "resolved store_away/" {
		t.Errorf("told: %q", got)
	}
}

// What another gateway saw of the store can be acknowledged here, and is not hidden by what was seen here before.
func TestAnotherGatewaysStoreAway(t *testing.T) {
	w := newWorld(t, 2)
	here, there := w.gateways[0], w.gateways[1]
	away := func() {
		w.snapshot.Store.Away = &overview.Trouble{Since: w.now, Error: "gone"}
		w.pass(2 * time.Minute)
		w.snapshot.Store.Away = nil
	}
	away()
	w.pass(time.Hour) // over, for both
	w.gateways = []*Alerting{there}
	away()
	w.pass(Every)
	w.state("store_away", "", journal.AlertFiring)
	book, err := here.Desk().Alerts(t.Context())
	id := journal.AlertID{Rule: "store_away"}
	if a := book.Find(id); err != nil || a == nil || a.State != journal.AlertFiring {
		t.Errorf("people see %+v, %v", a, err)
	}
	if err := here.Desk().Acknowledge(t.Context(), id, "ada", "I look at it"); err != nil {
		t.Fatal(err)
	}
	if a := w.state("store_away", "", journal.AlertFiring); a.AckBy != "ada" {
		t.Errorf("on record: %+v", a)
	}
}

// While nothing is evaluated nothing is said to fire.
func TestNothingFiresWhileOff(t *testing.T) {
	w := newWorld(t, 1)
	w.dead(1, "ledger", "mail")
	w.pass(Every)
	m := w.gateways[0].metrics
	if err := testutil.CollectAndCompare(m, strings.NewReader(`
# HELP hookonce_alerts Alerts that fire, by rule and severity: those of all gateways on the store, and what is wrong with the store of this one.
# TYPE hookonce_alerts gauge
hookonce_alerts{rule="died",severity="ticket"} 2
`)); err != nil {
		t.Error(err)
	}
	w.settings.Off = true
	w.pass(Every)
	if n := testutil.CollectAndCount(m); n != 0 {
		t.Errorf("%d fire", n)
	}
}
