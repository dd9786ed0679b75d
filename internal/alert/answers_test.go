package alert

import (
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/overview"
)

// The three questions of somebody who was just woken up are answered with what there is.
func TestAnswers(t *testing.T) {
	refused := func(v *Verdict) Answer { return v.Refused }
	lost := func(v *Verdict) Answer { return v.Lost }
	doubled := func(v *Verdict) Answer { return v.Doubled }
	source := func(edit func(*overview.SourceState)) func(*snapshot) {
		return func(s *snapshot) { edit(&s.Sources[0]) }
	}
	unverified := func(reason string) func(*snapshot) {
		return source(func(o *overview.SourceState) {
			o.LastVerified, o.FailedSince = ago(time.Hour), ago(time.Minute)
			o.Latest = overview.Intake{Received: 20, Unverified: map[string]int64{reason: 20}}
		})
	}
	notTaken := func(by map[string]int64) func(*snapshot) {
		return source(func(o *overview.SourceState) { o.Five.NotTaken = by })
	}
	for name, c := range map[string]struct {
		edit func(*snapshot)
		of   func(*Verdict) Answer
		yes  bool
		says string
	}{
		"nobody is refused":                           {func(*snapshot) {}, refused, false, "No: senders are answered."},
		"a secret was changed":                        {unverified("signature_mismatch"), refused, true, "requests to orders are not accepted as authentic"},
		"a clock is off":                              {unverified("timestamp_old"), refused, true, "requests to orders are not accepted as authentic"},
		"the store is away":                           {func(s *snapshot) { s.Store.Away = &overview.Trouble{Since: now} }, refused, true, "senders are answered 503"},
		"the queue is full":                           {func(s *snapshot) { s.Store.Full = &overview.Trouble{Since: now} }, refused, true, "senders are answered 503"},
		"the store is away, and a source is open":     {func(s *snapshot) { s.Store.Away, s.Sources[0].Open = &overview.Trouble{Since: now}, true }, refused, true, "asked to come again."},
		"the store is away, and events went past it":  {func(s *snapshot) { s.Store.Away, s.Store.Unrecorded = &overview.Trouble{Since: now}, 1 }, refused, true, "asked to come again."},
		"the store is away, and nothing goes past it": {func(s *snapshot) { s.Store.Away = &overview.Trouble{Since: now} }, refused, true, "nothing is acknowledged that is not stored."},
		"a cell is away, and a source is open": {func(s *snapshot) {
			s.Cells, s.Sources[0].Open = []overview.CellState{{Name: "us", Error: "gone"}}, true
		}, refused, true, "asked to come again."},
		"an application has not answered": {notTaken(map[string]int64{"unanswered": 3, "address": 1}), refused, true, "Yes: senders were asked to come again after 3 requests to orders in the last five minutes"},
		"requests are not taken": {notTaken(map[string]int64{"address": 3, "rate": 2}), refused, false,
			"No, but the gateway did not take 5 requests to orders (address, rate) in the last five minutes: hookonce refusals orders."},
		"a stranger leaves no room": {notTaken(map[string]int64{"crowded": 3}), refused, false, "No, but the gateway did not take 3 requests to orders (crowded) in"},
		"requests to two sources are not taken": {func(s *snapshot) {
			s.Sources = append(s.Sources, overview.SourceState{Name: "shop", Five: overview.Intake{NotTaken: map[string]int64{"loop": 1}}})
			notTaken(map[string]int64{"too_large": 1})(s)
		}, refused, false, "2 requests to orders (too_large), shop (loop) in the last five minutes: hookonce refusals SOURCE."},
		"one is not taken, and nobody counts others": {func(s *snapshot) {
			notTaken(map[string]int64{"headers_too_large": 1})(s)
			s.Parts = []overview.Part{{Name: overview.PartMinutes}}
		}, refused, false, "not take 1 request to orders (headers_too_large) in the last five minutes: hookonce refusals orders. The store does not say how others answer."},
		"nothing is lost":      {func(*snapshot) {}, lost, false, "No: all that was acknowledged is stored."},
		"deliveries are dead":  {func(s *snapshot) { s.Destinations[0].Dead = 3 }, lost, false, "3 deliveries are given up: they are kept"},
		"events never arrived": {source(func(o *overview.SourceState) { o.NeverArrived = &overview.Lost{Count: 2, Beyond: 1} }), lost, false, "3 events that senders made never arrived"},
		"events are in memory": {func(s *snapshot) { s.Store.Unrecorded = 4 }, lost, false, "4 events were delivered past the store, and are in memory alone"},
		"two of them":          {func(s *snapshot) { s.Destinations[0].Dead, s.Store.Unrecorded = 1, 4 }, lost, false, "in memory alone until it is back; 1 delivery is given up: they"},
		"one conflict":         {source(func(o *overview.SourceState) { o.Hour.Conflicts = 1 }), lost, false, "No, but other content came under a key on record once in the last hour: it was acknowledged, and is not kept"},
		"conflicts":            {source(func(o *overview.SourceState) { o.Hour.Conflicts = 3 }), lost, false, "3 times in the last hour"},
		"nobody counts the dead": {func(s *snapshot) {
			s.Parts = []overview.Part{{Name: overview.PartOpen, Error: "timeout"}, {Name: overview.PartMissing}}
		}, lost, false,
			"No, but the store does not say what is given up by now and what never arrived."},
		"nobody counts, the store is away": {func(s *snapshot) {
			s.Parts, s.Store.Away = []overview.Part{{Name: overview.PartOpen}}, &overview.Trouble{Since: now}
		}, lost, false,
			"what was not acknowledged is with its senders"},
		"nobody counts refusals": {func(s *snapshot) { s.Parts = []overview.Part{{Name: overview.PartMinutes}} }, refused, false, "No, as far as this gateway knows"},
		"nobody reads what was doubled": {func(s *snapshot) { s.Parts = []overview.Part{{Name: overview.PartReconciliations, Error: "timeout"}} }, doubled, false,
			"Not known: the store does not say what hookonce reconcile effects found."},
		"senders were refused":   {source(func(o *overview.SourceState) { o.Hour.Ours = 1 }), lost, false, "what was not acknowledged is with its senders"},
		"nothing can be written": {func(s *snapshot) { s.Store.Unwritable = &overview.Trouble{Since: now} }, lost, false, "what was not acknowledged is with its senders"},
		"copies came":            {source(func(o *overview.SourceState) { o.Hour.Copies = 2 }), doubled, false, "No: 2 copies were recognised"},
		"events have no key":     {source(func(o *overview.SourceState) { o.Hour.Copies, o.Hour.Unkeyed = 2, 5 }), doubled, false, "Not known of 5 events"},
	} {
		s := well()
		c.edit(s)
		v := Judge(s)
		if a := c.of(&v); a.Yes != c.yes || !strings.Contains(a.Text, c.says) {
			t.Errorf("%s: %+v, want %t, %q", name, a, c.yes, c.says)
		}
		claims := strings.Contains(v.Headline, "no sender is refused")
		if answered := v.Refused.Text == "No: senders are answered."; claims && !answered {
			t.Errorf("%s: the headline is %q, the answer %q", name, v.Headline, v.Refused.Text)
		}
	}
}

// only wants one alert.
func only(t *testing.T, s *snapshot, rule string, severity Severity) Alert {
	t.Helper()
	v := Judge(s)
	if len(v.Alerts) != 1 || v.Alerts[0].Rule != rule || v.Alerts[0].Severity != severity {
		t.Fatalf("want a %s of %s, and there is %+v", severity, rule, v.Alerts)
	}
	return v.Alerts[0]
}

// A queue that is full pages before the first sender who was refused is counted.
func TestFullQueue(t *testing.T) {
	s := well()
	s.Store.Full = &overview.Trouble{Since: ago(time.Minute)}
	if a := only(t, s, sendersRefused, Page); !a.Since.Equal(ago(time.Minute)) || a.Count != 0 {
		t.Errorf("%+v", a)
	}
}

// A source of which something is expected, and that never sent anything, is silent since the start.
func TestSilentFromTheBeginning(t *testing.T) {
	s := well()
	o := &s.Sources[0]
	o.LastVerified, o.ExpectEvery = time.Time{}, 24*3600
	s.Since = ago(24 * time.Hour)
	if v := Judge(s); len(v.Alerts) > 0 {
		t.Errorf("too early: %+v", v.Alerts)
	}
	s.Since = ago(24*time.Hour + time.Second)
	if a := only(t, s, silent, Ticket); !a.Since.Equal(s.Since) || !strings.Contains(a.Headline, "something is expected every 24h") {
		t.Errorf("%+v", a)
	}
}

// First attempts that fail a little and for long are a ticket; what pages does so whatever else holds.
func TestFirstAttemptsFailSlowly(t *testing.T) {
	s := well()
	d := &s.Destinations[0]
	d.Six, d.Half = overview.FirstAttempts{First: 1000, FirstFailed: 30}, overview.Outcomes{First: 100, FirstFailed: 4}
	if v := Judge(s); len(v.Alerts) > 0 {
		t.Errorf("too early: %+v", v.Alerts)
	}
	d.Six.FirstFailed++
	if a := only(t, s, FirstAttemptsFail, Ticket); a.Count != 31 || !strings.Contains(a.Headline, "31 of 1000 events at the first attempt in the last six hours") {
		t.Errorf("%+v", a)
	}
	d.Half.FirstFailed = 3
	if v := Judge(s); len(v.Alerts) > 0 {
		t.Errorf("it is over for half an hour: %+v", v.Alerts)
	}
	d.Six.FirstFailed, d.Half.FirstFailed = 900, 90
	d.Hour, d.Five = overview.Outcomes{First: 1000, FirstFailed: 73}, overview.Outcomes{First: 10, FirstFailed: 1}
	only(t, s, FirstAttemptsFail, Page)
}
