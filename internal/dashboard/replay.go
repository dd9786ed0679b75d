package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

// replayTime bounds what one request of a browser waits for. What is left is gone on with by the next.
const replayTime = 12 * time.Second

// replayView is a replay: counted first, then done.
type replayView struct {
	Filter Filter `json:"filter,omitempty"`
	ID     string `json:"id,omitempty"` // of the event; empty: of all that the filter chooses
	Reason string `json:"reason"`
	Rate   string `json:"rate,omitempty"`
	Force  bool   `json:"force,omitempty"`
	// Made is when the form was made that this began with: what was done since is left alone, so that a form that is sent twice
	// delivers once.
	Made time.Time `json:"made,omitzero"`
	// Destination is the only one of an event that it goes to. Empty: wherever it failed.
	Destination string `json:"destination,omitempty"`

	Result api.ReplayResult `json:"result"`
	Wrong  string           `json:"wrong,omitempty"` // why nothing, or not all, was done
	// Unknown is set if what went wrong may have been done all the same.
	Unknown bool `json:"unknown,omitempty"`
	// Mistyped is set if nothing was done because of what was typed into the form, which is there to be corrected.
	Mistyped bool `json:"-"`
}

// Counted reports whether nothing was done but counting.
func (v *replayView) Counted() bool { return v.Result.DryRun }

// SoFar is what the form that goes on carries of what it came to up to here: the numbers, because names of all parts are more than
// a form may have.
func (v *replayView) SoFar() (string, error) {
	sum := v.Result
	sum.GoneEvents = nil
	text, err := json.Marshal(sum)
	return string(text), err
}

// readReplay takes a replay from a form. One that cannot be read is none: without its fields it would be of all events.
func (d *dashboard) readReplay(r *http.Request) (*replayView, error) {
	if err := r.ParseForm(); err != nil {
		return nil, refusal(http.StatusBadRequest, "the form could not be read, and nothing was done: "+err.Error())
	}
	force, _ := strconv.ParseBool(r.PostForm.Get("force"))
	made, err := time.Parse(time.RFC3339Nano, r.PostForm.Get("made"))
	if err != nil && counts(r) {
		made = d.opt.Now().UTC()
	}
	return &replayView{
		Made: made, Filter: readFilter(r.PostForm, d.opt.Now()), Reason: strings.TrimSpace(r.PostForm.Get("reason")), Rate: strings.TrimSpace(r.PostForm.Get("rate")),
		Force: force, Destination: r.PostForm.Get("destination"),
	}, nil
}

// counts reports whether a form asks for the number alone. One that does not say "do" does nothing.
func counts(r *http.Request) bool { return r.PostForm.Get("step") != "do" }

// counting stands for the reason where nothing is done that needs one.
const counting = "counting"

func (d *dashboard) replayEvent(r *http.Request) (*page, error) {
	v, err := d.readReplay(r)
	if err != nil {
		return nil, err
	}
	v.ID, v.Filter = r.PathValue("id"), nil
	dry := counts(r)
	in := api.ReplayOne{Destination: v.Destination, Force: v.Force, DoneBefore: v.Made, Reason: v.Reason, DryRun: dry}
	if dry {
		in.Reason = cmp.Or(in.Reason, counting)
	}
	err = d.post(r.Context(), "/events/"+segment(v.ID)+"/replay", in, &v.Result)
	return d.replayed(r, v, dry, err, "hookonce events replay "+v.ID+flags(v)+ending(dry, ""))
}

// replayMany replays all that a filter chooses, however many requests that takes.
func (d *dashboard) replayMany(r *http.Request) (*page, error) {
	v, err := d.readReplay(r)
	if err != nil {
		return nil, err
	}
	dry := counts(r)
	rate, err := strconv.ParseFloat(cmp.Or(v.Rate, "0"), 64)
	if err != nil || math.IsNaN(rate) || math.IsInf(rate, 0) {
		return d.replayed(r, v, dry, refusal(http.StatusUnprocessableEntity, "rate: write how many become due in a second, such as 50, or nothing for all at once"), "")
	}
	in := map[string]any{"filter": v.Filter.body(), "force": v.Force, "reason": v.Reason, "rate": rate, "dry_run": dry}
	if !v.Made.IsZero() {
		in["done_before"] = v.Made
	}
	if dry {
		in["reason"] = cmp.Or(v.Reason, counting)
	}
	if cursor := r.PostForm.Get("cursor"); cursor != "" {
		_ = json.Unmarshal([]byte(r.PostForm.Get("so_far")), &v.Result) // what cannot be read was nothing
		in["cursor"], v.Result.Cursor = cursor, cursor                  // where to go on also if this request fails
	}
	err = d.replayAll(r.Context(), in, &v.Result)
	return d.replayed(r, v, dry, err, "hookonce events replay"+v.Filter.Flags()+flags(v)+ending(dry, " --yes"))
}

// ending has the command do no more than the page did: count, or replay with what it then takes.
func ending(dry bool, does string) string {
	if dry {
		return " --dry-run"
	}
	return does
}

// replayAll goes on from piece to piece until all is done, or as much as one request may, and adds
// to what there was before. An error after the first piece leaves a cursor: what was done is told.
func (d *dashboard) replayAll(ctx context.Context, in map[string]any, sum *api.ReplayResult) error {
	for end := time.Now().Add(replayTime); ; {
		var piece api.ReplayResult
		if err := d.post(ctx, "/replay", in, &piece); err != nil {
			return err
		}
		sum.Join(&piece)
		if piece.Cursor == "" || time.Now().After(end) {
			return nil
		}
		in["cursor"] = piece.Cursor
	}
}

// replayed shows what a replay came to. That there was nothing to do is no error.
func (d *dashboard) replayed(r *http.Request, v *replayView, dry bool, err error, line string) (*page, error) {
	var why *Refusal
	if err != nil && (!errors.As(err, &why) || why.Status == http.StatusNotFound || frame.WantsData(r)) {
		return nil, err
	}
	if why != nil {
		v.Wrong, v.Mistyped = why.Error(), !dry && why.Status == http.StatusUnprocessableEntity && v.Result.Cursor == ""
		// With force the API says that it may be asked again only where nothing was done; without, it says so in any case.
		v.Unknown = !dry && why.Status == http.StatusServiceUnavailable && !(v.Force && why.Again)
	}
	v.Result.DryRun = dry
	p := &page{Title: "Replay", Place: "/events", Data: v}
	if line != "" && !v.Mistyped {
		p.Commands = []command{{"The same", line}}
	}
	return p, nil
}

// flags are those of a replay besides its filter.
func flags(v *replayView) string {
	var b strings.Builder
	if v.ID != "" && v.Destination != "" {
		b.WriteString(" --destination " + quoted(v.Destination))
	}
	if v.Force {
		b.WriteString(" --force")
	}
	if v.Rate != "" {
		b.WriteString(" --rate " + quoted(v.Rate))
	}
	return b.String() + " --reason " + quoted(cmp.Or(v.Reason, "WHY"))
}
