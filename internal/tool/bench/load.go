//go:build linux

package main

import (
	"context"
	"encoding/json"
	"os"
	"runtime"
	"time"

	"github.com/hookonce/hookonce/internal/tool/bench/loadgen"
	"github.com/hookonce/hookonce/internal/traffic"
)

// loadOrder is what the generator is asked for.
type loadOrder struct {
	URL      string
	Conns    int
	Rate     float64
	Warmup   time.Duration
	Duration time.Duration
	Seed     uint64
	Events   int // signed ahead
	Cycle    bool
	Sources  int // 0: one; else those of sourcePath, in turn
}

// loadResult is what the generator reports.
type loadResult struct {
	loadgen.Result
	Began time.Time     `json:"began"`
	CPU   time.Duration `json:"cpu_ns"` // of the generator while it sent
}

// rate returns answers per second.
func (r loadResult) rate() float64 { return float64(r.Answers) / r.Seconds }

// cost returns the generator's own processor time per answer.
func (r loadResult) cost() time.Duration {
	return time.Duration(float64(r.CPU) / float64(max(r.Total, 1)))
}

// playLoad is the generator's process.
func playLoad(order string) error {
	runtime.GOMAXPROCS(1)
	var o loadOrder
	if err := json.Unmarshal([]byte(order), &o); err != nil {
		return err
	}
	target, err := traffic.ParseTarget(o.URL)
	if err != nil {
		return err
	}
	c, err := newCorpus(target, o.Seed, o.Events, o.Cycle, o.Sources)
	if err != nil {
		return err
	}
	before, err := own()
	if err != nil {
		return err
	}
	began := time.Now()
	res, err := loadgen.Load{
		Target: target, Conns: o.Conns, Rate: o.Rate, Warmup: o.Warmup, Duration: o.Duration, Next: c.request,
	}.Run(context.Background())
	if err != nil {
		return err
	}
	after, err := own()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(loadResult{*res, began, after - before})
}
