package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/storm"
)

// hammer fires rounds at one target.
type hammer struct {
	url     string
	forge   *forge
	effect  *effect // nil: the effect is not counted
	seed    uint64
	copies  int
	rounds  int
	timeout time.Duration
	wait    time.Duration
	settle  time.Duration
	watch   *hammerText // nil: nobody watches
}

// hammerRound is one event and what became of its copies.
type hammerRound struct {
	Key string `json:"key"`
	// Answers counts the copies by HTTP status.
	Answers map[int]int `json:"answers"`
	// Verdicts counts the copies by Hookonce-Status, where the endpoint sends it.
	Verdicts map[string]int `json:"verdicts"`
	// Unanswered counts the copies without an answer, by cause.
	Unanswered map[string]int `json:"unanswered"`
	// Effects is how often the effect happened; absent when it is not counted.
	Effects *int64 `json:"effects,omitempty"`
	// Slowest is the time until the last copy was answered.
	Slowest time.Duration `json:"slowest_ns"`
	// Verdict is one of the words below.
	Verdict hammerVerdict `json:"verdict"`

	before  int64 // the count of effects before the round
	passing bool  // nothing tells copies apart from events: each may take effect
}

// hammerVerdict says what a round proved.
type hammerVerdict string

const (
	once           hammerVerdict = "once"           // one effect, or one copy accepted and the others recognised
	doubled        hammerVerdict = "doubled"        // more than one
	repeated       hammerVerdict = "repeated"       // more than one, as is right where nothing tells a copy from another event
	lost           hammerVerdict = "lost"           // acknowledged, and no effect
	unacknowledged hammerVerdict = "unacknowledged" // no copy got a 2xx: the provider would go on retrying
	unproven       hammerVerdict = "unproven"       // acknowledged, and nothing tells how often it took effect
)

// hammerReport is the result, as --json writes it.
type hammerReport struct {
	URL      string                `json:"url"`
	Provider string                `json:"provider"`
	Seed     uint64                `json:"seed"`
	Copies   int                   `json:"copies"`
	Counted  bool                  `json:"effects_counted"`
	Rounds   []*hammerRound        `json:"rounds"`
	Latency  storm.Quantiles       `json:"latency"`
	Verdicts map[hammerVerdict]int `json:"rounds_by_verdict"`
	OK       bool                  `json:"ok"`
}

// run fires all rounds. An error means that the hammer itself could not do its work.
func (h *hammer) run(ctx context.Context) (*hammerReport, error) {
	report := &hammerReport{
		URL: h.url, Provider: h.forge.provider.Name(), Seed: h.seed, Copies: h.copies,
		Counted: h.effect != nil, Verdicts: map[hammerVerdict]int{},
	}
	latency := &storm.Histogram{}
	for n := range h.rounds {
		r, err := h.round(ctx, n, latency)
		if err != nil {
			return nil, fmt.Errorf("round %d: %w", n+1, err)
		}
		if n > 0 && r.Key != "" && r.Key == report.Rounds[n-1].Key {
			return nil, errors.New("the second event has the key of the first, so it would pass for a copy: put {{id}} where the body or the header has its id, or use --rounds 1")
		}
		report.Rounds = append(report.Rounds, r)
		h.watch.round(n, r)
	}
	if err := h.recount(ctx, report.Rounds); err != nil {
		return nil, err
	}
	for _, r := range report.Rounds {
		report.Verdicts[r.Verdict]++
	}
	report.Latency = latency.Quantiles()
	report.OK = report.Verdicts[doubled]+report.Verdicts[lost]+report.Verdicts[unacknowledged] == 0
	return report, nil
}

// round fires one event and judges what came back.
func (h *hammer) round(ctx context.Context, n int, latency *storm.Histogram) (*hammerRound, error) {
	now := time.Now()
	event, err := h.forge.sign(storm.EventID(h.seed, n), now, now)
	if err != nil {
		return nil, err
	}
	key, err := h.forge.key(event)
	if err != nil {
		return nil, err
	}
	r := &hammerRound{
		Key: key, Answers: map[int]int{}, Verdicts: map[string]int{}, Unanswered: map[string]int{},
		passing: h.forge.passing(),
	}
	if h.effect != nil {
		if r.before, err = h.effect.count(ctx, r.Key); err != nil {
			return nil, err
		}
	}
	answers, err := h.volley(ctx, event)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		r.add(a, latency)
	}
	if h.effect != nil {
		limit := h.wait
		if r.acknowledged() == 0 { // nothing is owed, but it may have happened all the same
			limit = 0
		}
		effects, err := h.effect.await(ctx, r.Key, r.before, limit, h.settle)
		if err != nil {
			return nil, err
		}
		r.Effects = &effects
	}
	r.Verdict = r.judge()
	return r, nil
}

func (h *hammer) volley(ctx context.Context, event *hookonce.Request) ([]storm.Answer, error) {
	target, err := storm.ParseTarget(event.URL)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, h.timeout, fmt.Errorf("no answer within %v", h.timeout))
	defer cancel()
	return storm.Volley(ctx, target, target.Request(event.Header, event.Body), h.copies)
}

// recount looks at every event's effect once more at the end, where the statement can tell events
// apart: a late double is still a double.
func (h *hammer) recount(ctx context.Context, rounds []*hammerRound) error {
	if h.effect == nil || !h.effect.keyed {
		return nil
	}
	for _, r := range rounds {
		n, err := h.effect.count(ctx, r.Key)
		if err != nil {
			return err
		}
		n -= r.before
		r.Effects = &n
		r.Verdict = r.judge()
	}
	return nil
}

func (r *hammerRound) add(a storm.Answer, latency *storm.Histogram) {
	r.Slowest = max(r.Slowest, a.Latency)
	if a.Err != nil {
		r.Unanswered[a.Err.Error()]++
		return
	}
	latency.Record(a.Latency)
	r.Answers[a.Status]++
	if a.Verdict != "" {
		r.Verdicts[a.Verdict]++
	}
}

// acknowledged returns how many copies got a 2xx.
func (r *hammerRound) acknowledged() int {
	n := 0
	for status, copies := range r.Answers {
		if status >= http.StatusOK && status < http.StatusMultipleChoices {
			n += copies
		}
	}
	return n
}

// judge says what the round proved. The count of effects decides where there is one; what the
// endpoint says about itself decides otherwise.
func (r *hammerRound) judge() hammerVerdict {
	took := r.Verdicts["accepted"] + r.Verdicts["unkeyed"]
	switch {
	case r.Effects != nil && *r.Effects > 1:
		return r.several()
	case r.acknowledged() == 0:
		return unacknowledged
	case r.Effects != nil && *r.Effects == 1:
		return once
	case r.Effects != nil:
		return lost
	case took > 1:
		return r.several()
	case took == 1:
		return once
	}
	return unproven
}

// several judges more than one effect.
func (r *hammerRound) several() hammerVerdict {
	if r.passing {
		return repeated
	}
	return doubled
}

// failure returns the error that the command ends with.
func (r *hammerReport) failure() error {
	switch {
	case r.OK:
		return nil
	case r.Verdicts[doubled] > 0:
		return fmt.Errorf("%d of %d events took effect more than once", r.Verdicts[doubled], len(r.Rounds))
	case r.Verdicts[lost] > 0:
		return fmt.Errorf("%d of %d events were acknowledged and had no effect", r.Verdicts[lost], len(r.Rounds))
	}
	return fmt.Errorf("%d of %d events were never acknowledged", r.Verdicts[unacknowledged], len(r.Rounds))
}
