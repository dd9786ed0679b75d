package tally

import "time"

// Histogram counts durations in bins. It is safe for concurrent use.
type Histogram struct {
	bins     []Bin
	counters []*Counter
}

// Observe counts one duration.
func (h *Histogram) Observe(d time.Duration) {
	last := len(h.bins) - 1
	for i, b := range h.bins[:last] {
		if d <= b.Upper {
			h.counters[i].Add(1)
			return
		}
	}
	h.counters[last].Add(1)
}

// Quantile returns a bound that a share q of what was counted, from 0 to 1, does not exceed: the upper bound of the bin in
// which it falls. It returns false if nothing was counted, and for the last bin, which has none, the bound before it.
func Quantile(counts map[What]int64, bins []Bin, q float64) (bound time.Duration, ok bool) {
	var all int64
	for _, b := range bins {
		all += counts[b.What]
	}
	var below int64
	for _, b := range bins {
		if b.Upper > 0 {
			bound = b.Upper
		}
		if below += counts[b.What]; all > 0 && float64(below) >= q*float64(all) {
			return bound, true
		}
	}
	return 0, false
}
