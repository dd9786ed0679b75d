package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/journal"
)

func newEventsCommand(w *env) *cobra.Command {
	c := &cobra.Command{
		Use:   "events",
		Short: "List, show and replay the events of a running gateway",
		Long: `Events asks a running gateway, on its admin listener, what happened to events, and has it deliver
them again.`,
		Args: cobra.ArbitraryArgs,
		RunE: helpOrUnknown,
	}
	c.AddCommand(newEventsListCommand(w), newEventsShowCommand(w), newEventsReplayCommand(w))
	return c
}

// filterFlags choose events.
type filterFlags struct {
	source, kind, resource, field, state, destination, seen, since, until string
	failure                                                               string
	status                                                                int
	unrouted                                                              bool
}

func (f *filterFlags) declare(fs *pflag.FlagSet) {
	fs.StringVar(&f.source, "source", "", "only events of the source with this `name`")
	fs.StringVar(&f.kind, "type", "", "only events whose type matches this `pattern`; * stands for any characters")
	fs.StringVar(&f.resource, "resource", "", "only events about this `object`, such as pi_123: whole, or without its tenant")
	fs.StringVar(&f.field, "field", "", "only events in which a field has this text, as `FIELD=TEXT`: json:$.data.object.customer=cus_1; fields are named as in routes")
	fs.StringVar(&f.state, "state", "", "only events with a delivery in this `state`: pending, processing, failed, dead; or done")
	fs.StringVar(&f.destination, "destination", "", "only deliveries to the destination with this `name`")
	fs.StringVar(&f.failure, "error", "", "only what failed for an error of this `kind`, as hookonce failures names it: status, timeout, dns, refused, ...")
	fs.IntVar(&f.status, "status", 0, "only what failed after an answer with this HTTP `status`")
	fs.StringVar(&f.seen, "seen", "", "only events of which a copy of this `kind` came: duplicate, conflict, redriven")
	fs.BoolVar(&f.unrouted, "unrouted", false, "only events that no route wanted when they came")
	fs.StringVar(&f.since, "since", "", "only events accepted at this `time` or later: 2026-11-21T12:00:00Z, 2026-11-21, or 2h, 7d (ago)")
	fs.StringVar(&f.until, "until", "", "only events accepted before this `time`")
}

// filter returns the flags as the API has them.
func (f *filterFlags) filter(now time.Time) (api.Filter, error) {
	since, err := moment("since", f.since, now)
	if err != nil {
		return api.Filter{}, err
	}
	until, err := moment("until", f.until, now)
	return api.Filter{
		Source: f.source, Type: f.kind, Resource: f.resource, Field: f.field, State: f.state, Destination: f.destination, Seen: f.seen,
		Error: f.failure, Status: f.status, Unrouted: f.unrouted, Since: since, Until: until,
	}, err
}

// moment reads a point in time: absolute, or how long ago.
func moment(flag, text string, now time.Time) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		if n, err := strconv.ParseUint(days, 10, 15); err == nil {
			return now.Add(-time.Duration(n) * 24 * time.Hour), nil
		}
	}
	if d, err := time.ParseDuration(text); err == nil && d >= 0 {
		return now.Add(-d), nil
	}
	return time.Time{}, fmt.Errorf("--%s: %q is not a time; write one like 2026-11-21T12:00:00Z or 2026-11-21, or how long ago, like 30m, 2h or 7d", flag, text)
}

// query returns a filter as the query of a list.
func query(f api.Filter) url.Values {
	q := url.Values{}
	for name, value := range map[string]string{
		"source": f.Source, "type": f.Type, "resource": f.Resource, "field": f.Field, "state": f.State, "destination": f.Destination, "seen": f.Seen, "error": f.Error,
	} {
		if value != "" {
			q.Set(name, value)
		}
	}
	if f.Status != 0 {
		q.Set("status", strconv.Itoa(f.Status))
	}
	if f.Unrouted {
		q.Set("unrouted", "true")
	}
	if !f.Since.IsZero() {
		q.Set("since", f.Since.UTC().Format(time.RFC3339Nano))
	}
	if !f.Until.IsZero() {
		q.Set("until", f.Until.UTC().Format(time.RFC3339Nano))
	}
	return q
}

func newEventsListCommand(w *env) *cobra.Command {
	var admin adminFlags
	var filter filterFlags
	var limit int
	var cursor string
	c := &cobra.Command{
		Use:   "list [flags]",
		Short: "List events, newest first",
		Long: `List looks through the journal from the newest event on, until it has found enough events or has looked at
everything that the flags allow. Where few match this takes a while, and it says how far it has come: events that
match --field are found by reading bodies, and the others are looked at too, at some thousand in a second. --since
and --until bound it. When it is interrupted, or the gateway cannot go on, it lists what it found, says how far it
looked, and how to go on from there.

Of the deliveries of an event a list has those that are not done; events show has all.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			f, err := filter.filter(time.Now())
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			if limit < 1 || limit > maxListed {
				return &usageError{c.CommandPath(), fmt.Errorf("--limit: write a number from 1 to %d", maxListed)}
			}
			ctx, stop := signal.NotifyContext(c.Context(), os.Interrupt)
			defer stop()
			search := &eventSearch{w: w, client: client, filter: f, limit: limit}
			return search.run(ctx, cursor, admin.json)
		},
	}
	admin.declare(c)
	filter.declare(c.Flags())
	c.Flags().IntVar(&limit, "limit", 50, "list at most this `number` of events")
	c.Flags().StringVar(&cursor, "cursor", "", "go on where another list ended: the `cursor` that it printed")
	return c
}

const (
	maxListed = 10_000
	pageSize  = 200 // the most that the API gives at a time
)

// oneEvent wants a source and a key, or an identifier.
func oneEvent(c *cobra.Command, args []string) error {
	if _, err := eventPath(args); err != nil {
		return &usageError{c.CommandPath(), err}
	}
	return nil
}

// eventPath returns the path of the event that the arguments name.
func eventPath(args []string) (string, error) {
	switch len(args) {
	case 1:
		if id, err := strconv.ParseInt(args[0], 10, 64); err == nil && id > 0 {
			return "/events/" + args[0], nil
		}
		return "", fmt.Errorf("%q is not the identifier of an event; write its number, or its source and its key", args[0])
	case 2:
		if args[0] != "" && args[1] != "" {
			return "/events/" + segment(args[0]) + "/" + segment(args[1]), nil
		}
	}
	return "", fmt.Errorf("name one event: its source and its key, or its identifier")
}

func newEventsShowCommand(w *env) *cobra.Command {
	var admin adminFlags
	var body, headers bool
	var reason string
	c := &cobra.Command{
		Use:   "show {SOURCE KEY | ID} [flags]",
		Short: "Show one event with its deliveries, attempts and copies",
		Long: `Show tells what is known about an event. With --body or --headers it shows that part of it instead, if the gateway's
admin_payloads lets anybody look, and the token may. Each look is on record, with its reason.`,
		Args: oneEvent,
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			path, err := eventPath(args)
			if err != nil {
				return err
			}
			var e api.Detail
			if err := client.get(c.Context(), path, nil, &e); err != nil {
				return err
			}
			switch {
			case body && headers:
				return &usageError{c.CommandPath(), errors.New("--body and --headers are two looks: write one of them")}
			case body:
				return look(c, w, client, e.ID, api.PartBody, reason, admin.json)
			case headers:
				return look(c, w, client, e.ID, api.PartHeaders, reason, admin.json)
			case admin.json:
				return printJSON(w, e)
			}
			return printEvent(w, &e)
		},
	}
	admin.declare(c)
	c.Flags().BoolVar(&body, "body", false, "show the body")
	c.Flags().BoolVar(&headers, "headers", false, "show the headers")
	c.Flags().StringVar(&reason, "reason", "", "why you look, for the audit log, as a `text`")
	return c
}

// look shows a part of an event, which is on record then.
func look(c *cobra.Command, w *env, client *adminClient, id, part, reason string, asJSON bool) error {
	if reason == "" {
		return &usageError{c.CommandPath(), errors.New("say why you look with --reason; it is kept in the audit log")}
	}
	var p api.Payload
	if err := client.call(c.Context(), http.MethodPost, "/events/"+id+"/payload", api.Look{Part: part, Reason: reason}, &p); err != nil {
		return err
	}
	if asJSON {
		return printJSON(w, p)
	}
	for _, h := range p.Headers {
		fmt.Fprintf(w.out, "%s: %s\n", clean(h.Name), clean(h.Value))
	}
	if part == api.PartHeaders {
		return nil
	}
	hash := ""
	if p.SHA256 != "" { // masked, there is none
		hash = ", SHA-256 " + clean(p.SHA256)
	}
	fmt.Fprintf(w.err, "%s; %d bytes%s, %s\n", clean(cmp.Or(p.Type, "no content type")), p.Bytes, hash, p.Form)
	switch {
	case p.Text != "":
		for line := range strings.Lines(p.Text) {
			fmt.Fprintln(w.out, clean(strings.TrimRight(line, "\r\n")))
		}
	case p.Base64 != "":
		fmt.Fprintln(w.err, "It is no text; in Base64:")
		fmt.Fprintln(w.out, p.Base64)
	case p.Bytes > 0:
		fmt.Fprintln(w.err, "It is neither JSON nor a form, and has no structure that could be shown.")
	}
	if p.Cut {
		fmt.Fprintln(w.err, "It goes on.")
	}
	return nil
}

// nextTry says when a delivery is tried next, or what it waits for.
func nextTry(next api.Next) string {
	return strings.TrimSpace(next.Words + " " + clockOf(next.At))
}

func printEvent(w *env, e *api.Detail) error {
	body := "deleted: the event cannot be delivered again"
	if e.HasBody {
		body = fmt.Sprintf("%d bytes", e.BodyBytes)
	}
	state := e.State
	if nowhere := e.Nowhere(); nowhere != "" {
		state += ": " + nowhere
	}
	received := clock(e.ReceivedAt)
	if e.Reconciled {
		received += ", from the provider's list: no webhook had brought it"
	}
	logical := ""
	if e.LogicalDuplicateOf != "" {
		logical = "duplicate of " + e.LogicalDuplicateOf
	}
	for _, line := range [][2]string{
		{"id", e.ID}, {"source", e.Source}, {"key", cmp.Or(e.Key, "- (unkeyed)")}, {"type", e.Type}, {"state", state},
		{"received", received}, {"resource", e.Resource}, {"logical", logical}, {"body", body},
	} {
		if line[1] != "" {
			fmt.Fprintf(w.out, "%-10s%s\n", line[0], clean(line[1]))
		}
	}
	deliveries := newTable(w, "\n", "DESTINATION | STATE | ATTEMPTS | NEXT TRY | FORCED | LAST ERROR")
	for _, d := range e.Deliveries {
		deliveries.row("", d.Destination, d.State, d.Attempts, nextTry(d.Next(time.Now())), forced(d.Forced), d.LastError)
	}
	attempts := newTable(w, "\n", "ATTEMPT AT | DESTINATION | NUMBER | OUTCOME | STATUS | TOOK | ERROR | ANSWER")
	for _, a := range e.Attempts {
		status := ""
		if a.Status != 0 {
			status = strconv.Itoa(a.Status)
		}
		took := time.Duration(a.LatencyMS * float64(time.Millisecond)).Round(100 * time.Microsecond)
		attempts.row("", clock(a.StartedAt), a.Destination, a.Number, a.Outcome, status, took, a.Error, cut(clean(a.Answer), 80))
	}
	copies := newTable(w, "\n", "COPIES FROM | TO | KIND | NUMBER")
	for _, s := range e.Sightings {
		copies.row("", clock(s.First), clock(s.Last), s.Kind, s.Copies)
	}
	return flush(deliveries, attempts, copies)
}

func forced(yes bool) string {
	if yes {
		return "yes"
	}
	return ""
}

// flush writes tables one after the other.
func flush(tables ...table) error {
	for _, t := range tables {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// eventSearch lists events, page after page.
type eventSearch struct {
	w      *env
	client *adminClient
	filter api.Filter
	limit  int
}

// run searches from the cursor on and prints what it finds. What was found before something went wrong is
// printed too, with how to go on.
func (s *eventSearch) run(ctx context.Context, cursor string, asJSON bool) error {
	list, failed := s.collect(ctx, cursor)
	if failed != nil && ctx.Err() != nil {
		failed = errors.New("the search was interrupted")
	}
	if failed != nil && list.Cursor == cursor {
		return failed // nothing was looked at
	}
	show := s.print
	if asJSON {
		show = func(l *api.EventList) error { return printJSON(s.w, l) }
	}
	if err := show(list); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("the search stopped early, at what was accepted at %s: %w; go on with --cursor %s", clockOf(list.LookedTo), failed, list.Cursor)
	}
	return nil
}

const (
	patientTries = 3           // in a row, of a gateway that is busy
	patientWait  = time.Second // between them, which is its Retry-After
)

// isBusy reports whether the gateway may have time for a request later.
func isBusy(err error) bool {
	var refused *refusedError
	return errors.As(err, &refused) && refused.status == http.StatusServiceUnavailable
}

func pause(ctx context.Context) {
	select {
	case <-time.After(patientWait):
	case <-ctx.Done():
	}
}

// collect gathers pages until there are enough events, or all were looked at. It says how far it has come each time
// that the gateway stops, and is patient with one that is busy when it has begun. With an error it returns what it has.
func (s *eventSearch) collect(ctx context.Context, cursor string) (*api.EventList, error) {
	all := &api.EventList{Events: []api.Event{}, Cursor: cursor}
	for tries := 0; ; {
		page, err := s.page(ctx, all.Cursor, s.limit-len(all.Events))
		switch {
		case isBusy(err) && all.Cursor != cursor && tries < patientTries:
			tries++
			pause(ctx)
			continue
		case err != nil:
			all.Incomplete = true
			return all, err
		}
		tries = 0
		all.Events = append(all.Events, page.Events...)
		all.Cursor, all.LookedTo = page.Cursor, page.LookedTo
		if all.Cursor == "" || len(all.Events) >= s.limit {
			return all, nil
		}
		if page.Incomplete {
			fmt.Fprintf(s.w.err, "Looked back to %s, and found %d so far; going on.\n", clockOf(page.LookedTo), len(all.Events))
		}
	}
}

func (s *eventSearch) page(ctx context.Context, cursor string, limit int) (page api.EventList, err error) {
	q := query(s.filter)
	q.Set("limit", strconv.Itoa(min(pageSize, limit)))
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return page, s.client.get(ctx, "/events", q, &page)
}

// print writes the list for people.
func (s *eventSearch) print(list *api.EventList) error {
	t := newTable(s.w, "", "ID | RECEIVED | STATE | SOURCE | KEY | TYPE | OPEN")
	for _, e := range list.Events {
		var open []string
		for _, d := range e.Deliveries {
			open = append(open, d.Destination+": "+d.State)
		}
		if len(open) == 0 && e.Unrouted {
			open = []string{journal.Unrouted}
		}
		t.row("", e.ID, clock(e.ReceivedAt), e.State, e.Source, e.Key, e.Type, strings.Join(open, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	switch {
	case list.Incomplete:
	case list.Cursor != "":
		fmt.Fprintf(s.w.err, "There are more, accepted before %s: raise --limit, or go on with --cursor %s\n", clockOf(list.LookedTo), list.Cursor)
	case len(list.Events) == 0:
		fmt.Fprintln(s.w.err, "No event matches.")
	}
	return nil
}

// replaying is the command that has events delivered again.
type replaying struct {
	admin  adminFlags
	filter filterFlags
	reason string
	force  bool
	rate   float64
	dryRun bool
	yes    bool
	cursor string
}

func newEventsReplayCommand(w *env) *cobra.Command {
	r := &replaying{}
	c := &cobra.Command{
		Use:   "replay [SOURCE KEY | ID] --reason TEXT [flags]",
		Short: "Deliver one event again, or all that flags choose",
		Long: `Replay has failed and dead deliveries begin again at once. What is pending or being delivered is
left alone, and what is done as well, unless --force is given: the destination then sees the header
Hookonce-Forced: true.

With --unrouted, --destination and --force it delivers what no route wanted to that destination, where it
never was.

Without an event it replays all deliveries that the flags choose, after counting them, and only with
--yes. Who did it and why is kept in the audit log.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return oneEvent(c, args)
		},
		RunE: func(c *cobra.Command, args []string) error { return r.run(w, c, args) },
	}
	r.admin.declare(c)
	r.filter.declare(c.Flags())
	fs := c.Flags()
	fs.StringVar(&r.reason, "reason", "", "why, for the audit log, as a `text`")
	fs.BoolVar(&r.force, "force", false, "replay what is done as well")
	fs.Float64Var(&r.rate, "rate", 0, "spread them: this `number` in a second, those in an order of their own apart; all at once if not set")
	fs.BoolVar(&r.dryRun, "dry-run", false, "only count")
	fs.BoolVar(&r.yes, "yes", false, "replay all that the flags choose")
	fs.StringVar(&r.cursor, "cursor", "", "go on where a replay with --force stopped early: the `cursor` that it printed")
	return c
}

func (r *replaying) run(w *env, c *cobra.Command, args []string) error {
	client, err := r.admin.client(w, c)
	if err != nil {
		return err
	}
	if r.reason == "" {
		return &usageError{c.CommandPath(), errors.New("say why with --reason; it is kept in the audit log")}
	}
	if len(args) > 0 {
		return r.one(c.Context(), w, client, args)
	}
	filter, err := r.filter.filter(time.Now())
	if err == nil && filter == (api.Filter{}) {
		err = errors.New("name an event, or choose some with flags such as --state dead or --since 1h")
	}
	if err != nil {
		return &usageError{c.CommandPath(), err}
	}
	return r.many(w, c, client, filter)
}

// one replays one event. The flags that choose among many would say nothing.
func (r *replaying) one(ctx context.Context, w *env, client *adminClient, args []string) error {
	path, err := eventPath(args)
	if err != nil {
		return err
	}
	f := r.filter
	f.destination = ""
	if f != (filterFlags{}) || r.rate != 0 || r.cursor != "" {
		return &usageError{"hookonce events replay", errors.New("an event is named, so of the flags that choose only --destination has a meaning")}
	}
	var done api.ReplayResult
	body := api.ReplayOne{Destination: r.filter.destination, Force: r.force, Reason: r.reason, DryRun: r.dryRun}
	if err := client.call(ctx, http.MethodPost, path+"/replay", body, &done); err != nil {
		return r.unknown(err)
	}
	return r.print(w, &done)
}

// unknown says of what ended without an answer of the gateway that it may have begun, where asking again would do it twice. Other
// errors, and nil, stay as they are.
func (r *replaying) unknown(err error) error {
	var refused *refusedError
	var unreached *net.OpError
	if err == nil || !r.force || r.dryRun || errors.Is(err, errInterrupted) || errors.As(err, &refused) || errors.As(err, &unreached) && unreached.Op == "dial" {
		return err
	}
	return fmt.Errorf("it is not known whether anything is delivered again, and the same command would do once more what is done by now; look at the audit log of the dashboard before you ask again: %w", err)
}

// errInterrupted ends a replay between two requests.
var errInterrupted = errors.New("the replay was interrupted")

// many counts, and replays if it may. What a cursor goes on with was counted before.
func (r *replaying) many(w *env, c *cobra.Command, client *adminClient, filter api.Filter) error {
	body := api.ReplayMany{Filter: filter, Force: r.force, Reason: r.reason, Rate: r.rate, DryRun: true}
	enough, stop := signal.NotifyContext(c.Context(), os.Interrupt)
	defer stop()
	context.AfterFunc(enough, stop) // a second one ends the command at once
	if r.cursor == "" || r.dryRun || !r.yes {
		counted, err := replayAll(c.Context(), enough, w, client, body)
		switch {
		case err != nil:
			return err
		case r.dryRun:
			return r.print(w, counted)
		case !r.yes:
			if err := r.print(w, counted); err != nil {
				return err
			}
			return &usageError{c.CommandPath(), errors.New("nothing was replayed; add --yes to do it")}
		case r.force:
			body.DoneBefore = counted.Begun // what was counted is delivered once, however often it is asked for
		}
	}
	body.DryRun, body.Cursor = false, r.cursor
	done, err := replayAll(c.Context(), enough, w, client, body)
	if done != nil && (err == nil || done.Deliveries > 0) {
		err = errors.Join(r.print(w, done), err)
	}
	if err != nil && done != nil && done.Deliveries > 0 {
		return fmt.Errorf("%w; %s", err, goOn(&body, done.Cursor))
	}
	return r.unknown(err)
}

// chosenAgain reports whether what a replay delivered is chosen once more when it is done.
func chosenAgain(body *api.ReplayMany) bool { return body.Force && !body.Filter.Unrouted }

// goOn says how the rest is replayed.
func goOn(body *api.ReplayMany, cursor string) string {
	if !chosenAgain(body) {
		return "run the same command again for the rest"
	}
	rest := "for the rest, and what the last request may have begun without an answer,"
	if !body.DoneBefore.IsZero() {
		rest = "for the rest, without what the last request may have begun without an answer and is done by now,"
	}
	text := "the same command would deliver once more what it delivered by now; " + rest + " add --cursor " + cursor
	for _, bound := range []struct {
		flag string
		at   time.Time
	}{{"--since", body.Filter.Since}, {"--until", body.Filter.Until}} {
		if !bound.at.IsZero() {
			text += ", and write " + bound.flag + " " + bound.at.UTC().Format(time.RFC3339Nano)
		}
	}
	return text
}

// replayAll sends the request until nothing is left or enough ends, which waits for the request that is under way, and sums up the
// answers. It is patient with a gateway that is busy when it has begun, unless what began is chosen again once it is done. After an
// error they tell what was done before, and where to go on.
func replayAll(ctx, enough context.Context, w *env, client *adminClient, body api.ReplayMany) (*api.ReplayResult, error) {
	all := &api.ReplayResult{GoneEvents: []api.GoneEvent{}, Cursor: body.Cursor}
	begun := body.Cursor
	// What was done by a request of which nobody knows the outcome would be done once more, by a gateway that does not leave it alone.
	again := chosenAgain(&body) && !body.DryRun && body.DoneBefore.IsZero()
	for tries := 0; ; {
		if enough.Err() != nil {
			return all, errInterrupted
		}
		var part api.ReplayResult
		err := client.call(ctx, http.MethodPost, "/replay", body, &part)
		switch {
		case isBusy(err) && body.Cursor != begun && tries < patientTries && !again:
			tries++
			pause(enough)
			continue
		case err != nil:
			return all, err
		}
		tries = 0
		all.Join(&part)
		if body.Cursor = part.Cursor; body.Cursor == "" {
			return all, nil
		}
		fmt.Fprintf(w.err, "Found %d deliveries so far; going on.\n", all.Deliveries)
	}
}

func (r *replaying) print(w *env, done *api.ReplayResult) error {
	if r.admin.json {
		return printJSON(w, done)
	}
	verb := "begin again"
	if done.DryRun {
		verb = "would begin again"
	}
	fmt.Fprintf(w.out, "%d deliveries %s, %d of them although they are done.\n", done.Deliveries, verb, done.Forced)
	if len(done.Destinations) > 0 && r.filter.destination == "" {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(done.Destinations)) {
			parts = append(parts, fmt.Sprintf("%s gets %d", name, done.Destinations[name]))
		}
		fmt.Fprintf(w.out, "Of these %s.\n", strings.Join(parts, ", "))
	}
	if done.Open > 0 {
		fmt.Fprintf(w.out, "%d are pending or being delivered already and are left alone.\n", done.Open)
	}
	if done.Later > 0 {
		fmt.Fprintf(w.out, "%d were delivered since this was asked for and are left alone.\n", done.Later)
	}
	for _, name := range slices.Sorted(maps.Keys(done.Nowhere)) {
		fmt.Fprintf(w.out, "%d to %s are left alone, because no gateway delivers there: configure it again, or have single events delivered elsewhere with --destination and --force.\n", done.Nowhere[name], name)
	}
	if done.Gone > 0 {
		fmt.Fprintf(w.out, "%d events cannot be delivered again, because their bodies were deleted:\n", done.Gone)
		t := newTable(w, "", "ID | SOURCE | KEY")
		for _, g := range done.GoneEvents {
			t.row("", g.ID, g.Source, g.Key)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if done.Audit != "" {
		fmt.Fprintf(w.out, "Entry %s of the audit log.\n", done.Audit)
	}
	return nil
}
