// Package dashboardtest has what tests of the dashboard look at: an API that answers with fixed things, in a calm world, in one
// with troubles, and in one in which every text that somebody else controls is an attack.
package dashboardtest

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard"
	"github.com/hookonce/hookonce/internal/doctor"
	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/overview"
	"github.com/hookonce/hookonce/internal/problem"
)

// Now is when everything is looked at.
var Now = time.Date(2026, 11, 22, 14, 30, 0, 0, time.UTC)

// World is what the API tells of.
type World string

// The worlds.
const (
	Calm    World = "calm"
	Trouble World = "trouble"
	Hostile World = "hostile"
)

// Attack is what somebody else writes into every text that is theirs, in [Hostile]: markup, attributes, addresses and templates.
const Attack = `"><script>document.title='owned'</script><img src=x onerror=document.title='owned'>'` + "`" + `javascript:alert(1)//{{.}}${1}</textarea></pre></title>`

// API is the API of a world. It notes what it is asked to change.
type API struct {
	World    World // see Change for one that is asked already
	Disabled bool  // alerts.enabled is false

	mu      sync.Mutex
	calls   []string
	changed func(call string)
}

// Change has the API tell of another world from now on.
func (a *API) Change(to World) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.World = to
}

// Calls returns what was asked to be changed so far: a path and its body each.
func (a *API) Calls() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.calls...)
}

// text returns what somebody else wrote.
func (a *API) text(s string) string {
	if a.World == Hostile {
		return Attack
	}
	return s
}

// ServeHTTP answers as the API does.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	of := &API{World: a.World, Disabled: a.Disabled, changed: a.note}
	a.mu.Unlock()
	of.serve(w, r)
}

// note remembers what was asked to be changed.
func (a *API) note(call string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, call)
}

func (a *API) serve(w http.ResponseWriter, r *http.Request) {
	mux := http.NewServeMux()
	answer := func(pattern string, of func(*http.Request) any) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				var body json.RawMessage
				_ = json.NewDecoder(r.Body).Decode(&body)
				a.changed(r.URL.Path + " " + string(body))
				r.Pattern = string(body)
			}
			w.Header().Set("Content-Type", "application/json")
			_ = json.NewEncoder(w).Encode(of(r))
		})
	}
	answer("GET /api/v1/events", func(*http.Request) any { return a.events() })
	answer("GET /api/v1/events/{id}", func(*http.Request) any { return a.event() })
	mux.HandleFunc("GET /api/v1/tail", a.tail)
	answer("GET /api/v1/sources", func(*http.Request) any { return a.sources() })
	answer("GET /api/v1/destinations", func(*http.Request) any { return a.destinations() })
	answer("GET /api/v1/failures", func(*http.Request) any { return a.failures() })
	answer("GET /api/v1/overview", func(*http.Request) any { return a.overview() })
	answer("GET /api/v1/alerts", func(*http.Request) any { return a.alerts() })
	answer("GET /api/v1/alerts/rules", func(*http.Request) any { return a.alertRules() })
	answer("GET /api/v1/alerts/history", func(*http.Request) any { return a.alertHistory() })
	answer("POST /api/v1/alerts/acknowledge", func(*http.Request) any {
		return api.AlertDone{Alert: "destination_failing/ledger", Done: "acknowledged"}
	})
	answer("POST /api/v1/alerts/silences", func(*http.Request) any { return a.silence() })
	answer("POST /api/v1/alerts/silences/{id}/end", func(*http.Request) any { return api.AlertDone{Alert: "7", Done: "unsilenced"} })
	answer("POST /api/v1/alerts/channels/{name}/test", func(r *http.Request) any {
		return api.ChannelTest{Channel: r.PathValue("name"), Arrived: a.World == Calm, Answer: a.text("it answered 403 Forbidden: no_service")}
	})
	answer("GET /api/v1/history", a.history)
	answer("GET /api/v1/stats", func(*http.Request) any { return a.stats() })
	answer("GET /api/v1/refusals", func(*http.Request) any { return a.refusalCounts() })
	answer("GET /api/v1/sources/{name}/refusals", func(r *http.Request) any { return a.refusals(r.PathValue("name")) })
	answer("GET /api/v1/sources/{name}/missing", func(*http.Request) any { return a.missing() })
	answer("POST /api/v1/sources/{name}/missing/dismiss", func(*http.Request) any { return api.Dismissed{Dismissed: 1} })
	answer("GET /api/v1/audit", func(*http.Request) any { return a.audit() })
	answer("POST /api/v1/replay", a.replay)
	answer("POST /api/v1/events/{id}/replay", a.replay)
	answer("POST /api/v1/events/{id}/payload", a.payload)
	answer("POST /api/v1/destinations/{name}/pause", func(r *http.Request) any { return api.PauseResult{Name: "ledger", Paused: true, Changed: true} })
	answer("POST /api/v1/destinations/{name}/resume", func(r *http.Request) any { return api.PauseResult{Name: "ledger", Changed: true} })
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		(&problem.Details{Status: http.StatusNotFound, Detail: "there is no such event, or not any more"}).Write(w)
	})
	mux.ServeHTTP(w, r)
}

func (a *API) replay(r *http.Request) any {
	var in struct {
		DryRun bool `json:"dry_run"`
	}
	_ = json.Unmarshal([]byte(r.Pattern), &in)
	out := api.ReplayResult{Events: 1190, Deliveries: 1204, Open: 3, Gone: 1, GoneEvents: []api.GoneEvent{{ID: "924305118331207001", Source: "billing", Key: a.text("evt_gone")}}, DryRun: in.DryRun}
	if !in.DryRun {
		out.Audit = "924305118331207999"
	}
	return out
}

func (a *API) payload(r *http.Request) any {
	p := api.Payload{ID: "924305118331207681", Part: api.PartBody, Form: api.FormMasked, Type: a.text("application/json"), Bytes: 3482,
		Text: a.text("{\n  \"id\": \"***********\",\n  \"amount\": 9999\n}")}
	if strings.Contains(r.Pattern, api.PartHeaders) {
		p = api.Payload{ID: p.ID, Part: api.PartHeaders, Form: p.Form, Headers: []api.HeaderOfLook{{Name: a.text("User-Agent"), Value: a.text("Stripe/1.0")}, {Name: "Stripe-Signature", Value: "****", Masked: true}}}
	}
	return p
}

func ago(d time.Duration) time.Time    { return Now.Add(-d) }
func since(d time.Duration) *time.Time { t := ago(d); return &t }

func (a *API) deliveries() []api.Delivery {
	return []api.Delivery{
		{Destination: "ledger", State: "failed", Attempts: 4, Tries: 4, NextTry: since(-90 * time.Second), LastError: a.text("status 500")},
		{Destination: "mail", State: "dead", Attempts: 12, Tries: 12, LastError: a.text("dial tcp: lookup mail.internal: no such host")},
	}
}

func (a *API) events() api.EventList {
	list := api.EventList{Events: []api.Event{
		{ID: "924305118331207681", Source: "billing", Key: a.text("evt_1QbT2x8zY"), Type: a.text("invoice.paid"), State: "failed", ReceivedAt: ago(41 * time.Minute), Resource: a.text("in_1QbT"), HasBody: true, Deliveries: a.deliveries()},
		{ID: "924305118331207400", Source: "billing", Key: a.text("evt_1QbT2x8zX"), Type: a.text("charge.succeeded"), State: "done", ReceivedAt: ago(55 * time.Minute), HasBody: true, Deliveries: []api.Delivery{}},
		{ID: "924305118331207100", Source: "shop", Type: a.text("orders/paid"), State: "pending", ReceivedAt: ago(2 * time.Hour), HasBody: true, Deliveries: []api.Delivery{{Destination: "ledger", State: "pending"}}},
		{ID: "924305118331206900", Source: "shop", Key: a.text("b54557e4-bdd9-4b37-8a5f-bf7d70bcd043"), Type: a.text("orders/create"), State: "processing", ReceivedAt: ago(3 * time.Hour), HasBody: true, Deliveries: []api.Delivery{{Destination: "shop", State: "processing", Attempts: 1, Tries: 1, HeldUntil: since(-5 * time.Second)}}},
	}, Cursor: "AQAAAAAAAAAA", LookedTo: since(3 * time.Hour)}
	if a.World == Calm {
		list.Events, list.Cursor = list.Events[1:2], ""
	}
	return list
}

// tail tells two events, one of which is in the list as well, and then nothing until who asks is gone.
func (a *API) tail(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	fresh, known := a.events().Events[0], a.events().Events[0]
	fresh.ID, fresh.Key, known.State, known.Deliveries = "924305118331209999", a.text("evt_live"), "done", []api.Delivery{}
	for kind, e := range map[string]api.Event{api.TailEvent: fresh, api.TailState: known} {
		text, _ := json.Marshal(e)
		_, _ = fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, text)
	}
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
}

func (a *API) event() api.Detail {
	e := a.events().Events[0]
	e.ReceivedAt = ago(41 * time.Minute)
	if len(e.Deliveries) > 0 {
		e.Deliveries = slices.Clone(e.Deliveries)
		e.Deliveries[0].WaitsFor = fleet.WaitsForProbe
	}
	return api.Detail{Event: e, BodyBytes: 3482, Vouched: true, Secret: 2, Payload: api.FormMasked,
		Attempts: []api.Attempt{
			{Destination: "ledger", Number: 1, Outcome: "failed", Status: 500, Error: a.text("status 500"), Answer: a.text("<h1>Internal Server Error</h1>\nconnection to the database failed"), StartedAt: ago(41*time.Minute - 20*time.Millisecond), LatencyMS: 184.2},
			{Destination: "mail", Number: 1, Outcome: "dead", Error: a.text("dial tcp: lookup mail.internal: no such host"), StartedAt: ago(40 * time.Minute), LatencyMS: 3.1},
			{Destination: "audit", Number: 1, Outcome: "done", Status: 204, StartedAt: ago(40*time.Minute - time.Second), LatencyMS: 12.7},
		},
		Sightings: []api.Sighting{
			{Kind: "duplicate", First: ago(36 * time.Minute), Last: ago(6 * time.Minute), Copies: 3},
			{Kind: "conflict", First: ago(30 * time.Minute), Last: ago(30 * time.Minute), Copies: 1},
		},
	}
}

func (a *API) sources() api.SourceList {
	return api.SourceList{Sources: []api.Source{
		{Name: "billing", Provider: "stripe", Path: "/in/billing", Destinations: []string{"ledger", "mail", "audit"}, SendsAgain: 3 * 24 * 3600, SentOnDemand: 30 * 24 * 3600},
		{Name: "shop", Provider: "shopify", Path: "/in/shop", Destinations: []string{"shop"}, SendsAgain: 4 * 3600},
	}}
}

func (a *API) destinations() fleet.DestinationList {
	healthy := func() *fleet.Health { return &fleet.Health{State: "healthy", Limit: 64} }
	list := fleet.DestinationList{
		Gateways: []fleet.Gateway{
			{ID: "g1", Host: "web-1", PID: 812, Version: "1.4.0", Since: ago(52 * time.Hour), Seen: Now, Answers: true},
			{ID: "g2", Host: "web-2", PID: 790, Version: "1.4.0", Since: ago(51 * time.Hour), Seen: ago(3 * time.Second)},
		},
		Destinations: []fleet.Destination{
			{Name: "audit", Configured: true, URL: "https://audit.internal/hooks", Order: "none", Health: healthy(), Underway: 2, Gateways: []fleet.Stand{}, Open: []fleet.Open{}},
			{Name: "ledger", Configured: true, URL: "https://ledger.internal/webhooks", Order: "by_resource", Health: healthy(), Gateways: []fleet.Stand{}, Open: []fleet.Open{}},
			{Name: "mail", Configured: true, URL: "https://mail.internal/hooks", Order: "none", Health: healthy(), Gateways: []fleet.Stand{}, Open: []fleet.Open{}},
		},
	}
	if a.World == Calm {
		return list
	}
	ledger, mail := &list.Destinations[1], &list.Destinations[2]
	ill := fleet.Health{State: "ill", Since: since(41 * time.Minute), Error: a.text("status 500"), Probe: since(-12 * time.Second), Limit: 1}
	ledger.Health, ledger.Waiting, ledger.Underway = &ill, 64, 1
	ledger.Gateways = []fleet.Stand{{Gateway: "g1", Health: ill, Waiting: 40, Underway: 1}, {Gateway: "g2", Health: ill, Waiting: 24}}
	ledger.Open = []fleet.Open{{State: "pending", Count: 1140, Oldest: ago(41 * time.Minute), Since: ago(41 * time.Minute)}, {State: "failed", Count: 64, Oldest: ago(41 * time.Minute), Since: ago(41 * time.Minute)}, {State: "dead", Count: 7, Oldest: ago(30 * time.Hour), Since: ago(30 * time.Hour)}}
	mail.Pause = &fleet.Pause{At: ago(26 * time.Hour), By: "oncall", Reason: a.text("migrating the mail provider")}
	mail.Open = []fleet.Open{{State: "pending", Count: 311, Oldest: ago(26 * time.Hour), Since: ago(26 * time.Hour)}}
	return list
}

// missing never arrived at billing.
func (a *API) missing() api.MissingList {
	list := api.MissingList{Beyond: 4, FoundBefore: ago(time.Minute)}
	for i := range 22 {
		m := api.MissingEvent{Key: a.text(fmt.Sprintf("evt_lost_%02d", i)), Type: a.text("invoice.paid"), Happened: since(4 * time.Hour), Found: ago(3 * time.Hour), Expires: ago(-26 * 24 * time.Hour)}
		switch i {
		case 0:
			m.Why = a.text("signature: the signature does not match any of the configured secrets")
		case 1:
			m.Asked = since(2 * time.Hour)
		case 2:
			m.Key, m.Entry, m.Happened = "", a.text("delivery 4711"), nil
		}
		list.Events = append(list.Events, m)
	}
	return list
}

// overview judges what the other answers tell.
func (a *API) overview() api.Overview {
	hours := func(often float64) (all []float64) {
		for i := range 168 {
			all = append(all, often*float64(4+(i*7)%5+6*(i%24/8%2))/10)
		}
		return all
	}
	s := overview.Snapshot{At: Now, Since: ago(52 * time.Hour), Gateways: a.destinations().Gateways, Parts: []overview.Part{{Name: "tallies", Read: Now}},
		Store: overview.StoreState{Events: 1_204_551, Cleaned: ago(2 * time.Hour), CommitMS: 2, Commits: 40},
		Numbers: overview.Numbers{First: overview.FirstAttempts{First: 46_320, FirstFailed: 98}, FirstShares: hours(0.002), Reseen: 162, Events: 16_598, ReseenCounts: hours(9),
			Rows: 1_204_551, StoredYesterday: 16_204, PurgedYesterday: 15_870, StoredCounts: hours(860)}}
	for _, src := range a.sources().Sources {
		s.Sources = append(s.Sources, overview.SourceState{Name: src.Name, Provider: src.Provider, Path: src.Path, Destinations: src.Destinations, LastVerified: ago(40 * time.Second),
			Hour: overview.Intake{Received: 900, Verified: 900, Accepted: 860, Reseen: 9}, Usual: overview.Baseline{Share: 0.011, Dispersion: 1.4, Hours: 168}})
	}
	for i := range s.Sources {
		if o := &s.Sources[i]; o.Name == "billing" {
			o.Compared = &overview.Compared{Every: 900, Through: ago(14 * time.Minute), Ended: ago(4 * time.Minute), Listed: 212, Missing: 3, Recovered: 3}
			if a.World != Calm {
				o.Compared.Error = a.text("listing events: the sender answered 500")
				o.NeverArrived = &overview.Lost{Count: int64(len(a.missing().Events)), Beyond: 4, First: ago(3 * time.Hour)}
			}
		}
	}
	for _, d := range a.destinations().Destinations {
		state := overview.DestinationState{Destination: d, Failures: []overview.Failure{}, Hour: overview.Outcomes{First: 860, FirstFailed: 2, Done: 858}}
		for i := range d.Open {
			o := &d.Open[i]
			if o.State == "dead" {
				state.Dead = o.Count
			} else {
				state.Backlog += o.Count
				state.Oldest, state.Since, state.DrainsIn = &o.Oldest, &o.Since, new(0.0)
			}
		}
		if a.World != Calm && d.Name == "ledger" {
			failing := overview.Outcomes{First: 640, FirstFailed: 640, Attempts: 700, Failed: 700}
			state.Five, state.Half, state.Hour, state.Six = failing, failing, failing, failing.FirstAttempts()
			state.Failures = []overview.Failure{{Kind: "status", Status: 500, Error: a.text("status 500"), Count: 64, Dead: 7, Since: ago(41 * time.Minute), Latest: ago(8 * time.Second), Source: "billing", Event: 924305118331207681}}
		}
		s.Destinations = append(s.Destinations, state)
	}
	if a.World != Calm {
		s.Sources[0].Latest = overview.Intake{Received: 20, Unverified: map[string]int64{"signature": 20}}
		s.Sources[0].Hour.Unverified = map[string]int64{"signature": 214}
		s.Sources[0].LastFailed, s.Sources[0].FailedSince, s.Sources[0].LastVerified = ago(time.Minute), ago(20*time.Minute), ago(21*time.Minute)
		s.Numbers.First.FirstFailed = 3898
		s.Numbers.FirstShares[167] = 0.79
	}
	o := api.Overview{Verdict: alert.Judge(&s), Snapshot: s}
	if a.World != Calm {
		silence := a.silence()
		o.Attended = []api.Attended{{Alert: "paused/mail", Silenced: &silence},
			{Alert: strings.TrimSuffix(o.Verdict.Alerts[0].Fingerprint(), "/"), Acknowledged: &api.Acknowledgement{By: "oncall", At: ago(30 * time.Minute), Reason: a.text("failing over")}}}
	}
	return o
}

func (a *API) silence() api.AlertSilence {
	return api.AlertSilence{ID: "7", Alert: "*/mail", By: "oncall", At: ago(2 * time.Hour), Until: Now.Add(22 * time.Hour), Reason: a.text("the mail provider moves")}
}

// alerts are those of the overview, each looked after in another way.
func (a *API) alerts() api.AlertList {
	list := api.AlertList{Evaluated: !a.Disabled, Alerts: []api.AlertState{}, Silences: []api.AlertSilence{}, Channels: []api.Channel{
		{Name: "oncall", Kind: "pagerduty", Severities: []string{"page"}}, {Name: "team", Kind: "slack", Severities: []string{"page", "ticket"}, Waiting: 2,
			Failed: &api.Failed{At: ago(3 * time.Minute), Error: a.text("it answered 403 Forbidden: no_service")}},
	}}
	if a.World == Calm {
		list.Channels = list.Channels[:1]
		return list
	}
	silence := a.silence()
	list.Silences = append(list.Silences, silence)
	for i, said := range a.overview().Verdict.Alerts {
		s := api.AlertState{Name: strings.TrimSuffix(said.Fingerprint(), "/"), Rule: said.Rule, Subject: said.Subject, State: "firing", Severity: string(said.Severity), Headline: said.Headline,
			Since: ago(40 * time.Minute), Told: since(39 * time.Minute), Count: said.Count, Action: said.Action, Cause: said.Cause}
		switch {
		case i == 0:
			s.Acknowledged = &api.Acknowledgement{By: "oncall", At: ago(30 * time.Minute), Reason: a.text("failing over")}
		case i == 1:
			s.State, s.Told = "pending", nil
		case said.Subject == "mail":
			s.Silenced = &silence
		}
		list.Alerts = append(list.Alerts, s)
	}
	return list
}

// alertRules are judged by what the overview shows, one of them changed and one switched off.
func (a *API) alertRules() api.AlertRules {
	s, many := a.overview().Snapshot, 50.0
	set := alert.Settings{"died": {Threshold: &many}, "one_again": {Off: true}}
	return api.AlertRules{Evaluated: !a.Disabled, At: Now, Rules: set.Stand(&s)}
}

func (a *API) alertHistory() api.AlertHistory {
	if a.World == Calm {
		return api.AlertHistory{History: []api.AlertRecord{}}
	}
	return api.AlertHistory{Cursor: "AQAAAAAAAAAA", History: []api.AlertRecord{
		{ID: "3", At: ago(30 * time.Minute), Alert: "destination_failing/ledger", Event: "acknowledged", Text: a.text("failing over"), By: "oncall"},
		{ID: "2", At: ago(39 * time.Minute), Alert: "destination_failing/ledger", Event: "told", Severity: "page", Text: "oncall"},
		{ID: "1", At: ago(40 * time.Minute), Alert: "destination_failing/ledger", Event: "fired", Severity: "page", Text: a.text("ledger has been failing: status 500")},
	}}
}

// history is that of a week in which more comes by day than at night.
func (a *API) history(r *http.Request) any {
	h := api.History{Step: "hour", From: ago(167 * time.Hour).Truncate(time.Hour), Until: Now, Series: []api.Series{}}
	often := map[string]int64{"received": 900, "accepted": 860, "stored": 860, "first": 2400, "attempts": 2500, "done": 2390, "first_failed": 6, "reseen": 9, "dead": 1, "stored_bytes": 2_900_000, "purged:bodies": 700, "purged:ids": 300, "purged:attempts": 900, "age:10s": 1, "age:5m": 6, "age:2h": 2, "age:1d": 1}
	for _, pattern := range strings.Split(r.URL.Query().Get("what"), ",") {
		family, whole := strings.CutSuffix(pattern, "*")
		for _, word := range slices.Sorted(maps.Keys(often)) {
			if word != pattern && !(whole && strings.HasPrefix(word, family)) {
				continue
			}
			s := api.Series{What: word}
			for hour := range int64(168) {
				n := often[word] * (4 + (hour*7)%5 + 6*(hour%24/8%2)) / 10
				if a.World != Calm && word == "first_failed" && hour > 165 {
					n = 1900
				}
				s.Points = append(s.Points, api.HistoryPoint{At: h.From.Add(time.Duration(hour) * time.Hour), N: n})
			}
			h.Series = append(h.Series, s)
		}
	}
	return h
}

func (a *API) stats() api.Stats {
	if a.World == Calm {
		return api.Stats{Events: 1_204_551}
	}
	return api.Stats{Events: 1_204_551, Pending: 1451, Processing: 1, Failed: 64, Dead: 19}
}

func (a *API) failures() api.FailureList {
	list := api.FailureList{Open: []api.FailureGroup{}, Resolved: []api.FailureGroup{}, Since: ago(24 * time.Hour)}
	resolved := api.FailureGroup{Destination: "audit", Kind: "timeout", Text: a.text("no answer within 15s"), Count: 31, Since: ago(9 * time.Hour), Latest: ago(8 * time.Hour), Samples: []api.FailureSample{}}
	list.Resolved = append(list.Resolved, resolved)
	if a.World == Calm {
		return list
	}
	sample := func(id, key, answer string) api.FailureSample {
		return api.FailureSample{ID: id, Source: "billing", Key: a.text(key), Type: a.text("invoice.paid"), State: "failed", Started: since(2 * time.Minute), Text: a.text("status 500"), Answer: a.text(answer)}
	}
	list.Open = []api.FailureGroup{
		{Destination: "audit", Kind: "tls", Text: a.text("x509: certificate has expired"), Count: 12, Dead: 12, Since: ago(5 * time.Hour), Latest: ago(4 * time.Hour), Samples: []api.FailureSample{sample("924305118331207100", "evt_9", "")}},
		{Destination: "ledger", Kind: "status", Status: 500, Text: a.text("status 500"), Count: 71, Dead: 7, Since: ago(41 * time.Minute), Latest: ago(8 * time.Second), Samples: []api.FailureSample{
			sample("924305118331207681", "evt_1QbT2x8zY", "<h1>Internal Server Error</h1>\nconnection to the database failed"), sample("924305118331207682", "evt_1QbT2x8zZ", "<h1>Internal Server Error</h1>"),
		}},
	}
	return list
}

func (a *API) refusals(source string) api.RefusalList {
	if a.World == Calm || source == "shop" {
		return api.RefusalList{Refusals: []api.Refusal{}}
	}
	return api.RefusalList{Total: 214, Refusals: []api.Refusal{
		{At: ago(4 * time.Minute), Address: "54.187.174.169", Method: "POST", Path: a.text("/in/billing"), Status: 401, Reason: "signature", Words: a.text("no secret of this source makes the signature that came: it was signed with another one, or a proxy changed the body"),
			Headers: []string{"Content-Type", a.text("Stripe-Signature"), "User-Agent"}, Body: &api.Body{Bytes: 3482, SHA256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"}, Key: a.text("evt_refused"),
			Verify: "hookonce verify --provider stripe --secret env:BILLING_SECRET --body FILE --header 'Stripe-Signature: VALUE'"},
		{At: ago(9 * time.Minute), Address: "203.0.113.7", Method: a.text("POST"), Path: "/in/billing", Status: 401, Reason: "missing_header", Words: "the signature is missing", Missing: a.text("Stripe-Signature"), Headers: []string{"Content-Type"}},
	}}
}

func (a *API) refusalCounts() (counts api.RefusalCounts) {
	for _, source := range append(a.sources().Sources, api.Source{Name: "-"}) {
		counts.Sources = append(counts.Sources, api.RefusalCount{Source: source.Name, Total: a.refusals(source.Name).Total})
	}
	return counts
}

func (a *API) audit() api.AuditList {
	if a.World == Calm {
		return api.AuditList{Audit: []api.Audit{}}
	}
	return api.AuditList{Audit: []api.Audit{
		{ID: "924305118331207999", At: ago(10 * time.Minute), By: "oncall", Reason: a.text("ledger is back after the failover"), Action: "replay", What: a.text(`{"destination":"ledger","state":"failed"}`), Count: 1204},
		{ID: "924305118331207998", At: ago(26 * time.Hour), By: "oncall", Reason: a.text("migrating the mail provider"), Action: "pause", What: "mail"},
	}}
}

// Dashboard returns the dashboard over an API, with the tokens that it asks for.
func Dashboard(a *API, tokens ...api.Token) http.Handler {
	now := func() time.Time { return Now }
	return dashboard.New(dashboard.Options{
		API: a, Guard: api.NewGuard(tokens, api.GuardOptions{Now: now}), Now: now, Version: "1.4.0",
		NotFound: func(w http.ResponseWriter, _ *http.Request) {
			(&problem.Details{Status: http.StatusNotFound, Detail: "there is nothing here"}).Write(w)
		},
		Configuration: func() string { return configuration },
		Examine: func(context.Context) []doctor.Finding {
			found := []doctor.Finding{
				{Check: "configuration", Level: doctor.OK, Text: "2 sources and 3 destinations"},
				{Check: "clock", Level: doctor.OK, Text: "it differs from the database's by 3 ms"},
			}
			if a.World != Calm {
				found = append(found,
					doctor.Finding{Check: "disk", Level: doctor.Warning, Text: a.text("the disk of the store is full in 9 days if it fills as in the last week"), Advice: "shorten retention.bodies, or give it more room"},
					doctor.Finding{Check: "secrets", Level: doctor.Fault, Text: a.text("source billing: no secret is left that verifies"), Advice: a.text("add the secret that the provider shows now")})
			}
			return found
		},
	})
}

const configuration = `listen: 127.0.0.1:8080                     # default
admin: 127.0.0.1:8081                      # default
store: sqlite:/var/lib/hookonce/hookonce.db # hookonce.yaml:3
delivery:
  attempts: 12                             # default
destinations:
  - name: ledger                           # hookonce.yaml:9
    url: https://ledger.internal/webhooks  # hookonce.yaml:10
sources:
  - name: billing                          # hookonce.yaml:12
    provider: stripe                       # hookonce.yaml:13
    secrets: ["env:STRIPE_WEBHOOK_SECRET"] # hookonce.yaml:14
`
