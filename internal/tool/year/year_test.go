package year

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	lasts   = flag.Duration("year", 20*time.Second, "for how long plans are drawn and played")
	from    = flag.Uint64("seed", 0, "the first seed; 0: another one each time")
	shrinks = flag.Int("shrinks", 300, "how many smaller plans are tried")
	keep    = flag.Bool("keep", false, "write a plan that breaks a law into testdata")
	only    = flag.Bool("one", false, "play the plan of the seed alone, and print its trace")
)

// TestYear draws plans and plays them, until the time is over or a law is broken. A plan that breaks one is made as
// small as it gets, and left in testdata, where TestKept plays it.
func TestYear(t *testing.T) {
	seed := *from
	if seed == 0 {
		seed = rand.Uint64() >> 32
	}
	began, counts, simulated, plans := time.Now(), map[string]int{}, time.Duration(0), 0
	for time.Since(began) < *lasts {
		p := Draw(seed)
		v := watched(t, p)
		if *only {
			t.Log(p.String() + strings.Join(v.Trace, "\n"))
		}
		if len(v.Broken) > 0 {
			found(t, p, v)
			return
		}
		for what, n := range v.Counts {
			counts[what] += n
		}
		simulated += v.Lasted
		seed++
		plans++
		if *only {
			break
		}
	}
	t.Logf("%d plans, %.1f years in %v", plans, simulated.Hours()/24/365, time.Since(began).Round(time.Second))
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%8d %s", counts[what], what)
	}
}

// found reports a broken law: with the smallest plan that still breaks one, and its trace.
func found(t *testing.T, p *Plan, v *Verdict) {
	t.Helper()
	t.Logf("seed %d: %s", p.Seed, strings.Join(v.Broken, "\n"))
	last, law := v, lawOf(v)
	small := Shrink(p, *shrinks, func(q *Plan) bool {
		for range 3 {
			if v := watched(t, q); lawOf(v) == law {
				last = v
				return true
			}
		}
		return false
	})
	small.Found = last.Broken[0]
	data, err := json.MarshalIndent(small, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if *keep {
		file := filepath.Join("testdata", fmt.Sprintf("seed%d.json", p.Seed))
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			t.Error(err)
		}
	}
	t.Fatalf("%s\n%s\nwhat broke of seed %d:\n%s\nthe plan, for testdata:\n%s", small, strings.Join(last.Trace, "\n"), p.Seed, strings.Join(last.Broken, "\n"), data)
}

// lawOf is the first law that was broken, empty if none was.
func lawOf(v *Verdict) string {
	if len(v.Broken) == 0 {
		return ""
	}
	law, _, _ := strings.Cut(v.Broken[0], ":")
	return law
}

// watched plays a plan, and ends the program with all of its goroutines if that takes too long: a mutex that is held
// while time has to pass stops the time of a bubble for good.
func watched(t *testing.T, p *Plan) *Verdict {
	t.Helper()
	timer := time.AfterFunc(5*time.Minute, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("this plan stands still:\n%s", p))
	})
	defer timer.Stop()
	return Play(t, p)
}

// TestKept plays the plans that once broke a law.
func TestKept(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			p := new(Plan)
			if err := json.Unmarshal(data, p); err != nil {
				t.Fatal(err)
			}
			if v := watched(t, p); len(v.Broken) > 0 {
				t.Log(p.String() + strings.Join(v.Trace, "\n"))
				t.Fatal(fmt.Sprint(v.Broken))
			}
		})
	}
}
