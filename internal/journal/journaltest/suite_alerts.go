package journaltest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// changeAlerts writes changes, and expects that it could.
func (c *suite) changeAlerts(changes *journal.AlertChanges) {
	c.Helper()
	changed, err := c.store.ChangeAlerts(c.Context(), false, func(*journal.AlertBook) (*journal.AlertChanges, error) { return changes, nil })
	if err != nil || !changed {
		c.Fatalf("ChangeAlerts = %v, %v", changed, err)
	}
}

func (c *suite) book() *journal.AlertBook {
	c.Helper()
	b, err := c.store.Alerts(c.Context())
	c.ok("Alerts", err)
	return b
}

func (c *suite) alertHistory(f journal.AlertFilter, before int64, limit int) (texts []string) {
	c.Helper()
	all, err := c.store.AlertHistory(c.Context(), f, before, limit)
	c.ok("AlertHistory", err)
	for _, r := range all {
		texts = append(texts, r.Fingerprint()+" "+string(r.Event)+" "+r.Text)
	}
	return texts
}

// notice returns one that is due now.
func (c *suite) notice(address, rule, subject string, transition int64) journal.Notice {
	return journal.Notice{AlertID: journal.AlertID{Rule: rule, Subject: subject}, Transition: transition, Address: address,
		Due: c.now, Since: c.now, Body: []byte(`{}`)}
}

func (c *suite) takeNotices(address string, limit int, want ...string) []journal.Notice {
	c.Helper()
	return c.takeNoticesFrom(c.store, address, limit, want...)
}

func (c *suite) takeNoticesFrom(s journal.Store, address string, limit int, want ...string) []journal.Notice {
	c.Helper()
	taken, err := s.TakeNotices(c.Context(), c.now, c.now.Add(time.Minute), []string{address}, limit)
	c.ok("TakeNotices", err)
	var got []string
	for _, n := range taken {
		got = append(got, n.Fingerprint()+"#"+string(rune('0'+n.Transition)))
	}
	if !slices.Equal(got, want) {
		c.Fatalf("took %q, want %q", got, want)
	}
	return taken
}

func (c *suite) finishNotices(want bool, outcomes ...journal.NoticeOutcome) {
	c.Helper()
	applied, err := c.store.FinishNotices(c.Context(), outcomes)
	c.ok("FinishNotices", err)
	for _, got := range applied {
		if got != want || len(applied) != len(outcomes) {
			c.Fatalf("FinishNotices = %v, want all %v", applied, want)
		}
	}
}

var alertCases = []testCase{
	{"what is put is there, in order, also when the store is opened again", func(c *suite) {
		a := journal.Alert{AlertID: journal.AlertID{Rule: "died", Subject: "ledger"}, State: journal.AlertFiring, Severity: "page", Transition: 3,
			Since: c.now, Fired: c.now.Add(-time.Second), Seen: c.now, Told: c.now, ToldAs: "ticket", Cause: "store_away/", Body: []byte(`{"count":1}`),
			AckBy: "ada", AckReason: "it's known", AckAt: c.now}
		b := journal.Alert{AlertID: journal.AlertID{Rule: "conflict"}, State: journal.AlertPending, Severity: "ticket", Since: c.now, Body: []byte{}}
		silence := journal.Silence{Rule: "died", At: c.now, Until: c.now.Add(time.Hour), By: "bob", Reason: "moving"}
		changes := &journal.AlertChanges{Put: []journal.Alert{a, b}, Silence: []journal.Silence{silence},
			Notices: []journal.Notice{c.notice("ops", "died", "ledger", 3)}}
		c.changeAlerts(changes)
		if silence = changes.Silence[0]; silence.ID == 0 {
			c.Error("the silence got no number")
		}
		for range 2 {
			got := c.book()
			c.same("alerts", got.Alerts, []journal.Alert{b, a})
			c.same("silences", got.Silences, []journal.Silence{silence})
			c.same("waiting", got.Waiting["ops"], 1)
			c.store = c.f.Open(c)
		}
		a.State, a.Transition, a.AckBy, a.AckAt = journal.AlertResolved, 4, "", time.Time{}
		c.changeAlerts(&journal.AlertChanges{Put: []journal.Alert{a}, Unsilence: []int64{silence.ID}})
		got := c.book()
		c.same("alerts", got.Alerts, []journal.Alert{b, a})
		c.same("silences", len(got.Silences), 0)
	}},
	{"who changes sees what there is, and its error changes nothing", func(c *suite) {
		id := journal.AlertID{Rule: "died", Subject: "x"}
		c.changeAlerts(&journal.AlertChanges{Put: []journal.Alert{{AlertID: id, State: journal.AlertFiring, Since: c.now}}})
		refused := errors.New("no")
		changed, err := c.store.ChangeAlerts(c.Context(), false, func(b *journal.AlertBook) (*journal.AlertChanges, error) {
			if b.Find(id) == nil || b.Find(journal.AlertID{Rule: "died"}) != nil {
				c.Errorf("it sees %+v", b.Alerts)
			}
			return &journal.AlertChanges{Put: []journal.Alert{{AlertID: id, State: journal.AlertResolved, Since: c.now}}}, refused
		})
		if changed || !errors.Is(err, refused) || c.book().Find(id).State != journal.AlertFiring {
			c.Errorf("ChangeAlerts = %v, %v; %+v", changed, err, c.book().Alerts)
		}
	}},
	{"nobody's change is lost, whoever makes it", func(c *suite) {
		id := journal.AlertID{Rule: "died", Subject: "x"}
		c.changeAlerts(&journal.AlertChanges{Put: []journal.Alert{{AlertID: id, State: journal.AlertFiring, Since: c.now}}})
		const each, stores = 5, 3
		var all sync.WaitGroup
		for _, s := range c.stores(stores) {
			for range stores {
				all.Go(func() {
					for range each {
						if _, err := s.ChangeAlerts(c.Context(), false, func(b *journal.AlertBook) (*journal.AlertChanges, error) {
							a := *b.Find(id)
							a.Transition++
							return &journal.AlertChanges{Put: []journal.Alert{a}, Records: []journal.AlertRecord{{AlertID: id, At: c.now, Event: journal.AlertRepeated, Transition: a.Transition}},
								Notices: []journal.Notice{c.notice("ops", id.Rule, id.Subject, a.Transition)}}, nil
						}); err != nil {
							c.Errorf("ChangeAlerts: %v", err)
						}
					}
				})
			}
		}
		all.Wait()
		n := each * stores * len(c.stores(stores))
		if got := c.book(); got.Find(id).Transition != int64(n) || got.Waiting["ops"] != 1 || len(c.alertHistory(journal.AlertFilter{}, 0, 1000)) != n {
			c.Errorf("%d changes are %+v, %v, and %d records", n, got.Find(id), got.Waiting, len(c.alertHistory(journal.AlertFilter{}, 0, 1000)))
		}
	}},
	{"while one changes another that tries gives up", func(c *suite) {
		changed, err := c.store.ChangeAlerts(c.Context(), false, func(*journal.AlertBook) (*journal.AlertChanges, error) {
			for _, other := range c.stores(2) {
				if changed, err := other.ChangeAlerts(c.Context(), true, func(*journal.AlertBook) (*journal.AlertChanges, error) {
					c.Error("it changes meanwhile")
					return nil, nil
				}); changed || err != nil {
					c.Errorf("the other: %v, %v", changed, err)
				}
			}
			return nil, nil
		})
		if err != nil || !changed {
			c.Errorf("ChangeAlerts = %v, %v", changed, err)
		}
	}},
	{"the history is read backwards, page by page, of what is asked for", func(c *suite) {
		record := func(rule, subject, text string) journal.AlertRecord {
			return journal.AlertRecord{AlertID: journal.AlertID{Rule: rule, Subject: subject}, At: c.now, Event: journal.AlertFired, Text: text}
		}
		c.changeAlerts(&journal.AlertChanges{Records: []journal.AlertRecord{record("a", "x", "1"), record("a", "y", "2"), record("b", "x", "3")}})
		c.same("all", c.alertHistory(journal.AlertFilter{}, 0, 2), []string{"b/x fired 3", "a/y fired 2"})
		all, _ := c.store.AlertHistory(c.Context(), journal.AlertFilter{}, 0, 2)
		c.same("the next page", c.alertHistory(journal.AlertFilter{}, all[1].ID, 2), []string{"a/x fired 1"})
		c.same("of a rule", c.alertHistory(journal.AlertFilter{Rule: "a"}, 0, 9), []string{"a/y fired 2", "a/x fired 1"})
		c.same("of an event", c.alertHistory(journal.AlertFilter{Rule: "a", Events: []journal.AlertEvent{journal.AlertTold, journal.AlertFired}}, 0, 1), []string{"a/y fired 2"})
		c.same("of another event", c.alertHistory(journal.AlertFilter{Events: []journal.AlertEvent{journal.AlertTold}}, 0, 9), []string(nil))
		c.same("of a subject", c.alertHistory(journal.AlertFilter{Subject: "x"}, 0, 9), []string{"b/x fired 3", "a/x fired 1"})
	}},
	{"what operators do to alerts is in the audit log", func(c *suite) {
		c.changeAlerts(&journal.AlertChanges{Audits: []journal.Audit{{At: c.now, By: "ada", Reason: "known", Action: journal.ActionSilence, Filter: "died/*"}}})
		c.audited(0, 9, journal.Audit{ID: 1, At: c.now, By: "ada", Reason: "known", Action: journal.ActionSilence, Filter: "died/*"})
	}},
	{"one message takes all of a rule and an address, and nobody else takes them meanwhile", func(c *suite) {
		later := c.notice("ops", "died", "b", 1)
		later.Due = c.now.Add(time.Hour)
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{later, c.notice("ops", "died", "a", 2), c.notice("ops", "conflict", "a", 1), c.notice("mail", "died", "a", 2)}})
		first := c.takeNotices("ops", 9, "conflict/a#1")
		second := c.takeNotices("ops", 9, "died/a#2", "died/b#1")
		for _, other := range c.stores(2) {
			c.takeNoticesFrom(other, "ops", 9)
		}
		if n := second[0]; n.Tries != 1 || n.Token != 1 || !n.Leased || !n.Due.Equal(c.now.Add(time.Minute)) || string(n.Body) != "{}" {
			c.Errorf("took %+v", n)
		}
		c.finishNotices(true, journal.NoticeOutcome{Notice: first[0], At: c.now})
		c.finishNotices(false, journal.NoticeOutcome{Notice: first[0], At: c.now})
		c.same("history", c.alertHistory(journal.AlertFilter{}, 0, 9), []string{"conflict/a told ops"})
		c.finishNotices(true, journal.NoticeOutcome{Notice: second[0], At: c.now, Err: "503", Due: c.now.Add(time.Minute)},
			journal.NoticeOutcome{Notice: second[1], At: c.now, Err: "410"})
		c.same("history", c.alertHistory(journal.AlertFilter{Subject: "b"}, 0, 9), []string{"died/b not told ops: 410"})
		c.takeNotices("ops", 9)
		c.pass(time.Minute)
		if again := c.takeNotices("ops", 9, "died/a#2"); again[0].Tries != 2 || again[0].Token != 2 {
			c.Errorf("again: %+v", again[0])
		}
		c.same("waiting", c.book().Waiting, map[string]int{"ops": 1, "mail": 1})
	}},
	{"of what waits the latest is told", func(c *suite) {
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "a", 1)}})
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "a", 2)}})
		c.same("waiting", c.book().Waiting, map[string]int{"ops": 1})
		sent := c.takeNotices("ops", 9, "died/a#2")
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "a", 3)}})
		c.takeNotices("ops", 9) // two at once could arrive in the wrong order
		c.finishNotices(true, journal.NoticeOutcome{Notice: sent[0], At: c.now, Err: "503", Due: c.now.Add(time.Hour)})
		c.takeNotices("ops", 9, "died/a#3")
		c.same("waiting", c.book().Waiting, map[string]int{"ops": 1})
	}},
	{"a lease that ran out is taken over, and its holder can record nothing", func(c *suite) {
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "a", 1)}})
		lost := c.takeNotices("ops", 9, "died/a#1")
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "b", 1)}})
		c.takeNotices("ops", 9, "died/b#1")
		c.pass(time.Minute)
		c.takeNotices("ops", 1, "died/a#1")
		c.finishNotices(false, journal.NoticeOutcome{Notice: lost[0], At: c.now})
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "a", 2)}})
		c.pass(time.Minute)
		c.takeNotices("ops", 9, "died/a#2", "died/b#1")
	}},
	{"what is long over is forgotten, and what is not stays", func(c *suite) {
		alert := func(subject string, state journal.AlertState) journal.Alert {
			return journal.Alert{AlertID: journal.AlertID{Rule: "died", Subject: subject}, State: state, Since: c.now, Body: []byte{}}
		}
		put := func(suffix string) {
			c.changeAlerts(&journal.AlertChanges{
				Put:     []journal.Alert{alert("fires"+suffix, journal.AlertFiring), alert("was"+suffix, journal.AlertResolved)},
				Silence: []journal.Silence{{Rule: suffix, At: c.now, Until: c.now}},
				Records: []journal.AlertRecord{{AlertID: journal.AlertID{Rule: "died"}, At: c.now, Event: journal.AlertFired, Text: suffix}},
				Notices: []journal.Notice{c.notice("ops"+suffix, "died", "a", 1)},
			})
		}
		put("1")
		c.pass(time.Hour)
		put("2")
		c.changeAlerts(&journal.AlertChanges{Forget: c.now})
		b := c.book()
		var left []string
		for _, a := range b.Alerts {
			left = append(left, a.Subject)
		}
		c.same("alerts", left, []string{"fires1", "fires2", "was2"})
		c.same("silences", len(b.Silences), 1)
		c.same("what is not told yet", b.Waiting, map[string]int{"ops1": 1, "ops2": 1})
		c.same("history", c.alertHistory(journal.AlertFilter{}, 0, 9), []string{"died/ fired 2"})
		c.changeAlerts(&journal.AlertChanges{Abandon: c.now})
		c.same("what nobody will be told", c.book().Waiting, map[string]int{"ops2": 1})
		c.same("history", c.alertHistory(journal.AlertFilter{}, 0, 9), []string{"died/ fired 2"})
	}},
	{"an alert is not forgotten while somebody is still to be told of it", func(c *suite) {
		id := journal.AlertID{Rule: "died", Subject: "a"}
		c.changeAlerts(&journal.AlertChanges{
			Put:     []journal.Alert{{AlertID: id, State: journal.AlertResolved, Transition: 2, Since: c.now, Body: []byte{}}},
			Notices: []journal.Notice{c.notice("ops", "died", "a", 2)},
		})
		c.pass(time.Hour)
		c.changeAlerts(&journal.AlertChanges{Forget: c.now})
		if a := c.book().Find(id); a == nil || a.Transition != 2 {
			c.Fatalf("it is remembered as %+v", a)
		}
		taken := c.takeNotices("ops", 9, "died/a#2")
		c.finishNotices(true, journal.NoticeOutcome{Notice: taken[0], At: c.now})
		c.changeAlerts(&journal.AlertChanges{Forget: c.now})
		c.same("alerts", len(c.book().Alerts), 0)
	}},
	{"a notice takes the place of one with its number, also of one that is being sent", func(c *suite) {
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "a", 2)}})
		put := func(body string) {
			again := c.notice("ops", "died", "a", 2)
			again.Body = []byte(body)
			c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{again}})
		}
		put("second")
		sent := c.takeNotices("ops", 9, "died/a#2")
		c.same("sent", string(sent[0].Body), "second")
		put("third")
		c.same("waiting", c.book().Waiting, map[string]int{"ops": 1})
		c.finishNotices(false, journal.NoticeOutcome{Notice: sent[0], At: c.now})
		next := c.takeNotices("ops", 9, "died/a#2")
		c.same("sent next", string(next[0].Body), "third")
		c.same("tries", next[0].Tries, 1)
		c.finishNotices(false, journal.NoticeOutcome{Notice: sent[0], At: c.now})
		c.finishNotices(true, journal.NoticeOutcome{Notice: next[0], At: c.now})
		c.same("waiting", len(c.book().Waiting), 0)
	}},
	{"of what could not be told the first, second, fourth try are on record, and the last", func(c *suite) {
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "a", 1)}})
		for range 5 {
			taken := c.takeNotices("ops", 9, "died/a#1")
			c.finishNotices(true, journal.NoticeOutcome{Notice: taken[0], At: c.now, Err: "status 503: busy", Due: c.now.Add(time.Minute)})
			c.pass(time.Minute)
		}
		taken := c.takeNotices("ops", 9, "died/a#1")
		c.finishNotices(true, journal.NoticeOutcome{Notice: taken[0], At: c.now, Err: "gone"})
		c.same("history", c.alertHistory(journal.AlertFilter{Events: []journal.AlertEvent{journal.AlertDelayed}}, 0, 9),
			[]string{"died/a delayed ops: status 503: busy", "died/a delayed ops: status 503: busy", "died/a delayed ops: status 503: busy"})
		c.same("history", c.alertHistory(journal.AlertFilter{Events: []journal.AlertEvent{journal.AlertTold, journal.AlertNotTold}}, 0, 9), []string{"died/a not told ops: gone"})
		c.changeAlerts(&journal.AlertChanges{Notices: []journal.Notice{c.notice("ops", "died", "b", 1)}})
		taken = c.takeNotices("ops", 9, "died/b#1")
		c.finishNotices(true, journal.NoticeOutcome{Notice: taken[0], At: c.now, Err: "cut off", Due: c.now})
		c.same("of who was cut off", c.alertHistory(journal.AlertFilter{Subject: "b"}, 0, 9), []string(nil))
		c.takeNotices("ops", 9, "died/b#1")
	}},
}
