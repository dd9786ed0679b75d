package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hookonce/hookonce/internal/fleet"
	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/loglimit"
)

// ReplayOne says how to deliver one event again.
type ReplayOne struct {
	Destination string    `json:"destination,omitempty" maxLength:"64" doc:"Only there. Missing: wherever it failed."`
	Force       bool      `json:"force,omitempty" doc:"Also where it is done, or, with a destination, never was. The destination is told: Hookonce-Forced: true."`
	DoneBefore  time.Time `json:"done_before,omitzero" doc:"Leave alone what was done then or later. With the time at which somebody decided it, a request that comes twice delivers once."`
	Reason      string    `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
	DryRun      bool      `json:"dry_run,omitempty" doc:"Only count."`
}

// ReplayMany says how to deliver again what a filter matches.
type ReplayMany struct {
	Filter     Filter    `json:"filter" doc:"Which deliveries: state and destination choose among those of an event. Without a state: failed and dead ones."`
	Force      bool      `json:"force,omitempty" doc:"Also those that are done; with unrouted, to the destination where the event never was, and not those that are done. Destinations are told: Hookonce-Forced: true."`
	DoneBefore time.Time `json:"done_before,omitzero" doc:"Leave alone what was done then or later. With the time at which somebody decided it, a request that comes twice delivers once. Missing, with force: what was done since the first request of this replay."`
	Reason     string    `json:"reason" minLength:"1" maxLength:"500" doc:"Why, for the audit log."`
	Rate       float64   `json:"rate,omitempty" minimum:"0" maximum:"100000" doc:"How many become due in a second. 0 or missing: all at once. Those of destinations that deliver in order are due at once in any case, each when its resource has its turn."`
	DryRun     bool      `json:"dry_run,omitempty" doc:"Only count."`
	Cursor     string    `json:"cursor,omitempty" maxLength:"64" doc:"That of the answer before, to go on."`
}

// ReplayResult is what a request for a replay did.
type ReplayResult struct {
	Events       int            `json:"events" doc:"How many were looked at."`
	Deliveries   int            `json:"deliveries" doc:"How many begin again, or would in a dry run."`
	Forced       int            `json:"forced" doc:"How many of them were done."`
	Destinations map[string]int `json:"destinations,omitempty" doc:"How many of them each destination gets."`
	Open         int            `json:"open" doc:"How many were left alone because they are pending or processing."`
	Later        int            `json:"later,omitempty" doc:"How many were left alone because they were done at done_before or later, or since the replay began."`
	Nowhere      map[string]int `json:"nowhere,omitempty" doc:"How many were left alone of each destination that no gateway delivers to."`
	Gone         int            `json:"gone" doc:"How many events cannot be delivered again because their bodies were deleted."`
	GoneEvents   []GoneEvent    `json:"gone_events" nullable:"false" doc:"Some of them."`
	DryRun       bool           `json:"dry_run,omitempty"`
	Begun        time.Time      `json:"begun,omitzero" doc:"When a request for many was taken, by the clock of this gateway. With that of a dry run as done_before, what was counted is delivered once, however often it is asked for."`
	Audit        string         `json:"audit,omitempty" doc:"Number in the audit log."`
	Cursor       string         `json:"cursor,omitempty" doc:"There is more: send the same request with it. Missing: this was all."`
}

// GoneEvent is an event without a body.
type GoneEvent struct {
	ID     string `json:"id"`
	Source string `json:"source"`
	Key    string `json:"key,omitempty"`
}

const (
	replayPiece = 500   // events in one transaction
	replayTurn  = 20000 // events in one request
	maxGone     = 20    // events that an answer names
)

// add sums up.
func (r *ReplayResult) add(piece journal.Replayed) {
	r.Events += piece.Events
	r.Deliveries += piece.Deliveries
	r.Forced += piece.Forced
	r.Destinations = plus(r.Destinations, piece.Destinations)
	r.Open += piece.Open
	r.Later += piece.Later
	r.Nowhere = plus(r.Nowhere, piece.Nowhere)
	r.Gone += len(piece.Gone)
	for _, g := range piece.Gone[:min(len(piece.Gone), maxGone-len(r.GoneEvents))] {
		r.GoneEvents = append(r.GoneEvents, GoneEvent{journal.IDText(g.EventID), g.Source, g.Key})
	}
	if piece.Audit != 0 {
		r.Audit = journal.IDText(piece.Audit)
	}
}

// plus adds counts by name to others, which may be nil.
func plus(counts, more map[string]int) map[string]int {
	if counts == nil && len(more) > 0 {
		counts = map[string]int{}
	}
	for name, n := range more {
		counts[name] += n
	}
	return counts
}

// Join adds what the next request of the same replay came to, with which it goes on.
func (r *ReplayResult) Join(next *ReplayResult) {
	r.Events += next.Events
	r.Deliveries += next.Deliveries
	r.Destinations = plus(r.Destinations, next.Destinations)
	r.Forced += next.Forced
	r.Open += next.Open
	r.Later += next.Later
	r.Nowhere = plus(r.Nowhere, next.Nowhere)
	r.Gone += next.Gone
	r.GoneEvents = append(r.GoneEvents, next.GoneEvents...)
	r.DryRun, r.Cursor, r.Audit = next.DryRun, next.Cursor, cmp.Or(next.Audit, r.Audit)
	if r.Begun.IsZero() {
		r.Begun = next.Begun
	}
}

type replayKeyInput struct {
	KeyPath
	Body ReplayOne
}

type replayIDInput struct {
	IDPath
	Body ReplayOne
}

func (a *api) replayKey(ctx context.Context, in *replayKeyInput) (*answer[ReplayResult], error) {
	return a.replayOne(ctx, &in.KeyPath, &in.Body)
}

func (a *api) replayID(ctx context.Context, in *replayIDInput) (*answer[ReplayResult], error) {
	return a.replayOne(ctx, &in.IDPath, &in.Body)
}

// replayOne replays one event, and says why if there was nothing to do.
func (a *api) replayOne(ctx context.Context, where finder, in *ReplayOne) (*answer[ReplayResult], error) {
	r := journal.Replay{Force: in.Force, DoneBefore: in.DoneBefore, DryRun: in.DryRun, Reason: in.Reason}
	r.Destination = in.Destination
	if err := a.checkReplay(ctx, &r, "body.destination"); err != nil {
		return nil, err
	}
	out := &answer[ReplayResult]{ReplayResult{GoneEvents: []GoneEvent{}, DryRun: in.DryRun}}
	err := a.ask(ctx, writeTime, func(ctx context.Context) (err error) {
		if r.EventID, err = where.find(ctx, a.opt.Records); err != nil {
			return err
		}
		piece, err := a.opt.Journal.Replay(ctx, r, 1)
		if err != nil {
			return outcome(&r, err)
		}
		out.Body.add(piece)
		return idle(piece, r.Force)
	})
	if err != nil {
		return nil, err
	}
	a.report(ctx, &r, &out.Body)
	return out, nil
}

// outcome says of a replay that failed that nobody knows whether it began.
func outcome(r *journal.Replay, err error) error {
	if err == nil || r.DryRun || errors.Is(err, journal.ErrNoReplay) {
		return err
	}
	return unknownReplay{err, r.Force}
}

// unknownReplay is the failure of a replay that may have begun. To try again may deliver twice what is forced; what comes again
// without force leaves alone what has begun.
type unknownReplay struct {
	error
	forced bool
}

func (u unknownReplay) Unwrap() error { return u.error }

// idle says why nothing of one event was replayed.
func idle(r journal.Replayed, force bool) error {
	switch {
	case r.Events == 0:
		return journal.ErrNoEvent
	case r.Deliveries > 0:
		return nil
	case len(r.Gone) > 0:
		return huma.NewError(410, "the body of this event was deleted (see retention.bodies), so it cannot be delivered again; ask its sender to send it again")
	case len(r.Nowhere) > 0:
		text := "no gateway delivers to " + strings.Join(slices.Sorted(maps.Keys(r.Nowhere)), ", ") + " any more; "
		switch {
		case r.Open > 0:
			text += "elsewhere this is pending or being delivered already"
		case r.Later > 0:
			text += "elsewhere this was delivered already at the time that the request names, or later"
		default:
			text += "name the destination that this is to go to now, with force"
		}
		return huma.Error409Conflict(text)
	case r.Open > 0:
		return huma.Error409Conflict("this is pending or being delivered already; there is nothing to replay")
	case r.Later > 0:
		return huma.Error409Conflict("this was delivered already at the time that the request names, or later: it is not delivered twice for one request. Load the page of the event again, or look at the event, and ask anew if it is to be delivered once more")
	case force:
		return huma.Error409Conflict("no delivery of this event is on record: no route wanted it, it is a logical duplicate that was dropped, or where it was delivered is not kept any more (see retention.attempts); name the destination that it is to go to")
	}
	return huma.Error409Conflict("nothing of this event is failed or dead: it is done, or never went to this destination; deliver it all the same with force")
}

// checkReplay completes a replay and holds its texts against what is known.
func (a *api) checkReplay(ctx context.Context, r *journal.Replay, destination string) error {
	if !plain(r.Reason) {
		return invalid("body.reason", "this is not readable text", nil)
	}
	var targets map[string]fleet.Target
	var all bool
	err := a.ask(ctx, lookTime, func(ctx context.Context) (err error) {
		targets, all, err = a.fleet().Delivering(ctx)
		return err
	})
	if err != nil {
		return err
	}
	for name, t := range targets {
		if t.Ordered {
			r.Ordered = append(r.Ordered, name)
		}
	}
	if all {
		r.Delivers = slices.AppendSeq([]string{}, maps.Keys(targets)) // none is not all
	}
	if _, known := targets[r.Destination]; r.Destination != "" && !known {
		return invalid(destination, "there is no such destination in any gateway; GET "+Base+"/destinations lists them", r.Destination)
	}
	r.By, r.Start = actor(ctx), a.opt.Now()
	return nil
}

type replayManyInput struct{ Body ReplayMany }

// replayMany replays as much as one request may, piece by piece, and answers with where to go on.
func (a *api) replayMany(ctx context.Context, in *replayManyInput) (*answer[ReplayResult], error) {
	f, err := in.Body.Filter.journal("body.filter")
	if err != nil {
		return nil, err
	}
	r := journal.Replay{Filter: f, Force: in.Body.Force, DoneBefore: in.Body.DoneBefore, Rate: in.Body.Rate, DryRun: in.Body.DryRun, Reason: in.Body.Reason}
	if err := a.checkReplay(ctx, &r, "body.filter.destination"); err != nil {
		return nil, err
	}
	if err := check(&r); err != nil {
		return nil, err
	}
	content, err := a.content(&in.Body.Filter, "body.filter.field")
	if err != nil {
		return nil, err
	}
	if content != nil {
		r.Chosen = content.chosen()
	}
	tied := contextOf(fmt.Sprint("replay ", r.DryRun, r.Rate, r.Force), f, in.Body.Filter.Field)
	from, err := decode(in.Body.Cursor, tied, "body.cursor")
	if err != nil {
		return nil, err
	}
	r.After, r.Audit = from.at, from.audit
	if r.Force && !r.DryRun { // a piece of which nobody knows the outcome is asked for again, and must deliver once
		if r.DoneBefore.IsZero() {
			r.DoneBefore = time.UnixMicro(cmp.Or(from.begun, r.Start.UnixMicro()))
		}
		from.begun = r.DoneBefore.UnixMicro()
	}
	out := &answer[ReplayResult]{ReplayResult{GoneEvents: []GoneEvent{}, DryRun: r.DryRun, Begun: r.Start}}
	if err := a.pieces(ctx, &r, content, &out.Body); err != nil {
		return nil, err
	}
	if b := &out.Body; b.Events == 0 && b.Open == 0 && b.Gone == 0 && in.Body.Cursor == "" && r.After == 0 {
		if err := a.knownSource("body.filter.source", f.Source); err != nil {
			return nil, err
		}
	}
	if r.After != 0 {
		out.Body.Cursor = cursor{r.After, r.Audit, from.begun}.encode(tied)
	}
	a.report(ctx, &r, &out.Body)
	return out, nil
}

// minRate keeps the last of very many within some years.
const minRate = 0.01

// check refuses what would do nothing, or nothing that anybody lives to see.
func check(r *journal.Replay) error {
	switch {
	case r.Rate != 0 && r.Rate < minRate:
		return invalid("body.rate", "this is slower than one in a hundred seconds; write at least 0.01, or 0 for all at once", r.Rate)
	case r.State == journal.Pending, r.State == journal.Processing:
		return invalid("body.filter.state", "deliveries in this state come without a replay; write failed, dead or done", r.State)
	case r.ByError() && r.Force:
		return invalid("body.force", "what is chosen by its error or status is not done, and begins again without force", true)
	case r.Unrouted && r.State == "" && !r.ByError() && !r.Force:
		return invalid("body.force", "what no route wanted is done, and is delivered only with force", false)
	case r.Unrouted && r.State == journal.Done:
		return invalid("body.filter.state", "what no route wanted is delivered where it never was, whatever became of it elsewhere; leave the state out", r.State)
	case r.Unrouted && r.Done() && r.Destination == "":
		return invalid("body.filter.destination", "what no route wanted has no destination of its own; name the one that it is to go to", nil)
	case r.State == journal.Done && !r.Force:
		return invalid("body.force", "what is done is delivered again only with force", false)
	}
	return nil
}

// pieces replays one piece after the other until there is nothing more, or enough for one request. Between
// them others may ask. An error is told only about the first: what the others did is worth more, and so is
// where to go on.
func (a *api) pieces(ctx context.Context, r *journal.Replay, c *content, out *ReplayResult) error {
	end := time.Now().Add(writeTime / 2)
	looked := 0
	for first := true; first || r.After != 0; first = false {
		var piece journal.Replayed
		err := a.ask(ctx, writeTime/2, func(ctx context.Context) (err error) {
			if c != nil {
				piece, err = a.contentPiece(ctx, *r, c)
				return err
			}
			piece, err = a.opt.Journal.Replay(ctx, *r, replayPiece)
			return outcome(r, err)
		})
		switch {
		case err != nil && first:
			return err
		case err != nil:
			return nil
		}
		out.add(piece)
		r.After, r.Audit = piece.Next, piece.Audit
		looked += len(piece.Looked)
		if looked >= replayTurn || time.Now().After(end) {
			return nil
		}
	}
	return nil
}

// contentPiece replays of the next events those whose content matches. They are found before, because nobody should wait
// for bodies to be read.
func (a *api) contentPiece(ctx context.Context, r journal.Replay, c *content) (journal.Replayed, error) {
	look := r
	look.DryRun = true
	found, err := a.opt.Journal.Replay(ctx, look, contentPiece)
	if err != nil {
		return journal.Replayed{}, err
	}
	matching, err := c.choose(ctx, a.opt.Records, found.Looked)
	if err != nil {
		return journal.Replayed{}, err
	}
	r.Only = []int64{}
	for _, e := range found.Looked {
		if matching[e.EventID] {
			r.Only = append(r.Only, e.EventID)
		}
	}
	done := journal.Replayed{Audit: r.Audit}
	if len(r.Only) > 0 {
		if done, err = a.opt.Journal.Replay(ctx, r, contentPiece); err != nil {
			return journal.Replayed{}, outcome(&r, err)
		}
	}
	if done.Audit == 0 { // of a piece in which nothing began again
		done.Audit = r.Audit
	}
	done.Looked, done.Next = found.Looked, found.Next
	return done, nil
}

// report logs what was replayed, by whom and why.
func (a *api) report(ctx context.Context, r *journal.Replay, out *ReplayResult) {
	if r.DryRun {
		return
	}
	loglimit.Unbound(a.opt.Logger).LogAttrs(ctx, slog.LevelInfo, "api: deliveries are replayed", slog.String("by", r.By), slog.String("reason", r.Reason),
		slog.String("filter", r.Text()), slog.Int("deliveries", out.Deliveries), slog.String("audit", out.Audit))
}
