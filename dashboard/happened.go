package dashboard

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

// happened is what came of the events and requests of a source, as programs counted it.
type happened struct {
	Source string `json:"source"`
	Hour   span   `json:"hour"` // the last sixty minutes
	Day    span   `json:"day"`  // the last 24 hours of the clock
}

// span is what happened in a time.
type span struct {
	Done   int64 `json:"done"`   // each event once
	Copies int64 `json:"copies"` // of what was done before, conflicts among them
	Failed int64 `json:"failed"` // attempts, those among them after which the work was given up
	// Authentic is how many there were in all, rejected ones left out.
	Authentic int64 `json:"authentic"`
	Rejected  int64 `json:"rejected"`
}

// Share is that of copies.
func (s span) Share() float64 { return frame.Share(float64(s.Copies), float64(s.Authentic)) }

func (s *span) add(t hookonce.Tally) {
	switch t.Status {
	case "accepted", "unkeyed":
		s.Done += t.N
	case "duplicate", "conflict":
		s.Copies += t.N
	case "failed", "dead":
		s.Failed += t.N
	case "rejected":
		s.Rejected += t.N
		return
	}
	s.Authentic += t.N
}

// happened is what programs counted by source, or why that is not known: the rest of the page is there without it.
func (d *dashboard) happened(ctx context.Context) (all []happened, unknown string) {
	all = []happened{}
	if d.tallier == nil {
		return all, "This store does not keep what programs count."
	}
	now := d.now().UTC()
	until := now.Add(time.Hour) // clocks of programs may be ahead
	for _, q := range []hookonce.TallyQuery{
		{From: now.Truncate(time.Hour).Add(-23 * time.Hour), Until: until, Hours: true}, {From: now.Truncate(time.Minute).Add(-59 * time.Minute), Until: until},
	} {
		counted, err := d.tallier.Tallies(ctx, q)
		if err != nil {
			d.log.Error("dashboard: what programs counted cannot be read", "error", err)
			return []happened{}, "What programs counted cannot be read; the log says why."
		}
		for _, t := range counted {
			i, there := slices.BinarySearchFunc(all, t.Source, func(h happened, source string) int { return cmp.Compare(h.Source, source) })
			if !there {
				all = slices.Insert(all, i, happened{Source: t.Source})
			}
			if q.Hours {
				all[i].Day.add(t)
			} else {
				all[i].Hour.add(t)
			}
		}
	}
	return all, ""
}
