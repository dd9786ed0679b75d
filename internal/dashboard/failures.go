package dashboard

import (
	"net/http"
	"slices"
	"strconv"

	"github.com/hookonce/hookonce/internal/api"
)

// failuresView lists what failed in groups.
type failuresView struct{ api.FailureList }

func (d *dashboard) failures(r *http.Request) (*page, error) {
	var v failuresView
	if err := d.get(r.Context(), "/failures", nil, &v.FailureList); err != nil {
		return nil, err
	}
	return &page{Title: "Failures", Place: "/failures", Again: 10, Data: v, Commands: []command{{"List them", "hookonce failures"}}}, nil
}

// failureView is one group.
type failureView struct {
	api.FailureGroup
	Resolved bool `json:"resolved"` // nothing of it is open any more
}

// Filter returns what chooses the group's events.
func (v failureView) Filter() Filter { return groupFilter(v.FailureGroup) }

func (d *dashboard) failure(r *http.Request) (*page, error) {
	var all api.FailureList
	if err := d.get(r.Context(), "/failures", nil, &all); err != nil {
		return nil, err
	}
	is := func(g api.FailureGroup) bool {
		status, _ := strconv.Atoi(r.URL.Query().Get("status"))
		return g.Destination == r.PathValue("destination") && g.Kind == r.PathValue("error") && g.Status == status
	}
	var v failureView
	if i := slices.IndexFunc(all.Open, is); i >= 0 {
		v.FailureGroup = all.Open[i]
	} else if i := slices.IndexFunc(all.Resolved, is); i >= 0 {
		v = failureView{all.Resolved[i], true}
	} else {
		return nil, refusal(http.StatusNotFound, "nothing of this kind is failed or dead, nor was in the last 24 hours")
	}
	return &page{Title: v.Destination + ": " + groupWords(v.FailureGroup), Place: "/failures", Again: 10, Data: v, Commands: []command{
		{"List its events", "hookonce events list" + v.Filter().Flags()},
		{"Replay them", "hookonce events replay" + v.Filter().Flags() + " --reason 'WHY' --dry-run"},
	}}, nil
}

func groupFilter(g api.FailureGroup) Filter {
	f := Filter{"destination": g.Destination, "error": g.Kind}
	if g.Status != 0 {
		f["status"] = strconv.Itoa(g.Status)
	}
	return f
}

// groupAddress returns that of the page about a group.
func groupAddress(g api.FailureGroup) string {
	status := ""
	if g.Status != 0 {
		status = strconv.Itoa(g.Status)
	}
	return query("/failures/"+segment(g.Destination)+"/"+segment(g.Kind), "status", status)
}

// groupWords says what the attempts of a group came to.
func groupWords(g api.FailureGroup) string {
	words := map[string]string{
		"timeout": "no answer in time", "dns": "its name cannot be resolved", "refused": "nobody listens there", "reset": "the connection broke off",
		"unreachable": "no way leads there", "tls": "TLS fails", "address": "the address is not allowed", "invalid": "what came was no usable answer",
		"body_gone": "the body was deleted before it was delivered",
	}
	switch {
	case g.Kind == "status" && g.Status != 0:
		if text := http.StatusText(g.Status); text != "" {
			return strconv.Itoa(g.Status) + " " + text
		}
		return "status " + strconv.Itoa(g.Status)
	case words[g.Kind] != "":
		return words[g.Kind]
	}
	return "another error"
}
