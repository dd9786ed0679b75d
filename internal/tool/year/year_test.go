package year

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var (
	lasts = flag.Duration("year", 20*time.Second, "for how long plans are drawn and played")
	from  = flag.Uint64("seed", 0, "the first seed; 0: another one each time")
	only  = flag.Bool("one", false, "play the plan of the seed alone, and print its trace")
)

// TestYear draws plans and plays them, until the time is over or a law is broken.
func TestYear(t *testing.T) {
	seed := *from
	if seed == 0 {
		seed = rand.Uint64() >> 32
	}
	began, counts, simulated, plans := time.Now(), map[string]int{}, time.Duration(0), 0
	for time.Since(began) < *lasts || *only {
		p := Draw(seed)
		v := Play(t, p)
		if *only || len(v.Broken) > 0 {
			t.Log(p.String() + strings.Join(v.Trace, "\n"))
		}
		if len(v.Broken) > 0 {
			t.Fatalf("seed %d: %s", seed, strings.Join(v.Broken, "\n"))
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
			if v := Play(t, p); len(v.Broken) > 0 {
				t.Log(p.String() + strings.Join(v.Trace, "\n"))
				t.Fatal(fmt.Sprint(v.Broken))
			}
		})
	}
}
