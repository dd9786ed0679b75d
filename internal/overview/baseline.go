package overview

import (
	"math"
	"slices"
	"time"
)

const (
	// floor is the least share of events that come again: a source that never repeated has not shown that it cannot.
	floor = 2e-4
	// winsor is the quantile of hours at which the share of an hour is cut, so that one storm does not become usual.
	winsor = 0.95
	week   = 7 * 24 * time.Hour
	weeks  = 4 * week
	// enough is how much has to be learned before a silence means something.
	enough = 3 * 24 * time.Hour
)

// Hour is what a source sent in an hour.
type Hour struct {
	At                     time.Time
	Events, Reseen, Active int64
	Unrouted               int64 // of the new ones, which are Events without Reseen
}

// Baseline is which share of a source's events usually comes again.
type Baseline struct {
	Share      float64 `json:"share"`
	Dispersion float64 `json:"dispersion" doc:"By how much the hours differ more than chance has them differ; at least 1."`
	Hours      int     `json:"hours" doc:"From so many hours it was learned, of the last seven days."`
}

// LearnShare learns from the whole hours of the seven days before now, in which something came.
func LearnShare(hours []Hour, now time.Time) Baseline {
	var shares []float64
	var kept []Hour
	for _, h := range hours {
		if h.At.Before(now.Add(-week)) || h.At.Add(time.Hour).After(now) || h.Events <= 0 {
			continue
		}
		kept = append(kept, h)
		shares = append(shares, float64(h.Reseen)/float64(h.Events))
	}
	b := Baseline{Share: floor, Dispersion: 1, Hours: len(kept)}
	if len(kept) == 0 {
		return b
	}
	slices.Sort(shares)
	most := max(shares[int(winsor*float64(len(shares)-1))], floor)
	var events, reseen float64
	for _, h := range kept {
		events += float64(h.Events)
		reseen += min(float64(h.Reseen), most*float64(h.Events))
	}
	b.Share = max(reseen/events, floor)
	var chi float64
	for _, h := range kept {
		mean := b.Share * float64(h.Events)
		d := min(float64(h.Reseen), most*float64(h.Events)) - mean
		chi += d * d / mean
	}
	if len(kept) > 1 {
		b.Dispersion = max(1, chi/float64(len(kept)-1))
	}
	return b
}

// Exceeds reports whether as many events came again as are more than usual, see [Baseline.Most].
func (b *Baseline) Exceeds(events, reseen int64, deviations float64, least int64) bool {
	return float64(reseen) >= b.Most(events, deviations, least)
}

// Most returns how many of so many events have to come again to be more than usual: by so many deviations (6 is what alerts go
// by), at least twice as many, and at least least. A baseline of less than a day knows nothing: then a fifth of all, and 20, is
// too many.
func (b *Baseline) Most(events int64, deviations float64, least int64) float64 {
	if b.Hours < 24 {
		return max(20, 0.2*float64(events))
	}
	mean := b.Share * float64(events)
	bound := mean + deviations*math.Sqrt(b.Dispersion*mean) + deviations*math.Sqrt(b.Dispersion)
	return max(float64(least), 2*mean, bound)
}

// Silence says how unusual it is that nothing came since the last event.
type Silence struct {
	Missing float64 `json:"missing" doc:"So many minutes with events there usually are in such a time."`
	Days    float64 `json:"days" doc:"From so many days it was learned."`
	Daily   float64 `json:"daily" doc:"So many minutes with events there usually are on a day."`
}

// Known reports whether enough was learned to say what is missing.
func (s *Silence) Known() bool { return s.Days >= enough.Hours()/24 }

// Rhythm is how many minutes of an hour of the week usually have events.
type Rhythm struct {
	hours [7 * 24]float64
	days  float64
}

// LearnRhythm learns from the whole hours of the four weeks before now: the median of each hour of the week or, where there
// are not two weeks of it yet, the lower quartile of the hour on all days, so that a first weekend is no silence.
func LearnRhythm(hours []Hour, now time.Time) (r Rhythm) {
	active, first := map[int64]int64{}, now
	for _, h := range hours {
		if h.At.Before(now.Add(-weeks)) || h.At.Add(time.Hour).After(now) {
			continue
		}
		active[h.At.Unix()/3600] = min(h.Active, 60)
		if h.Active > 0 && h.At.Before(first) {
			first = h.At
		}
	}
	if first.Equal(now) {
		return r
	}
	r.days = now.Sub(first).Hours() / 24
	byWeek, byDay := map[int][]int64{}, map[int][]int64{}
	for at := first.Truncate(time.Hour); !at.Add(time.Hour).After(now); at = at.Add(time.Hour) {
		n := active[at.Unix()/3600]
		byWeek[hourOfWeek(at)] = append(byWeek[hourOfWeek(at)], n)
		byDay[at.UTC().Hour()] = append(byDay[at.UTC().Hour()], n)
	}
	for i := range r.hours {
		if r.hours[i] = median(byWeek[i]); len(byWeek[i]) < 2 {
			r.hours[i] = quartile(byDay[i%24])
		}
	}
	return r
}

func hourOfWeek(t time.Time) int { return int(t.UTC().Weekday())*24 + t.UTC().Hour() }

func median(of []int64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return float64(of[(len(of)-1)/2]+of[len(of)/2]) / 2
}

func quartile(of []int64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return float64(of[(len(of)-1)/4])
}

// Since returns how silent a source was from the end of the minute of its last event until now.
func (r *Rhythm) Since(last, now time.Time) Silence {
	s := Silence{Days: r.days}
	if !s.Known() || last.IsZero() {
		return s
	}
	for _, n := range r.hours {
		s.Daily += n / 7
	}
	for at := last.Add(time.Minute); at.Before(now); {
		next := at.Truncate(time.Hour).Add(time.Hour)
		until := next
		if now.Before(until) {
			until = now
		}
		s.Missing += r.hours[hourOfWeek(at)] * until.Sub(at).Hours()
		at = next
	}
	return s
}
