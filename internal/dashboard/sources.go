package dashboard

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/overview"
)

// sourcesView lists sources.
type sourcesView struct{ api.SourceList }

func (d *dashboard) sources(r *http.Request) (*page, error) {
	var v sourcesView
	if err := d.get(r.Context(), "/sources", nil, &v.SourceList); err != nil {
		return nil, err
	}
	return &page{Title: "Sources", Place: "/sources", Again: 10, Data: v, Commands: []command{{"Show them", "hookonce config show"}}}, nil
}

// sourceView is one source.
type sourceView struct {
	api.Source
	Again    string  `json:"again,omitempty"`    // for how long its sender sends an event again
	Late     string  `json:"late,omitempty"`     // that copies came later than that
	Compared string  `json:"compared,omitempty"` // how far, with its sender's list; empty if it is not
	Numbers  []Chart `json:"numbers,omitempty"`  // of the week
	// Missing never arrived: the first shownMissing of them, and how many more there are.
	Missing []api.MissingEvent `json:"missing,omitempty"`
	More    int64              `json:"more_missing,omitempty"`
	// FoundBefore is what the form that dismisses all of them says of the list.
	FoundBefore time.Time `json:"-"`
	// Dismissed says what came of a form that dismissed, which led here.
	Dismissed string `json:"-"`
}

// shownMissing is how many events that never arrived the page of a source names.
const shownMissing = 20

// lost fills in what never arrived, if anything did not.
func (v *sourceView) lost(ctx context.Context, d *dashboard) {
	var list api.MissingList
	if err := d.get(ctx, "/sources/"+segment(v.Name)+"/missing", nil, &list); err != nil { // the page is of use without
		return
	}
	n := min(len(list.Events), shownMissing)
	v.Missing, v.More = list.Events[:n], int64(len(list.Events)-n)+list.Beyond
	v.FoundBefore = list.FoundBefore
}

// dismiss ends that an event, or all that the page told of, is told as missing.
func (d *dashboard) dismiss(r *http.Request) (*page, error) {
	in := api.Dismiss{Reason: reasonOf(r), All: r.PostFormValue("all") != ""}
	if key := r.PostFormValue("key"); key != "" {
		in.Keys = []string{key}
	}
	in.FoundBefore, _ = time.Parse(time.RFC3339Nano, r.PostFormValue("made")) // the API says what all does not do without
	path := "/sources/" + segment(r.PathValue("name"))
	var done api.Dismissed
	if err := d.post(r.Context(), path+"/missing/dismiss", in, &done); err != nil {
		return nil, err
	}
	return &page{Data: done, To: query(path, "dismissed", strconv.FormatInt(done.Dismissed, 10))}, nil
}

// known names the sender of a source.
func known(s *api.Source) string {
	if s.Provider == "custom" || s.Provider == "hmac" {
		return "its sender"
	}
	return s.Provider
}

// again says for how long the sender of a source is known to send an event again; nothing if that is not known.
func again(s *api.Source) string {
	itself, demand := span(time.Duration(s.SendsAgain)*time.Second), span(time.Duration(s.SentOnDemand)*time.Second)
	switch {
	case s.SendsAgain > 0 && s.SentOnDemand > s.SendsAgain:
		return "By what is known, " + known(s) + " sends an event again for " + itself + " by itself, and for " + demand + " when a person asks for it."
	case s.SendsAgain > 0:
		return "By what is known, " + known(s) + " sends an event again for " + itself + " by itself."
	case s.SentOnDemand > 0:
		return "By what is known, " + known(s) + " sends an event again for " + demand + " when a person asks for it, and not by itself."
	}
	return ""
}

// lateAfter returns the age from which on a copy is later than its sender is known to send any; zero if that is not known. What
// is known are rounded sums of pauses, to which requests add their own time: a tenth, and a minute, is allowed for that.
func lateAfter(s *api.Source) time.Duration {
	longest := time.Duration(max(s.SendsAgain, s.SentOnDemand)) * time.Second
	if longest == 0 {
		return 0
	}
	return longest + longest/10 + time.Minute
}

// compared says how far a source was compared with its sender's list, and what came of it; nothing if it is not.
func compared(c *overview.Compared) string {
	if c == nil {
		return ""
	}
	every := "Every " + span(time.Duration(c.Every)*time.Second)
	switch at := c.Ended.UTC().Format(time.RFC3339); {
	case c.Ended.IsZero():
		return every + "; it was not compared yet."
	case c.Error != "":
		return every + "; it failed at " + at + ": " + c.Error
	default:
		return fmt.Sprintf("%s, last at %s: %s listed, %d of them never arrived, %d recovered. All that was made until %s was looked for, except what the audit log names.",
			every, at, plural(c.Listed, "event", "events"), c.Missing, c.Recovered, c.Through.UTC().Format(time.RFC3339))
	}
}

func (d *dashboard) source(r *http.Request) (*page, error) {
	var all api.SourceList
	if err := d.get(r.Context(), "/sources", nil, &all); err != nil {
		return nil, err
	}
	name := r.PathValue("name")
	i := slices.IndexFunc(all.Sources, func(s api.Source) bool { return s.Name == name })
	if i < 0 {
		return nil, refusal(http.StatusNotFound, "there is no such source in this gateway")
	}
	v := sourceView{Source: all.Sources[i], Again: again(&all.Sources[i])}
	if n, err := strconv.ParseInt(r.URL.Query().Get("dismissed"), 10, 64); err == nil {
		v.Dismissed = plural(max(n, 0), "event is", "events are") + " dismissed."
	}
	var now api.Overview
	if err := d.get(r.Context(), "/overview", nil, &now); err == nil { // the page is of use without
		if i := slices.IndexFunc(now.Sources, func(s overview.SourceState) bool { return s.Name == name }); i >= 0 {
			v.Compared = compared(now.Sources[i].Compared)
			if now.Sources[i].NeverArrived != nil {
				v.lost(r.Context(), d)
			}
		}
	}
	if w, ok := d.week(r.Context(), name, "", "received", "accepted", "unkeyed", "reseen", "conflicts", "age:*"); ok {
		v.Numbers = []Chart{
			w.Count("Requests received", "requests", "received"), w.Count("Events accepted", "events", "accepted"),
			w.CameAgain(), w.Ages(), w.Count("Conflicts: same key, other content", "conflicts", "conflicts"),
		}
		if age := lateAfter(&v.Source); age > 0 {
			if n := w.Later(age); n > 0 {
				v.Late = plural(n, "copy", "copies") + " in 7 days came later than that: somebody else may send what was recorded."
			}
		}
	}
	commands := []command{
		{"Its events", "hookonce events list --source " + quoted(name)}, {"What was counted", "hookonce history --source " + quoted(name)},
		{"What was refused", "hookonce refusals " + quoted(name)},
	}
	if v.Again != "" && known(&v.Source) == v.Provider {
		commands = append(commands, command{"Where that is documented", "hookonce providers show " + v.Provider})
	}
	if len(v.Missing) > 0 {
		commands = append(commands, command{"All that never arrived", "hookonce reconcile missing " + quoted(name)})
	}
	if v.Compared != "" {
		commands = append(commands, command{"What never arrived", "hookonce reconcile --source " + quoted(name) + " --since 48h"})
	}
	return &page{Title: name, Place: "/sources", Again: 10, Data: v, Commands: commands}, nil
}
