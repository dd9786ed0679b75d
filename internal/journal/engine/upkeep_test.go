package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/engine"
	"github.com/hookonce/hookonce/internal/journal/journaltest"
	"github.com/hookonce/hookonce/internal/testskip"
)

// left returns what the store has of an event: of its body, its attempts and itself.
func (r *rig) left(id int64) string {
	r.t.Helper()
	h, err := r.store.History(context.Background(), id)
	if errors.Is(err, journal.ErrNoEvent) {
		return ""
	}
	if err != nil {
		r.t.Fatal(err)
	}
	text := "id"
	if h.HasBody {
		text += " body"
	}
	if len(h.Attempts) > 0 {
		text += " attempts"
	}
	return text
}

// Law 11: each kind of each source goes in its own time, and not before.
func TestJanitor_periods(t *testing.T) {
	testskip.Race(t)
	const hour = time.Hour
	keep := &journal.Retention{
		Period: journal.Period{IDs: 8 * hour, Bodies: 2 * hour, Attempts: 4 * hour},
		Sources: map[string]journal.Period{
			"short": {IDs: 3 * hour, Bodies: hour, Attempts: hour},
			"long":  {IDs: 0, Bodies: 6 * hour, Attempts: 7 * hour},
			"same":  {IDs: 8 * hour, Bodies: 2 * hour, Attempts: 4 * hour},
		},
	}
	run(t, engine.Options{Retention: keep}, func(t *testing.T, r *rig) {
		ids := map[string]int64{}
		for _, source := range []string{"short", "usual", "same", "long"} {
			e := entry("evt_1")
			e.Source = source
			ids[source] = r.accept(e).ID
			r.finish(r.receive(), journal.Done, time.Time{})
		}
		const all, noBody, onlyID = "id body attempts", "id attempts", "id"
		usual := []string{all, all, noBody, noBody, onlyID, onlyID, onlyID, onlyID, ""}
		want := map[string][]string{ // after so many hours and five minutes
			"short": {all, onlyID, onlyID, "", "", "", "", "", ""},
			"usual": usual, "same": usual,
			"long": {all, all, all, all, all, all, noBody, onlyID, onlyID},
		}
		sleep(5 * time.Minute)
		for h := range 9 {
			for source, id := range ids {
				if got := r.left(id); got != want[source][h] {
					t.Errorf("after %d hours there is %q of %s, want %q", h, got, source, want[source][h])
				}
			}
			sleep(hour)
		}
	})
}

// What was open when it came to its turn goes within a day after it is done.
func TestJanitor_comesBack(t *testing.T) {
	testskip.Race(t)
	keep := &journal.Retention{Period: journal.Period{IDs: 40 * time.Hour, Bodies: time.Hour}}
	run(t, engine.Options{Retention: keep}, func(t *testing.T, r *rig) {
		stuck := r.accept(entry("stuck")).ID
		w := r.receive()
		sleep(3 * time.Hour)
		next := r.accept(entry("next")).ID
		r.finish(r.receive(), journal.Done, time.Time{})
		sleep(2 * time.Hour)
		r.finish(w, journal.Done, time.Time{})
		if s, n := r.left(stuck), r.left(next); s != "id body attempts" || n != "id attempts" {
			t.Errorf("%q is left of what was open, %q of what came later", s, n)
		}
		sleep(20 * time.Hour)
		if s := r.left(stuck); s != "id attempts" {
			t.Errorf("a day later %q is left", s)
		}
	})
}

// Purges that fail are made up for, whether or not they were persisted, and so is forgetting what was
// counted. Until then it is not clean.
func TestJanitor_faults(t *testing.T) {
	for _, op := range []journaltest.Op{journaltest.OpPurge, journaltest.OpForget} {
		for _, mode := range []journaltest.Mode{journaltest.NotPersisted, journaltest.Persisted} {
			reg := prometheus.NewRegistry()
			keep := &journal.Retention{Period: journal.Period{IDs: time.Hour, Bodies: 30 * time.Minute, Attempts: 30 * time.Minute}}
			run(t, engine.Options{Retention: keep, Registerer: reg}, func(t *testing.T, r *rig) {
				id := r.accept(entry("evt_1")).ID
				r.finish(r.receive(), journal.Done, time.Time{})
				sleep(time.Minute)
				cleaned := lastCleanup(t, reg, "purge")
				r.fault.Fail(op, -1, mode)
				sleep(2 * time.Hour)
				if got := lastCleanup(t, reg, "purge"); got != cleaned {
					t.Errorf("it was clean at %v, although every %s fails", got, op)
				}
				r.fault.Fail(op, 0, mode)
				sleep(2 * time.Minute)
				if s := r.left(id); s != "" {
					t.Errorf("%q is left", s)
				}
				if got := lastCleanup(t, reg, "purge"); got <= cleaned {
					t.Error("nobody says that it is clean again")
				}
			})
		}
	}
}

// purges notes what its store is asked to purge.
type purges struct {
	journal.Store
	mu    sync.Mutex
	asked []journal.Purge
}

func (p *purges) Purge(ctx context.Context, step journal.Purge) (journal.Purged, error) {
	p.mu.Lock()
	p.asked = append(p.asked, step)
	p.mu.Unlock()
	return p.Store.Purge(ctx, step)
}

// Each kind is looked for below what its period says, and among what a clock numbered that was ahead. That goes on after the clock
// was set back, and somebody is told, once until it is over.
func TestJanitor_clockThatWasAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 27, 0, 0, 0, 0, time.UTC))) // before 2020 there are no identifiers
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		memory := journaltest.NewMemory()
		p := &purges{Store: memory}
		keep := &journal.Retention{Period: journal.Period{IDs: 8 * time.Hour, Bodies: 2 * time.Hour, Attempts: 4 * time.Hour, Answers: time.Hour}, Audits: time.Hour}
		r := startOn(t, memory, p, 0, engine.Options{Retention: keep, Now: now})
		accept := func(key string) int64 {
			e := entry(key)
			e.ReceivedAt = now()
			id := r.accept(e).ID
			r.finish(r.receive(), journal.Done, time.Time{})
			return id
		}
		ahead.Store(int64(5 * 365 * 24 * time.Hour))
		sleep(time.Hour)
		first := accept("ahead")
		ahead.Store(0)
		second := accept("set back")
		stuck := r.accept(entry("stuck")).ID
		open := r.receive()
		sleep(time.Hour)
		r.wantLog(1, "a clock was ahead")
		if r.left(second) != "id body attempts" {
			t.Errorf("%q is left of what is young", r.left(second))
		}
		sleep(2 * time.Hour)
		if r.left(second) != "id attempts" || r.left(first) != "id body attempts" {
			t.Errorf("%q is left of what came after the clock was set back, %q of what nobody knows the age of", r.left(second), r.left(first))
		}
		sleep(6 * time.Hour)
		if r.left(second) != "" {
			t.Errorf("%q is left in the end", r.left(second))
		}
		r.finish(open, journal.Done, time.Time{}) // sweeps have passed it, and begin anew within a day
		sleep(25 * time.Hour)
		if r.left(stuck) != "" {
			t.Errorf("%q is left of what was open", r.left(stuck))
		}
		r.wantLog(1, "a clock was ahead")
		p.mu.Lock()
		defer p.mu.Unlock()
		swept := map[string]bool{}
		for _, step := range p.asked {
			swept[fmt.Sprintf("%s %t", step.Kind, step.Ahead)] = true
		}
		for _, k := range journal.Kinds() {
			if own := swept[fmt.Sprintf("%s true", k)]; !swept[fmt.Sprintf("%s false", k)] || own != (k != journal.KindAudits) {
				t.Errorf("%s: %v", k, swept)
			}
		}
	})
}

// elsewhere plays a store that another gateway cleans up.
type elsewhere struct {
	journal.Store
	purges, forgets atomic.Bool
	answers         atomic.Int64
}

// Purge finds the other one at it in one sweep, and has more to do in another one, every second time.
func (s *elsewhere) Purge(ctx context.Context, p journal.Purge) (journal.Purged, error) {
	switch {
	case s.purges.Load() && p.Kind == journal.KindIDs:
		return journal.Purged{Next: p.After, Busy: true}, nil
	case s.purges.Load() && p.Kind == journal.KindBodies && !p.Ahead:
		return journal.Purged{Next: p.After, More: s.answers.Add(1)%2 == 1}, nil
	}
	return s.Store.Purge(ctx, p)
}

func (s *elsewhere) ForgetTallies(ctx context.Context, now time.Time) (busy bool, err error) {
	if s.forgets.Load() {
		return true, nil
	}
	return s.Store.ForgetTallies(ctx, now)
}

// While another gateway cleans up, this one did not look, and does not say that nothing is left: neither of one step nor
// of the last one. It has its turn when the other is through.
func TestJanitor_othersAreAtIt(t *testing.T) {
	for name, does := range map[string]func(*elsewhere) *atomic.Bool{
		"purges":  func(s *elsewhere) *atomic.Bool { return &s.purges },
		"forgets": func(s *elsewhere) *atomic.Bool { return &s.forgets },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, memory := prometheus.NewRegistry(), journaltest.NewMemory()
				store := &elsewhere{Store: memory}
				keep := &journal.Retention{Period: journal.Period{IDs: time.Hour, Bodies: 30 * time.Minute, Attempts: 30 * time.Minute}}
				r := startOn(t, memory, store, 0, engine.Options{Retention: keep, Registerer: reg})
				id := r.accept(entry("evt_1")).ID
				r.finish(r.receive(), journal.Done, time.Time{})
				sleep(time.Minute)
				cleaned := lastCleanup(t, reg, "purge")
				does(store).Store(true)
				sleep(2 * time.Hour)
				if got := lastCleanup(t, reg, "purge"); cleaned == 0 || got != cleaned {
					t.Errorf("it was clean at %v, %v before, and another gateway is at it", got, cleaned)
				}
				does(store).Store(false)
				sleep(2 * time.Minute)
				if got, s := lastCleanup(t, reg, "purge"), r.left(id); got <= cleaned || s != "" {
					t.Errorf("when the other is through: clean at %v, and %q is left", got, s)
				}
			})
		})
	}
}

// lastCleanup returns when a task found nothing more to do.
func lastCleanup(t *testing.T, reg *prometheus.Registry, task string) float64 {
	t.Helper()
	synctest.Wait()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() == "hookonce_journal_last_cleanup_timestamp_seconds" && m.GetLabel()[0].GetValue() == task {
				return m.GetGauge().GetValue()
			}
		}
	}
	return 0
}

// partitions play the side of a store that divides tables.
type partitions struct {
	sync.Mutex
	calls     []string // in order, with when
	drops     int      // that there are to do
	ensureErr error
	busy      bool // others are in the way
	parts     int  // and before each such call so many look at a part
	part      int
	began     time.Time
}

func (p *partitions) called(what string) {
	p.calls = append(p.calls, what+" "+time.Since(p.began).Truncate(100*time.Millisecond).String())
}

func (p *partitions) EnsurePartitions(_ context.Context, now time.Time, _ *journal.Retention) (map[journal.Kind]journal.Division, error) {
	p.Lock()
	defer p.Unlock()
	p.called("ensure")
	return map[journal.Kind]journal.Division{journal.KindBodies: {Partitions: 3, From: now, Until: now.Add(time.Hour)}}, p.ensureErr
}

func (p *partitions) DropPartitions(context.Context, time.Time, *journal.Retention) (journal.Dropped, error) {
	p.Lock()
	defer p.Unlock()
	p.called("drop")
	if p.drops--; p.drops < 0 {
		if p.part++; p.part <= p.parts {
			return journal.Dropped{More: true, Part: true}, nil
		}
		p.part = 0
		return journal.Dropped{Busy: p.busy}, nil
	}
	return journal.Dropped{Rows: map[journal.Kind]int64{journal.KindBodies: 1000}, More: true}, nil
}

// Partitions are there before the first event can be, and are looked after once a minute, or once a second while
// some are to be dropped, which goes on when none can be made.
func TestPartitions(t *testing.T) {
	reg := prometheus.NewRegistry()
	p := &partitions{drops: 2}
	synctest.Test(t, func(t *testing.T) {
		p.began = time.Now()
		r := start(t, journaltest.NewMemory(), 0, engine.Options{Partitions: p, Registerer: reg})
		sleep(61 * time.Second)
		p.Lock()
		p.ensureErr = errors.New("no rights")
		p.Unlock()
		sleep(2 * time.Minute)
		r.wantLog(1, "no rights")
		r.wantLog(1, "what is stored goes to the default ones")
		r.wantLog(0, "the store fails") // it does not
		p.Lock()
		defer p.Unlock()
		want := []string{"ensure 0s", "ensure 100ms", "drop 100ms", "ensure 1.1s", "drop 1.1s", "ensure 2.1s", "drop 2.1s",
			"ensure 1m2.1s", "drop 1m2.1s", "ensure 2m2.1s", "drop 2m2.1s"}
		if !slices.Equal(p.calls, want) {
			t.Errorf("called %q, want %q", p.calls, want)
		}
		if r.accept(entry("evt_1")); len(r.store.Deliveries()) != 1 {
			t.Error("without partitions nothing is stored")
		}
	})
	for name, want := range map[string]string{"partitions": "3", "purged_total": "2000"} {
		got, err := testutil.GatherAndLint(reg, "hookonce_journal_"+name)
		if err != nil || len(got) > 0 {
			t.Error(got, err)
		}
		text, err := gathered(reg, "hookonce_journal_"+name)
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%s: %s, %v", name, text, err)
		}
	}
}

// There is nothing more to do when partitions could be made and nobody was in the way of dropping them. The purge, which alerts
// go by, is not at its end either while old partitions stay.
func TestPartitions_clean(t *testing.T) {
	for name, disturb := range map[string]func(p *partitions, on bool){
		"none can be made": func(p *partitions, on bool) {
			if p.ensureErr = nil; on {
				p.ensureErr = errors.New("no rights")
			}
		},
		"others are in the way":                     func(p *partitions, on bool) { p.busy = on },
		"others are in the way, after another look": func(p *partitions, on bool) { p.busy, p.parts = on, map[bool]int{true: 100}[on] },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				reg, p := prometheus.NewRegistry(), &partitions{began: time.Now()}
				start(t, journaltest.NewMemory(), 0, engine.Options{Partitions: p, Registerer: reg})
				clean := func(on bool) float64 {
					p.Lock()
					disturb(p, on)
					p.Unlock()
					sleep(2 * time.Minute)
					return lastCleanup(t, reg, "partitions")
				}
				before := clean(false)
				if during := clean(true); before == 0 || during != before {
					t.Errorf("clean at %v, %v before", during, before)
				}
				purged := lastCleanup(t, reg, "purge")
				sleep(2 * time.Minute)
				if stays := lastCleanup(t, reg, "purge") == purged; purged == 0 || stays != (name != "none can be made") {
					t.Errorf("the purge says that it stays as it was: %t", stays)
				}
				if after := clean(false); after <= before {
					t.Errorf("nobody says that it is clean again")
				}
			})
		})
	}
}

// gathered returns the metrics of a name as text.
func gathered(reg *prometheus.Registry, name string) (text string, err error) {
	families, err := reg.Gather()
	for _, f := range families {
		if f.GetName() == name {
			text += f.String()
		}
	}
	return text, err
}

// Replays count what begins again, and what of that was done; a dry run counts nothing.
func TestReplaysAreCounted(t *testing.T) {
	reg := prometheus.NewRegistry()
	synctest.Test(t, func(t *testing.T) {
		store := journaltest.NewMemory()
		r := start(t, store, 0, engine.Options{Registerer: reg})
		for _, state := range []journal.State{journal.Dead, journal.Done, journal.Done} {
			r.accept(entry(string(state) + time.Now().String()))
			r.finish(r.receive(), state, time.Time{})
			sleep(time.Second)
		}
		for _, dry := range []bool{true, false} {
			replay := journal.Replay{Force: true, DryRun: dry, Start: time.Now(), By: "ada", Reason: "x"}
			if done, err := r.Replay(context.Background(), replay, 10); err != nil || done.Deliveries != 3 {
				t.Fatalf("Replay = %+v, %v", done, err)
			}
		}
	})
	want := `
# HELP hookonce_journal_replayed_total Deliveries that replays asked of this process began again, by whether they were done before.
# TYPE hookonce_journal_replayed_total counter
hookonce_journal_replayed_total{forced="false"} 1
hookonce_journal_replayed_total{forced="true"} 2
`
	if err := testutil.GatherAndCompare(reg, strings.NewReader(want), "hookonce_journal_replayed_total"); err != nil {
		t.Error(err)
	}
}
