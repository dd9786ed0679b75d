package dashboard

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

// filterFields are the fields of [api.Filter], as they stand in addresses, forms and flags.
var filterFields = []string{"source", "type", "resource", "field", "state", "destination", "error", "status", "seen", unrouted, "since", "until"}

// unrouted is the field that is true or not there.
const unrouted = "unrouted"

// Filter is what somebody asks for, as it stands in the address.
type Filter map[string]string

// readFilter takes the fields of a filter from a form or a query. Times may be as long ago as 2h.
func readFilter(values url.Values, now time.Time) Filter {
	f := Filter{}
	for _, name := range filterFields {
		if text := strings.TrimSpace(values.Get(name)); text != "" {
			f[name] = text
		}
	}
	switch yes, err := strconv.ParseBool(f[unrouted]); {
	case err != nil: // not there, or for the API to refuse
	case yes:
		f[unrouted] = "true"
	default:
		delete(f, unrouted)
	}
	for _, name := range []string{"since", "until"} {
		if t, ok := instant(f[name], now); ok {
			f[name] = t.UTC().Format(time.RFC3339)
		}
	}
	return f
}

// instant reads a time as people write it: 2026-11-21, 2026-11-21 12:00, 2h or 7d ago.
func instant(text string, now time.Time) (time.Time, bool) {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04", time.DateTime} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		return now.AddDate(0, 0, -n), err == nil && n > 0
	}
	d, err := time.ParseDuration(text)
	return now.Add(-d), err == nil && d > 0
}

// Query returns the filter as it stands in an address.
func (f Filter) Query() url.Values {
	values := url.Values{}
	for name, text := range f {
		values.Set(name, text)
	}
	return values
}

// Address returns that of the events that match.
func (f Filter) Address() string {
	if len(f) == 0 {
		return "/events"
	}
	return "/events?" + f.Query().Encode()
}

// Flags are those of the commands that take a filter.
func (f Filter) Flags() string {
	var b strings.Builder
	for _, name := range filterFields {
		switch {
		case f[name] == "":
		case name == unrouted && f.Unrouted():
			b.WriteString(" --" + name)
		default:
			b.WriteString(" --" + name + " " + quoted(f[name]))
		}
	}
	return b.String()
}

// Unrouted reports whether the filter chooses among events that no route wanted.
func (f Filter) Unrouted() bool { return f[unrouted] == "true" }

// Nowhere reports whether a replay delivers what no route wanted, to the destination that is named, where it never was: whatever
// is open of it elsewhere, or went elsewhere.
func (f Filter) Nowhere() bool {
	return f.Unrouted() && f["state"] == "" && f["error"] == "" && f["status"] == ""
}

// Wider returns the filter without what such a replay cannot choose events by: that nothing of them is open, and where they went.
// Nil: it has nothing of that, or a replay does something else.
func (f Filter) Wider() Filter {
	wider := maps.Clone(f)
	delete(wider, "destination")
	if wider["state"] == "done" {
		delete(wider, "state")
	}
	if !wider.Nowhere() || len(wider) == len(f) {
		return nil
	}
	return wider
}

// Words says in a sentence what the filter chooses.
func (f Filter) Words() string {
	all := "All events"
	if f.Unrouted() {
		all += " that no route wanted"
	}
	var words []string
	for _, name := range filterFields {
		if f[name] != "" && !(name == unrouted && f.Unrouted()) && !(name == "destination" && f.Nowhere()) {
			words = append(words, name+" "+f[name])
		}
	}
	if len(words) == 0 {
		return all
	}
	return all + " with " + strings.Join(words, ", ")
}

// Again says of which of their deliveries a replay takes care, after [Filter.Words].
func (f Filter) Again() string {
	switch {
	case f.Nowhere():
		return ""
	case f["state"] == "":
		return " whose deliveries are failed or dead"
	case f["state"] == "done" && f["destination"] == "": // which are listed if nothing else of them is open
		return ", and what is done of those that have more open"
	}
	return ""
}

// body returns the filter as the API takes it in a body.
func (f Filter) body() map[string]any {
	body := map[string]any{}
	for name, text := range f {
		body[name] = text
		if n, err := strconv.Atoi(text); name == "status" && err == nil {
			body[name] = n
		}
		if name == unrouted && f.Unrouted() {
			body[name] = true
		}
	}
	return body
}

// eventsView is a part of the list of events.
type eventsView struct {
	Filter Filter `json:"filter"`
	api.EventList
	// Sources and Destinations are what may be chosen.
	Sources      []string `json:"-"`
	Destinations []string `json:"-"`
	Key          string   `json:"key,omitempty"`   // which these have, in place of a filter
	Wrong        string   `json:"wrong,omitempty"` // with the filter
	Further      bool     `json:"-"`               // this is not the first part
	Next         string   `json:"-"`               // address of the next part
}

// States and Kinds are what may be chosen of the states of deliveries and of the kinds of copies.
func (eventsView) States() []string {
	return []string{"failed", "dead", "pending", "processing", "done"}
}
func (eventsView) Kinds() []string { return []string{"duplicate", "conflict", "redriven"} }

// Special reports whether a field of the filter is set that most do not need.
func (v eventsView) Special() bool {
	return slices.ContainsFunc([]string{"until", "seen", "error", "status", "field", unrouted}, func(name string) bool { return v.Filter[name] != "" })
}

// Covers says what the list covers.
func (v eventsView) Covers() string {
	if v.Wrong != "" {
		return ""
	}
	text := plural(len(v.Events), "event", "events")
	if v.Key != "" {
		return text + " of as many sources have the key " + v.Key + ", newest first. Times are UTC."
	}
	text += ", newest first"
	if v.Further {
		text += ", older than those on the page before"
	}
	switch {
	case v.Incomplete && v.LookedTo != nil:
		text += ". The search went back to " + stamp(*v.LookedTo) + " and stopped there: go on with older events"
	case v.Cursor != "":
		text += ". There are older ones"
	default:
		text += ". These are all that match"
	}
	return text + ". Times are UTC."
}

func (d *dashboard) events(r *http.Request) (*page, error) {
	ctx, asked := r.Context(), r.URL.Query()
	v := eventsView{Filter: readFilter(asked, d.opt.Now())}
	query := v.Filter.Query()
	if c := asked.Get("cursor"); c != "" {
		query.Set("cursor", c)
		v.Further = true
	}
	err := d.get(ctx, "/events", query, &v.EventList)
	var why *Refusal
	if errors.As(err, &why) && why.Status == http.StatusUnprocessableEntity && !frame.WantsData(r) {
		v.Wrong, err = why.Error(), nil
	}
	if err != nil {
		return nil, err
	}
	if v.Cursor != "" {
		next := v.Filter.Query()
		next.Set("cursor", v.Cursor)
		v.Next = "/events?" + next.Encode()
	}
	v.Sources, v.Destinations = namesOf(d.sourceList(ctx))
	again := 10
	if v.Further || v.Filter["field"] != "" { // reads bodies
		again = 0
	}
	return &page{Title: "Events", Place: "/events", Again: again, Data: v, Commands: []command{{"List these", "hookonce events list" + v.Filter.Flags()}}}, nil
}

// sourceList returns those that are configured, as far as they can be told.
func (d *dashboard) sourceList(ctx context.Context) []api.Source {
	var all api.SourceList
	_ = d.get(ctx, "/sources", nil, &all)
	return all.Sources
}

// namesOf returns those of sources and of their destinations.
func namesOf(all []api.Source) (sources, destinations []string) {
	for _, source := range all {
		sources = append(sources, source.Name)
		destinations = append(destinations, source.Destinations...)
	}
	slices.Sort(sources)
	slices.Sort(destinations)
	return sources, slices.Compact(destinations)
}

// find leads to the event that somebody names: by its identifier, by its source and its key, or by
// its key alone. Of several that have the key it shows all. What is on record is found under the
// source that it came by, whether or not that is configured.
func (d *dashboard) find(r *http.Request) (*page, error) {
	ctx, text := r.Context(), strings.TrimSpace(r.URL.Query().Get("q"))
	var paths []string
	if id, err := strconv.ParseInt(text, 10, 64); err == nil && id > 0 {
		paths = append(paths, "/events/"+text)
	}
	if source, key, ok := strings.Cut(text, "/"); ok && source != "" && key != "" {
		paths = append(paths, "/events/"+segment(source)+"/"+segment(key))
	}
	for _, p := range paths {
		var found api.Detail
		switch err := d.get(ctx, p, nil, &found); {
		case err == nil:
			return &page{To: "/events/" + found.ID}, nil
		case !isUnknown(err):
			return nil, err
		}
	}
	v := eventsView{Filter: Filter{}, Key: text}
	switch err := d.get(ctx, "/keys/"+segment(text), nil, &v.EventList); {
	case err != nil && !isUnknown(err):
		return nil, err
	case len(v.Events) == 0:
		return &page{To: query("/events", "resource", text)}, nil
	case len(v.Events) == 1:
		return &page{To: "/events/" + v.Events[0].ID}, nil
	}
	v.Sources, v.Destinations = namesOf(d.sourceList(ctx))
	return &page{Title: "Events", Place: "/events", Again: 10, Data: v, Commands: []command{{"Show the newest", "hookonce events show " + v.Events[0].ID}}}, nil
}

// isUnknown reports whether the API says that there is no such event, or can be none.
func isUnknown(err error) bool {
	var why *Refusal
	return errors.As(err, &why) && (why.Status == http.StatusNotFound || why.Status == http.StatusUnprocessableEntity)
}

// eventView is one event with what happened to it.
type eventView struct {
	api.Detail
	Copies   string   `json:"copies,omitempty"` // when they came, and for how long the sender is known to send any
	Timeline []moment `json:"timeline"`
	// Destinations are what an event may be delivered to where it never was.
	Destinations []string `json:"-"`
}

// whenCopiesCame says how late the last copy of an event came, and for how long its sender is known to send any.
func whenCopiesCame(e *api.Detail, from *api.Source) string {
	var last time.Time
	for _, s := range e.Sightings {
		if s.Last.After(last) {
			last = s.Last
		}
	}
	if last.IsZero() {
		return ""
	}
	text := "The last copy came " + span(last.Sub(e.ReceivedAt)) + " after the first."
	if from != nil {
		text = strings.TrimSpace(text + " " + again(from))
	}
	return text
}

// late says of copies that they are later than their sender is known to send any.
func late(e *api.Detail, s api.Sighting, from *api.Source) string {
	if from == nil || lateAfter(from) == 0 || s.Last.Sub(e.ReceivedAt) <= lateAfter(from) {
		return ""
	}
	return "That is later than " + known(from) + " is known to send any: somebody else may send what was recorded."
}

// signedWith says which secret vouched for an event.
func signedWith(e *api.Detail) string {
	switch {
	case !e.Vouched:
		return ""
	case e.Secret == 0:
		return "Its signature was made with a secret of " + e.Source + " that is not configured any more, or not at the gateway that you ask."
	}
	return "Its signature was made with secret " + strconv.Itoa(e.Secret) + " of " + e.Source + "."
}

// moment is one thing that happened to an event.
type moment struct {
	At   time.Time `json:"at"`
	Kind string    `json:"kind"` // received, attempt, or that of a sighting
	ID   string    `json:"-"`    // of an attempt, in the page
	// Failed is set if it is one to look at.
	Failed bool   `json:"failed,omitempty"`
	Text   string `json:"text"`
	// Detail is more about it, in other people's words; Answer is how the destination's answer begins.
	Detail string  `json:"detail,omitempty"`
	Answer string  `json:"answer,omitempty"`
	After  float64 `json:"after_seconds"` // since the event was received
}

// Later returns how long after the event was received it happened.
func (m moment) Later() string {
	if m.After < 1 {
		return "at once"
	}
	return "after " + span(time.Duration(m.After*float64(time.Second)))
}

func (d *dashboard) event(r *http.Request) (*page, error) {
	path := "/events/" + segment(r.PathValue("id"))
	if r.PathValue("id") == "" {
		path = "/events/" + segment(r.PathValue("source")) + "/" + segment(r.PathValue("key"))
	}
	var v eventView
	if err := d.get(r.Context(), path, nil, &v.Detail); err != nil {
		return nil, err
	}
	sources := d.sourceList(r.Context())
	_, v.Destinations = namesOf(sources)
	v.Destinations = slices.DeleteFunc(v.Destinations, func(name string) bool {
		return slices.ContainsFunc(v.Deliveries, func(d api.Delivery) bool { return d.Destination == name })
	})
	from := sourceOf(sources, v.Source)
	v.Timeline, v.Copies = timeline(&v.Detail, from), whenCopiesCame(&v.Detail, from)
	return &page{Title: "Event " + v.ID, Place: "/events", Again: 10, Data: v, Commands: []command{
		{"Show it", "hookonce events show " + v.ID},
		{"Replay it", "hookonce events replay " + v.ID + " --reason 'WHY'"},
	}}, nil
}

// Seen says how often the event came.
func (v eventView) Seen() string {
	copies := 0
	for _, s := range v.Sightings {
		copies += s.Copies
	}
	if copies == 0 {
		return "once"
	}
	return plural(copies+1, "time", "times") + ": the first, and " + plural(copies, "copy", "copies")
}

// sourceOf returns a source as it is configured; nil if it is not any more.
func sourceOf(all []api.Source, name string) *api.Source {
	i := slices.IndexFunc(all, func(s api.Source) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &all[i]
}

// timeline puts what is known of an event in the order in which it happened. from is its source; nil: that is not known.
func timeline(e *api.Detail, from *api.Source) []moment {
	text := "Received and stored before it was acknowledged."
	switch {
	case e.Reconciled:
		text = "Stored from the provider's list of events: no webhook had brought it."
	case e.Unrouted:
		text = "Received and stored. No route wanted it, so it was delivered nowhere."
	case e.LogicalDuplicateOf != "":
		text = "Received and stored. It tells of the same change as an earlier event."
	case e.Key == "":
		text = "Received without a key: copies of it cannot be told apart, and each is delivered."
	}
	all := []moment{{At: e.ReceivedAt, Kind: "received", Text: text, Detail: signedWith(e)}}
	for _, a := range e.Attempts {
		m := moment{At: a.StartedAt, Kind: "attempt", ID: segment(a.Destination) + "-" + strconv.FormatInt(a.Number, 10), Failed: a.Outcome != "done", Detail: a.Error, Answer: a.Answer}
		answered := "no answer"
		if a.Status != 0 {
			answered = strings.TrimSpace(strconv.Itoa(a.Status) + " " + http.StatusText(a.Status))
		}
		m.Text = "Attempt " + strconv.FormatInt(a.Number, 10) + " at " + a.Destination + ": " + answered + " after " + milliseconds(a.LatencyMS) + "."
		if strings.Contains(m.Text, a.Error) {
			m.Detail = "" // it says no more
		}
		if a.Outcome == "dead" {
			m.Text += " It was given up."
		}
		all = append(all, m)
	}
	for _, s := range e.Sightings {
		tooLate := late(e, s, from)
		all = append(all, moment{At: s.First, Kind: s.Kind, Failed: s.Kind == "conflict" || tooLate != "", Text: sighted(s), Detail: tooLate})
	}
	slices.SortStableFunc(all, func(a, b moment) int { return cmp.Compare(a.At.UnixNano(), b.At.UnixNano()) })
	for i := range all {
		all[i].After = max(all[i].At.Sub(e.ReceivedAt), 0).Seconds()
	}
	return all
}

// sighted says what became of copies.
func sighted(s api.Sighting) string {
	copies := plural(s.Copies, "copy", "copies") + " came"
	if s.Copies > 1 {
		copies += ", the last at " + clock(s.Last)
	}
	switch s.Kind {
	case "conflict":
		return copies + " with the same key and other content. Not delivered: somebody has to look."
	case "redriven":
		return copies + " while it was failed or dead, which made it due again."
	}
	return copies + ". Not delivered: the event was accepted already."
}

// milliseconds returns a length of time as attempts have it.
func milliseconds(ms float64) string {
	switch {
	case ms < 10:
		return strconv.FormatFloat(ms, 'f', 1, 64) + " ms"
	case ms < 10_000:
		return strconv.FormatFloat(ms, 'f', 0, 64) + " ms"
	}
	return strconv.FormatFloat(ms/1000, 'f', 1, 64) + " s"
}
