package spec

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// TestUnits: what is a time in which unit. An empty want is no time.
func TestUnits(t *testing.T) {
	for _, c := range []struct {
		unit Unit
		text string
		want string
	}{
		{Seconds, "0", "1970-01-01T00:00:00Z"}, {Seconds, "1770091506", "2026-02-03T04:05:06Z"}, {Seconds, "00001770091506", "2026-02-03T04:05:06Z"},
		{Seconds, "253402300799", "9999-12-31T23:59:59Z"}, {Seconds, "253402300800", "9999-12-31T23:59:59Z"},
		{Seconds, "9223372036854775807", "9999-12-31T23:59:59Z"}, {Seconds, "9223372036854775808", "9999-12-31T23:59:59Z"},
		{Seconds, "18446744075479643122", "9999-12-31T23:59:59Z"}, {Seconds, strings.Repeat("9", 5000), "9999-12-31T23:59:59Z"},
		{Millis, "1770091506007", "2026-02-03T04:05:06.007Z"}, {Millis, "9223372036854775808", "9999-12-31T23:59:59Z"},
		{RFC3339, "2026-02-03T05:05:06+01:00", "2026-02-03T04:05:06Z"}, {RFC3339, "2026-02-03T04:05:06.789Z", "2026-02-03T04:05:06.789Z"},
		{RFC3339, "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"}, {RFC3339, "9999-12-31T23:59:59-23:00", "9999-12-31T23:59:59Z"},
		{Seconds, "", ""}, {Seconds, "-1", ""}, {Seconds, "+1", ""}, {Seconds, " 1", ""}, {Seconds, "1 ", ""}, {Seconds, "1.0", ""}, {Seconds, "1e9", ""},
		{Seconds, "0x1", ""}, {Seconds, "1_0", ""}, {Seconds, "\u0661", ""}, {Millis, "-1", ""}, {Millis, "2026-02-03T04:05:06Z", ""},
		{RFC3339, "", ""}, {RFC3339, "1770091506", ""}, {RFC3339, "2026-02-03", ""}, {RFC3339, "2026-02-30T00:00:00Z", ""}, {RFC3339, "2026-02-03 04:05:06Z", ""},
		{RFC3339, "10000-01-01T00:00:00Z", ""}, {"", "1", ""},
	} {
		at, ok := c.unit.parse(c.text)
		if got := at.Format(time.RFC3339Nano); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%s: %.40q is %s, %v; want %q", c.unit, c.text, got, ok, c.want)
		}
	}
	for _, u := range []Unit{Seconds, Millis, RFC3339} {
		if at, ok := u.parse(u.format(now)); !ok || !at.Equal(now) {
			t.Errorf("%s: %v, %v", u, at, ok)
		}
	}
}

// stamped is a sender that signs the time of a header.
func stamped(u Unit, past, future time.Duration) Spec {
	s := plain()
	s.Verify[0].Time = &Timestamp{In: "header:X-Time", Unit: u, Past: past, Future: future}
	s.Verify[0].Sign = []Value{"ts", "const:.", "body"}
	return s
}

// signedAt returns a genuine request that was signed with that text for the time.
func signedAt(t testing.TB, p *Provider, text string) *hookonce.Request {
	t.Helper()
	req := &hookonce.Request{Header: http.Header{"X-Time": {text}}, Body: []byte("{}"), Now: now}
	s := p.spec.WithDefaults() // a copy
	s.Verify[0].Time, s.Verify[0].Sign = nil, []Value{Value("const:" + text + "."), "body"}
	if err := build1(t, s, Settings{}).Sign(req); err != nil {
		t.Fatal(err)
	}
	return req
}

// TestTolerance in both directions, to the nanosecond of the clock. Zero is no bound.
func TestTolerance(t *testing.T) {
	const old, future, none = hookonce.ReasonTimestampOld, hookonce.ReasonTimestampFuture, hookonce.ReasonTimestampMissing
	seconds := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	for _, c := range []struct {
		unit         Unit
		past, future time.Duration
		text, want   string
	}{
		{Seconds, time.Minute, time.Hour, seconds(0), ""},
		{Seconds, time.Minute, time.Hour, seconds(-time.Minute), ""}, {Seconds, time.Minute, time.Hour, seconds(-61 * time.Second), old},
		{Seconds, time.Minute, time.Hour, seconds(time.Hour), ""}, {Seconds, time.Minute, time.Hour, seconds(3601 * time.Second), future},
		{Seconds, 0, time.Hour, "0", ""}, {Seconds, 0, time.Hour, strings.Repeat("9", 30), future},
		{Seconds, time.Minute, 0, "0", old}, {Seconds, time.Minute, 0, strings.Repeat("9", 30), ""},
		{Seconds, 0, 0, "0", ""}, {Seconds, time.Minute, time.Minute, "18446744075479643122", future}, // the time of now, if it overflowed
		{Millis, time.Second, time.Second, strconv.FormatInt(now.UnixMilli()-1000, 10), ""}, {Millis, time.Second, time.Second, strconv.FormatInt(now.UnixMilli()-1001, 10), old},
		{Millis, time.Minute, time.Minute, seconds(0), old}, {Seconds, time.Minute, time.Minute, strconv.FormatInt(now.UnixMilli(), 10), future},
		{RFC3339, time.Minute, time.Minute, "2026-02-03T04:04:05.999999999Z", old}, {RFC3339, time.Minute, time.Minute, "2026-02-03T04:04:06Z", ""},
		{RFC3339, time.Minute, time.Minute, "0001-01-01T00:00:00Z", old}, {RFC3339, time.Minute, time.Minute, "9999-12-31T23:59:59Z", future},
		{Seconds, 0, 0, "-1", none}, {Seconds, 0, 0, "soon", none}, {Seconds, 0, 0, "", none},
	} {
		p := build1(t, stamped(c.unit, c.past, c.future), Settings{})
		req := signedAt(t, p, c.text)
		if c.want != "" {
			rejected(t, p, req, c.want)
		} else if _, err := p.Open(req); err != nil {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestToleranceOfAnEndpoint replaces that of the sender, in both directions.
func TestToleranceOfAnEndpoint(t *testing.T) {
	p := build1(t, stamped(Seconds, time.Hour, 0), Settings{Tolerance: time.Minute})
	for late, want := range map[time.Duration]string{time.Minute: "", -time.Minute: "", 2 * time.Minute: hookonce.ReasonTimestampOld, -2 * time.Minute: hookonce.ReasonTimestampFuture} {
		req := request(t, p, "{}")
		req.Now = now.Add(late)
		if want != "" {
			rejected(t, p, req, want)
		} else if _, err := p.Open(req); err != nil {
			t.Error(late, err)
		}
	}
	for _, s := range []struct {
		spec      Spec
		tolerance time.Duration
	}{{stamped(Seconds, 0, 0), -1}, {plain(), 1}} {
		if _, err := New(s.spec, Settings{Secrets: Secrets("fake"), Tolerance: s.tolerance}); err == nil || !strings.Contains(err.Error(), "tolerance") {
			t.Error(err)
		}
	}
}

// TestAnOldTimeIsReportedForGenuineRequestsOnly: a stranger learns nothing about the clock here.
func TestAnOldTimeIsReportedForGenuineRequestsOnly(t *testing.T) {
	p := build1(t, stamped(Seconds, time.Minute, time.Minute), Settings{})
	req := signedAt(t, p, "0")
	rejected(t, p, req, hookonce.ReasonTimestampOld)
	req.Body = []byte("{ }")
	rejected(t, p, req, hookonce.ReasonSignatureMismatch)
}

// TestTimesThatOccurTwice in the signature's text, in headers, and in the document.
func TestTimesThatOccurTwice(t *testing.T) {
	p := build1(t, timed(), Settings{})
	req := request(t, p, "{}")
	line := req.Header.Get("X-Signature")
	for more, want := range map[string]string{"t=1770091506,": "", "t=1,": hookonce.ReasonSignatureMalformed, "t=,": hookonce.ReasonSignatureMalformed} {
		req.Header.Set("X-Signature", more+line)
		if want != "" {
			rejected(t, p, req, want)
		} else if _, err := p.Open(req); err != nil {
			t.Error(err)
		}
	}
	req.Header.Set("X-Signature", strings.TrimPrefix(line, "t=1770091506,"))
	rejected(t, p, req, hookonce.ReasonTimestampMissing)

	p = build1(t, stamped(Seconds, time.Minute, 0), Settings{})
	req = request(t, p, "{}")
	req.Header.Add("X-Time", "1")
	rejected(t, p, req, hookonce.ReasonSignatureMalformed)

	s := stamped(Seconds, time.Minute, 0)
	s.Verify[0].Time.In, s.Verify[0].Sign = "json:$.sent", []Value{"body"}
	p = build1(t, s, Settings{})
	for body, want := range map[string]string{`{"sent":1,"sent":1770091506}`: hookonce.ReasonTimestampMissing, `{}`: hookonce.ReasonTimestampMissing, `{"sent":1}`: hookonce.ReasonTimestampOld} {
		rejected(t, p, signedAs(request(t, build1(t, plain(), Settings{}), body).Header.Get("X-Signature"), body), want)
	}
	for body, want := range map[string]string{`{}`: `{"sent":1770091506}`, `{"sent":1}`: `{"sent":1770091506}`, `{"sent":"1"}`: `{"sent":"1770091506"}`} {
		req := request(t, p, body)
		if _, err := p.Open(req); err != nil || string(req.Body) != want {
			t.Errorf("%s became %s: %v", body, req.Body, err)
		}
	}
}
