package traffic

import (
	"math"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestHistogramAgainstExactQuantiles(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		exact := rapid.SliceOfN(rapid.Int64Range(0, math.MaxInt64), 1, 200).Draw(t, "durations")
		h, half := &Histogram{}, &Histogram{}
		for i, d := range exact {
			if i%2 == 0 {
				h.Record(time.Duration(d))
			} else {
				half.Record(time.Duration(d))
			}
		}
		h.Add(half)
		slices.Sort(exact)
		if h.Count() != uint64(len(exact)) || h.Max() != time.Duration(exact[len(exact)-1]) {
			t.Fatalf("count %d, max %d", h.Count(), h.Max())
		}
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		rank := max(int(math.Ceil(q*float64(len(exact)))), 1)
		want, got := float64(exact[rank-1]), float64(h.Quantile(q))
		if got < want || got > want*(1+1.0/64) {
			t.Fatalf("quantile %g of %v is %g, not %g", q, exact, got, want)
		}
	})
}

func TestHistogramBuckets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := uint64(rapid.Int64Range(0, math.MaxInt64-1).Draw(t, "v"))
		i := bucket(v)
		if v > upper(i) || i > 0 && v <= upper(i-1) {
			t.Fatalf("%d is in bucket %d, which ends at %d and follows one that ends at %d", v, i, upper(i), upper(i-1))
		}
	})
	if i := bucket(math.MaxInt64); i != buckets-1 {
		t.Errorf("the longest duration is in bucket %d of %d", i, buckets)
	}
}

func TestHistogramEmptyAndNegative(t *testing.T) {
	h := &Histogram{}
	if h.Quantile(.99) != 0 || h.Max() != 0 {
		t.Error("an empty histogram has a quantile")
	}
	h.Record(-time.Second)
	if h.Count() != 1 || h.Quantile(1) != 0 {
		t.Error("a negative duration does not count as zero")
	}
}
