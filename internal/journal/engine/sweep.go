package engine

import (
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// again is after how long a sweep begins anew, for what was open when it came by.
const again = 24 * time.Hour

// sweep deletes what is past one period, from the oldest to the youngest, and then follows the time.
type sweep struct {
	journal.Purge
	keep  time.Duration
	began time.Time // at the beginning
	rests time.Time // until then, because it was through
}

// newSweeps returns a sweep for each kind and period, and another one for what a clock numbered that was ahead. Sources with the
// same period share one.
func newSweeps(r *journal.Retention) (all []*sweep) {
	for _, k := range []journal.Kind{journal.KindBodies, journal.KindAttempts, journal.KindAnswers, journal.KindIDs} {
		own := map[time.Duration][]string{}
		var except []string
		for name, p := range r.Sources {
			if keep := p.Of(k); keep != r.Of(k) {
				own[keep] = append(own[keep], name)
				except = append(except, name)
			}
		}
		slices.Sort(except)
		all = append(all, &sweep{keep: r.Of(k), Purge: journal.Purge{Kind: k, Sources: except, Others: true}})
		for keep, sources := range own {
			slices.Sort(sources)
			all = append(all, &sweep{keep: keep, Purge: journal.Purge{Kind: k, Sources: sources}})
		}
	}
	all = append(all, &sweep{keep: r.Longest(journal.KindRanks), Purge: journal.Purge{Kind: journal.KindRanks, Others: true}})
	for _, s := range all {
		ahead := *s
		ahead.Ahead = true
		all = append(all, &ahead)
	}
	all = append(all, &sweep{keep: r.Audits, Purge: journal.Purge{Kind: journal.KindAudits, Others: true}})
	return slices.DeleteFunc(all, func(s *sweep) bool { return s.keep == 0 })
}
