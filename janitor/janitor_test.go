package janitor_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/janitor"
	"github.com/hookonce/hookonce/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const day = 24 * time.Hour

// now is a clock for bubbles, whose own shows a time at which nothing can have been written.
func now() time.Time { return time.Now().Add(26 * 365 * day) }

var quiet = []janitor.Option{janitor.WithClock(now), janitor.WithLogger(slog.New(slog.DiscardHandler))}

func newStore() *memstore.Store { return memstore.New(memstore.WithClock(now)) }

// finish completes a claim of each source.
func finish(t *testing.T, store *memstore.Store, key string, sources ...string) {
	t.Helper()
	for _, source := range sources {
		c, err := store.Claim(t.Context(), hookonce.ClaimRequest{Ref: hookonce.Ref{Source: source, Key: key}, Lease: time.Minute})
		if err != nil || c.Verdict != hookonce.Acquired {
			t.Fatalf("%s: %+v, %v", source, c, err)
		}
		if err := store.Complete(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
}

// left returns which of the sources have their claim.
func left(t *testing.T, store *memstore.Store, key string, sources ...string) (there []string) {
	t.Helper()
	for _, source := range sources {
		switch _, err := store.Lookup(t.Context(), hookonce.Ref{Source: source, Key: key}); {
		case err == nil:
			there = append(there, source)
		case !errors.Is(err, hookonce.ErrNotFound):
			t.Fatal(err)
		}
	}
	return there
}

func TestEachSourceHasItsPeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		sources := []string{"stripe", "github", "audit", "brief", "once:fee", "once:code"}
		finish(t, store, "evt_1", sources...)
		j := janitor.New(store, janitor.Retention{
			Sources: map[string]time.Duration{"github": 10 * day, "audit": janitor.Forever, "brief": day},
			Scopes:  map[string]time.Duration{"code": 5 * day},
		}, quiet...)
		for _, step := range []struct {
			after time.Duration
			want  string
		}{
			{day, "stripe github audit brief once:fee once:code"},
			{day + time.Second, "stripe github audit once:fee once:code"},
			{5*day + time.Second, "stripe github audit once:fee"},
			{10*day + time.Second, "stripe audit once:fee"},
			{janitor.DefaultEvents, "stripe audit once:fee"},
			{janitor.DefaultEvents + time.Second, "audit once:fee"},
			{20 * 365 * day, "audit once:fee"},
		} {
			time.Sleep(step.after - time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)))
			if err := j.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(left(t, store, "evt_1", sources...), " "); got != step.want {
				t.Errorf("after %v there are %q, want %q", step.after, got, step.want)
			}
		}
	})
}

// What is not named in a retention is kept: keys of Once, versions and states for ever, effects as long as claims.
func TestKindsAreApart(t *testing.T) {
	for name, c := range map[string]struct {
		retention janitor.Retention
		want      string
	}{
		"nothing said": {janitor.Retention{}, "events but [] effects but []"},
		"everything": {
			janitor.Retention{Events: day, Sources: map[string]time.Duration{"b": 2 * day, "a": 3 * day}, Failed: 4 * day, FailedSources: map[string]time.Duration{"c": day}, Once: day, Versions: day, States: day, Effects: day},
			"events but [a b] events of a events of b failed but [c] failed of c once but [] versions but [] states but [] effects but []",
		},
		"nothing": {janitor.Retention{Events: janitor.Forever}, ""},
		"one source": {
			janitor.Retention{Events: janitor.Forever, Sources: map[string]time.Duration{"a": day}, Once: janitor.Forever},
			"events of a effects of a",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var asked recorder
			if err := janitor.New(&asked, c.retention, quiet...).Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(asked.what, " "); got != c.want {
				t.Errorf("asked for %q, want %q", got, c.want)
			}
		})
	}
}

// recorder keeps what it is asked for. The first calls about each kind delete as much as they may, or fail.
type recorder struct {
	what []string
	full int
	err  error
}

func (r *recorder) Purge(_ context.Context, req hookonce.PurgeRequest) (int, error) {
	what := fmt.Sprintf("%s but %v", req.Kind, append([]string{}, req.Except...))
	if req.Source != "" {
		what = fmt.Sprintf("%s of %s", req.Kind, req.Source)
	}
	r.what = append(r.what, what)
	if r.full > 0 {
		r.full--
		return req.Limit, nil
	}
	return 3, r.err
}

func TestPurgesInSteps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, began := &recorder{full: 4}, time.Now()
		var seen []janitor.Observation
		j := janitor.New(asked, janitor.Retention{}, append(quiet, janitor.WithBatch(10, time.Second),
			janitor.WithObserver(func(_ context.Context, o janitor.Observation) { seen = append(seen, o) }))...)
		if err := j.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); len(asked.what) != 6 || took != 4*time.Second {
			t.Errorf("%d steps took %v", len(asked.what), took)
		}
		want := []janitor.Observation{{Kind: hookonce.PurgeEvents, Deleted: 43, Duration: 4 * time.Second}, {Kind: hookonce.PurgeEffects, Deleted: 3}}
		if !slices.Equal(seen, want) {
			t.Errorf("observed %+v, want %+v", seen, want)
		}
	})
}

func TestRunSweepsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := &recorder{err: errors.New("connection refused")}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- janitor.New(asked, janitor.Retention{}, quiet...).Run(ctx) }()
		time.Sleep(3*janitor.DefaultInterval + time.Second)
		synctest.Wait()
		if n := len(asked.what); n != 8 {
			t.Errorf("%d purges in three hours, want 8", n)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// What no waiting mends ends the janitor, which says so, and promises no other sweep.
func TestTablesAreMissing(t *testing.T) {
	for _, err := range []error{hookonce.ErrSchemaMissing, hookonce.ErrSchemaNewer} {
		var log strings.Builder
		j := janitor.New(&recorder{err: fmt.Errorf("no such table: %w", err)}, janitor.Retention{}, janitor.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		if got := j.Run(t.Context()); !errors.Is(got, err) {
			t.Errorf("Run: %v, want %v", got, err)
		}
		if said := log.String(); strings.Count(said, "janitor: it ends") != 1 || !strings.Contains(said, "no such table") || strings.Contains(said, "next sweep") || strings.Count(said, "level=ERROR") != 3 {
			t.Errorf("%v: logged %s", err, said)
		}
	}
}

// What passes is tried again, and the log says so.
func TestLogOfWhatIsTriedAgain(t *testing.T) {
	var log strings.Builder
	j := janitor.New(&recorder{err: errors.New("connection refused")}, janitor.Retention{}, janitor.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
	if err := j.Sweep(t.Context()); err == nil {
		t.Error("Sweep: no error")
	}
	if said := log.String(); strings.Count(said, "level=ERROR") != 2 || strings.Count(said, "tried again at the next sweep") != 2 {
		t.Errorf("logged %s", said)
	}
}

// An observer that panics changes nothing, and is logged once for each call, with where it comes
// from.
func TestObserverThatPanics(t *testing.T) {
	var log strings.Builder
	var asked recorder
	j := janitor.New(&asked, janitor.Retention{}, janitor.WithLogger(slog.New(slog.NewTextHandler(&log, nil))),
		janitor.WithObserver(func(context.Context, janitor.Observation) { panic("a fault in the observer") }))
	if err := j.Sweep(t.Context()); err != nil || len(asked.what) != 2 {
		t.Errorf("%v after %q", err, asked.what)
	}
	if said := log.String(); strings.Count(said, "the observer panicked") != 2 || !strings.Contains(said, "janitor_test.go") {
		t.Errorf("logged %s", said)
	}
}

// Several janitors share the work.
func TestSeveralJanitors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		for i := range 100 {
			finish(t, store, fmt.Sprint("evt_", i), "stripe")
		}
		time.Sleep(2 * day)
		ctx, stop := context.WithCancel(t.Context())
		ended, deleted := make(chan error, 3), make(chan int, 1000)
		for range 3 {
			options := append(slices.Clone(quiet), janitor.WithBatch(7, time.Millisecond), janitor.WithObserver(func(_ context.Context, o janitor.Observation) { deleted <- o.Deleted }))
			go func() { ended <- janitor.New(store, janitor.Retention{Events: day}, options...).Run(ctx) }()
		}
		time.Sleep(time.Minute)
		stop()
		for range 3 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		close(deleted)
		sum := 0
		for n := range deleted {
			sum += n
		}
		if sum != 100 {
			t.Errorf("%d were deleted, of 100", sum)
		}
	})
}

func TestRetentionsThatLoseSomething(t *testing.T) {
	for name, r := range map[string]janitor.Retention{
		"an hour":           {Events: time.Hour},
		"negative":          {Effects: -day},
		"a source, nothing": {Sources: map[string]time.Duration{"stripe": 0}},
		"a source, an hour": {Sources: map[string]time.Duration{"stripe": time.Hour}},
		"no source":         {Sources: map[string]time.Duration{"": 2 * day}},
		"failed, an hour":   {Failed: time.Hour},
		"failed of a, none": {FailedSources: map[string]time.Duration{"a": 0}},
		"failed of nobody":  {FailedSources: map[string]time.Duration{"": 2 * day}},
		"no scope":          {Scopes: map[string]time.Duration{"": 2 * day}},
		"a scope, an hour":  {Scopes: map[string]time.Duration{"fee": time.Hour}},
		"once as a source":  {Sources: map[string]time.Duration{"once:fee": 2 * day}},
		"once":              {Once: time.Minute},
		"versions":          {Versions: time.Minute},
		"states":            {States: time.Minute},
	} {
		if err := r.Validate(); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if !panics(func() { janitor.New(newStore(), r) }) {
			t.Errorf("%s: New accepts it", name)
		}
	}
	for name, o := range map[string]janitor.Option{
		"interval": janitor.WithInterval(0), "batch": janitor.WithBatch(0, 0), "pause": janitor.WithBatch(1, -1),
		"clock": janitor.WithClock(nil), "log": janitor.WithLogger(nil), "observer": janitor.WithObserver(nil),
	} {
		if !panics(func() { janitor.New(newStore(), janitor.Retention{}, o) }) {
			t.Errorf("%s: New accepts it", name)
		}
	}
	if !panics(func() { janitor.New(nil, janitor.Retention{}) }) {
		t.Error("New accepts no store")
	}
}

func panics(f func()) (yes bool) {
	defer func() { yes = recover() != nil }()
	f()
	return false
}

func ExampleNew() {
	store := memstore.New() // or any other
	j := janitor.New(store, janitor.Retention{
		Events:  90 * 24 * time.Hour,
		Sources: map[string]time.Duration{"audit": janitor.Forever},
	})
	ctx, stop := context.WithCancel(context.Background())
	stop() // when the program does
	fmt.Println(j.Run(ctx))
	// Output: <nil>
}
