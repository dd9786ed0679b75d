package alert

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/overview"
)

var now = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time   { return now.Add(-d) }
func when(d time.Duration) *time.Time { t := ago(d); return &t }

// well is a snapshot of a gateway in which nothing is wrong.
func well() *overview.Snapshot {
	return &overview.Snapshot{
		At: now, Since: ago(time.Hour), Store: overview.StoreState{Cleaned: ago(time.Minute), Commits: 100, CommitMS: 2},
		Sources: []overview.SourceState{{Name: "orders", LastVerified: now, Usual: overview.Baseline{Share: 0.01, Dispersion: 1, Hours: 168}}},
		Destinations: []overview.DestinationState{{
			Destination: fleet.Destination{Name: "ledger", Configured: true, Health: &fleet.Health{State: "healthy"}},
			Hour:        overview.Outcomes{First: 1000, Attempts: 1000, Done: 1000},
		}},
	}
}

type snapshot = overview.Snapshot

// A place to change that is named like a setting is one.
func TestPlacesAreSettings(t *testing.T) {
	var code []byte
	for _, file := range []string{"store.go", "source.go", "destination.go"} {
		part, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		code = append(code, part...)
	}
	page, err := os.ReadFile("../config/testdata/defaults.txt")
	if err != nil {
		t.Fatal(err)
	}
	settings := regexp.MustCompile(`\b(delivery|retention)\.[a-z_]+`)
	found := settings.FindAllString(string(code), -1)
	for _, name := range found {
		if !regexp.MustCompile(`(?m)^ +` + regexp.QuoteMeta(name) + ` `).Match(page) {
			t.Errorf("a rule sends people to %s, which is no setting", name)
		}
	}
	if len(found) < 3 {
		t.Errorf("the rules name %v: this test looks at nothing", found)
	}
}

// Each rule fires when its number is passed, and not just below; it names its subject, and a next step.
func TestRules(t *testing.T) {
	source := func(edit func(*overview.SourceState)) func(*snapshot) {
		return func(s *snapshot) { edit(&s.Sources[0]) }
	}
	destination := func(edit func(*overview.DestinationState)) func(*snapshot) {
		return func(s *snapshot) { edit(&s.Destinations[0]) }
	}
	unverified := func(reason string, failed, of int64) func(*snapshot) {
		return source(func(o *overview.SourceState) {
			o.LastVerified, o.FailedSince = ago(time.Hour), ago(time.Minute)
			o.Latest = overview.Intake{Received: of, Unverified: map[string]int64{reason: failed}}
		})
	}
	// flooded has nothing but forged requests since the minute after its last authentic one. In so many minutes of the hour some
	// came, and so much is missing, by what was learned in so many days.
	flooded := func(last time.Duration, active int64, missing, days float64) func(*snapshot) {
		return source(func(o *overview.SourceState) {
			o.LastVerified, o.FailedSince = ago(last), ago(last-time.Minute)
			o.Latest = overview.Intake{Received: 100, Unverified: map[string]int64{"signature_mismatch": 100}}
			o.Hour.Active, o.Silence = active, overview.Silence{Missing: missing, Days: days, Daily: leastMissing}
		})
	}
	backlog := func(age time.Duration) func(*snapshot) {
		return destination(func(d *overview.DestinationState) { at := ago(age); d.Oldest, d.Since, d.Backlog = &at, &at, 5 })
	}
	// replayed has a backlog that an operator had begin again, of events that came days ago.
	replayed := func(due time.Duration) func(*snapshot) {
		return func(s *snapshot) {
			backlog(72 * time.Hour)(s)
			s.Destinations[0].Since = when(due)
		}
	}
	draining := func(in *float64) func(*snapshot) {
		return func(s *snapshot) { backlog(oldBacklog + time.Second)(s); s.Destinations[0].DrainsIn = in }
	}
	// unconfigured has a backlog for a name that no gateway delivers to any more, as after it was renamed. The pace is
	// that of its last minutes, and means nothing.
	unconfigured := func(age time.Duration) func(*snapshot) {
		return destination(func(d *overview.DestinationState) {
			at := ago(age)
			d.Oldest, d.Since, d.Backlog, d.Configured, d.DrainsIn = &at, &at, 5, false, new(4.0)
		})
	}
	compared := func(c overview.Compared, running time.Duration) func(*snapshot) {
		return func(s *snapshot) { s.Since, s.Sources[0].Compared = ago(running), &c }
	}
	pausedFor := func(age time.Duration) func(*snapshot) {
		return destination(func(d *overview.DestinationState) { d.Pause = &fleet.Pause{At: ago(age), By: "ann", Reason: "moving"} })
	}
	firsts := func(failed int64) func(*snapshot) {
		return destination(func(d *overview.DestinationState) {
			d.Hour = overview.Outcomes{First: 1000, FirstFailed: failed}
			d.Five = overview.Outcomes{First: 10, FirstFailed: 1}
		})
	}
	failFirst := func(d *overview.DestinationState) {
		d.Hour, d.Five = overview.Outcomes{First: 1000, FirstFailed: 90}, overview.Outcomes{First: 10, FirstFailed: 1}
	}
	// lately has the failures of last month first, because they are more, and then those of now.
	lately := func(most, last overview.Failure, edit func(*overview.DestinationState)) func(*snapshot) {
		return destination(func(d *overview.DestinationState) {
			most.Count, most.Latest, last.Count, last.Latest = 40, ago(30*24*time.Hour), 3, now
			d.Failures = []overview.Failure{most, last}
			edit(d)
		})
	}
	unfound, broken := overview.Failure{Kind: "dns", Error: "no such host", Dead: 40}, overview.Failure{Kind: "status", Status: 503, Error: "status 503", Dead: 3}
	illBy := func(cause string) func(*overview.DestinationState) {
		return func(d *overview.DestinationState) { d.Health = &fleet.Health{State: "ill", Error: cause} }
	}
	// reconciled is what was found, and counts for so long still.
	reconciled := func(left time.Duration, doubled int64) func(*snapshot) {
		return func(s *snapshot) {
			s.Reconciled = []overview.Reconciled{{At: ago(time.Hour), Until: now.Add(left), Table: "orders", Doubled: doubled, Surplus: 2 * doubled, Sample: "evt_1", Command: "hookonce reconcile effects --table orders"}}
		}
	}
	// routed has so many events of a day, and so many of them that no route wanted.
	routed := func(all, not int64) func(*snapshot) {
		return source(func(o *overview.SourceState) {
			o.Destinations, o.Day = []string{"ledger"}, overview.Routed{New: all, Unrouted: not}
		})
	}
	again := func(minutes int) func(*snapshot) {
		return source(func(o *overview.SourceState) {
			o.ReseenFor, o.Five = minutes, overview.Intake{Accepted: 100, Reseen: 60}
		})
	}
	// secrets has two: the first ends in so long, and each verified so many of the last requests.
	secrets := func(ends time.Duration, first, second int64) func(*snapshot) {
		return source(func(o *overview.SourceState) {
			until := now.Add(ends)
			o.Secrets = []overview.Secret{{Until: &until, Hour: first, Day: first, Week: first}, {Hour: second, Day: second, Week: second}}
		})
	}
	// unused has two that were counted for so long: the second verified so many requests, and begins then.
	unused := func(known time.Duration, used int64, from *time.Time) func(*snapshot) {
		return source(func(o *overview.SourceState) {
			o.SecretsSince, o.Secrets = ago(known), []overview.Secret{{Week: 500}, {Week: used, From: from}}
		})
	}
	// refusals has so many of each reason: of orders, and of others.
	refusals := func(by ...map[string]int64) func(*snapshot) {
		return func(s *snapshot) {
			for i, reasons := range by {
				o := &s.Sources[0]
				if i > 0 {
					s.Sources = append(s.Sources, overview.SourceState{Name: fmt.Sprint("other", i), LastVerified: now})
					o = &s.Sources[i]
				}
				o.Five.OursBy = reasons
				for _, n := range reasons {
					o.Five.Ours += n
				}
			}
		}
	}
	aboutSeverity := map[string]bool{died: true, Paused: true} // what their thresholds are for: they hold before
	for _, c := range []struct {
		rule        string
		severity    Severity
		fires, not  func(*snapshot)
		says, leads string
	}{
		{storeAway, Page, func(s *snapshot) { s.Store.Away = &overview.Trouble{Since: now, Error: "connection refused"} }, func(s *snapshot) { s.Store.Away = nil }, "connection refused", "doctor"},
		{storeUnwritable, Page, func(s *snapshot) { s.Store.Unwritable = &overview.Trouble{Since: now, Error: "read-only"} }, func(*snapshot) {}, "read-only", "doctor"},
		{storeUnwritable, Page, func(s *snapshot) {
			s.Store.Unwritable, s.Store.Gone = &overview.Trouble{Since: now, Error: "db was deleted"}, true
		}, func(*snapshot) {}, "db was deleted", "Do not restart it yet"},
		{storeAway, Page, func(s *snapshot) {
			s.Store.Away, s.Store.Gone = &overview.Trouble{Since: now, Error: "db was deleted"}, true
		}, func(*snapshot) {}, "db was deleted", "Do not restart it yet"},
		{storeSlow, Page, func(s *snapshot) { s.Store.CommitMS = slowCommit }, func(s *snapshot) { s.Store.CommitMS = slowCommit - 1 }, "250 ms", "doctor"},
		{storeSlow, Page, func(s *snapshot) { s.Store.CommitMS, s.Store.Commits = 900, slowCommits }, func(s *snapshot) { s.Store.CommitMS, s.Store.Commits = 900, slowCommits-1 }, "900 ms", "doctor"},
		{storeUnread, Ticket, func(s *snapshot) {
			s.Parts = []overview.Part{{Name: overview.PartOpen, Read: ago(time.Minute), Error: "counting open work: timeout."}, {Name: overview.PartMarks}}
		}, func(s *snapshot) { s.Parts = []overview.Part{{Name: overview.PartOpen, Read: ago(time.Hour)}} },
			"open (counting open work: timeout), marks. Blind for that: backlog_old, died, group_blocked, reconcile_late, type_fails.", "doctor"},
		{storeUnread, Ticket, func(s *snapshot) { s.Parts = []overview.Part{{Name: overview.PartRows, Error: "timeout"}} }, func(s *snapshot) {
			s.Parts, s.Store.Away = []overview.Part{{Name: overview.PartOpen}}, &overview.Trouble{Since: now, Error: "connection refused"}
		}, "rows (timeout). Blind for that: store_full.", "doctor"},
		{cellAway, Page, func(s *snapshot) {
			s.Cells = []overview.CellState{{Name: "eu"}, {Name: "us", Error: "connection refused"}}
		},
			func(s *snapshot) { s.Cells = []overview.CellState{{Name: "eu"}, {Name: "us"}} }, "The cell us is away: connection refused.", "hookonce cells status"},
		{cellAway, Ticket, func(s *snapshot) {
			s.Cells = []overview.CellState{{Name: "us", Error: "connection refused", Idle: true}}
		},
			func(s *snapshot) { s.Cells = []overview.CellState{{Name: "us", Idle: true}} }, "It owns no keys and is asked for none, so nobody is refused.", "hookonce cells status"},
		{sendersRefused, Page, refusals(map[string]int64{"store": 1}), source(func(o *overview.SourceState) { o.Hour.Ours = 1 }),
			"Senders were refused with 503 once in the last five minutes, for a fault of the gateway: orders (store 1).", "doctor"},
		{sendersRefused, Page, refusals(map[string]int64{"timeout": 3, "row_refused": 3}), source(func(o *overview.SourceState) { o.Five.NotTaken = map[string]int64{"crowded": 9} }),
			"6 times in the last five minutes, for a fault of the gateway: orders (row_refused 3, timeout 3).", "doctor"},
		{sendersRefused, Page, refusals(map[string]int64{"timeout": 3, "row_refused": 12}), func(*snapshot) {}, ": orders (row_refused 12, timeout 3).", "hookonce refusals orders"},
		{sendersRefused, Page, refusals(map[string]int64{"store": 2}, map[string]int64{"panic": 5}, map[string]int64{"internal": 4, "timeout": 9}, map[string]int64{"store": 1}, map[string]int64{"cell_away": 1}),
			func(*snapshot) {}, "22 times in the last five minutes, for a fault of the gateway: other2 (timeout 9, internal 4), other1 (panic 5), orders (store 2), 2 more.", "doctor"},
		{sendersRefused, Page, refusals(map[string]int64{"store": 2}, map[string]int64{"cell_refused": 4, "row_refused": 4, "internal": 1, "timeout": 3}, map[string]int64{"panic": 5}),
			func(*snapshot) {}, ": other1 (cell_refused 4, row_refused 4, timeout 3, 1 more), other2 (panic 5), orders (store 2).", "hookonce refusals other1"},
		{secretRotated, Page, unverified("signature_mismatch", 18, 20), unverified("signature_mismatch", 17, 20), "signature_mismatch", "sources.orders.secrets"},
		{secretRotated, Page, unverified("signature_mismatch", 20, 20), unverified("signature_mismatch", 19, 19), "orders", "reload"},
		{secretRotated, Page, unverified("signature_mismatch", 20, 20), source(func(o *overview.SourceState) { // in the same minute nobody knows which came last
			o.LastVerified, o.FailedSince = ago(time.Hour), ago(time.Hour)
			o.Latest = overview.Intake{Received: 20, Unverified: map[string]int64{"signature_mismatch": 20}}
		}), "orders", "reload"},
		{secretRotated, Page, flooded(4*time.Minute, 57, 0, 0), flooded(4*time.Minute, 56, 0, 0), "orders", "reload"},
		{secretRotated, Page, flooded(4*time.Minute, 57, 0, 1), flooded(4*time.Minute-time.Second, 57, 0, 0), "orders", "reload"},
		{secretRotated, Page, flooded(time.Hour, 0, 8, 28), flooded(time.Hour, 0, 7.9, 28), "orders", "reload"},
		{secretRotated, Page, flooded(time.Hour, 0, 0, 2.9), flooded(time.Minute, 61, 0, 0), "orders", "reload"}, // of two days nothing is learned
		{secretRotated, Page, func(s *snapshot) {
			flooded(time.Hour, 0, 0, 28)(s)
			s.Sources[0].Silence.Daily = leastMissing - 0.1
		},
			flooded(time.Hour, 0, 0, 28), "orders", "reload"}, // whoever is heard once a night is never missing
		{secretRotated, Page, unverified("undecided", 18, 20), unverified("undecided", 17, 20),
			"No request to orders can be checked since 2026-11-22 11:59:00Z (undecided): the keys of its sender cannot be fetched.", "hookonce refusals orders"},
		{clockOff, Page, unverified("timestamp_old", 20, 20), unverified("timestamp_old", 17, 20), "ahead", "timedatectl"},
		{clockOff, Page, unverified("timestamp_future", 20, 20), unverified("signature_mismatch", 20, 20), "behind", "timedatectl"},
		{probing, Info, source(func(o *overview.SourceState) {
			o.Hour = overview.Intake{Verified: 100, Unverified: map[string]int64{"signature_missing": 20}}
		}), source(func(o *overview.SourceState) {
			o.Hour = overview.Intake{Verified: 100, Unverified: map[string]int64{"signature_missing": 19}}
		}), "not authentic", "refusals orders"},
		{probing, Info, source(func(o *overview.SourceState) {
			o.Hour = overview.Intake{Unverified: map[string]int64{"signature_missing": 20}}
		}),
			unverified("signature_mismatch", 20, 20), "beside 0", "refusals orders"},
		{failing, Page, destination(func(d *overview.DestinationState) { d.Health = &fleet.Health{State: "ill", Error: "500"} }),
			destination(func(d *overview.DestinationState) { d.Health = &fleet.Health{State: "recovering"} }), "500", "--state failed"},
		{failing, Page, lately(unfound, broken, illBy("status 503")), func(*snapshot) {}, "ledger has been failing since 0001-01-01 00:00:00Z: status 503;", "--state failed"},
		{failing, Page, lately(unfound, broken, illBy("no such host")), func(*snapshot) {}, "ledger cannot be found by its name since 0001-01-01 00:00:00Z: no such host;", "the DNS of"},
		{failing, Page, lately(unfound, broken, illBy("status 500")), func(*snapshot) {}, "ledger has been failing since 0001-01-01 00:00:00Z: status 500;", "--state failed"},
		{FirstAttemptsFail, Page, firsts(73), firsts(72), "73 of 1000", "hookonce failures"},
		{FirstAttemptsFail, Page, lately(unfound, broken, failFirst), func(*snapshot) {}, "in the last hour: status 503.", "hookonce failures"},
		{FirstAttemptsFail, Page, destination(func(d *overview.DestinationState) {
			failFirst(d)
			d.Failures = []overview.Failure{{Error: "no such host", Latest: ago(time.Hour + time.Second)}}
		}), func(*snapshot) {}, "in the last hour.", "hookonce failures"},
		{blocked, Ticket, destination(func(d *overview.DestinationState) {
			d.Blocked = &overview.Blocked{Resource: "pi_1", Event: 7, Waiting: 3}
		}), func(*snapshot) {}, "pi_1", "events show 7"},
		{poison, Ticket, destination(func(d *overview.DestinationState) {
			d.Failures, d.Dead = []overview.Failure{{Kind: "status", Status: 422, Type: "refund", Dead: 2, Error: "422 Unprocessable"}}, 2
		}), destination(func(d *overview.DestinationState) {
			d.Failures, d.Dead = []overview.Failure{{Type: "refund", Dead: 1, Error: "422"}}, 1
		}), "ledger takes events, but 2 deliveries are given up (422 Unprocessable); the last that failed so are all of type refund.", "--state dead --error status --status 422 --reason TEXT"},
		{poison, Ticket, destination(func(d *overview.DestinationState) { // removed within the hour
			d.Failures, d.Dead, d.Configured = []overview.Failure{{Kind: "status", Status: 422, Type: "refund", Dead: 2, Error: "422"}}, 2, false
		}), func(*snapshot) {}, "all of type refund.", "in the configuration"},
		{died, Ticket, destination(func(d *overview.DestinationState) { d.Dead = 1 }), func(*snapshot) {}, "1 delivery is given up", "--state dead"},
		{died, Page, destination(func(d *overview.DestinationState) { d.Dead, d.Hour.Dead = 11, 11 }), func(*snapshot) {}, "11 deliveries", "--state dead"},
		{died, Ticket, lately(unfound, broken, func(d *overview.DestinationState) { d.Dead = 43 }), func(*snapshot) {}, "43 deliveries are given up at ledger: status 503.", "--state dead"},
		{Paused, Ticket, pausedFor(forgotten + time.Second), func(*snapshot) {}, "by ann (moving)", "resume"},
		{Paused, Info, pausedFor(forgotten), func(*snapshot) {}, "by ann", "resume"},
		{backlogOld, Page, backlog(oldBacklog + time.Second), backlog(oldBacklog), "5 events wait", "destinations list"},
		{backlogOld, Page, replayed(oldBacklog + time.Second), replayed(-2 * aheadBy), "5 events wait", "destinations list"},
		{backlogOld, Page, draining(nil), backlog(oldBacklog), "; whether it gets shorter is not known yet.", "destinations list"},
		{backlogOld, Page, draining(new(0.0)), backlog(oldBacklog), "; it does not get shorter.", "destinations list"},
		{backlogOld, Page, draining(new(90.0)), backlog(oldBacklog), "; it drains in 1m30s.", "destinations list"},
		{backlogOld, Page, unconfigured(oldBacklog + time.Second), unconfigured(oldBacklog),
			"ledger is not configured, and nothing delivers what waits for it: 5 events wait, the longest since 2026-11-22 11:44:59Z.", "in the configuration"},
		{backlogOld, Page, backlog(-aheadBy - time.Second), backlog(-aheadBy),
			"ledger: how long events wait is not known: 5 wait, and the oldest came, by a clock that was ahead, at 2026-11-22 13:00:01Z.", "events replay --destination ledger --state failed"},
		{backlogOld, Page, unconfigured(-aheadBy - time.Second), unconfigured(-aheadBy), "how long events wait is not known", "in the configuration"},
		{unrouted, Ticket, routed(10, 10), routed(9, 9), "No route of orders wanted any of its 10 events of the last 24 hours", "sources.orders.routes"},
		{unrouted, Ticket, routed(400, 400), routed(401, 400), "delivered nowhere", "events list --unrouted --source orders"},
		{conflict, Ticket, source(func(o *overview.SourceState) { o.Hour.Conflicts = 1 }), func(*snapshot) {}, "other content", "--seen conflict"},
		{cameAgain, Ticket, again(3), again(2), "60 of 160", "--seen duplicate"},
		{oneAgain, Info, source(func(o *overview.SourceState) { o.Hour.Copies, o.Hour.Reseen = 50, 1 }),
			source(func(o *overview.SourceState) { o.Hour.Copies, o.Hour.Reseen = 50, 2 }), "again and again", "--seen duplicate"},
		{neverArrived, Ticket, source(func(o *overview.SourceState) { o.NeverArrived = &overview.Lost{Beyond: 1, First: ago(30 * time.Hour)} }),
			source(func(o *overview.SourceState) { o.Hour.Missing, o.NeverArrived = 3, nil }), "1 event", "hookonce reconcile"},
		{reconcileLate, Ticket, compared(overview.Compared{Every: 900, Ended: ago(time.Hour + time.Second)}, 24*time.Hour),
			compared(overview.Compared{Every: 900, Ended: ago(time.Hour)}, 24*time.Hour), "not compared", "hookonce reconcile"},
		{reconcileLate, Ticket, compared(overview.Compared{Every: 900}, time.Hour+time.Second), compared(overview.Compared{Every: 900}, time.Hour), "not compared", "hookonce reconcile"},
		{reconcileLate, Ticket, compared(overview.Compared{Every: 900, Ended: ago(5 * time.Hour)}, 24*time.Hour),
			compared(overview.Compared{Every: 900, Ended: ago(5 * time.Hour), Running: true}, 24*time.Hour), "not compared", "hookonce reconcile"},
		{reconcileLate, Ticket, compared(overview.Compared{Every: 900, Ended: ago(longRun), Running: true}, 2*longRun), // it is cut off again and again
			compared(overview.Compared{Every: 900, Ended: ago(longRun - time.Second), Running: true}, 2*longRun), "not compared", "hookonce reconcile"},
		{reconcileLate, Ticket, compared(overview.Compared{Every: 900, Ended: ago(time.Minute), Error: "the token was refused", Running: true}, time.Hour),
			compared(overview.Compared{Every: 900, Ended: ago(time.Minute), Running: true}, time.Hour), "the token was refused.", "hookonce reconcile"},
		{reconcileLate, Ticket, compared(overview.Compared{Every: 900, Ended: ago(time.Minute), Error: "the token was refused"}, time.Hour),
			compared(overview.Compared{Every: 900, Ended: ago(time.Minute)}, time.Hour), "the token was refused.", "hookonce reconcile"},
		{silent, Ticket, source(func(o *overview.SourceState) { o.LastVerified, o.Silence.Missing = ago(leastSilent), 12.1 }),
			source(func(o *overview.SourceState) { o.LastVerified, o.Silence.Missing = ago(leastSilent), 12 }), "silent since", "endpoint"},
		{silent, Ticket, source(func(o *overview.SourceState) { o.LastVerified, o.Silence.Missing = ago(time.Hour), 50 }),
			source(func(o *overview.SourceState) { o.LastVerified, o.Silence.Missing = ago(leastSilent-time.Second), 50 }), "50 minutes", "endpoint"},
		{silent, Ticket, source(func(o *overview.SourceState) {
			o.LastVerified, o.ExpectEvery = ago(24*time.Hour+time.Second), 24*3600
		}), source(func(o *overview.SourceState) {
			o.LastVerified, o.ExpectEvery, o.Silence.Missing = ago(24*time.Hour), 24*3600, 99
		}), "something is expected every 24h", "endpoint"},
		{cleanupLate, Ticket, func(s *snapshot) { s.Since, s.Store.Cleaned = ago(72*time.Hour), ago(cleanupAfter+time.Second) },
			func(s *snapshot) { s.Since, s.Store.Cleaned = ago(72*time.Hour), ago(cleanupAfter) }, "cleanup", "doctor"},
		{partitionsEnd, Ticket, func(s *snapshot) { s.Store.Partitioned = now.Add(partitionGap - time.Second) },
			func(s *snapshot) { s.Store.Partitioned = now.Add(partitionGap) }, "last partition", "doctor"},
		{effectsDoubled, Page, reconciled(0, 1), reconciled(-time.Second, 1), "In orders, 1 event has more than one effect (2 too many), such as evt_1", "hookonce reconcile effects --table orders"},
		{effectsDoubled, Page, reconciled(0, 2), reconciled(0, 0), "2 events have", "reconcile"},
		{secretEnds, Ticket, secrets(secretSoon, 30, 10), secrets(secretSoon+time.Second, 30, 10), "Secret 1 of orders ends at 2026-11-29 12:00:00Z, and 30 of the last 40 requests", "sources.orders.secrets"},
		{secretEnds, Ticket, secrets(secretSoon, 1, 39), secrets(secretSoon, 0, 40), "1 of the last 40", "reload"},
		{secretEnds, Ticket, secrets(time.Hour, 40, 0), secrets(secretSoon+time.Second, 40, 0), "all of the last 40 requests were signed with it: from then on they are refused", "sources.orders.secrets"},
		{secretEnds, Ticket, secrets(-time.Hour, 40, 0), secrets(-time.Hour, 39, 1), "has ended at 2026-11-22 11:00:00Z: all of the last 40", "sources.orders.secrets"},
		{secretEnds, Ticket, secrets(0, 3, 0), secrets(0, 0, 0), "has ended", "reload"},
		{secretUnused, Info, unused(secretIdle, 0, nil), unused(secretIdle-time.Second, 0, nil), "Secret 2 of orders verified none of the 500", "sources.orders.secrets"},
		{secretUnused, Info, unused(secretIdle, 0, when(secretIdle+time.Second)), unused(secretIdle, 0, when(secretIdle)), "can be removed", "reload"},
		{secretUnused, Info, unused(2*secretIdle, 0, nil), unused(2*secretIdle, 1, nil), "seven days", "reload"},
		{storeFull, Ticket, func(s *snapshot) { s.Store.FreeBytes, s.Store.DailyBytes = 13<<30, 1<<30 },
			func(s *snapshot) { s.Store.FreeBytes, s.Store.DailyBytes = 14<<30, 1<<30 }, "full in 13 days", "retention"},
		{storeFull, Ticket, func(s *snapshot) { s.Store.FreeBytes, s.Store.DailyBytes = 1, 1<<30 }, // full, which is not that nothing is known
			func(s *snapshot) { s.Store.FreeBytes, s.Store.DailyBytes = 0, 1<<30 }, "full in 0 days", "retention"},
	} {
		find := func(edit func(*snapshot)) *Alert {
			s := well()
			edit(s)
			all := Judge(s).Alerts
			if i := slices.IndexFunc(all, func(a Alert) bool { return a.Rule == c.rule }); i >= 0 {
				return &all[i]
			}
			return nil
		}
		a := find(c.fires)
		if a == nil {
			t.Errorf("%s does not fire", c.rule)
			continue
		}
		if next := a.Action.Label + " " + a.Action.Command + " " + a.Action.Place + " " + a.Action.Path; a.Severity != c.severity || !strings.Contains(a.Headline, c.says) || !strings.Contains(next, c.leads) {
			t.Errorf("%s: %s %q leads to %q; want %s %q and %q", c.rule, a.Severity, a.Headline, next, c.severity, c.says, c.leads)
		}
		if a := find(c.not); a != nil {
			t.Errorf("%s fires just below: %s", c.rule, a.Headline)
		}
		// What is shown of the rule agrees: it passes 1 where the rule fires.
		for want, edit := range map[bool]func(*snapshot){true: c.fires, false: c.not} {
			s := well()
			edit(s)
			all := Settings{}.Stand(s)
			is := all[slices.IndexFunc(all, func(is Standing) bool { return is.Rule == c.rule })]
			reached := want && (!aboutSeverity[c.rule] || c.severity == is.Severity && c.rule == Paused || c.severity == Page)
			if is.Holds != want || reached && is.Share < 1 || !reached && is.Share > 1 || is.Now == "" || want && is.Subject != a.Subject {
				t.Errorf("%s holds %t; it is shown to be %t at %q, with %q, %g of what it takes", c.rule, want, is.Holds, is.Subject, is.Now, is.Share)
			}
		}
	}
}

// Few requests are looked at over a longer time, and a secret that is counted with others is not judged.
func TestUsesOfSecrets(t *testing.T) {
	until := now.Add(time.Hour)
	for name, c := range map[string]struct {
		secrets []overview.Secret
		says    string // none if it is empty
	}{
		"the hour, if it has enough":        {[]overview.Secret{{Until: &until, Day: 90, Week: 900}, {Hour: 20, Day: 80, Week: 800}}, ""},
		"the day, if the hour has not":      {[]overview.Secret{{Until: &until, Day: 20, Week: 900}, {Hour: 19, Day: 19, Week: 800}}, "20 of the last 39"},
		"the week, if the day has not":      {[]overview.Secret{{Until: &until, Week: 2}, {Week: 9}}, "2 of the last 11"},
		"nothing came":                      {[]overview.Secret{{Until: &until}, {}}, ""},
		"a single one":                      {[]overview.Secret{{Until: &until, Hour: 25}}, "all of the last 25"},
		"one that is counted with others":   {[]overview.Secret{{}, {}, {}, {Until: &until, Hour: 25, Shared: true}, {}}, ""},
		"one that lasts, which alone is so": {[]overview.Secret{{Hour: 25}}, ""},
	} {
		s := well()
		s.Sources[0].Secrets, s.Sources[0].SecretsSince = c.secrets, ago(2*secretIdle)
		said := ""
		for _, a := range Judge(s).Alerts {
			if a.Rule == secretEnds {
				said += a.Headline
			}
		}
		if (said == "") != (c.says == "") || !strings.Contains(said, c.says) {
			t.Errorf("%s: %q, want %q", name, said, c.says)
		}
	}
}

// A source without a destination was meant to lead nowhere.
func TestNothingWasToBeRouted(t *testing.T) {
	s := well()
	s.Sources[0].Day = overview.Routed{New: 50, Unrouted: 50}
	if v := Judge(s); len(v.Alerts) > 0 {
		t.Errorf("%+v", v.Alerts)
	}
}

// What is doubled is the answer to whether anything is.
func TestDoubledIsAnswered(t *testing.T) {
	s := well()
	s.Reconciled = []overview.Reconciled{{At: now, Until: now, Table: "orders"}}
	if a := Judge(s).Doubled; a.Yes {
		t.Errorf("nothing doubled: %+v", a)
	}
	s.Reconciled[0].Doubled = 3
	if a := Judge(s).Doubled; !a.Yes || !strings.HasPrefix(a.Text, "Yes. In orders, 3 events have") {
		t.Errorf("three doubled: %+v", a)
	}
}

// Where there is no data nothing is wrong.
func TestNothingKnown(t *testing.T) {
	for name, s := range map[string]*snapshot{"nothing": {}, "well": well(), "names": {
		At: now, Since: now, Sources: []overview.SourceState{{Name: "orders"}}, Destinations: []overview.DestinationState{{Destination: fleet.Destination{Name: "ledger"}}},
	}} {
		if v := Judge(s); !v.Healthy || len(v.Alerts) > 0 || !strings.HasPrefix(v.Headline, "Everything is well") {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// A rule that is off alerts nobody, and makes nobody say that senders are answered who are not.
func TestARuleThatIsOffHidesNoRefusal(t *testing.T) {
	for rule, edit := range map[string]func(*snapshot){
		storeAway:       func(s *snapshot) { s.Store.Away = &overview.Trouble{Since: ago(time.Minute)} },
		storeUnwritable: func(s *snapshot) { s.Store.Unwritable = &overview.Trouble{Since: ago(time.Minute)} },
		cellAway:        func(s *snapshot) { s.Cells = []overview.CellState{{Name: "us", Error: "gone"}} },
	} {
		s := well()
		edit(s)
		if on := Judge(s); !on.Refused.Yes || on.Healthy || len(on.Alerts) != 1 || on.Alerts[0].Rule != rule {
			t.Fatalf("%s is on: %+v", rule, on)
		}
		v := Settings{rule: {Off: true}}.Judge(s)
		if !v.Refused.Yes || len(v.Alerts) > 0 || strings.Contains(v.Headline, "no sender is refused") {
			t.Errorf("%s is off: %+v", rule, v)
		}
	}
}

// A cell that owns nothing and is away refuses nobody, and explains no refusal.
func TestIdleCellRefusesNobody(t *testing.T) {
	for idle, refused := range map[bool]bool{true: false, false: true} {
		s := well()
		s.Cells = []overview.CellState{{Name: "us", Error: "gone", Idle: idle}}
		if v := Judge(s); v.Refused.Yes != refused {
			t.Errorf("idle %v: refused %+v", idle, v.Refused)
		}
		s.Sources[0].Five.Ours = 7
		for _, a := range Judge(s).Alerts {
			if a.Rule == sendersRefused && (a.Cause == "") != idle {
				t.Errorf("idle %v: the refusals follow from %q", idle, a.Cause)
			}
		}
	}
}

// A replay of old events that is worked off in time is no reason to page anybody, or to stop the heartbeat.
func TestAReplayIsAsOldAsItIsOverdue(t *testing.T) {
	for due, healthy := range map[time.Duration]bool{-3 * time.Hour: true, 0: true, oldBacklog: true, oldBacklog + time.Second: false} {
		s := well()
		d := &s.Destinations[0]
		d.Oldest, d.Since, d.Backlog = when(72*time.Hour), when(due), 100_000
		if v := Judge(s); v.Healthy != healthy || (len(v.Alerts) == 0) != healthy {
			t.Errorf("due %s ago: %+v", due, v)
		}
	}
}

// A cause is told before what follows from it, however severe that is.
func TestCausesOutrankConsequences(t *testing.T) {
	old := ago(time.Hour)
	behind := func(s *snapshot) {
		s.Destinations[0].Oldest, s.Destinations[0].Since, s.Destinations[0].Backlog = &old, &old, 9
	}
	for name, c := range map[string]struct {
		edit          []func(*snapshot)
		first, second string
		healthy       bool
	}{
		"a store that is away explains a backlog, and senders who are refused": {[]func(*snapshot){behind, func(s *snapshot) {
			s.Store.Away = &overview.Trouble{Since: old, Error: "gone"}
			s.Sources[0].Five.Ours = 7
		}}, storeAway, sendersRefused, false},
		"a cell that is away explains that senders are refused": {[]func(*snapshot){func(s *snapshot) {
			s.Cells = []overview.CellState{{Name: "us", Error: "gone"}}
			s.Sources[0].Five.Ours = 7
		}}, cellAway, sendersRefused, false},
		"a pause explains a backlog, which pages nobody": {[]func(*snapshot){behind, func(s *snapshot) {
			s.Destinations[0].Pause = &fleet.Pause{At: ago(25 * time.Hour)}
		}}, Paused, backlogOld, true},
		"an illness explains first attempts that fail": {[]func(*snapshot){func(s *snapshot) {
			s.Destinations[0].Health = &fleet.Health{State: "ill"}
			s.Destinations[0].Hour, s.Destinations[0].Five = overview.Outcomes{First: 100, FirstFailed: 90}, overview.Outcomes{First: 10, FirstFailed: 9}
		}}, failing, FirstAttemptsFail, false},
		"a type that fails explains what died": {[]func(*snapshot){func(s *snapshot) {
			s.Destinations[0].Dead = 2
			s.Destinations[0].Failures = []overview.Failure{{Type: "refund", Dead: 2, Error: "422"}}
		}}, poison, died, true},
		"a new secret explains a silence": {[]func(*snapshot){func(s *snapshot) {
			o := &s.Sources[0]
			o.LastVerified, o.FailedSince, o.Silence.Missing = ago(2*time.Hour), ago(time.Hour), 80
			o.Latest = overview.Intake{Received: 20, Unverified: map[string]int64{"signature_mismatch": 20}}
		}}, secretRotated, silent, false},
	} {
		s := well()
		for _, edit := range c.edit {
			edit(s)
		}
		v := Judge(s)
		if len(v.Alerts) < 2 || v.Alerts[0].Rule != c.first || v.Alerts[0].Cause != "" || v.Alerts[1].Rule != c.second ||
			v.Alerts[1].Cause != v.Alerts[0].Fingerprint() || !strings.HasPrefix(v.Headline, v.Alerts[0].Headline) || v.Healthy != c.healthy {
			t.Errorf("%s: %+v", name, v)
		}
	}
	// Two that do not follow from each other are both named.
	s := well()
	s.Destinations[0].Health = &fleet.Health{State: "ill"}
	s.Destinations = append(s.Destinations, overview.DestinationState{Destination: fleet.Destination{Name: "mail", Health: &fleet.Health{State: "ill"}}})
	if v := Judge(s); len(v.Alerts) != 2 || v.Alerts[1].Cause != "" || !strings.HasSuffix(v.Headline, " 1 more below.") {
		t.Errorf("of two: %+v", v)
	}
}

// A page follows from no ticket: whoever is paged would not hear of it.
func TestTicketsHideNoPage(t *testing.T) {
	old := ago(time.Hour)
	poisoned := []overview.Failure{{Type: "refund", Dead: 2, Error: "422"}}
	for name, c := range map[string]struct {
		edit         func(*snapshot)
		page, ticket string
	}{
		"died": {func(s *snapshot) {
			d := &s.Destinations[0]
			d.Dead, d.Hour.Dead, d.Failures = 40, 40, poisoned
		}, died, poison},
		"first attempts, by a type": {func(s *snapshot) {
			d := &s.Destinations[0]
			d.Dead, d.Failures = 2, poisoned
			d.Hour, d.Five = overview.Outcomes{First: 100, FirstFailed: 50, Attempts: 100, Done: 50}, overview.Outcomes{First: 10, FirstFailed: 5}
		}, FirstAttemptsFail, poison},
		"first attempts, by a resource": {func(s *snapshot) {
			d := &s.Destinations[0]
			d.Blocked = &overview.Blocked{Resource: "r", Waiting: 3}
			d.Hour, d.Five = overview.Outcomes{First: 100, FirstFailed: 50}, overview.Outcomes{First: 10, FirstFailed: 5}
		}, FirstAttemptsFail, blocked},
		"a backlog": {func(s *snapshot) {
			d := &s.Destinations[0]
			d.Oldest, d.Since, d.Backlog, d.Blocked = &old, &old, 9, &overview.Blocked{Resource: "r", Waiting: 3}
		}, backlogOld, blocked},
		"events that came again": {func(s *snapshot) {
			o := &s.Sources[0]
			o.ReseenFor, o.Hour.Conflicts = 10, 1
			o.Five = overview.Intake{Accepted: 10, Reseen: 900}
		}, cameAgain, conflict},
	} {
		s := well()
		c.edit(s)
		v := Judge(s)
		if v.Healthy || len(v.Alerts) < 2 || v.Alerts[0].Rule != c.page || v.Alerts[0].Severity != Page || v.Alerts[0].Cause != "" ||
			!slices.ContainsFunc(v.Alerts, func(a Alert) bool { return a.Rule == c.ticket && a.Severity == Ticket }) {
			t.Errorf("%s: %+v", name, v)
		}
	}
}

// What is given up of a destination that was removed cannot be replayed to it, and nobody is told to try.
func TestDiedAtARemovedDestination(t *testing.T) {
	for _, configured := range []bool{true, false} {
		s := well()
		s.Destinations[0].Dead, s.Destinations[0].Configured = 3, configured
		_, a := findDied(s, &s.Destinations[0], 10)
		if a == nil || (a.Action.Command != "") != configured || (a.Action.Place != "") == configured {
			t.Errorf("configured %t: %+v", configured, a)
		}
	}
}
