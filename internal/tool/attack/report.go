//go:build linux

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/traffic"
)

// result is what an attack led to.
type result struct {
	Name string `json:"attack"`
	What string `json:"what"`
	// Genuine is what the genuine sender saw, Health and Ready who asked for those.
	Genuine seen `json:"genuine"`
	Health  seen `json:"healthz"`
	Ready   seen `json:"readyz"`
	// Hostile counts what the attackers were answered.
	Hostile map[string]int `json:"hostile"`
	// Memory is the largest resident size of the process in bytes, and MemoryBound what is stated.
	Memory      int64 `json:"memory"`
	MemoryBound int64 `json:"memory_bound"`
	// Lines is how many lines were logged, those about accepted events aside, and LinesBound what is stated.
	Lines      int `json:"lines"`
	LinesBound int `json:"lines_bound"`
	// Lost and Doubled count events that were acknowledged, and delivered never or more than once.
	Lost    int `json:"lost"`
	Doubled int `json:"doubled"`
	// Notes are what the attack looked at besides, and Broken the bounds that did not hold.
	Notes  []string `json:"notes,omitempty"`
	Broken []string `json:"broken,omitempty"`
}

// seen is what somebody was answered who asked at a steady rate.
type seen struct {
	Sent    int               `json:"sent"`
	InTime  int               `json:"in_time"` // answered 2xx within inTime
	Latency traffic.Quantiles `json:"latency"`
	HeldUp  int               `json:"held_up"`          // were sent late, because the machine was busy
	Others  map[string]int    `json:"others,omitempty"` // how the others ended

	latency traffic.Histogram
}

// inTime is how soon a genuine request is to be answered.
const inTime = time.Second

// share returns how many of 100 were answered in time.
func (s seen) share() float64 { return 100 * float64(s.InTime) / float64(max(s.Sent, 1)) }

// leastShare is how many of 100 genuine requests must be answered in time.
const leastShare = 99

// judge compares what was seen with what is stated, and the shares that were answered in time with the least.
func (r *result) judge(a attack, least float64) {
	who := map[string]seen{"genuine requests": r.Genuine, "/healthz": r.Health, "/readyz": r.Ready}
	if a.refuses {
		who = map[string]seen{"/healthz": r.Health}
	}
	for _, name := range slices.Sorted(maps.Keys(who)) {
		if s := who[name]; s.share() < least {
			r.Broken = append(r.Broken, fmt.Sprintf("%s: %d of %d in time, %s", name, s.InTime, s.Sent, counts(s.Others)))
		}
	}
	if r.Memory > r.MemoryBound {
		r.Broken = append(r.Broken, fmt.Sprintf("memory: %s, stated are %s", mib(r.Memory), mib(r.MemoryBound)))
	}
	if r.Lines > r.LinesBound {
		r.Broken = append(r.Broken, fmt.Sprintf("lines: %d, stated are %d", r.Lines, r.LinesBound))
	}
	if r.Lost > 0 || r.Doubled > 0 {
		r.Broken = append(r.Broken, fmt.Sprintf("acknowledged events: %d lost, %d delivered twice", r.Lost, r.Doubled))
	}
}

const tableHead = `| attack | genuine | 2xx within 1 s | p50, p99 | other outcomes | /healthz, /readyz | memory | lines | verdict |
|---|---|---|---|---|---|---|---|---|
`

func (r result) row() string {
	verdict := "holds"
	if len(r.Broken) > 0 {
		verdict = "**broken**: " + strings.Join(r.Broken, "; ")
	}
	if len(r.Notes) > 0 {
		verdict += " (" + strings.Join(r.Notes, "; ") + ")"
	}
	others := counts(r.Genuine.Others)
	if h := counts(r.Hostile); h != "" {
		others = strings.TrimPrefix(others+"; attackers: "+h, "; ")
	}
	return fmt.Sprintf("| %s | %d | %.1f %% | %s, %s | %s | %.0f %%, %.0f %% | %s of %s | %d of %d | %s |\n",
		r.Name, r.Genuine.Sent, r.Genuine.share(), short(r.Genuine.Latency.P50), short(r.Genuine.Latency.P99), others,
		r.Health.share(), r.Ready.share(), mib(r.Memory), mib(r.MemoryBound), r.Lines, r.LinesBound, verdict)
}

// counts lists what happened how often, the most frequent first.
func counts(of map[string]int) string {
	names := slices.SortedFunc(maps.Keys(of), func(a, b string) int { return cmp.Or(of[b]-of[a], strings.Compare(a, b)) })
	for i, name := range names {
		names[i] = fmt.Sprintf("%s × %d", name, of[name])
	}
	return strings.Join(names, ", ")
}

func short(d time.Duration) string { return d.Round(time.Duration(100) * time.Microsecond).String() }

func mib(n int64) string { return fmt.Sprintf("%d MiB", n>>20) }
