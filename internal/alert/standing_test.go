package alert

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/overview"
)

// What is shown of each rule is what a person would say of the numbers, with what is usual where that is known.
func TestStandings(t *testing.T) {
	until := now.Add(30 * 24 * time.Hour)
	s := &snapshot{At: now, Since: ago(72 * time.Hour), Store: overview.StoreState{
		Cleaned: ago(3 * time.Hour), Commits: 40, CommitMS: 12.3, FreeBytes: 90 << 30, DailyBytes: 1 << 30, Partitioned: now.Add(72 * time.Hour)},
		Sources: []overview.SourceState{{Name: "orders", LastVerified: ago(4 * time.Minute), FailedSince: now, Usual: overview.Baseline{Share: 0.025, Dispersion: 1, Hours: 168},
			Compared:     &overview.Compared{Every: 900, Ended: ago(30 * time.Minute)},
			Destinations: []string{"ledger"}, Day: overview.Routed{New: 4, Unrouted: 4},
			Hour:    overview.Intake{Missing: 5, Recovered: 5, Accepted: 97, Reseen: 3, Copies: 6, Verified: 97, Unverified: map[string]int64{"signature_missing": 2}},
			Latest:  overview.Intake{Received: 40, Unverified: map[string]int64{"timestamp_old": 2, "signature_mismatch": 1}},
			Silence: overview.Silence{Missing: 1.2, Days: 28}, SecretsSince: ago(24 * time.Hour),
			Secrets: []overview.Secret{{Until: &until, Hour: 30}, {Hour: 10}}}},
		Destinations: []overview.DestinationState{{
			Destination: fleet.Destination{Name: "ledger", Health: &fleet.Health{State: "healthy"}, Pause: &fleet.Pause{At: ago(6 * time.Hour)}},
			Hour:        overview.Outcomes{First: 1000, FirstFailed: 3, Dead: 1, Done: 997}, Dead: 4, Backlog: 7, Oldest: when(41 * time.Second), Since: when(41 * time.Second),
			Failures: []overview.Failure{{Type: "refund", Dead: 1}},
		}, {Destination: fleet.Destination{Name: "mail"}}},
	}
	want := map[string]string{
		storeAway: ` "it answers" 0`, storeUnwritable: ` "it can be written to" 0`, Unrecorded: ` "" 0`, storeSlow: ` "12 ms on average of the last 40" 0.0492`,
		storeUnread: ` "it answers" 0`, cellAway: ` "there are no other cells" 0`,
		secretRotated: `orders "3 of the last 40 are not authentic" 0`, clockOff: `orders "2 of the last 40 are out of time" 0.0833`,
		failing: `ledger "healthy" 0`, blocked: `ledger "nothing waits so" 0`, poison: `ledger "1 of type refund" 0.5`, Paused: `ledger "for 6h" 0.25`,
		FirstAttemptsFail: `ledger "0.3 % of 1000 in the last hour" 0`, sendersRefused: ` "0 answers 503 in five minutes" 0`,
		effectsDoubled: ` "hookonce reconcile effects was not run" 0`, died: `ledger "4 dead; 1 became so in the last hour" 0.1`, backlogOld: `ledger "41s, of 7" 0.0456`,
		conflict: `orders "0 in an hour" 0`, cameAgain: `orders "3 of 100 in the last hour; usual are 2.5 %, too many 18" 0.167`,
		unrouted:     `orders "4 of 4 in 24 hours" 0.4`,
		neverArrived: `orders "0" 0`, reconcileLate: `orders "30m ago, every 15m" 0.5`,
		silent: `orders "1.2 missing, last 4m ago, learned from 28.0 days" 0.1`, secretEnds: `orders "secret 1 ends in 720h, used by 30 of the last 40" 0.233`,
		cleanupLate: ` "3h ago" 0.115`, partitionsEnd: ` "the last ends in 72h" 0.333`, storeFull: ` "in 90 days" 0.156`,
		oneAgain: `orders "6 copies of 3 in an hour" 0.04`, probing: `orders "2 in an hour, beside 97 that are authentic" 0.1`,
		secretUnused: `orders "looked at for 24h of 168h" 0`,
	}
	for _, is := range (Settings{}).Stand(s) {
		if got := fmt.Sprintf("%s %q %.3g", is.Subject, is.Now, is.Share); got != want[is.Rule] {
			t.Errorf("%s: %s, want %s", is.Rule, got, want[is.Rule])
		}
		delete(want, is.Rule)
	}
	if len(want) > 0 {
		t.Errorf("not shown: %v", want)
	}
}

// The worst of several is shown, and what is configured: a rule that is off says how it would stand.
func TestStandingsAsConfigured(t *testing.T) {
	s, long, many, small := well(), time.Hour, 50.0, 0.0015
	s.Destinations = append(s.Destinations, overview.DestinationState{Destination: fleet.Destination{Name: "audit"}, Oldest: when(20 * time.Minute), Since: when(20 * time.Minute), Backlog: 2},
		overview.DestinationState{Destination: fleet.Destination{Name: "mail"}, Oldest: when(time.Minute), Since: when(time.Minute), Backlog: 1})
	set := Settings{backlogOld: {Off: true}, died: {Threshold: &many, For: &long}, FirstAttemptsFail: {Threshold: &small}}
	all := map[string]Standing{}
	for _, is := range set.Stand(s) {
		all[is.Rule] = is
	}
	if is := all[backlogOld]; is.Enabled || !is.Holds || is.Subject != "audit" || is.Now != "20m, of 2" || is.Limit != "15m" || is.For != 60 || is.Changed {
		t.Errorf("off: %+v", is)
	}
	if is := all[died]; !is.Enabled || !is.Changed || is.For != 3600 || is.Threshold != 50 || is.Limit != "50" || is.Unit != Number {
		t.Errorf("changed: %+v", is)
	}
	if is := all[FirstAttemptsFail]; !is.Changed || is.Limit != "0.15 %" || is.Unit != Share || all[silent].Changed {
		t.Errorf("a budget: %+v", is)
	}
}

// Whatever is seen, and whatever is configured, can be sent as JSON.
func TestStandingsAreFinite(t *testing.T) {
	least := 1e-6
	set := Settings{}
	for _, r := range rules {
		set[r.Name] = Setting{Threshold: &least}
	}
	ended := well()
	ended.Store = overview.StoreState{Partitioned: ago(time.Hour), FreeBytes: 1, DailyBytes: 1 << 40, Commits: 1, CommitMS: 1e300}
	ended.Sources[0] = overview.SourceState{ExpectEvery: 1, Secrets: []overview.Secret{{Until: when(time.Hour), Hour: 1}}}
	for name, s := range map[string]*snapshot{"nothing": {}, "well": well(), "ended": ended} {
		if _, err := json.Marshal(set.Stand(s)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, is := range set.Stand(s) {
			if is.Share < 0 || is.Share > mostShare {
				t.Errorf("%s: %s is at %g", name, is.Rule, is.Share)
			}
		}
	}
}
