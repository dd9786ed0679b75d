package diagnose

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// clock says what is wrong with the time of a request whose signature is right.
func (c Capture) clock() Cause {
	now := c.Request.Now
	signed, ok := c.Provider.SignedTime(c.Request)
	late, word := now.Sub(signed), TimeOld
	if ok && late < 0 {
		late, word = late.Abs(), TimeFuture
	}
	pin := "give the time of its arrival: --now " + strconv.FormatInt(signed.Unix(), 10) + " is when it was signed"
	cause := Cause{Word: word, Proven: true}
	switch unit, other := c.otherUnit(); {
	case !ok:
		cause.Word, cause.Text, cause.Mend = TimeOld, "the signature is right, but the token with it is not valid at the time of arrival, "+now.UTC().Format(time.RFC3339), "give the time of its arrival with --now"
	case other:
		cause.Word, cause.Text, cause.Mend = TimeUnit, "the signature is right, but its time is in "+unitNames[unit]+", and another unit is wanted", ownSpec+"below time: unit: "+string(unit)
	case c.Arrived && near(now.Unix()/1000, signed):
		cause.Word, cause.Text, cause.Mend = TimeUnit, "the signature is right, but --now is given in milliseconds", "give it in seconds: --now "+strconv.FormatInt(now.Unix()/1000, 10)
	case !c.Arrived && word == TimeOld:
		cause.Text, cause.Mend = fmt.Sprintf("the signature is right, but it was made %s ago (%s), and that is too long for a request that arrives now", span(late), signed.Format(time.RFC3339)),
			"if the request was captured earlier, "+pin
	case wholeHours(late):
		cause.Word, cause.Text = TimeZone, fmt.Sprintf("the signature is right, but its time and that of the arrival are %s apart: one of two clocks shows the time of its zone as UTC", span(late))
		cause.Mend = "set that clock, or " + pin
	case word == TimeOld:
		cause.Text, cause.Mend = fmt.Sprintf("the signature is right, but it was made %s before the time of arrival, %s", span(late), now.UTC().Format(time.RFC3339)),
			"set the clock, if that is the time it shows, or "+pin
	default:
		cause.Text, cause.Mend = fmt.Sprintf("the signature is right, but its time is %s after that of the arrival, %s", span(late), now.UTC().Format(time.RFC3339)),
			"set the clock of this machine, which is behind, or "+pin
	}
	return cause
}

var unitNames = map[spec.Unit]string{spec.Seconds: "seconds", spec.Millis: "milliseconds", spec.RFC3339: "the form of RFC 3339"}

// otherUnit returns the unit with which the signed time would be accepted.
func (c Capture) otherUnit() (spec.Unit, bool) {
	if fetches(c.Spec) {
		return "", false
	}
	for _, unit := range []spec.Unit{spec.Millis, spec.Seconds} {
		known := c.Spec
		known.Verify = slices.Clone(known.Verify)
		for i, v := range known.Verify {
			if v.Time != nil {
				ts := *v.Time
				ts.Unit = unit
				known.Verify[i].Time = &ts
			}
		}
		settings := spec.Settings{Secrets: c.Settings.Secrets, URL: c.Settings.URL, Tolerance: c.Settings.Tolerance}
		if p, err := spec.New(known, settings); err == nil {
			if d, err := p.Open(c.Request); err == nil && d.Proof.Secret > 0 {
				return unit, true
			}
		}
	}
	return "", false
}

// near reports whether a time in seconds is at most ten minutes from another one.
func near(seconds int64, t time.Time) bool {
	return time.Unix(seconds, 0).Sub(t).Abs() <= 10*time.Minute
}

// wholeHours reports whether two clocks that are so far apart may be in different zones: the offsets from UTC are quarters of an
// hour, and fourteen hours at most.
func wholeHours(apart time.Duration) bool {
	off := (apart + 30*time.Second) % (30 * time.Minute)
	return apart >= 30*time.Minute-30*time.Second && apart <= 14*time.Hour+time.Minute && off <= time.Minute
}

// span writes how long something takes, in its two largest units.
func span(d time.Duration) string {
	units := []struct {
		name string
		is   time.Duration
	}{{"year", 365 * 24 * time.Hour}, {"day", 24 * time.Hour}, {"hour", time.Hour}, {"minute", time.Minute}, {"second", time.Second}}
	text := ""
	for i, u := range units {
		n := d / u.is
		if n == 0 {
			continue
		}
		text = plural(int64(n), u.name)
		if i+1 < len(units) {
			if more := d % u.is / units[i+1].is; more > 0 {
				text += " and " + plural(int64(more), units[i+1].name)
			}
		}
		return text
	}
	return "less than a second"
}

func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.FormatInt(n, 10) + " " + word + "s"
}
