package dashboard

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
	"github.com/hookonce/hookonce/internal/inspect"
)

// countLimit is how far is counted. What is beyond is "at least".
const countLimit = 10_000

// late is how long an effect may be due before that is worth telling.
const late = 15 * time.Minute

// claimCount is what of a source is not done.
type claimCount struct {
	Source string    `json:"source"`
	Stuck  int       `json:"stuck"`
	Held   int       `json:"held"`
	Failed int       `json:"failed"`
	Dead   int       `json:"dead"`
	Oldest time.Time `json:"oldest"`
}

// effectCount is what of a name is not done.
type effectCount struct {
	Name   string     `json:"name"`
	Open   int        `json:"open"`
	Late   int        `json:"late"`
	Dead   int        `json:"dead"`
	Due    *time.Time `json:"due,omitempty"`
	AtMost bool       `json:"at_least,omitempty"` // there may be more
}

// nowView says how all stands.
type nowView struct {
	Headline        string           `json:"headline"`
	Also            []string         `json:"also"`  // what else is wrong, a sentence each
	Level           string           `json:"level"` // good, ticket, page
	Claims          []claimCount     `json:"claims"`
	AtLeast         bool             `json:"at_least,omitempty"` // there may be more claims
	Effects         []effectCount    `json:"effects"`
	Reconciliations []reconciliation `json:"reconciliations"`
	Happened        []happened       `json:"happened"`
	Uncounted       string           `json:"uncounted,omitempty"` // why nothing is known of what happened
}

// Sum returns how many claims are in one of the states.
func (v nowView) Sum(state string) (n int) {
	for _, c := range v.Claims {
		n += map[string]int{stuck: c.Stuck, held: c.Held, "failed": c.Failed, "dead": c.Dead}[state]
	}
	return n
}

// States are those that are counted.
func (nowView) States() []string { return []string{stuck, "dead", "failed", held} }

func (d *dashboard) nowPage(r *http.Request) (*frame.Page, error) {
	ctx := r.Context()
	v := nowView{Claims: []claimCount{}, Also: []string{}}
	counts, err := d.store.CountClaims(ctx, countLimit)
	if err != nil {
		return nil, err
	}
	v.add(counts)
	if v.Effects, err = d.countEffects(ctx); err != nil {
		return nil, err
	}
	found, err := inspect.Latest(ctx, d.store.Reconciliations)
	if err != nil {
		return nil, err
	}
	v.Reconciliations = shownReconciliations(found)
	v.Happened, v.Uncounted = d.happened(ctx)
	v.judge(d.now())
	return &frame.Page{Title: "Now", Place: "/", Again: 5, Data: v, Commands: []frame.Command{
		{"Look at the database", "hookonce doctor --store DSN"}, {"Was anything done twice?", "hookonce reconcile effects --store DSN --table TABLE --event-column COLUMN"},
	}}, nil
}

// add joins the counts of each source.
func (v *nowView) add(counts []hookonce.ClaimCount) {
	all := 0
	for _, c := range counts {
		all += c.N
		if n := len(v.Claims); n == 0 || v.Claims[n-1].Source != c.Source {
			v.Claims = append(v.Claims, claimCount{Source: c.Source, Oldest: c.Oldest})
		}
		of := &v.Claims[len(v.Claims)-1]
		if c.Oldest.Before(of.Oldest) {
			of.Oldest = c.Oldest
		}
		switch c.State {
		case hookonce.StateProcessing:
			of.Stuck, of.Held = of.Stuck+c.Lapsed, of.Held+c.N-c.Lapsed
		case hookonce.StateFailed:
			of.Failed += c.N
		case hookonce.StateDead:
			of.Dead += c.N
		}
	}
	v.AtLeast = all >= countLimit
}

func (d *dashboard) countEffects(ctx context.Context) ([]effectCount, error) {
	counts, err := d.store.CountEffects(ctx, countLimit)
	all, dead := []effectCount{}, 0
	for _, c := range counts {
		s := effectCount{Name: c.Name, Open: c.Open, Late: c.Late, Dead: c.Dead, AtMost: c.Open >= countLimit}
		if !c.Due.IsZero() {
			s.Due = &c.Due
		}
		dead += c.Dead
		all = append(all, s)
	}
	for i := range all {
		all[i].AtMost = all[i].AtMost || dead >= countLimit
	}
	return all, err
}

// judge finds the sentence that says how all stands: the worst first, and what there is besides.
func (v *nowView) judge(now time.Time) {
	var pages, tickets []string
	for _, r := range v.Reconciliations {
		if now.After(inspect.Until(r.Reconciliation)) {
			continue
		}
		if r.Doubled > 0 {
			pages = append(pages, "In "+r.Question.Table+", "+frame.Plural(r.Doubled, "event has", "events have")+" more than one effect")
		}
		switch {
		case r.Lost != nil && *r.Lost > 0:
			tickets = append(tickets, "In "+r.Question.Table+", "+frame.Plural(*r.Lost, "event that is done has", "events that are done have")+" no effect")
		case r.Fault != "":
			tickets = append(tickets, "In "+r.Question.Table+", it is not known whether events that are done lack their effects")
		}
	}
	atLeast := ""
	if v.AtLeast {
		atLeast = "at least "
	}
	if n := v.Sum(stuck); n > 0 {
		pages = append(pages, atLeast+frame.Plural(n, "claim is", "claims are")+" stuck: their workers are gone, and no copy of the event came since")
	}
	if n := v.Sum("dead"); n > 0 {
		tickets = append(tickets, atLeast+frame.Plural(n, "event was", "events were")+" given up")
	}
	for _, e := range v.Effects {
		if e.Due != nil && e.Late > 0 && now.Sub(*e.Due) > late {
			pages = append(pages, "effects "+e.Name+" are not carried out: the first is due for "+frame.Span(now.Sub(*e.Due))+", and no relay takes it")
		}
		if e.Dead > 0 {
			tickets = append(tickets, frame.Plural(e.Dead, "effect ", "effects ")+e.Name+" "+map[bool]string{true: "was", false: "were"}[e.Dead == 1]+" given up")
		}
	}
	if n := v.Sum("failed"); n > 0 {
		tickets = append(tickets, atLeast+frame.Plural(n, "event", "events")+" failed, and "+map[bool]string{true: "waits", false: "wait"}[n == 1]+" for the sender to send them again")
	}
	switch {
	case len(pages) > 0:
		v.Level = "page"
	case len(tickets) > 0:
		v.Level = "ticket"
	default:
		v.Level, v.Headline = "good", "Everything is well: no claim is stuck, nothing failed or was given up, and no effect is late."
		return
	}
	wrong := append(pages, tickets...)
	for i, w := range wrong {
		wrong[i] = strings.ToUpper(w[:1]) + w[1:] + "."
	}
	if v.Headline = wrong[0]; len(wrong) > 1 {
		v.Headline += " " + frame.Number(len(wrong)-1) + " more below."
		v.Also = wrong[1:min(len(wrong), 1+maxAlso)]
	}
}

// maxAlso is how many sentences there are besides the headline: the tables have all of it.
const maxAlso = 20
