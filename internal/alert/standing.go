package alert

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/overview"
)

// Standing is how a rule stands: what it looks for, and how far what it looks at is from that.
type Standing struct {
	Rule      string   `json:"rule"`
	When      string   `json:"when" doc:"When it fires, in words."`
	Severity  Severity `json:"severity" enum:"page,ticket,info" doc:"At most."`
	Enabled   bool     `json:"enabled" doc:"If not, it finds nothing, whatever holds."`
	Changed   bool     `json:"changed" doc:"Its threshold or its time is not the default."`
	For       int64    `json:"for_seconds" doc:"So long it has to hold before it fires."`
	Threshold float64  `json:"threshold,omitempty" doc:"Missing: it has none that can be changed."`
	Unit      Unit     `json:"unit,omitempty" enum:"number,seconds,share" doc:"Of the threshold."`
	Limit     string   `json:"limit,omitempty" doc:"The threshold in words, such as 15m."`
	Subject   string   `json:"subject,omitempty" doc:"The source, destination or table that is nearest to it, or worst. Missing: it is about the store, or there is none."`
	Now       string   `json:"now,omitempty" doc:"How that stands, in words. Missing: there is nothing to look at."`
	Share     float64  `json:"share" doc:"What is there of what it takes: it holds about at 1. At most 1000. Of died and paused: of what makes them worse."`
	Holds     bool     `json:"holds" doc:"Something is wrong by it at the moment; it fires when that has held for for_seconds."`
}

// Stand says how each rule stands, in their order, also those that are off. It judges as [Settings.Judge] does: the same
// functions return what is wrong and how far all is from it.
func (c Settings) Stand(s *overview.Snapshot) []Standing {
	all := make([]Standing, 0, len(rules))
	for _, was := range rules {
		r := c.change(was)
		to := Standing{
			Rule: r.Name, When: r.When, Severity: r.Severity, Enabled: !c[r.Name].Off, Changed: r.Threshold != was.Threshold || r.For != was.For,
			For: int64(r.For / time.Second), Threshold: r.Threshold, Unit: r.Unit, Limit: r.Limit(),
		}
		var worst gauge
		r.find(s, r.Threshold, func(subject string, g gauge, a *Alert) {
			holds := a != nil
			if worst.format == "" || holds && !to.Holds || holds == to.Holds && g.share > worst.share {
				worst, to.Subject, to.Holds = g, subject, holds
			}
		})
		if worst.format != "" {
			to.Now, to.Share = worst.String(), worst.share
		}
		if !to.Holds && unread(s, needs[r.Name]...) {
			to.Subject, to.Now, to.Share = "", "not known: the store does not answer", 0
		}
		all = append(all, to)
	}
	return all
}

// State returns a word for it: off, holds or rests.
func (s *Standing) State() string {
	switch {
	case !s.Enabled:
		return "off"
	case s.Holds:
		return "holds"
	}
	return "rests"
}

// Reached returns its share in words, such as 12 %; nothing where nothing is looked at.
func (s *Standing) Reached() string {
	if s.Now == "" {
		return ""
	}
	return strconv.FormatFloat(100*s.Share, 'f', 0, 64) + " %"
}

// Lasts returns in words for how long it has to hold; nothing if it fires at once.
func (s *Standing) Lasts() string {
	if s.For == 0 {
		return ""
	}
	return span(time.Duration(s.For) * time.Second).String()
}

// Nearest puts first what holds, then what is nearest to it, and last what is off.
func Nearest(all []Standing) {
	last := map[string]int{"holds": 0, "rests": 1, "off": 2}
	slices.SortStableFunc(all, func(a, b Standing) int {
		return cmp.Or(last[a.State()]-last[b.State()], cmp.Compare(b.Share, a.Share))
	})
}

// gauge is how what a rule looks at stands: its share of what it takes, and words, which are made if somebody reads them.
type gauge struct {
	share  float64
	format string
	args   []any
}

func gaugeOf(share float64, format string, args ...any) gauge { return gauge{share, format, args} }

func (g gauge) String() string { return fmt.Sprintf(g.format, g.args...) }

// mostShare is where shares end: of nothing, all is infinitely much.
const mostShare = 1000

// share returns what share a number is of another one.
func share[N, M int | int64 | float64 | time.Duration](n N, of M) float64 {
	switch {
	case n <= 0:
		return 0
	case of <= 0:
		return mostShare
	}
	return min(float64(n)/float64(of), mostShare)
}

// span is a length of time that is written without its zeros, and to its two largest units at most.
type span time.Duration

func (s span) String() string {
	d := time.Duration(s)
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Hour:
		d = d.Round(time.Second)
	default:
		d = d.Round(time.Minute)
	}
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}

// percent is a share that is written as such, with two figures or without a fraction.
type percent float64

func (p percent) String() string {
	if p >= 0.1 {
		return strconv.FormatFloat(100*float64(p), 'f', 0, 64) + " %"
	}
	return strconv.FormatFloat(100*float64(p), 'g', 2, 64) + " %"
}
