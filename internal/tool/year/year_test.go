package year

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testskip"
)

var (
	lasts   = flag.Duration("year", 12*time.Second, "for how long plans are drawn and played")
	from    = flag.Uint64("seed", 0, "the first seed; 0: another one each time")
	shrinks = flag.Int("shrinks", 300, "how many smaller plans are tried, for as long as plans are drawn at most")
	keep    = flag.Bool("keep", false, "write a plan that breaks a law into testdata")
	each    = flag.Int("scenes", 6, "how many plans are drawn of each scene, if they are played in the time of -year")
	only    = flag.Bool("one", false, "play the plan of the seed alone, and print its trace")
)

// TestYear draws plans and plays them, until the time is over or a law is broken. A plan that breaks one is made as
// small as it gets, and left in testdata, where TestKept plays it.
func TestYear(t *testing.T) {
	testskip.Race(t)
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
	for _, what := range rare {
		if plans > 500 && counts[what] == 0 {
			t.Errorf("%s never happened", what)
		}
	}
}

// rare is what happens in few plans, and in none of TestEveryStepHappens.
var rare = []string{"disk/extend", "disk/purge", "disk/notify", "purged/ids", "purged/bodies", "recorded/dead", "recorded/pending", "stored/conflict", "stored/unkeyed", "copies/later", "map/planned"}

// found reports a broken law: with the smallest plan that still breaks one, and its trace.
func found(t *testing.T, p *Plan, v *Verdict) {
	t.Helper()
	t.Logf("seed %d: %s", p.Seed, strings.Join(v.Broken, "\n"))
	last, law := v, lawOf(v)
	deadline := time.Now().Add(*lasts)
	small := Shrink(p, *shrinks, func(q *Plan) bool {
		for range 3 {
			if time.Now().After(deadline) {
				return false
			}
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
	timer := time.AfterFunc(3*time.Minute, func() {
		debug.SetTraceback("all")
		panic(fmt.Sprintf("this plan stands still:\n%s", p))
	})
	defer timer.Stop()
	return Play(t, p)
}

// TestScenes plays small plans of what is rare among the large ones: two of each scene, one of each among cells, three of one
// that is played alone, and more while a scene has time: those that are played share it.
func TestScenes(t *testing.T) {
	testskip.Race(t)
	chosen := 0
	for _, s := range scenes {
		t.Run(s.name, func(t *testing.T) {
			chosen++
			t.Parallel() // from here on all are counted
			began, share := time.Now(), *lasts*time.Duration(min(chosen, runtime.GOMAXPROCS(0)))/time.Duration(chosen)
			least := uint64(2)
			switch {
			case chosen == 1:
				least = 3
			case s.cells:
				least = 1
			}
			for seed := range uint64(*each) {
				if seed >= least && time.Since(began) > share {
					return
				}
				p := s.Scene(max(*from, 1) + seed)
				v := watched(t, p)
				if *only {
					t.Logf("%s%s\n%v", p, strings.Join(v.Trace, "\n"), v.Counts)
				}
				if len(v.Broken) > 0 {
					found(t, p, v)
				}
				if *only {
					return
				}
			}
		})
	}
}

// TestKept plays the plans that once broke a law.
func TestKept(t *testing.T) {
	testskip.Race(t)
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

// TestEveryStepHappens: a fault that never happens finds nothing.
func TestEveryStepHappens(t *testing.T) {
	testskip.Long(t)
	for _, s := range everyStep() {
		name := strings.TrimSpace(s.Do + " " + s.With)
		t.Run(name, func(t *testing.T) {
			s.At = cmp.Or(s.At, Span(5*time.Second))
			p := &Plan{Gateways: 2, Steps: []Step{s}}
			if s.Do == "map/raise" || s.Do == "cell/lost" || s.Do == "database/clock" || s.On == "gw0" && s.With == "gw1" {
				p.Cells = []int{1, 1}
				p.Steps = append([]Step{{At: Span(2 * time.Second), Do: "map/raise", On: "gw1", With: everybody, N: 0b0101}}, s)
			}
			for i := range 16 {
				e := Event{N: i + 1, Source: sources()[i%len(sources())], Keyed: i%8 != 7, Object: 1, At: Span(time.Duration(4+i) * time.Second), Via: []int{0}}
				if i%2 == 0 {
					e.Via, e.Again = []int{0, 0}, []Span{Span(3 * time.Second)}
				}
				p.Events = append(p.Events, e)
			}
			v := watched(t, p)
			if len(v.Broken) > 0 {
				t.Errorf("%s\n%s", strings.Join(v.Trace, "\n"), strings.Join(v.Broken, "\n"))
			}
			if what := firesAs(s); v.Counts[what] == 0 {
				t.Errorf("%s never happened; what did: %v", what, v.Counts)
			}
		})
	}
}

// everyStep has a step of every kind.
func everyStep() (all []Step) {
	for _, kind := range []string{diskFail, diskLost, diskStall, diskSilent, diskLate, diskSlow, diskKept, diskBefore, diskAfter} {
		for _, op := range []string{"accept", "finish"} {
			all = append(all, Step{Do: "disk/" + kind, On: "gw0", With: op, For: Span(3 * time.Second)})
		}
	}
	for _, op := range []string{"take", "duplicates", "pauses", "tallies", "announce"} {
		all = append(all, Step{Do: "disk/" + diskLost, On: "gw0", With: op})
	}
	for _, kind := range []string{wireRequest, wireHalf, wireAnswer, wireSlow, wireLate} {
		all = append(all, Step{Do: "wire/" + kind, On: senders, With: "gw0", For: Span(3 * time.Second)},
			Step{Do: "wire/" + kind, On: "gw0", With: claiming, For: Span(3 * time.Second)})
	}
	for _, what := range []string{"fails", "gone", "slow", "holds", "dies", commitFails, commitLost, commitBefore, commitAfter} {
		all = append(all, Step{Do: "application/" + what, On: claiming, N: 6, For: Span(10 * time.Second)})
	}
	for _, what := range []string{"pause", "replay", "force", "reload"} {
		all = append(all, Step{Do: "operator/" + what, On: "gw1", With: claiming, N: 7, For: Span(10 * time.Second)})
	}
	all = append(all, Step{Do: "map/raise", On: "gw1", N: 0b1001}, Step{Do: "cell/lost", On: "gw1", For: Span(5 * time.Second)}, Step{Do: "stall", On: "gw0", For: Span(5 * time.Second)},
		Step{Do: "part", On: "gw0", With: "gw1", For: Span(10 * time.Second)})
	return append(all, Step{Do: "part", On: "gw0", With: claiming, For: Span(10 * time.Second)}, Step{Do: "away", On: "gw0", For: Span(10 * time.Second)},
		Step{Do: "lag", On: "gw0", For: Span(10 * time.Second), N: 50}, Step{At: Span(3 * time.Second), Do: "descriptors", On: "gw0", For: Span(10 * time.Second)},
		Step{Do: "kill", On: "gw0", For: Span(time.Second)}, Step{Do: "upgrade", On: "gw0", For: Span(time.Second)},
		Step{Do: "night", For: Span(30 * time.Hour)}, Step{Do: "clock", On: "gw0", N: 100}, Step{Do: "database/clock", On: "gw0", N: -100})
}

// firesAs is what is counted when a step has had its effect.
func firesAs(s Step) string {
	switch kind, what, _ := strings.Cut(s.Do, "/"); {
	case kind == "disk" && s.Do == "disk/"+diskLost:
		return "disk/" + s.With
	case what == "gone":
		return "application/fails"
	case what == "pause":
		return "operator/destinations/shop/pause/200"
	case what == "replay", what == "force":
		return "operator/replay/200"
	case what == "reload":
		return "operator/reload/200"
	case what == "lost" && kind == "cell":
		return "map/forget"
	case kind == "part":
		return "network/part"
	case kind == "descriptors":
		return "network/descriptors"
	case kind == "away":
		return "disk/parted"
	case kind == "kill":
		return "process/dies"
	case kind == "upgrade":
		return "process/stops"
	case kind == "clock":
		return "clock/jumps"
	}
	return s.Do
}

// TestShrink: of a plan that breaks something because of one event and one step, nothing else is left.
func TestShrink(t *testing.T) {
	p := Draw(12)
	for len(p.Events) < 9 || len(p.Steps) < 9 {
		p = Draw(p.Seed + 1)
	}
	event, step := p.Events[7], p.Steps[5]
	small := Shrink(p, 1000, func(q *Plan) bool {
		return slices.ContainsFunc(q.Events, func(e Event) bool { return e.N == event.N }) && slices.Contains(q.Steps, step)
	})
	if len(small.Events) != 1 || len(small.Steps) != 1 || len(small.Later) != 0 || len(small.Events[0].Again) > 0 {
		t.Errorf("left is\n%s", small)
	}
}

// TestDraw: a seed always draws the same.
func TestDraw(t *testing.T) {
	for seed := range uint64(50) {
		if a, b := Draw(seed).String(), Draw(seed).String(); a != b {
			t.Errorf("seed %d draws\n%s\nand\n%s", seed, a, b)
		}
	}
}
