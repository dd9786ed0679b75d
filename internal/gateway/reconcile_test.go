package gateway

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/internal/reconcile/reconciletest"
	"github.com/hookonce/hookonce/internal/reconcile/schedule"
	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/internal/tally"
	"github.com/hookonce/hookonce/internal/testserver/pgtest"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider/spec"
)

// lister is a sender with a list, which tells of each request.
type lister struct {
	reconciletest.Server
	asked chan string // the token of the request
}

// newLister returns one, and a source of it whose events go to an application.
func newLister(t *testing.T, to string) (*lister, config.Source) {
	l := &lister{asked: make(chan string, 1)}
	l.Kind = spec.PageCursor
	l.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		select {
		case l.asked <- strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "):
		default:
		}
		return false
	}
	server := httptest.NewServer(&l.Server)
	t.Cleanup(server.Close)
	s := source("billing", to)
	described := l.Spec(server.URL)
	s.Provider, s.Spec = "custom", &described
	s.Secrets = []settings.Secret{settings.Literal(reconciletest.Secret)}
	return l, s
}

// compared has a source compared every second.
func compared(s *config.Source, token, action string) {
	s.Reconcile = config.Reconcile{Token: settings.Literal(token), Every: time.Second, Action: action}
}

// awaitToken waits until the list is asked for with that token.
func (l *lister) awaitToken(t *testing.T, token string) {
	t.Helper()
	for late := time.After(patience); ; {
		select {
		case got := <-l.asked:
			if got == token {
				return
			}
		case <-late:
			t.Fatalf("the sender was not asked with %q", token)
		}
	}
}

// begunBefore has sources be compared as soon as a gateway starts, as if they had been for long: nobody waits for their beginning.
func begunBefore(t *testing.T, cfg *config.Config) {
	t.Helper()
	if _, _, err := Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	b, err := OpenBeside(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range cfg.Sources {
		begun(t, b.store, cfg.Sources[i].Name)
	}
}

// begun has a source be compared as if it had been for long.
func begun(t *testing.T, store journal.Reconciler, source string) {
	t.Helper()
	for late := time.Now().Add(patience); ; pause(5) {
		now := time.Now()
		m, taken, err := store.TakeMark(t.Context(), source, "test", now, now.Add(time.Minute))
		if err == nil && taken {
			_, err = store.AdvanceMark(t.Context(), source, m.Token, journal.MarkAdvance{Through: now.Add(-time.Minute), Back: true, Lease: now.Add(time.Minute)})
		}
		if err == nil && taken {
			_, err = store.ReleaseMark(t.Context(), source, m.Token, journal.MarkResult{Ended: now.Add(-time.Minute)})
		}
		switch {
		case err != nil:
			t.Fatal(err)
		case taken:
			return
		case now.After(late):
			t.Fatalf("%s is never free", source)
		}
	}
}

func (l *lister) make(ids ...string) {
	for _, id := range ids {
		l.Add(reconciletest.Entry{ID: id, At: time.Now().Truncate(time.Second)})
	}
}

// A reload begins to compare, with another token, with another action; and ends it. What was recovered is delivered once, in the
// audit log, and counted by the minute.
func TestReconcileIsReloaded(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		l, s := newLister(t, sink.URL)
		cfg := configured(store, "")
		cfg.Sources = []config.Source{s}
		begunBefore(t, cfg)
		e := startEdited(t, cfg)
		if len(e.reconciled()) > 0 {
			t.Fatal("a source is compared that says nothing of it")
		}
		const other = "fake-token-that-was-replaced"
		e.edit(func(cfg *config.Config) { compared(&cfg.Sources[0], other, config.Ingest) })
		l.awaitToken(t, other) // which it refuses
		e.edit(func(cfg *config.Config) { compared(&cfg.Sources[0], reconciletest.Token, config.Ingest) })
		l.awaitToken(t, reconciletest.Token)
		l.make("evt_1", "evt_2", "evt_3")
		sink.awaitIDs(t, []string{"evt_1", "evt_2", "evt_3"})

		e.edit(func(cfg *config.Config) { compared(&cfg.Sources[0], reconciletest.Token, config.Redeliver) })
		l.make("evt_4")
		for late := time.After(patience); !slices.Contains(l.Resent(), "evt_4"); {
			select {
			case <-l.asked:
			case <-late:
				t.Fatal("the sender was not asked to send it again")
			}
		}
		body := reconciletest.Entry{ID: "evt_4"}.Body()
		if r, err := post(t, client(t), e.Gateway, s, body); err != nil || r.status != http.StatusOK {
			t.Fatalf("what is sent again was answered %+v, %v", r, err)
		}
		sink.awaitIDs(t, []string{"evt_4"})
		e.edit(func(cfg *config.Config) { cfg.Sources[0].Reconcile = config.Reconcile{} })
		if len(e.reconciled()) > 0 {
			t.Error("it is compared when it is not wanted any more")
		}
		closeNow(t, e.Gateway)
		for _, id := range []string{"evt_1", "evt_2", "evt_3", "evt_4"} {
			if sink.seen[id] != 1 {
				t.Errorf("%s was delivered %d times", id, sink.seen[id])
			}
		}
		if text := e.log.String(); strings.Contains(text, other) || strings.Contains(text, reconciletest.Token) {
			t.Errorf("a token is in the log:\n%s", text)
		}
	})
}

// Of what was made longer ago than the audit log goes back nobody knows whether it was observed: it is held.
func TestUnauditedIsHeld(t *testing.T) {
	l, s := newLister(t, newSink(t).URL)
	compared(&s, reconciletest.Token, config.Ingest)
	s.Reconcile.Every = time.Hour
	cfg := configured(config.Store{Driver: config.SQLite, DSN: filepath.Join(t.TempDir(), "hookonce.db")}, "")
	cfg.Sources, cfg.RetentionAudits = []config.Source{s}, 7*settings.Day
	e := startEditedAt(t, cfg, time.Now)
	now := time.Now().Truncate(time.Second)
	l.Add(reconciletest.Entry{ID: "evt_old", At: now.Add(-10 * settings.Day)}, reconciletest.Entry{ID: "evt_1", At: now.Add(-5 * settings.Day)})
	compare := func(really bool) *reconcile.Report {
		t.Helper()
		c := Comparison{Source: s.Name, Since: now.Add(-14 * settings.Day), Ingest: true, Really: really}
		r, err := e.wired.Load().plan.compare(t.Context(), c, e.opt, e.store, e.known, e.ingestListed)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := compare(false)
	if r.Missing != 2 || r.Held != 1 || r.Stored != 1 || !slices.ContainsFunc(r.Events, func(m reconcile.Missing) bool {
		return m.Key == "evt_old" && m.Outcome == reconcile.Held && strings.Contains(m.Why, "retention.audits")
	}) {
		t.Errorf("found %+v", r)
	}
	if r := compare(true); r.Missing != 1 || r.Stored != 1 {
		t.Errorf("with --really: %+v", r)
	}
}

// What went past the gateway while its source was observed is not on record, and is neither stored nor asked for again when the
// source is compared again, after a reload or a start, nor where somebody asks for all of that time, then or before. That it is not
// compared is in the audit log.
func TestObservedIsNotRecovered(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		for action, restart := range map[string]bool{config.Ingest: false, config.Redeliver: true} {
			sink := newSink(t)
			l, s := newLister(t, sink.URL)
			s.Name = "billing-" + action
			compared(&s, reconciletest.Token, action)
			cfg := configured(store, "")
			cfg.Sources = []config.Source{s}
			var passed atomic.Int64
			now := func() time.Time { return time.Now().Add(time.Duration(passed.Load())) }
			begunBefore(t, cfg)
			e := startEditedAt(t, cfg, now)
			holds := func(e *edited, p *plan, when string) {
				t.Helper()
				c := Comparison{Source: s.Name, Since: time.Now().Add(-time.Hour), Ingest: action == config.Ingest, Redeliver: action == config.Redeliver}
				r, err := p.compare(t.Context(), c, e.opt, e.store, e.known, e.ingestListed)
				if err != nil || r.Missing != 1 || r.Held != 1 || !strings.Contains(r.Events[0].Why, "mode: observe") {
					t.Errorf("%s, %s: who asks is told %+v, %v", action, when, r, err)
				}
			}
			for range 2 { // the first run is over
				l.awaitToken(t, reconciletest.Token)
			}
			e.edit(func(cfg *config.Config) {
				cfg.Sources[0].Mode, cfg.Sources[0].Reconcile = config.Observe, config.Reconcile{}
			})
			l.make("evt_observed")
			if r, err := post(t, client(t), e.Gateway, s, reconciletest.Entry{ID: "evt_observed"}.Body()); err != nil || r.status != http.StatusOK {
				t.Fatalf("answered %+v, %v", r, err)
			}
			sink.awaitIDs(t, []string{"evt_observed"})
			// Who asks with a file that says already that it is not observed any more.
			ahead, err := newPlan(e.changed(func(cfg *config.Config) {
				cfg.Sources[0].Mode = config.Async
				compared(&cfg.Sources[0], reconciletest.Token, action)
			}), nil)
			if err != nil {
				t.Fatal(err)
			}
			holds(e, ahead, "while it is observed")

			if restart {
				closeNow(t, e.Gateway)
				e = startEditedAt(t, cfg, now)
			} else {
				e.edit(func(cfg *config.Config) {
					cfg.Sources[0].Mode = config.Async
					compared(&cfg.Sources[0], reconciletest.Token, action)
				})
			}
			select { // of a run before
			case <-l.asked:
			default:
			}
			e.awaitLog("is compared again")
			passed.Store(int64(2 * time.Minute))
			for range 2 { // the first run is over
				l.awaitToken(t, reconciletest.Token)
			}
			known, err := e.store.Known(t.Context(), s.Name, []string{"evt_observed"})
			if err != nil || len(known) > 0 || len(l.Resent()) > 0 {
				t.Errorf("%s: stored is %v, asked for again %q, %v", action, known, l.Resent(), err)
			}
			holds(e, &e.wired.Load().plan, "after it was observed")
			audits, err := e.store.Audits(t.Context(), 0, 10)
			if err != nil || !slices.ContainsFunc(audits, func(a journal.Audit) bool {
				return a.By == "the gateway" && a.Action == journal.ActionReconcile && a.Filter == s.Name && strings.HasPrefix(a.Reason, "not compared: ")
			}) {
				t.Errorf("%s: the audit log has %+v, %v", action, audits, err)
			}
			closeNow(t, e.Gateway)
			if n := sink.seen["evt_observed"]; n != 1 {
				t.Errorf("%s: the application has it %d times", action, n)
			}
		}
	})
}

// A time that was not compared is on the audit log in a form that can be read again, and nothing is done about what was made then, or
// may have been.
func TestGap(t *testing.T) {
	at := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	day, open := gap{at, at.Add(24 * time.Hour), schedule.Observed}, gap{from: at.Add(48 * time.Hour), why: schedule.Observed}
	for _, g := range []gap{day, {at, at.Add(time.Hour), schedule.Forgotten}} {
		if got, ok := parseGap(g.String()); !ok || got != g {
			t.Errorf("%q is read as %+v, %v", g, got, ok)
		}
	}
	for _, text := range []string{"", open.String(), "asked for: what never arrived since 2026-11-24T12:00:00Z is to be stored", "not compared: what its sender made from noon to night, because of that"} {
		if g, ok := parseGap(text); ok {
			t.Errorf("%q is read as %+v", text, g)
		}
	}
	missing := []reconcile.Missing{{Key: "before", Time: at.Add(-time.Second)}, {Key: "first", Time: at}, {Key: "last", Time: day.until}, {Key: "between", Time: day.until.Add(time.Second)},
		{Key: "now", Time: at.Add(72 * time.Hour)}, {Key: "timeless"}}
	if why := madeIn([]gap{day, open}, missing); !slices.Equal(slices.Sorted(maps.Keys(why)), []string{"first", "last", "now", "timeless"}) {
		t.Errorf("held are %v", why)
	}
	if why := madeIn(nil, missing); len(why) > 0 {
		t.Errorf("without a gap held are %v", why)
	}
}

// What arrived under another name of the source, which it had in between or has had before, is not taken for lost under this one: it is
// reported, and nothing is done about it, unless somebody insists. What is nowhere on record is recovered.
func TestNamedBackIsNotRecovered(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		sink := newSink(t)
		l, s := newLister(t, sink.URL)
		compared(&s, reconciletest.Token, config.Ingest)
		cfg := configured(store, "")
		cfg.Sources = []config.Source{s}
		begunBefore(t, cfg)
		e := startEdited(t, cfg)
		l.awaitToken(t, reconciletest.Token)
		l.make("evt_first")
		sink.awaitIDs(t, []string{"evt_first"})

		s.Name = "payments"
		e.edit(func(cfg *config.Config) { cfg.Sources[0].Name = s.Name })
		if r, err := post(t, client(t), e.Gateway, s, reconciletest.Entry{ID: "evt_between"}.Body()); err != nil || r.status != http.StatusOK {
			t.Fatalf("answered %+v, %v", r, err)
		}
		l.make("evt_between")
		sink.awaitIDs(t, []string{"evt_first", "evt_between"})

		e.edit(func(cfg *config.Config) { cfg.Sources[0].Name = "billing" })
		l.make("evt_last")
		sink.awaitIDs(t, []string{"evt_first", "evt_between", "evt_last"})
		for range 2 { // the run is over
			l.awaitToken(t, reconciletest.Token)
		}
		e.edit(func(cfg *config.Config) { cfg.Sources[0].Reconcile.Every = 0 })
		since := api.Comparison{Since: time.Now().Add(-time.Hour), Action: config.Ingest}
		report, err := e.compareAsked(t.Context(), "ann", "billing", since)
		for late := time.Now().Add(patience); err != nil && time.Now().Before(late); pause(5) { // the last run of the gateway's own
			report, err = e.compareAsked(t.Context(), "ann", "billing", since)
		}
		if err != nil || report.Held != 1 || report.Stored != 0 || report.Missing != 1 {
			t.Errorf("somebody who asked is told %+v, %v", report, err)
		}
		known, err := e.store.Known(t.Context(), "billing", []string{"evt_first", "evt_between", "evt_last"})
		if _, doubled := known["evt_between"]; err != nil || doubled || len(known) != 2 {
			t.Errorf("on record are %v, %v", known, err)
		}
		missing, err := e.store.Missing(t.Context(), journal.MissingQuery{Source: "billing", Now: time.Now(), Limit: 10})
		if err != nil || len(missing) != 1 || missing[0].Key != "evt_between" || !strings.Contains(missing[0].Why, "on record under payments") {
			t.Errorf("missing are %+v, %v", missing, err)
		}
		closeNow(t, e.Gateway)
		for _, id := range []string{"evt_first", "evt_between", "evt_last"} {
			if n := sink.seen[id]; n != 1 {
				t.Errorf("the application has %s %d times", id, n)
			}
		}
	})
}

// What has the same key by chance is not asked for, so that it cannot hide who has it by right: sources of other providers.
func TestStrangersHideNobody(t *testing.T) {
	cfg := configured(sqliteStore(t), "")
	cfg.Sources = []config.Source{{Name: "billing", Provider: "stripe"}, {Name: "payments", Provider: "stripe"}, {Name: "code", Provider: "github"}}
	if got := (&plan{cfg: cfg}).strangers("billing"); !slices.Equal(got, []string{"code"}) {
		t.Errorf("strangers are %q", got)
	}
}

// Events that a gateway recovered are in the audit log and in the counts of minutes.
func TestRecoveredIsOnRecord(t *testing.T) {
	sink := newSink(t)
	l, s := newLister(t, sink.URL)
	compared(&s, reconciletest.Token, config.Ingest)
	cfg := configured(sqliteStore(t), "")
	cfg.Sources = []config.Source{s}
	begunBefore(t, cfg)
	g := start(t, cfg)
	l.awaitToken(t, reconciletest.Token)
	l.make("evt_1", "evt_2")
	sink.awaitIDs(t, []string{"evt_1", "evt_2"})
	g.reconciling.close()
	var audits []string
	page, err := g.store.Audits(t.Context(), 0, 10)
	for _, a := range page {
		audits = append(audits, fmt.Sprint(a.By, " ", a.Action, " ", a.Filter, ": ", a.Reason))
	}
	if err != nil || len(audits) == 0 || audits[0] != "the gateway reconcile billing: never arrived: stored from its sender's list" {
		t.Errorf("the audit log has %q, %v", audits, err)
	}
	counts := map[tally.What]int64{}
	for _, p := range g.tally.Recent(tally.Query{From: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour), Step: time.Minute}) {
		counts[p.What] += p.N
	}
	if counts[tally.Missing] != 2 || counts[tally.Recovered] != 2 {
		t.Errorf("counted are %v", counts)
	}
}

// Each kind of what was done has an entry of its own.
func TestRecoveredEntries(t *testing.T) {
	if got := recovered("billing", "ann", 0, 0, time.Now()); len(got) > 0 {
		t.Errorf("nothing was done, and is on record: %+v", got)
	}
	got := recovered("billing", "ann", 2, 1, time.Now())
	if len(got) != 2 || got[0].Count != 2 || got[1].Count != 1 || got[0].Reason == got[1].Reason || got[0].Action != journal.ActionReconcile {
		t.Errorf("on record are %+v", got)
	}
}

// What came and was refused is told with the reason, which is that of the last request; a key that nobody asks for is not.
func TestRefusedIsTold(t *testing.T) {
	sink := newSink(t)
	_, s := newLister(t, sink.URL)
	cfg := configured(sqliteStore(t), "")
	cfg.Sources = []config.Source{s}
	e := startEdited(t, cfg)
	s.Secrets = []settings.Secret{settings.Literal("another-fake-secret-of-a-sender")}
	for _, id := range []string{"evt_1", "evt_2"} {
		if r, err := post(t, client(t), e.Gateway, s, reconciletest.Entry{ID: id}.Body()); err != nil || r.status != http.StatusUnauthorized {
			t.Fatalf("a request with another secret was answered %+v, %v", r, err)
		}
	}
	e.edit(func(cfg *config.Config) { compared(&cfg.Sources[0], reconciletest.Token, config.Report) })
	why, err := e.reconciled()[0].Refused(t.Context(), []string{"evt_1", "evt_3"})
	if err != nil || len(why) != 1 || why["evt_1"] == "" {
		t.Errorf("it says %v, %v", why, err)
	}
}

// A question beside gateways makes no file, and no tables on Postgres: those of gateways that run may be of an older version.
func TestBesideMakesNoStore(t *testing.T) {
	t.Parallel()
	file := sqliteStore(t)
	for _, store := range []config.Store{file, {Driver: config.Postgres, DSN: pgtest.DSN(t)}} {
		for range 2 { // the first has made nothing
			b, err := OpenBeside(t.Context(), configured(store, "http://127.0.0.1:1/"), Options{})
			if err == nil {
				b.Close()
			}
			if err == nil || !strings.Contains(err.Error(), "no gateway has run") && !errors.Is(err, hookonce.ErrSchemaMissing) {
				t.Errorf("%s: %v", store.Driver, err)
			}
		}
	}
	if _, err := os.Stat(file.DSN); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("there is a file now: %v", err)
	}
}

// What cannot be compared is refused with what to write.
func TestBesideRefuses(t *testing.T) {
	cfg := configured(sqliteStore(t), "http://127.0.0.1:1/")
	if _, _, err := Migrate(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	b, err := OpenBeside(t.Context(), cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for name, want := range map[string]string{"orders": "no API of HMAC is known", "nothing": `no source "nothing"`} {
		r, err := b.Reconcile(t.Context(), Comparison{Source: name, Since: time.Now().Add(-time.Hour)})
		if r != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := OpenBeside(context.Background(), cfg, Options{}); !errors.Is(err, ErrInUse) {
		t.Errorf("a file that is in use was opened: %v", err)
	}
}
