package pg

import (
	"slices"
	"testing"
	"time"
)

func TestParseBound(t *testing.T) {
	for text, want := range map[string][2]int64{
		"FOR VALUES FROM ('12') TO ('345')":                 {12, 345},
		"FOR VALUES FROM (MINVALUE) TO ('345')":             {0, 345},
		"FOR VALUES FROM ('12') TO (MAXVALUE)":              {},
		"FOR VALUES IN ('12')":                              {},
		"FOR VALUES FROM ('99999999999999999999') TO ('1')": {},
		"": {},
	} {
		first, end, err := parseBound(text)
		if (err != nil) != (want == [2]int64{}) || err == nil && [2]int64{first, end} != want {
			t.Errorf("parseBound(%q) = %d, %d, %v", text, first, end, err)
		}
	}
}

func TestSpan(t *testing.T) {
	for keep, want := range map[time.Duration]time.Duration{
		0: 30 * day, time.Minute: time.Hour, day - 1: time.Hour, day: day, 7 * day: day, 30 * day: day,
		31 * day: 2 * day, 90 * day: 3 * day, 400 * day: 14 * day, 36500 * day: 30 * day,
	} {
		if got := span(keep); got != want {
			t.Errorf("of what is kept for %v a partition is for %v, want %v", keep, got, want)
		}
	}
}

func TestGaps(t *testing.T) {
	for name, tt := range map[string]struct {
		have        []partition
		from, until int64
		want        []gap
	}{
		"none there":           {nil, 25, 51, []gap{{20, 30}, {30, 40}, {40, 50}, {50, 60}}},
		"until a boundary":     {nil, 20, 40, []gap{{20, 30}, {30, 40}}},
		"all there":            {[]partition{{first: 0, end: 100}}, 25, 50, nil},
		"some there":           {[]partition{{first: 10, end: 30}}, 25, 50, []gap{{30, 40}, {40, 50}}},
		"one is missing":       {[]partition{{first: 20, end: 30}, {first: 40, end: 50}}, 25, 50, []gap{{30, 40}}},
		"all before":           {[]partition{{first: 0, end: 10}}, 25, 40, []gap{{20, 30}, {30, 40}}},
		"all behind":           {[]partition{{first: 90, end: 100}}, 25, 40, []gap{{20, 30}, {30, 40}}},
		"they were shorter":    {[]partition{{first: 20, end: 23}, {first: 23, end: 26}}, 25, 40, []gap{{26, 30}, {30, 40}}},
		"they were longer":     {[]partition{{first: 0, end: 37}}, 25, 50, []gap{{37, 40}, {40, 50}}},
		"one begins in a span": {[]partition{{first: 33, end: 47}}, 25, 50, []gap{{20, 30}, {30, 33}, {47, 50}}},
	} {
		if got := gaps(tt.have, tt.from, tt.until, 10); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}
