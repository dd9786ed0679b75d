package settings

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// count is a whole number within bounds.
type count struct {
	to       *int
	min, max int
}

// Count is a whole number from min to max.
func Count(to *int, min, max int) Value { return count{to, min, max} }

func (v count) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil || n < v.min || n > v.max {
		return fmt.Errorf("%q does not fit; write a whole number from %d to %d", s, v.min, v.max)
	}
	*v.to = n
	return nil
}

func (v count) Show() string { return strconv.Itoa(*v.to) }

// numbers is a list of whole numbers that check accepts.
type numbers struct {
	to     *[]int
	sample string
	check  func(int) error
}

// Numbers is a list of whole numbers, each once, that check accepts, of which sample is one.
func Numbers(to *[]int, sample string, check func(int) error) Value {
	return numbers{to, sample, check}
}

func (v numbers) Clear()          { *v.to = nil }
func (v numbers) Show() string    { return strings.Join(v.Items(), " ") }
func (v numbers) Example() string { return v.sample }

func (v numbers) Items() []string {
	items := make([]string, len(*v.to))
	for i, n := range *v.to {
		items[i] = strconv.Itoa(n)
	}
	return items
}

func (v numbers) Set(s string) error {
	n, err := strconv.Atoi(s)
	if err != nil {
		return fmt.Errorf("%q is not a number; write one such as %s", s, v.sample)
	}
	if err := v.check(n); err != nil {
		return err
	}
	if slices.Contains(*v.to, n) {
		return fmt.Errorf("%d is there twice; keep one of them", n)
	}
	*v.to = append(*v.to, n)
	return nil
}

// number is one within bounds, with a fraction where somebody wants one.
type number struct {
	to           *float64
	min, max     float64
	what, sample string
}

// Number is a number from min to max, which may have a fraction. what calls it, with its article, and sample is one.
func Number(to *float64, min, max float64, what, sample string) Value {
	return number{to, min, max, what, sample}
}

// Rate is a number of things per second from min to max, which may have a fraction.
func Rate(to *float64, min, max float64) Value {
	return number{to, min, max, "a number per second", "100 or 0.5"}
}

func (v number) Set(s string) error {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= v.min && n <= v.max) { // which NaN is not
		return fmt.Errorf("%q does not fit; write %s from %s to %s, such as %s", s, v.what, showRate(v.min), showRate(v.max), v.sample)
	}
	*v.to = n
	return nil
}

func (v number) Show() string { return showRate(*v.to) }

func showRate(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// ratio is a part of something, from 0 to 1.
type ratio struct{ to *float64 }

// Ratio is a part of something: a number from 0 to 1.
func Ratio(to *float64) Value { return ratio{to} }

func (v ratio) Set(s string) error {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= 0 && n <= 1) { // which NaN is not
		return fmt.Errorf("%q does not fit; write a number from 0 to 1, such as 0.05 for every twentieth", s)
	}
	*v.to = n
	return nil
}

func (v ratio) Show() string { return showRate(*v.to) }

// size is a number of bytes within bounds: 1048576, 512KiB, 64MiB, 1GB.
type size struct {
	to       *int64
	min, max int64
}

// Size is a number of bytes from min to max, such as 1048576, 512KiB or 1GB.
func Size(to *int64, min, max int64) Value { return size{to, min, max} }

var units = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"KB", 1e3}, {"B", 1}}

func (v size) Set(s string) error {
	n, ok := parseSize(s)
	if !ok {
		return fmt.Errorf("%q is not a size; write a number of bytes or one with its unit, such as 512KiB or 64MiB", s)
	}
	if n < v.min || n > v.max {
		return fmt.Errorf("%s is out of bounds; write a size from %s to %s", s, showSize(v.min), showSize(v.max))
	}
	*v.to = n
	return nil
}

func (v size) Show() string { return showSize(*v.to) }

func parseSize(s string) (int64, bool) {
	factor := int64(1)
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseUint(s, 10, 63)
	return int64(n) * factor, err == nil && int64(n) <= math.MaxInt64/factor
}

func showSize(n int64) string {
	for _, u := range units[:3] {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

// duration is a length of time within bounds.
type duration struct {
	to       *time.Duration
	min, max time.Duration
}

// Duration is a length of time from min to max, in Go's notation with days in front: 90d, 1d12h, 30s.
func Duration(to *time.Duration, min, max time.Duration) Value { return duration{to, min, max} }

func (v duration) Set(s string) error {
	d, err := parseDuration(s)
	if err != nil {
		return fmt.Errorf("%q is not a length of time; write a number with its unit, such as 500ms, 30s, 10m, 12h or 90d", s)
	}
	if d < v.min || d > v.max {
		return fmt.Errorf("%s is out of bounds; write a length of time from %s to %s", s, ShowDuration(v.min), ShowDuration(v.max))
	}
	*v.to = d
	return nil
}

func (v duration) Show() string { return ShowDuration(*v.to) }

// Day is the longest unit that a [Duration] is written in.
const Day = 24 * time.Hour

// parseDuration extends [time.ParseDuration] by a leading number of whole days.
func parseDuration(s string) (time.Duration, error) {
	days, rest, found := strings.Cut(s, "d")
	if !found {
		return time.ParseDuration(s)
	}
	n, err := strconv.ParseUint(days, 10, 15)
	if err != nil {
		return 0, err
	}
	if rest == "" {
		return time.Duration(n) * Day, nil
	}
	d, err := time.ParseDuration(rest)
	if err == nil && (d < 0 || d >= Day) {
		err = errors.New("the part after the days must be within one day")
	}
	return time.Duration(n)*Day + d, err
}

// ShowDuration returns a length of time as a user writes it.
func ShowDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	var b strings.Builder
	if d >= Day {
		fmt.Fprintf(&b, "%dd", d/Day)
		d %= Day
	}
	if d == 0 {
		return b.String()
	}
	s := d.String() // Go writes trailing zero units: 1h0m0s
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return b.String() + s
}

// instant is a point in time.
type instant struct{ to *time.Time }

// Time is a point in time in the notation of RFC 3339.
func Time(to *time.Time) Value { return instant{to} }

func (v instant) Set(s string) error {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return errors.New("this is not a time; write one such as 2026-11-01T00:00:00Z") // it may be a secret in the wrong place
	}
	if t.IsZero() {
		return errors.New("this time stands for none at all; leave it out")
	}
	*v.to = t
	return nil
}

func (v instant) Show() string { return v.to.Format(time.RFC3339) }
