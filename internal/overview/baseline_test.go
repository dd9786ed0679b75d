package overview

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// poisson draws a count.
func poisson(r *rand.Rand, mean float64) (n int64) {
	for mean > 50 {
		return max(0, int64(math.Round(mean+math.Sqrt(mean)*r.NormFloat64())))
	}
	for p, limit := r.Float64(), math.Exp(-mean); p > limit; n++ {
		p *= r.Float64()
	}
	return n
}

// daily is how busy an hour is, beside the average.
func daily(at time.Time) float64 {
	return 1 + 0.6*math.Sin(2*math.Pi*float64(at.Hour()-9)/24)
}

// Senders of all rates, with copies of which some come in clumps, raise no false alarm in 28 days, and a storm is seen
// within four minutes.
func TestCameAgainIsSeenAndRaisesNoFalseAlarm(t *testing.T) {
	for _, c := range []struct{ rate, share float64 }{{0.2, 0.003}, {0.2, 0.025}, {5, 0.003}, {5, 0.025}, {300, 0.003}, {300, 0.025}} {
		r := rand.New(rand.NewPCG(1, uint64(c.rate*1000+c.share*1e6)))
		begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
		var hours []Hour
		var events, again [60]int64 // of the last minutes
		var usual Baseline
		alarms, above, seen := 0, 0, 0
		const days = 35
		for m := 0; m < days*24*60+30; m++ {
			at := begin.Add(time.Duration(m) * time.Minute)
			n := poisson(r, c.rate*daily(at))
			k := poisson(r, c.rate*daily(at)*c.share)
			if m >= days*24*60 && m < days*24*60+12 {
				k += 28 // 340 in 12 minutes
			}
			if m%60 == 0 {
				usual = LearnShare(hours, at)
				hours = append(hours, Hour{At: at})
			}
			h := &hours[len(hours)-1]
			h.Events, h.Reseen = h.Events+n+k, h.Reseen+k
			events[m%60], again[m%60] = n+k, k
			if m < 7*24*60 {
				continue
			}
			sum := func(of *[60]int64, minutes int) (all int64) {
				for i := range minutes {
					all += of[(m-i+60)%60]
				}
				return all
			}
			if usual.Exceeds(sum(&events, 5), sum(&again, 5), 6, 10) || usual.Exceeds(sum(&events, 60), sum(&again, 60), 6, 10) {
				above++
			} else {
				above = 0
			}
			if above == 3 {
				if m < days*24*60 {
					alarms++
				} else if seen == 0 {
					seen = m - days*24*60 + 1
				}
			}
		}
		t.Logf("%g/min, %g %%: %d false alarms in 28 days; 340 copies are seen after %d minutes", c.rate, 100*c.share, alarms, seen)
		if alarms > 0 || seen == 0 || seen > 4 {
			t.Errorf("%g/min, %g %%: %d false alarms, seen after %d minutes; want none, and at most 4", c.rate, 100*c.share, alarms, seen)
		}
	}
}

// A source that is as quiet as it always was at such an hour is not silent; one that stopped is, the sooner the more it sends.
func TestSilence(t *testing.T) {
	for _, c := range []struct {
		rate float64
		most time.Duration // until a silence that begins at noon is seen
	}{{0.2, 90 * time.Minute}, {5, 15 * time.Minute}, {300, 13 * time.Minute}} {
		r := rand.New(rand.NewPCG(2, uint64(c.rate*1000)))
		begin := time.Date(2026, 9, 1, 0, 0, 0, 0, time.UTC)
		var hours []Hour
		var rhythm Rhythm
		var last time.Time
		alarms, silent := 0, false
		var seen time.Duration
		const learned, stops = 3 * 24 * 60, (31*24 + 12) * 60
		for m := 0; m < stops+180; m++ {
			at := begin.Add(time.Duration(m) * time.Minute)
			if m%60 == 0 {
				rhythm = LearnRhythm(hours, at)
				hours = append(hours, Hour{At: at})
			}
			if n := poisson(r, c.rate*daily(at)); n > 0 && m < stops {
				hours[len(hours)-1].Active++
				last, silent = at, false
			}
			s := rhythm.Since(last, at.Add(time.Minute))
			if is := s.Missing > 12 && at.Sub(last) >= 10*time.Minute; is && !silent {
				silent = true
				if m < stops {
					alarms++
				} else {
					seen = at.Sub(last)
				}
			}
			if m < learned && s.Missing > 0 {
				t.Fatalf("%g/min: a silence means something after %d minutes", c.rate, m)
			}
		}
		if s := rhythm.Since(last, last); (s.Daily >= 1000) != (c.rate >= 5) || s.Daily < 60 || s.Daily > 24*60+1 {
			t.Errorf("%g/min: on a day %v minutes have events", c.rate, s.Daily)
		}
		t.Logf("%g/min: %d false alarms in 28 days; a silence is seen after %v", c.rate, alarms, seen)
		if alarms > 1 || seen == 0 || seen > c.most {
			t.Errorf("%g/min: %d false alarms, seen after %v; want at most 1, and at most %v", c.rate, alarms, seen, c.most)
		}
	}
}
