// Package hammer sends one signed event many times at the same instant to any endpoint, and judges from the answers,
// and from a count of its effects, whether it took effect once. It is behind the command hammer.
package hammer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce/cmd/hookonce/internal/signer"
	"github.com/hookonce/hookonce/internal/traffic"
)

// Hammer fires rounds at one endpoint, which may have several doors.
type Hammer struct {
	// Signers make the requests, each for the URL of one door. They are of one provider.
	Signers []*signer.Signer
	// Effect counts what an event did; nil: that is not counted.
	Effect *Effect
	// Seed is what the ids of events follow from.
	Seed uint64
	// Copies is how often each event is sent at one instant, to random doors, each of which has as many as another, or one
	// more; Rounds is how many events there are.
	Copies, Rounds int
	// Timeout bounds the wait for the answers of a round, and Wait that for an effect; Settle is how long a second
	// effect is watched for after the first.
	Timeout, Wait, Settle time.Duration
	// Watch shows rounds as they come in; nil: nobody watches.
	Watch *Text
}

// Round is one event and what became of its copies.
type Round struct {
	Key string `json:"key"`
	// Answers counts the copies by HTTP status.
	Answers map[int]int `json:"answers"`
	// Statuses counts the copies by Hookonce-Status, where the endpoint sends it.
	Statuses map[string]int `json:"statuses"`
	// Unanswered counts the copies without an answer, by cause.
	Unanswered map[string]int `json:"unanswered"`
	// Effects is how often the effect happened; absent when it is not counted.
	Effects *int64 `json:"effects,omitempty"`
	// Slowest is the time until the last copy was answered.
	Slowest time.Duration `json:"slowest_ns"`
	// Result is one of the words below.
	Result Result `json:"result"`

	doors   []Tally
	copies  int
	before  int64 // the count of effects before the round
	passing bool  // nothing tells copies apart from events: each may take effect
}

// Result says what a round proved.
type Result string

const (
	Once           Result = "once"           // one effect, or one copy accepted and all others recognised
	Doubled        Result = "doubled"        // more than one
	Repeated       Result = "repeated"       // more than one, as is right where nothing tells a copy from another event
	Lost           Result = "lost"           // acknowledged, and no effect
	Unacknowledged Result = "unacknowledged" // no copy got a 2xx: the provider would go on retrying
	Unproven       Result = "unproven"       // acknowledged, and nothing tells of every copy whether it took effect
)

// Tally counts copies.
type Tally struct {
	// URL is the door, without its query, where a token may be; empty: all doors.
	URL string `json:"url,omitempty"`
	// Copies is how many were sent there, and Acknowledged how many of them were answered with a 2xx.
	Copies       int `json:"copies"`
	Acknowledged int `json:"acknowledged"`
	// New and Duplicates are those that were answered so, where the endpoint sends Hookonce-Status.
	New        int `json:"new"`
	Duplicates int `json:"duplicates"`
	// Doubled is how many events took effect more than once, of which a copy was new here.
	Doubled int `json:"doubled"`
	// LastRefusal is what the last copy came to that was not acknowledged; empty: all were.
	LastRefusal string `json:"last_refusal,omitempty"`
}

func (t *Tally) add(a traffic.Answer) {
	t.Copies++
	switch {
	case a.Err != nil:
		t.LastRefusal = fmt.Sprintf("no answer: %v", a.Err)
		return
	case a.Status/100 == 2:
		t.Acknowledged++
	default:
		t.LastRefusal = fmt.Sprint(a.Status)
	}
	switch a.EventStatus {
	case "accepted", "unkeyed":
		t.New++
	case "duplicate":
		t.Duplicates++
	}
}

func (t *Tally) join(o *Tally, doubled bool) {
	t.Copies += o.Copies
	t.Acknowledged += o.Acknowledged
	t.New += o.New
	t.Duplicates += o.Duplicates
	t.LastRefusal = cmp.Or(o.LastRefusal, t.LastRefusal)
	if doubled && o.New > 0 {
		t.Doubled++
	}
}

// Report is the result, as --json writes it.
type Report struct {
	URL      string            `json:"url"` // of the first door, without its query
	Provider string            `json:"provider"`
	Seed     uint64            `json:"seed,string"` // beyond 2^53 a JSON number is not exact where most programs read it
	Copies   int               `json:"copies"`
	Counted  bool              `json:"effects_counted"`
	Rounds   []*Round          `json:"rounds"`
	Latency  traffic.Quantiles `json:"latency"`
	Results  map[Result]int    `json:"rounds_by_result"`
	Doors    []Tally           `json:"doors"`
	Total    Tally             `json:"total"`
	// Stopped says what kept the hammer from all of its rounds; empty: nothing. A round that it was in is in none of the
	// counts, unless it doubled its event.
	Stopped string `json:"stopped,omitempty"`
	OK      bool   `json:"ok"`

	asked int // rounds
}

// Run fires all rounds. What ends them sooner, as a door that is no longer there or the end of ctx, is in the report,
// with all that was found before. An error means that nothing was sent, and that there is no report.
func (h *Hammer) Run(ctx context.Context) (*Report, error) {
	report := &Report{
		URL: h.urls()[0], Provider: h.Signers[0].Provider.Name(), Seed: h.Seed, Copies: h.Copies,
		Counted: h.Effect != nil, Rounds: []*Round{}, Results: map[Result]int{}, Doors: h.tallies(), asked: h.Rounds,
	}
	latency := &traffic.Histogram{}
	last := ""
	for n := range h.Rounds {
		r, err := h.round(ctx, n, last, latency)
		if err != nil && n == 0 && r == nil {
			return nil, err
		}
		if err != nil {
			report.Stopped = fmt.Sprintf("round %d of %d: %v", n+1, h.Rounds, err)
		}
		if err == nil || r != nil && r.Result == Doubled {
			report.Rounds = append(report.Rounds, r)
			h.Watch.round(n, r)
		}
		if err != nil {
			break
		}
		last = r.Key
	}
	if err := h.recount(ctx, report.Rounds); err != nil && report.Stopped == "" {
		report.Stopped = fmt.Sprintf("the last count: %v", err)
	}
	for _, r := range report.Rounds {
		report.Results[r.Result]++
		report.tally(r)
	}
	report.Latency = latency.Quantiles()
	report.OK = report.Failure() == nil
	return report, nil
}

// urls are the doors as they are shown.
func (h *Hammer) urls() (all []string) {
	for _, s := range h.Signers {
		url, _, _ := strings.Cut(s.URL, "?")
		all = append(all, url)
	}
	return all
}

// tallies are an empty one for each door.
func (h *Hammer) tallies() (all []Tally) {
	for _, url := range h.urls() {
		all = append(all, Tally{URL: url})
	}
	return all
}

// tally adds a round to the counts.
func (r *Report) tally(of *Round) {
	for i := range of.doors {
		r.Doors[i].join(&of.doors[i], of.Result == Doubled)
		r.Total.join(&of.doors[i], false)
	}
	if of.Result == Doubled {
		r.Total.Doubled++
	}
}

// round fires one event and judges what came back. With an error there is a round if the event was sent, judged by
// what is known of it.
func (h *Hammer) round(ctx context.Context, n int, last string, latency *traffic.Histogram) (*Round, error) {
	key, shots, err := h.sign(n)
	if err != nil {
		return nil, err
	}
	if key != "" && key == last {
		return nil, errors.New("the second event has the key of the first, so it would pass for a copy: put {{id}} where the body or the header has its id, or use --rounds 1")
	}
	r := &Round{
		Key: key, Answers: map[int]int{}, Statuses: map[string]int{}, Unanswered: map[string]int{},
		doors: h.tallies(), copies: h.Copies, passing: h.Signers[0].Passing(),
	}
	if h.Effect != nil {
		if r.before, err = h.Effect.count(ctx, r.Key); err != nil {
			return nil, err
		}
	}
	doors := h.spread(n)
	answers, err := h.volley(ctx, shots, doors)
	if err != nil {
		return nil, err
	}
	for i, a := range answers {
		r.add(a, latency)
		r.doors[doors[i]].add(a)
	}
	err = context.Cause(ctx) // it broke off the wait for the answers
	if err == nil && h.Effect != nil {
		err = h.observe(ctx, r)
	}
	r.Result = r.judge()
	return r, err
}

// observe counts the effect of a round.
func (h *Hammer) observe(ctx context.Context, r *Round) error {
	limit := h.Wait
	if r.acknowledged() == 0 { // nothing is owed, but it may have happened all the same
		limit = 0
	}
	effects, err := h.Effect.await(ctx, r.Key, r.before, limit, h.Settle)
	if err != nil {
		return err
	}
	r.Effects = &effects
	return nil
}

// id returns the id of the event of a round, a number where the sender's ids are numbers.
func (h *Hammer) id(round int) string {
	return cmp.Or(h.Signers[0].Provider.Spec().Example.NumberedID(traffic.EventNumber(h.Seed, round)), traffic.EventID(h.Seed, round))
}

// sign makes the event of a round, as it is sent to each door.
func (h *Hammer) sign(n int) (key string, shots []traffic.Shot, err error) {
	now := time.Now()
	for i, s := range h.Signers {
		event, err := s.Sign(h.id(n), now, now)
		if err != nil {
			return "", nil, err
		}
		if i == 0 {
			if key, err = s.Key(event); err != nil {
				return "", nil, err
			}
		}
		target, err := traffic.ParseTarget(event.URL)
		if err != nil {
			return "", nil, err
		}
		shots = append(shots, traffic.Shot{Target: target, Request: target.Request(event.Header, event.Body)})
	}
	return key, shots, nil
}

// spread says to which door each copy of a round goes.
func (h *Hammer) spread(n int) []int {
	doors := make([]int, h.Copies)
	for i := range doors {
		doors[i] = (i + n) % len(h.Signers)
	}
	rand.New(rand.NewPCG(h.Seed, uint64(n))).Shuffle(len(doors), func(i, j int) { doors[i], doors[j] = doors[j], doors[i] })
	return doors
}

// volley sends each copy to its door. The error names the door that kept it from that.
func (h *Hammer) volley(parent context.Context, shots []traffic.Shot, doors []int) ([]traffic.Answer, error) {
	ctx, cancel := context.WithTimeoutCause(parent, h.Timeout, fmt.Errorf("the server did not answer within %v", h.Timeout))
	defer cancel()
	all := make([]traffic.Shot, len(doors))
	for i, door := range doors {
		all[i] = shots[door]
	}
	answers, err := traffic.VolleyAt(ctx, all)
	var at *traffic.ShotError
	switch {
	case err != nil && parent.Err() != nil:
		return nil, context.Cause(parent)
	case errors.As(err, &at):
		return nil, fmt.Errorf("%s cannot be sent to: %w", h.urls()[doors[at.Shot]], at.Err)
	}
	return answers, err
}

// countAfterEnd bounds the last count after ctx has ended: whoever ended it waits.
const countAfterEnd = 5 * time.Second

// recount looks at every event's effect once more at the end, where the statement can tell events
// apart: a late double is still a double, also after ctx has ended.
func (h *Hammer) recount(ctx context.Context, rounds []*Round) error {
	if h.Effect == nil || !h.Effect.keyed {
		return nil
	}
	if ctx.Err() != nil {
		patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), countAfterEnd)
		defer cancel()
		ctx = patient
	}
	for _, r := range rounds {
		n, err := h.Effect.count(ctx, r.Key)
		if err != nil {
			return err
		}
		n -= r.before
		r.Effects = &n
		r.Result = r.judge()
	}
	return nil
}

func (r *Round) add(a traffic.Answer, latency *traffic.Histogram) {
	r.Slowest = max(r.Slowest, a.Latency)
	if a.Err != nil {
		r.Unanswered[a.Err.Error()]++
		return
	}
	latency.Record(a.Latency)
	r.Answers[a.Status]++
	if a.EventStatus != "" {
		r.Statuses[a.EventStatus]++
	}
}

// acknowledged returns how many copies got a 2xx.
func (r *Round) acknowledged() int {
	n := 0
	for status, copies := range r.Answers {
		if status >= http.StatusOK && status < http.StatusMultipleChoices {
			n += copies
		}
	}
	return n
}

// judge says what the round proved. The count of effects decides where there is one; what the
// endpoint says about itself decides otherwise: a copy of which it does not say that it is recognised may have taken
// effect too.
func (r *Round) judge() Result {
	took := r.took()
	switch {
	case r.Effects != nil && *r.Effects > 1:
		return r.several()
	case r.Effects == nil && took > 1:
		return r.several()
	case r.acknowledged() == 0:
		return Unacknowledged
	case r.Effects != nil && *r.Effects == 1:
		return Once
	case r.Effects != nil:
		return Lost
	case took == 1 && r.Statuses["duplicate"] == r.copies-1:
		return Once
	}
	return Unproven
}

// took returns how many copies took effect by the endpoint's own account.
func (r *Round) took() int { return r.Statuses["accepted"] + r.Statuses["unkeyed"] }

// several judges more than one effect.
func (r *Round) several() Result {
	if r.passing {
		return Repeated
	}
	return Doubled
}

// Failure returns what was wrong, a line each; nil if all rounds were made and every event took effect once, as far as
// that is known, and every door acknowledged something.
func (r *Report) Failure() error {
	var wrong []error
	for _, w := range []struct {
		result Result
		says   string
	}{
		{Doubled, "took effect more than once"},
		{Lost, "were acknowledged and had no effect"},
		{Unacknowledged, "were never acknowledged"},
	} {
		if n := r.Results[w.result]; n > 0 {
			wrong = append(wrong, fmt.Errorf("%d of %d events %s", n, len(r.Rounds), w.says))
			break
		}
	}
	for _, d := range r.refusing() {
		wrong = append(wrong, fmt.Errorf("%s acknowledged nothing; its last answer: %s", d.URL, d.LastRefusal))
	}
	if r.Stopped != "" {
		wrong = append(wrong, fmt.Errorf("stopped in %s", r.Stopped))
	}
	return errors.Join(wrong...)
}

// refusing are the doors that acknowledged nothing while others did.
func (r *Report) refusing() (doors []Tally) {
	for _, d := range r.Doors {
		if d.Copies > 0 && d.Acknowledged == 0 && r.Total.Acknowledged > 0 {
			doors = append(doors, d)
		}
	}
	return doors
}
