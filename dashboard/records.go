package dashboard

import (
	"net/http"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

// guard is what a guard recorded.
type guard struct {
	Name    string    `json:"name"`
	Rank    string    `json:"rank,omitempty"`
	State   string    `json:"state,omitempty"`
	Changed time.Time `json:"changed"`
}

// guardsView is a part of what guards of a kind recorded.
type guardsView struct {
	Kind    hookonce.GuardKind `json:"kind"`
	From    string             `json:"from,omitempty"`
	Guards  []guard            `json:"guards"`
	NextURL string             `json:"next,omitempty"`
	// Once are the scopes of what was done once: claims under these sources.
	Once []string `json:"once"`
}

func (d *dashboard) guards(r *http.Request) (*frame.Page, error) {
	f := r.URL.Query()
	v := guardsView{Kind: hookonce.GuardVersions, From: f.Get("from"), Guards: []guard{}, Once: []string{}}
	if f.Get("kind") == string(hookonce.GuardStates) {
		v.Kind = hookonce.GuardStates
	}
	found, err := d.store.ListGuards(r.Context(), v.Kind, v.From, pageSize+1)
	if err != nil {
		return nil, err
	}
	for _, g := range found[:min(pageSize, len(found))] {
		s := guard{Name: g.Name, State: g.State, Changed: g.UpdatedAt}
		switch g.Rank.Kind {
		case hookonce.RankVersion:
			s.Rank = "version " + frame.Number(g.Rank.N)
		case hookonce.RankTime:
			s.Rank = frame.Stamp(time.UnixMicro(g.Rank.N)) + " UTC"
		}
		v.Guards = append(v.Guards, s)
	}
	if len(found) > pageSize {
		v.NextURL = frame.Query("/guards", "kind", string(v.Kind), "from", found[pageSize-1].Name)
	}
	sources, err := d.store.Sources(r.Context())
	for _, s := range sources {
		if strings.HasPrefix(s, "once:") {
			v.Once = append(v.Once, s)
		}
	}
	return &frame.Page{Title: "Guards", Place: "/guards", Data: v}, err
}

// reconciliation is what one run found.
type reconciliation struct{ hookonce.Reconciliation }

// Level is how bad it is.
func (r reconciliation) Level() string {
	switch {
	case r.Doubled > 0:
		return "fault"
	case r.Fault != "" || r.Lost != nil && *r.Lost > 0:
		return "warning"
	}
	return "ok"
}

// WithoutRow says how many events have no row, or why that is not known.
func (r reconciliation) WithoutRow() string {
	switch {
	case r.Lost != nil:
		return frame.Number(*r.Lost)
	case r.Fault != "":
		return r.Fault
	}
	return "not asked"
}

// Command is what asks again.
func (r reconciliation) Command() frame.Command {
	line := "hookonce reconcile effects --store DSN"
	for _, f := range r.Question.Flags() {
		line += " " + frame.Quoted(f)
	}
	return frame.Command{"Ask again", line}
}

func shownReconciliations(found []hookonce.Reconciliation) []reconciliation {
	all := []reconciliation{}
	for _, r := range found {
		all = append(all, reconciliation{r})
	}
	return all
}

func (d *dashboard) reconciliations(r *http.Request) (*frame.Page, error) {
	found, err := d.store.Reconciliations(r.Context(), pageSize)
	if err != nil {
		return nil, err
	}
	v := struct {
		Reconciliations []reconciliation `json:"reconciliations"`
	}{shownReconciliations(found)}
	p := &frame.Page{Title: "Reconciliations", Place: "/reconciliations", Again: 30, Data: v}
	if len(found) > 0 {
		p.Commands = append(p.Commands, v.Reconciliations[0].Command())
	} else {
		p.Commands = append(p.Commands, frame.Command{"Ask", "hookonce reconcile effects --store DSN --table TABLE --event-column COLUMN --time-column COLUMN"})
	}
	return p, nil
}
