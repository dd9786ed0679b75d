package tallies_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/tallies"
)

// call is one batch as it came.
type call struct {
	at    time.Time
	seq   int64
	batch []hookonce.Tally
}

// store is a store that notes what it is given, adds each batch once, and fails as it is told.
type store struct {
	mu      sync.Mutex
	calls   []call
	last    int64
	sum     map[string]int64 // by source and status
	forgot  []time.Time
	err     error // of every call
	persist bool  // though there is err
	hang    bool  // until the context ends
}

func (s *store) AddTallies(ctx context.Context, process string, seq int64, batch []hookonce.Tally) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, call{time.Now(), seq, slices.Clone(batch)})
	if s.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	if (s.err == nil || s.persist) && seq > s.last {
		s.last = seq
		if s.sum == nil {
			s.sum = map[string]int64{}
		}
		for _, t := range batch {
			s.sum[t.Source+" "+t.Status] += t.N
		}
	}
	return s.err
}

func (s *store) Tallies(context.Context, hookonce.TallyQuery) ([]hookonce.Tally, error) {
	return nil, nil
}

func (s *store) ForgetTallies(context.Context) (more bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forgot = append(s.forgot, time.Now())
	return len(s.forgot) == 1, s.err // the first time there is more
}

func (s *store) set(err error, persist bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.persist = err, persist
}

func (s *store) batches() []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *store) pieces() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.forgot)
}

var quiet = tallies.WithLogger(slog.New(slog.DiscardHandler))

func seen(c *tallies.Tallies, source, status string) {
	c.Observe(context.Background(), hookonce.Observation{Source: source, Status: status})
}

// running starts Run and returns what ends it, which says how long that took.
func running(t *testing.T, c *tallies.Tallies) (end func() time.Duration) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	synctest.Wait()
	return func() time.Duration {
		start := time.Now()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		return time.Since(start)
	}
}

// pass lets time pass, which the test does not wait for.
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// What is counted is added every ten seconds on the clock, in its minute, and what is left when Run ends.
func TestAddsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		c := tallies.New(s, quiet)
		pass(3 * time.Second)
		start := time.Now()
		end := running(t, c)
		seen(c, "billing", "accepted")
		seen(c, "billing", "accepted")
		seen(c, "billing", "duplicate")
		pass(6 * time.Second)
		if len(s.batches()) != 0 {
			t.Fatalf("it was added after 6 s: %+v", s.batches())
		}
		pass(time.Second)
		want := []hookonce.Tally{
			{Minute: start.UTC().Truncate(time.Minute), Source: "billing", Status: "accepted", N: 2},
			{Minute: start.UTC().Truncate(time.Minute), Source: "billing", Status: "duplicate", N: 1},
		}
		if len(s.batches()) != 1 || !slices.Equal(s.batches()[0].batch, want) {
			t.Fatalf("after ten seconds there were %+v, want %+v", s.batches(), want)
		}
		pass(time.Minute)
		if len(s.batches()) != 1 {
			t.Fatalf("nothing was counted, and %+v was added", s.batches()[1:])
		}
		seen(c, "billing", "failed")
		if took := end(); took != 0 || s.sum["billing failed"] != 1 {
			t.Errorf("at the end there are %v, after %v", s.sum, took)
		}
	})
}

// A store that does not answer holds up the end for as long as a call may take, and no handler at all.
func TestEndHasADeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &store{hang: true}
		c := tallies.New(s, quiet)
		end := running(t, c)
		seen(c, "billing", "accepted")
		if took := end(); took != 5*time.Second {
			t.Errorf("it ended after %v", took)
		}
	})
}

// A store that is away, or whose answers are lost, changes no sum.
func TestNothingIsLostOrDoubled(t *testing.T) {
	for _, persist := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var log strings.Builder
			s := new(store)
			c := tallies.New(s, tallies.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
			end := running(t, c)
			s.set(errors.New("connection lost"), persist)
			for range 60 {
				seen(c, "billing", "accepted")
				pass(10 * time.Second)
			}
			first := s.batches()[0]
			for _, again := range s.batches()[1:] {
				if again.seq != first.seq || !slices.Equal(again.batch, first.batch) {
					t.Fatalf("the batch came again as %+v, and was %+v", again, first)
				}
			}
			s.set(nil, false)
			end()
			if s.sum["billing accepted"] != 60 {
				t.Errorf("persisted %t: there are %v, want 60", persist, s.sum)
			}
			if n := strings.Count(log.String(), "could not be added"); n != 1 {
				t.Errorf("%d lines tell of it: %s", n, log.String())
			}
		})
	}
}

// Beyond the bound the oldest minutes are given up, and the log says how much that was.
func TestAnAbsenceIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		s := &store{err: errors.New("away")}
		c := tallies.New(s, tallies.WithLogger(slog.New(slog.NewTextHandler(&log, nil))))
		end := running(t, c)
		for range 1010 {
			for source := range tallies.MaxSources {
				seen(c, fmt.Sprint("source ", source), "accepted")
			}
			pass(time.Minute)
		}
		s.set(nil, false)
		end()
		var n int64
		for _, sum := range s.sum {
			n += sum
		}
		if n < 100_000 || n > 100_000+500 || !strings.Contains(log.String(), "given up") {
			t.Errorf("%d of %d are left: %s", n, 1010*tallies.MaxSources, log.String())
		}
	})
}

// Sources beyond the bound have one name, as those have that no table takes; what is no outcome is not counted.
func TestNamesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		c := tallies.New(s, quiet)
		end := running(t, c)
		seen(c, "bill\x00ing", "accepted")
		for source := range tallies.MaxSources + 7 {
			seen(c, fmt.Sprint("source ", source), "accepted")
		}
		seen(c, "source 0", "accepted")
		for _, status := range []string{"", "made up", "app:accepted"} {
			seen(c, "source 0", status)
		}
		end()
		if got := s.sum[tallies.Other+" accepted"]; got != 8 || s.sum["bill\x00ing accepted"] != 0 || s.sum["source 0 accepted"] != 2 || len(s.sum) != tallies.MaxSources+1 {
			t.Errorf("%d are others, of %d names: %v", got, len(s.sum), s.sum)
		}
	})
}

// Old tallies go at the start and every hour, piece by piece.
func TestForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		end := running(t, tallies.New(s, quiet))
		if s.pieces() != 2 {
			t.Errorf("%d pieces at the start, want two", s.pieces())
		}
		pass(59 * time.Minute)
		if s.pieces() != 2 {
			t.Errorf("%d pieces before the hour is over", s.pieces())
		}
		pass(61 * time.Minute)
		end()
		if s.pieces() != 4 {
			t.Errorf("%d pieces after two hours, want four", s.pieces())
		}
	})
}

// unmigrated has tables to forget of, and none to add to.
type unmigrated struct{ store }

func (*unmigrated) ForgetTallies(context.Context) (bool, error) { return false, nil }

// Without the tables Run ends at once, and says so: whether it finds out at the start, or when it adds.
func TestWithoutTables(t *testing.T) {
	for _, want := range []error{hookonce.ErrSchemaMissing, hookonce.ErrSchemaNewer} {
		var log strings.Builder
		logged := tallies.WithLogger(slog.New(slog.NewTextHandler(&log, nil)))
		if err := tallies.New(&store{err: want}, logged).Run(t.Context()); !errors.Is(err, want) {
			t.Errorf("Run: %v, want %v", err, want)
		}
		synctest.Test(t, func(t *testing.T) {
			c := tallies.New(&unmigrated{store{err: want}}, logged)
			seen(c, "billing", "accepted")
			if err := c.Run(t.Context()); !errors.Is(err, want) {
				t.Errorf("Run, later: %v, want %v", err, want)
			}
		})
		if said := log.String(); strings.Count(said, "\n") != 2 || strings.Count(said, "level=ERROR msg=\"tallies: it ends") != 2 {
			t.Errorf("logged %s", said)
		}
	}
}

// observed returns every status that handlers can observe, as their code has them.
func observed(t *testing.T) (all []string) {
	files, err := filepath.Glob("../*.go")
	if err != nil {
		t.Fatal(err)
	}
	add := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
				all = append(all, strings.Trim(l.Value, `"`))
			}
			return true
		})
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "status" {
					add(n)
				}
			case *ast.CompositeLit:
				if id, ok := n.Type.(*ast.Ident); ok && id.Name == "Observation" {
					for _, e := range n.Elts {
						if kv := e.(*ast.KeyValueExpr); kv.Key.(*ast.Ident).Name == "Status" {
							add(kv.Value)
						}
					}
				}
			}
			return true
		})
	}
	for v := hookonce.Acquired; v.String() != "unknown"; v++ {
		if v != hookonce.Pinned { // which is a failure of a webhook, and a conflict of a request with a key
			all = append(all, v.String())
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Whatever a handler observes is counted: a status that is new is one here, too.
func TestEveryStatusIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := new(store)
		c := tallies.New(s, quiet)
		end := running(t, c)
		all := observed(t)
		for _, status := range all {
			seen(c, "billing", status)
		}
		end()
		for _, status := range all {
			if s.sum["billing "+status] != 1 {
				t.Errorf("%s is observed, and not counted", status)
			}
		}
		if want := []string{"accepted", "busy", "conflict", "dead", "duplicate", "failed", "rejected", "unkeyed"}; !slices.Equal(all, want) || len(s.sum) != len(want) {
			t.Errorf("observed are %q, counted %v, want %q", all, s.sum, want)
		}
	})
}

func TestRefusesNil(t *testing.T) {
	for name, f := range map[string]func(){
		"no store": func() { tallies.New(nil) }, "no clock": func() { tallies.New(new(store), tallies.WithClock(nil)) },
		"no log": func() { tallies.New(new(store), tallies.WithLogger(nil)) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s does not panic", name)
				}
			}()
			f()
		}()
	}
}
