package spec

import (
	"strconv"
	"time"

	"github.com/hookonce/hookonce"
)

// Times outside these bounds are not believed: databases and formats disagree about them.
var (
	earliest = time.Unix(0, 0).UTC()
	latest   = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
)

// parse reads a time. Numbers are decimal digits only: no sign, no space, no fraction. A time outside
// 1970 to 9999 is moved to the nearer end, so that a tolerance still sees it as old or future.
func (u Unit) parse(text string) (time.Time, bool) {
	switch u {
	case Seconds:
		n, ok := parseDigits(text, latest.Unix())
		return time.Unix(n, 0).UTC(), ok
	case Millis:
		n, ok := parseDigits(text, latest.UnixMilli())
		return time.UnixMilli(n).UTC(), ok
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, false
	}
	switch t = t.UTC(); {
	case t.Before(earliest):
		return earliest, true
	case t.After(latest):
		return latest, true
	}
	return t, true
}

// format writes t the way parse reads it.
func (u Unit) format(t time.Time) string {
	switch u {
	case Seconds:
		return strconv.FormatInt(t.Unix(), 10)
	case Millis:
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// json writes t as a JSON value.
func (u Unit) json(t time.Time) string {
	if u == RFC3339 {
		return strconv.Quote(u.format(t))
	}
	return u.format(t)
}

// describe names the unit for error messages.
func (u Unit) describe() string {
	switch u {
	case Seconds:
		return "unix seconds"
	case Millis:
		return "unix milliseconds"
	}
	return "RFC 3339 time"
}

// valid reports whether there is such a unit.
func (u Unit) valid() bool { return u == Seconds || u == Millis || u == RFC3339 }

// parseDigits reads decimal digits; a number above most counts as most.
func parseDigits(text string, most int64) (int64, bool) {
	if text == "" {
		return 0, false
	}
	var n int64
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, false
		}
		if n = n*10 + int64(c-'0'); n > most {
			n = most
		}
	}
	return n, true
}

// SignedTime returns when a request was signed, as it says itself, and whether it says that. Nothing of it is verified: it is for
// people who look at a captured request. A time in a token is not read.
func (p *Provider) SignedTime(req *hookonce.Request) (time.Time, bool) {
	for i := range p.verifiers {
		v, r := &p.verifiers[i], p.reading(req)
		line := ""
		if v.kind != Code {
			line, _ = v.carrier.line(r)
		}
		if v.timestamp(r, line) == nil && !r.at.IsZero() {
			return r.at, true
		}
		if at, ok := createdAt(req); ok && v.kind == HTTPSignature {
			return at, true
		}
	}
	return time.Time{}, false
}
