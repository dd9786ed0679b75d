package deliver

import (
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

// State is how a destination stands.
type State string

// The states of a destination.
const (
	Healthy    State = "healthy"
	Ill        State = "ill"        // it gets probes
	Recovering State = "recovering" // it gets more and more
)

const (
	signsSoon  = 3                // so many signs in a row do, if they lasted for
	soon       = 5 * time.Second  // that long
	noSuccess  = 30 * time.Second // this long without a success, and it is ill
	maxProbes  = 4                // under way at once: one, and some of kinds that have not failed
	maxAvoided = 32               // kinds that are remembered
	remindEach = 10 * time.Minute // the log says that a destination still is ill
	untried    = time.Minute      // after the time of a probe with nothing to try, it is not known to be ill any more
)

// try is an attempt that began.
type try struct {
	work  *journal.Work
	began time.Time
	probe bool // the destination was ill
}

// health decides how much a destination gets at once, by how its attempts end: a sign of illness halves that, a
// success adds one, which doubles it with each round. The mutex of its send queue guards it.
type health struct {
	settings Breaker
	most     int // attempts at once
	limit    int // the same at the moment; at least 1
	state    State
	since    time.Time // of the state
	cause    string    // of the illness: the last error

	cut     time.Time     // when limit was halved
	lived   time.Time     // the last success
	row     row           // of failures since then
	avoid   []trouble     // what failed since it last succeeded, the last first
	pick    time.Time     // the last failure that may have been the fault of the event
	busyTo  time.Time     // when the destination wants to be asked again
	pause   time.Duration // the last one after a sign; zero when healthy
	short   time.Duration // the last one after another failure
	until   time.Time     // ill: the next probe
	probes  int           // under way
	probed  time.Time     // when the last began
	logged  time.Time
	told    int  // [journal.Rest.Most] as the journal knows it
	picky   bool // the same of [journal.Rest.Pick], while healthy
	changed bool // the journal has to be told
}

// trouble is a kind of event that fails.
type trouble struct {
	journal.Class
	failures int
	alone    bool // others succeed
}

func (c *trouble) is(source, kind string) bool { return c.Source == source && c.Type == kind }

// row are the failures since the last success. A few events prove nothing, however often they take turns in failing, so
// that each counts once; that nobody is there counts each time.
type row struct {
	signs          int
	sign, failure  time.Time // when the attempts that came to the first ones began
	signed, failed []int64   // the events that gave a sign, and all that failed
}

// counts adds an event to those of a row, which has places for as many as can matter. It reports whether it is another
// one.
func (h *health) counts(events *[]int64, id int64) (other bool) {
	if slices.Contains(*events, id) {
		return false
	}
	if len(*events) < max(h.settings.Failures, signsSoon) {
		*events = append(*events, id)
	}
	return true
}

func newHealth(s Breaker, most int, now time.Time) *health {
	return &health{settings: s, most: most, limit: most, state: Healthy, since: now}
}

// resize has the destination bear another number of attempts at once.
func (h *health) resize(most int) {
	if h.limit == h.most {
		h.limit = most
	}
	h.most, h.limit = most, min(h.limit, most)
}

func (h *health) ill() bool { return h.state == Ill }

// probing reports whether an attempt of this kind may begin at a destination that is ill.
func (h *health) probing(now time.Time, source, kind string) bool {
	if now.Before(h.busyTo) || h.probes >= maxProbes {
		return false
	}
	if h.probes == 0 && !now.Before(h.until) {
		return true
	}
	spaced := !now.Before(h.probed.Add(min(h.settings.PauseMax, time.Second)))
	return spaced && !slices.ContainsFunc(h.avoid, func(c trouble) bool { return c.is(source, kind) })
}

// learn follows the end of an attempt, while so many others are under way. It reports whether a failure costs
// no try.
func (h *health) learn(now time.Time, t *try, v retry.Judgement, others int, cause string) (spared bool) {
	if h.settings.Failures == 0 || v.Signal == retry.NoSignal {
		return false
	}
	if v.Signal == retry.Success {
		h.succeeded(now, t.work, others)
		return false
	}
	was := h.ill()
	h.failed(now, t, v, cause)
	return was || h.ill()
}

// succeeded makes room for more.
func (h *health) succeeded(now time.Time, w *journal.Work, others int) {
	h.lived, h.row, h.busyTo, h.short = now, row{}, time.Time{}, 0
	h.avoid = slices.DeleteFunc(h.avoid, func(c trouble) bool { return c.is(w.Source, w.Type) })
	for i := range h.avoid {
		h.avoid[i].alone = h.avoid[i].failures >= signsSoon
	}
	if h.ill() {
		h.enter(Recovering, now)
		h.limit = 1
	}
	if h.limit == h.most {
		if h.state == Recovering {
			h.recovered(now)
		}
		h.changed = h.changed || h.picky && !h.picks(now)
		return
	}
	if h.limit++; others == 0 {
		h.limit = min(h.most, 2*(h.limit-1))
	}
	if h.state != Recovering {
		return
	}
	if h.limit >= h.most {
		h.recovered(now)
	} else if h.limit >= h.told {
		h.changed = true
	}
}

func (h *health) recovered(now time.Time) {
	h.enter(Healthy, now)
	h.pause, h.cause = 0, ""
}

// doubt ends an illness that nothing confirms any more: the time of the next probe is long past, and nothing was tried here.
// Others may have tried everything, and know more. The next attempt tells, which is alone: one sign makes the destination ill
// again, and is spared like that of a probe.
func (h *health) doubt(now time.Time) {
	h.enter(Recovering, now)
	h.limit = 1
}

// doubtIn returns how long a destination that is ill stays so while there is nothing to try.
func (h *health) doubtIn(now time.Time) time.Duration { return h.until.Add(untried).Sub(now) }

func (h *health) enter(s State, now time.Time) { h.state, h.since, h.changed = s, now, true }

// failed counts a failure, and finds out whether the destination is ill. It says nothing about that if anything
// succeeded while its attempt was under way, or if events of this kind alone fail.
func (h *health) failed(now time.Time, t *try, v retry.Judgement, cause string) {
	alone := h.avoids(t.work)
	if v.Signal == retry.Declined || v.Signal == retry.Faulty {
		h.pick = now
	}
	if h.lived.After(t.began) || alone && v.Signal != retry.Unreachable && now.Sub(h.lived) < troubled {
		if t.probe && h.ill() {
			h.again(now, retry.Declined)
		}
		return
	}
	h.cause = cause
	h.busyTo = maxTime(h.busyTo, v.Due(now, 0))
	if len(h.row.failed) == 0 {
		h.row.failure = t.began
	}
	h.counts(&h.row.failed, t.work.EventID)
	switch {
	case !v.Signal.Illness():
		h.row.signs, h.row.signed = 0, nil
	case h.counts(&h.row.signed, t.work.EventID) || v.Signal == retry.Unreachable:
		if h.row.signs++; h.row.signs == 1 {
			h.row.sign = t.began
		}
	}
	switch {
	case h.ill() && t.probe:
		h.again(now, v.Signal)
	case h.ill():
		// An attempt from before, whose answer may ask for more time than the next probe leaves.
		if h.busyTo.After(maxTime(now, h.until)) {
			h.until, h.changed = h.busyTo, true
		}
	case h.shown(now, v.Signal):
		h.enter(Ill, now)
		h.limit = 1
		h.again(now, v.Signal)
	case v.Signal.Illness() && !t.began.Before(h.cut): // once for all that were under way
		h.limit, h.cut = max(1, h.limit/2), now
	}
}

// shown reports whether the failures show that the destination is ill. One that recovers has shown before that
// it may be: a round that fails is enough.
func (h *health) shown(now time.Time, s retry.Signal) bool {
	r := &h.row
	return r.signs >= h.settings.Failures ||
		r.signs >= signsSoon && now.Sub(r.sign) >= soon ||
		len(r.failed) >= h.settings.Failures && now.Sub(r.failure) >= noSuccess ||
		s.Illness() && h.state == Recovering && r.signs >= h.limit
}

// again sets the time of the next probe. After an answer it comes soon: the destination is there, and what was
// tried may be to blame.
func (h *health) again(now time.Time, s retry.Signal) {
	var pause time.Duration
	if s.Illness() {
		h.pause = min(max(h.settings.Pause, 2*h.pause), h.settings.PauseMax)
		pause = h.pause
	} else {
		h.short = min(max(shortestPause, 2*h.short), h.settings.PauseMax)
		pause = h.short
	}
	h.until = maxTime(now.Add(pause), h.busyTo)
	h.changed = true
}

// back is when what waits and was not tried is due, at a destination that is ill: after a pause. The journal brings it
// here when the time has come for the next probe; that may be a day later, and who knows the destination at another
// address need not wait for it.
func (h *health) back(now time.Time) time.Time {
	if longest := now.Add(h.settings.PauseMax); h.until.After(longest) {
		return longest
	}
	return maxTime(now, h.until)
}

// avoids remembers a kind of event that failed, with the last resource. It reports whether others succeed.
func (h *health) avoids(w *journal.Work) (alone bool) {
	c := trouble{Class: journal.Class{Source: w.Source, Type: w.Type}}
	if i := slices.IndexFunc(h.avoid, func(c trouble) bool { return c.is(w.Source, w.Type) }); i >= 0 {
		c = h.avoid[i]
		h.avoid = slices.Delete(h.avoid, i, i+1)
	}
	c.Resource = w.Resource
	c.failures++
	h.avoid = slices.Insert(h.avoid, 0, c)
	h.avoid = h.avoid[:min(len(h.avoid), maxAvoided)]
	return c.alone
}

// alone reports whether events of a kind fail again and again while others succeed.
func (h *health) alone(source, kind string) bool {
	return slices.ContainsFunc(h.avoid, func(c trouble) bool { return c.alone && c.is(source, kind) })
}

func (h *health) avoided() []journal.Class {
	all := make([]journal.Class, len(h.avoid))
	for i := range h.avoid {
		all[i] = h.avoid[i].Class
	}
	return all
}

// rest is what the journal is told.
func (h *health) rest(now time.Time) journal.Rest {
	switch h.state {
	case Ill:
		return journal.Rest{Until: h.until, Strict: now.Before(h.busyTo), Most: 1, Pick: true, Avoid: h.avoided()}
	case Recovering:
		h.told = 2 * h.limit
		return journal.Rest{Most: h.told, Pick: h.picks(now), Avoid: h.avoided()}
	}
	h.picky = h.picks(now)
	if !h.picky {
		return journal.Rest{}
	}
	return journal.Rest{Pick: true, Avoid: h.avoided()}
}

// picks reports whether what is newest and was never tried should come first, after failures that may have been
// the fault of the events: what came after a burst of those is not behind all of it.
func (h *health) picks(now time.Time) bool { return !h.pick.IsZero() && now.Sub(h.pick) < troubled }

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// number is the state as the metrics have it.
func (s State) number() float64 {
	return map[State]float64{Healthy: 0, Recovering: 1, Ill: 2}[s]
}
