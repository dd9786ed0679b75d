package dashboard

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/doctor"
)

// auditView is a part of what operators did.
type auditView struct {
	api.AuditList
	Next string `json:"-"` // address of the next part
}

func (d *dashboard) audit(r *http.Request) (*page, error) {
	var v auditView
	query := url.Values{}
	if c := r.URL.Query().Get("cursor"); c != "" {
		query.Set("cursor", c)
	}
	if err := d.get(r.Context(), "/audit", query, &v.AuditList); err != nil {
		return nil, err
	}
	if v.Cursor != "" {
		v.Next = "/audit?" + url.Values{"cursor": {v.Cursor}}.Encode()
	}
	return &page{Title: "Audit", Place: "/audit", Data: v, Commands: []command{{"Read it", "curl -H \"Authorization: Bearer $HOOKONCE_ADMIN_TOKEN\" $HOOKONCE_ADMIN_URL/api/v1/audit"}}}, nil
}

// configurationView is what runs.
type configurationView struct {
	File string `json:"file"`
}

func (d *dashboard) configuration(*http.Request) (*page, error) {
	return &page{Title: "Configuration", Place: "/configuration", Data: configurationView{d.opt.Configuration()}, Commands: []command{
		{"Show it", "hookonce config show"}, {"Read it anew", "hookonce reload"},
	}}, nil
}

// doctorView is what the doctor found.
type doctorView struct {
	At       time.Time        `json:"at"`
	Findings []doctor.Finding `json:"findings"`
}

// Count returns how many findings have a level.
func (v doctorView) Count(level doctor.Level) (n int) {
	for _, f := range v.Findings {
		if f.Level == level {
			n++
		}
	}
	return n
}

// Sorted returns the findings, the worst first.
func (v doctorView) Sorted() []doctor.Finding {
	severity := map[doctor.Level]int{doctor.Fault: 0, doctor.Warning: 1}
	rank := func(f doctor.Finding) int {
		if n, ok := severity[f.Level]; ok {
			return n
		}
		return len(severity)
	}
	sorted := slices.Clone(v.Findings)
	slices.SortStableFunc(sorted, func(a, b doctor.Finding) int { return cmp.Compare(rank(a), rank(b)) })
	return sorted
}

// examinationTime bounds one, and examinationAge is how long its result is shown: it asks the store more than other pages do.
const (
	examinationTime = 20 * time.Second
	examinationAge  = 30 * time.Second
)

func (d *dashboard) doctor(r *http.Request) (*page, error) {
	v, err := d.examination.get(d.opt.Now, examinationAge, func() (doctorView, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), examinationTime)
		defer cancel()
		return doctorView{At: d.opt.Now().UTC(), Findings: d.opt.Examine(ctx)}, nil
	})
	return &page{Title: "Doctor", Place: "/doctor", Data: v, Commands: []command{{"Look again", "hookonce doctor"}}}, err
}
