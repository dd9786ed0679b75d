package traffic

import (
	"math/bits"
	"time"
)

// Histogram counts durations in buckets whose width is at most 1/64 of their value, so that a
// quantile is exact to 1.6 %. It takes the same memory however many durations it holds. The zero
// Histogram is empty and ready to use. It is not safe for concurrent use; see [Histogram.Add].
type Histogram struct {
	counts [buckets]uint64
	total  uint64
	max    time.Duration
}

const (
	subBits = 6 // log2 of the buckets per power of two
	buckets = (64 - subBits) << subBits
)

// bucket returns the index for a value: exact below 2^(subBits+1) nanoseconds, and from there on the
// power of two with the subBits bits that follow its leading one.
func bucket(v uint64) int {
	shift := bits.Len64(v>>subBits) - 1
	if shift <= 0 {
		return int(v)
	}
	return shift<<subBits + int(v>>shift)
}

// upper returns the largest value that falls into the bucket.
func upper(i int) uint64 {
	if i < 2<<subBits {
		return uint64(i)
	}
	shift := i>>subBits - 1
	base := uint64(i&(1<<subBits-1) | 1<<subBits)
	return (base+1)<<shift - 1
}

// Record counts one duration. A negative one counts as zero.
func (h *Histogram) Record(d time.Duration) {
	d = max(d, 0)
	h.counts[bucket(uint64(d))]++
	h.total++
	h.max = max(h.max, d)
}

// Add counts everything that other counted. Give each goroutine its own histogram and add them up.
func (h *Histogram) Add(other *Histogram) {
	for i, n := range other.counts {
		h.counts[i] += n
	}
	h.total += other.total
	h.max = max(h.max, other.max)
}

// Count returns how many durations were recorded.
func (h *Histogram) Count() uint64 { return h.total }

// Max returns the longest duration, exactly. Zero when empty.
func (h *Histogram) Max() time.Duration { return h.max }

// Quantile returns the duration that the fraction q (0 to 1) of all recorded ones do not exceed, to
// within the width of a bucket and never below the true value. Zero when empty.
func (h *Histogram) Quantile(q float64) time.Duration {
	rank := uint64(q * float64(h.total))
	if float64(rank) < q*float64(h.total) || rank == 0 {
		rank++
	}
	seen := uint64(0)
	for i, n := range h.counts {
		if seen += n; n > 0 && seen >= rank {
			return min(time.Duration(upper(i)), h.max)
		}
	}
	return h.max
}

// Quantiles are the figures of a histogram that people read.
type Quantiles struct {
	P50 time.Duration `json:"p50_ns"`
	P90 time.Duration `json:"p90_ns"`
	P99 time.Duration `json:"p99_ns"`
	Max time.Duration `json:"max_ns"`
}

// Quantiles returns the median, the 90th and 99th percentile and the maximum.
func (h *Histogram) Quantiles() Quantiles {
	return Quantiles{P50: h.Quantile(.5), P90: h.Quantile(.9), P99: h.Quantile(.99), Max: h.max}
}
