package rendezvous

import (
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the vectors where there are none; those that are there never change")

// vector is a key, the nodes, and the one that owns it.
type vector struct {
	Nodes []Node   `json:"nodes"`
	Key   []string `json:"key"`
	Owner string   `json:"owner"`
	// Numbers holds h of every node, in hexadecimal, and L.
	Numbers [][2]string `json:"numbers"`
}

const vectorsFile = "testdata/vectors.json"

// These vectors never change: another owner of a key is another database that it is looked for in.
func TestVectors(t *testing.T) {
	if _, err := os.Stat(vectorsFile); err != nil && *write {
		writeVectors(t)
	}
	data, err := os.ReadFile(vectorsFile)
	if err != nil {
		t.Fatal(err)
	}
	var all []vector
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 100 {
		t.Fatalf("%d vectors", len(all))
	}
	for _, v := range all {
		if got := v.Nodes[Owner(v.Nodes, v.Key...)].Name; got != v.Owner {
			t.Errorf("%v among %v belongs to %s, and belonged to %s", v.Key, v.Nodes, got, v.Owner)
		}
		if got := numbers(v.Nodes, v.Key); !slices.Equal(got, v.Numbers) {
			t.Errorf("%v: %v, and was %v", v.Key, got, v.Numbers)
		}
	}
}

func numbers(nodes []Node, key []string) (all [][2]string) {
	d := keyDigest(key)
	for i := range nodes {
		s := scoreOf(&nodes[i], &d)
		all = append(all, [2]string{fmt.Sprintf("%016x", s.h), fmt.Sprint(s.cost())})
	}
	return all
}

func writeVectors(t *testing.T) {
	sets := [][]Node{
		{{"eu", 1}, {"us", 1}},
		{{"eu", 1}, {"us", 1}, {"ap", 1}},
		{{"eu", 3}, {"us", 1}, {"ap", 2}},
		{{"eu", 100}, {"us", 0}, {"ap", 1}},
		{{"cell-1", 4294967295}, {"cell-2", 1}, {"cell-3", 2147483648}},
	}
	keys := [][]string{{"stripe", "evt_1"}, {"stripe", ""}, {"", "stripe"}, {"ab", "c"}, {"a", "bc"}, {"shopify", "7:shop.eu9:order/123"},
		{"stripe", "sha256:" + strings.Repeat("0", 64)}, {"ключ", "日本"}, {"one part"}, {strings.Repeat("x", 255), "y"}}
	for i := range 20 {
		keys = append(keys, []string{"github", fmt.Sprintf("key-%d", i)})
	}
	var all []vector
	for _, nodes := range sets {
		for _, key := range keys {
			all = append(all, vector{nodes, key, nodes[Owner(nodes, key...)].Name, numbers(nodes, key)})
		}
	}
	data, err := json.MarshalIndent(all, "", " ")
	if err == nil {
		err = os.WriteFile(vectorsFile, append(data, '\n'), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// The logarithm is the real one, as far as a float64 tells, at the ends too, and never grows with h.
func TestCost(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	hs := []uint64{0, 1, 2, 3, 1<<63 - 1, 1 << 63, math.MaxUint64 - 1, math.MaxUint64}
	for range 20_000 {
		hs = append(hs, r.Uint64()>>(r.Uint64()%64))
	}
	slices.Sort(hs)
	last := uint64(math.MaxUint64)
	for _, h := range hs {
		got := cost(h)
		want := 64 - math.Log2(float64(h)+1)
		if math.Abs(float64(got)/(1<<fraction)-want) > 1e-9 {
			t.Fatalf("cost(%x) = %v, want %v", h, float64(got)/(1<<fraction), want)
		}
		if got > last {
			t.Fatalf("cost(%x) is larger than that of a smaller number", h)
		}
		last = got
	}
}

func owners(nodes []Node, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = nodes[Owner(nodes, "source", fmt.Sprint("evt_", i))].Name
	}
	return all
}

// A node owns the share of its weight, within five standard deviations.
func TestShares(t *testing.T) {
	const n = 60_000
	nodes := []Node{{"a", 1}, {"b", 2}, {"c", 7}, {"d", 0}}
	count := map[string]int{}
	for _, o := range owners(nodes, n) {
		count[o]++
	}
	for _, node := range nodes {
		p := float64(node.Weight) / 10
		if off := math.Abs(float64(count[node.Name]) - n*p); off > 5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%s owns %d of %d, with weight %d of 10", node.Name, count[node.Name], n, node.Weight)
		}
	}
}

// What changes moves only what it must: to a node that is new or heavier, away from one that is gone or lighter.
func TestOnlyWhatMustMoves(t *testing.T) {
	const n = 20_000
	before := []Node{{"a", 2}, {"b", 3}, {"c", 1}}
	for name, c := range map[string]struct {
		after    []Node
		from, to string // "": any
		share    float64
	}{
		"added":             {[]Node{{"a", 2}, {"b", 3}, {"c", 1}, {"d", 2}}, "", "d", 2. / 8},
		"removed":           {[]Node{{"a", 2}, {"b", 3}}, "c", "", 1. / 6},
		"weight zero":       {[]Node{{"a", 2}, {"b", 3}, {"c", 0}}, "c", "", 1. / 6},
		"heavier":           {[]Node{{"a", 2}, {"b", 3}, {"c", 3}}, "", "c", 3./8 - 1./6},
		"lighter":           {[]Node{{"a", 2}, {"b", 1}, {"c", 1}}, "b", "", 3./6 - 1./4},
		"all twice":         {[]Node{{"a", 4}, {"b", 6}, {"c", 2}}, "none", "none", 0},
		"in another order":  {[]Node{{"c", 1}, {"a", 2}, {"b", 3}}, "none", "none", 0},
		"as if equal twice": {[]Node{{"a", 2}, {"b", 3}, {"c", 1}}, "none", "none", 0},
	} {
		t.Run(name, func(t *testing.T) {
			moved := 0
			was, is := owners(before, n), owners(c.after, n)
			for i := range was {
				if was[i] == is[i] {
					continue
				}
				moved++
				if c.from != "" && was[i] != c.from || c.to != "" && is[i] != c.to {
					t.Fatalf("a key moved from %s to %s", was[i], is[i])
				}
			}
			if off := math.Abs(float64(moved) - n*c.share); off > 5*math.Sqrt(n*c.share*(1-c.share)) {
				t.Errorf("%d of %d keys moved, want a share of %.3f", moved, n, c.share)
			}
		})
	}
}

func TestNobody(t *testing.T) {
	if got := Owner(nil, "k"); got != -1 {
		t.Error(got)
	}
	if got := Owner([]Node{{"a", 0}}, "k"); got != -1 {
		t.Error(got)
	}
}

func BenchmarkOwner(b *testing.B) {
	for name, nodes := range map[string][]Node{"equal": {{"eu", 1}, {"us", 1}, {"ap", 1}}, "weighted": {{"eu", 1}, {"us", 2}, {"ap", 3}}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				Owner(nodes, "stripe", "evt_1NG8Du2eZvKYlo2CUI79vXWy")
			}
		})
	}
}
